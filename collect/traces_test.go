package collect_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/collect"
	"github.com/scrapestat/scrapestat/events/proxy"
	"github.com/scrapestat/scrapestat/internal/testkit"
	"github.com/scrapestat/scrapestat/rundb"
)

// TestTraces sends the traces of a real server to a run, which also has requests through a proxy whose answers tell of
// the server: all of it is in the run, and what is no trace is counted.
func TestTraces(t *testing.T) {
	answer := testkit.Data(t, "fixtures/server-requests/responses/llamacpp-response.json")
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if _, err := w.Write(answer); err != nil {
			t.Error(err)
		}
	}))
	defer upstream.Close()
	dir := t.TempDir()
	c, err := collect.StartClient(t.Context(), dir, collect.ClientOptions{Traces: "127.0.0.1:0",
		Create: &rundb.Meta{ID: "r"},
		Proxy:  &collect.ProxyOptions{Listen: "127.0.0.1:0", Options: proxy.Options{Upstream: upstream.URL}}})
	if err != nil {
		t.Fatal(err)
	}
	post := func(url, kind string, body []byte, want int) {
		t.Helper()
		resp, err := http.Post(url, kind, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: status %d", url, resp.StatusCode)
		}
	}
	post("http://"+c.ProxyAddr().String()+"/v1/completions", "application/json", []byte("{}"), http.StatusOK)
	traces := "http://" + c.TracesAddr().String() + "/v1/traces"
	batch := testkit.Data(t, "fixtures/server-requests/vllm/batch.pb")
	for range 2 {
		post(traces, "application/x-protobuf", batch, http.StatusOK)
	}
	post(traces, "application/json", []byte("{"), http.StatusBadRequest)
	http.DefaultClient.CloseIdleConnections()
	stats, err := c.Stop(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := stats.String(); !strings.Contains(got, "1 records of requests of llamacpp-answer at answers by the proxy") ||
		!strings.Contains(got, "48 records of requests of otlp at 127.0.0.1:") || !strings.Contains(got, "48 sent again") {
		t.Error(got)
	}
	if w := stats.Warnings(); stats.Lost() != 1 || len(w) == 0 || w[0].Code != "server_requests_bad" {
		t.Errorf("%d lost, %v", stats.Lost(), w)
	}
	run, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	count := map[int]int{}
	for q, err := range run.ServerRequests(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		count[q.Source]++
	}
	for q, err := range run.Requests(t.Context()) {
		if err != nil || q.ResponseID != "chatcmpl-7" || len(q.TraceID) != 32 {
			t.Errorf("%+v, %v", q, err)
		}
	}
	sources, err := run.ServerSources(t.Context())
	if err != nil || len(sources) != 2 || count[sources[0].ID]+count[sources[1].ID] != 49 {
		t.Errorf("%v %+v, %v", count, sources, err)
	}
}

// TestTracesAddress refuses an address that is taken or none, before anything is made.
func TestTracesAddress(t *testing.T) {
	dir := t.TempDir()
	if _, err := collect.StartClient(t.Context(), dir, collect.ClientOptions{Traces: "nowhere.invalid:1",
		Create: &rundb.Meta{ID: "r"}}); err == nil || !strings.Contains(err.Error(), "listen for traces") {
		t.Errorf("got %v", err)
	}
	if _, err := rundb.Open(dir); err == nil {
		t.Error("a run was made")
	}
}

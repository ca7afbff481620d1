package trtllm_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/internal/testkit"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source"
	"github.com/scrapestat/scrapestat/source/trtllm"
)

// feed keeps what a target tells.
type feed struct {
	all    []metric.ServerRequest
	counts metric.ServerCounts
}

func (f *feed) Record(q *metric.ServerRequest) { f.all = append(f.all, *q) }
func (f *feed) Counted(c metric.ServerCounts)  { f.counts = c }

// TestPoll polls a server that gives each record once. An answer that is cut off is a gap with what may be lost.
func TestPoll(t *testing.T) {
	body := string(testkit.Data(t, "fixtures/server-requests/trtllm/perf_metrics.json"))
	give := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch text := give; {
		case r.URL.Path != "/perf_metrics":
			http.NotFound(w, r)
		case text == "cut":
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			fmt.Fprint(w, body[:len(body)/2])
		case text == "404":
			http.NotFound(w, r)
		default:
			give = "[]"
			fmt.Fprint(w, text)
		}
	}))
	defer server.Close()
	var got feed
	kind := trtllm.Kind()
	address := "trtllm-perf+" + server.URL
	if err := kind.Check(address); err != nil {
		t.Fatal(err)
	}
	s, err := kind.New().Open(address, source.Options{RoundTripper: http.DefaultTransport,
		Requests: func(metric.ServerSource) source.Feed { return &got }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	poll := func(text string) metric.Snapshot {
		var snap metric.Snapshot
		give = text
		s.Poll(t.Context(), func() int64 { return 1 }, &snap)
		return snap
	}
	if snap := poll(body); snap.Outcome != metric.OK || len(got.all) != 20 {
		t.Errorf("%v %s: %d records", snap.Outcome, snap.Err, len(got.all))
	}
	if snap := poll("[]"); snap.Outcome != metric.OK || len(got.all) != 20 {
		t.Errorf("%v %s: %d records", snap.Outcome, snap.Err, len(got.all))
	}
	snap := poll("cut")
	if snap.Outcome != metric.Partial || !strings.Contains(snap.Err, "up to 20 records lost") || len(got.all) != 20 ||
		len(snap.Warnings) != 1 {
		t.Errorf("%v %s: %d records, %v", snap.Outcome, snap.Err, len(got.all), snap.Warnings)
	}
	if snap := poll("404"); snap.Outcome != metric.HTTPError || !strings.Contains(snap.Err, "return_perf_metrics") {
		t.Errorf("%v %s", snap.Outcome, snap.Err)
	}
	if snap := poll(strings.ReplaceAll(body, `"request_id": `, `"request_id": 9`)); snap.Outcome != metric.OK ||
		len(got.all) != 40 || got.counts.Records != 40 {
		t.Errorf("%v: %d records, %+v", snap.Outcome, len(got.all), got.counts)
	}
	server.Close()
	if snap := poll("[]"); snap.Outcome != metric.ConnectError {
		t.Errorf("%v", snap.Outcome)
	}
	for _, bad := range []string{"trtllm-perf+", "trtllm-perf+ftp://x", "trtllm-perf+http://"} {
		if kind.Check(bad) == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

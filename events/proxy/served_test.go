package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/events/proxy"
	"github.com/scrapestat/scrapestat/internal/testkit"
	"github.com/scrapestat/scrapestat/metric"
)

// list keeps the details of requests.
type list struct {
	mu  sync.Mutex
	all []events.Detail
}

func (l *list) Record(ev metric.Event) {
	if d, ok := events.ParseDetail(ev.Data); ok && ev.Type == events.SampleDetail {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = append(l.all, d)
	}
}

// TestServed has servers tell of a request in its answer, each in its way: as a body, headers, an event after [DONE].
func TestServed(t *testing.T) {
	const folder = "fixtures/server-requests/"
	body := func(name string) string { return string(testkit.Data(t, folder+name)) }
	head := http.Header{}
	for line := range strings.Lines(body("responses/tgi-headers.txt")) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			head.Set(name, value)
		}
	}
	stream := http.Header{"Content-Type": {"text/event-stream"}}
	plain := http.Header{"Content-Type": {"application/json"}}
	ms := func(v float64) time.Duration { return time.Duration(v*1e6 + 0.5) }
	for name, x := range map[string]struct {
		header http.Header
		body   string
		kind   string
		want   func(q *metric.ServerRequest)
	}{
		"llama.cpp": {plain, body("responses/llamacpp-response.json"), proxy.ServedLlamaCPP, func(q *metric.ServerRequest) {
			q.ID, q.Finish, q.Model, q.Prompt, q.Cached, q.Output = "chatcmpl-7", "stop", "m", 68, 60, 25
			q.Prefill, q.Decode = ms(43.237), ms(238.74)
		}},
		"vLLM": {stream, "data: " + body("responses/vllm-final-chunk.json") + "\n\ndata: [DONE]\n\n", proxy.ServedVLLM,
			func(q *metric.ServerRequest) {
				q.ID, q.Model, q.Prompt, q.Output = "cmpl-q1", "tiny", 10, 3
				q.Queue, q.Prefill, q.Decode = 254116, 27723690, 23812258
			}},
		"TGI": {head, `{"id":"t"}`, proxy.ServedHeaders, func(q *metric.ServerRequest) {
			q.ID, q.Front, q.Queue, q.E2E = "t", ms(1), ms(37), ms(412)
		}},
		"TensorRT-LLM": {stream, body("trtllm/stream.sse"), proxy.ServedTensorRT, func(q *metric.ServerRequest) {
			q.ID, q.Model, q.Finish, q.Prompt, q.Output = "cmpl-5", "m", "length", 9, 2
			q.Queue, q.TTFT, q.E2E = ms(22.979), ms(47.623), ms(1273.887)
			q.ArrivalNS, q.FinishNS = 76735_532837000, 76736_806724000
			q.QueuedNS = q.ArrivalNS
		}},
		"none": {plain, `{"id":"x","choices":[]}`, "", nil},
	} {
		var details list
		var got []metric.ServerRequest
		var kinds []string
		upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for name, v := range x.header {
				w.Header()[name] = v
			}
			fmt.Fprint(w, x.body)
			if trace := r.Header.Get("Traceparent"); len(trace) != 55 {
				t.Errorf("%s: traceparent %q", name, trace)
			}
		}))
		p, err := proxy.New(proxy.Options{Upstream: upstream.URL, Recorder: &details, Traceparent: true,
			Served: func(kind string, q *metric.ServerRequest) { got, kinds = append(got, *q), append(kinds, kind) }})
		if err != nil {
			t.Fatal(err)
		}
		front := httptest.NewServer(p)
		resp, err := front.Client().Post(front.URL+"/v1/completions", "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(resp.Body); err != nil || string(b) != x.body {
			t.Errorf("%s: the client sees %q, %v", name, b, err)
		}
		resp.Body.Close()
		front.Close()
		upstream.Close()
		if len(details.all) != 1 || len(details.all[0].TraceID) != 32 || details.all[0].ResponseID == "" {
			t.Errorf("%s: %+v", name, details.all)
		}
		if x.kind == "" {
			if len(got) > 0 {
				t.Errorf("%s: %+v", name, got)
			}
			continue
		}
		want := metric.NewServerRequest()
		x.want(&want)
		if len(got) != 1 || kinds[0] != x.kind || got[0] != want {
			t.Errorf("%s: %v\n got %+v\nwant %+v", name, kinds, got, want)
			continue
		}
		if err := got[0].Check(proxy.ServedClock(x.kind).Clock); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTraceparent keeps the trace that a client has sent, and gives none where it is not to.
func TestTraceparent(t *testing.T) {
	const sent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, x := range []struct {
		add            bool
		header, passed string
		trace          string
	}{{true, sent, sent, "0af7651916cd43dd8448eb211c80319c"}, {false, "", "", ""}, {true, "odd", "odd", ""},
		{false, sent, sent, "0af7651916cd43dd8448eb211c80319c"}} {
		var details list
		upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if got := r.Header.Get("Traceparent"); got != x.passed {
				t.Errorf("%+v: %q", x, got)
			}
			fmt.Fprint(w, "{}")
		}))
		p, err := proxy.New(proxy.Options{Upstream: upstream.URL, Recorder: &details, Traceparent: x.add})
		if err != nil {
			t.Fatal(err)
		}
		front := httptest.NewServer(p)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+"/v1/completions",
			strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if x.header != "" {
			r.Header.Set("Traceparent", x.header)
		}
		resp, err := front.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		front.Close()
		upstream.Close()
		if len(details.all) != 1 || details.all[0].TraceID != x.trace {
			t.Errorf("%+v: %+v", x, details.all)
		}
	}
}

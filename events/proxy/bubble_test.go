package proxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/events/proxy"
	"github.com/scrapestat/scrapestat/metric"
)

// log is a recorder that keeps all.
type log struct {
	mu     sync.Mutex
	events []metric.Event
}

func (l *log) Record(ev metric.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, ev)
}

// requests are what package events makes of what was recorded.
func (l *log) requests(t *testing.T) []events.Request {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	s, err := events.Assemble(func(yield func(*metric.Event, error) bool) {
		for i := range l.events {
			if !yield(&l.events[i], nil) {
				return
			}
		}
	}, events.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Orphans+s.Unknown+s.BadData+s.SessionErrors > 0 {
		t.Errorf("%d orphans, %d unknown, %d unreadable, %d session errors", s.Orphans, s.Unknown, s.BadData, s.SessionErrors)
	}
	return s.Requests
}

// pipes is a listener in memory, for bubbles.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (p *pipes) transport() *http.Transport {
	return &http.Transport{DisableCompression: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn,
		error) {
		ours, theirs := net.Pipe()
		select {
		case p.conns <- theirs:
			return ours, nil
		case <-p.done:
			return nil, net.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
}

// piece is what a fake server sends after some time.
type piece struct {
	after time.Duration
	text  string
}

func delta(fields string) string {
	return `data: {"id":"c","model":"m","choices":[{"index":0,"delta":{` + fields + `},"finish_reason":null}]}` + "\n\n"
}

// t10 is the server of acceptance case T10.
func t10() []piece {
	pieces := []piece{{5 * time.Millisecond, delta(`"role":"assistant","content":""`)},
		{45 * time.Millisecond, delta(`"content":"one"`)}}
	for range 9 {
		pieces = append(pieces, piece{10 * time.Millisecond, delta(`"content":" more"`)})
	}
	return append(pieces, piece{0, `data: {"model":"m","choices":[{"delta":{},"finish_reason":"stop"}],"usage":null}` +
		"\n\n"}, piece{0, `data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":10}}` + "\n\n"},
		piece{0, "data: [DONE]\n\n"})
}

func play(pieces []piece) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		w.Header().Set("X-Request-Id", "from-server")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush() // the headers come before any body
		for _, p := range pieces {
			<-time.After(p.after)
			_, _ = io.WriteString(w, p.text)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// through sends one request through a proxy to a server, all in one bubble, and
// returns the body and what was recorded.
func through(t *testing.T, o proxy.Options, server http.Handler, request string) (body string, status int, l *log,
	s proxy.Stats) {
	t.Helper()
	l = &log{}
	behind, front := newPipes(), newPipes()
	upstream := &http.Server{Handler: server}
	var wg sync.WaitGroup
	wg.Go(func() { _ = upstream.Serve(behind) })
	transport := behind.transport()
	o.Upstream, o.Recorder, o.Transport = "http://server", l, transport
	p, err := proxy.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	wg.Go(func() {
		if err := p.Serve(ctx, front); err != nil {
			t.Error(err)
		}
	})
	client := &http.Client{Transport: front.transport()}
	resp, err := client.Post("http://proxy/v1/chat/completions", "application/json", strings.NewReader(request))
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(resp.Body)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	_ = resp.Body.Close()
	client.CloseIdleConnections()
	stop()
	transport.CloseIdleConnections()
	_ = upstream.Close()
	wg.Wait()
	return string(all), resp.StatusCode, l, p.Stats()
}

// TestT10 is acceptance case T10 with the clock of a bubble: no time passes but
// that of the server, so the times are exact.
func TestT10(t *testing.T) {
	for _, chunks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			body, status, l, stats := through(t, proxy.Options{Chunks: chunks}, play(t10()), `{"stream":true,"messages":[]}`)
			want := ""
			for _, p := range t10() {
				want += p.text
			}
			if body != want || status != http.StatusOK {
				t.Errorf("status %d, body %q, want %q", status, body, want)
			}
			rs := l.requests(t)
			if len(rs) != 1 {
				t.Fatalf("%d requests, want 1", len(rs))
			}
			r := rs[0]
			ms := func(ns int64) float64 { return float64(ns-r.IssuedNS) / 1e6 }
			if got := ms(r.FirstNS); got != 50 {
				t.Errorf("TTFT %v ms, want 50", got)
			}
			if got := ms(r.ByteNS); got != 5 {
				t.Errorf("first byte after %v ms, want 5", got)
			}
			if got := (ms(r.CompleteNS) - ms(r.FirstNS)) / float64(r.Output-1); got != 10 {
				t.Errorf("TPOT n-1 %v ms, want 10", got)
			}
			if ms(r.LastNS) != 140 || r.Output != 10 || r.Input != 7 || r.Source != "usage" || r.Finish != "stop" ||
				r.RequestID != "from-server" || r.Model != "m" || r.HTTPStatus != 200 || r.Endpoint != "/v1/chat/completions" ||
				r.Status != events.Succeeded {
				t.Errorf("request %+v", r)
			}
			nexts := 0
			for _, ev := range l.events {
				if ev.Type == events.SampleNext {
					nexts++
				}
			}
			if want := map[bool]int{false: 0, true: 9}[chunks]; nexts != want {
				t.Errorf("%d events of later chunks, want %d", nexts, want)
			}
			if stats.Requests != 1 || stats.Failed != 0 || stats.Added.N != 1 || stats.Added.P99 != 0 {
				t.Errorf("stats %+v", stats)
			}
		})
	}
}

// TestReport: the report of T10's events says the same.
func TestReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, l, _ := through(t, proxy.Options{}, play(t10()), `{}`)
		types := make([]string, 0, len(l.events))
		for _, ev := range l.events {
			types = append(types, ev.Type)
		}
		want := []string{events.SessionStarted, events.StartTracking, events.SampleIssued, events.SampleUpstream,
			events.SampleFirstByte, events.SampleFirst, events.SampleDetail, events.SampleComplete, events.StopTracking,
			events.SessionEnded}
		if !slices.Equal(types, want) {
			t.Errorf("events %q, want %q", types, want)
		}
	})
}

// TestFirstToken: which chunk is the first.
func TestFirstToken(t *testing.T) {
	check := func(name string, want time.Duration, deltas ...string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			var pieces []piece
			for _, d := range deltas {
				pieces = append(pieces, piece{10 * time.Millisecond, delta(d)})
			}
			pieces = append(pieces, piece{0, "data: [DONE]\n\n"})
			_, _, l, _ := through(t, proxy.Options{}, play(pieces), `{}`)
			r := l.requests(t)[0]
			got := time.Duration(-1)
			if r.FirstNS != 0 {
				got = time.Duration(r.FirstNS - r.IssuedNS)
			}
			if got != want {
				t.Errorf("%s: first token after %v, want %v", name, got, want)
			}
		})
	}
	const ms = time.Millisecond
	check("role, then content", 20*ms, `"role":"assistant"`, `"content":"x"`)
	check("empty content is none", 30*ms, `"role":"assistant","content":""`, `"content":null`, `"content":" "`)
	check("reasoning", 20*ms, `"role":"assistant","reasoning":null`, `"reasoning":"hm"`, `"content":"x"`)
	check("reasoning of older servers", 20*ms, `"role":"assistant"`, `"reasoning_content":"hm"`)
	check("tool call", 20*ms, `"role":"assistant","tool_calls":[]`, `"tool_calls":[{"index":0,"function":{"name":"f"}}]`)
	check("function call", 20*ms, `"content":null`, `"function_call":{"name":"f"}`)
	check("none", -1, `"role":"assistant"`, ``)
}

// TestFailures: what goes wrong is recorded by its kind, and passes.
func TestFailures(t *testing.T) {
	status := func(code int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	check := func(name, want string, wantStatus int, server http.Handler) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			_, code, l, stats := through(t, proxy.Options{MaxRequest: 100}, server, strings.Repeat("x", 50))
			r := l.requests(t)[0]
			if r.Error != want || code != wantStatus || r.HTTPStatus != wantStatus {
				t.Errorf("%s: error %q, status %d, recorded %d, want %q and %d", name, r.Error, code, r.HTTPStatus, want,
					wantStatus)
			}
			if (r.Status == events.Failed) != (want != "") || stats.Failed != int64(min(len(want), 1)) || r.CompleteNS == 0 {
				t.Errorf("%s: %+v, %+v", name, r, stats)
			}
		})
	}
	const events = "text/event-stream"
	token := delta(`"content":"x"`)
	check("a good answer", "", 200, status(200, events, token+"data: [DONE]\n\n"))
	check("an answer that is no stream", "", 200, status(200, "application/json",
		`{"choices":[{"finish_reason":"stop"}]}`))
	check("an answer of another kind", "", 200, status(200, "text/plain", `hello`))
	check("an error status", "http_error", 503, status(503, "application/json", `{"error":"overloaded"}`))
	check("an error inside a stream", "stream_error", 200,
		status(200, events, token+`data: {"error":{"message":"boom"}}`+"\n\ndata: [DONE]\n\n"))
	check("a stream without end", "stream_cut", 200, status(200, events, token))
	check("a broken connection", "upstream_broken", 200, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status(200, events, token)(w, r)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	check("no answer", "upstream_unreachable", 502, http.HandlerFunc(func(http.ResponseWriter,
		*http.Request) {
		panic(http.ErrAbortHandler)
	}))

	synctest.Test(t, func(t *testing.T) {
		_, code, l, _ := through(t, proxy.Options{MaxRequest: 10},
			http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
			}), strings.Repeat("x", 50))
		if r := l.requests(t)[0]; code != http.StatusRequestEntityTooLarge || r.Error != "request_too_large" {
			t.Errorf("status %d, %+v", code, r)
		}
	})
}

// TestTrack: what is issued while tracking is off is warm-up.
func TestTrack(t *testing.T) {
	check := func(o proxy.Options, phases []bool, want string) {
		t.Helper()
		l := &log{}
		o.Recorder, o.Upstream = l, "http://x"
		o.Transport = transportFunc(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader("{}")), Request: r}, nil
		})
		p, err := proxy.New(o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		front := newPipes()
		go func() { ended <- p.Serve(ctx, front) }()
		client := &http.Client{Transport: front.transport()}
		send := func() {
			resp, err := client.Post("http://p/v1/completions", "application/json", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		send()
		for _, on := range phases {
			p.Track(on)
			p.Track(on) // says nothing new
			send()
		}
		client.CloseIdleConnections()
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, r := range l.requests(t) {
			got += map[bool]string{true: "t", false: "-"}[r.Tracked]
		}
		if got != want {
			t.Errorf("tracked %q, want %q", got, want)
		}
	}
	check(proxy.Options{}, nil, "t")
	check(proxy.Options{Untracked: true}, nil, "-")
	check(proxy.Options{Untracked: true}, []bool{true}, "-t")
	check(proxy.Options{Untracked: true}, []bool{false, true, false, true}, "--t-t")
}

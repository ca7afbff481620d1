package proxy_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"

	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/events/proxy"
	"github.com/scrapestat/scrapestat/internal/fuzzbound"
	"github.com/scrapestat/scrapestat/metric"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// running serves a proxy in front of server on TCP. stop ends both.
func running(t *testing.T, o proxy.Options, server http.Handler) (base string, l *log, stop func() proxy.Stats) {
	t.Helper()
	l = &log{}
	upstream := httptest.NewServer(server)
	o.Upstream, o.Recorder = upstream.URL, l
	p, err := proxy.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Serve(ctx, ln) }()
	return "http://" + ln.Addr().String(), l, func() proxy.Stats {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		upstream.CloseClientConnections()
		upstream.Close()
		return p.Stats()
	}
}

// answer is a stream of n chunks of random length, among them lines longer than
// what is scanned.
func answer(seed uint64, n int) []string {
	rng := rand.New(rand.NewPCG(seed, 1))
	var out []string
	for i := range n {
		size := rng.IntN(200)
		if i%17 == 5 {
			size = 6000
		}
		out = append(out, delta(fmt.Sprintf(`"content":"%d %s"`, i, strings.Repeat("x", size))))
	}
	return append(out, `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}`+"\n\n", "data: [DONE]\n\n")
}

// TestConcurrent: 200 streams at the same time pass unchanged, with clients that
// leave and connections that break among them, in bounded memory.
func TestConcurrent(t *testing.T) {
	const streams, chunks = 200, 40
	gate := make(chan struct{})
	var arrived sync.WaitGroup
	arrived.Add(streams)
	server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var seed uint64
		if json.NewDecoder(r.Body).Decode(&seed) != nil {
			t.Error("the request has changed")
		}
		arrived.Done()
		<-gate // all are under way at the same time
		w.Header().Set("Content-Type", "text/event-stream")
		for i, c := range answer(seed, chunks) {
			if seed%20 == 7 && i == 20 {
				panic(http.ErrAbortHandler)
			}
			if _, err := io.WriteString(w, c); err != nil {
				return // the client has gone, as some do
			}
			_ = http.NewResponseController(w).Flush()
		}
		if seed%20 == 13 {
			<-r.Context().Done() // until the client is seen to go
		}
	})
	o := proxy.Options{MaxScan: 4096, MaxScanTotal: 256 << 10}
	base, l, stop := running(t, o, server)
	transport := &http.Transport{DisableCompression: true}
	var clients sync.WaitGroup
	for seed := range uint64(streams) {
		clients.Go(func() {
			resp, err := transport.RoundTrip(post(t, base, fmt.Sprint(seed)))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			want := strings.Join(answer(seed, chunks), "")
			switch seed % 20 {
			case 7:
				got, err := io.ReadAll(resp.Body)
				if err == nil || !strings.HasPrefix(want, string(got)) {
					t.Errorf("stream %d, whose server broke: error %v after %d bytes", seed, err, len(got))
				}
			case 13:
				_, _ = io.ReadFull(resp.Body, make([]byte, 500))
			default:
				got, err := io.ReadAll(resp.Body)
				if err != nil || sha256.Sum256(got) != sha256.Sum256([]byte(want)) {
					t.Errorf("stream %d: %d bytes, error %v, want %d bytes unchanged", seed, len(got), err, len(want))
				}
			}
		})
	}
	arrived.Wait()
	close(gate)
	clients.Wait()
	transport.CloseIdleConnections()
	s := stop()
	if s.Requests != streams || s.Errors["upstream_broken"] != 10 || s.Errors["client_disconnected"] != 10 ||
		s.Failed != 20 {
		t.Errorf("stats %+v, want 10 broken servers and 10 clients that left", s)
	}
	if s.MaxHeld == 0 || s.MaxHeld > 256<<10 {
		t.Errorf("%d bytes were held, want at most the limit", s.MaxHeld)
	}
	if s.Oversized == 0 || s.Added.N != streams-20 || s.Added.Max < s.Added.P50 {
		t.Errorf("stats %+v, want long lines counted and an added time for each good request", s)
	}
	rs := l.requests(t)
	names := map[string]bool{}
	for _, r := range rs {
		names[r.ID] = true
		if r.FirstNS < r.IssuedNS || r.UpstreamNS < r.IssuedNS || r.CompleteNS < r.FirstNS || r.FirstNS == 0 {
			t.Errorf("times out of order: %+v", r)
		}
	}
	if len(names) != streams || len(rs) != streams {
		t.Errorf("%d requests with %d names, want %d", len(rs), len(names), streams)
	}
}

func post(t *testing.T, base, body string) *http.Request {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/v1/chat/completions",
		strings.NewReader(body))
	if err != nil {
		t.Error(err)
	}
	return req
}

// TestNoSecret: what is recorded has neither credentials nor text, and what
// belongs to one hop stays there.
func TestNoSecret(t *testing.T) {
	base, l, stop := running(t, proxy.Options{Chunks: true},
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if r.Header.Get("Authorization") != "Bearer sesame" || !bytes.Contains(body, []byte("my prompt")) ||
				r.Header.Get("X-Mine") != "kept" {
				t.Errorf("the request has changed: %v %q", r.Header, body)
			}
			if r.Header.Get("X-Hop") != "" || r.Header.Get("Accept-Encoding") != "identity" ||
				r.Header.Get("X-Forwarded-For") != "1.2.3.4" {
				t.Errorf("headers of the upstream: %v", r.Header)
			}
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Set-Cookie", "session=sesame")
			_, _ = io.WriteString(w, delta(`"content":"my answer"`)+`data: {"error":{"message":"my error"}}`+"\n\n")
		}))
	req := post(t, base, `{"messages":"my prompt"}`)
	for k, v := range map[string]string{"Authorization": "Bearer sesame", "X-Hop": "1", "Connection": "X-Hop",
		"X-Mine":          "kept",
		"X-Forwarded-For": "1.2.3.4", "X-Request-Id": "mine", "Accept-Encoding": "gzip"} {
		req.Header.Set(k, v)
	}
	req.URL.RawQuery = "key=sesame"
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	stop()
	all := ""
	for _, ev := range l.events {
		all += ev.Sample + ev.Type + string(ev.Data) + "\n"
	}
	for _, secret := range []string{"sesame", "my prompt", "my answer", "my error"} {
		if strings.Contains(all, secret) {
			t.Errorf("%q is recorded", secret)
		}
	}
	if r := l.requests(t)[0]; r.RequestID != "mine" {
		t.Errorf("x-request-id %q, want that of the request", r.RequestID)
	}
}

// TestForceUsage: only a stream that does not ask for usage is changed, and only
// when told to.
func TestForceUsage(t *testing.T) {
	check := func(force bool, body, want string) {
		t.Helper()
		base, _, stop := running(t, proxy.Options{ForceUsage: force},
			http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if got, _ := io.ReadAll(r.Body); string(got) != want || r.ContentLength != int64(len(want)) {
					t.Errorf("force %v, body %s: the server got %s (length %d), want %s", force, body, got, r.ContentLength, want)
				}
			}))
		resp, err := http.DefaultTransport.RoundTrip(post(t, base, body))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		stop()
	}
	check(false, `{"stream":true}`, `{"stream":true}`)
	check(true, `{"stream":true,"n":1.50}`, `{"stream_options":{"include_usage":true},"stream":true,"n":1.50}`)
	check(true, ` {"a":{"stream":[{}]},"m":"\"stream\":<", "stream" : true , "stream_options": null }`,
		` {"a":{"stream":[{}]},"m":"\"stream\":<", "stream" : true , "stream_options": {"include_usage":true} }`)
	check(true, `{"stream":true,"stream":false}`, `{"stream":true,"stream":false}`)
	check(true, `{"stream":true,"stream_options":7}`, `{"stream":true,"stream_options":7}`)
	check(true, `["stream",true]`, `["stream",true]`)
	check(true, `"{\"stream\":true}"`, `"{\"stream\":true}"`)
	check(true, `{"stream":true,"stream_options":{"x":1}}`,
		`{"stream":true,"stream_options":{"include_usage":true,"x":1}}`)
	check(true, `{"stream":true,  "stream_options":{"include_usage":true}}`,
		`{"stream":true,  "stream_options":{"include_usage":true}}`)
	check(true, `{"stream":false}`, `{"stream":false}`)
	check(true, `not json`, `not json`)
}

// TestLimits: too many requests are refused by the flag's name, others pass unseen.
func TestLimits(t *testing.T) {
	inside, release := make(chan struct{}), make(chan struct{})
	base, l, stop := running(t, proxy.Options{MaxStreams: 1}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		inside <- struct{}{}
		<-release
	}))
	client := &http.Client{Transport: &http.Transport{}}
	var wg sync.WaitGroup
	wg.Go(func() {
		if resp, err := client.Get(base + "/v1/models"); err != nil || resp.Body.Close() != nil {
			t.Error(err)
		}
	})
	<-inside
	resp, err := client.Get(base + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(text), "--max-streams") {
		t.Errorf("status %d, %q", resp.StatusCode, text)
	}
	close(release)
	wg.Wait()
	client.CloseIdleConnections()
	if s := stop(); s.Refused != 1 || s.Passed != 1 || s.Requests != 0 || len(l.requests(t)) != 0 {
		t.Errorf("stats %+v", s)
	}
	for _, upstream := range []string{"", "host:8000", "ftp://host", "http://", "http://user:pass@host",
		"http://host/?q=1", "http://h\x00"} {
		if _, err := proxy.New(proxy.Options{Upstream: upstream, Recorder: l}); err == nil ||
			strings.Contains(err.Error(), "pass@") {
			t.Errorf("upstream %q: error %v", upstream, err)
		}
	}
}

// TestNull: the measurement against a server that does nothing ends, records
// nothing and shows in the stats.
func TestNull(t *testing.T) {
	l := &log{}
	p, err := proxy.New(proxy.Options{Upstream: "http://127.0.0.1:1", Recorder: l})
	if err != nil {
		t.Fatal(err)
	}
	d, err := p.MeasureNull(t.Context(), 20)
	if err != nil || d.N != 20 || d.DirectP50 <= 0 || d.DirectP99 < d.DirectP50 {
		t.Errorf("%+v, %v", d, err)
	}
	if s := p.Stats(); s.Null == nil || *s.Null != d || s.Requests != 0 || len(l.events) != 0 {
		t.Errorf("stats %+v, %d events", s, len(l.events))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.MeasureNull(ctx, 20); err == nil {
		t.Error("no error after the end")
	}
}

// transportFunc is an upstream that is a function.
type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// inPieces is a body that is read in pieces of the given lengths, then by bytes.
type inPieces struct {
	text string
	cuts []int
}

func (b *inPieces) Read(p []byte) (int, error) {
	if b.text == "" {
		return 0, io.EOF
	}
	n := 1
	if len(b.cuts) > 0 {
		n, b.cuts = b.cuts[0], b.cuts[1:]
	}
	n = copy(p[:min(n, len(p))], b.text)
	b.text = b.text[n:]
	return n, nil
}

// scanned passes a body in pieces through a proxy without a network and returns
// the request that was recorded.
func scanned(t testing.TB, kind, body string, cuts []int) events.Request {
	l := &log{}
	p, err := proxy.New(proxy.Options{Upstream: "http://x", Recorder: l, MaxScan: 1 << 16,
		Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {kind}},
				Body:    io.NopCloser(&inPieces{body, cuts}),
				Request: r, ContentLength: -1}, nil
		})})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/completions", strings.NewReader("{}")))
	if w.Body.String() != body {
		t.Errorf("the body %q passed as %q", body, w.Body)
	}
	s, err := events.Assemble(stream(l), events.Rules{})
	if err != nil || len(s.Requests) != 1 {
		t.Fatalf("%d requests, %v", len(s.Requests), err)
	}
	return s.Requests[0]
}

func stream(l *log) events.Stream {
	return func(yield func(*metric.Event, error) bool) {
		for i := range l.events {
			if !yield(&l.events[i], nil) {
				return
			}
		}
	}
}

// facts are what of a request does not depend on the time.
func facts(r events.Request) string {
	return fmt.Sprintln(r.FirstNS != 0, r.Status, r.Error, r.Output, r.Input, r.AfterFirst, r.Source, r.Finish, r.Model)
}

// TestCuts: what is scanned does not depend on how the body was cut.
func TestCuts(t *testing.T) {
	whole := strings.Join(answer(3, 5), "") + `data: {"choices":[],"usage":{"completion_tokens":5}}` + "\r\n\r\n"
	bodies := map[string]string{
		"stream":         whole,
		"CRLF":           strings.ReplaceAll(whole, "\n\n", "\r\n\r\n"),
		"comments":       ": ping\n\nevent: x\nid: 3\n" + whole,
		"two data lines": strings.ReplaceAll(whole, `,"choices"`, ",\ndata: \"choices\""),
		"no last line":   strings.TrimSuffix(whole, "\r\n\r\n"),
		"no space":       strings.ReplaceAll(whole, "data: ", "data:"),
	}
	want := facts(scanned(t, "text/event-stream", whole, []int{1 << 20}))
	if want != "true ok  5 -1 -1 usage stop m\n" {
		t.Errorf("the whole stream gives %q", want)
	}
	for name, body := range bodies {
		rapid.Check(t, func(r *rapid.T) {
			cuts := rapid.SliceOfN(rapid.IntRange(1, 300), 0, 50).Draw(r, "cuts")
			if got := facts(scanned(t, "text/event-stream", body, cuts)); got != want {
				r.Errorf("%s: %q, want %q", name, got, want)
			}
		})
	}
	if got := facts(scanned(t, "application/json",
		`{"model":"m","choices":[{"text":"a","finish_reason":"length"}],"usage":{"completion_tokens":3,"prompt_tokens":2}}`,
		nil)); got != "false ok  3 2 -1 usage length m\n" {
		t.Errorf("an answer that is no stream gives %q", got)
	}
}

// FuzzScan: any body passes unchanged and gives one request.
func FuzzScan(f *testing.F) {
	f.Add(strings.Join(answer(1, 3), ""), true, byte(7))
	f.Add("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{}]}}]}\r\n\r\ndata:[DONE]", true, byte(1))
	f.Add(`{"usage":{"completion_tokens":-1}}`, false, byte(3))
	f.Add("data: "+strings.Repeat("x", 70000)+"\n\n", true, byte(255))
	f.Add("data: {\"error\":1}\n\n", true, byte(0))
	f.Fuzz(func(t *testing.T, body string, sse bool, cut byte) {
		defer fuzzbound.Check(t)()
		kind := "application/json"
		if sse {
			kind = "text/event-stream"
		}
		cuts := make([]int, 1+len(body)/(int(cut)+1))
		for i := range cuts {
			cuts[i] = int(cut) + 1
		}
		one, two := facts(scanned(t, kind, body, cuts)), facts(scanned(t, kind, body, []int{len(body) + 1}))
		if one != two {
			t.Errorf("body %q cut by %d gives %q, in one piece %q", body, cut, one, two)
		}
	})
}

// BenchmarkStream is what a stream of 100 chunks costs the proxy, without the network.
func BenchmarkStream(b *testing.B) {
	body := strings.Join(answer(1, 100), "")
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	p, err := proxy.New(proxy.Options{Upstream: "http://x", Recorder: &log{},
		Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}},
				Body:    io.NopCloser(strings.NewReader(body)),
				Request: r, ContentLength: -1}, nil
		})})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/completions", strings.NewReader("{}")))
	}

}

package simulate_test

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scrapestat/scrapestat/internal/simulate"
)

func get(s *simulate.Server, method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestPaths(t *testing.T) {
	s := start(t, newClock(), "vllm", simulate.Options{ExtraPath: "/prometheus/metrics"})
	check := func(method, path string, code int, contentType string) {
		t.Helper()
		w := get(s, method, path)
		if w.Code != code || w.Header().Get("Content-Type") != contentType {
			t.Errorf("%s %s: %d %q, want %d %q", method, path, w.Code, w.Header().Get("Content-Type"), code, contentType)
		}
	}
	const text, plain = "text/plain; version=0.0.4; charset=utf-8", "text/plain; charset=utf-8"
	check("GET", "/metrics", 200, text)
	check("HEAD", "/metrics", 200, text)
	check("GET", "/prometheus/metrics", 200, text)
	check("GET", "/health", 200, "")
	check("GET", "/", 404, plain)
	check("GET", "/metrics/", 404, plain)
	check("POST", "/metrics", 405, plain)
	if got, want := get(s, "GET", "/metrics").Body.String(), string(s.AppendBody(nil)); got != want {
		t.Error("/metrics and AppendBody differ")
	}
}

func TestGzip(t *testing.T) {
	s := start(t, newClock(), "vllm", simulate.Options{})
	w := get(s, "GET", "/metrics", "Accept-Encoding", "br, gzip;q=0.5")
	if w.Header().Get("Content-Encoding") != "gzip" {
		t.Fatalf("headers %v", w.Header())
	}
	z, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || string(got) != string(s.AppendBody(nil)) {
		t.Errorf("unpacked body differs: %v", err)
	}
}

// TestOpenMetrics turns an OpenMetrics body back into the classic one.
func TestOpenMetrics(t *testing.T) {
	c := newClock()
	s := start(t, c, "vllm", simulate.Options{Engines: 2})
	c.add(time.Minute)
	w := get(s, "GET", "/metrics", "Accept", "application/openmetrics-text;version=1.0.0,text/plain;q=0.1")
	if got := w.Header().Get("Content-Type"); got != "application/openmetrics-text; version=1.0.0; charset=utf-8" {
		t.Errorf("content type %q", got)
	}
	body, ok := strings.CutSuffix(w.Body.String(), "# EOF\n")
	if !ok {
		t.Error("no # EOF at the end")
	}
	var classic, created []string
	var help, typ string
	flush := func() {
		if len(created) > 0 {
			name, _, _ := strings.Cut(created[0], "_created")
			classic = append(append(classic, "# HELP "+name+"_created "+help, "# TYPE "+name+"_created gauge"), created...)
		}
		created = nil
	}
	for line := range strings.Lines(body) {
		line = strings.TrimSuffix(line, "\n")
		name, _, _ := strings.Cut(line, "{")
		name, _, _ = strings.Cut(name, " ")
		switch {
		case strings.HasPrefix(line, "# HELP "):
			flush()
			f := strings.SplitN(line, " ", 4)
			name, help = f[2], f[3]
			typ = name
		case strings.HasPrefix(line, "# TYPE "):
			f := strings.SplitN(line, " ", 4)
			if f[3] == "counter" {
				typ += "_total"
			}
			classic = append(classic, "# HELP "+typ+" "+help, "# TYPE "+typ+" "+f[3])
		case strings.HasSuffix(name, "_created"):
			created = append(created, line)
		default:
			classic = append(classic, line)
		}
	}
	flush()
	if got := strings.Join(classic, "\n") + "\n"; got != string(s.AppendBody(nil)) {
		t.Error("OpenMetrics and classic bodies hold different data")
	}
}

// pipeListener is a listener whose connections are pipes.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (l *pipeListener) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func TestServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := simulate.New("vllm", simulate.Options{Seed: 5})
		if err != nil {
			t.Fatal(err)
		}
		ln := newPipeListener()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.ServeListener(ctx, ln) }()
		client := &http.Client{Transport: &http.Transport{DialContext: ln.dial, DisableCompression: true}}
		get := func() string {
			resp, err := client.Get("http://simulated/metrics")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			return string(body)
		}
		first := get()
		wait, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		<-wait.Done()
		if f := parse(t, get()); f.value("vllm:request_success_total") < 100 || first == "" {
			t.Errorf("%v requests after a minute", f.value("vllm:request_success_total"))
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		client.CloseIdleConnections()
	})
}

func TestServeFails(t *testing.T) {
	s := start(t, newClock(), "vllm", simulate.Options{})
	if err := s.Serve(t.Context(), "no address", nil); err == nil || !strings.Contains(err.Error(), "no address") {
		t.Errorf("Serve: %v", err)
	}
	ln := newPipeListener()
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.ServeListener(t.Context(), ln); !errors.Is(err, net.ErrClosed) {
		t.Errorf("ServeListener on a closed listener: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var addr net.Addr
	if err := s.Serve(ctx, "127.0.0.1:0", func(a net.Addr) { addr = a; cancel() }); err != nil || addr == nil {
		t.Errorf("Serve on loopback %v: %v", addr, err)
	}
}

func TestScrapeAllocates(t *testing.T) {
	c := newClock()
	s := start(t, c, "vllm", simulate.Options{Load: []simulate.LoadStep{{At: time.Second}}})
	c.add(time.Minute)
	body := s.AppendBody(nil)
	if n := testing.AllocsPerRun(20, func() { body = s.AppendBody(body[:0]) }); n > 0 {
		t.Errorf("a scrape of an idle server allocates %v times", n)
	}
	c.add(time.Hour)
	s.SetRate(4)
	if n := testing.AllocsPerRun(20, func() { c.add(333 * time.Millisecond); body = s.AppendBody(body[:0]) }); n > 30 {
		t.Errorf("a scrape of a busy server allocates %v times", n)
	}
}

func BenchmarkScrape(b *testing.B) {
	c := newClock()
	s := start(b, c, "vllm", simulate.Options{Engines: 3, Rate: 12})
	c.add(10 * time.Minute)
	body := s.AppendBody(nil)
	b.Run("render", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			body = s.AppendBody(body[:0])
		}
	})
	b.Run("render and 333ms of work", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			c.add(333 * time.Millisecond)
			body = s.AppendBody(body[:0])
		}
	})
}

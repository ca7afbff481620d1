package proxy_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/scrapestat/scrapestat/events/proxy"
)

// TestHardening has a finding by the number that package faults lists: a client
// decides neither what the upstream has to read nor how much memory is held.
func TestHardening(t *testing.T) {
	t.Run("K20", func(t *testing.T) {
		t.Run("declared", declared)
		t.Run("held", held)
	})
}

// upstream is a proxy in front of a function that takes bodies.
func upstream(t *testing.T, o proxy.Options, take func(r *http.Request)) (*proxy.Proxy, *log) {
	t.Helper()
	l := &log{}
	o.Recorder, o.Upstream = l, "http://x"
	o.Transport = transportFunc(func(r *http.Request) (*http.Response, error) {
		take(r)
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, r.Body.Close()
	})
	p, err := proxy.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p, l
}

// declared has requests that say that they are too large: no upstream is asked.
func declared(t *testing.T) {
	p, l := upstream(t, proxy.Options{}, func(r *http.Request) { t.Errorf("%s reached the upstream", r.URL) })
	for _, path := range []string{"/v1/completions", "/v1/models"} {
		r := httptest.NewRequest(http.MethodPost, path, io.NopCloser(strings.NewReader("{")))
		r.ContentLength = 999_999_999_999
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		if w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), "--max-request") {
			t.Errorf("%s: status %d, %s", path, w.Code, w.Body)
		}
	}
	if r := l.requests(t); len(r) != 1 || r[0].Error != "request_too_large" || p.Stats().Failed != 1 {
		t.Errorf("requests %+v, %+v", r, p.Stats())
	}
}

// slowBody is a body whose second half comes when it may.
type slowBody struct {
	io.Reader
	half        int
	begun, more chan struct{}
}

func (s *slowBody) Read(b []byte) (int, error) {
	if s.half == 0 {
		close(s.begun)
		<-s.more
		s.half = -1
	}
	if s.half > 0 {
		b = b[:min(len(b), s.half)]
	}
	n, err := s.Reader.Read(b)
	if s.half > 0 {
		s.half -= n
	}
	return n, err
}

// held has bodies that wait to be whole, so that they can be changed: together they
// hold what one may, and what goes beyond passes as it is.
func held(t *testing.T) {
	const most = 1 << 20
	got := make(chan string, 9)
	p, _ := upstream(t, proxy.Options{ForceUsage: true, MaxRequest: most}, func(r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || int64(len(body)) != r.ContentLength && r.ContentLength >= 0 {
			t.Errorf("%d bytes of %d: %v", len(body), r.ContentLength, err)
		}
		got <- string(body)
	})
	post := func(body io.Reader, size int64) {
		r := httptest.NewRequest(http.MethodPost, "/v1/completions", io.NopCloser(body))
		r.ContentLength = size
		p.ServeHTTP(httptest.NewRecorder(), r)
	}
	text := func(n int) string { return `{"stream":true,"x":"` + strings.Repeat("x", n) + `"}` }
	const asks = `{"stream_options":{"include_usage":true},`
	large := text(most * 3 / 4)
	s := &slowBody{strings.NewReader(large), len(large) * 2 / 3, make(chan struct{}), make(chan struct{})}
	var wg sync.WaitGroup
	wg.Go(func() { post(s, int64(len(large))) })
	<-s.begun
	for _, size := range []int64{int64(len(large)), -1} {
		if post(strings.NewReader(large), size); <-got != large {
			t.Error("a body beyond the budget was changed")
		}
	}
	close(s.more)
	if body := <-got; body != asks+large[1:] {
		t.Errorf("the first body came as %.60s..., %d bytes", body, len(body))
	}
	wg.Wait()
	for range 3 { // the budget is there again
		if post(strings.NewReader(large), -1); !strings.HasPrefix(<-got, asks) {
			t.Error("a body within the budget was not changed")
		}
	}
	if n := p.Stats().Oversized; n != 2 {
		t.Errorf("%d counted as oversized, want 2", n)
	}

	const size = 32 << 20
	p, _ = upstream(t, proxy.Options{ForceUsage: true}, func(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	whole := []byte(text(size))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	post(bytes.NewReader(whole), int64(len(whole)))
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 4*size {
		t.Errorf("a body of %d bytes took %d", size, n)
	}
}

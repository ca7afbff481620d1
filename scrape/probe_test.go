package scrape_test

import (
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

func TestProber(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", "Wed, 21 Oct 2015 07:28:00 GMT")
		if user, password, _ := r.BasicAuth(); user != "me" || password != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if strings.HasPrefix(r.Header.Get("Accept"), "application/openmetrics-text") {
			w.Header().Set("Content-Type", "application/openmetrics-text; version=1.0.0")
			io.WriteString(w, "# TYPE a counter\na_total 1\n# EOF\n")
			return
		}
		if r.Header.Get("Accept-Encoding") != "gzip" {
			io.WriteString(w, "# TYPE a_total counter\na_total 1\nb 2\n")
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		io.WriteString(z, strings.Repeat("# just a comment\n", 100)+"a 1\n")
		z.Close()
	})
	mux.HandleFunc("/version", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"version":"1"}`) })
	mux.HandleFunc("/teapot", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, "short and stout, not secret")
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	p, err := scrape.NewProber(scrape.Target{URL: strings.Replace(srv.URL, "//", "//me:secret@", 1) + "/metrics"},
		scrape.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ask := func(q scrape.ProbeRequest, outcome metric.Outcome, status, lines int) *scrape.ProbeResult {
		t.Helper()
		r := p.Ask(t.Context(), q)
		if r.Outcome != outcome || r.Status != status || r.Lines != lines || strings.Contains(r.URL+r.Err, "secret") {
			t.Errorf("%+v: outcome %v, status %d, %d lines, %s %s", q, r.Outcome, r.Status, r.Lines, r.URL, r.Err)
		}
		return r
	}
	r := ask(scrape.ProbeRequest{}, metric.OK, 200, 2)
	if len(r.DictDelta.Families) != 2 || len(r.Delta.Slots) != 2 || r.Format != "text" || r.Wire != r.BodyBytes ||
		r.Date.Year() != 2015 || r.Duration <= 0 || r.Distance <= 0 {
		t.Errorf("reply %+v", r)
	}
	if r := ask(scrape.ProbeRequest{Protocols: []string{"openmetrics"}}, metric.OK, 200, 1); r.Format != "openmetrics" {
		t.Errorf("format %s", r.Format)
	}
	if r := ask(scrape.ProbeRequest{Compress: true}, metric.OK, 200, 1); r.Encoding != "gzip" || r.Wire <= 0 ||
		r.Wire >= r.BodyBytes {
		t.Errorf("encoding %q, %d of %d bytes", r.Encoding, r.Wire, r.BodyBytes)
	}
	if r := ask(scrape.ProbeRequest{Path: "/version", Raw: true}, metric.OK, 200, 0); string(r.Said) != `{"version":"1"}` {
		t.Errorf("said %q", r.Said)
	}
	if r := ask(scrape.ProbeRequest{Path: "/teapot"}, metric.HTTPError, 418, 0); !strings.HasPrefix(p.Text(r.Said),
		"short and stout, not xxxxx") {
		t.Errorf("said %q", p.Text(r.Said))
	}
	ask(scrape.ProbeRequest{Protocols: []string{"morse"}}, metric.NotPrometheus, 0, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := p.Ask(ctx, scrape.ProbeRequest{}); r.Outcome != metric.Cancelled {
		t.Errorf("cancelled: %v", r.Outcome)
	}
}

func TestProberOfSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	srv := &httptest.Server{Listener: ln, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		io.WriteString(w, "a 1\n")
	})}}
	srv.Start()
	defer srv.Close()
	p, err := scrape.NewProber(scrape.Target{URL: "unix://" + path}, scrape.Options{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if r := p.Ask(t.Context(), scrape.ProbeRequest{}); r.Outcome != metric.OK || r.Lines != 1 {
		t.Errorf("outcome %v, %s", r.Outcome, r.Err)
	}
}

func TestProberRefuses(t *testing.T) {
	check := func(target scrape.Target, o scrape.Options) {
		t.Helper()
		if _, err := scrape.NewProber(target, o); err == nil {
			t.Errorf("a prober of %v with %+v", target, o)
		}
	}
	check(scrape.Target{URL: "gopher://host"}, scrape.Options{})
	check(scrape.Target{URL: "http://host", Source: nothing{}}, scrape.Options{})
	check(scrape.Target{URL: "http://host"}, scrape.Options{Timeout: -1})
}

type nothing struct{}

func (nothing) Poll(context.Context, func() int64, *metric.Snapshot) {}

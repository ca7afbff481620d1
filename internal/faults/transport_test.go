package faults_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/badserver"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/summary"
)

// brief is a deadline that a hanging target reaches soon, and a healthy one
// does not reach.
var brief = scrape.Options{Timeout: 300 * time.Millisecond}

// TestCatalogueTransport has the cases T01 to T15 and T19 to T23; the others are
// about files, flags and addresses, in cmd/scrapestat.
func TestCatalogueTransport(t *testing.T) {
	t.Run("T01 refused", refused)
	t.Run("T02 late start", lateStart)
	t.Run("T04 forbidden", func(t *testing.T) {
		s := playCase(t, "T04", 2, scrape.Options{})
		s.outcomes("status 403; give --header, --bearer-token-file or --basic-auth-file", metric.HTTPError, metric.HTTPError)
		for _, p := range s.polls[0] {
			if _, body, _ := strings.Cut(p.Err,
				"the body begins "); len(body) > 512+len(`"" and goes on beyond 512 bytes, see --max-error-body`) {
				t.Errorf("the error repeats %d bytes", len(body))
			}
		}
	})
	t.Run("T05 other path", func(t *testing.T) {
		s := playCase(t, "T05", 3, scrape.Options{})
		s.outcomes("", all(metric.OK, 3)...)
		s.warned("fallback_path", "/prometheus/metrics")
		if n := len(s.server.Ledger()); n != 4 {
			t.Errorf("%d requests for 3 polls, want one to the first path", n)
		}
	})
	t.Run("T06 every third fails", func(t *testing.T) {
		s := playCase(t, "T06", 7, scrape.Options{})
		s.outcomes("", metric.OK, metric.OK, metric.HTTPError, metric.OK, metric.OK, metric.HTTPError, metric.OK)
		s.total("a", 6, 0)
	})
	t.Run("T07 not a 200", func(t *testing.T) {
		s := playCase(t, "T07", 4, scrape.Options{})
		s.outcomes("status 206", all(metric.HTTPError, 4)...)
		if len(s.run.Metrics) != 0 {
			t.Errorf("metrics %v of a 206", s.names())
		}
	})
	t.Run("T08 black hole", blackHole)
	t.Run("T09 slow loris", func(t *testing.T) {
		playCase(t, "T09", 2, brief).outcomes("--timeout", metric.Timeout, metric.Timeout)
	})
	t.Run("T10 endless head", endlessHead)
	t.Run("T11 cut", func(t *testing.T) {
		s := playCase(t, "T11", 3, scrape.Options{})
		s.outcomes("cut short", metric.Partial, metric.Partial, metric.Truncated)
		s.dropped("truncated", 3, "c_total")
	})
	t.Run("T12 bomb", bomb)
	t.Run("T13 gzip", gzipForms)
	t.Run("T14 redirects", func(t *testing.T) {
		s := playCase(t, "T14", 4, scrape.Options{})
		s.outcomes("another origin, unix:", all(metric.RefusedRedirect, 4)...)
		if n := len(s.server.Ledger()); n != 4+4+1+1 {
			t.Errorf("%d requests, want at most 3 redirects each", n)
		}
	})
	t.Run("T15 downgrade", downgrade)
	t.Run("T19 broken HTTP", brokenHTTP)
	t.Run("T20 closed connections", closedConnections)
	t.Run("T21 login page", func(t *testing.T) {
		s := playCase(t, "T21", 5, scrape.Options{})
		s.outcomes("looks like HTML", all(metric.NotPrometheus, 5)...)
		s.warned("not_prometheus", "trying every 30s")
	})
	t.Run("T22 JSON", func(t *testing.T) {
		s := playCase(t, "T22", 3, scrape.Options{})
		s.outcomes("TensorRT-LLM has its metrics at /prometheus/metrics", all(metric.NotPrometheus, 3)...)
	})
	t.Run("T23 content types", func(t *testing.T) {
		s := playCase(t, "T23", 3, scrape.Options{})
		s.outcomes("", all(metric.OK, 3)...)
		s.warned("content_type", "was read as Prometheus text")
	})
}

func refused(t *testing.T) {
	dead, err := badserver.Start(badserver.Options{Script: badserver.Steps(false, badserver.Answer{})})
	if err != nil {
		t.Fatal(err)
	}
	dead.Close()
	good := text(t, "# TYPE a_total counter\na_total 1\n", "# TYPE a_total counter\na_total 4\n")
	s := record(t, []scrape.Target{{URL: "http://" + dead.Addr + "/metrics"}, {URL: good}}, 3, scrape.Options{},
		summary.Options{}, nil)
	s.outcomes("connection refused", all(metric.ConnectError, 3)...)
	s.total("a", 3, 0)
	if l := s.run.Endpoints[0].Ledger; l.StoredPolls() != 0 || l.FirstError.Text == "" {
		t.Errorf("the dead target has %d stored polls, first error %q", l.StoredPolls(), l.FirstError.Text)
	}
}

// text serves bodies, one after the other, and returns the URL.
func text(t *testing.T, bodies ...string) string {
	t.Helper()
	var answers []badserver.Answer
	for _, b := range bodies {
		answers = append(answers, badserver.Answer{Type: "text/plain; version=0.0.4", Body: []byte(b)})
	}
	return serve(t, badserver.Steps(false, answers...)).url
}

type served struct {
	*badserver.Server
	url string
}

func serve(t *testing.T, script badserver.Script) served {
	t.Helper()
	srv, err := badserver.Start(badserver.Options{Script: script})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	return served{srv, "http://" + srv.Addr + "/metrics"}
}

func caseOf(t *testing.T, id string) badserver.Script {
	t.Helper()
	script, err := badserver.Case(id)
	if err != nil {
		t.Fatal(err)
	}
	return script
}

func lateStart(t *testing.T) {
	srv := serve(t, caseOf(t, "T02"))
	srv.Down()
	s := record(t, []scrape.Target{{URL: srv.url}}, 5, scrape.Options{}, summary.Options{}, func(i int) {
		if i == 3 {
			if err := srv.Up(); err != nil {
				t.Error(err)
			}
		}
	})
	s.outcomes("", metric.ConnectError, metric.ConnectError, metric.ConnectError, metric.OK, metric.OK)
	s.warned("late_start", "3 polls")
	// What the server had counted before it could be polled is not the run's.
	s.total("a", 9-7, 0)
}

// blackHole has a target that never answers beside three that do: it must not
// cost them a poll.
func blackHole(t *testing.T) {
	hole := serve(t, caseOf(t, "T08"))
	targets := []scrape.Target{{URL: hole.url}}
	for range 3 {
		targets = append(targets, scrape.Target{URL: text(t, "a 1\n")})
	}
	s := record(t, targets, 3, brief, summary.Options{}, nil)
	s.outcomes("--timeout", all(metric.Timeout, 3)...)
	for i := 1; i < 4; i++ {
		for _, p := range s.polls[i] {
			if p.Outcome != metric.OK {
				t.Errorf("target %d: %v %s", i, p.Outcome, p.Err)
			}
		}
	}
}

func endlessHead(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s := playCase(t, "T10", 2, brief)
	runtime.ReadMemStats(&after)
	if got := []metric.Outcome{s.polls[0][0].Outcome, s.polls[0][1].Outcome}; got[0] != metric.TooLarge ||
		got[1] != metric.Timeout {
		t.Errorf("got %v, want too_large and timeout", got)
	}
	if !strings.Contains(s.polls[0][0].Err, "65536 bytes; raise --max-headers") {
		t.Errorf("error %q does not name the limit", s.polls[0][0].Err)
	}
	// What the polls cost is a part of what was allocated in all: a recording and
	// its exports need more than half of it.
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
		t.Errorf("%d bytes were allocated", grown)
	}
}

// bomb serves 1 GiB of zeros as 1 MiB of gzip. What a poll may allocate on the
// way is bounded by the limit on the body, whatever is behind it.
func bomb(t *testing.T) {
	const limit = 8 << 20
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := playCase(t, "T12", 2, scrape.Options{Compress: true, Limits: scrape.Limits{Body: limit}})
	runtime.ReadMemStats(&after)
	s.outcomes("--max-body", metric.TooLarge, metric.TooLarge)
	// Doubling buffers allocate twice the limit in all; two polls may both do so.
	if grown := after.HeapSys - min(before.HeapSys, after.HeapSys); grown > 4*limit+(16<<20) {
		t.Errorf("the heap grew by %d bytes at a limit of %d", grown, limit)
	}
}

func gzipForms(t *testing.T) {
	good := badserver.Gzip([]byte("a_total 1\n"))
	corrupt := append([]byte(nil), good...)
	corrupt[len(corrupt)-6] ^= 1 // within the checksum
	zipped := func(b []byte) badserver.Answer {
		return badserver.Answer{Type: "text/plain", Header: []string{"Content-Encoding: gzip"}, Body: b}
	}
	s := playCase(t, "T13", 3, scrape.Options{Compress: true})
	s.outcomes("damaged", metric.Truncated, metric.NotPrometheus, metric.Truncated)
	s = play(t, badserver.Steps(false, zipped(corrupt), zipped(append(badserver.Gzip([]byte("a_total 1\n")),
		badserver.Gzip([]byte("b 2\n"))...)), zipped(good[:9])),
		3, scrape.Options{Compress: true})
	s.outcomes("damaged", metric.Truncated, metric.OK, metric.Truncated)
	if p := s.polls[0][1]; p.Lines != 2 {
		t.Errorf("two members have %d lines, want both", p.Lines)
	}
}

func downgrade(t *testing.T) {
	srv := httptest.NewTLSServer(http.RedirectHandler("http://127.0.0.1:1/metrics", http.StatusFound))
	defer srv.Close()
	transport := srv.Client().Transport.(*http.Transport)
	s := record(t, []scrape.Target{{URL: srv.URL + "/metrics", RoundTripper: transport}}, 2, scrape.Options{},
		summary.Options{}, nil)
	s.outcomes("another origin, http://127.0.0.1:1", metric.RefusedRedirect, metric.RefusedRedirect)
}

// closedConnections closes each connection after its answer, and then restarts
// the server: neither costs a poll.
func closedConnections(t *testing.T) {
	playCase(t, "T20", 4, scrape.Options{}).outcomes("", all(metric.OK, 4)...)
	srv := serve(t, badserver.Steps(false, badserver.Answer{Type: "text/plain", Body: []byte("a_total 1\n")}))
	s := record(t, []scrape.Target{{URL: srv.url}}, 5, scrape.Options{}, summary.Options{}, func(int) {
		srv.Down()
		if err := srv.Up(); err != nil {
			t.Error(err)
		}
	})
	s.outcomes("", all(metric.OK, 5)...)
}

// brokenHTTP ends with an answer that has bytes behind it: they end its connection.
// A poll that is sent before the client has noticed takes them for its answer, and
// says so.
func brokenHTTP(t *testing.T) {
	s := playCase(t, "T19", 5, scrape.Options{})
	last, text := metric.OK, ""
	if p := s.polls[0][len(s.polls[0])-1]; p.Outcome == metric.ConnectError {
		last, text = metric.ConnectError, "malformed HTTP"
	}
	s.outcomes(text, metric.ConnectError, metric.ConnectError, metric.TooLarge, metric.OK, last)
}

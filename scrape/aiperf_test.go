package scrape_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// TestAIPerfCases holds the parsing cases of the design document aiperf.md,
// section 8, by number. Where AIPerf loses data we keep it, and say so here.
func TestAIPerfCases(t *testing.T) {
	t.Run("52 counter with two samples", func(t *testing.T) {
		check(t, classic, "# TYPE requests_total counter\nrequests_total{a=\"1\"} 1\nrequests_total{a=\"2\"} 2\n", metric.OK,
			"counter requests{a=\"1\"} = 1\ncounter requests{a=\"2\"} = 2")
	})
	t.Run("53 summary only, blank body", func(t *testing.T) {
		// AIPerf drops summaries; they are recorded here and exports leave them out.
		check(t, classic, "# TYPE s summary\ns{quantile=\"0.5\"} 1\ns_sum 3\ns_count 2\n", metric.OK,
			"summary s quantile[0.5] = 1\nsummary s sum = 3\nsummary s count = 2")
		check(t, classic, "\n\n", metric.OK, "")
	})
	t.Run("54 created never replaces the total", func(t *testing.T) {
		check(t, openMetrics, "# TYPE foo counter\nfoo_total 5\nfoo_created 123\n# EOF\n", metric.OK,
			"counter foo = 5\ncounter foo created = 123")
		check(t, classic, "# TYPE foo_created gauge\nfoo_created 123\n# TYPE foo_total counter\nfoo_total 5\n", metric.OK,
			"counter foo = 5\ncounter foo created = 123")
	})
	t.Run("55 OpenMetrics without EOF", func(t *testing.T) {
		// AIPerf parses it again as classic text and loses the type; it is kept
		// here, and the outcome shows that the body may have been cut.
		check(t, openMetrics, "# TYPE foo counter\nfoo_total 5\n", metric.Partial, "counter foo = 5")
	})
	t.Run("56 incompatible", func(t *testing.T) {
		check(t, classic, "[]", metric.NotPrometheus, "")
		check(t, "application/json", "[{\"iter\": 1}]", metric.NotPrometheus, "")
		// AIPerf refuses the whole body for a bad TYPE word; it costs the type here.
		check(t, classic, "# TYPE q bananas\nq 1\n", metric.OK, "unknown q = 1")
	})
	t.Run("57 histogram without sum and count", func(t *testing.T) {
		check(t, classic, "# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\n", metric.OK,
			"histogram h bucket[1] = 1\nhistogram h bucket[+Inf] = 2")
	})
	t.Run("58 NaN beside a good sample", func(t *testing.T) {
		// Recorded as it is; the statistics leave it out and count it.
		check(t, classic, "# TYPE g gauge\ng{a=\"1\"} NaN\ng{a=\"2\"} 3\n", metric.OK,
			"gauge g{a=\"1\"} = NaN\ngauge g{a=\"2\"} = 3")
	})
	t.Run("59 same label set", func(t *testing.T) {
		s := check(t, classic, "# TYPE g gauge\ng{a=\"1\"} 10\ng{a=\"1\"} 20\ng{a=\"1\"} 30\n", metric.Partial,
			`gauge g{a="1"} = 30`)
		if s.Dropped() != 2 {
			t.Errorf("dropped %d lines, want the 2 that were overwritten", s.Dropped())
		}
	})
	t.Run("60 fallback path", func(t *testing.T) {
		for _, alternate := range []http.HandlerFunc{say(classic, 404, ""), say("application/json", 200, "[]")} {
			mux := http.NewServeMux()
			mux.HandleFunc("/metrics", say("application/json", 200, "[]"))
			mux.HandleFunc("/prometheus/metrics", alternate)
			server := httptest.NewServer(mux)
			// The own URL is kept and polled on, never given up (aiperf.md section 7, 3).
			sink := pollOnce(t, scrape.Target{URL: server.URL + "/metrics"}, scrape.Options{})
			checkOutcome(t, sink, metric.NotPrometheus, "JSON")
			server.Close()
		}
	})
}

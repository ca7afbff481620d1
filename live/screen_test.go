package live_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/headline"
	"github.com/scrapestat/scrapestat/internal/testkit"
	"github.com/scrapestat/scrapestat/live"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/units"
)

// TestFirstScreen: at 80 x 24 the view shows load and latencies of a real server without scrolling, the numbers that
// the summary of the same window has, and of levels those of the engine's own endpoints alone.
func TestFirstScreen(t *testing.T) {
	for name, engine := range map[string]string{"vllm-bench-rate4": "vllm", "dynamo-late": "vllm"} {
		rec, err := rundb.Open(filepath.Join(testkit.Path(t, "runs"), name))
		if err != nil {
			t.Fatal(err)
		}
		defer rec.Close()
		run, err := summary.Build(context.Background(), []summary.Recording{rec}, summary.Options{Estimator: "refined"})
		if err != nil {
			t.Fatal(err)
		}
		o := live.Options{Board: live.NewBoard(rec.Targets()), In: strings.NewReader(""), Out: &bytes.Buffer{},
			Quit: func() {}, Status: func() live.Status { return live.Status{Run: name, Phase: "profiling"} },
			Result: func() (*summary.Run, error) { return run, nil }}
		got := ""
		for _, keys := range [][]string{nil, {"e"}, {"e", "e"}} {
			if got = live.RenderText(o, 80, 24, keys...); strings.Contains(got, "\nvLLM") {
				break
			}
		}
		row := func(word string) string { return regexp.MustCompile(`(?m)^` + word + ` .*`).FindString(got) }
		for i := range run.Latencies {
			l := &run.Latencies[i]
			w, _, _ := headline.Parse(l.ID)
			if l.Engine != engine || l.Histogram == nil || l.Histogram.Count == 0 || l.ID != "ttft_s" && l.ID != "e2e_s" &&
				l.ID != "itl_s" {
				continue
			}
			for _, want := range []string{fmt.Sprint(l.Histogram.Count),
				units.Format(l.Histogram.Quantiles[len(l.Histogram.Quantiles)-1].Value, "seconds")} {
				if !strings.Contains(row(w.Name), " "+want) {
					t.Errorf("%s: %s has no %s:\n%s", name, w.Name, want, got)
				}
			}
		}
		if want := units.Format(lastRunning(run), "requests"); !strings.Contains(row("running"), " "+want) {
			t.Errorf("%s: running is not %s:\n%s", name, want, got)
		}
		for _, d := range run.Combined[0].Derived {
			if d.Pack == engine && d.Name == "output_tok_s" && d.Status.Defined() &&
				!strings.Contains(row("output_tok_s"), " "+units.Format(d.Shown, d.Unit)) {
				t.Errorf("%s: output_tok_s is not %v:\n%s", name, d.Shown, got)
			}
		}
	}
}

// lastRunning adds up the last values of vLLM's running requests.
func lastRunning(run *summary.Run) (sum float64) {
	for i := range run.Metrics {
		if m := &run.Metrics[i]; m.Name == "vllm:num_requests_running" && m.Type == metric.Gauge {
			for j := range m.Series {
				sum += m.Series[j].Gauge.Last
			}
		}
	}
	return sum
}

package summary_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/internal/testkit"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/window"
)

// gaugeCases are the cases of continuity.json about gauges of several series.
func gaugeCases(t *testing.T) (out []gaugeCase) {
	t.Helper()
	var all struct{ Cases []gaugeCase }
	if err := json.Unmarshal(testkit.Data(t, "vectors/continuity.json"), &all); err != nil {
		t.Fatal(err)
	}
	for _, c := range all.Cases {
		if strings.HasPrefix(c.ID, "gauge-") {
			out = append(out, c)
		}
	}
	return out
}

type gaugeCase struct {
	ID     string
	T      []float64
	Series map[string]struct {
		Type   string
		Values []*float64
	}
	Expect map[string]struct{ Value, Low, High *float64 }
}

// An engine that was there for a part of the time counts for that part, in aggregates and in what is derived for the
// endpoint alone: its gauge is renamed to one that the catalog adds up.
func TestGaugeVectors(t *testing.T) {
	cases := gaugeCases(t)
	if len(cases) != 3 {
		t.Fatalf("%d cases, want 3", len(cases))
	}
	for _, c := range cases {
		f := newFake("http://a")
		for i, at := range c.T {
			var body strings.Builder
			for name, row := range c.Series {
				if row.Values[i] == nil {
					continue
				}
				family, labels, _ := strings.Cut(name, "{")
				if labels != "" {
					labels = "{" + labels
				}
				if family == "running" || family == "busy" {
					family = "vllm:num_requests_running"
				}
				fmt.Fprintf(&body, "# TYPE %s %s\n%s%s %v\n", family, row.Type, family, labels, *row.Values[i])
			}
			f.Scrape(0, at-c.T[0], typedOnce(body.String()))
		}
		r := build(t, summary.Options{By: []string{}, Window: window.Ref{What: window.Recording}}, f)
		got := map[string]float64{}
		for _, a := range r.Aggregates {
			if a.Gauge != nil && r.Metrics[a.Metric].Name == "vllm:num_requests_running" {
				got["aggregate"] = a.Gauge.TimeAvg
			}
		}
		for _, d := range r.Derived {
			if d.Name == "running_mean" {
				got["derived"] = d.Value
			}
		}
		for key, want := range c.Expect {
			for _, of := range []string{"aggregate", "derived"} {
				v, ok := got[of]
				switch {
				case !strings.HasPrefix(key, "sum("):
				case !ok, want.Value != nil && math.Abs(v-*want.Value) > 1e-9, want.Low != nil && (v < *want.Low || v > *want.High):
					t.Errorf("%s: %s of %s is %v, %v; want %+v", c.ID, of, key, v, ok, want)
				}
			}
		}
	}
}

// typedOnce leaves the first TYPE line of each family and brings its lines together.
func typedOnce(body string) string {
	types, lines, order := map[string]string{}, map[string][]string{}, []string{}
	family := ""
	for line := range strings.Lines(body) {
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			if family, _, _ = strings.Cut(rest, " "); types[family] == "" {
				types[family] = line
				order = append(order, family)
			}
			continue
		}
		lines[family] = append(lines[family], line)
	}
	out := ""
	for _, f := range order {
		out += types[f] + strings.Join(lines[f], "")
	}
	return out
}

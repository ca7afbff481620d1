package normalize_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/internal/testkit"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

// readVectors reads a file of numeric cases.
func readVectors(t *testing.T, name string, into any) {
	t.Helper()
	if err := json.Unmarshal(testkit.Data(t, "vectors/"+name), into); err != nil {
		t.Fatal(err)
	}
}

// vector is a case of aiperf_cases.json.
type vector struct {
	In struct {
		Samples    []json.RawMessage
		Start, End *int64
		Slice      *float64
	}
	Out struct {
		Stats      map[string]float64
		Buckets    map[string]int64
		Timeslices []map[string]any
	}
}

func (v *vector) options() filter {
	var f filter
	if v.In.Start != nil {
		f.from = float64(*v.In.Start) / 1e9
	}
	if v.In.End != nil {
		f.to = float64(*v.In.End) / 1e9
	}
	if v.In.Slice != nil {
		f.slice = *v.In.Slice
	}
	return f
}

func (v *vector) polls(t *testing.T, name string) []poll {
	var out []poll
	for _, raw := range v.In.Samples {
		var cells []json.RawMessage
		var at int64
		var n [2]float64
		var buckets map[string]float64
		into := []any{&at, &n[0], &n[1], &buckets}
		if err := json.Unmarshal(raw, &cells); err != nil {
			t.Fatal(err)
		}
		for i, c := range cells {
			if err := json.Unmarshal(c, into[i]); err != nil {
				t.Fatal(err)
			}
		}
		lines := hist{n[0], n[1], buckets}.lines()
		switch {
		case strings.HasPrefix(name, "counter_"):
			lines = counterLine(n[0])
		case strings.HasPrefix(name, "gauge_"):
			lines = gaugeLine(n[0])
		}
		out = append(out, poll{at, lines})
	}
	return out
}

func TestAIPerfVectors(t *testing.T) {
	var cases map[string]*vector
	readVectors(t, "aiperf_cases.json", &cases)
	for name, v := range cases {
		if strings.HasPrefix(name, "est_") {
			continue
		}
		s := only(t, clamped(t, v.options(), v.polls(t, name)))
		stats, slices := exported(s)
		for key, want := range v.Out.Stats {
			if got, ok := stats[key]; !ok || !near(got, want) {
				t.Errorf("%s: %s is %v, want %v", name, key, got, want)
			}
		}
		if len(stats) != len(v.Out.Stats) || len(slices) != len(v.Out.Timeslices) {
			t.Errorf("%s: got %v and %v, want %v", name, stats, slices, v.Out)
			continue
		}
		for i, want := range v.Out.Timeslices {
			for key, value := range want {
				if number, ok := value.(float64); ok && !near(slices[i][key], number) || key == "is_complete" &&
					slices[i][key] != 1 {
					t.Errorf("%s: slice %d: %s is %v, want %v", name, i, key, slices[i][key], value)
				}
			}
		}
	}
}

// exported returns the statistics of a series under AIPerf's names. The value 1
// of is_complete stands for its presence.
func exported(s *normalize.Series) (stats map[string]float64, slices []map[string]float64) {
	stats = map[string]float64{}
	slice := func(s normalize.Slice) map[string]float64 {
		m := map[string]float64{"start_ns": float64(s.StartNS), "end_ns": float64(s.EndNS)}
		if s.Partial {
			m["is_complete"] = 1
		}
		slices = append(slices, m)
		return m
	}
	if c := s.Counter; c != nil {
		stats["total"], stats["rate"] = c.Total, c.Rate
		if r := c.SliceRates; r != nil {
			stats["rate_avg"], stats["rate_min"], stats["rate_max"], stats["rate_std"] = r.Avg, r.Min, r.Max, r.Std
		}
		for _, sl := range c.Slices {
			m := slice(sl.Slice)
			m["total"], m["rate"] = sl.Total, sl.Rate
		}
	}
	if g := s.Gauge; g != nil {
		stats["avg"], stats["min"], stats["max"], stats["std"] = g.Avg, g.Min, g.Max, g.Std
		for i, p := range []string{"p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99"} {
			stats[p] = g.Quantiles[i]
		}
		for _, sl := range g.Slices {
			m := slice(sl.Slice)
			m["avg"], m["min"], m["max"] = sl.Avg, sl.Min, sl.Max
		}
	}
	if h := s.Histogram; h != nil {
		stats["count"], stats["sum"], stats["avg"] = float64(h.Count), h.Sum, h.Avg
		if h.HasRates {
			stats["count_rate"], stats["sum_rate"] = h.CountRate, h.SumRate
		}
	}
	return stats, slices
}

// polynomialCase is a case of polynomial.json: whole scrapes, so that learning is
// the fold's.
type polynomialCase struct {
	Name     string
	Les      []string
	StartIdx int `json:"start_idx"`
	FinalIdx int `json:"final_idx"`
	Scrapes  struct {
		Sums, Counts []float64
		Buckets      [][]float64
	}
	Totals struct {
		Count        float64
		BucketDeltas map[string]int64 `json:"bucket_deltas"`
	}
	AIPerf map[string]float64
}

func TestPolynomialVectors(t *testing.T) {
	var file struct{ Cases []json.RawMessage }
	readVectors(t, "polynomial.json", &file)
	compared := 0
	for _, raw := range file.Cases {
		var c polynomialCase
		if err := json.Unmarshal(raw, &c); err != nil {
			continue // numbers that are not finite: no samples for a fold
		}
		compared++
		h := asAIPerf(only(t, fold(t, normalize.Options{StartNS: int64(c.StartIdx)*second + 1,
			EndNS: int64(c.FinalIdx)*second + 1, Resets: normalize.ResetClamp}, 0, false, c.polls()))).Histogram
		for _, b := range h.Buckets {
			if want := c.Totals.BucketDeltas[b.Text]; b.Count != want {
				t.Errorf("%s: bucket %s is %d, want %d", c.Name, b.Text, b.Count, want)
			}
		}
		if float64(h.Count) != c.Totals.Count || (h.Buckets == nil) != (c.Totals.BucketDeltas == nil) {
			t.Errorf("%s: got count %d and buckets %v, want %v", c.Name, h.Count, h.Buckets, c.Totals)
		}
		var got, want []float64
		for _, q := range h.Quantiles {
			got = append(got, q.Value)
		}
		for _, p := range []string{"p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99"} {
			if v, ok := c.AIPerf[p]; ok {
				want = append(want, v)
			}
		}
		if !nearAll(got, want) {
			t.Errorf("%s: got %v, want %v", c.Name, got, want)
		}
	}
	if compared < 50 {
		t.Errorf("compared only %d cases", compared)
	}
}

func (c *polynomialCase) polls() []poll {
	var out []poll
	for i, sum := range c.Scrapes.Sums {
		var lines []changeLog
		for k, le := range c.Les {
			lines = append(lines, changeLog{family: "h", typ: metric.Histogram, role: metric.RoleBucket, text: le,
				value: c.Scrapes.Buckets[i][k]})
		}
		lines = append(lines, changeLog{family: "h", typ: metric.Histogram, role: metric.RoleSum, value: sum},
			changeLog{family: "h", typ: metric.Histogram, role: metric.RoleCount, value: c.Scrapes.Counts[i]})
		out = append(out, poll{int64(i) * second, lines})
	}
	return slices.Clip(out)
}

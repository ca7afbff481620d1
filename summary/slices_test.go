package summary_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// reading is what a target showed in a poll: counters only grow.
type reading struct {
	at             float64
	down           bool
	tokens, count  float64
	same, other    []float64 // cumulative: of bounds that all targets have, and of its own
	sum            float64
	running, usage float64
	hasGauge       bool
}

const (
	sliceStart, sliceEnd, sliceWidth = 4.0, 24.0, 3.0
	runningFamily, usageFamily       = "vllm:num_requests_running", "vllm:kv_cache_usage_perc"
	busyFamily                       = "DCGM_FI_DEV_GPU_UTIL"
)

var (
	sameBounds = []float64{0.5, 1, 2, math.Inf(1)}
	ownBounds  = [][]float64{{0.5, 1, math.Inf(1)}, {0.5, 2, 4, math.Inf(1)}, {1, 3, math.Inf(1)}}
)

// drawReadings draws the polls of a target, with one before the window, one at its start and one at its end.
func drawReadings(rt *rapid.T, target int) (out []reading) {
	r := reading{same: make([]float64, len(sameBounds)), other: make([]float64, len(ownBounds[target]))}
	observe := func(cum, bounds []float64, v float64) {
		for i, b := range bounds {
			if v <= b {
				cum[i]++
			}
		}
	}
	for i := 0; ; i++ {
		at := float64(i)*0.8 + float64(rapid.IntRange(0, 3).Draw(rt, "late"))*0.1
		if i == 5 {
			at = sliceStart
		}
		if at >= sliceEnd {
			at = sliceEnd
		}
		r.at, r.tokens = at, r.tokens+float64(rapid.IntRange(0, 50).Draw(rt, "tokens"))
		r.same, r.other = slices.Clone(r.same), slices.Clone(r.other)
		for range rapid.IntRange(0, 4).Draw(rt, "observed") {
			v := float64(rapid.IntRange(1, 20).Draw(rt, "v")) / 4
			observe(r.same, sameBounds, v)
			observe(r.other, ownBounds[target], v)
			r.count, r.sum = r.count+1, r.sum+v
		}
		r.running, r.usage = float64(rapid.IntRange(0, 9).Draw(rt, "running")), float64(rapid.IntRange(0, 8).Draw(rt, "kv"))/8
		r.hasGauge = rapid.IntRange(0, 5).Draw(rt, "gauge") > 0
		r.down = i > 5 && at < sliceEnd && rapid.IntRange(0, 7).Draw(rt, "down") == 0
		if out = append(out, r); at == sliceEnd {
			return out
		}
	}
}

func (r *reading) body(target int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# TYPE vllm:generation_tokens counter\nvllm:generation_tokens{model_name=\"m\"} %g\n", r.tokens)
	histogram := func(name string, bounds, cum []float64) {
		fmt.Fprintf(&b, "# TYPE %s histogram\n", name)
		for i, bound := range bounds {
			le := fmt.Sprint(bound)
			if math.IsInf(bound, 1) {
				le = "+Inf"
			}
			fmt.Fprintf(&b, "%s_bucket{le=%q} %g\n", name, le, cum[i])
		}
		fmt.Fprintf(&b, "%s_sum %g\n%s_count %g\n", name, r.sum, name, r.count)
	}
	histogram("same_seconds", sameBounds, r.same)
	histogram("own_seconds", ownBounds[target], r.other)
	if r.hasGauge {
		fmt.Fprintf(&b, "# TYPE %s gauge\n%s{engine=\"0\"} %g\n# TYPE %s gauge\n%s{engine=\"0\"} %g\n"+
			"# TYPE %s gauge\n%s{gpu=\"0\"} %g\n", runningFamily, runningFamily, r.running, usageFamily, usageFamily, r.usage,
			busyFamily, busyFamily, 100*r.usage)
	}
	return b.String()
}

// upTo is the last answered reading at or before an instant, of those that count for the window.
func upTo(list []reading, at float64) (last *reading) {
	for i := range list {
		if !list[i].down && list[i].at <= at {
			last = &list[i]
		}
	}
	return last
}

// before is the one that gains are counted from.
func before(list []reading) (last *reading) {
	for i := range list {
		if !list[i].down && list[i].at < sliceStart {
			last = &list[i]
		}
	}
	return last
}

// expected is a slice of all targets together, from the readings alone.
type expected struct {
	tokens, count, sum float64
	same               []float64
	running            float64 // the sum
	usage, busy        float64 // the largest, and the mean
	gauges             bool
	polled, unseen     bool
}

// gaugeSamples is how many samples of gauges the window has.
func gaugeSamples(list []reading) (n int) {
	for _, r := range list {
		if r.at >= sliceStart && r.hasGauge && !r.down {
			n++
		}
	}
	return n
}

func oracle(all [][]reading, k int) (e expected) {
	from, to := sliceStart+float64(k)*sliceWidth, min(sliceStart+float64(k+1)*sliceWidth, sliceEnd)
	e.same = make([]float64, len(sameBounds))
	share, weight := 0.0, 0.0
	for _, list := range all {
		a, b := before(list), upTo(list, to)
		if k > 0 {
			a = upTo(list, from)
		}
		e.tokens, e.count, e.sum = e.tokens+b.tokens-a.tokens, e.count+b.count-a.count, e.sum+b.sum-a.sum
		for i := range e.same {
			e.same[i] += b.same[i] - a.same[i]
		}
		polls, n, running, usage := 0.0, 0.0, 0.0, 0.0
		for _, r := range list {
			if in := r.at >= from && (r.at < to || to == sliceEnd && r.at == to); in && !r.down {
				if polls++; r.hasGauge {
					n, running, usage = n+1, running+r.running, usage+r.usage
				}
			}
		}
		if e.polled = e.polled || polls > 0; polls == 0 {
			e.unseen = true
		}
		if n > 0 && gaugeSamples(list) > 1 { // a single sample has no slices
			e.gauges = true
			share = n / polls
			e.running += share * running / n
			e.usage = max(e.usage, usage/n)
			e.busy, weight = e.busy+share*100*usage/n, weight+share
		}
	}
	if weight > 0 {
		e.busy /= weight
	}
	return e
}

// quantileOf is Prometheus' estimate.
func quantileOf(bounds, cum []float64, q float64) float64 {
	rank := q * cum[len(cum)-1]
	for i, n := range cum {
		if n < rank || n == 0 {
			continue
		}
		if math.IsInf(bounds[i], 1) {
			return bounds[i-1]
		}
		low, below := 0.0, 0.0
		if i > 0 {
			low, below = bounds[i-1], cum[i-1]
		}
		return low + (bounds[i]-low)*(rank-below)/(n-below)
	}
	return math.NaN()
}

// Slices of targets taken together are what an oracle makes of the readings, and add up to the window: counters,
// histograms of equal and of unequal bounds, gauges by each rule, and what is derived.
func TestTogetherSlices(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 3).Draw(rt, "targets")
		var all [][]reading
		var urls []string
		for i := range n {
			urls = append(urls, fmt.Sprintf("http://t%d", i))
			all = append(all, drawReadings(rt, i))
		}
		f := newFake(urls...)
		for i, list := range all {
			for _, r := range list {
				if r.down {
					f.Fail(i, r.at, metric.ConnectError, "down")
				} else {
					f.Scrape(i, r.at, r.body(i))
				}
			}
		}
		f.Mark(sliceStart, metric.PhaseProfiling).Mark(sliceEnd, metric.MarkEnd)
		run, err := summary.Build(rt.Context(), []summary.Recording{f}, summary.Options{Slice: time.Second * sliceWidth,
			Estimator: histest.Linear, Quantiles: []float64{0.5, 0.9}})
		if err != nil {
			rt.Fatal(err)
		}
		for i := range run.Metrics {
			m := &run.Metrics[i]
			pool := run.Pools(m, nil)[0]
			got := run.Together(m, &pool)
			run.Cut(&got, &pool, true)
			holdSlices(rt, m, &got, all)
		}
		holdDerived(rt, run, all)
	})
}

// near compares numbers that were added up in another order.
func near(rt *rapid.T, what string, got, want float64) {
	rt.Helper()
	if math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
		rt.Fatalf("%s: %v, the oracle has %v", what, got, want)
	}
}

func holdSlices(rt *rapid.T, m *summary.Metric, got *summary.Pooled, all [][]reading) {
	rt.Helper()
	at, total := 0, expected{}
	for k := range int(math.Ceil((sliceEnd - sliceStart) / sliceWidth)) {
		want := oracle(all, k)
		isGauge := m.Type == metric.Gauge
		if !want.polled || isGauge && !want.gauges {
			continue
		}
		if at >= len(got.Slices) {
			rt.Fatalf("%s: %d slices, want another for slice %d", m.Name, len(got.Slices), k)
		}
		s := &got.Slices[at]
		at++
		what := fmt.Sprintf("%s, slice %d", m.Name, k)
		near(rt, what+" start", float64(s.StartNS-origin)/1e9, sliceStart+float64(k)*sliceWidth)
		if s.Unseen != want.unseen {
			rt.Fatalf("%s: unseen %v, want %v", what, s.Unseen, want.unseen)
		}
		switch m.Name {
		case "vllm:generation_tokens":
			near(rt, what, s.Total, want.tokens)
		case runningFamily:
			near(rt, what, s.Avg, want.running)
		case usageFamily:
			near(rt, what, s.Avg, want.usage)
		case busyFamily:
			near(rt, what, s.Avg, want.busy)
		default:
			near(rt, what+" count", float64(s.Count), want.count)
			near(rt, what+" sum", s.Sum, want.sum)
			holdQuantiles(rt, what, m.Name == "own_seconds", s, &want)
		}
		total.tokens, total.count, total.sum = total.tokens+s.Total, total.count+float64(s.Count), total.sum+s.Sum
	}
	if at != len(got.Slices) {
		rt.Fatalf("%s: %d slices, want %d", m.Name, len(got.Slices), at)
	}
	if got.Counter != nil {
		near(rt, m.Name+", all slices", total.tokens, got.Counter.Total)
	}
	if h := got.Histogram; h != nil {
		near(rt, m.Name+", all slices", total.count, float64(h.Count))
		near(rt, m.Name+", all sums", total.sum, h.Sum)
	}
}

func holdQuantiles(rt *rapid.T, what string, differ bool, s *summary.PoolSlice, want *expected) {
	rt.Helper()
	if differ || want.count == 0 {
		if s.Quantiles != nil {
			rt.Fatalf("%s: percentiles %v, want none", what, s.Quantiles)
		}
		return
	}
	for i, q := range []float64{0.5, 0.9} {
		near(rt, fmt.Sprintf("%s p%g", what, 100*q), s.Quantiles[i].Value, quantileOf(sameBounds, want.same, q))
	}
}

// holdDerived compares a rate of all targets together, which is one of the sum.
func holdDerived(rt *rapid.T, run *summary.Run, all [][]reading) {
	rt.Helper()
	d := summary.DerivedList{}
	for i := range run.Combined[0].Derived {
		d = append(d, &run.Combined[0].Derived[i])
	}
	rate := d.Get("output_tok_s", "model_name", "m")
	if rate == nil {
		rt.Fatalf("no rate of tokens of all targets among %d", len(d))
	}
	total := 0.0
	for k, s := range rate.Slices {
		want, seconds := oracle(all, k), float64(s.EndNS-s.StartNS)/1e9
		near(rt, fmt.Sprintf("tokens by the second, slice %d", k), s.Value, want.tokens/seconds)
		total += s.Value * seconds
	}
	near(rt, "tokens by the second, all slices", total, rate.Value*run.Endpoints[0].Seconds)
}

// Histograms of different buckets have counts and sums together, percentiles each alone; a gauge of which the catalog
// knows no rule is not added up.
func TestTogetherDiffers(t *testing.T) {
	f := newFake("http://a", "http://b")
	for i := range 11 {
		r := reading{same: []float64{0, float64(i), float64(i), float64(i)}, sum: float64(i), count: float64(i)}
		for target := range 2 {
			r.other = make([]float64, len(ownBounds[target]))
			for k := range r.other {
				r.other[k] = float64(i)
			}
			f.Scrape(target, float64(i), r.body(target))
		}
	}
	f.Mark(0, metric.PhaseProfiling)
	run := build(t, summary.Options{Slice: 5 * time.Second}, f)
	for i := range run.Metrics {
		m := &run.Metrics[i]
		if m.Name != "own_seconds" {
			continue
		}
		both, one := run.Pools(m, nil), run.Pools(m, []string{summary.ByTarget})
		together, alone := run.Together(m, &both[0]), run.Together(m, &one[0])
		run.Cut(&together, &both[0], true)
		run.Cut(&alone, &one[0], true)
		if !together.BoundsDiffer || together.Slices[0].Quantiles != nil || together.Slices[0].Count == 0 {
			t.Errorf("together: %+v", together.Slices[0])
		}
		if alone.BoundsDiffer || alone.Slices[0].Quantiles == nil || alone.One == nil {
			t.Errorf("alone: %+v", alone.Slices[0])
		}
		if together.Slices[0].Count != 2*alone.Slices[0].Count {
			t.Errorf("%d observations together, %d of one", together.Slices[0].Count, alone.Slices[0].Count)
		}
	}
	if !run.HasLabel("model_name") || run.HasLabel("nothing") {
		t.Error("labels of series are not found")
	}
}

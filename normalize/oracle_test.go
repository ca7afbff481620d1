package normalize_test

import (
	"math"
	"slices"
	"sort"
	"time"

	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/normalize"
)

// The oracle keeps every sample and computes each statistic as the definition
// says, without any state between polls.

// point is a sample of a counter or gauge.
type point struct {
	n  int // number of the stored poll
	at int64
	v  float64
}

// oracle is a window over all samples of one series.
type oracle struct {
	o     normalize.Options
	times []int64 // of all stored polls
	end   int64   // of the slice grid
}

func (o *oracle) inside(at int64) bool {
	return at >= o.o.StartNS && (o.o.EndNS == 0 || at <= o.o.EndNS)
}

// split returns the reference and the samples of the window.
func split[T any](o *oracle, all []T, at func(T) int64) (ref []T, in []T) {
	for _, p := range all {
		switch {
		case at(p) < o.o.StartNS:
			ref = []T{p}
		case o.inside(at(p)):
			in = append(in, p)
		}
	}
	return ref, in
}

// cuts returns the slices of the window.
func (o *oracle) cuts() []normalize.Slice {
	if o.o.Slice == 0 {
		return nil
	}
	width := int64(float64(o.o.Slice) / float64(time.Second) * 1e9)
	var out []normalize.Slice
	for from := o.o.StartNS; from < o.end; from += width {
		out = append(out, normalize.Slice{StartNS: from, EndNS: min(from+width, o.end), Partial: from+width > o.end})
	}
	return out
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v / float64(len(x))
	}
	return sum
}

func deviation(x []float64) float64 {
	if len(x) < 2 {
		return 0
	}
	m, sum := mean(x), 0.0
	for _, v := range x {
		sum += (v - m) * (v - m)
	}
	return math.Sqrt(sum / float64(len(x)-1))
}

func spreadOf(x []float64) normalize.Spread {
	return normalize.Spread{Avg: mean(x), Min: slices.Min(x), Max: slices.Max(x), Std: deviation(x)}
}

// last returns the value of the last sample up to a boundary, or the first.
func last(at []int64, values []float64, boundary int64) float64 {
	v := values[0]
	for i := range at {
		if at[i] <= boundary {
			v = values[i]
		}
	}
	return v
}

// gained is what a slice has of a series: the first one all since the reference, but in AIPerf's arithmetic.
func (o *oracle) gained(s normalize.Slice, at []int64, values []float64) float64 {
	if s.StartNS == o.o.StartNS && o.o.Resets == normalize.ResetAdjust {
		return last(at, values, s.EndNS) - values[0]
	}
	return last(at, values, s.EndNS) - last(at, values, s.StartNS)
}

// counter returns nil without samples in the window.
func (o *oracle) counter(all []point) *normalize.Counter {
	ref, in := split(o, all, func(p point) int64 { return p.at })
	if len(in) == 0 {
		return nil
	}
	seq := append(ref, in...)
	var values []float64
	var at []int64
	for _, p := range seq {
		values, at = append(values, p.v), append(at, p.at)
	}
	clamp := o.o.Resets == normalize.ResetClamp
	n := len(values) - 1
	c := &normalize.Counter{Total: values[n] - values[0], Defined: n > 0 || clamp, Sliced: o.o.Slice > 0}
	if clamp {
		c.Total = max(c.Total, 0)
	}
	if d := at[n] - at[0]; d > 0 {
		c.Rate = c.Total / (float64(d) / 1e9)
	}
	if n == 0 {
		return c
	}
	var rates []float64
	for _, s := range o.cuts() {
		total := o.gained(s, at, values)
		if clamp {
			total = max(total, 0)
		}
		rate := total / (float64(s.EndNS-s.StartNS) / 1e9)
		c.Slices = append(c.Slices, normalize.CounterSlice{Slice: s, Total: total, Rate: rate})
		if !s.Partial {
			rates = append(rates, rate)
		}
	}
	if len(rates) > 0 {
		s := spreadOf(rates)
		c.SliceRates = &s
	}
	return c
}

// numpy is numpy's default quantile of sorted values.
func numpy(x []float64, q float64) float64 {
	v := float64(len(x)-1) * q
	k := int(v)
	g := v - float64(k)
	a, b := x[k], x[min(k+1, len(x)-1)]
	if g < 0.5 {
		return a + (b-a)*g
	}
	return b - (b-a)*(1-g)
}

func (o *oracle) gauge(all []point) *normalize.Gauge {
	ref, in := split(o, all, func(p point) int64 { return p.at })
	if len(in) == 0 {
		return nil
	}
	var x []float64
	var area, stood float64
	stand := func(v float64, from, to int64) { // within the window
		if d := float64(min(to, o.end)-max(from, o.o.StartNS)) / 1e9; d > 0 {
			area += d * v
			stood += d
		}
	}
	if len(ref) > 0 && ref[0].n+1 == in[0].n {
		stand(ref[0].v, ref[0].at, in[0].at)
	}
	final := 0 // the last poll of the window
	for n, at := range o.times {
		if o.inside(at) {
			final = n
		}
	}
	for i, p := range in {
		x = append(x, p.v)
		switch {
		case i+1 < len(in) && in[i+1].n == p.n+1:
			stand(p.v, p.at, in[i+1].at)
		case p.n == final:
			stand(p.v, p.at, o.end)
		}
	}
	g := &normalize.Gauge{Spread: spreadOf(x), N: len(x), First: x[0], Last: x[len(x)-1]}
	g.TimeAvg = g.Avg
	if stood > 0 {
		g.TimeAvg = area / stood
	}
	sort.Float64s(x)
	for _, q := range o.o.Quantiles {
		g.Quantiles = append(g.Quantiles, numpy(x, q))
	}
	if len(in) < 2 {
		return g
	}
	grid := o.cuts()
	for k, s := range grid {
		closed := k == len(grid)-1 && s.EndNS == in[len(in)-1].at
		var part []float64
		for _, p := range in {
			if p.at >= s.StartNS && (p.at < s.EndNS || closed && p.at == s.EndNS) {
				part = append(part, p.v)
			}
		}
		if len(part) > 0 {
			sp := spreadOf(part)
			g.Slices = append(g.Slices, normalize.GaugeSlice{Slice: s, Avg: sp.Avg, Min: sp.Min, Max: sp.Max, N: len(part)})
		}
	}
	return g
}

// scrape is a sample of a histogram: by le text, and "sum" and "count".
type scrape struct {
	at     int64
	v      map[string]float64
	layout string
}

func keysOf(m map[string]float64) []string {
	var out []string
	for k := range m {
		if k != "sum" && k != "count" {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		if boundOf(a) < boundOf(b) {
			return -1
		}
		return 1
	})
	return out
}

// frozen gives every sample the keys of the first one, as AIPerf does.
func frozen(all []scrape) []scrape {
	var out []scrape
	for _, s := range all {
		v := map[string]float64{"sum": s.v["sum"], "count": s.v["count"]}
		for _, k := range keysOf(all[0].v) {
			v[k] = s.v[k]
		}
		out = append(out, scrape{s.at, v, s.layout})
	}
	return out
}

// interval returns what was gained between two samples.
func interval(a, b scrape) map[string]float64 {
	gain := map[string]float64{}
	for k, v := range b.v {
		if old, ok := a.v[k]; ok {
			gain[k] = v - old
		}
	}
	return gain
}

// delta is the input of an estimator for some bounds.
func delta(keys []string, gain map[string]float64, counter string) *histest.Delta {
	d := &histest.Delta{Count: gain[counter], Sum: gain["sum"]}
	for _, k := range keys {
		if k == "+Inf" {
			d.Inf, d.HasInf = gain[k], true
			continue
		}
		d.Bounds = append(d.Bounds, boundOf(k))
		d.Cum = append(d.Cum, gain[k])
	}
	return d
}

// common returns the keys that all samples have.
func common(seq []scrape) map[string]bool {
	out := map[string]bool{}
	for k := range seq[0].v {
		out[k] = !slices.ContainsFunc(seq, func(s scrape) bool { _, ok := s.v[k]; return !ok })
		if !out[k] {
			delete(out, k)
		}
	}
	return out
}

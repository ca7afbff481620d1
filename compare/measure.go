package compare

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/compare/judge"
	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// measure is one quantity of one run.
type measure struct {
	value     float64
	low, high float64        // provable bounds of a percentile; NaN
	noise     judge.Estimate // by the slices, with the standard error of the value itself; DF 0 where they do not tell
	missing   string         // why there is no value; "" when there is one
	counts    *counts        // of a mean: the distribution behind it
	layout    []float64
	estimator string // of a percentile
	unsure    string // the status for which it must not be judged; "" where it may
	notes     []string
}

// counts is a distribution as cumulative counts; the last is that of +Inf.
type counts struct{ bounds, cum []float64 }

func absent(why string) *measure {
	return &measure{value: math.NaN(), low: math.NaN(), high: math.NaN(), missing: why}
}

func present(v float64, noise judge.Estimate) *measure {
	m := absent("")
	m.value, m.noise = v, noise
	if !metric.Finite(v) {
		m.missing = "not a finite number"
	}
	return m
}

// named is a measure with the name of its statistic.
type named struct {
	stat string
	*measure
}

// group is the series of a family in one run that one row is about.
type group struct {
	run       *summary.Run
	series    []*summary.Series
	derived   []*summary.Derived
	pooled    *summary.Aggregate // of the same series, where the run has it
	factor    float64            // to the unit of the row
	rule      catalog.Aggregate  // how gauges are taken together
	quantiles []float64
	typ       metric.Type
}

// measures returns the quantities of the group, in the order in which rows show them.
func (g *group) measures() []named {
	worst := continuity.OK
	for _, s := range g.series {
		worst = max(worst, s.Increase.Status)
	}
	if worst == continuity.Refused {
		return g.refused()
	}
	out := g.values()
	for _, m := range out {
		if !worst.Certain() {
			m.unsure = worst.String()
		}
	}
	return out
}

// refused are the quantities of a group of which nothing is known: several processes answered for one of its series.
func (g *group) refused() (out []named) {
	stats := []string{"mean", "rate"}
	if g.typ == metric.Counter {
		stats = stats[1:]
	}
	if g.typ == metric.Histogram {
		for _, q := range g.quantiles {
			stats = append(stats, histest.PercentileName(q))
		}
	}
	for _, s := range stats {
		out = append(out, named{s, absent("refused: several processes answered, which nothing tells apart")})
	}
	return out
}

func (g *group) values() []named {
	if g.derived != nil {
		return []named{{"value", g.derivedValue()}}
	}
	switch first := g.series[0]; {
	case first.Counter != nil:
		return []named{{"rate", g.rate()}}
	case first.Gauge != nil:
		return []named{{"avg", g.gauge()}}
	case first.Histogram != nil:
		return g.histogram()
	case first.Summary != nil:
		return g.summary()
	case first.State != nil:
		return []named{{"share", g.state()}}
	case first.GaugeHistogram != nil:
		return []named{{"mean", g.current()}}
	}
	return nil
}

// grid sums up values of several series slice by slice.
type grid struct{ num, den map[int64]float64 }

func newGrid() *grid { return &grid{map[int64]float64{}, map[int64]float64{}} }

func (g *grid) add(at int64, num, den float64) {
	g.num[at] += num
	g.den[at] += den
}

// noise is how much the quotient of the sums varies by chance.
func (g *grid) noise(factor float64) judge.Estimate {
	var num, den []float64
	for _, at := range slices.Sorted(maps.Keys(g.num)) {
		num, den = append(num, g.num[at]*factor), append(den, g.den[at])
	}
	return judge.Quotient(num, den)
}

func seconds(s *normalize.Slice) float64 { return float64(s.EndNS-s.StartNS) / 1e9 }

// rate is that of counters, added up.
func (g *group) rate() *measure {
	sum, n := 0.0, 0
	slices := newGrid()
	for _, s := range g.series {
		if s.Counter == nil || !s.Counter.Defined {
			continue
		}
		n++
		sum += s.Counter.Rate
		for i := range s.Counter.Slices {
			if v := &s.Counter.Slices[i]; !v.Partial {
				slices.add(v.StartNS, v.Total, 0)
				slices.den[v.StartNS] = seconds(&v.Slice)
			}
		}
	}
	if n == 0 {
		return absent("a single sample, so nothing to take a difference of")
	}
	m := present(sum*g.factor, slices.noise(g.factor))
	g.noteResets(m)
	if n < len(g.series) {
		m.notes = append(m.notes, "series of a single sample are left out")
	}
	return m
}

func (g *group) noteResets(m *measure) {
	for _, s := range g.series {
		if s.Resets > 0 {
			m.notes = append(m.notes, "counted across restarts of the server")
			return
		}
	}
}

// gauge is the mean over the samples, of several gauges by the rule of the catalog.
func (g *group) gauge() *measure {
	var gauges []*normalize.Gauge
	for _, s := range g.series {
		if s.Gauge != nil && s.Gauge.N > 0 {
			gauges = append(gauges, s.Gauge)
		}
	}
	if len(gauges) == 0 {
		return absent("no finite sample in the window")
	}
	if len(gauges) == 1 {
		return g.oneGauge(gauges[0])
	}
	switch g.rule {
	case catalog.AggregateSum, catalog.AggregateMean:
	case catalog.AggregateMax:
		top := slices.MaxFunc(gauges, func(a, b *normalize.Gauge) int { return cmp.Compare(a.Avg, b.Avg) })
		return g.oneGauge(top)
	default:
		return absent("several gauges, and the catalog has no rule to take them together")
	}
	sum := 0.0
	grid, have := newGrid(), map[int64]int{}
	for _, v := range gauges {
		sum += v.Avg
		for i := range v.Slices {
			s := &v.Slices[i]
			grid.add(s.StartNS, s.Avg, 0)
			grid.den[s.StartNS] = 1
			have[s.StartNS]++
		}
	}
	for at, n := range have {
		if n < len(gauges) { // a sum of some is none
			delete(grid.num, at)
			delete(grid.den, at)
		}
	}
	factor := g.factor
	if g.rule == catalog.AggregateMean {
		factor /= float64(len(gauges))
	}
	return present(sum*factor, grid.noise(factor))
}

func (g *group) oneGauge(v *normalize.Gauge) *measure {
	grid := newGrid()
	for i := range v.Slices {
		if s := &v.Slices[i]; !s.Partial {
			n := float64(max(1, s.N)) // AIPerf's files do not say how many
			grid.add(s.StartNS, s.Avg*n, n)
		}
	}
	return present(v.Avg*g.factor, grid.noise(g.factor))
}

func (g *group) state() *measure {
	sum := 0.0
	grid := newGrid()
	for _, s := range g.series {
		sum += s.State.Share
		for i := range s.State.Slices {
			v := &s.State.Slices[i]
			grid.add(v.StartNS, v.Share, 1)
		}
	}
	return present(sum/float64(len(g.series)), grid.noise(1))
}

func (g *group) current() *measure {
	h := g.series[0].GaugeHistogram
	if len(g.series) > 1 || h.NoSum || h.Count == 0 {
		return absent("no mean of the last sample")
	}
	m := present(h.Avg*g.factor, judge.Estimate{})
	m.notes = append(m.notes, "of the last sample only")
	return m
}

func (g *group) summary() []named {
	var count int64
	sum, rate, hasRate := 0.0, 0.0, false
	means, rates := newGrid(), newGrid()
	for _, s := range g.series {
		v := s.Summary
		if v == nil || !v.Defined || v.NoCount || v.NoSum {
			continue
		}
		count += v.Count
		sum += v.Sum
		rate += v.CountRate
		hasRate = hasRate || v.HasRates
		for i := range v.Slices {
			sl := &v.Slices[i]
			means.add(sl.StartNS, sl.Sum, float64(sl.Count))
			rates.add(sl.StartNS, float64(sl.Count), 0)
			rates.den[sl.StartNS] = seconds(&sl.Slice)
		}
	}
	mean := absent("no observations in the window")
	if count != 0 {
		mean = present(sum/float64(count)*g.factor, means.noise(g.factor))
	}
	out := []named{{"mean", mean}}
	reported := func(s *summary.Series) bool { return s.Summary != nil && len(s.Summary.Quantiles) > 0 }
	if slices.ContainsFunc(g.series, reported) {
		out = append(out, named{"quantiles", absent("the server's own quantiles: over a time of its choice, not the window")})
	}
	if hasRate {
		out = append(out, named{"rate", present(rate, rates.noise(1))})
	}
	return out
}

// derivedValue is the value of a derived quantity; of several, where series were taken together, there is none.
func (g *group) derivedValue() *measure {
	if len(g.derived) > 1 {
		return absent("several of one name and labels in a run")
	}
	d := g.derived[0]
	if !d.Status.Defined() {
		return absent(d.Status.String())
	}
	grid := newGrid()
	for i := range d.Slices {
		s := &d.Slices[i]
		switch {
		case s.Partial || !s.Status.Defined() && s.Status != catalog.ZeroDenominator:
		case d.HasParts && (s.Numerator != 0 || s.Denominator != 0):
			grid.add(s.StartNS, s.Numerator, s.Denominator)
		case s.Status.Defined(): // also of files, which do not have the parts of slices
			grid.add(s.StartNS, s.Value, 1)
		}
	}
	m := present(d.Value*g.factor, grid.noise(g.factor))
	if !d.Status.Certain() {
		m.unsure = d.Status.String()
	}
	if d.Status != catalog.OK {
		m.notes = append(m.notes, "status "+d.Status.String())
	}
	// What the slices do not add up to, but for those that are cut short, is no mean of them: a peak, say.
	if v := m.noise.Value; !(math.Abs(v-m.value) <= 0.05*math.Max(math.Abs(v), math.Abs(m.value))) {
		m.noise.DF = 0
	}
	return m
}

// estimateOf is the estimate of quantile q, if the run has one.
func estimateOf(run *summary.Run, list []histest.Estimate, q float64) (histest.Estimate, bool) {
	i := slices.Index(run.Options.Quantiles, q)
	if i < 0 || i >= len(list) {
		return histest.Estimate{}, false
	}
	return list[i], true
}

// typeName is the type as rows compare it: what has no type is a gauge.
func typeName(t metric.Type) metric.Type {
	if t == metric.Unknown {
		return metric.Gauge
	}
	return t
}

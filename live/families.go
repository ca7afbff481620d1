package live

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/units"
)

// maxTop is how many series of a family a digest keeps.
const maxTop = 20

// metrics are those of the window, or of the warm-up as long as there is none.
func (d *digester) metrics() []*summary.Metric {
	list := d.run.Metrics
	if len(list) == 0 {
		list = d.run.Warmup
	}
	var out []*summary.Metric
	for i := range list {
		out = append(out, &list[i])
	}
	return out
}

// families are all that the target has, by name.
func (d *digester) families() []family {
	var out []family
	for _, m := range d.metrics() {
		if f := d.family(m, "f", nil); f != nil {
			out = append(out, *f)
		}
	}
	return out
}

// family is one over the series of the target, of those that are let in; nil when it has none. kind keeps the trends of
// two askers apart.
func (d *digester) family(m *summary.Metric, kind string, in func(*summary.Series) bool) *family {
	var t tally
	rule := catalog.AggregateByType
	known, ok := d.run.Options.Catalog.Family(m.Name)
	f := &family{name: m.Name, typ: m.Type.String(), unit: m.ShownUnit(), help: m.Help, sofar: "-", now: "-"}
	if ok {
		rule, f.engine, f.help = known.Aggregate, known.Engine, cmp.Or(known.Meaning, m.Help)
	}
	for i := range m.Series {
		s := &m.Series[i]
		other := d.target != all && s.Endpoint != d.target || d.target == all && d.run.Repeats(s)
		if other || in != nil && !in(s) || ok && !whole(known, d.run.Options.Catalog, s.Labels) {
			continue
		}
		t.add(&s.Series)
		f.series++
		if len(f.top) < maxTop {
			f.top = append(f.top, member{text(s.Labels), d.nameOf(s.Endpoint), valueOf(&s.Series, f.unit)})
		}
	}
	if f.series == 0 {
		return nil
	}
	key := d.key + kind + m.Name + "\x00" + f.typ
	switch {
	case t.counters > 0 && rule != catalog.AggregateNever:
		f.sofar = units.Format(t.total, f.unit)
		rate := d.gain(key, t.total, float64(t.lastNS)/1e9)
		f.trend = d.trend(key, rate)
		if !math.IsNaN(rate) {
			f.now = units.Format(rate, f.unit) + "/s"
		}
	case t.distributions > 0:
		f.sofar = fmt.Sprint(t.count, " obs")
		if t.noSum {
			break
		}
		mean := d.gain(key, t.sum, float64(t.count))
		f.trend = d.trend(key, mean)
		if !math.IsNaN(mean) {
			f.now = units.Format(mean, f.unit) + " mean"
		}
	case len(t.levels) > 0:
		f.typ = metric.Gauge.String()
		d.level(f, key, rule, t.levels)
	}
	return f
}

// level tells the last values of gauges, by the rule of the catalog; where there is none, the range of them.
func (d *digester) level(f *family, key string, rule catalog.Aggregate, levels []float64) {
	low, high, sum := slices.Min(levels), slices.Max(levels), 0.0
	for _, v := range levels {
		sum += v
	}
	v := high
	switch rule {
	case catalog.AggregateSum, catalog.AggregateRank0:
		v = sum
	case catalog.AggregateMean:
		v = sum / float64(len(levels))
	case catalog.AggregateMax:
	default:
		if low != high {
			f.now = units.Format(low, f.unit) + " to " + units.Format(high, f.unit)
			return
		}
	}
	f.now, f.trend = units.Format(v, f.unit), d.trend(key, v)
}

// whole reports whether a series is not a part of what another one says already.
func whole(f *catalog.Family, c *catalog.Catalog, l metric.Labels) bool {
	if len(f.Only) == 0 {
		return true
	}
	l = c.Labels(f, l)
	return !slices.ContainsFunc(f.Only, func(want metric.Label) bool {
		v, _ := l.Get(want.Name)
		return v != want.Value
	})
}

// tally adds the series of a family up.
type tally struct {
	counters, distributions int
	total, sum              float64
	count                   int64
	levels                  []float64
	lastNS                  int64
	noSum                   bool // a server sends no sum: there is no mean
}

func (t *tally) add(s *normalize.Series) {
	t.lastNS = max(t.lastNS, s.LastNS)
	switch {
	case s.Counter != nil && s.Counter.Defined:
		t.counters++
		t.total += s.Counter.Total
	case s.Gauge != nil && s.Gauge.N > 0:
		t.levels = append(t.levels, s.Gauge.Last)
	case s.Histogram != nil:
		t.distributions++
		t.count += s.Histogram.Count
		t.sum += s.Histogram.Sum
		t.noSum = t.noSum || s.Histogram.NoSum
	case s.Summary != nil && s.Summary.Defined:
		t.distributions++
		t.count += s.Summary.Count
		t.sum += s.Summary.Sum
		t.noSum = t.noSum || s.Summary.NoSum
	}
}

// valueOf is what a series has so far, or for a gauge now.
func valueOf(s *normalize.Series, unit string) string {
	switch {
	case s.Counter != nil && s.Counter.Defined:
		return units.Format(s.Counter.Total, unit)
	case s.Gauge != nil && s.Gauge.N > 0:
		return units.Format(s.Gauge.Last, unit)
	case s.Histogram != nil && s.Histogram.Count > 0:
		return fmt.Sprint(s.Histogram.Count, " obs, mean ", units.Format(s.Histogram.Avg, unit))
	case s.Summary != nil && s.Summary.Defined && s.Summary.Count > 0:
		return fmt.Sprint(s.Summary.Count, " obs, mean ", units.Format(s.Summary.Avg, unit))
	}
	return "-"
}

// nameOf is the name of a target, or else its address.
func (d *digester) nameOf(endpoint int) string {
	return d.run.Endpoints[endpoint].Shown()
}

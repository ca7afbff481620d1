package export

import (
	"maps"
	"slices"
	"strconv"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// extrasVersion is the version of what is under "scrapestat": fields are added,
// never renamed.
const extrasVersion = 1

// extras writes what AIPerf has no place for.
func (d *document) extras() {
	r := d.run
	d.key("scrapestat")
	d.open('{')
	d.intField("schema_version", extrasVersion)
	d.strField("version", r.Version)
	d.strField("run_id", r.ID)
	d.stringMap("tags", r.Tags)
	d.stringList("command", r.Command)
	if r.Host != "" {
		d.strField("host", r.Host)
	}
	d.intField("origin_ns", r.OriginNS)
	d.window("window", &r.Window)
	if r.WarmupWindow != nil {
		d.window("warmup_window", r.WarmupWindow)
	}
	d.phases()
	d.options()
	d.intMap("limits", r.Limits)
	d.key("endpoints")
	d.open('[')
	for i := range r.Endpoints {
		d.elem()
		d.endpoint(&r.Endpoints[i])
	}
	d.close(']')
	d.warnings(r.Warnings)
	d.ownUnits()
	d.key("series")
	d.open('[')
	for i := range r.Metrics {
		for j := range r.Metrics[i].Series {
			d.seriesNote(&r.Metrics[i], &r.Metrics[i].Series[j])
		}
	}
	d.close(']')
	d.aggregates()
	d.latencies()
	d.derived()
	d.fleet()
	d.others("metrics", r.Metrics)
	d.others("warmup_metrics", r.Warmup)
	d.conflicts("conflicting_metrics", r.Metrics)
	d.conflicts("conflicting_warmup_metrics", r.Warmup)
	d.close('}')
}

func (d *document) stringMap(name string, m map[string]string) {
	d.key(name)
	d.open('{')
	for _, k := range slices.Sorted(maps.Keys(m)) {
		d.strField(k, m[k])
	}
	d.close('}')
}

func (d *document) intMap(name string, m map[string]int64) {
	d.key(name)
	d.open('{')
	for _, k := range slices.Sorted(maps.Keys(m)) {
		d.intField(k, m[k])
	}
	d.close('}')
}

// stringList writes a list on one line.
func (d *document) stringList(name string, list []string) {
	d.key(name)
	d.openInline('[')
	for _, s := range list {
		d.elem()
		d.str(s)
	}
	d.close(']')
}

func (d *document) window(name string, w *summary.Window) {
	d.key(name)
	d.openInline('{')
	if w.Phase != "" {
		d.strField("phase", w.Phase)
	}
	d.intField("start_ns", w.StartNS)
	d.intField("end_ns", w.EndNS)
	d.intField("phase_end_ns", w.PhaseEndNS)
	d.close('}')
}

func (d *document) phases() {
	d.key("phases")
	d.open('[')
	for _, p := range d.run.Phases {
		d.elem()
		d.openInline('{')
		d.strField("name", p.Name)
		d.intField("start_ns", p.StartNS)
		d.intField("end_ns", p.EndNS)
		d.close('}')
	}
	d.close(']')
}

func (d *document) options() {
	o := &d.run.Options
	d.key("options")
	d.open('{')
	resets := "adjust"
	if o.Resets == normalize.ResetClamp {
		resets = "clamp"
	}
	d.strField("counter_resets", resets)
	d.strField("estimator", o.Estimator)
	d.intField("slice_ns", int64(o.Slice))
	d.key("quantiles")
	d.openInline('[')
	for _, q := range o.Quantiles {
		d.elem()
		d.buf = appendFloat(d.buf, q)
	}
	d.close(']')
	d.close('}')
}

// warnings writes a list with a warning per line; nothing when there are none.
func (d *document) warnings(list []metric.Warning) {
	if len(list) == 0 {
		return
	}
	d.key("warnings")
	d.open('[')
	for _, w := range list {
		d.elem()
		d.openInline('{')
		d.strField("code", w.Code)
		d.strField("text", w.Text)
		d.close('}')
	}
	d.close(']')
}

// ownUnits writes the units that AIPerf's rules miss or get wrong.
func (d *document) ownUnits() {
	d.key("units")
	d.open('{')
	last := ""
	for i := range d.run.Metrics {
		if m := &d.run.Metrics[i]; m.OwnUnit != "" && m.Name != last {
			d.strField(m.Name, m.OwnUnit)
			last = m.Name
		}
	}
	d.close('}')
}

// conflicts writes the metrics whose name belongs to another type already.
func (d *document) conflicts(name string, metrics []summary.Metric) {
	opened := false
	for i := range metrics {
		m := &metrics[i]
		if !m.Conflict || !exportedType(m.Type) {
			continue
		}
		if !opened {
			d.key(name)
			d.open('[')
			opened = true
		}
		d.elem()
		d.open('{')
		d.strField("name", m.Name)
		d.key("metric")
		d.metric(m)
		d.close('}')
	}
	if opened {
		d.close(']')
	}
}

// seriesNote writes what is to be said of a series beyond its statistics: how
// often it was reset or away, what is doubtful, and the bounds its percentiles
// provably lie in. A series without any of it has no note.
func (d *document) seriesNote(m *summary.Metric, s *summary.Series) {
	exact := s.Counter != nil && s.Counter.HasExact && s.Counter.Exact > 1<<53
	single := s.Counter != nil && !s.Counter.Defined
	native := s.Histogram != nil && s.Histogram.Native != nil
	started := s.CreatedNS > d.run.OriginNS
	if !exact && !single && !native && !started && len(s.Exemplars) == 0 && s.Resets+s.Gaps+s.NonFinite == 0 && len(s.Warnings) == 0 && !d.hasQuantiles(s) && s.Distribution == nil {
		return
	}
	d.elem()
	d.openInline('{')
	d.strField("metric", m.Name)
	if m.Conflict || !exportedType(m.Type) {
		d.strField("type", m.Type.String())
	}
	d.intField("endpoint", int64(s.Endpoint))
	d.labels(s.Labels)
	d.intField("samples", int64(s.Samples))
	d.count("resets", s.Resets)
	d.count("gaps", s.Gaps)
	d.count("non_finite", s.NonFinite)
	if single {
		d.key("single_sample")
		d.bool(true)
	}
	if exact {
		d.key("total_exact")
		d.buf = strconv.AppendUint(d.buf, s.Counter.Exact, 10)
	}
	if native {
		d.key("native")
		d.bool(true)
	}
	if s.CreatedNS != 0 {
		d.intField("created_ns", s.CreatedNS)
	}
	d.quantiles(s)
	d.slicePercentiles(s.Histogram)
	d.exemplars(s.Exemplars)
	d.distribution(s.Distribution)
	d.warnings(s.Warnings)
	d.close('}')
}

func (d *document) count(name string, n int) {
	if n != 0 {
		d.intField(name, int64(n))
	}
}

// isNine says that AIPerf's statistics show quantile i already.
func (d *document) isNine(i int) bool { return slices.Contains(d.nine[:], i) }

func (d *document) hasQuantiles(s *summary.Series) bool {
	if s.Gauge != nil {
		for i := range s.Gauge.Quantiles {
			if !d.isNine(i) {
				return true
			}
		}
	}
	return s.Histogram != nil && len(s.Histogram.Quantiles) > 0
}

// percentileName is "p99.9" for 0.999.
func percentileName(q float64) string { return "p" + strconv.FormatFloat(q*100, 'g', 10, 64) }

// quantiles writes all estimates of a histogram with their bounds, and those of
// a gauge that are not AIPerf's.
func (d *document) quantiles(s *summary.Series) {
	if !d.hasQuantiles(s) {
		return
	}
	d.key("percentiles")
	d.open('{')
	if g := s.Gauge; g != nil {
		for i, v := range g.Quantiles {
			if !d.isNine(i) && i < len(d.run.Options.Quantiles) {
				d.key(percentileName(d.run.Options.Quantiles[i]))
				d.open('{')
				d.floatField("value", v)
				d.close('}')
			}
		}
	} else {
		for i, e := range s.Histogram.Quantiles {
			d.estimate(i, e.Value, e.Low, e.High, summary.FlagNames(e.Flags))
		}
	}
	d.close('}')
}

// estimate writes the estimate of quantile i of the run.
func (d *document) estimate(i int, value, low, high float64, flags []string) {
	if i >= len(d.run.Options.Quantiles) {
		return
	}
	d.key(percentileName(d.run.Options.Quantiles[i]))
	d.open('{')
	d.floatField("value", value)
	d.floatField("low", low)
	d.floatField("high", high)
	if len(flags) > 0 {
		d.stringList("flags", flags)
	}
	d.close('}')
}

// slicePercentiles writes the estimates of the slices that have some.
func (d *document) slicePercentiles(h *normalize.Histogram) {
	if h == nil {
		return
	}
	opened := false
	for i := range h.Slices {
		s := &h.Slices[i]
		if len(s.Quantiles) == 0 {
			continue
		}
		if !opened {
			d.key("slice_percentiles")
			d.open('[')
			opened = true
		}
		d.elem()
		d.open('{')
		d.intField("start_ns", s.StartNS)
		d.intField("end_ns", s.EndNS)
		d.key("percentiles")
		d.open('{')
		for i, e := range s.Quantiles {
			d.estimate(i, e.Value, e.Low, e.High, summary.FlagNames(e.Flags))
		}
		d.close('}')
		d.close('}')
	}
	if opened {
		d.close(']')
	}
}

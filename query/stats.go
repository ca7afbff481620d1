package query

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// Options say which rows are wanted.
type Options struct {
	Run string // the name of the run
	// Metrics are words and ids (ttft, ttft_s), families, derived quantities, globs, or words with a statistic (ttft_p99);
	// nil is all. What a run has nothing of gives no rows: see Unknown.
	Metrics []string
	// Stats are statistics, mean among them; nil is all that exist. Percentiles are those of summary.Options.Quantiles.
	Stats  []string
	Spans  []string // nil is all that there are
	Levels []string // nil is LevelSeries, or LevelGroup where summary.Options.By is set
	By     []string // of LevelGroup; nil is summary.Options.By
}

// Stats returns the rows of a run by level, metric, target, labels, span (the window first), slice and statistic.
func Stats(r *summary.Run, o Options) iter.Seq[*Row] {
	return func(yield func(*Row) bool) {
		if o.By == nil {
			o.By = r.Options.By
		}
		w := &writer{run: r, catalog: r.Options.Catalog, o: o, yield: yield}
		w.wanted, _ = choose(r, o.Metrics)
		levels := o.Levels
		if levels == nil {
			levels = []string{LevelSeries}
			if o.By != nil {
				levels[0] = LevelGroup
			}
		}
		for _, level := range slices.Sorted(slices.Values(levels)) {
			w.level(level)
		}
	}
}

// writer makes the rows of a run. A row is valid until the next.
type writer struct {
	run     *summary.Run
	catalog *catalog.Catalog
	o       Options
	wanted  []wanted
	stats   []string // of the present metric; nil is all
	row     Row
	yield   func(*Row) bool
	done    bool
}

// item is a metric or a derived quantity of a level.
type item struct {
	name string
	rows func()
}

func (w *writer) level(level string) {
	var items []item
	main, warm := families(w.run.Metrics), families(w.run.Warmup)
	for _, list := range [][]summary.Metric{w.run.Metrics, w.run.Warmup} {
		for i := range list {
			m := &list[i]
			f := family{m.Name, m.Type}
			if _, both := main[f]; both && len(w.run.Warmup) > 0 && m == warm[f] || m.Type == metric.Info {
				continue // with that of the window
			}
			items = append(items, item{m.Name, func() { w.metric(level, main[f], warm[f]) }})
		}
	}
	derived, order := w.derivedOf(level)
	for _, name := range order {
		items = append(items, item{name, func() {
			for _, d := range derived[name] {
				w.derived(level, d)
			}
		}})
	}
	slices.SortStableFunc(items, func(a, b item) int { return strings.Compare(a.name, b.name) })
	for _, it := range items {
		if w.done {
			return
		}
		it.rows()
	}
}

// family is what tells metrics apart.
type family struct {
	name string
	typ  metric.Type
}

func families(list []summary.Metric) map[family]*summary.Metric {
	out := map[family]*summary.Metric{}
	for i := range list {
		out[family{list[i].Name, list[i].Type}] = &list[i]
	}
	return out
}

// takes reports whether a metric is wanted, and settles of which statistics.
func (w *writer) takes(k known) bool {
	if w.stats = w.o.Stats; w.o.Metrics == nil {
		return true
	}
	taken, all := false, false
	var some []string
	for _, want := range w.wanted {
		if want.match(k) {
			taken, all, some = true, all || want.stats == nil, append(some, want.stats...)
		}
	}
	if taken && !all {
		w.stats = append(slices.Clone(some), w.o.Stats...)
	}
	return taken
}

// thing is series taken together, in the window and in the warm-up.
type thing struct {
	target, url string
	labels      metric.Labels
	main, warm  *summary.Pool
}

// metric makes the rows of a family; main or warm is nil where it was not there.
func (w *writer) metric(level string, main, warm *summary.Metric) {
	m := cmp.Or(main, warm)
	k := known{m.Name, w.catalog.Canonical(m.Name), false}
	if !w.takes(k) {
		return
	}
	engine := ""
	f, isKnown := w.catalog.Family(m.Name)
	if isKnown && f.Engine != "generic" {
		engine = f.Engine
	}
	if level == LevelFleet && engine == "" {
		return
	}
	for _, t := range w.things(level, main, warm, f) {
		w.row = Row{Run: w.o.Run, RunID: w.run.ID, Tags: metric.LabelsFromMap(w.run.Tags), Level: level, Target: t.target,
			URL: t.url, Engine: engine, Metric: m.Name, Quantity: k.quantity, Kind: kindOf(m), Labels: t.labels,
			Source: "metrics"}
		if t.main != nil {
			w.pool(main, t.main, w.run.Window, SpanWindow)
		}
		if t.warm != nil && w.run.WarmupWindow != nil && w.spans(SpanWarmup) {
			w.pool(warm, t.warm, *w.run.WarmupWindow, SpanWarmup)
		}
	}
}

func kindOf(m *summary.Metric) string {
	if m.Type == metric.StateSet {
		return "state"
	}
	return m.Type.String()
}

// things are what the rows of a level are of, by target and labels.
func (w *writer) things(level string, main, warm *summary.Metric, f *catalog.Family) (out []*thing) {
	type key struct {
		url    string
		labels metric.Labels
	}
	at := map[key]*thing{}
	add := func(p summary.Pool, inWarmup bool) {
		t := &thing{labels: p.Labels}
		e := &w.run.Endpoints[p.Series[0].Endpoint]
		one := !slices.ContainsFunc(p.Series, func(s *summary.Series) bool { return s.Endpoint != p.Series[0].Endpoint })
		if level == LevelSeries || one && level == LevelGroup {
			t.target, t.url = e.Shown(), e.URL
		}
		k := key{labels: p.Labels}
		if level == LevelSeries {
			k.url = e.URL
		}
		if at[k] == nil {
			at[k], out = t, append(out, t)
		}
		if inWarmup {
			at[k].warm = &p
		} else {
			at[k].main = &p
		}
	}
	for i, m := range []*summary.Metric{main, warm} {
		if m == nil {
			continue
		}
		for _, p := range w.pools(level, m, f) {
			add(p, i == 1)
		}
	}
	slices.SortStableFunc(out, func(a, b *thing) int {
		return cmp.Or(strings.Compare(a.target, b.target), a.labels.Compare(b.labels))
	})
	return out
}

func (w *writer) pools(level string, m *summary.Metric, f *catalog.Family) (out []summary.Pool) {
	switch level {
	case LevelGroup:
		return w.run.Pools(m, w.o.By)
	case LevelFleet:
		return w.run.Pools(m, f.Identity)
	}
	for i := range m.Series {
		s := &m.Series[i]
		out = append(out, summary.Pool{Labels: s.Labels, Series: []*summary.Series{s}})
	}
	return out
}

func (w *writer) spans(span string) bool { return w.o.Spans == nil || slices.Contains(w.o.Spans, span) }

// span begins the rows of a stretch.
func (w *writer) span(span string, slice int, s normalize.Slice) {
	w.row.Span, w.row.Slice, w.row.StartNS, w.row.EndNS, w.row.Complete = span, slice, s.StartNS, s.EndNS, !s.Partial
	w.row.T = float64(s.StartNS-w.run.Window.StartNS) / 1e9
}

// add makes a row of a statistic, if it is wanted.
func (w *writer) add(stat string, value float64, unit string) {
	if w.done || w.stats != nil && !slices.ContainsFunc(w.stats, func(s string) bool {
		return s == stat || s == mean && isMean(stat, w.row.Kind, w.row.Span) || samePercentile(s, stat)
	}) {
		return
	}
	row := w.row
	row.Stat, row.Value, row.Unit, row.Q = stat, value, unit, math.NaN()
	if q, ok := ParsePercentile(stat); ok {
		row.Q = q
	}
	if row.Status == catalog.OK.String() && !metric.Finite(value) {
		row.Status = catalog.Missing.String()
	}
	w.done = !w.yield(&row)
}

func samePercentile(a, b string) bool {
	p, isA := ParsePercentile(a)
	q, isB := ParsePercentile(b)
	return isA && isB && p == q
}

// derivedItem is a derived quantity with the labels that its rows have.
type derivedItem struct {
	*summary.Derived
	endpoint int // -1 of several
	labels   metric.Labels
	series   int
}

// derivedOf returns the derived quantities of a level by name.
func (w *writer) derivedOf(level string) (map[string][]derivedItem, []string) {
	by := w.o.By
	out, order := map[string][]derivedItem{}, []string(nil)
	add := func(d *summary.Derived, endpoint int, labels metric.Labels, series int) {
		if out[d.Name] == nil {
			order = append(order, d.Name)
		}
		out[d.Name] = append(out[d.Name], derivedItem{d, endpoint, labels.Join(d.Labels), series})
	}
	perTarget := level == LevelGroup && len(by) == 1 && (by[0] == summary.ByTarget || by[0] == summary.ByEndpoint)
	if level == LevelSeries || perTarget {
		for i := range w.run.Derived {
			d := &w.run.Derived[i]
			var labels metric.Labels
			if e := &w.run.Endpoints[d.Endpoint]; perTarget && by[0] == summary.ByTarget {
				labels = metric.NewLabels(metric.Label{Name: summary.ByTarget, Value: e.Shown()})
			} else if perTarget {
				labels = metric.NewLabels(metric.Label{Name: summary.ByEndpoint, Value: e.URL})
			}
			add(d, d.Endpoint, labels, 1)
		}
		w.sortDerived(out)
		return out, order
	}
	for i := range w.run.Combined {
		t := &w.run.Combined[i]
		if whole := i == 0; whole != (level == LevelFleet || len(by) == 0) {
			continue
		}
		for k := range t.Derived {
			add(&t.Derived[k], -1, t.Labels, len(t.Endpoints))
		}
	}
	return out, order
}

func (w *writer) sortDerived(all map[string][]derivedItem) {
	for _, list := range all {
		slices.SortStableFunc(list, func(a, b derivedItem) int {
			return cmp.Or(strings.Compare(w.run.Endpoints[a.endpoint].Shown(), w.run.Endpoints[b.endpoint].Shown()),
				a.labels.Compare(b.labels))
		})
	}
}

// derived makes the rows of a derived quantity.
func (w *writer) derived(level string, d derivedItem) {
	if !w.takes(known{d.Name, d.Canonical, true}) {
		return
	}
	w.row = Row{Run: w.o.Run, RunID: w.run.ID, Tags: metric.LabelsFromMap(w.run.Tags), Level: level, Engine: d.Pack,
		Metric: d.Name, Quantity: d.Canonical, Kind: "derived", Labels: d.labels, Phase: w.run.Window.Phase, N: -1,
		Series: d.series, Source: "metrics", Flags: strings.Join(d.Flags, " ")}
	window := normalize.Slice{StartNS: w.run.Window.StartNS, EndNS: w.run.Window.EndNS}
	if d.endpoint >= 0 {
		e := &w.run.Endpoints[d.endpoint]
		w.row.Target, w.row.URL = e.Shown(), e.URL
		window.StartNS, window.EndNS = e.StartNS, e.EndNS
	}
	value := func(s catalog.Status, v, low, high float64) {
		if w.row.Status = s.String(); !s.Defined() {
			v = math.NaN()
		}
		w.row.Low, w.row.High = summary.BoundsOfStatus(s, low, high)
		w.add("value", v, d.Unit)
	}
	if w.spans(SpanWindow) {
		w.span(SpanWindow, -1, window)
		value(d.Status, d.Value, d.Low, d.High)
	}
	if !w.spans(SpanSlice) {
		return
	}
	for i := range d.Slices {
		s := &d.Slices[i]
		w.span(SpanSlice, w.sliceAt(s.StartNS, window.StartNS), s.Slice)
		value(s.Status, s.Value, s.Low, s.High)
	}
}

func (w *writer) sliceAt(startNS, windowNS int64) int {
	return int((startNS - windowNS) / w.run.Options.Slice.Nanoseconds())
}

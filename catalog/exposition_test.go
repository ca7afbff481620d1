package catalog_test

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
)

// tester is a test or a rapid one.
type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
	Errorf(string, ...any)
}

// exposed reads an exposition as the gains of a server that started with it at 0.
// Gauges stood at their value all the time.
func exposed(t tester, text string) []catalog.Gain {
	t.Helper()
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("parse exposition: %v", err)
	}
	var out []catalog.Gain
	for _, name := range slices.Sorted(maps.Keys(families)) {
		if strings.HasSuffix(name, "_created") {
			continue
		}
		for _, m := range families[name].GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			g := catalog.Gain{Family: name, Labels: metric.LabelsFromMap(labels)}
			switch {
			case m.GetCounter() != nil:
				g.Type, g.Family = metric.Counter, strings.TrimSuffix(name, "_total")
				g.Total = m.GetCounter().GetValue()
				g.Last = g.Total
			case m.GetHistogram() != nil:
				h := m.GetHistogram()
				g.Type, g.Count, g.Sum, g.HasSum = metric.Histogram, float64(h.GetSampleCount()), h.GetSampleSum(), true
				for _, b := range h.GetBucket() {
					g.Buckets = append(g.Buckets, catalog.Bucket{Upper: b.GetUpperBound(), Count: float64(b.GetCumulativeCount())})
				}
			case m.GetSummary() != nil:
				g.Type, g.Count, g.Sum, g.HasSum = metric.Summary, float64(m.GetSummary().GetSampleCount()),
					m.GetSummary().GetSampleSum(), true
			default:
				v := m.GetGauge().GetValue() + m.GetUntyped().GetValue()
				g.Type, g.TimeAvg, g.Min, g.Max, g.First, g.Last = metric.Gauge, v, v, v, v, v
			}
			out = append(out, g)
		}
	}
	return out
}

// between is what a server gained from one exposition to the next.
func between(t tester, before, after string) []catalog.Gain {
	t.Helper()
	type id struct {
		family string
		labels metric.Labels
	}
	old := map[id]catalog.Gain{}
	for _, g := range exposed(t, before) {
		old[id{g.Family, g.Labels}] = g
	}
	out := exposed(t, after)
	for i := range out {
		g := &out[i]
		was, ok := old[id{g.Family, g.Labels}]
		if !ok {
			continue
		}
		g.First = was.Last
		g.Total -= was.Total
		g.Count -= was.Count
		g.Sum -= was.Sum
		for k := range was.Buckets {
			g.Buckets[k].Count -= was.Buckets[k].Count
		}
	}
	return out
}

// derived is the results of one derivation, for questions by name.
type derived struct {
	t    tester
	list []catalog.Derived
}

func derive(t tester, c *catalog.Catalog, seconds float64, gains []catalog.Gain) derived {
	t.Helper()
	return derived{t, c.Derive(catalog.Interval{Seconds: seconds, Gains: gains}, catalog.Window)}
}

// one returns the result of that name whose labels, names and values in turn, are
// among its own; nil when there is none.
func (d derived) one(name string, labels ...string) *catalog.Derived {
	for i := range d.list {
		ok := d.list[i].Name == name
		for k := 0; ok && k+1 < len(labels); k += 2 {
			v, _ := d.list[i].Labels.Get(labels[k])
			ok = v == labels[k+1]
		}
		if ok {
			return &d.list[i]
		}
	}
	return nil
}

// want checks a value, to a relative 1e-6, and its status.
func (d derived) want(name, status string, value float64, labels ...string) {
	d.t.Helper()
	got := d.one(name, labels...)
	switch {
	case got == nil:
		d.t.Errorf("%s %v: absent, want %s %v", name, labels, status, value)
	case got.Status.String() != status || !close(got.Value, value):
		d.t.Errorf("%s %v: %s %v, want %s %v", name, labels, got.Status, got.Value, status, value)
	}
}

func (d derived) absent(name string, labels ...string) {
	d.t.Helper()
	if got := d.one(name, labels...); got != nil {
		d.t.Errorf("%s %v: %s %v, want none", name, labels, got.Status, got.Value)
	}
}

func close(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(math.Abs(a), math.Abs(b))+1e-12 }

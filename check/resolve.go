package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/events/join"
	"github.com/scrapestat/scrapestat/explain"
	"github.com/scrapestat/scrapestat/headline"
	"github.com/scrapestat/scrapestat/internal/suggest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// Evidence is what is known of a run. Run is needed, and in Grouped a result for each of Groupings, made with its
// labels as Options.By.
type Evidence struct {
	Run        *summary.Run
	Grouped    map[string]*summary.Run // by GroupKey
	Requests   *events.Report          // nil for the reason NoRequests
	NoRequests string
	Joined     *join.Result // clients beside servers; nil for the reason NoJoin
	NoJoin     string
	Explained  []*explain.Result // of a run that Gate.WantsExplain
	Baseline   *Evidence         // nil without one
	// Provable makes estimates pass only when the whole interval in which the number provably lies keeps the limit.
	Provable bool
}

// read returns the numbers that a demand is about: at least one, which may be a reason why there is none.
func (e *Evidence) read(d *Assertion) []Measurement {
	var out []Measurement
	run := e.Run
	if d.Grouped {
		if run = e.Grouped[GroupKey(d.By)]; run == nil {
			return []Measurement{missing("the run was not analysed by (%s)", GroupKey(d.By))}
		}
	}
	switch {
	case d.From == FromRequests:
		return []Measurement{e.request(d).known()}
	case d.From == FromQuantity:
		out = quantities(run, d)
	case d.From == FromDerived:
		out = derived(run, d)
	case d.From == FromExplain:
		out = e.explanations(d)
	case d.Stat.Name == "series":
		out = countSeries(run, d)
	case d.Grouped:
		out = aggregates(run, d)
	default:
		out = series(run, d)
	}
	for i := range out {
		out[i] = out[i].known()
	}
	return out
}

// metrics returns the metrics that a name means: those of that name, or else of its other spellings and generations.
func metrics(run *summary.Run, name string) (out []int) {
	plain := strings.TrimSuffix(name, "_total")
	for i := range run.Metrics {
		if n := run.Metrics[i].Name; n == name || n == plain {
			out = append(out, i)
		}
	}
	if w, stat, ok := headline.Parse(name); ok && stat == "" && len(out) == 0 {
		return ofWord(run, w.ID)
	}
	if len(out) > 0 {
		return out
	}
	want, ok := run.Options.Catalog.Family(plain)
	if !ok {
		return nil
	}
	for i := range run.Metrics {
		if f, ok := run.Options.Catalog.Family(run.Metrics[i].Name); ok && f == want {
			out = append(out, i)
		}
	}
	return out
}

// noMetric is the reason why a name means nothing in this run.
func noMetric(run *summary.Run, name string) Measurement {
	if n := nonFinite(run, name); n > 0 {
		return missing("%s has no number in the window (%d NaN or infinite)", name, n)
	}
	for i := range run.Endpoints {
		if slices.Contains(run.Endpoints[i].Declared, strings.TrimSuffix(name, "_total")) {
			return missing("%s was announced by %s and never had a sample", name, run.Endpoints[i].Shown())
		}
	}
	var names []string
	for i := range run.Metrics {
		names = append(names, run.Metrics[i].Name)
	}
	why := "the run has no metric " + name
	if f, ok := run.Options.Catalog.Family(strings.TrimSuffix(name, "_total")); ok {
		why += fmt.Sprintf(" (it is known of %s)", f.Engine)
	}
	return missing("%s%s", why, nearest(run, name, names))
}

// nearest is a clause with what may have been meant: names of the run, or of the vocabulary.
func nearest(run *summary.Run, name string, names []string) string {
	if w, stat, ok := headline.Parse(name); ok {
		return "; did you mean " + strings.TrimSpace(w.Name+" "+stat) + "?"
	}
	for i := range run.Derived {
		names = append(names, run.Derived[i].Name)
	}
	slices.Sort(names)
	return cmp.Or(suggest.Clause(name, slices.Compact(names)), suggest.Clause(name, headline.Spellings()))
}

// nonFinite counts the samples of a family in series that have no number in the window.
func nonFinite(run *summary.Run, name string) (n int) {
	for i := range run.Endpoints {
		counts := run.Endpoints[i].NonFinite
		n += cmp.Or(counts[name], counts[strings.TrimSuffix(name, "_total")])
	}
	return n
}

// series reads every series that the selector finds.
func series(run *summary.Run, d *Assertion) (out []Measurement) {
	found := metrics(run, d.Metric)
	if len(found) == 0 {
		return []Measurement{noMetric(run, d.Metric)}
	}
	for _, i := range found {
		m := &run.Metrics[i]
		for j := range m.Series {
			s := &m.Series[j]
			if !matches(run, d, s.Endpoint, s.Labels) {
				continue
			}
			r := ofSeries(&s.Series, d.Stat, m.ShownUnit(), run.Options.Quantiles)
			r.Target, r.Labels = run.Endpoints[s.Endpoint].Shown(), s.Labels
			out = append(out, r)
		}
	}
	if len(out) == 0 {
		why := fmt.Sprintf("no series of %s has these labels; it has %s", d.Metric, labelExamples(run, found))
		if n := nonFinite(run, d.Metric); n > 0 {
			why += fmt.Sprintf("; others have no number in the window (%d NaN or infinite)", n)
		}
		return []Measurement{missing("%s", why)}
	}
	return out
}

// countSeries is the statistic "series": how many there are. None is no data, so that a misspelt name cannot pass
// "series == 0".
func countSeries(run *summary.Run, d *Assertion) []Measurement {
	found := series(run, &Assertion{Metric: d.Metric, Match: d.Match, Stat: Stat{Name: "samples"}})
	if found[0].Why != "" {
		return found[:1]
	}
	return []Measurement{exact(float64(len(found)), "")}
}

// aggregates reads the groups of series that the grouping makes.
func aggregates(run *summary.Run, d *Assertion) (out []Measurement) {
	found := metrics(run, d.Metric)
	if len(found) == 0 {
		return []Measurement{noMetric(run, d.Metric)}
	}
	for i := range run.Aggregates {
		a := &run.Aggregates[i]
		if !slices.Contains(found, a.Metric) || !matches(run, d, -1, a.Labels) {
			continue
		}
		r := ofAggregate(run, a, d.Stat)
		r.Labels = a.Labels
		out = append(out, r)
	}
	if len(out) == 0 {
		return []Measurement{missing("no group of series of %s has these labels, or it is of a kind that is not taken "+
			"together; it has %s", d.Metric, labelExamples(run, found))}
	}
	return out
}

func ofAggregate(run *summary.Run, a *summary.Aggregate, st Stat) Measurement {
	unit := run.Metrics[a.Metric].ShownUnit()
	switch {
	case a.Refused != "":
		return missing("the series cannot be taken together: %s", a.Refused)
	case st.Name == "resets":
		return exact(float64(a.Resets), "")
	case a.Counter != nil:
		return ofCounter(a.Counter, st, unit).doubted(&a.Increase, st)
	case a.Histogram != nil:
		return ofHistogram(a.Histogram, st, unit, run.Options.Quantiles).doubted(&a.Increase, st)
	case a.Summary != nil:
		return ofSummary(a.Summary, st, unit).doubted(&a.Increase, st)
	case a.Gauge == nil:
		return missing("the series have no number in common")
	}
	exactly := a.Series == 1 || a.Gauge.Rule != "sum"
	switch st.Name {
	case "time_avg":
		return exact(a.Gauge.TimeAvg, unit)
	case "max":
		r := exact(a.Gauge.Max, unit)
		if !exactly {
			r.Low, r.Note = a.Gauge.TimeAvg, "the sum was never higher"
		}
		return r
	case "min":
		r := exact(a.Gauge.Min, unit)
		if !exactly {
			r.High, r.Note = a.Gauge.TimeAvg, "the sum was never lower"
		}
		return r
	}
	return missing("gauges taken together have time_avg, min and max, not %s", st)
}

// derived reads quantities of package catalog, by name or by their id across engines: of each endpoint, or of all
// together.
func derived(run *summary.Run, d *Assertion) (out []Measurement) {
	var names []string
	read := func(q *summary.Derived, group metric.Labels) {
		names = append(names, q.Name)
		if q.Name != d.Metric && q.Canonical != d.Metric {
			return
		}
		labels := group.Join(q.Labels)
		if !matches(run, d, q.Endpoint, labels) {
			return
		}
		r := exact(q.Value, q.Unit)
		if !q.Status.Defined() {
			r = missing("the quantity is %s: it is made of %s", q.Status, strings.Join(q.Families, ", "))
		} else if q.Status != catalog.OK {
			r.Note = q.Status.String()
		}
		if r.Why == "" && !q.Status.Certain() {
			r.Unsure, r.Low, r.High = true, q.Low, q.High
		}
		r.Labels = labels
		if q.Endpoint >= 0 {
			r.Target = run.Endpoints[q.Endpoint].Shown()
		}
		out = append(out, r)
	}
	if d.Grouped {
		for i := range run.Combined {
			if g := &run.Combined[i]; g.Labels.Len() > 0 == (len(d.By) > 0) {
				for j := range g.Derived {
					read(&g.Derived[j], g.Labels)
				}
			}
		}
	} else {
		for i := range run.Derived {
			read(&run.Derived[i], metric.Labels{})
		}
		if len(out) == 0 && len(run.Combined) > 0 { // some are of several endpoints only
			for i := range run.Combined[0].Derived {
				read(&run.Combined[0].Derived[i], metric.Labels{})
			}
		}
	}
	if len(out) == 0 && slices.Contains(names, d.Metric) {
		return []Measurement{missing("no derived quantity %s has these labels", d.Metric)}
	}
	if len(out) == 0 {
		return []Measurement{missing("the run has no derived quantity %s%s", d.Metric, nearest(run, d.Metric, names))}
	}
	return out
}

// request reads what the clients saw.
func (e *Evidence) request(d *Assertion) Measurement {
	if e.Requests == nil {
		why := e.NoRequests
		if why == "" {
			why = "the run has no request events (collect --requests or --proxy, or requests import, adds them)"
		}
		return missing("%s", why)
	}
	r, unit := e.Requests, requestUnits[d.Metric]
	if v, ok := r.Rate(d.Metric); ok && v.Known {
		return exact(v.V, unit)
	} else if ok {
		return missing("%s", v.Reason)
	}
	counts := map[string]int{"issued": r.Issued, "completed": r.Completed, "succeeded": r.Succeeded, "failed": r.Failed,
		"in_flight": r.InFlight}
	if n, ok := counts[d.Metric]; ok {
		if r.Issued == 0 {
			return missing("no request was issued in the window")
		}
		return exact(float64(n), "")
	}
	return ofDistribution(r.Distribution(d.Metric), d.Stat, unit)
}

func ofDistribution(v *events.Distribution, st Stat, unit string) Measurement {
	if v.N == 0 {
		return missing("no request has it: %s", v.Reason)
	}
	scale := 1.0
	if unit == "seconds" {
		scale = 1e-9
	}
	if st.Name == "count" {
		return exact(float64(v.N), "")
	}
	if x, ok := map[string]float64{"avg": v.Mean, "min": v.Min, "max": v.Max}[st.Name]; ok {
		return exact(x*scale, unit)
	}
	q, ok := v.Quantile(st.Arg)
	if !ok {
		var known []string
		for _, q := range v.Quantiles {
			known = append(known, "p"+number(q.P))
		}
		return missing("%s is not among the percentiles of requests (%s)", st, strings.Join(known, ", "))
	}
	return exact(q.Value*scale, unit)
}

// matches reports whether the labels of a series, or of its target, meet the selector.
func matches(run *summary.Run, d *Assertion, endpoint int, labels metric.Labels) bool {
	for i := range d.Match {
		m := &d.Match[i]
		v, ok := labels.Get(m.Label)
		if !ok && endpoint >= 0 {
			switch m.Label {
			case summary.ByTarget:
				v = run.Endpoints[endpoint].Shown()
			case summary.ByEndpoint:
				v = run.Endpoints[endpoint].URL
			default:
				v, _ = run.Endpoints[endpoint].Labels.Get(m.Label)
			}
		}
		if !m.Matches(v) {
			return false
		}
	}
	return true
}

// labelExamples lists label sets that metrics do have, for a message.
func labelExamples(run *summary.Run, found []int) string {
	var out []string
	for _, i := range found {
		for j := range run.Metrics[i].Series {
			if text := run.Metrics[i].Series[j].Labels.String(); !slices.Contains(out, text) {
				out = append(out, text)
			}
			if len(out) > 3 {
				return strings.Join(out[:3], ", ") + ", ..."
			}
		}
	}
	return strings.Join(out, ", ")
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

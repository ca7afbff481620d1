package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/headline"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// isDerived reports whether the program derives a quantity of that name.
func isDerived(name string) bool {
	for _, p := range catalog.Embedded().Packs() {
		for i := range p.Rules {
			if n := p.Rules[i].Name; n == name || n == "" && strings.HasPrefix(name, "triton_derived_") {
				return true
			}
		}
	}
	return false
}

// word is the statistic as package headline spells it.
func (s Stat) word() string {
	switch s.Name {
	case "avg", "time_avg":
		return "mean"
	case "p":
		return s.String()
	}
	return s.Name
}

// validateQuantity finds what no run could make right in an expression of a word.
func (d *Assertion) validateQuantity() error {
	w, _, _ := headline.Parse(d.Metric)
	unit := w.Unit
	switch row, ok := w.Row(d.Stat.word()); {
	case ok:
		unit = row.Unit
	case d.Stat.Name == "":
		return fmt.Errorf("which statistic of %s? known: %s", w.Name, w.Stats())
	case w.Kind == headline.Distribution && d.Stat.Name == "share":
		if _, err := convert(d.Stat.Arg, d.Stat.Unit, unit); err != nil || d.Stat.Unit == "" && unit == "seconds" {
			return fmt.Errorf("%s: want a time, such as share(450ms)", d.Stat)
		}
		unit = "ratio"
	case d.Stat.Name == "count" && w.Kind == headline.Distribution, d.Stat.Name == "resets", d.Stat.Name == "samples",
		d.Stat.Name == "series":
		unit = ""
	case d.Stat.Name == "rate" && w.Kind == headline.Counter:
		unit = perSecond(unit)
	case !strings.Contains(", "+w.Stats()+",", ", "+d.Stat.Name+","):
		return fmt.Errorf("%s has no statistic %s (known: %s)", w.Name, d.Stat, cmp.Or(w.Stats(), "none, it is one number"))
	}
	if d.Want.Baseline {
		return nil
	}
	return d.fits(unit)
}

// quantities reads a word: what headlines have of it once for each engine and model, as show prints it. Where series
// are selected or grouped, and for other statistics, it stands for the families of its id.
func quantities(run *summary.Run, d *Assertion) []Measurement {
	w, _, _ := headline.Parse(d.Metric)
	plain := len(d.Match) == 0 && !d.Grouped
	row, ok := w.Row(d.Stat.word())
	if !ok && w.Kind == headline.Distribution && d.Stat.Name != "resets" {
		row, ok = w.Row("p50") // whose counts tell the rest
	}
	if plain && ok {
		if out := ofHeadline(run, row, d); len(out) > 0 {
			return out
		}
	}
	of := *d
	if of.Stat.Name == "" || of.Stat.Name == "avg" && w.Kind == headline.Level {
		of.Stat.Name = "time_avg"
	}
	switch found := ofWord(run, w.ID); {
	case len(found) == 0 || w.Kind == headline.Number:
		of.Metric = w.Derived()
		if out := derived(run, &of); of.Metric != "" && !strings.Contains(out[0].Why, "has no derived quantity") {
			return out
		}
		return []Measurement{missing("no server of the run shows %s%s", w.Name, has(run))}
	case d.Stat.Name == "series":
		return countSeries(run, &of)
	case d.Grouped:
		return aggregates(run, &of)
	}
	return series(run, &of)
}

// has lists words that the run has, for a message.
func has(run *summary.Run) string {
	var names []string
	for _, g := range headline.Of(run, run.Options.Catalog) {
		for _, v := range g.Values {
			names = append(names, v.Name())
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; it has " + strings.Join(slices.Compact(names), ", ")
}

// ofWord returns the metrics of a canonical id.
func ofWord(run *summary.Run, id string) (out []int) {
	for i := range run.Metrics {
		if f, ok := run.Options.Catalog.Family(run.Metrics[i].Name); ok && f.Canonical == id {
			out = append(out, i)
		}
	}
	return out
}

// ofHeadline reads a row of each engine and model that has it.
func ofHeadline(run *summary.Run, row headline.Row, d *Assertion) (out []Measurement) {
	groups := headline.Of(run, run.Options.Catalog, row)
	for i := range groups {
		g := &groups[i]
		for k := range g.More {
			r := ofValue(&g.More[k], d.Stat)
			if len(groups) > 1 {
				r.Labels = metric.NewLabels(metric.Label{Name: "engine", Value: g.Engine},
					metric.Label{Name: "model", Value: g.Model})
			}
			out = append(out, r)
		}
	}
	return out
}

// ofValue reads a statistic of a value.
func ofValue(v *headline.Value, st Stat) Measurement {
	if v.Missing != "" && !(st.Name == "count" && v.Missing == "no observations in the window") {
		return missing("%s", v.Missing)
	}
	r := exact(v.Value, v.Unit)
	switch _, percentile := v.Quantile(); {
	case st.Name == "count":
		r = exact(v.Count, "")
	case st.Name == "share":
		x, err := convert(st.Arg, st.Unit, v.Unit)
		if err != nil {
			return missing("%s: %v", st, err)
		}
		var buckets []normalize.Bucket
		for i := range v.Bounds {
			buckets = append(buckets, normalize.Bucket{Upper: v.Bounds[i], Count: int64(v.Pooled[i])})
		}
		r = shareAt(buckets, x)
	case percentile:
		r.Low, r.High, r.Note = v.Low, v.High, strings.Join(summary.FlagNames(v.Flags), " ")
		if math.IsNaN(v.Low) || math.IsNaN(v.High) {
			r.Low, r.High = math.Inf(-1), math.Inf(1)
		}
	}
	if !v.Status.Certain() {
		r.Unsure, r.Note, r.Low, r.High = true, v.Unsure, math.Inf(-1), math.Inf(1)
		if !math.IsNaN(v.Low) && !math.IsNaN(v.High) && st.Name == "" {
			r.Low, r.High = v.Low, v.High
		}
	}
	return r
}

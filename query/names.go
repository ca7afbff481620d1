package query

import (
	"path"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/headline"
	"github.com/scrapestat/scrapestat/internal/suggest"
	"github.com/scrapestat/scrapestat/summary"
)

// The statistics, percentiles aside.
var stats = []string{"total", "rate", "avg", "time_avg", "min", "max", "std", "count", "sum", "last", "ratio", "value"}

// mean is a statistic whatever it is called of a kind: avg, time_avg or value.
const mean = "mean"

// IsStat reports whether there is such a statistic.
func IsStat(name string) bool {
	_, percentile := ParsePercentile(name)
	return percentile || name == mean || slices.Contains(stats, name)
}

// isMean reports whether a statistic is what mean stands for.
func isMean(stat, kind, span string) bool {
	if kind == "gauge" && span != SpanSlice {
		return stat == "time_avg"
	}
	return stat == "avg" || stat == "value"
}

// known is what a run can be asked for under a name.
type known struct {
	metric, quantity string
	derived          bool
}

// wanted is what a name of Options.Metrics means, of which it takes only some statistics; nil takes all.
type wanted struct {
	match func(known) bool
	stats []string
}

// ID is the canonical id of a word of the vocabulary, "ttft_s" of "ttft"; ok is false for one that is none.
func ID(word string) (id string, ok bool) {
	if w, stat, ok := headline.Parse(word); ok && stat == "" {
		return w.ID, true
	}
	_, ok = catalog.CanonicalOf(word)
	return word, ok
}

// meanings are what a name may mean, the one that is taken first if the run has it.
func meanings(c *catalog.Catalog, name string) []wanted {
	if derived, ok := strings.CutPrefix(name, "derived:"); ok {
		return []wanted{{match: func(k known) bool {
			ok, _ := path.Match(derived, k.metric)
			return ok && k.derived
		}}}
	}
	if strings.ContainsAny(name, "*?[") {
		return []wanted{{match: func(k known) bool {
			family, _ := path.Match(name, k.metric)
			id, _ := path.Match(name, k.quantity)
			return family || id && k.quantity != ""
		}}}
	}
	out := []wanted{{match: named(c, name)}}
	for i := 1; i < len(name); i++ {
		word, stat := name[:i], name[i+1:]
		if _, isWord := ID(word); (name[i] == ' ' || name[i] == '_' && isWord) && IsStat(stat) {
			out = append(out, wanted{named(c, word), []string{stat}})
		}
	}
	if w, stat, ok := headline.Parse(name); ok && (stat == "" || stat == mean) && w.Derived() != "" {
		out = append(out, wanted{match: func(k known) bool { // where no family has it
			return k.derived && (k.quantity == w.Derived() || k.metric == w.Derived())
		}})
	}
	return out
}

// named matches a family by any of its names, a derived quantity, and an id or its word.
func named(c *catalog.Catalog, name string) func(known) bool {
	id, isID := ID(name)
	f, isFamily := c.Family(strings.TrimSuffix(name, "_total"))
	return func(k known) bool {
		if k.metric == name || isID && k.quantity == id {
			return true
		}
		if !isFamily {
			return false
		}
		other, ok := c.Family(k.metric)
		return ok && other == f
	}
}

// choose finds what the names of a query mean in a run; unknown are those that it has nothing of.
func choose(r *summary.Run, names []string) (list []wanted, unknown []string) {
	all := have(r)
	for _, name := range names {
		found := false
		for _, w := range meanings(r.Options.Catalog, name) {
			if slices.ContainsFunc(all, w.match) {
				list, found = append(list, w), true
				break
			}
		}
		if !found {
			unknown = append(unknown, name)
		}
	}
	return list, unknown
}

// have is what a run can be asked for.
func have(r *summary.Run) (out []known) {
	for _, metrics := range [][]summary.Metric{r.Metrics, r.Warmup} {
		for i := range metrics {
			out = append(out, known{metrics[i].Name, r.Options.Catalog.Canonical(metrics[i].Name), false})
		}
	}
	for i := range r.Derived {
		out = append(out, known{r.Derived[i].Name, r.Derived[i].Canonical, true})
	}
	for i := range r.Combined {
		for k := range r.Combined[i].Derived {
			d := &r.Combined[i].Derived[k]
			out = append(out, known{d.Name, d.Canonical, true})
		}
	}
	return out
}

// Unknown returns the names of a query of which a run has nothing.
func Unknown(r *summary.Run, names []string) []string {
	_, unknown := choose(r, names)
	return unknown
}

// Nearest returns up to three names that runs know and that look like name.
func Nearest(name string, runs ...*summary.Run) []string {
	var all []string
	for _, r := range runs {
		for _, k := range have(r) {
			all = append(all, k.metric)
			if k.quantity != "" {
				all = append(all, k.quantity, strings.TrimSuffix(k.quantity, "_s"))
			}
		}
	}
	slices.Sort(all)
	return suggest.Nearest(name, slices.Compact(all))
}

// StatNames are the statistics that there are, percentiles aside.
func StatNames() []string { return append(slices.Clone(stats), mean) }

// Engines are the packs that know something of a run.
func Engines(r *summary.Run) (out []string) {
	for _, k := range have(r) {
		if f, ok := r.Options.Catalog.Family(k.metric); ok && f.Engine != "generic" && !slices.Contains(out, f.Engine) {
			out = append(out, f.Engine)
		}
	}
	return out
}

// Families returns a function that reports whether names of a query mean a family.
func Families(r *summary.Run, names []string) func(family string) bool {
	list, _ := choose(r, names)
	return func(family string) bool {
		k := known{family, r.Options.Catalog.Canonical(family), false}
		return slices.ContainsFunc(list, func(w wanted) bool { return w.match(k) })
	}
}

package compare

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/headline"
)

// severity orders verdicts, the worst first.
func severity(v Verdict) int {
	return slices.Index([]Verdict{Worse, Better, Changed, NeedsRepeats, Incomparable, Same}, v)
}

// sortRows puts the worst first: by verdict, what the catalog holds for important, then the size of the change.
func sortRows(rows []Row) {
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(
			cmp.Compare(severity(a.Verdict()), severity(b.Verdict())),
			compareBool(b.Headline, a.Headline),
			cmp.Compare(b.largest(), a.largest()),
			cmp.Compare(a.Family, b.Family),
			cmp.Compare(a.Stat, b.Stat),
			cmp.Compare(a.Target, b.Target),
			a.Labels.Compare(b.Labels),
		)
	})
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// largest is the largest change of the row relative to the smaller value; 0 where there is none.
func (r *Row) largest() float64 {
	out := 0.0
	for side := 1; side < len(r.Cells); side++ {
		if a, b := r.Cells[0].Value, r.Cells[side].Value; !math.IsNaN(a) && !math.IsNaN(b) {
			out = max(out, relative(a, b))
		}
	}
	return out
}

// Profiles returns the names that Options.Profile knows: the engines of the catalog and its packs of derived
// quantities, sorted.
func Profiles(c *catalog.Catalog) []string {
	names := map[string]bool{}
	for _, f := range c.Families() {
		names[f.Engine] = true
	}
	for _, p := range c.Packs() {
		names[p.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// selected reports whether a row is asked for.
func (c *comparer) selected(d *draft) bool {
	if c.o.Metric != nil && !slices.ContainsFunc(append(d.called(), d.Family, d.key), c.o.Metric.MatchString) {
		return false
	}
	return c.o.Profile == "" || ofProfile(d.facts.engine, c.o.Profile) && d.facts.headline
}

// called are the names of a row: those of its families, and its words.
func (d *draft) called() []string {
	out, canonical := slices.Clone(d.Names), d.facts.canonical
	if d.facts.family != nil {
		canonical = d.facts.family.Canonical
	}
	if row, ok := headline.Named(canonical + "_" + d.Stat); ok {
		return append(out, canonical, row.ID, row.Name())
	}
	return append(out, headline.Names(canonical)...)
}

// ofProfile reports whether an engine or pack belongs to a profile: triton has those of its host and statistics, and
// vllm-omni the vLLM engines of its stages.
func ofProfile(engine, profile string) bool {
	return engine == profile || strings.HasPrefix(engine, profile+"-") ||
		engine != "" && strings.HasPrefix(profile, engine+"-")
}

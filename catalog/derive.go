package catalog

import (
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog/pack"
	"github.com/scrapestat/scrapestat/catalog/quantity"
	"github.com/scrapestat/scrapestat/metric"
)

// Derived is one derived quantity.
type Derived struct {
	Pack   string // that it belongs to: "triton-stats"
	Name   string
	Unit   string // as package units names it; "" for none
	Labels metric.Labels
	Status Status
	// Value is the quantity. Shown is what is to be shown to a person: the same, or the nearest value that makes sense, 0
	// for a negative overhead. Both are 0 unless Status.Defined.
	Value, Shown float64
	// Numerator and Denominator are what Value is the quotient of, in the unit of the quantity and 1. A quantity that is
	// no quotient has HasParts unset.
	Numerator, Denominator float64
	HasParts               bool
	// Low and High bound the quantity where its status is Ambiguous or LowerBound; -Inf and +Inf are no bound.
	Low, High float64
	Families  []string // that it was made of, sorted, by their newest names
	Flags     []string // stable words: "negative", "implausible", ...

	// Help is what it means, Better which way it gets better, Question what it helps to answer. Headline is set for the
	// dozen of an engine that explain a run. Canonical is its id across engines, "" for none.
	Help      string
	Better    Direction
	Category  Category
	Headline  bool
	Canonical string
}

// Flag adds a flag.
func (d *Derived) Flag(name string) {
	if !slices.Contains(d.Flags, name) {
		d.Flags = append(d.Flags, name)
	}
}

// Rule makes one quantity.
type Rule struct {
	*pack.Quantity
	native func(*View, []quantity.Binding) []Derived // nil for a formula; with the one beside it, bound
}

// Pack is the rules of one kind of server.
type Pack struct {
	Name     string
	Title    string   // of the engine, for people; "" is Name
	Prefixes []string // of the families it reads, by their newest names
	Scope    []string // labels whose values keep results apart; nil is one result
	// Split are labels that keep results apart where series have them. A series without one of them belongs to each
	// result that agrees with the others.
	Split []string
	Rules []Rule
	// Check may flag a result that is done; nil is no check.
	Check func(*View, *Derived)

	requires string // a prefix of families without which there is nothing to tell
}

// Span says what a stretch is.
type Span uint8

// The spans. Window is the whole window, Slice a part of it.
const (
	Window Span = iota
	Slice
)

func (p *Pack) reads(family string) bool {
	return slices.ContainsFunc(p.Prefixes, func(prefix string) bool { return strings.HasPrefix(family, prefix) })
}

// Reads reports whether a pack reads the family, so that gains of others need not be made.
func (c *Catalog) Reads(family string) bool {
	if f, ok := c.Family(family); ok {
		family = f.Name
	}
	return slices.ContainsFunc(c.Packs(), func(p Pack) bool { return p.reads(family) })
}

// Describe adds what its rule says of a result that was read.
func (c *Catalog) Describe(d *Derived) {
	for _, p := range c.Packs() {
		if p.Name != d.Pack {
			continue
		}
		for i := range p.Rules {
			if r := &p.Rules[i]; r.Name == d.Name {
				d.Help, d.Better, d.Category, d.Headline, d.Canonical = r.Help, r.Better, r.Category, r.Headline, r.Canonical
				return
			}
		}
	}
}

// apply makes the results of a native in one scope.
func (p *Pack) apply(v *View, r *Rule, bound []quantity.Binding) []Derived {
	out := r.native(v, bound)
	for i := range out {
		v.doubt(&out[i])
		r.finish(&out[i], v, p, join(v.Scope, out[i].Labels))
	}
	return out
}

// atBest lowers a status that is better than the quantity can have.
func (d *Derived) atBest(s Status) {
	if d.Status < s && d.Status.Defined() {
		if d.Status == ResetCorrected {
			d.Flag("reset_corrected")
		}
		d.Status = s
	}
}

// doubt lowers the status of a native's result to that of the least sure increase that it was made of.
func (v *View) doubt(d *Derived) {
	worst := OK
	for _, family := range d.Families {
		for _, g := range v.byName[family] {
			if g.Status > worst && agree(g.Labels, d.Labels) {
				worst = g.Status
			}
		}
	}
	if worst == OK {
		return
	}
	d.Low, d.High = math.Inf(-1), math.Inf(1)
	if worst == LowerBound {
		worst = Ambiguous // what it was computed of need not make it a bound, too
	}
	d.Status = max(d.Status, worst)
}

// agree reports whether labels that both have are equal.
func agree(a, b metric.Labels) bool {
	for name, value := range a.All() {
		if other, ok := b.Get(name); ok && other != value {
			return false
		}
	}
	return true
}

// settle brings a result into its final form.
func (d *Derived) settle() {
	slices.Sort(d.Families)
	d.Families = slices.Compact(d.Families)
	if d.Status.Defined() && (math.IsNaN(d.Value) || math.IsInf(d.Value, 0)) {
		d.Status = Missing
	}
	if !d.Status.Defined() {
		d.Value, d.Shown = 0, 0
	}
}

// divide makes a quotient of sums; false when nothing of it is there.
func (v *View) divide(n, d []Term) (out Derived, any bool) {
	num, den := v.sum(n), total{sum: v.Seconds}
	if d != nil {
		den = v.sum(d)
	}
	out = Derived{Families: append(num.families, den.families...), Numerator: num.sum, Denominator: den.sum,
		HasParts: true}
	switch {
	case num.missing || den.missing:
		out.Status, out.HasParts, out.Numerator, out.Denominator = Missing, false, 0, 0
	case den.sum == 0:
		out.Status = ZeroDenominator
	default:
		out.Value = num.sum / den.sum
		if num.resets+den.resets > 0 {
			out.Status = ResetCorrected
		}
		if num.born || den.born {
			out.atBest(BornInWindow)
		}
		if num.bound || den.bound {
			out.atBest(Bound)
		}
	}
	out.Shown = out.Value
	return out, num.series+den.series > 0
}

// total is the value of several terms.
type total struct {
	sum                  float64
	series, resets       int
	missing, bound, born bool
	families             []string
}

func (v *View) sum(terms []Term) total {
	var t total
	for _, term := range terms {
		a := v.Amount(term)
		if a.Series > 0 || !term.Optional {
			t.families = append(t.families, term.Family)
		}
		t.sum += a.Value
		t.series += a.Series
		t.resets += a.Resets
		t.missing = t.missing || a.Series == 0 && !term.Optional
		t.bound = t.bound || a.Bound
		t.born = t.born || a.Born
	}
	return t
}

// pairs returns the pairs of a label set.
func pairs(l metric.Labels) []metric.Label {
	out := make([]metric.Label, 0, l.Len())
	for name, value := range l.All() {
		out = append(out, metric.Label{Name: name, Value: value})
	}
	return out
}

// join returns the union of two label sets; b wins.
func join(a, b metric.Labels) metric.Labels {
	switch {
	case b.Len() == 0:
		return a
	case a.Len() == 0:
		return b
	}
	return metric.NewLabels(append(pairs(a), pairs(b)...)...)
}

func label(results []Derived, l metric.Labels) []Derived {
	for i := range results {
		results[i].Labels = join(results[i].Labels, l)
	}
	return results
}

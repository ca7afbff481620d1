package catalog

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// Status says how far a derived value can be believed.
type Status uint8

// The statuses. The first ones come with a value.
const (
	OK             Status = iota
	ResetCorrected        // counters of it were reset; each restart counted from zero
	BornInWindow          // a series of it appeared in the window, and counts from zero
	Partial               // part of the input is missing, and the value says so
	Estimate              // not exact
	Bound                 // a bound of the quantity
	ZeroDenominator
	Missing // part of the input does not exist
)

var statusNames = [...]string{"ok", "reset_corrected", "born_in_window", "partial", "estimate", "bound",
	"zero_denominator", "missing"}

// String returns the name of the status as exports spell it.
func (s Status) String() string {
	if int(s) >= len(statusNames) {
		return "status(" + strconv.Itoa(int(s)) + ")"
	}
	return statusNames[s]
}

// Defined reports whether there is a value.
func (s Status) Defined() bool { return s < ZeroDenominator }

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
	Families               []string // that it was made of, sorted, by their newest names
	Flags                  []string // stable words: "negative", "implausible", ...

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
	Name, Unit, Help string
	// By are labels beyond the scope of the pack: one result for each combination of their values among the series of the
	// first term of Num.
	By []string
	// Num and Den are the sums of which the quantity is the quotient. A nil Den is the time in seconds.
	Num, Den []Term
	// Else are what else it can be made of, where the input of Num and Den is missing, the best first.
	Else []Fallback
	// Status is what a value of it is at best: Estimate, say.
	Status Status
	// Better, Question, Headline and Canonical are those of Derived.
	Better    Direction
	Category  Category
	Headline  bool
	Canonical string
	// Formula is for people; "" is made of Num and Den.
	Formula string
	// Make makes what is no quotient; the other fields but By are then unused. Of its results only labels beyond the
	// scope, and Name and Unit where they differ from those of the rule, need be set.
	Make func(*View) []Derived
	// WindowOnly reports whether slices have no such quantity.
	WindowOnly bool
}

// Fallback is another way to the quantity of a rule, with the best status that it can have.
type Fallback struct {
	Num, Den []Term
	Status   Status
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
}

// Span says what a stretch is.
type Span uint8

// The spans. Window is the whole window, Slice a part of it.
const (
	Window Span = iota
	Slice
)

// Packs returns all packs, in the order in which Derive applies them: one or more of each engine, in files of their
// names.
func Packs() []Pack {
	return slices.Concat(genericPacks(), vllmPacks(), omniPacks(), sglangPacks(), trtllmPacks(), dynamoPacks(),
		tritonServerPacks(), torchservePacks(), tgiPacks(), llamaPacks(), rayPacks(), lmcachePacks(), dcgmPacks(),
		tritonPacks())
}

func (p *Pack) reads(family string) bool { return hasPrefix(family, p.Prefixes) }

// Reads reports whether a pack reads the family, so that gains of others need not be made.
func (c *Catalog) Reads(family string) bool {
	if f, ok := c.Family(family); ok {
		family = f.Name
	}
	return slices.ContainsFunc(c.rules(), func(p Pack) bool { return p.reads(family) })
}

// apply makes the results of a rule in one scope.
func (p *Pack) apply(v *View, r *Rule) []Derived {
	var out []Derived
	switch {
	case r.Make != nil:
		out = r.Make(v)
	case len(r.By) == 0:
		out = quotient(v, r)
	default:
		terms := v.part(metric.Labels{})
		terms.byName[""] = v.termSeries(r)
		for _, g := range terms.split(r.By) {
			out = append(out, label(quotient(v.within(v.Scope, pairs(g.Scope)), r), g.Scope)...)
		}
		slices.SortStableFunc(out, func(a, b Derived) int { return compareLabels(a.Labels, b.Labels) })
	}
	for i := range out {
		d := &out[i]
		d.Pack, d.Name, d.Unit = p.Name, cmp.Or(d.Name, r.Name), cmp.Or(d.Unit, r.Unit)
		d.Labels = join(v.Scope, d.Labels)
		d.Help, d.Better, d.Category, d.Headline, d.Canonical = cmp.Or(d.Help, r.Help), r.Better, r.Category, r.Headline,
			r.Canonical
		d.atBest(r.Status)
		d.settle()
		if p.Check != nil && d.Status.Defined() {
			p.Check(v, d)
		}
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

// termSeries are the series by whose labels the results of a rule differ: those of the first term of the first way
// that has some.
func (v *View) termSeries(r *Rule) []*Gain {
	series := v.Series(r.Num[0].Family, r.Num[0].Where...)
	for i := 0; len(series) == 0 && i < len(r.Else); i++ {
		series = v.Series(r.Else[i].Num[0].Family, r.Else[i].Num[0].Where...)
	}
	return series
}

// quotient applies a rule of sums in the first way that has all its input. It gives nothing when there is none of the
// input.
func quotient(v *View, r *Rule) []Derived {
	first, any := v.divide(r.Num, r.Den)
	if any && first.Status != Missing {
		return []Derived{first}
	}
	for _, way := range r.Else {
		d, some := v.divide(way.Num, way.Den)
		if some && d.Status != Missing {
			d.atBest(way.Status)
			return []Derived{d}
		}
		if some && !any {
			first, any = d, true
		}
	}
	if !any {
		return nil
	}
	return []Derived{first}
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
	if b.Len() == 0 {
		return a
	}
	return metric.NewLabels(append(pairs(a), pairs(b)...)...)
}

func label(results []Derived, l metric.Labels) []Derived {
	for i := range results {
		results[i].Labels = join(results[i].Labels, l)
	}
	return results
}

// compareLabels orders sets of the same names by value, numbers as numbers.
func compareLabels(a, b metric.Labels) int {
	for name, value := range a.All() {
		other, _ := b.Get(name)
		x, errX := strconv.ParseUint(value, 10, 64)
		y, errY := strconv.ParseUint(other, 10, 64)
		if errX == nil && errY == nil && x != y {
			return cmp.Compare(x, y)
		}
		if c := strings.Compare(value, other); c != 0 {
			return c
		}
	}
	return 0
}

package catalog

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/catalog/pack"
	"github.com/scrapestat/scrapestat/catalog/quantity"
	"github.com/scrapestat/scrapestat/metric"
)

// newPack makes the rules of a pack.
func newPack(p *pack.Pack, algorithms map[string]native) (Pack, error) {
	out := Pack{Name: p.Name, Title: p.Title, Prefixes: p.Reads, Scope: p.Scope, Split: p.Split, requires: p.Requires}
	if p.Implausible > 0 {
		out.Check = func(v *View, d *Derived) {
			if d.Unit == "seconds" && v.Seconds > 0 && math.Abs(d.Value) > p.Implausible*v.Seconds {
				d.Flag("implausible")
			}
		}
	}
	for _, q := range p.Quantities {
		r := Rule{Quantity: q}
		if q.Native != "" {
			algorithm, ok := algorithms[q.Native]
			if !ok {
				return out, fmt.Errorf("quantity %s: there is no native %s", q.Name, q.Native)
			}
			told := argument{engine: cmp.Or(p.Of, p.Name), asked: q.Formula.Is != nil, at: q.At}
			if told.asked {
				told.first = r.Families()[0]
			}
			r.native = func(v *View, bound []quantity.Binding) []Derived { return algorithm(v, told.of(v, bound)) }
		}
		out.Rules = append(out.Rules, r)
	}
	return out, nil
}

// Families returns the families that the rule is made of, those of its first way.
func (r *Rule) Families() []string {
	if r.Formula.Is == nil {
		return nil
	}
	return r.Formula.Is.Families()
}

// native is an algorithm that no formula expresses. Its argument is the value of the formula beside it, and false when
// there is none.
type native func(v *View, of argument) []Derived

// argument is the value of the formula beside a native; ok is unset when it has none.
type argument struct {
	Derived
	engine    string // of the families
	asked, ok bool   // whether there is a formula
	first     string // its first family
	at        []float64
}

// of evaluates the formula: the first of its results.
func (a argument) of(v *View, bound []quantity.Binding) argument {
	for i := 0; i < len(bound) && !a.ok; i++ {
		a.Derived = Derived{}
		a.ok = a.evaluate(&bound[i], v)
	}
	return a
}

// source has the series of a view for formulas.
type source struct{ *View }

func (s source) Series(family string) []*Gain { return s.byName[family] }
func (s source) Input(name string) float64 {
	in := s.Inputs()
	return in.Input(name)
}

// formulas are the rules of one scope that are formulas, bound to its series.
type formulas struct {
	bindings [][]quantity.Binding // by rule
	quality  [][][]string         // what keeps the families of a binding from being exact
	edges    []*quantity.Binding
}

func (p *Pack) bind(v *View) formulas {
	f := formulas{make([][]quantity.Binding, len(p.Rules)), make([][][]string, len(p.Rules)),
		make([]*quantity.Binding, len(p.Rules))}
	for i := range p.Rules {
		q := p.Rules[i]
		if q.Formula.Is != nil {
			f.bindings[i] = q.Formula.Bind(source{v})
		}
		if q.native != nil {
			continue
		}
		for k := range f.bindings[i] {
			b := &f.bindings[i][k]
			b.Labels = join(v.Scope, b.Labels)
			f.quality[i] = append(f.quality[i], v.catalog.qualities(b.Families))
		}
		if q.Edges != nil {
			f.edges[i] = &q.Edges.Bind(source{v})[0]
		}
	}
	return f
}

// qualities are what keeps some families from being exact.
func (c *Catalog) qualities(families []string) (out []string) {
	for _, name := range families {
		if f, ok := c.Family(name); ok && f.Quality != "" && !slices.Contains(out, f.Quality) {
			out = append(out, f.Quality)
		}
	}
	return slices.Clip(out)
}

// evaluate makes the results of a rule that is a formula.
func (f *formulas) evaluate(out []Derived, i int, v *View, p *Pack) []Derived {
	r := &p.Rules[i]
	for k := range f.bindings[i] {
		b := &f.bindings[i][k]
		out = append(out, Derived{})
		d := &out[len(out)-1]
		if !d.evaluate(b, v) {
			out = out[:len(out)-1]
			continue
		}
		if q := f.quality[i][k]; len(q) > 0 && d.Status.Defined() {
			d.Flags = append(q, d.Flags...)
			d.atBest(Estimate)
		}
		if r.finish(d, v, p, b.Labels); r.Tolerance > 0 && d.Status.Defined() {
			allowed := r.Tolerance
			if f.edges[i] != nil {
				share, _ := f.edges[i].Eval(v.stretch)
				allowed += share.Value
			}
			if math.Abs(d.Value) > allowed {
				d.Flag("violated")
			}
		}
	}
	return out
}

// evaluate fills in what a formula gives; false when there is nothing.
func (d *Derived) evaluate(b *quantity.Binding, v *View) bool {
	r, ok := b.Eval(v.stretch)
	d.Labels, d.Status, d.Value, d.Shown = b.Labels, r.Status, r.Value, r.Shown
	d.Numerator, d.Denominator, d.HasParts, d.Low, d.High = r.Numerator, r.Denominator, r.HasParts, r.Low, r.High
	d.Families = slices.Clip(b.Families)
	if r.Resets {
		d.Flag("reset_corrected")
	}
	if r.Negative {
		d.Flag("negative")
	}
	if r.Disabled {
		d.Flag("not_enabled")
	}
	return ok
}

// finish says what the rule knows of a result with these labels.
func (r *Rule) finish(d *Derived, v *View, p *Pack, labels metric.Labels) {
	d.Pack, d.Name, d.Unit, d.Labels = p.Name, cmp.Or(d.Name, r.Name), cmp.Or(d.Unit, r.Unit), labels
	d.Help, d.Better, d.Category, d.Headline, d.Canonical = cmp.Or(d.Help, r.Help), r.Better, r.Category, r.Headline,
		r.Canonical
	d.atBest(r.Status)
	d.settle()
	if p.Check != nil && d.Status.Defined() {
		p.Check(v, d)
	}
}

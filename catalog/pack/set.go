package pack

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog/quantity"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/units"
)

// Set is several packs together: their families by all names, and their quantities with formulas. A nil Set knows
// nothing.
type Set struct {
	packs    []*Pack
	families []*Family // sorted by engine, then name
	byName   map[string]*Family
	patterns []Pattern
	stems    map[[2]string]*Family  // by engine and name without prefix
	relabel  map[string][][2]string // by engine
	inputs   Inputs
	problems []Problem
}

// wrapper begins the names of families that Ray passes on for another server.
const wrapper = "ray_"

// Join puts packs together. A family or quantity of a later pack replaces that of its name in an earlier one of the
// same name. The set is usable only without problems.
func Join(packs ...*Pack) (*Set, []Problem) {
	s := &Set{byName: map[string]*Family{}, relabel: map[string][][2]string{}}
	for _, p := range packs {
		s.add(p)
	}
	slices.SortFunc(s.families, func(a, b *Family) int {
		return cmp.Or(strings.Compare(a.Engine, b.Engine), strings.Compare(a.Name, b.Name))
	})
	slices.SortStableFunc(s.packs, func(a, b *Pack) int { return a.Rank - b.Rank })
	s.stems = map[[2]string]*Family{}
	for _, f := range s.families {
		s.stems[[2]string{f.home, f.stem}] = f
	}
	for _, p := range s.packs {
		s.link(p)
	}
	s.wrapped()
	return s, s.problems
}

// wrapped finds families whose name is what a wrapper makes of another one's.
func (s *Set) wrapped() {
	for _, p := range s.packs {
		for i, f := range p.Families {
			plain, ok := strings.CutPrefix(f.Name, wrapper)
			if other := s.byName[plain]; ok && other != nil && other != s.byName[f.Name] {
				s.fail(p, p.lines[i], "family %q: is the name of %s of %s under %s", f.stem, other.Name, other.Engine, wrapper)
			}
		}
	}
}

func (s *Set) fail(p *Pack, at position, format string, args ...any) {
	s.problems = append(s.problems, Problem{p.file, at.Line, at.Column, fmt.Sprintf(format, args...)})
}

// add enters the families of a pack, and the pack in the place of one of its name.
func (s *Set) add(p *Pack) {
	s.inputs.merge(&p.Inputs)
	for _, from := range slices.Sorted(maps.Keys(p.Relabel)) {
		s.relabel[p.Name] = append(slices.Clip(s.relabel[p.Name]), [2]string{from, p.Relabel[from]})
	}
	s.patterns = append(s.patterns, p.Patterns...)
	for i, f := range p.Families {
		if old := s.byName[f.Name]; old != nil {
			if old.Name != f.Name || slices.Contains(p.Families[:i], old) {
				s.fail(p, p.lines[i], "family %q: is listed already, as %s of %s", f.stem, old.Name, old.Engine)
				continue
			}
			s.drop(old)
			c := *f
			f, c.stem, c.home = &c, old.stem, old.home
		}
		if err := s.enter(f); err != nil {
			s.fail(p, p.lines[i], "family %q: %v", f.stem, err)
		}
	}
	c := *p // formulas are those of the set
	c.Quantities = nil
	for _, q := range p.Quantities {
		q := *q
		c.Quantities = append(c.Quantities, &q)
	}
	i := slices.IndexFunc(s.packs, func(q *Pack) bool { return q.Name == p.Name && q.Part == p.Part })
	if i < 0 {
		s.packs = append(s.packs, &c)
		return
	}
	s.packs[i].take(&c)
}

// take adds the quantities of a later pack of the same name.
func (p *Pack) take(later *Pack) {
	for _, q := range later.Quantities {
		same := func(o *Quantity) bool { return o.Name == q.Name && o.Native == q.Native }
		if i := slices.IndexFunc(p.Quantities, same); i >= 0 {
			p.Quantities[i] = q
		} else {
			p.Quantities = append(p.Quantities, q)
		}
	}
}

// enter makes a family known under all its names, as they are and as a collector writes them that allows no colons.
func (s *Set) enter(f *Family) error {
	for _, as := range append([]string{f.Name}, f.Aliases...) {
		for _, n := range []string{as, sanitised(as)} {
			if old := s.byName[n]; old != nil && old != f {
				return fmt.Errorf("name %s belongs to %s of %s", n, old.Name, old.Engine)
			}
			if s.byName[n] = f; len(s.byName) > 20*maxFamilies {
				return fmt.Errorf("more than %d names", 20*maxFamilies)
			}
		}
	}
	s.families = append(s.families, f)
	return nil
}

func (s *Set) drop(f *Family) {
	maps.DeleteFunc(s.byName, func(_ string, g *Family) bool { return g == f })
	s.families = slices.DeleteFunc(s.families, func(g *Family) bool { return g == f })
}

// merge takes what a later pack says.
func (in *Inputs) merge(later *Inputs) {
	in.PeakTFLOPS = cmp.Or(later.PeakTFLOPS, in.PeakTFLOPS)
	in.PeakGBs = cmp.Or(later.PeakGBs, in.PeakGBs)
	if in.SLO == nil {
		in.SLO = map[string]float64{}
	}
	maps.Copy(in.SLO, later.SLO)
}

// Packs returns the packs, by rank; they are only to be read.
func (s *Set) Packs() []*Pack {
	if s == nil {
		return nil
	}
	return s.packs
}

// Inputs returns what the user told.
func (s *Set) Inputs() Inputs {
	if s == nil {
		return Inputs{}
	}
	return s.inputs
}

// Families returns all families, sorted by engine and name. They are only to be read.
func (s *Set) Families() []*Family {
	if s == nil {
		return nil
	}
	return s.families
}

// Family returns the family of a name or alias, in any spelling of it. The result is only to be read.
func (s *Set) Family(name string) (*Family, bool) {
	if s == nil {
		return nil, false
	}
	for _, n := range spellings(name) {
		if f := s.byName[n]; f != nil {
			return f, true
		}
	}
	return nil, false
}

// spellings are what a name in a recording may be to a pack: a counter has lost its "_total", and a program that passes
// families on has put its own prefix before it.
func spellings(name string) [4]string {
	plain := strings.TrimPrefix(name, wrapper)
	return [4]string{name, strings.TrimSuffix(name, "_total"), plain, strings.TrimSuffix(plain, "_total")}
}

// sanitised is a name as a collector writes it that allows no colons.
func sanitised(name string) string { return strings.ReplaceAll(name, ":", "_") }

// As returns the name or alias of the family that a spelling stands for, "" for none.
func (f *Family) As(name string) string {
	for _, n := range spellings(name) {
		if n == f.Name || n == sanitised(f.Name) {
			return f.Name
		}
		for _, as := range f.Aliases {
			if n == as || n == sanitised(as) {
				return as
			}
		}
	}
	return ""
}

// Seconds is what values of the family, which a server shows by this name, are multiplied with to be seconds, 0 where
// they are no durations. One that tells no unit is in seconds.
func (f *Family) Seconds(name string) float64 {
	unit := cmp.Or(f.Unit, units.InferExtended(name, "", ""), units.Infer(name, ""), "seconds")
	base, scale := units.Base(unit)
	if base != "seconds" {
		return 0
	}
	return scale * cmp.Or(f.Scales[f.As(name)], 1)
}

// Whole reports whether a series with these labels is not part of another one; all of an unknown family are whole.
func (f *Family) Whole(l metric.Labels) bool {
	return f == nil || !slices.ContainsFunc(f.Only, func(want metric.Label) bool {
		v, _ := l.Get(want.Name)
		return v != want.Value
	})
}

// Known reports whether a pack has a family of that name, or a pattern for it.
func (s *Set) Known(name string) bool {
	if _, ok := s.Family(name); ok || s == nil {
		return ok
	}
	return slices.ContainsFunc(s.patterns, func(p Pattern) bool { return p.matches(name) })
}

// Patterns returns the names that are known without a meaning, in the order of the packs.
func (s *Set) Patterns() []Pattern {
	if s == nil {
		return nil
	}
	return s.patterns
}

// Labels returns the labels of a series of a family with the names that the newest generation has.
func (s *Set) Labels(f *Family, l metric.Labels) metric.Labels {
	if s == nil || f == nil {
		return l
	}
	for _, r := range s.relabel[f.Engine] {
		value, old := l.Get(r[0])
		if _, is := l.Get(r[1]); old && !is {
			l = metric.NewLabels(append(pairs(l.Without(r[0])), metric.Label{Name: r[1], Value: value})...)
		}
	}
	return l
}

// linker finds what the names in the formulas of a pack stand for.
type linker struct {
	set  *Set
	pack *Pack
	done map[string]*quantity.Expr
	busy []string // the quantities that are being read, each because of the one before
}

// link parses the formulas of a pack.
func (s *Set) link(p *Pack) {
	l := &linker{set: s, pack: p, done: map[string]*quantity.Expr{}}
	named := map[string]bool{}
	for _, q := range p.Quantities {
		if q.Name != "" && named[q.Name] {
			s.fail(p, q.at, "quantity %s: is there twice", q.Name)
		}
		named[q.Name] = true
		l.quantity(q)
	}
}

func (l *linker) quantity(q *Quantity) {
	f := &q.Formula
	f.By = q.By
	switch {
	case q.left.Value != "":
		l.check(q)
	case q.is.Value != "":
		f.Is = l.formula(q, q.is)
	}
	for _, g := range []struct {
		in  text
		out **quantity.Guard
	}{{q.when, &f.When}, {q.enabled, &f.Enabled}} {
		if g.in.Value == "" {
			continue
		}
		guard, err := quantity.ParseGuard(g.in.Value, l)
		l.fail(q, g.in, err)
		*g.out = guard
	}
	if f.Is == nil || q.Native != "" {
		return
	}
	if q.Text == "" {
		q.Text = f.Is.Text()
	}
	if err := f.Is.Fits(q.Unit); err != nil {
		l.set.fail(l.pack, q.is.position, "quantity %s: %v", q.Name, err)
	}
}

// formula parses one; nil when it is wrong.
func (l *linker) formula(q *Quantity, t text) *quantity.Expr {
	if e := l.done[q.Name]; e != nil && t.Value == q.is.Value {
		return e
	}
	e, err := quantity.Parse(t.Value, l)
	l.fail(q, t, err)
	if err == nil && t.Value == q.is.Value {
		l.done[q.Name] = e
	}
	return e
}

func (l *linker) fail(q *Quantity, t text, err error) {
	if err == nil {
		return
	}
	at := t.position
	if e := (*quantity.Error)(nil); errors.As(err, &e) && !strings.Contains(t.Value, "\n") {
		at.Column += e.Offset
		if t.Quote != "" { // within, it is written with one character more
			at.Column += 1 + strings.Count(t.Value[:min(e.Offset, len(t.Value))], t.Quote)
		}
	}
	l.set.fail(l.pack, at, "quantity %s: %v", q.Name, err)
}

// check makes the difference of two amounts by the first.
func (l *linker) check(q *Quantity) {
	left, right := l.formula(q, q.left), l.formula(q, q.right)
	if left == nil || right == nil {
		return
	}
	q.Formula.Is = quantity.Check(left, right)
	q.Text = "(" + left.Text() + " - (" + right.Text() + ")) / " + left.Text()
	if q.edges.Value == "" {
		return
	}
	t, ok := l.pack.edges[q.edges.Value]
	if !ok {
		l.set.fail(l.pack, q.edges.position, "check %s: there are no edges %s", q.Name, q.edges.Value)
		return
	}
	if e := l.formula(q, t); e != nil {
		q.Edges = &quantity.Formula{Is: e}
	}
}

// Family finds the family of a name as formulas spell it: without prefix, or after its engine and a dot.
func (l *linker) Family(name string) (quantity.Family, bool) {
	engine := cmp.Or(l.pack.Of, l.pack.Name)
	if of, rest, ok := strings.Cut(name, "."); ok {
		engine, name = of, rest
	}
	f := l.set.stems[[2]string{engine, name}]
	if f == nil {
		return quantity.Family{}, false
	}
	return quantity.Family{Name: f.Name, Type: f.Type, Unit: f.Unit, Aggregate: f.Aggregate, Above: f.Above}, true
}

// Quantity finds another formula of the pack.
func (l *linker) Quantity(name string) (*quantity.Expr, error) {
	i := slices.IndexFunc(l.pack.Quantities, func(q *Quantity) bool { return q.Name == name && q.is.Value != "" })
	if i < 0 {
		return nil, fmt.Errorf("there is no quantity %s in the pack", name)
	}
	if slices.Contains(l.busy, name) {
		return nil, fmt.Errorf("%s is made of itself: %s", name, strings.Join(append(l.busy, name), ", "))
	}
	q := l.pack.Quantities[i]
	if e := l.done[name]; e != nil {
		return e, nil
	}
	l.busy = append(l.busy, name)
	defer func() { l.busy = l.busy[:len(l.busy)-1] }()
	e, err := quantity.Parse(q.is.Value, l)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	l.done[name] = e
	return e, nil
}

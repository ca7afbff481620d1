package quantity

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// Source has the series of a scope.
type Source interface {
	// Series returns the gains of a family, which are to stay where they are.
	Series(family string) []*Gain
	// Input returns what the user told under that name; 0 is nothing.
	Input(name string) float64
}

// Formula is a formula with what restricts it.
type Formula struct {
	Is *Expr
	// By are labels: one result for each combination of their values among the series of the first term.
	By []string
	// When is what must hold for a result. Enabled is what must hold for it to be defined: otherwise the server has the
	// families, but does not fill them.
	When, Enabled *Guard
}

// Binding is a formula with the series that it is made of.
type Binding struct {
	Labels   metric.Labels // beyond those of the scope
	Families []string      // it is made of, sorted
	root     bound
	guards   [2]*boundGuard
}

// bound is a node with its series.
type bound struct {
	op      op
	part    Part
	rule    Aggregate
	x       float64 // a number, or the argument of a term
	level   int     // of opTimeAbove
	family  string  // of a term
	gains   []*Gain
	args    []bound
	any     bool // some of its input is there
	missing bool // some of its input is not, whatever happens
}

type boundGuard struct{ any [][]boundComparison }

type boundComparison struct {
	not, named  bool // named: left is the answer
	there       bool
	left, right bound
	op          string
}

// filtered are the series of a source that have some labels.
type filtered struct {
	Source
	labels metric.Labels
}

func (f filtered) Series(family string) []*Gain { return having(f.Source.Series(family), f.labels) }

func having(gains []*Gain, labels metric.Labels) []*Gain {
	if labels.Len() == 0 {
		return gains
	}
	return slices.DeleteFunc(slices.Clone(gains), func(g *Gain) bool {
		for name, value := range labels.All() {
			if v, ok := g.Labels.Get(name); !ok || v != value {
				return true
			}
		}
		return false
	})
}

// Bind finds the series of the formula. Without labels to tell results apart there is one binding; they are sorted by
// their labels, numbers as numbers.
func (f *Formula) Bind(from Source) []Binding {
	var out []Binding
	if f.Is.root.op == opShare {
		n := f.Is.root
		for _, l := range combinations(n.args[0].series(from), n.word) {
			top, all := bind(n.args[0], filtered{from, l}), bind(n.args[1], from)
			out = append(out, Binding{Labels: l, root: divide(top, all)})
		}
	} else if f.By == nil {
		out = []Binding{{root: bind(f.Is.root, from)}}
	} else {
		for _, l := range combinations(f.Is.root.series(from), f.By...) {
			out = append(out, Binding{Labels: l, root: bind(f.Is.root, filtered{from, l})})
		}
	}
	for i := range out {
		b := &out[i]
		b.root.families(false, &b.Families)
		slices.Sort(b.Families)
		b.Families = slices.Compact(b.Families)
		for k, g := range []*Guard{f.When, f.Enabled} {
			if g != nil {
				b.guards[k] = g.bind(filtered{from, b.Labels})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Binding) int { return CompareLabels(a.Labels, b.Labels) })
	return out
}

func divide(a, b bound) bound {
	return bound{op: opDiv, args: []bound{a, b}, any: a.any || b.any, missing: a.missing || b.missing}
}

// combinations are the values of some labels among series that have all of them, sorted.
func combinations(gains []*Gain, names ...string) []metric.Labels {
	var out []metric.Labels
	for _, g := range gains {
		if l := g.Labels.Only(names...); l.Len() == len(names) && !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, metric.Labels.Compare)
	return out
}

// series are those of the first term, of the first way that has some. What a term leaves out still has results.
func (n *node) series(from Source) []*Gain {
	if n.sel != nil {
		s := *n.sel
		s.match = slices.DeleteFunc(slices.Clone(s.match), func(m matcher) bool { return m.op == "!=" })
		return s.series(from)
	}
	for _, a := range n.args {
		if out := a.series(from); len(out) > 0 || n.op != opFirst && a.terms > 0 {
			return out
		}
	}
	return nil
}

func (s *selector) series(from Source) []*Gain {
	all := from.Series(s.family.Name)
	if len(s.match) == 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(g *Gain) bool { return !s.matches(g.Labels) })
}

func bind(n *node, from Source) bound {
	b := bound{op: n.op, part: n.part, x: n.x}
	switch n.op {
	case opFirst:
		return firstOf(n, from)
	case opInput:
		b.op, b.x = opNumber, from.Input(n.word)
		if b.x == 0 {
			b.op = opInput
		}
	case opSkew:
		for _, l := range combinations(n.args[0].series(from), n.word) {
			b.args = append(b.args, bind(n.args[0], filtered{from, l}))
		}
		b.any = len(b.args) > 1
	case opTerm, opAbove, opTimeAbove, opLabel:
		b.term(n, from)
	default:
		for _, a := range n.args {
			arg := bind(a, from)
			b.args = append(b.args, arg)
			b.any = b.any || arg.any
			b.missing = b.missing || arg.missing && n.op != opOpt
		}
	}
	return b
}

// term finds the series whose gains have the part that is wanted.
func (b *bound) term(n *node, from Source) {
	f := n.sel.family
	b.family, b.rule, b.level = f.Name, f.Aggregate, slices.Index(f.Above, n.x)
	for _, g := range n.sel.series(from) {
		_, ok := n.part.Of(g)
		switch n.op {
		case opTimeAbove:
			ok = b.level >= 0 && b.level < len(g.Above)
		case opLabel:
			var v float64
			if v, ok = number(g, n.word); ok {
				b.x += v
			}
		}
		if ok || n.part == Over {
			b.gains = append(b.gains, g)
		} else if n.part == Sum {
			b.missing = true // one of several without a sum: theirs is not that of all
		}
	}
	b.any, b.missing = len(b.gains) > 0, b.missing || len(b.gains) == 0
}

func number(g *Gain, label string) (float64, bool) {
	text, _ := g.Labels.Get(label)
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil
}

// firstOf takes the first way that has all its input, else the first that has some.
func firstOf(n *node, from Source) bound {
	var some bound
	for i, a := range n.args {
		b := bind(a, from)
		if b.any && !b.missing {
			return b
		}
		if i == 0 || b.any && !some.any {
			some = b
		}
	}
	return some
}

// families adds the families of all terms; of those that may be missing, if they are there.
func (b *bound) families(optional bool, out *[]string) {
	switch b.op {
	case opTerm, opAbove, opTimeAbove, opLabel:
		if len(b.gains) > 0 || !optional {
			*out = append(*out, b.family)
		}
	}
	for i := range b.args {
		b.args[i].families(optional || b.op == opOpt, out)
	}
}

func (g *Guard) bind(from Source) *boundGuard {
	out := &boundGuard{}
	for _, all := range g.any {
		var list []boundComparison
		for _, c := range all {
			b := boundComparison{not: c.not, op: c.op, named: c.named != nil}
			if b.named {
				b.there = len(c.named.series(from)) > 0
			} else {
				b.left, b.right = bind(c.left, from), bind(c.right, from)
			}
			list = append(list, b)
		}
		out.any = append(out.any, list)
	}
	return out
}

// CompareLabels orders sets of the same names by value, numbers as numbers.
func CompareLabels(a, b metric.Labels) int {
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

// Check is the formula of how far two amounts differ that are the same: their difference by the first.
func Check(left, right *Expr) *Expr {
	return &Expr{&node{op: opDiv, args: []*node{less(left.root, right.root, opSub), left.root},
		terms: 2*left.root.terms + right.root.terms}}
}

// less takes the terms of a sum away one after the other, or with opAdd adds them, in the order of the text.
func less(from, n *node, sign op) *node {
	if n.op == opAdd || n.op == opSub {
		flip := pick((n.op == opSub) == (sign == opSub), opAdd, opSub)
		return less(less(from, n.args[0], sign), n.args[1], flip)
	}
	return &node{op: sign, args: []*node{from, n}, dim: from.dim, terms: from.terms + n.terms}
}

package quantity

import (
	"regexp"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// selector are the series of a family that have the labels.
type selector struct {
	text   string // the family as the formula spells it
	family Family
	match  []matcher
}

type matcher struct {
	name, op, value string
	re              *regexp.Regexp
}

func (s *selector) matches(l metric.Labels) bool {
	for i := range s.match {
		m := &s.match[i]
		v, ok := l.Get(m.name)
		switch m.op {
		case "=":
			if !ok || v != m.value {
				return false
			}
		case "!=":
			if ok && v == m.value {
				return false
			}
		default:
			if !ok || !m.re.MatchString(v) {
				return false
			}
		}
	}
	return true
}

// function is how a name is called and what it makes.
type function struct {
	name string
	of   string // the kinds of family it takes, one letter each: counter, gauge, histogram; "" is an expression
	part Part
	make func(p *parser, n *node) *node // of a term; nil leaves it
}

// functions are those of families.
func functions() []function {
	over := func(p *parser, n *node) *node { return p.op(opDiv, n, &node{op: opTime, dim: dim{s: 1, of: "1"}}) }
	return []function{
		{"increase", "c", Gained, nil}, {"rate", "c", Gained, over}, {"sum", "h", Sum, nil}, {"count", "h", Count, nil},
		{"mean", "h", Sum, func(p *parser, n *node) *node {
			q := p.op(opDiv, n, n.as(Count))
			q.dim = n.dim
			return q
		}},
		{"overflow", "h", Over, func(p *parser, n *node) *node { return p.op(opDiv, n, n.as(Count)) }},
		{"above", "h", Count, func(p *parser, n *node) *node {
			top := n.as(Count)
			top.op, top.x = opAbove, p.argument()
			return p.op(opDiv, top, n)
		}},
		{"over", "h", Over, func(p *parser, n *node) *node {
			if p.space(); p.at < len(p.src) && p.src[p.at] == ',' {
				n.op, n.part, n.x = opAbove, Count, p.argument()
			}
			return n
		}},
		{"avg", "g", Mean, nil}, {"area", "g", Integral, nil}, {"peak", "g", Max, nil}, {"low", "g", Min, nil},
		{"first", "gc", First, nil}, {"last", "gc", Last, nil}, {"delta", "gc", Delta, nil},
		{"series", "cgh", Present, nil},
		{"changed", "g", Changed, func(_ *parser, n *node) *node {
			n.dim = dim{}
			return n
		}},
		{"time_above", "g", Mean, func(p *parser, n *node) *node {
			n.op, n.x, n.dim = opTimeAbove, p.argument(), dim{of: "1"}
			if !slices.Contains(n.sel.family.Above, n.x) && n.sel.family.Name != "" {
				p.fail(p.start, "time_above(): %s has no level %v in its above", n.sel.text, n.x)
			}
			return n
		}},
		{"label", "cgh", Present, func(p *parser, n *node) *node {
			n.op, n.word, n.dim = opLabel, p.text(), dim{}
			return n
		}},
	}
}

// wrappers are the functions of one expression.
func wrappers() map[string]op {
	return map[string]op{"opt": opOpt, "estimate": opEstimate, "bound": opBound, "clamp0": opClamp, "floor": opFloor,
		"busy": opBusy, "busy_time": opBusyTime}
}

// Functions returns the names of all functions, sorted.
func Functions() []string {
	out := []string{"first_of", "input", "share", "skew"}
	for _, f := range functions() {
		out = append(out, f.name)
	}
	for name := range wrappers() {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// family is a function of a family.
func (p *parser) family(at int, f *function) *node {
	p.start = at
	s := p.selector()
	if p.err != nil {
		return &node{}
	}
	if k := kind(s.family.Type); k != "" && !strings.Contains(f.of, k) {
		p.fail(at, "%s() wants a %s; %s is a %s: use %s", f.name, kinds(f.of), s.text, kinds(k), usable(k))
		return &node{}
	}
	over := f.part == Mean || f.part == Integral
	if over && s.family.Aggregate == AggregateNever && s.match == nil {
		p.fail(at, "%s(): no number of several series of %s means anything; its aggregate is never", f.name, s.text)
	}
	if p.terms++; p.terms > maxTerms {
		p.fail(at, "more than %d terms", maxTerms)
	}
	n := &node{op: opTerm, part: f.part, sel: s, terms: 1, dim: dimension(s.family.Unit)}
	switch f.part {
	case Count, Present, Over:
		n.dim = dim{}
	case Integral:
		n.dim = n.dim.times(dim{s: 1, of: "1"}, 1)
	}
	if f.make != nil {
		return f.make(p, n)
	}
	return n
}

func kind(t metric.Type) string {
	switch t {
	case metric.Counter:
		return "c"
	case metric.Gauge:
		return "g"
	case metric.Histogram, metric.Summary:
		return "h"
	}
	return ""
}

// kinds spells letters of types out.
func kinds(letters string) string {
	words := map[rune]string{'c': "counter", 'g': "gauge", 'h': "histogram"}
	var out []string
	for _, l := range letters {
		out = append(out, words[l])
	}
	return strings.Join(out, " or ")
}

func usable(letter string) string {
	var out []string
	for _, f := range functions() {
		if strings.Contains(f.of, letter) && len(f.of) < 3 {
			out = append(out, f.name)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func (p *parser) selector() *selector {
	p.space()
	at := p.at
	s := &selector{text: p.name(":.-")}
	if p.err != nil {
		return s
	}
	var ok bool
	if s.family, ok = p.types.Family(s.text); !ok {
		p.fail(at, "there is no family %s", s.text)
	}
	if !p.is("{") {
		return s
	}
	for p.err == nil {
		s.match = append(s.match, p.matcher())
		if !p.is(",") {
			break
		}
	}
	p.need("}")
	return s
}

func (p *parser) matcher() matcher {
	m := matcher{name: p.name("")}
	for _, o := range []string{"=~", "!=", "="} {
		if p.is(o) {
			m.op = o
			break
		}
	}
	if m.op == "" {
		p.fail(p.at, "want =, != or =~ before %s", p.next())
		return m
	}
	at := p.at
	if m.value = p.quoted(); m.op == "=~" {
		var err error
		if m.re, err = regexp.Compile("^(?:" + m.value + ")$"); err != nil {
			p.fail(at, "%v", err)
		}
	}
	return m
}

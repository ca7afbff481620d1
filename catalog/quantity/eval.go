package quantity

import (
	"math"
	"slices"
)

// Result is what a formula gives for a stretch.
type Result struct {
	Status Status
	// Value is the quantity; Shown is what is to be shown to a person: the same, or the nearest value that makes sense.
	// Both are 0 unless Status.Defined.
	Value, Shown float64
	// Low and High bound the quantity where its status is Ambiguous or LowerBound; -Inf and +Inf are no bound.
	Low, High float64
	// Numerator and Denominator are what Value is the quotient of; a formula that is no quotient has HasParts unset.
	Numerator, Denominator float64
	HasParts               bool
	// Resets reports whether counters of it were reset although the status is a worse one, Negative whether Shown is
	// not Value because that is below zero, and Disabled whether the server does not fill the families.
	Resets, Negative, Disabled bool
}

// amount is the value of a node.
type amount struct {
	v                          float64
	resets                     int
	missing, zero, void        bool // no input, a denominator of 0, nothing to tell
	born, bound, estimate, low bool // low: shown as 0
	doubt                      doubt
}

func (a amount) and(b amount, v float64) amount {
	return amount{v, a.resets + b.resets, a.missing || b.missing, a.zero || b.zero, a.void || b.void, a.born || b.born,
		a.bound || b.bound, a.estimate || b.estimate, a.low || b.low, a.doubt.plus(b.doubt)}
}

func (a *amount) undefined() bool { return a.missing || a.zero || a.void }

// Eval returns the result for a stretch of the series that the formula was bound to; false when there is none. It
// allocates nothing.
func (b *Binding) Eval(s *Interval) (r Result, ok bool) {
	if !b.root.any || b.guards[0] != nil && !b.guards[0].holds(s) {
		return r, false
	}
	a := b.root.result(s, &r)
	switch {
	case a.doubt.status == Refused && !a.void:
		return Result{Status: Refused}, true
	case a.void:
		return r, false
	case b.guards[1] != nil && !b.guards[1].holds(s):
		return Result{Status: Missing, Disabled: true}, true
	case a.missing:
		return Result{Status: Missing}, true
	case a.zero:
		r.Status = ZeroDenominator
		return r, true
	case math.IsNaN(a.v) || math.IsInf(a.v, 0):
		r.Status = Missing
		return r, true
	}
	r.Value, r.Shown = a.v, a.v
	if a.low && a.v < 0 {
		r.Shown, r.Negative = 0, true
	}
	for _, worse := range [...]struct {
		is bool
		s  Status
	}{{a.resets > 0, ResetCorrected}, {a.born, BornInWindow}, {a.estimate, Estimate}, {a.bound, Bound}} {
		if worse.is {
			r.Status = worse.s
		}
	}
	r.Resets = a.resets > 0 && r.Status > ResetCorrected
	a.doubt.settle(&r)
	return r, true
}

// result evaluates the outermost node, whose quotient is told in parts.
func (b *bound) result(s *Interval, r *Result) amount {
	switch b.op {
	case opDiv, opSkew, opBusy:
		top, per := b.parts(s)
		a := quotient(top, per)
		if !top.undefined() && !per.undefined() {
			r.Numerator, r.Denominator, r.HasParts = top.v, per.v, true
		}
		if left := &b.args[0]; b.op == opDiv && left.op == opDiv && b.args[1].op == opNumber {
			// A share of what the user told: the quotient is that of the first, by it.
			inner, outer := left.parts(s)
			r.Numerator, r.Denominator = inner.v, outer.v*per.v
			r.HasParts = !inner.undefined() && !outer.undefined()
		}
		return a
	case opEstimate, opBound, opClamp:
		return b.mark(b.args[0].result(s, r))
	}
	return b.eval(s)
}

// mark adds what a function says of its argument.
func (b *bound) mark(a amount) amount {
	a.estimate = a.estimate || b.op == opEstimate
	a.bound = a.bound || b.op == opBound
	a.low = a.low || b.op == opClamp
	return a
}

func quotient(a, b amount) amount {
	out := a.and(b, 0)
	if b.v == 0 {
		out.zero = true
	} else {
		out.v = a.v / b.v
		out.doubt = combined(a, b, out.v, func(x, y float64) float64 {
			if y <= 0 {
				return math.NaN()
			}
			return x / y
		})
	}
	return out
}

// parts are what is divided by what.
func (b *bound) parts(s *Interval) (top, per amount) {
	switch b.op {
	case opSkew:
		var sum amount
		for i := range b.args {
			a := b.args[i].eval(s)
			top = top.and(a, max(top.v, a.v))
			sum.v += a.v
		}
		top.void = top.void || len(b.args) < 2
		return top, amount{v: sum.v / float64(len(b.args))}
	case opBusy:
		busy, all, ok := b.args[0].busy(s)
		return amount{v: min(busy, all), void: !ok && b.args[0].any, missing: !b.args[0].any}, amount{v: all}
	}
	return b.args[0].eval(s), b.args[1].eval(s)
}

// busy adds up the slices in which a term gained; false when slices are not known.
func (b *bound) busy(s *Interval) (seconds, all float64, ok bool) {
	for k, length := range s.SliceSeconds {
		gain, known := 0.0, false
		for _, g := range b.gains {
			if k < len(g.Slices) {
				gain, known = gain+g.Slices[k], true
			}
		}
		if !known {
			continue
		}
		if all += length; gain > 0 {
			seconds += length
		}
	}
	if s.Seconds != 0 {
		seconds = min(seconds, s.Seconds)
	}
	return seconds, all, all > 0
}

func (b *bound) eval(s *Interval) amount {
	switch b.op {
	case opNumber:
		return amount{v: b.x}
	case opTime:
		return amount{v: s.Seconds}
	case opInput:
		return amount{void: true}
	case opTerm:
		return b.added(s)
	case opAbove:
		return b.above()
	case opTimeAbove:
		return b.timeAbove()
	case opEnd:
		return amount{v: float64(s.EndNS) / 1e9, void: s.EndNS <= 0}
	case opBusyTime:
		a := b.args[0].eval(s)
		busy, _, known := b.args[0].busy(s)
		a.v, a.bound = pick(known, busy, s.Seconds), !known
		return a
	case opLabel:
		return amount{v: b.x, missing: b.missing}
	case opDiv, opSkew, opBusy:
		return quotient(b.parts(s))
	case opNeg:
		a := b.args[0].eval(s)
		a.v, a.doubt = -a.v, a.doubt.turned()
		return a
	case opOpt:
		if a := b.args[0].eval(s); !a.undefined() {
			return a
		}
		return amount{}
	case opEstimate, opBound, opClamp:
		return b.mark(b.args[0].eval(s))
	case opFloor:
		a := b.args[0].eval(s)
		v := math.Floor(a.v)
		a.doubt.below, a.doubt.over = v-math.Floor(a.v-a.doubt.below), math.Floor(a.v+a.doubt.over)-v
		a.v = v
		return a
	}
	x, y := b.args[0].eval(s), b.args[1].eval(s)
	switch b.op {
	case opAdd:
		return x.and(y, x.v+y.v)
	case opSub:
		out := x.and(y, x.v-y.v)
		out.doubt = x.doubt.plus(y.doubt.turned())
		return out
	}
	out := x.and(y, x.v*y.v)
	out.doubt = combined(x, y, out.v, func(a, b float64) float64 { return a * b })
	return out
}

// added is the value of a term: its parts added up, or of a gauge what the rule of its family says.
func (b *bound) added(s *Interval) (a amount) {
	n := 0
	for _, g := range b.gains {
		x, ok := b.part.Of(g)
		switch {
		case !ok && b.part == Over:
			a.void = true
		case !ok:
			continue
		case b.part == Integral:
			x *= s.Seconds
		}
		gauge := g.IsGauge() && b.part != Present
		if gauge && b.rule == AggregateMax && n > 0 {
			a.v = max(a.v, x)
		} else {
			a.v += x
		}
		if g.Status != OK {
			a.doubt = a.doubt.plus(b.part.doubt(g, x))
		}
		a.bound = a.bound || gauge && (b.part == Max || b.part == Min) && b.rule != AggregateMax && n > 0
		n++
		a.resets += g.Resets
		a.born = a.born || g.Born
	}
	if b.rule == AggregateMean && n > 1 && b.part != Present {
		a.v /= float64(n)
	}
	a.missing = n == 0 || b.missing || n > 1 && b.alone()
	return a
}

// alone reports whether nothing of several series of the term means anything: two last events are not added up. That
// peaks are bounds of what they add up to is told by their status.
func (b *bound) alone() bool {
	return b.rule == AggregateNever && slices.Contains([]Part{Mean, Integral, First, Last, Delta}, b.part) &&
		b.gains[0].IsGauge()
}

// above counts the observations above a value.
func (b *bound) above() (a amount) {
	for _, g := range b.gains {
		most, ok := g.AtMost(b.x)
		if !ok {
			return amount{missing: true}
		}
		a.v += most.Count - most.Estimate
		a.doubt = a.doubt.plus(Over.doubt(g, 0))
		a.estimate = a.estimate || !most.Exact()
		a.resets += g.Resets
		a.born = a.born || g.Born
	}
	a.missing = len(b.gains) == 0
	return a
}

// timeAbove is the largest share of the time above a level: of several series at least that.
func (b *bound) timeAbove() (a amount) {
	n := 0
	for _, g := range b.gains {
		if b.level < len(g.Above) {
			a.v = max(a.v, g.Above[b.level])
			n++
		}
	}
	a.void, a.bound = n == 0, n > 1
	return a
}

func (g *boundGuard) holds(s *Interval) bool {
	for _, all := range g.any {
		yes := true
		for i := range all {
			yes = yes && all[i].holds(s)
		}
		if yes {
			return true
		}
	}
	return false
}

func (c *boundComparison) holds(s *Interval) bool {
	if c.named {
		return c.there != c.not
	}
	a, b := c.left.eval(s), c.right.eval(s)
	if a.undefined() || b.undefined() {
		return c.not
	}
	yes := false
	switch c.op {
	case "<":
		yes = a.v < b.v
	case "<=":
		yes = a.v <= b.v
	case "==":
		yes = a.v == b.v
	case "!=":
		yes = a.v != b.v
	case ">=":
		yes = a.v >= b.v
	case ">":
		yes = a.v > b.v
	}
	return yes != c.not
}

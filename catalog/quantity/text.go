package quantity

import (
	"strconv"
	"strings"
)

// String writes the formula so that Parse reads the same of it, where families keep the names that it spells.
func (e *Expr) String() string {
	var w writer
	w.source = true
	w.node(e.root, 0)
	return w.String()
}

// Text writes the formula for people: names of counters stand for what they gained, name_sum and name_count for what
// the parts of a histogram gained, and time for the seconds.
func (e *Expr) Text() string {
	var w writer
	w.node(e.root, 0)
	return w.String()
}

// String returns the condition as it was written.
func (g *Guard) String() string { return g.text }

// Families returns the families of the terms, those of the first way.
func (e *Expr) Families() []string {
	var out []string
	seen := map[string]bool{}
	var walk func(n *node)
	walk = func(n *node) {
		if n.sel != nil && !seen[n.sel.family.Name] {
			seen[n.sel.family.Name] = true
			out = append(out, n.sel.family.Name)
		}
		for i, a := range n.args {
			if n.op != opFirst || i == 0 {
				walk(a)
			}
		}
	}
	walk(e.root)
	return out
}

type writer struct {
	strings.Builder
	source bool
}

// level is how tightly an operator binds.
func (o op) level() int {
	switch o {
	case opAdd, opSub:
		return 1
	case opMul, opDiv:
		return 2
	case opNeg:
		return 3
	}
	return 4
}

func (w *writer) node(n *node, around int) {
	if level := n.op.level(); level < around {
		w.WriteByte('(')
		defer w.WriteByte(')')
	}
	switch n.op {
	case opEnd:
		w.WriteString(pick(w.source, "end", "end of the stretch"))
	case opNumber:
		w.WriteString(strconv.FormatFloat(n.x, 'g', -1, 64))
	case opTime:
		w.WriteString("time")
	case opInput:
		w.call(n, "input", strconv.Quote(n.word))
	case opAdd, opSub, opMul, opDiv:
		w.binary(n)
	case opNeg:
		w.WriteByte('-')
		w.node(n.args[0], 4)
	case opFirst:
		w.first(n)
	case opOpt, opEstimate, opBound, opClamp, opFloor, opBusy, opBusyTime:
		w.wrapped(n)
	case opShare, opSkew:
		w.grouped(n)
	default:
		w.term(n)
	}
}

func (w *writer) binary(n *node) {
	level := n.op.level()
	top := n.args[0]
	if !w.source && n.op == opDiv && top.op == opTerm && top.part == Integral && n.args[1].op == opTime {
		w.term(top.as(Mean))
		return
	}
	w.node(n.args[0], level)
	w.WriteString([...]string{" + ", " - ", " * ", " / "}[n.op-opAdd])
	w.node(n.args[1], level+1)
}

func (w *writer) call(n *node, name string, more ...string) {
	if !w.source {
		w.WriteString(n.word)
		return
	}
	w.WriteString(name + "(" + strings.Join(more, ", ") + ")")
}

func (w *writer) first(n *node) {
	between := ", or else "
	if w.source {
		w.WriteString("first_of(")
		between = ", "
	}
	for i, a := range n.args {
		if i > 0 {
			w.WriteString(between)
		}
		w.node(a, 0)
	}
	if w.source {
		w.WriteByte(')')
	}
}

// wrapped writes a function of one expression; statuses are not part of what people read.
func (w *writer) wrapped(n *node) {
	name := [...]string{"opt", "estimate", "bound", "clamp0", "floor"}[min(n.op, opFloor)-opOpt]
	switch n.op {
	case opBusy:
		name = "busy"
	case opBusyTime:
		name = "busy_time"
	}
	if w.source || n.op == opFloor {
		w.WriteString(name + "(")
		w.node(n.args[0], 0)
		w.WriteByte(')')
		return
	}
	switch n.op {
	case opOpt:
		w.node(n.args[0], 1)
		w.WriteString(" (if any)")
	case opBusy, opBusyTime:
		w.WriteString(pick(n.op == opBusy, "slices with ", "time of the slices with "))
		w.node(n.args[0], 1)
		w.WriteString(pick(n.op == opBusy, " > 0 / slices", " > 0"))
	default:
		w.node(n.args[0], 0)
	}
}

func (w *writer) grouped(n *node) {
	if w.source {
		w.WriteString(pick(n.op == opShare, "share(", "skew("))
		w.node(n.args[0], 0)
		if n.op == opShare && n.args[0] != n.args[1] {
			w.WriteString(", of=")
			w.node(n.args[1], 0)
		}
		w.WriteString(", by=" + n.word + ")")
		return
	}
	if n.op == opSkew {
		w.WriteString("largest / mean of ")
	}
	w.node(n.args[0], 2)
	w.WriteString(" by " + n.word)
	if n.op == opShare {
		w.WriteString(" / ")
		w.node(n.args[1], 3)
	}
}

// term writes a function of a family.
func (w *writer) term(n *node) {
	name := n.sel.text
	if !w.source {
		name = n.sel.family.Name
	}
	var labels []string
	for i := range n.sel.match {
		m := &n.sel.match[i]
		value := m.value
		if w.source {
			value = strconv.Quote(value)
		}
		labels = append(labels, m.name+m.op+value)
	}
	where := ""
	if labels != nil {
		where = "{" + strings.Join(labels, pick(w.source, ", ", ",")) + "}"
	}
	arg := strconv.FormatFloat(n.x, 'g', -1, 64)
	if w.source {
		w.WriteString(n.sourceTerm(name+where, arg))
		return
	}
	w.WriteString(n.peopleTerm(name, where, arg))
}

func (n *node) sourceTerm(of, arg string) string {
	switch n.op {
	case opLabel:
		return "label(" + of + ", " + strconv.Quote(n.word) + ")"
	case opAbove:
		return "over(" + of + ", " + arg + ")"
	case opTimeAbove:
		return "time_above(" + of + ", " + arg + ")"
	}
	return partFunctions()[n.part] + "(" + of + ")"
}

// partFunctions are the functions of the parts.
func partFunctions() map[Part]string {
	return map[Part]string{Gained: "increase", Sum: "sum", Count: "count", Mean: "avg", Integral: "area", Max: "peak",
		Min: "low", First: "first", Last: "last", Delta: "delta", Present: "series", Over: "over",
		Changed: "changed"}
}

func (n *node) peopleTerm(name, where, arg string) string {
	switch n.op {
	case opLabel:
		return n.word + " of " + name + where
	case opAbove:
		return name + where + " above " + arg
	case opTimeAbove:
		return "share of the time with " + name + where + " > " + arg
	}
	switch n.part {
	case Sum:
		return name + "_sum" + where
	case Count:
		return name + "_count" + where
	}
	return map[Part]string{Mean: "mean of ", Integral: "integral of ", Max: "max of ", Min: "min of ", First: "first ",
		Last: "last ", Delta: "change of ", Present: "series of ", Changed: "changed series of ",
		Over: "observations above the last bound of "}[n.part] +
		name + where
}

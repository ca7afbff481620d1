package quantity

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// Limits on a formula, which may be a user's.
const (
	maxBytes = 4096
	maxDepth = 32
	maxTerms = 64
)

// Family is what a formula needs to know of a family.
type Family struct {
	Name      string      // its newest name, as gains have it once their generations are sorted out
	Type      metric.Type // Unknown when it can be several
	Unit      string
	Aggregate Aggregate
	Above     []float64 // the levels that the time above is known of
}

// Types tells what the names in a formula stand for.
type Types interface {
	// Family returns the family of a name as formulas spell it.
	Family(name string) (Family, bool)
	// Quantity returns another formula of the same pack.
	Quantity(name string) (*Expr, error)
}

// Error is what is wrong with a formula, and where.
type Error struct {
	Offset int // in bytes
	Text   string
}

// Error tells what is wrong.
func (e *Error) Error() string { return e.Text }

// Expr is a formula that was checked. It is immutable.
type Expr struct{ root *node }

// Guard is a condition on formulas.
type Guard struct {
	any  [][]comparison // of all of some list
	text string
}

type comparison struct {
	not         bool
	named       *selector // it has a series; or else
	left, right *node
	op          string
}

type op uint8

const (
	opNumber op = iota
	opTime
	opEnd // when the stretch ended, in seconds since 1970
	opTerm
	opLabel // the numbers in a label
	opInput // what the user told
	opAdd
	opSub
	opMul
	opDiv
	opNeg
	opFirst
	opOpt
	opEstimate
	opBound
	opClamp
	opFloor
	opShare
	opSkew
	opBusy
	opBusyTime
	opAbove     // observations above a value
	opTimeAbove // share of the time above a level
)

type node struct {
	op    op
	part  Part // of opTerm
	sel   *selector
	x     float64 // a number, or the argument of a term
	word  string  // a label, or what the user tells
	args  []*node
	dim   dim
	terms int // below it
}

// parser reads a formula. The first mistake is kept; what follows it is of no use.
type parser struct {
	src          string
	at, start    int // start is that of the call that is read
	depth, terms int
	types        Types
	err          *Error
}

// Parse reads and checks a formula. An error is an [Error].
func Parse(src string, types Types) (*Expr, error) {
	p := &parser{src: src, types: types}
	p.limit()
	root := p.whole(p.sum())
	if p.err != nil {
		return nil, p.err
	}
	return &Expr{root}, nil
}

// ParseGuard reads a condition.
func ParseGuard(src string, types Types) (*Guard, error) {
	p := &parser{src: src, types: types}
	p.limit()
	g := &Guard{text: src, any: [][]comparison{nil}}
	for p.err == nil {
		last := &g.any[len(g.any)-1]
		*last = append(*last, p.comparison())
		switch {
		case p.word("and"):
			continue
		case p.word("or"):
			g.any = append(g.any, nil)
			continue
		}
		p.end()
		break
	}
	if p.err != nil {
		return nil, p.err
	}
	return g, nil
}

func (p *parser) limit() {
	if len(p.src) > maxBytes {
		p.fail(maxBytes, "longer than %d bytes", maxBytes)
		p.src = ""
	}
}

// whole ends a formula: a mean of a gauge alone is its integral by the time.
func (p *parser) whole(n *node) *node {
	p.end()
	for _, a := range n.args {
		p.alone(a)
	}
	if p.err != nil {
		return nil
	}
	return levelled(n)
}

// alone refuses a share within another formula: it is a result for each value of a label, and no amount.
func (p *parser) alone(n *node) {
	if n.op == opShare {
		p.fail(p.at, "share() is no part of another formula: it has a result for each %s", n.word)
	}
	for _, a := range n.args {
		p.alone(a)
	}
}

// levelled makes a mean over time what it is a quotient of, where it is a result.
func levelled(n *node) *node {
	switch {
	case n.op == opTerm && n.part == Mean:
		top := n.as(Integral)
		return &node{op: opDiv, args: []*node{top, {op: opTime, dim: dim{s: 1, of: "1"}}}, dim: n.dim, terms: 1}
	case n.op == opFirst || n.op == opEstimate || n.op == opBound || n.op == opClamp:
		for i, a := range n.args {
			n.args[i] = levelled(a)
		}
	}
	return n
}

func (n *node) as(p Part) *node {
	m := *n
	if m.part = p; p == Count {
		m.dim = dim{}
	}
	return &m
}

func (p *parser) fail(at int, format string, args ...any) {
	if p.err == nil {
		p.err = &Error{at, fmt.Sprintf(format, args...)}
	}
}

func (p *parser) space() {
	for p.at < len(p.src) && (p.src[p.at] == ' ' || p.src[p.at] == '\n' || p.src[p.at] == '\t') {
		p.at++
	}
}

// is takes a text that comes next.
func (p *parser) is(text string) bool {
	p.space()
	if !strings.HasPrefix(p.src[p.at:], text) {
		return false
	}
	p.at += len(text)
	return true
}

// word takes a name that comes next.
func (p *parser) word(name string) bool {
	p.space()
	rest, ok := strings.CutPrefix(p.src[p.at:], name)
	if !ok || rest != "" && letter(rest[0]) {
		return false
	}
	p.at += len(name)
	return true
}

func (p *parser) need(text string) {
	if !p.is(text) {
		p.fail(p.at, "want %q before %s", text, p.next())
	}
}

func (p *parser) end() {
	if p.space(); p.at < len(p.src) {
		p.fail(p.at, "unexpected %s", p.next())
	}
}

// next quotes what comes next, for messages.
func (p *parser) next() string {
	rest := p.src[p.at:]
	if rest == "" {
		return "the end"
	}
	return strconv.Quote(rest[:min(len(rest), 12)])
}

func letter(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// name takes a name; extra are characters beyond letters, digits and underscores.
func (p *parser) name(extra string) string {
	p.space()
	from := p.at
	for p.at < len(p.src) && (letter(p.src[p.at]) || strings.IndexByte(extra, p.src[p.at]) >= 0) {
		p.at++
	}
	if from == p.at {
		p.fail(p.at, "want a name before %s", p.next())
	}
	return p.src[from:p.at]
}

func (p *parser) deeper() bool {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.at, "deeper than %d", maxDepth)
	}
	return p.err == nil
}

func (p *parser) sum() *node {
	n := p.product()
	for p.err == nil {
		switch {
		case p.is("+"):
			n = p.op(opAdd, n, p.product())
		case p.is("-"):
			n = p.op(opSub, n, p.product())
		default:
			return n
		}
	}
	return n
}

func (p *parser) product() *node {
	n := p.unary()
	for p.err == nil {
		switch {
		case p.is("*"):
			n = p.op(opMul, n, p.unary())
		case p.is("/"):
			n = p.op(opDiv, n, p.unary())
		default:
			return n
		}
	}
	return n
}

func (p *parser) unary() *node {
	if p.is("-") {
		return p.op(opNeg, p.primary())
	}
	return p.primary()
}

func (p *parser) primary() *node {
	if !p.deeper() {
		return &node{}
	}
	defer func() { p.depth-- }()
	if p.is("(") {
		n := p.sum()
		p.need(")")
		return n
	}
	p.space()
	from := p.at
	if p.at < len(p.src) && (p.src[p.at] >= '0' && p.src[p.at] <= '9' || p.src[p.at] == '.') {
		return &node{op: opNumber, x: p.number(), dim: dim{of: "1"}}
	}
	name := p.name("")
	if !p.is("(") {
		return p.reference(from, name)
	}
	if p.err != nil {
		return &node{}
	}
	n := p.call(from, name)
	p.need(")")
	return n
}

func (p *parser) number() float64 {
	p.space()
	from := p.at
	for p.at < len(p.src) && (letter(p.src[p.at]) || p.src[p.at] == '.' ||
		(p.src[p.at] == '-' || p.src[p.at] == '+') && p.at > from && (p.src[p.at-1]|0x20) == 'e') {
		p.at++
	}
	x, err := strconv.ParseFloat(p.src[from:p.at], 64)
	if err != nil || math.IsInf(x, 0) || math.IsNaN(x) || strings.ContainsAny(p.src[from:p.at], "xXpP_iInN") {
		p.fail(from, "%q is no number", p.src[from:p.at])
		return 0
	}
	return x
}

// reference is the time, or another quantity of the pack.
func (p *parser) reference(at int, name string) *node {
	if name == "time" || p.err != nil {
		return &node{op: opTime, dim: dim{s: 1, of: "1"}}
	}
	if name == "end" {
		return &node{op: opEnd, dim: dim{s: 1, of: "1"}}
	}
	e, err := p.types.Quantity(name)
	if err != nil {
		p.fail(at, "%v", err)
		return &node{}
	}
	if p.terms += e.root.terms; p.terms > maxTerms {
		p.fail(at, "more than %d terms", maxTerms)
	}
	return e.root
}

func (p *parser) call(at int, name string) *node {
	known := functions()
	if i := slices.IndexFunc(known, func(f function) bool { return f.name == name }); i >= 0 {
		return p.family(at, &known[i])
	}
	if w, ok := wrappers()[name]; ok {
		return p.wrap(at, w)
	}
	switch name {
	case "first_of":
		n := p.op(opFirst, p.sum())
		for p.is(",") {
			arm := p.sum()
			n.args, n.terms = append(n.args, arm), n.terms+arm.terms
		}
		return n
	case "share", "skew":
		return p.grouped(at, name)
	case "input":
		return &node{op: opInput, word: p.quoted()}
	}
	p.fail(at, "there is no function %s (there are %s)", name, strings.Join(Functions(), ", "))
	return &node{}
}

func (p *parser) wrap(at int, w op) *node {
	n := p.op(w, p.sum())
	if w == opBusy || w == opBusyTime {
		if n.dim = (dim{of: "1", s: pick[int8](w == opBusy, 0, 1)}); n.args[0].op != opTerm {
			p.fail(at, "busy() and busy_time() want one term, such as count(steps)")
		}
	}
	return n
}

// grouped are share(x, of=y, by=label) and skew(x, by=label).
func (p *parser) grouped(at int, name string) *node {
	n := p.op(pick(name == "share", opShare, opSkew), p.sum())
	if n.op == opShare {
		n.args = append(n.args, n.args[0])
	}
	for p.is(",") {
		switch {
		case p.word("by"):
			p.need("=")
			n.word = p.name("")
		case p.word("of") && n.op == opShare:
			p.need("=")
			n.args[1] = p.sum()
		default:
			p.fail(p.at, "want by=LABEL")
		}
	}
	if p.err == nil && (n.word == "" || n.args[0].op != opTerm && n.args[0].op != opMul) {
		p.fail(at, "%s() wants one term, and by=LABEL", name)
	}
	n.dim, n.terms = dim{of: "1"}, n.args[0].terms+n.args[len(n.args)-1].terms
	return n
}

// quoted takes a string in double quotes.
func (p *parser) quoted() string {
	p.space()
	q, err := strconv.QuotedPrefix(p.src[p.at:])
	if err != nil || q[0] != '"' {
		p.fail(p.at, "want a text in quotes before %s", p.next())
		return ""
	}
	p.at += len(q)
	out, _ := strconv.Unquote(q)
	return out
}

// argument and text take the second argument of a term.
func (p *parser) argument() float64 {
	p.need(",")
	minus := p.is("-")
	x := p.number()
	return pick(minus, -x, x)
}

func (p *parser) text() string {
	p.need(",")
	return p.quoted()
}

func (p *parser) comparison() comparison {
	c := comparison{not: p.word("not")}
	if p.word("named") {
		p.need("(")
		c.named = p.selector()
		p.need(")")
		return c
	}
	c.left = p.sum()
	for _, o := range []string{"<=", "==", "!=", ">=", "<", ">"} {
		if c.op == "" && p.is(o) {
			c.op = o
		}
	}
	if c.op == "" {
		p.fail(p.at, "want a comparison before %s", p.next())
	}
	c.right = p.sum()
	p.alone(c.left)
	p.alone(c.right)
	return c
}

// op makes a node and checks its units.
func (p *parser) op(o op, args ...*node) *node {
	n := &node{op: o, args: args, dim: args[0].dim}
	for _, a := range args {
		n.terms += a.terms
	}
	switch o {
	case opAdd, opSub:
		d, ok := args[0].dim.plus(args[1].dim)
		if n.dim = d; !ok {
			p.fail(p.at, "%s and %s cannot be added up", args[0].dim, args[1].dim)
		}
	case opMul:
		n.dim = args[0].dim.times(args[1].dim, 1)
	case opDiv:
		n.dim = args[0].dim.times(args[1].dim, -1)
	}
	return n
}

package explain

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/suggest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/units"
)

// Contribution is a fact that may add to a cause, told when its conditions hold. A promoted one is a finding, after
// restarts and losses.
type Contribution struct {
	ID, Says string
	When     string // conditions joined by " and "
	Promote  bool
	Evidence []Quantity // what its conditions held of, where they did

	conditions []condition
}

// Text is what is said of a fact, with its evidence.
func (c *Contribution) Text() string {
	text := c.Says
	for i, q := range c.Evidence {
		text = strings.ReplaceAll(text, "{"+c.conditions[i].quantity+"}", units.Format(q.Value, q.Unit))
	}
	return text
}

// condition compares a quantity with a number, or with a share of a row of the waterfall.
type condition struct {
	quantity, op string
	value        float64
	of           string // a row, or "e2e"; "" for a number
}

// ours are the quantities of this package, beside those of the catalog.
var ours = []string{"polls_lost", "scrape_share", "replica_skew"}

// parseWhen reads conditions such as "spec_acceptance_length < 1.2 and prefill >= 25% of e2e".
func parseWhen(text string, names []string) (out []condition, err error) {
	for part := range strings.SplitSeq(text, " and ") {
		words := strings.Fields(part)
		if len(words) != 3 && (len(words) != 5 || words[3] != "of") {
			return nil, fmt.Errorf("%q: want QUANTITY OP NUMBER[%%] [of ROW] [and ...]", part)
		}
		d := condition{quantity: words[0], op: words[1]}
		if !slices.Contains([]string{"<", "<=", ">", ">="}, d.op) {
			return nil, fmt.Errorf("%q: no comparison is written %q (known: < <= > >=)", part, d.op)
		}
		share, percent := strings.CutSuffix(words[2], "%")
		if d.value, err = strconv.ParseFloat(share, 64); err != nil || !metric.Finite(d.value) {
			return nil, fmt.Errorf("%q: %q is no number", part, words[2])
		}
		if percent {
			d.value /= 100
		}
		if len(words) == 5 {
			if d.of = words[4]; !slices.Contains(rowNames(), d.of) {
				return nil, fmt.Errorf("no row is called %q%s", d.of, suggest.Clause(d.of, rowNames()))
			}
		}
		if !slices.Contains(names, d.quantity) {
			return nil, fmt.Errorf("no quantity is called %q%s", d.quantity, suggest.Clause(d.quantity, names))
		}
		out = append(out, d)
	}
	return out, nil
}

// quantityNames are what a condition may be about, sorted.
func quantityNames(c *catalog.Catalog) []string {
	names := slices.Concat(rowNames(), ours)
	for _, p := range c.Packs() {
		for i := range p.Rules {
			names = append(names, p.Rules[i].Name, p.Rules[i].Canonical)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// rowNames are the rows that a condition may name, and the mean that they add up to.
func rowNames() []string { return append(slices.Clone(order), "e2e") }

// readContributing adds facts, or replaces those of the same id.
func (r *Rules) readContributing(nodes []yaml.Node, c *catalog.Catalog) error {
	names := quantityNames(c)
	for i := range nodes {
		n := &nodes[i]
		var f struct {
			ID, When, Says string
			Promote        bool
		}
		for k := 0; k+1 < len(n.Content); k += 2 {
			if word := n.Content[k].Value; !slices.Contains([]string{"id", "when", "says", "promote"}, word) {
				return fmt.Errorf("line %d: a contributing fact has id, when, says and promote, not %q", n.Content[k].Line, word)
			}
		}
		if err := n.Decode(&f); err != nil {
			return err
		}
		conditions, err := parseWhen(f.When, names)
		if err != nil {
			return fmt.Errorf("line %d: %w", n.Line, err)
		}
		if f.ID == "" || f.Says == "" {
			return fmt.Errorf("line %d: a contributing fact needs an id and says", n.Line)
		}
		fact := Contribution{ID: f.ID, Says: f.Says, When: f.When, Promote: f.Promote, conditions: conditions}
		if at := slices.IndexFunc(r.Contributing, func(o Contribution) bool { return o.ID == f.ID }); at >= 0 {
			r.Contributing[at] = fact
		} else {
			r.Contributing = append(r.Contributing, fact)
		}
	}
	return nil
}

// contribute notes the facts whose conditions all hold.
func (x *explanation) contribute(facts []Contribution) {
	at := len(x.Findings)
	if i := slices.IndexFunc(x.Findings, func(f Finding) bool { return f.Seconds >= 0 }); i >= 0 {
		at = i
	}
	for _, f := range facts {
		f.Evidence = nil
		if !slices.ContainsFunc(f.conditions, func(d condition) bool { return !x.holds(&d, &f) }) {
			x.Contributing = append(x.Contributing, f)
			if f.Promote {
				x.Findings = slices.Insert(x.Findings, at, Finding{f.ID, math.NaN(), math.NaN()})
				at++
			}
		}
	}
}

// holds reports whether a condition holds of one of the quantities of its name, which is then evidence. What is not
// shown does not hold.
func (x *explanation) holds(d *condition, f *Contribution) bool {
	limit := d.value
	if d.of != "" {
		limit *= x.row(d.of)
	}
	for _, q := range x.named(d.quantity) {
		if metric.Finite(q.Value) && compare(d.op, q.Value, limit) {
			f.Evidence = append(f.Evidence, q)
			return true
		}
	}
	return false
}

// row is a row of the waterfall or their sum; it is not a number where there is none.
func (x *explanation) row(id string) float64 {
	if v, ok := x.rows[id]; ok && id != "e2e" {
		return v
	} else if id == "e2e" && x.Why == Latency {
		return x.Mean
	}
	return math.NaN()
}

// named are the quantities of a name or a canonical id: rows, the engine's, and those beside it.
func (x *explanation) named(name string) (out []Quantity) {
	if slices.Contains(rowNames(), name) {
		return []Quantity{{ID: name, Name: name, Value: x.row(name), Unit: "seconds"}}
	}
	if name == "replica_skew" {
		return []Quantity{{ID: name, Name: name, Value: x.facts.skew(), Unit: ""}}
	}
	for _, q := range slices.Concat(x.facts.Quantities, x.facts.Beside) {
		if q.ID == name || q.Name == name {
			out = append(out, q)
		}
	}
	return out
}

// skew is how many requests the busiest replica ended, by the mean of all; it is not a number for one.
func (f *Facts) skew() float64 {
	most, all, n := 0.0, 0.0, 0
	for i := range f.Replicas {
		sum := 0.0
		for j := range f.Replicas[i].Ended {
			sum += at(f.Replicas[i].Ended, j)
		}
		if f.Replicas[i].Ended != nil {
			most, all, n = max(most, sum), all+sum, n+1
		}
	}
	if n < 2 || all == 0 {
		return math.NaN()
	}
	return most * float64(n) / all
}

func compare(op string, a, b float64) bool {
	switch op {
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	}
	return a >= b
}

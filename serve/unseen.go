package serve

import (
	"fmt"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/scrapestat/scrapestat/metric"
)

// maxNamed is how many series a warning names.
const maxNamed = 5

// unseen warns of counters that began anew without a fall: a creation time alone tells that, which PromQL does not
// know.
func (s *store) unseen(q *Request) (out []string) {
	expr, err := parser.NewParser(parser.Options{EnableExtendedRangeSelectors: true}).ParseExpr(q.Expr)
	if err != nil {
		return nil
	}
	n, first := 0, ""
	done := map[restarted]bool{}
	for _, m := range parser.ExtractSelectors(expr) {
		for _, x := range s.match(m) {
			for _, p := range x.parts {
				t := x.target
				owner := t.dict.Slots[p.slots[0]].Series
				key := restarted{t, owner}
				if !done[key] && t.hiddenRestart(owner) {
					if n++; n <= maxNamed {
						first += " " + x.labels.String()
					}
				}
				done[key] = true
			}
		}
	}
	if n > 0 {
		out = append(out, fmt.Sprintf("restart_unseen: %d series began anew without a fall, which only their creation time "+
			"tells; increase() misses what came before:%s", n, first))
	}
	return out
}

// hiddenRestart reports whether the creation time of a series moved at a poll at which none of its counts fell.
func (t *target) hiddenRestart(owner int) bool {
	slots := t.dict.SlotsOf(owner)
	created := -1
	for i, n := range slots {
		if t.dict.Slots[n].Role == metric.RoleCreated {
			created = i
		}
	}
	if created < 0 || t.logs[slots[created]] == nil {
		return false
	}
	it := &series{target: t, run: t.run, parts: []part{{slots: slots}}}
	walk := it.Iterator(nil).(*iterator)
	var at metric.Created
	last := make([]float64, len(slots))
	for i := range t.polls {
		if walk.at = i; t.polls[i].stored < 0 {
			continue
		}
		walk.apply()
		c := walk.cursors[0]
		fell := false
		for k := range c {
			if k != created && c[k].Present {
				fell = fell || c[k].Value() < last[k]
				last[k] = c[k].Value()
			}
		}
		if c[created].Present && at.Set(c[created].Value()) && !fell {
			return true
		}
	}
	return false
}

// restarted is a series that was looked at.
type restarted struct {
	target *target
	series int
}

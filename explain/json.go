package explain

import (
	"io"
	"time"

	"github.com/scrapestat/scrapestat/internal/texttab"
)

// WriteJSON writes the explanations of a run as a JSON document of the schema scrapestat.explain.
func WriteJSON(w io.Writer, run string, results []*Result, rules *Rules) error {
	return document(rules, "run", run, "engines", list(results, rules)).WriteJSON(w)
}

// WritePairsJSON writes what two runs differ in, as a document of the same schema; load are sentences of how their
// loads differed.
func WritePairsJSON(w io.Writer, runs [2]string, load []string, pairs []*Pair, alone []*Result, rules *Rules) error {
	return document(rules, "runs", runs[:], "load_differs", append([]string{}, load...),
		"pairs", texttab.NewList(pairs, func(p **Pair) texttab.Object { return (*p).json(rules) }),
		"alone", list(alone, rules)).WriteJSON(w)
}

// document is one of the schema with the thresholds in force at its end.
func document(rules *Rules, pairs ...any) texttab.Object {
	thresholds, t := map[string]float64{}, rules.Thresholds
	for _, x := range t.list() {
		thresholds[x.key] = *x.at
	}
	return texttab.NewObject("schema", "scrapestat.explain", "schema_version", 1).With(pairs...).
		With("thresholds", thresholds)
}

func list(results []*Result, rules *Rules) texttab.List[*Result] {
	return texttab.NewList(results, func(r **Result) texttab.Object { return (*r).json(rules) })
}

func (p *Pair) json(rules *Rules) texttab.Object {
	return texttab.NewObject("engine", p.B.Engine, "labels", p.B.Of, "difference_s", p.Difference(),
		"rows", texttab.NewList(p.Rows, func(r *PairRow) texttab.Object {
			return texttab.NewObject("id", r.ID, "a_s", r.A, "b_s", r.B, "difference_s", r.Difference())
		}),
		"notes", append([]string{}, p.Notes...), "a", p.A.json(rules), "b", p.B.json(rules))
}

func (r *Result) json(rules *Rules) texttab.Object {
	var model any
	if m := r.Model; m != nil {
		model = texttab.NewObject("base_s", m.Base, "per_request_s", m.Batch, "per_prompt_token_s", m.Prefill)
	}
	o := texttab.NewObject("engine", r.Engine, "labels", r.Of, "why", string(r.Why), "verdict", r.Verdict,
		"requests", r.Requests)
	if whole := r.Why.whole(); whole != "" {
		o = o.With(whole+"_mean_s", r.Mean)
	}
	return o.With(
		"findings", texttab.NewList(r.Findings, func(f *Finding) texttab.Object {
			text := rules.Of(f.ID)
			return texttab.NewObject("id", f.ID, "seconds", f.Seconds, "share", f.Share, "text", text.Says,
				"evidence", append([]string{}, text.Evidence...)).Known("try", text.Try)
		}),
		"waterfall", texttab.NewList(r.Waterfall, func(row *Row) texttab.Object {
			return texttab.NewObject("id", row.ID, "seconds", row.Seconds, "share", row.Share)
		}),
		"contributing", texttab.NewList(r.Contributing, func(c *Contribution) texttab.Object {
			return texttab.NewObject("id", c.ID, "when", c.When, "text", c.Text(),
				"evidence", quantities(c.Evidence))
		}),
		"step_model", model, "slices", r.stretches(), "slice_s", r.Slice,
		"notes", append([]string{}, r.Notes...), "missing", append([]string{}, r.Missing...),
		"not_ruled_out", append([]string{}, r.Open...),
		"quantities", quantities(r.Quantities))
}

func quantities(list []Quantity) texttab.List[Quantity] {
	return texttab.NewList(list, func(q *Quantity) texttab.Object {
		return texttab.NewObject("id", q.ID, "name", q.Name, "labels", q.Labels, "value", q.Value).
			Known("unit", q.Unit).With("families", append([]string{}, q.Families...))
	})
}

// stretches are the timeslices of each class of the queue: the first and the last of each stretch.
func (r *Result) stretches() map[string][][2]int {
	out := map[string][][2]int{}
	for j, id := range r.Classes {
		if id == "" {
			continue
		}
		list := out[id]
		if n := len(list); n > 0 && list[n-1][1] == j-1 {
			list[n-1][1] = j
			continue
		}
		out[id] = append(list, [2]int{j, j})
	}
	return out
}

// Waited is the share of the timeslices in which requests waited, and for how long altogether, of a class of the queue.
func (r *Result) Waited(id string) (share float64, span time.Duration) {
	n := 0
	for _, c := range r.Classes {
		if c == id {
			n++
		}
	}
	return float64(n) / float64(max(len(r.Classes), 1)), time.Duration(float64(n) * r.Slice * float64(time.Second))
}

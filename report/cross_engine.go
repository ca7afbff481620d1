package report

import (
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/summary"
)

// note is a doubt that one should have when numbers of engines stand side by side,
// or an engine's number alone. Section 8 of the design document derived-metrics.md.
type note struct {
	engines   []string // it is about, as the catalog names them; nil is all
	others    bool     // it needs another engine beside those, or two for all
	canonical []string // any of these must be told
	text      string
}

var notes = [...]note{
	{[]string{"trtllm"}, true, []string{"ttft_s", "ttft_mean_s"}, "TensorRT-LLM's time to first token begins in the engine, that of others at the arrival: theirs includes their front end."},
	{nil, true, []string{"itl_s", "tpot_s", "itl_mean_s", "tpot_mean_s"}, "itl is per token, tpot per request: long answers weigh more in the first. They are not the same number."},
	{nil, true, []string{"ttft_s", "itl_s", "tpot_s", "e2e_s", "queue_s"}, "Bucket bounds differ between engines: compare means first, percentiles only with their brackets."},
	{[]string{"trtllm", "tgi", "llamacpp"}, false, []string{"output_tok_s"}, "Where an engine counts tokens when a request ends, the rate of a slice is a sawtooth; that of the whole window is right but for requests under way at its ends."},
	{[]string{"llamacpp"}, false, []string{"input_tok_s"}, "llama.cpp's prompt tokens leave out what came from its cache; those of others include it."},
	{[]string{"vllm-omni"}, false, []string{"output_tok_s"}, "Generated tokens of an Omni pipeline add up all stages, codec tokens included."},
	{nil, true, []string{"request_rate", "error_ratio"}, "What counts as a request differs: vLLM's contain aborted and failed ones, SGLang's those that finished, TGI's and Triton's no failures."},
	{[]string{"dynamo"}, true, []string{"output_tok_s", "request_rate"}, "A Dynamo frontend and its workers see the same requests: their numbers must not be added up."},
	{[]string{"triton"}, false, []string{"request_rate"}, "The row of an ensemble holds what its composing models do: rows of models must not be added up."},
	{[]string{"sglang"}, false, []string{"ttft_s"}, "SGLang's first bucket of time to first token ends at 100 ms: percentiles below are invented, the mean is not."},
}

// notes tells what to keep in mind with the numbers of one engine.
func (t *pageBuilder) notes(e *engine) *table {
	tab := noteTable()
	told := e.canonicals(t.run)
	for _, n := range notes {
		if !n.others && slices.Contains(n.engines, e.id) && n.touches(told) {
			tab.row(raw(e.title), str(n.text))
		}
	}
	return tab
}

func noteTable() *table {
	return &table{id: "notes", title: "notes", list: true, columns: []column{hidden("engine"), words("text", "NOTE")}}
}

func (n *note) touches(canonical []string) bool {
	return slices.ContainsFunc(n.canonical, func(id string) bool { return slices.Contains(canonical, id) })
}

// canonicals are the quantities across engines that an engine has numbers of.
func (e *engine) canonicals(r *summary.Run) []string {
	var out []string
	for i := range e.fleet {
		if d := &e.fleet[i]; d.Canonical != "" && d.Status.Defined() {
			out = append(out, d.Canonical)
		}
	}
	for i := range r.Latencies {
		if l := &r.Latencies[i]; l.Engine == e.id && !e.second && l.Histogram != nil && l.Histogram.Count > 0 {
			out = append(out, l.ID)
		}
	}
	return out
}

// crossEngine tells the quantities that several engines of the run have, side by
// side, with what makes them hard to compare.
func (t *pageBuilder) crossEngine() {
	engines := slices.DeleteFunc(t.inRun(), func(e *engine) bool { return len(e.canonicals(t.run)) == 0 })
	if len(engines) < 2 {
		return
	}
	tab := &table{id: "cross_engine", heading: "across engines", columns: []column{words("canonical", "QUANTITY"), hidden("unit")}}
	for _, e := range engines {
		id := e.id
		if id == "" || e.second {
			id = e.title
		}
		tab.columns = append(tab.columns, number(id, e.title))
	}
	var ids []string
	for _, e := range engines {
		for i := range e.fleet {
			if d := &e.fleet[i]; d.Canonical != "" && !slices.Contains(ids, d.Canonical) {
				ids = append(ids, d.Canonical)
			}
		}
	}
	for _, id := range ids {
		row := []cell{str(id), {}}
		has := 0
		for _, e := range engines {
			value, unit := e.canonical(id)
			row = append(row, value)
			if value.value != nil {
				has++
				row[1] = raw(optional(unit))
			}
		}
		if has > 1 {
			tab.row(row...)
		}
	}
	t.crossLatencies(tab, engines)
	if len(tab.rows) == 0 {
		return
	}
	t.add(tab)
	t.add(t.crossNotes(engines))
}

// canonical is the value of an engine for a canonical id, all models added up where
// it is a rate, else that of the only one.
func (e *engine) canonical(id string) (cell, string) {
	var found []*summary.Derived
	for i := range e.fleet {
		if d := &e.fleet[i]; d.Canonical == id && d.Status.Defined() && d.Labels.Without(e.scopeNames()...).Len() == 0 {
			found = append(found, d)
		}
	}
	switch {
	case len(found) == 0:
		return only("-"), ""
	case len(found) == 1:
		return derivedCell(found[0]), found[0].Unit
	case found[0].Category != catalog.Throughput:
		return only("several"), found[0].Unit
	}
	sum := *found[0]
	for _, d := range found[1:] {
		sum.Shown += d.Shown
	}
	return derivedCell(&sum), sum.Unit
}

// crossLatencies adds a row for each percentile of times that several engines
// have.
func (t *pageBuilder) crossLatencies(tab *table, engines []*engine) {
	var ids []string
	for i := range t.run.Latencies {
		if id := t.run.Latencies[i].ID; !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	columns := t.histogramColumns()
	for _, id := range ids {
		for k, q := range t.shownQuantiles() {
			row := []cell{str(id + " " + columns[2+4*k].id), raw("seconds")}
			has := 0
			for _, e := range engines {
				value := only("-")
				several := 0
				for i := range t.run.Latencies {
					l := &t.run.Latencies[i]
					if l.Engine != e.id || e.second || l.ID != id || l.Histogram == nil || q >= len(l.Histogram.Quantiles) || math.IsNaN(l.Histogram.Quantiles[q].Value) {
						continue
					}
					unit := t.latencyUnit(&t.run.Metrics[l.Metric])
					if several++; several > 1 {
						value = only("several")
					} else if value.text = estimate(l.Histogram.Quantiles[q], unit); unit == "seconds" {
						value.value = l.Histogram.Quantiles[q].Value
					} else if unit == "milliseconds" {
						value.value = l.Histogram.Quantiles[q].Value / 1e3
					}
				}
				if value.value != nil {
					has++
				}
				row = append(row, value)
			}
			if has > 1 {
				tab.row(row...)
			}
		}
	}
}

// crossNotes are the notes that apply to engines that stand side by side.
func (t *pageBuilder) crossNotes(engines []*engine) *table {
	tab := noteTable()
	for _, n := range notes {
		about, all := 0, 0
		for _, e := range engines {
			if !n.touches(e.canonicals(t.run)) {
				continue
			}
			all++
			if n.engines == nil || slices.Contains(n.engines, e.id) {
				about++
			}
		}
		if n.others && about > 0 && all > 1 {
			tab.row(cell{}, str(n.text))
		}
	}
	return tab
}

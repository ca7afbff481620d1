package explain

import (
	"encoding/json"
	"io"
	"math"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// document is the JSON of explanations.
type document struct {
	Schema  string       `json:"schema"`
	Version int          `json:"schema_version"`
	Run     string       `json:"run"`
	Engines []engineJSON `json:"engines"`
	// Thresholds are those in force.
	Thresholds map[string]float64 `json:"thresholds"`
}

type engineJSON struct {
	Engine     string              `json:"engine"`
	Verdict    string              `json:"verdict"`
	Requests   float64             `json:"requests"`
	E2E        *float64            `json:"e2e_mean_s"`
	Findings   []findingJSON       `json:"findings"`
	Waterfall  []rowJSON           `json:"waterfall"`
	Model      *stepJSON           `json:"step_model"`
	Slices     map[string][][2]int `json:"slices"` // of classes of the queue: the first and the last of each stretch
	SliceS     float64             `json:"slice_s"`
	Notes      []string            `json:"notes"`
	Missing    []string            `json:"missing"`
	Quantities []quantityJSON      `json:"quantities"`
}

type findingJSON struct {
	ID       string   `json:"id"`
	Seconds  *float64 `json:"seconds"`
	Share    *float64 `json:"share"`
	Text     string   `json:"text"`
	Evidence []string `json:"evidence"`
	Try      string   `json:"try,omitempty"`
}

type rowJSON struct {
	ID      string  `json:"id"`
	Seconds float64 `json:"seconds"`
	Share   float64 `json:"share"`
}

type stepJSON struct {
	Base    float64 `json:"base_s"`
	Batch   float64 `json:"per_request_s"`
	Prefill float64 `json:"per_prompt_token_s"`
}

type quantityJSON struct {
	ID       string        `json:"id"`
	Name     string        `json:"name"`
	Labels   metric.Labels `json:"labels"`
	Value    float64       `json:"value"`
	Unit     string        `json:"unit,omitempty"`
	Families []string      `json:"families"`
}

// finite is a number, nil where there is none.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// WriteJSON writes the explanations of a run as a JSON document of the schema scrapestat.explain.
func WriteJSON(w io.Writer, run string, results []*Result, rules *Rules) error {
	d := document{Schema: "scrapestat.explain", Version: 1, Run: run, Thresholds: map[string]float64{}}
	t := rules.Thresholds
	for _, x := range t.list() {
		d.Thresholds[x.key] = *x.at
	}
	for _, r := range results {
		d.Engines = append(d.Engines, r.json(rules))
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(d)
}

func (r *Result) json(rules *Rules) engineJSON {
	out := engineJSON{Engine: r.Engine, Verdict: r.Verdict, Requests: r.Requests, E2E: finite(r.E2E),
		Findings: []findingJSON{}, Waterfall: []rowJSON{}, Slices: r.stretches(), SliceS: r.Slice,
		Notes: append([]string{}, r.Notes...), Missing: append([]string{}, r.Missing...), Quantities: []quantityJSON{}}
	for _, f := range r.Findings {
		text := rules.Findings[f.ID]
		out.Findings = append(out.Findings, findingJSON{f.ID, finite(f.Seconds), finite(f.Share), text.Says,
			append([]string{}, text.Evidence...), text.Try})
	}
	for _, row := range r.Waterfall {
		out.Waterfall = append(out.Waterfall, rowJSON(row))
	}
	if m := r.Model; m != nil {
		out.Model = &stepJSON{m.Base, m.Batch, m.Prefill}
	}
	for _, q := range r.Quantities {
		out.Quantities = append(out.Quantities, quantityJSON(q))
	}
	return out
}

// stretches are the timeslices of each class of the queue.
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

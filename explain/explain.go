package explain

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// Row is a part of the mean time of a request.
type Row struct {
	ID      string
	Seconds float64 // per request that ended, from 0 up; of "unexplained" what is missing to the mean, or too much
	Share   float64 // of the mean
}

// Finding is a cause, or a condition that changes what the numbers mean.
type Finding struct {
	ID string
	// Seconds and Share are those of its rows. A condition has no seconds (NaN), and a loss the share of requests.
	Seconds, Share float64
}

// Why is what is asked.
type Why string

// What may be asked: why the mean time of a request, or the mean time to its first token, is what it is, and why there
// is no more throughput.
const (
	Latency    Why = "latency"
	TTFT       Why = "ttft"
	Throughput Why = "throughput"
)

// whole is the name of the time whose mean the rows add up to, "" for none.
func (w Why) whole() string { return map[Why]string{Latency: "e2e", TTFT: "ttft"}[w] }

// Result is what the facts of an engine tell.
type Result struct {
	Why     Why
	Engine  string
	Of      metric.Labels // what part of it
	Verdict string        // the first finding
	// Findings are in order of weight; "service", the time of the model itself, is last.
	Findings []Finding
	// Mean is the mean time of the Requests that ended, or to the first token of those that had one; NaN where it is not
	// known, and for throughput. Waterfall adds up to it.
	Mean      float64
	Requests  float64
	Waterfall []Row
	Model     *StepModel // nil where it does not fit
	// Classes has for each timeslice the class of queue that most of those that waited were in, "" for none.
	Classes []string
	Slice   float64 // the width of a timeslice in seconds
	// Quantities are what else the engine showed, for evidence.
	Quantities []Quantity
	// Contributing are conditions of the rules that hold, the first of which may be no cause.
	Contributing []Contribution
	ClientSeen   bool // the load generator was recorded: without it no finding is of it
	// Open are causes that cannot be ruled out, as the engine does not show what would tell, each with that.
	Open    []string
	Notes   []string // how rows are to be read
	Missing []string // what the engine does not show and the answer would need
}

// order is that of the rows of a waterfall, as a request goes through them.
var order = []string{"front", "queue_kv", "queue_slots", "queue_budget", "queue_imbalance", "queue_burst",
	"queue_unknown", "cold_start", "prefill", "decode_base", "decode_batch", "decode_prefill"}

// unexplained is the row of what the others leave of the mean.
const unexplained = "unexplained"

// Rows are the ids of the rows of an engine that is no pipeline, in their order.
func Rows() []string { return append(slices.Clone(order), unexplained) }

// Row returns the seconds of a row, 0 for one that is not there.
func (r *Result) Row(id string) float64 {
	for i := range r.Waterfall {
		if r.Waterfall[i].ID == id {
			return r.Waterfall[i].Seconds
		}
	}
	return 0
}

// explanation is a result that is being made.
type explanation struct {
	*Result
	facts *Facts
	rules *Thresholds
	rows  map[string]float64
	queue float64
}

// Explain tells where the time of the requests of an engine went, and what was exhausted meanwhile.
func Explain(f *Facts, rules *Rules, why Why) *Result {
	x := &explanation{&Result{Why: why, Engine: f.Engine, Of: f.Of, Mean: math.NaN(), Slice: f.Slice,
		Requests: known(f.Sums[cmp.Or(why.whole(), "e2e")].Count), Quantities: f.Quantities,
		Notes: slices.Clone(f.Notes), Missing: slices.Clone(f.Uncertain)}, f, &rules.Thresholds, map[string]float64{}, 0}
	x.Findings = x.conditions()
	at := len(x.Findings)
	switch {
	case why == Throughput:
		x.Findings = append(x.Findings, x.throughput()...)
	case x.enough():
		x.Mean = f.own(why.whole())
		x.Findings = append(x.Findings, x.times()...)
	}
	x.client(at)
	x.Open = x.open()
	x.contribute(rules.Contributing)
	if len(x.Findings) == 0 {
		x.Findings = []Finding{{"cannot_tell", math.NaN(), math.NaN()}}
	}
	x.Verdict = x.Findings[0].ID
	return x.Result
}

// times are the findings of the parts of the time of a request, which it makes the rows of.
func (x *explanation) times() []Finding {
	switch {
	case x.Why == TTFT:
		x.firstToken()
	case len(x.facts.Stages) > 0:
		x.queue = x.facts.mean("queue")
		return x.pipeline()
	default:
		x.queue = x.facts.mean("queue")
		x.waterfall()
	}
	if gap := x.rows[unexplained]; math.Abs(gap) > x.rules.Unexplained*x.Mean {
		x.Missing = append(x.Missing, fmt.Sprintf("times that add up: the parts are %.0f %% of the time of a request",
			100*(1-gap/x.Mean)))
		return []Finding{{"cannot_tell", gap, gap / x.Mean}}
	}
	return x.causes()
}

// known is a number, 0 where it is none.
func known(v float64) float64 {
	if !finiteUp(v) {
		return 0
	}
	return v
}

// enough reports whether there are times of enough requests, and notes what is missing.
func (x *explanation) enough() bool {
	whole, name, did := x.facts.Sums[x.Why.whole()], "time of a request", "ended"
	if x.Why == TTFT {
		name, did = "time to the first token", "had a first token"
	}
	switch {
	case !x.facts.has(x.Why.whole()) || whole.Count > 0 && whole.Sum == 0:
		x.Missing = append(x.Missing, name)
	case !(whole.Count > 0):
		x.Missing = append(x.Missing, "no request "+did+" in the window")
	case whole.Count < x.rules.Few:
		x.Missing = append(x.Missing, fmt.Sprintf("%.0f requests %s in the window, want %.0f", whole.Count, did, x.rules.Few))
	case !x.facts.has("queue"):
		x.Missing = append(x.Missing, "queue time")
	default:
		for name, t := range x.facts.Sums {
			if !finiteUp(t.Sum) || !finiteUp(t.Count) {
				x.Missing = append(x.Missing, name+": not a number from 0 up")
			}
		}
		slices.Sort(x.Missing)
		return len(x.Missing) == 0
	}
	return false
}

// waterfall makes the rows.
func (x *explanation) waterfall() {
	f := x.facts
	if f.has("inference") {
		x.rows["front"] = max(0, x.Mean-x.queue-f.mean("inference"))
	}
	prefill, decode := x.phases()
	gaps := f.gaps()
	cold := coldLead(gaps, x.rules)
	x.dealQueue(cold)
	x.splitDecode(gaps, cold, decode)
	if prefill >= 0 {
		x.rows["prefill"] = prefill
	}
	x.list(order)
}

// list makes the waterfall of the rows that there are, and of what they leave.
func (x *explanation) list(order []string) {
	sum := 0.0 // in the order of rows, so that the same facts give the same bits
	for _, id := range order {
		sum += x.rows[id]
	}
	x.rows[unexplained] = x.Mean - sum
	for _, id := range append(slices.Clone(order), unexplained) {
		if v, ok := x.rows[id]; ok {
			x.Waterfall = append(x.Waterfall, Row{id, v, v / x.Mean})
		}
	}
}

// phases returns the times of prefill, -1 where decode holds it, and of decode.
func (x *explanation) phases() (prefill, decode float64) {
	f := x.facts
	switch {
	case f.has("prefill") && f.has("decode"):
		return f.mean("prefill"), f.mean("decode")
	case f.has("ttft"):
		t := f.Sums["ttft"]
		prefill = max(0, t.Sum/max(t.Count, 1)-x.queue)
		x.Notes = append(x.Notes, "prefill holds the front end")
		return prefill, max(0, x.Mean-x.queue-prefill)
	case f.has("inference"):
		decode = f.mean("inference")
	default:
		decode = max(0, x.Mean-x.queue)
	}
	x.Notes = append(x.Notes, "prefill and decode are one")
	return -1, decode
}

// dealQueue makes the rows of the queue.
func (x *explanation) dealQueue(cold int) {
	if x.facts.slices() == 0 {
		x.rows["queue_unknown"] = x.queue
		x.Missing = append(x.Missing, "waiting and running requests")
		return
	}
	d := dealQueue(x.facts, x.rules, cold)
	x.Classes = d.names
	rows := d.rows(x.queue)
	if rows == nil {
		rows = map[string]float64{"queue_unknown": x.queue}
		x.Notes = append(x.Notes, "no poll saw a request wait")
	}
	for id, v := range rows {
		x.rows[id] = v
	}
	x.Missing = append(x.Missing, d.missing()...)
}

// splitDecode makes the rows of decode.
func (x *explanation) splitDecode(gaps []gap, cold int, decode float64) {
	if cold >= 0 {
		slow := decode * coldShare(gaps, cold)
		x.rows["cold_start"] += slow
		decode -= slow
	}
	s := x.facts.steps(cold)
	m, ok := s.fit()
	if !ok {
		x.rows["decode_base"] = decode
		x.Notes = append(x.Notes, "decode is not split: no model of the step fits")
		return
	}
	x.Model = &m
	x.rows["decode_base"], x.rows["decode_batch"], x.rows["decode_prefill"] = s.split(m, decode)
}

// byWeight sorts findings by their share, the largest first.
func byWeight(list []Finding) []Finding {
	slices.SortFunc(list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), strings.Compare(a.ID, b.ID))
	})
	return list
}

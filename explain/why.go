package explain

import (
	"fmt"
	"math"
	"slices"
)

// firstToken makes the rows of the mean time to the first token. Queue, prefill and the token itself are counted when a
// request ends on most engines, so that under a growing queue they are of others than the tokens of the window.
func (x *explanation) firstToken() {
	f := x.facts
	first, ended := f.Sums["ttft"].Count, f.Sums["queue"].Count
	x.queue = min(x.Mean, f.own("queue"))
	if f.has("prefill") && f.Sums["prefill"].Count > 0 {
		x.rows["prefill"] = min(x.Mean, f.own("prefill"))
		front := x.Mean - x.queue - x.rows["prefill"]
		if x.queue >= x.rules.Queue*x.Mean && f.has("inference") && f.has("e2e") {
			front = min(front, f.mean("e2e")-f.mean("queue")-f.mean("inference"))
		}
		x.rows["front"] = max(0, front)
		x.later(first, ended)
	} else {
		x.rows["prefill"] = x.Mean - x.queue
		x.Notes = append(x.Notes, "prefill holds the front end")
	}
	x.dealQueue(coldLead(f.gaps(), x.rules))
	x.list(order)
}

// later adds to the queue what the parts leave of the mean where requests queue: those that have had a first token and
// not ended yet came later than those whose queue is known. What is more than a quarter of the queue stays unexplained
// where as many ended as had a first token.
func (x *explanation) later(first, ended float64) {
	gap := x.Mean - x.queue - x.rows["prefill"] - x.rows["front"]
	others := math.Abs(first-ended) > x.rules.Unexplained*first
	if gap > 0.01*x.Mean && x.queue >= x.rules.Queue*x.Mean && (others || gap <= x.queue/4) {
		x.queue += gap
		x.Notes = append(x.Notes, fmt.Sprintf("%.0f first tokens, %.0f requests ended: the queue of those "+
			"that still run is what the other parts leave", first, ended))
	}
}

// throughput are the findings of what held most of those that were in the server, of whom each waited or ran: a class
// of the queue that has a share of Queue of them, else the load itself.
func (x *explanation) throughput() (out []Finding) {
	f := x.facts
	if f.slices() == 0 || !slices.ContainsFunc(f.Replicas, func(r Replica) bool { return r.Running != nil }) {
		x.Missing = append(x.Missing, "waiting and running requests")
		return nil
	}
	d := dealQueue(f, x.rules, coldLead(f.gaps(), x.rules))
	x.Classes = d.names
	inside := f.inside(d.n)
	waiting := 0.0
	for _, v := range d.total {
		waiting += v
	}
	all, mean, spread := 0.0, meanOf(inside), 0.0
	for _, v := range inside {
		all += v
		spread += (v - mean) * (v - mean)
	}
	if !(all > 0) {
		x.Missing = append(x.Missing, "no request was in the server")
		return nil
	}
	rows := d.rows(waiting / all)
	for _, id := range order {
		if share := rows[id]; share >= x.rules.Queue {
			out = append(out, Finding{id, math.NaN(), share})
		}
	}
	x.Missing = append(x.Missing, d.missing()...)
	out = byWeight(out)
	if math.Sqrt(spread/float64(len(inside))) < 0.1*mean && len(inside) >= 10 {
		x.Notes = append(x.Notes, fmt.Sprintf("%.3g requests were in the server all along: consistent with clients that "+
			"keep so many open", mean))
	}
	if len(out) == 0 {
		out = append(out, Finding{"load", math.NaN(), 1 - waiting/all})
	}
	return out
}

// inside are the requests that waited or ran in each timeslice.
func (f *Facts) inside(n int) []float64 {
	out := make([]float64, n)
	for i := range f.Replicas {
		for j := range out {
			out[j] += at(f.Replicas[i].Waiting, j) + at(f.Replicas[i].Running, j)
		}
	}
	return out
}

package explain

import (
	"math"
	"slices"
	"strings"
)

// conditions are what changes what the numbers mean: restarts, then requests that did not end well.
func (x *explanation) conditions() (out []Finding) {
	if x.facts.Restarts > 0 {
		out = append(out, Finding{"restart", math.NaN(), math.NaN()})
	}
	return append(out, byWeight(x.losses())...)
}

// losses are the kinds of requests that did not end well of which there are enough to matter.
func (x *explanation) losses() (out []Finding) {
	l, t := x.facts.Losses, x.rules
	l.Ended = max(l.Ended, known(x.facts.Sums["e2e"].Count)) // an engine may not show those that ended well
	lost := func(id string, n, of, share float64) bool {
		if !(n >= t.LossLeast && of > 0 && n/of >= share) {
			return false
		}
		out = append(out, Finding{id, math.NaN(), n / of})
		return true
	}
	failed := lost("errors", l.Errors, l.Ended, t.Loss)
	lost("aborts", l.Aborts, l.Ended, t.Abort)
	if !lost("rejections", l.Refused, l.Refused+l.Ended, t.Loss) && !failed {
		lost("errors", l.Answers5xx, l.Answers, t.Loss)
	}
	return out
}

// open are the causes that an engine would not show if they were there.
func (x *explanation) open() (out []string) {
	if x.Why == Latency && len(x.facts.Stages) == 0 && !math.IsNaN(x.Mean) {
		stepped := slices.ContainsFunc(x.facts.Replicas, func(r Replica) bool { return r.Steps != nil && r.GapCount != nil })
		switch {
		case !x.facts.has("itl"):
			out = append(out, "cold_start, decode_batch, prefill_interference, stalls (gaps between tokens are not shown)")
		case !stepped:
			out = append(out, "cold_start, decode_batch, prefill_interference (steps are not shown)")
		}
	}
	return append(out, x.facts.Unseen...)
}

// causes are the rows that hold enough of the time, then the time of the model itself: what of prefill and decode none
// of them has.
func (x *explanation) causes() (out []Finding) {
	taken := map[string]bool{}
	add := func(id string, share float64, rows ...string) {
		seconds := 0.0
		for _, row := range rows {
			seconds += x.rows[row]
			taken[row] = true
		}
		out = append(out, Finding{id, seconds, share})
	}
	share := func(id string) float64 { return x.rows[id] / x.Mean }
	for _, id := range order {
		if least := x.least(id); least > 0 && share(id) >= least {
			add(id, share(id), id)
		}
	}
	prefill := share("prefill") + share("decode_prefill")
	tail, known := x.facts.tail(x.rules.TailTimes)
	switch {
	case prefill >= x.rules.Prefill:
		add("prefill", prefill, "prefill", "decode_prefill")
	case x.Why == TTFT: // gaps come after it
	case known && tail >= x.rules.Tail && share("decode_prefill") >= x.rules.Interference:
		add("prefill_interference", max(tail, share("decode_prefill")), "decode_prefill")
	case known && tail >= x.rules.Stalls && !(x.facts.Drafts > 0):
		seconds := tail * (x.rows["decode_base"] + x.rows["decode_batch"] + x.rows["decode_prefill"])
		out = append(out, Finding{"stalls", seconds, tail})
	}
	out = byWeight(out)
	var rest []string
	for _, id := range []string{"prefill", "decode_base", "decode_batch", "decode_prefill"} {
		if !taken[id] {
			rest = append(rest, id)
		}
	}
	own := 0.0
	for _, id := range rest {
		own += share(id)
	}
	if own > 0 || len(out) == 0 || x.Why == Latency {
		add("service", own, rest...)
	}
	return out
}

// least is the share of the time from which a row is a cause of its own, 0 for one that never is.
func (x *explanation) least(id string) float64 {
	switch {
	case strings.HasPrefix(id, "queue_") && x.queue >= x.rules.Steps*x.meanGap():
		return x.rules.Queue
	case id == "front" && x.Why == TTFT && x.rows[id] < x.rules.Steps*x.meanGap():
	case id == "cold_start" || id == "decode_batch" || id == "front":
		return x.rules.Share
	}
	return 0
}

// meanGap is the mean time between two tokens, 0 where it is not shown.
func (x *explanation) meanGap() float64 {
	if t := x.facts.Sums["itl"]; t.Count > 0 {
		return t.Sum / t.Count
	}
	return 0
}

// tail is the least share of the time of decode that lies in gaps beyond so many times the median gap: each counts with
// the lower bound of its bucket.
func (f *Facts) tail(times float64) (share float64, known bool) {
	itl := f.Sums["itl"]
	if len(f.Gaps) == 0 || !(itl.Sum > 0) || !(f.Gap > 0) {
		return 0, false
	}
	from, before, sum := 0.0, 0.0, 0.0
	for _, b := range f.Gaps {
		if from >= times*f.Gap {
			sum += (b.Count - before) * from
		}
		from, before = b.Upper, b.Count
	}
	return sum / itl.Sum, true
}

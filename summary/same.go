package summary

import (
	"hash/fnv"
	"math"
	"math/bits"
	"slices"

	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

// What is kept of an endpoint to find that it is another one under a second address.
const (
	traceGroups = 64
	traceBodies = 32
	maxAlike    = 256 // endpoints that an endpoint is compared with
)

// trace is what the present process of an endpoint showed over time: the sums of its counters and counts in groups that
// names and labels choose, so that a series is in the same group at every endpoint. Bodies of one process never fall in
// any group; those of two processes soon differ in both directions.
type trace struct {
	process int32
	begun   float64
	step    int64 // a power of 2: bodies are the first ones of stretches of that length, in nanoseconds
	group   []uint8
	bodies  []traced
	past    *trace // what the process before showed that was watched longest; nil for none
}

// traced is one body, which was made between sent and at.
type traced struct {
	sent, at int64
	sums     [traceGroups]float64
}

// add takes a poll after the decision on it. A nil trace does nothing.
func (t *trace) add(s *metric.Snapshot, step *continuity.Step, tracker *continuity.Tracker) {
	if t == nil || step == nil || step.Held || s.Outcome != metric.OK {
		return
	}
	if step.Process != t.process {
		t.keep()
		t.process, t.step, t.bodies = step.Process, 0, t.bodies[:0]
	}
	at := s.AtNS()
	if n := len(t.bodies); n > 0 && t.step > 0 && at/t.step == t.bodies[n-1].at/t.step {
		return
	}
	if len(t.bodies) == traceBodies {
		t.thin(at)
	}
	dict := tracker.Schema()
	for i := len(t.group); i < len(dict.Series); i++ {
		h := fnv.New32a()
		h.Write([]byte(dict.FamilyOf(i).Name))
		h.Write([]byte(dict.Series[i].Labels.String()))
		t.group = append(t.group, uint8(h.Sum32()%traceGroups))
	}
	t.bodies = append(t.bodies, traced{sent: s.SentNS, at: at})
	b := &t.bodies[len(t.bodies)-1]
	for series, v := range tracker.Keys {
		b.sums[t.group[series]] += v
	}
	t.begun = tracker.Begun()
}

// keep puts the bodies of the process away if it was watched for longer than those before.
func (t *trace) keep() {
	if t.past == nil {
		t.past = &trace{}
	}
	if t.watched() > t.past.watched() {
		t.past.begun, t.past.bodies, t.bodies = t.begun, t.bodies, t.past.bodies
	}
}

// watched is for how long the bodies were polled, in nanoseconds.
func (t *trace) watched() int64 {
	if len(t.bodies) == 0 {
		return 0
	}
	return t.bodies[len(t.bodies)-1].at - t.bodies[0].at
}

// thin makes the stretches so long that half of the bodies are enough up to now.
func (t *trace) thin(now int64) {
	least := uint64(max(2*t.step, 2*(now-t.bodies[0].at)/traceBodies, 1))
	t.step = 1 << bits.Len64(least-1)
	kept := t.bodies[:1]
	for _, b := range t.bodies[1:] {
		if b.at/t.step != kept[len(kept)-1].at/t.step {
			kept = append(kept, b)
		}
	}
	t.bodies = kept
}

// copy is what the trace is now, without its memory; nil of nil.
func (t *trace) copy() *trace {
	if t == nil || len(t.bodies) == 0 {
		return nil
	}
	return &trace{begun: t.begun, bodies: slices.Clone(t.bodies), past: t.past.copy()}
}

// slack is by how much the times of bodies may be off, where the order of two is in question.
const slack = 20_000_000

// same reports whether two endpoints show one server: that the bodies of the present processes do, or, where these are
// too young to tell, those of the processes before.
func (t *trace) same(other *trace) bool {
	one, two := t.agrees(other)
	for _, a := range []*trace{t, t.past} {
		for _, b := range []*trace{other, other.past} {
			if !one && a != nil && b != nil {
				one, _ = a.agrees(b)
			}
		}
	}
	return one && !two
}

// agrees reports whether the bodies are those of one process, or of two; neither where too little happened to tell.
// Merged by time those of one never fall, while much grows from a body of one endpoint to the next of the other. A
// fall with which one of them ends may be a restart that the other one has not seen.
func (t *trace) agrees(other *trace) (one, two bool) {
	apart := math.Abs(t.begun - other.begun)
	if apart > 1 {
		return false, false
	}
	gains, groups := 0, map[int]bool{}
	a, b := t.bodies, other.bodies
	var top *traced
	var of, last bool // of the one or the other: the next body, and top
	for len(a) > 0 || len(b) > 0 {
		var next *traced
		if of = len(a) == 0 || len(b) > 0 && b[0].at < a[0].at; of {
			next, b = &b[0], b[1:]
		} else {
			next, a = &a[0], a[1:]
		}
		if top != nil {
			fell, rose := 0, 0
			for g, v := range next.sums {
				if before := top.sums[g]; v < before-1e-9*before {
					fell++
				} else if v > before+1e-9*before {
					if rose++; of != last {
						gains++
						groups[g] = true
					}
				}
			}
			if fell > 0 && rose == 0 && (of && len(a) == 0 || !of && len(b) == 0) {
				break
			}
			if fell > 0 && (rose > 0 || of == last || next.sent > top.at+slack) {
				return false, true
			}
			if fell > 0 {
				continue // it was made before top, which answered later
			}
		}
		top, last = next, of
	}
	if apart <= 0.0005 {
		return gains >= 10 && len(groups) >= 3, false
	}
	return gains >= 40 && len(groups) >= 8, false
}

// findSame fills SameAs of the endpoints; traces and results are by endpoint.
func (r *Run) findSame(traces []*trace, results []*normalize.Result) {
	firsts := map[int64][]int{} // by when their processes began, in seconds
	for i, t := range traces {
		if t == nil || results[i] == nil {
			continue
		}
		at := t.seconds()
		var before []int
		for _, second := range at {
			for off := range int64(3) {
				before = append(before, firsts[second+off-1]...)
			}
		}
		slices.Sort(before)
		before = slices.Compact(before)
		for _, j := range before[:min(len(before), maxAlike)] {
			if t.same(traces[j]) && alike(results[i].Dict, results[j].Dict) {
				e := &r.Endpoints[i]
				e.SameAs = j + 1
				e.Warnings = append(e.Warnings, metric.Warnf("same_server",
					"it is the server of %s under a second address: it counts once where targets are taken together",
					r.Endpoints[j].Shown()))
				break
			}
		}
		if r.Endpoints[i].SameAs == 0 {
			for _, second := range at {
				firsts[second] = append(firsts[second], i)
			}
		}
	}
}

// seconds are when the processes began, in seconds.
func (t *trace) seconds() (out []int64) {
	for _, p := range []*trace{t, t.past} {
		switch {
		case p == nil:
		case math.IsNaN(p.begun):
			out = append(out, 0)
		default:
			out = append(out, int64(p.begun))
		}
	}
	return out
}

// alike reports whether 95 % of the series of two dictionaries are common.
func alike(a, b *metric.Schema) bool {
	type id struct {
		name   string
		labels metric.Labels
	}
	has := map[id]bool{}
	for i := range a.Series {
		has[id{a.FamilyOf(i).Name, a.Series[i].Labels}] = true
	}
	common := 0
	for i := range b.Series {
		if has[id{b.FamilyOf(i).Name, b.Series[i].Labels}] {
			common++
		}
	}
	return 20*common >= 19*max(len(a.Series), len(b.Series))
}

// Repeats reports whether a series repeats that of an earlier endpoint, which is the same server under another address:
// sums over endpoints leave it out.
func (r *Run) Repeats(s *Series) bool {
	return s.Endpoint < len(r.Endpoints) && r.Endpoints[s.Endpoint].SameAs > 0
}

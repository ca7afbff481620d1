package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// ErrShifted is why clients are not joined: their times cannot be those of this recording.
var ErrShifted = errors.New("the times of the clients do not fit the recording")

// Anchor bounds the clients' clock less that of the recording, by the server's counter of requests alone: what a poll
// has counted was issued before it, and what it has not counted ended after it.
type Anchor struct {
	Engine string  `json:"engine"`
	Polls  int     `json:"polls"`
	Low    float64 `json:"low_s"`
	High   float64 `json:"high_s"`
}

// farAnchor is how far the bounds may be from 0 before clients are not joined.
const farAnchor = 1.0

// tick is what a target had counted at a poll.
type tick struct {
	target           int
	sent, done, seen int64
}

// CounterAnchor bounds the clients' clock. It is nil where the counter of successful requests gained another number
// than clients succeeded, restarted, or is not there.
func CounterAnchor(ctx context.Context, s *events.Session, rec summary.Recording, c *catalog.Catalog) (*Anchor, error) {
	var issues, ends []int64
	for i := range s.Requests {
		if q := &s.Requests[i]; q.Status == events.Succeeded && q.CompleteNS != 0 {
			issues, ends = append(issues, q.IssuedNS), append(ends, q.CompleteNS)
		}
	}
	slices.Sort(issues)
	slices.Sort(ends)
	byEngine, err := ticks(ctx, rec, c)
	if err != nil || len(issues) == 0 {
		return nil, err
	}
	for _, p := range servers(c.Servers()) {
		if list := byEngine[p.Name]; list != nil {
			if a := anchorOf(list, issues, ends); a != nil {
				a.Engine = p.Name
				return a, nil
			}
		}
	}
	return nil, nil
}

// ticks reads the counters of success by engine.
func ticks(ctx context.Context, rec summary.Recording, c *catalog.Catalog) (map[string][]tick, error) {
	out := map[string][]tick{}
	for target := range rec.Targets() {
		var state metric.Replay
		base, last, broken, polls := map[string]int64{}, map[string]int64{}, map[string]bool{}, 0
		for snap, err := range rec.Snapshots(ctx, target) {
			if err == nil {
				err = state.Step(snap)
			}
			if err != nil {
				return nil, fmt.Errorf("read counters of requests: %w", err)
			}
			if !snap.Outcome.Stored() {
				continue
			}
			now := successes(&state, c)
			for engine, n := range now {
				if polls == 0 {
					base[engine] = n // a counter that is born later began at 0
				}
				broken[engine] = broken[engine] || n < last[engine]
				last[engine] = n
				out[engine] = append(out[engine], tick{target, snap.SentNS, snap.SentNS + int64(snap.Duration),
					n - base[engine]})
			}
			polls++
		}
		for engine := range broken {
			if broken[engine] {
				delete(out, engine)
			}
		}
	}
	return out, nil
}

// successes adds up the counters of successful requests that a target shows, by engine.
func successes(state *metric.Replay, c *catalog.Catalog) map[string]int64 {
	out := map[string]int64{}
	for slot := range state.Slots {
		if !state.Present[slot] {
			continue
		}
		id := &state.Slots[slot]
		f := state.FamilyOf(int(id.Series))
		known, ok := c.Family(f.Name)
		untyped := f.Type == metric.Unknown // as in AIPerf's JSONL
		if !ok || known.Canonical != "success" || f.Type != metric.Counter && !untyped || id.Role != metric.RoleValue {
			continue
		}
		v := math.Float64frombits(state.Bits[slot])
		if id.Integer {
			v = float64(state.Bits[slot])
		}
		if v >= 0 && v < 1<<53 {
			out[known.Engine] += int64(v)
		}
	}
	return out
}

// anchorOf intersects what all polls say; nil where the counter gained another number. Of several targets a poll has at
// least what each had counted before it, and at most what each had counted at its next poll.
func anchorOf(list []tick, issues, ends []int64) *Anchor {
	n := int64(len(issues))
	final := map[int]int64{}
	for _, t := range list {
		final[t.target] = max(final[t.target], t.seen)
	}
	all := int64(0)
	for _, v := range final {
		all += v
	}
	if all != n {
		return nil
	}
	slices.SortStableFunc(list, func(a, b tick) int { return cmp.Compare(a.sent, b.sent) })
	low, high := int64(math.MinInt64), int64(math.MaxInt64)
	have, sum := map[int]int64{}, int64(0)
	for _, t := range list {
		sum += t.seen - have[t.target]
		have[t.target] = t.seen
		if sum > 0 {
			low = max(low, issues[sum-1]-t.done)
		}
	}
	have, sum = final, all
	for _, t := range slices.Backward(list) {
		sum += t.seen - have[t.target]
		have[t.target] = t.seen
		if sum < n {
			high = min(high, ends[sum]-t.sent)
		}
	}
	if low == math.MinInt64 || high == math.MaxInt64 {
		return nil
	}
	return &Anchor{Polls: len(list), Low: float64(low) / 1e9, High: float64(high) / 1e9}
}

// check refuses clients whose times are more than a second away from the recording, and warns of those that are off.
func (a *Anchor) check() (*metric.Warning, error) {
	switch {
	case a == nil || a.Low <= 0 && a.High >= 0:
		return nil, nil
	case a.Low > a.High:
		w := metric.Warnf("anchor_contradicts", "the counter of %s and the clients contradict each other by %.3f s: their "+
			"clock was set while they ran, or they are of other requests", a.Engine, a.Low-a.High)
		return &w, nil
	}
	side, from, to := "late", a.Low, a.High
	if a.High < 0 {
		side, from, to = "early", -a.High, -a.Low
	}
	by := time.Duration((a.Low + a.High) / 2 * 1e9).Round(time.Second)
	text := fmt.Sprintf("the client's times are %.1f to %.1f s %s, by the %d polls of %s's counter of requests", from, to,
		side, a.Polls, a.Engine)
	if from > farAnchor {
		return nil, fmt.Errorf("%w: %s; --shift %.0fs, or import again with --anchor", ErrShifted, text, -by.Seconds())
	}
	w := metric.Warnf("anchor_off", "%s: --shift %v", text,
		-time.Duration((a.Low+a.High)/2*1e9).Round(time.Millisecond))
	return &w, nil
}

// Shift adds a time to all instants of the clients.
func Shift(s *events.Session, by time.Duration) {
	for i := range s.Requests {
		q := &s.Requests[i]
		for _, at := range []*int64{&q.IssuedNS, &q.UpstreamNS, &q.ByteNS, &q.FirstNS, &q.LastNS, &q.CompleteNS} {
			if *at != 0 {
				*at += int64(by)
			}
		}
	}
}

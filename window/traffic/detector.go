package traffic

import (
	"fmt"
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
)

// Detector notes when one target had requests. It has one owner and is not safe for concurrent use.
type Detector struct {
	catalog *catalog.Catalog
	schema  *metric.Schema
	own     bool    // nobody else grows it
	slots   []int32 // by slot: into entries, -1 where nothing is to be learnt
	entries []entry
	known   bool // there is a series of tier Known
	// What the catalog knows counts by itself where any target has it; names count where none has.
	sure, guess track

	polls       int
	first, last int64 // times of stored polls: the first sent, the last's first byte
}

// entry is a slot that tells of requests.
type entry struct {
	family int
	value  float64
	tier   Tier
	level  bool // a number of present requests
	rested bool // of a level: it was 0 at some poll, so that it means something above 0
	seen   bool
	sum    bool // of durations: no evidence, but how long requests took
	whole  bool // of its family's series, this is one of those that are not part of others
}

// NewDetector returns a detector of one target that knows families as c does. Where a schema is given, polls are taken
// once it has grown by them, so that they were checked; nil is one of its own.
func NewDetector(c *catalog.Catalog, schema *metric.Schema) *Detector {
	d := &Detector{catalog: c, schema: schema, sure: newTrack(Known, HTTP), guess: newTrack(HTTP, Generic)}
	if schema == nil {
		d.schema, d.own = &metric.Schema{}, true
	}
	return d
}

// Add takes the next poll of the target, with what continuity made of it: its Delta is adjusted, so what counts never
// falls, and the series in born, ascending, count from zero. It keeps nothing of s. One that does not fit is refused.
func (d *Detector) Add(s *metric.Snapshot, born []int32) error {
	if d.own {
		if err := d.schema.Extend(s); err != nil {
			return fmt.Errorf("look for traffic in poll %d of target %d: %w", s.Seq, s.Target, err)
		}
	}
	if len(s.DictDelta.Slots)+len(s.DictDelta.Families) > 0 {
		d.learn()
	}
	if !s.Outcome.Stored() {
		return nil
	}
	p := poll{sent: s.SentNS, at: s.AtNS()}
	d.sure.next = p
	if !d.known { // else nobody asks for guesses
		d.guess.next = p
	}
	for slot := range s.Delta.Absent(len(d.slots)) {
		if i := d.slots[slot]; i >= 0 && d.entries[i].level {
			d.leave(&d.entries[i])
		}
	}
	for k, slot := range s.Delta.Slots {
		i := d.slots[slot]
		if i < 0 {
			continue
		}
		v := d.schema.Slots[slot].Float(s.Delta.Bits[k])
		if v-v != 0 {
			continue // not finite
		}
		e := &d.entries[i]
		if !e.seen && !e.level {
			if _, zero := slices.BinarySearch(born, int32(d.schema.Slots[slot].Series)); !zero {
				e.value = v // the reference
			}
		}
		if e.seen = true; v != e.value {
			d.set(e, v)
		}
	}
	if d.polls == 0 {
		d.first = p.sent
	}
	d.polls, d.last = d.polls+1, p.at
	d.sure.step()
	if !d.known {
		d.guess.step()
	}
	return nil
}

// Restarted notes that the poll to come shows a server that restarted: it is back, and the load goes on if that is
// soon.
func (d *Detector) Restarted() { d.sure.restarted, d.guess.restarted = true, true }

// Doubted notes that polls were not believed since that time, so that the poll to come shows what came since then.
func (d *Detector) Doubted(sinceNS int64) { d.sure.doubted, d.guess.doubted = sinceNS, sinceNS }

// leave takes it that a level is not shown any more. One that was above 0 since the first poll did not fall: who showed
// it left, and whether there was load is not known.
func (d *Detector) leave(e *entry) {
	if e.rested {
		d.set(e, 0)
		return
	}
	d.sure.present(e, -e.value)
	e.value = 0
}

// set takes over a new value.
func (d *Detector) set(e *entry, v float64) {
	old := e.value
	e.value = v
	if e.level {
		e.rested = e.rested || d.polls > 0 && old == 0
		d.sure.levelMoved(e, old, d.polls)
		e.rested = e.rested || v == 0
		return
	}
	gain := v - old
	if gain <= 0 {
		return // only sums fall
	}
	if e.tier != Generic {
		d.sure.counted(e, gain)
	}
	if !d.known {
		d.guess.counted(e, gain)
	}
}

// learn finds out what new slots tell, and which families count the requests.
func (d *Detector) learn() {
	for slot := len(d.slots); slot < len(d.schema.Slots); slot++ {
		d.slots = append(d.slots, -1)
		id := &d.schema.Slots[slot]
		series := &d.schema.Series[id.Series]
		fam := &d.schema.Families[series.Family]
		if id.Role != metric.RoleValue && id.Role != metric.RoleCount && id.Role != metric.RoleSum {
			continue
		}
		f, _ := d.catalog.Family(fam.Name)
		tier, level := Evidence(d.catalog, fam, series.Labels)
		if tier == None || level && id.Role != metric.RoleValue {
			continue
		}
		d.slots[slot] = int32(len(d.entries))
		d.entries = append(d.entries, entry{family: series.Family, tier: tier, level: level, rested: d.polls > 0,
			sum:   id.Role == metric.RoleSum || id.Role == metric.RoleValue && f != nil && f.Canonical == "e2e_s",
			whole: f.Whole(series.Labels)})
		d.known = d.known || tier == Known
		d.sure.consider(series.Family, f, fam, tier, id.Role)
		d.guess.consider(series.Family, f, fam, tier, id.Role)
	}
	d.sure.assign(d)
	d.guess.assign(d)
}

// Seen reports whether the target had traffic so far; guesses by name alone do not count.
func (d *Detector) Seen() bool { return d.sure.open || len(d.sure.closed) > 0 }

// Stretches is how many stretches of active polls the target had, by any evidence: it changes when another begins.
func (d *Detector) Stretches() int {
	n := len(d.sure.closed) + len(d.guess.closed)
	for _, t := range []*track{&d.sure, &d.guess} {
		if t.open {
			n++
		}
	}
	return n
}

// role is what a family means to the count of requests.
type role uint8

const (
	counts   role = 1 << iota // requests that ended
	durates                   // how long they took
	arrives                   // requests that began
	presents                  // requests that are there
)

// rank is how well a family counts requests; the first of the best is taken. Only one of rankTimed tells how long each
// took too: elsewhere the rows of an ensemble and of its models overlap, which counts do not show.
func rank(f *catalog.Family, fam *metric.Family, tier Tier, r metric.Role) int {
	switch {
	case r == metric.RoleSum, f != nil && f.Aggregate == catalog.AggregateNever:
	case tier == Known && f.Canonical == "e2e_s" && r == metric.RoleCount:
		return rankTimed
	case tier == Known && f.Canonical == "success":
		return 5
	case tier == Known && f.Moves == "finish" && f.Unit == "requests" && r == metric.RoleValue:
		return 4
	case tier == HTTP:
		return 3
	case tier == Generic && saysRequests(fam.Name), tier == Known && f.Unit == "inferences" && r == metric.RoleValue:
		return 2
	}
	return 0
}

const rankTimed = 6

// mean returns a/b, 0 where that is not defined.
func mean(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}

// seconds returns a time of nanoseconds in seconds, ns the other way round.
func seconds(ns int64) float64 { return float64(ns) / 1e9 }
func ns(s float64) int64       { return int64(math.Trunc(s * 1e9)) }

package column

import (
	"cmp"
	"slices"

	"github.com/scrapestat/scrapestat/metric"
)

// Batch is the turned-round form of some consecutive series of one target, as many as memory allows.
type Batch struct {
	Endpoint int // as the source has it
	Schema   *metric.Schema
	From, To int     // series
	Times    []int64 // of the stored polls, ascending
	Bytes    int     // held by the logs
	FirstID  int64   // of series 0 in a table; set by its user
	logs     []Log
}

// Reader walks the samples of a series. It belongs to its caller, which may use it for one series after the other.
type Reader struct {
	Cursors []Cursor // parallel to the samples that were asked for
	Poll    int32    // the present one
	polls   int32
	count   int   // cursors that are present
	due     int32 // the poll at which the next cursor changes
}

// Open begins to read the given slots of a batch.
func (r *Reader) Open(st *Batch, slots []int32) {
	r.Cursors = r.Cursors[:0]
	for _, s := range slots {
		r.Cursors = append(r.Cursors, st.logs[s].Cursor())
	}
	r.Poll, r.polls, r.count = -1, int32(len(st.Times)), 0
	r.settle()
}

// Next moves to the next poll that shows one of the slots.
func (r *Reader) Next() bool {
	r.Poll++
	for {
		if r.due == r.Poll {
			r.apply()
		}
		if r.count > 0 {
			return r.Poll < r.polls
		}
		if r.due == noPoll {
			return false
		}
		r.Poll = r.due
	}
}

// apply takes over what changes at the present poll.
func (r *Reader) apply() {
	for i := range r.Cursors {
		c := &r.Cursors[i]
		if c.next != r.Poll {
			continue
		}
		was := c.Present
		c.step()
		switch {
		case c.Present && !was:
			r.count++
		case was && !c.Present:
			r.count--
		}
	}
	r.settle()
}

func (r *Reader) settle() {
	r.due = noPoll
	for i := range r.Cursors {
		r.due = min(r.due, r.Cursors[i].next)
	}
}

// SamplesOf returns the samples of a series in the order of tables: value, buckets
// and quantiles by bound, sum, count, created.
func SamplesOf(dst []int32, d *metric.Schema, series int) []int32 {
	dst = append(dst[:0], d.SlotsOf(series)...)
	slices.SortStableFunc(dst, func(a, b int32) int {
		x, y := &d.Slots[a], &d.Slots[b]
		if rx, ry := slotRank(x.Role), slotRank(y.Role); rx != ry {
			return rx - ry
		}
		return cmp.Or(cmp.Compare(x.Bound, y.Bound), cmp.Compare(x.Lower, y.Lower))
	})
	return dst
}

func slotRank(r metric.Role) int {
	switch r {
	case metric.RoleValue:
		return 0
	case metric.RoleBucket, metric.RoleNative:
		return 1
	case metric.RoleQuantile:
		return 2
	case metric.RoleSum:
		return 3
	case metric.RoleCount:
		return 4
	}
	return 5
}

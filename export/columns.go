package export

import (
	"cmp"
	"slices"

	"github.com/scrapestat/scrapestat/metric"
)

// A recording is time-major: poll after poll, each with the slots that changed.
// A table is series-major: series after series, each with its polls. A stripe is
// the turned-round form of some consecutive series of one target, as long as
// memory allows; a target too big for one stripe is read several times.
//
//	for from := 0; ; from = st.to {
//		st, err := collect(ctx, rec, target, from, budget, keep)
//		for series := st.from; series < st.to; series++ {
//			for r := st.read(...); r.next(); {
//				st.times[r.poll] // and r.cursors
//			}
//		}
//	}
type columnBatch struct {
	target   int // within its recording
	endpoint int // within the run
	dict     *metric.Schema
	from, to int     // series
	times    []int64 // of the stored polls, ascending
	logs     []changeLog
	bytes    int   // held by the logs
	firstID  int64 // of series 0 in the table
}

// last says that no series follow.
func (st *columnBatch) last() bool { return st.to >= len(st.dict.Series) }

// seriesReader walks the samples of a series. It belongs to its caller, which may use
// it for one series after the other.
type seriesReader struct {
	cursors []slotCursor // parallel to the slots that were asked for
	poll    int32        // of the present sample
	polls   int32
	count   int   // cursors that are present
	due     int32 // the poll at which the next cursor changes
}

// open begins to read the given slots of the stripe.
func (r *seriesReader) open(st *columnBatch, slots []int32) {
	r.cursors = r.cursors[:0]
	for _, s := range slots {
		r.cursors = append(r.cursors, st.logs[s].cursor())
	}
	r.poll, r.polls, r.count = -1, int32(len(st.times)), 0
	r.settle()
}

// next moves to the next poll that shows one of the slots.
func (r *seriesReader) next() bool {
	r.poll++
	for {
		if r.due == r.poll {
			r.apply()
		}
		if r.count > 0 {
			return r.poll < r.polls
		}
		if r.due == noPoll {
			return false
		}
		r.poll = r.due
	}
}

// apply takes over what changes at the present poll.
func (r *seriesReader) apply() {
	for i := range r.cursors {
		c := &r.cursors[i]
		if c.next != r.poll {
			continue
		}
		was := c.present
		c.step()
		switch {
		case c.present && !was:
			r.count++
		case was && !c.present:
			r.count--
		}
	}
	r.settle()
}

func (r *seriesReader) settle() {
	r.due = noPoll
	for i := range r.cursors {
		r.due = min(r.due, r.cursors[i].next)
	}
}

// slotsOf returns the slots of a series in the order of tables: value, buckets
// and quantiles by bound, sum, count, created.
func slotsOf(dst []int32, d *metric.Schema, series int) []int32 {
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

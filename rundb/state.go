package rundb

import (
	"math"

	"github.com/scrapestat/scrapestat/metric"
)

// state is what encoder and decoder both know of a target after the same polls: the last bits of every slot,
// which slots are present, and from which slot a change is predicted. Both sides compute it from the same
// dictionary and the same frames, so nothing of it is stored.
type state struct {
	bits    []uint64
	present []bool
	integer []bool
	role    []metric.Role
	series  []int32
	nSeries int
	nFamily int

	// ref[i] is one more than the slot whose change predicts that of slot i, or 0 when nothing does: a bucket
	// follows the bucket before it, a count follows the last bucket, because cumulative buckets move together.
	ref []int32
	// delta[i+1] is the change of slot i in the frame at hand; delta[0] is 0.
	delta  []int64
	bucket []int32 // scratch of link: by series, one more than its last bucket
}

// grow takes over what a dictionary gained. The indices were checked before.
func (st *state) grow(g *metric.DictDelta) {
	st.nFamily += len(g.Families)
	st.nSeries += len(g.Series)
	n := len(g.Slots)
	if n == 0 {
		return
	}
	for _, s := range g.Slots {
		st.role = append(st.role, s.Role)
		st.integer = append(st.integer, s.Integer)
		st.series = append(st.series, int32(s.Series))
	}
	st.bits = append(st.bits, make([]uint64, n)...)
	st.present = append(st.present, make([]bool, n)...)
	st.ref = append(st.ref, make([]int32, n)...)
}

// size is the size of the dictionary.
func (st *state) size() dictSize { return dictSize{st.nFamily, st.nSeries, len(st.bits)} }

// scratch returns delta, zeroed and long enough.
func (st *state) scratch() []int64 {
	n := len(st.bits) + 1
	if len(st.delta) < n {
		st.delta = make([]int64, n+n/8)
	}
	clear(st.delta[:n])
	return st.delta[:n]
}

// link sets ref after the set of present slots changed. Absent slots neither predict nor are predicted.
func (st *state) link() {
	if len(st.bucket) < st.nSeries {
		st.bucket = make([]int32, st.nSeries+st.nSeries/8)
	}
	clear(st.bucket)
	for i, role := range st.role {
		st.ref[i] = 0
		if !st.present[i] || role != metric.RoleBucket && role != metric.RoleCount {
			continue
		}
		last := &st.bucket[st.series[i]]
		st.ref[i] = *last
		if role == metric.RoleBucket {
			*last = int32(i + 1)
		}
	}
}

// exact returns the integer that a float64 of these bits is, if it is one
// below 2^53 in magnitude whose bits come back from the conversion; -0 is not.
func exact(bits uint64) (int64, bool) {
	i := int64(math.Float64frombits(bits))
	return i, math.Float64bits(float64(i)) == bits && uint64(i+1<<53) < 1<<54
}

// move returns the bits of a slot after an integer change.
func move(bits uint64, d int64, integer bool) uint64 {
	if integer {
		return bits + uint64(d)
	}
	return math.Float64bits(float64(int64(math.Float64frombits(bits)) + d))
}

func zigzag(d int64) uint64   { return uint64(d)<<1 ^ uint64(d>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

package explain

import (
	"cmp"
	"math/bits"
	"slices"
)

// gap is the mean time between two tokens of a replica in a timeslice, with the mean batch that made them.
type gap struct {
	slice       int
	batch, time float64
}

// gaps are those of timeslices with enough steps and tokens, by time.
func (f *Facts) gaps() (out []gap) {
	for i := range f.Replicas {
		r := &f.Replicas[i]
		for j := range r.Steps {
			if n, c := at(r.Steps, j), at(r.GapCount, j); n >= 2 && c >= 4 {
				out = append(out, gap{j, c / n, at(r.GapSum, j) / c})
			}
		}
	}
	slices.SortFunc(out, func(a, b gap) int {
		return cmp.Or(cmp.Compare(a.slice, b.slice), cmp.Compare(a.batch, b.batch), cmp.Compare(a.time, b.time))
	})
	return out
}

// coldLead returns the last timeslice of the longest lead of slow gaps, -1 for none: nearly all of its gaps are slow
// beside later ones of like batch, and few of the later ones are.
func coldLead(gaps []gap, t *Thresholds) int {
	if len(gaps) < 20 {
		return -1
	}
	best := -1
	for m := 3; m < (gaps[len(gaps)-1].slice+1)/2+1; m++ {
		cut, _ := slices.BinarySearchFunc(gaps, m, func(g gap, m int) int { return cmp.Compare(g.slice, m) })
		lead, rest := gaps[:cut], gaps[cut:]
		if len(rest) < 8 {
			break
		}
		if len(lead) == 0 {
			continue
		}
		usual := usualGaps(gaps, rest)
		slow := func(g []gap, usual []float64) (n float64) {
			for i := range g {
				if g[i].time > t.Cold*usual[i] {
					n++
				}
			}
			return n
		}
		if slow(lead, usual) >= t.ColdLead*float64(len(lead)) && slow(rest, usual[cut:]) <= t.ColdRest*float64(len(rest)) {
			best = m - 1
		}
	}
	return best
}

// usualGaps returns for each gap the median time of those of rest whose batch is alike, within 2 or a quarter; where
// none is, that of the slowest tenth. As batches ascend so do both ends of what is alike: each of rest comes and goes
// once, and is counted by the rank of its time.
func usualGaps(all, rest []gap) []float64 {
	byTime, byBatch := slices.Clone(rest), ranks(rest)
	slices.SortFunc(byTime, func(a, b gap) int { return cmp.Compare(a.time, b.time) })
	slowest := max(1, len(rest)/10)
	fallback := byTime[len(rest)-slowest+slowest/2].time
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(all[a].batch, all[b].batch) })
	usual, counts := make([]float64, len(all)), newCounts(len(rest))
	from, to := 0, 0
	for _, i := range order {
		b := all[i].batch
		like := max(2, b/4)
		for ; to < len(byBatch) && rest[byBatch[to].at].batch <= b+like; to++ {
			counts.add(byBatch[to].rank, 1)
		}
		for ; from < to && rest[byBatch[from].at].batch < b-like; from++ {
			counts.add(byBatch[from].rank, -1)
		}
		usual[i] = fallback
		if n := to - from; n > 0 {
			usual[i] = byTime[counts.find(n/2)].time
		}
	}
	return usual
}

// ranked is an entry of a list with the rank of its time.
type ranked struct{ at, rank int }

// ranks returns the entries by batch.
func ranks(list []gap) []ranked {
	out := make([]ranked, len(list))
	for i := range out {
		out[i].at = i
	}
	slices.SortStableFunc(out, func(a, b ranked) int { return cmp.Compare(list[a.at].time, list[b.at].time) })
	for i := range out {
		out[i].rank = i
	}
	slices.SortStableFunc(out, func(a, b ranked) int { return cmp.Compare(list[a.at].batch, list[b.at].batch) })
	return out
}

// counts is a Fenwick tree: how many entries there are up to a rank, in logarithmic time.
type counts []int

func newCounts(n int) counts { return make(counts, n+1) }

func (c counts) add(rank, n int) {
	for i := rank + 1; i < len(c); i += i & -i {
		c[i] += n
	}
}

// find returns the rank of the entry before which there are k.
func (c counts) find(k int) int {
	at := 0
	for step := 1 << (bits.Len(uint(len(c))) - 1); step > 0; step >>= 1 {
		if at+step < len(c) && c[at+step] <= k {
			at += step
			k -= c[at]
		}
	}
	return at
}

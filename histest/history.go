package histest

import (
	"math"
	"slices"
)

// historyCap bounds the memory of a refined estimator: when it has learned from so many intervals, neighbours are
// merged in pairs, as if every second scrape had been missed. At three scrapes a second that begins after 11 minutes.
const historyCap = 2048

// history is what the refined estimator keeps of the intervals: for each one
// its sum and the counts of the buckets it reached, 8 + 6 bytes per bucket.
type history struct {
	sum    []float64
	start  []int32 // first cell of each interval; its cells end at the next start
	bucket []uint16
	count  []uint32
	merged bool // neighbours were merged
	closed bool // an interval could not be kept, so what comes after has a gap before it
}

// add appends an interval. counts holds the observations per bucket, +Inf last.
func (h *history) add(counts []float64, sum float64) {
	if h.closed {
		return
	}
	if len(h.sum) >= historyCap {
		h.halve()
	}
	h.start = append(h.start, int32(len(h.bucket)))
	h.sum = append(h.sum, sum)
	for b, n := range counts {
		if n > 0 {
			h.bucket = append(h.bucket, uint16(b))
			h.count = append(h.count, uint32(n))
		}
	}
}

// cells returns the range of cells of interval i.
func (h *history) cells(i int) (from, to int) {
	if i+1 < len(h.start) {
		return int(h.start[i]), int(h.start[i+1])
	}
	return int(h.start[i]), len(h.bucket)
}

// halve merges each interval of even index with the next one, in place.
func (h *history) halve() {
	var merged history
	for i := 0; i < len(h.sum); i += 2 {
		merged.start = append(merged.start, int32(len(merged.bucket)))
		merged.sum = append(merged.sum, h.sum[i])
		from, to := h.cells(i)
		if i+1 == len(h.sum) {
			merged.bucket = append(merged.bucket, h.bucket[from:to]...)
			merged.count = append(merged.count, h.count[from:to]...)
			continue
		}
		merged.sum[i/2] += h.sum[i+1]
		from2, to2 := h.cells(i + 1)
		h.mergeCells(&merged, from, to, from2, to2)
	}
	if merged.closed { // a count is too large to keep
		merged = history{closed: true}
	}
	merged.merged = true
	*h = merged
}

// mergeCells appends the union of two runs of cells, both ascending, to dst.
func (h *history) mergeCells(dst *history, i, endI, j, endJ int) {
	for i < endI || j < endJ {
		b, n := uint16(math.MaxUint16), uint64(0)
		if i < endI {
			b = h.bucket[i]
		}
		if j < endJ {
			b = min(b, h.bucket[j])
		}
		if i < endI && h.bucket[i] == b {
			n += uint64(h.count[i])
			i++
		}
		if j < endJ && h.bucket[j] == b {
			n += uint64(h.count[j])
			j++
		}
		if n > math.MaxUint32 {
			dst.closed = true
		}
		dst.bucket = append(dst.bucket, b)
		dst.count = append(dst.count, uint32(n))
	}
}

// upTo returns the intervals that add up to the given counts and sum: the first ones, as a caller may have gone
// on after the end of its window. It returns no rows if there are none. Where neighbours were merged across the
// end, the last row is the part that is left.
func (h *history) upTo(counts []float64, sum float64) rows {
	out := roomFor(len(h.sum)+1, len(h.bucket)+len(counts))
	rest := slices.Clone(counts)
	left, n := 0.0, 0
	for _, c := range counts {
		left += c
	}
	for ; n < len(h.sum) && left > 0; n++ {
		from, to := h.cells(n)
		if !h.covers(rest, from, to) {
			break
		}
		for k := from; k < to; k++ {
			b, c := int(h.bucket[k]), float64(h.count[k])
			rest[b] -= c
			left -= c
			out.bucket, out.count = append(out.bucket, b), append(out.count, c)
		}
		sum -= h.sum[n]
		out.sum, out.start = append(out.sum, h.sum[n]), append(out.start, len(out.bucket))
	}
	if left > 0 {
		if !h.merged || n == len(h.sum) || !h.contains(n, rest) {
			return newRows()
		}
		out.append(rest, sum)
		sum = 0
	}
	for ; n < len(h.sum); n++ { // sums without counts belong to the interval before
		if from, to := h.cells(n); from < to {
			break
		}
		out.append(nil, h.sum[n])
		sum -= h.sum[n]
	}
	all := 0.0
	for _, s := range out.sum {
		all += math.Abs(s)
	}
	if !(math.Abs(sum) <= 1e-6*all) {
		return newRows()
	}
	return out
}

// covers reports whether rest has room for the cells.
func (h *history) covers(rest []float64, from, to int) bool {
	for k := from; k < to; k++ {
		if float64(h.count[k]) > rest[h.bucket[k]] {
			return false
		}
	}
	return true
}

// contains reports whether interval i could have the counts rest as a part.
func (h *history) contains(i int, rest []float64) bool {
	from, to := h.cells(i)
	have := make([]float64, len(rest))
	for k := from; k < to; k++ {
		have[h.bucket[k]] = float64(h.count[k])
	}
	for b, n := range rest {
		if n > have[b] {
			return false
		}
	}
	return true
}

// rows are intervals as the steps of the estimator work on them: row i has the sum sum[i] and count[k] observations in
// bucket[k] for k from start[i] up to start[i+1]. Buckets ascend within a row and counts are positive.
type rows struct {
	sum    []float64
	start  []int
	bucket []int
	count  []float64
}

func newRows() rows { return rows{start: []int{0}} }

// roomFor returns no rows, with room for some.
func roomFor(intervals, cells int) rows {
	return rows{sum: make([]float64, 0, intervals), start: make([]int, 1, intervals+1),
		bucket: make([]int, 0, cells), count: make([]float64, 0, cells)}
}

// clone returns a copy that shares nothing but the sums.
func (r *rows) clone() rows {
	return rows{r.sum, r.start, slices.Clone(r.bucket), r.count}
}

func (r *rows) len() int { return len(r.sum) }

// append adds a row of the counts of all buckets.
func (r *rows) append(counts []float64, sum float64) {
	for b, n := range counts {
		if n > 0 {
			r.bucket = append(r.bucket, b)
			r.count = append(r.count, n)
		}
	}
	r.sum = append(r.sum, sum)
	r.start = append(r.start, len(r.bucket))
}

// of returns the buckets and counts of row i; the slices belong to r.
func (r *rows) of(i int) (bucket []int, count []float64) {
	return r.bucket[r.start[i]:r.start[i+1]], r.count[r.start[i]:r.start[i+1]]
}

// sizes returns the number of observations of each row.
func (r *rows) sizes() []float64 {
	n := make([]float64, r.len())
	for i := range n {
		_, count := r.of(i)
		for _, c := range count {
			n[i] += c
		}
	}
	return n
}

// totals returns the observations per bucket, of nb buckets, and the sum.
func (r *rows) totals(nb int) (counts []float64, sum float64) {
	counts = make([]float64, nb)
	for k, b := range r.bucket {
		counts[b] += r.count[k]
	}
	for _, s := range r.sum {
		sum += s
	}
	return counts, sum
}

// dot returns the sum over the observations of row i of what value holds for their buckets.
func (r *rows) dot(i int, value []float64) float64 {
	s := 0.0
	bucket, count := r.of(i)
	for k, b := range bucket {
		s += count[k] * value[b]
	}
	return s
}

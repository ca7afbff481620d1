package histest

import "math"

// layout is the intervals of the buckets, +Inf last.
type layout struct {
	lower, upper []float64
	points       int // leading buckets with an upper bound of 0 or less: points at that bound
}

// fits reports whether a sum is possible for n observations in a row: between all
// of them at the lower and all at the upper bounds of their buckets.
func (l *layout) fits(bucket []int, count []float64, sum float64) bool {
	low, high, n := 0.0, 0.0, 0.0
	for k, b := range bucket {
		n += count[k]
		low += count[k] * l.lower[b]
		high += count[k] * l.upper[b]
	}
	if n == 0 {
		return math.Abs(sum) < 1e-12
	}
	margin := slack * math.Abs(sum)
	return sum >= low-margin && sum <= high+margin
}

// mergeTorn merges each interval whose sum its counts contradict with its successors until they agree, the last
// one with its predecessors: a scrape that caught the server between updating the two shows up like that.
// Intervals without observations are dropped. It returns the number of contradictions.
func mergeTorn(r rows, l *layout) (merged rows, contradictions int) {
	merged = roomFor(r.len(), len(r.bucket))
	pending, rest, open := make([]float64, len(l.upper)), 0.0, false
	for i := range r.len() {
		bucket, count := r.of(i)
		if !open && l.fits(bucket, count, r.sum[i]) {
			if len(bucket) > 0 {
				merged.appendCells(bucket, count, r.sum[i])
			}
			continue
		}
		for k, b := range bucket {
			pending[b] += count[k]
		}
		rest, open = rest+r.sum[i], true
		if cells, n := sparse(pending); l.fits(cells, n, rest) {
			if len(cells) > 0 {
				merged.appendCells(cells, n, rest)
			}
			clear(pending)
			rest, open = 0, false
			continue
		}
		contradictions++
	}
	if open {
		merged.appendLast(pending, rest, l)
	}
	return merged, contradictions
}

// appendLast appends a row that may contradict itself, merged with the rows before it as far as needed.
func (r *rows) appendLast(counts []float64, sum float64, l *layout) {
	for r.len() > 0 {
		if cells, n := sparse(counts); l.fits(cells, n, sum) {
			break
		}
		last := r.len() - 1
		bucket, count := r.of(last)
		for k, b := range bucket {
			counts[b] += count[k]
		}
		sum += r.sum[last]
		r.bucket, r.count = r.bucket[:r.start[last]], r.count[:r.start[last]]
		r.sum, r.start = r.sum[:last], r.start[:last+1]
	}
	if cells, n := sparse(counts); len(cells) > 0 {
		r.appendCells(cells, n, sum)
	}
}

func (r *rows) appendCells(bucket []int, count []float64, sum float64) {
	r.bucket = append(r.bucket, bucket...)
	r.count = append(r.count, count...)
	r.sum = append(r.sum, sum)
	r.start = append(r.start, len(r.bucket))
}

// sparse returns the filled buckets and their counts.
func sparse(counts []float64) (bucket []int, count []float64) {
	for b, n := range counts {
		if n > 0 {
			bucket, count = append(bucket, b), append(count, n)
		}
	}
	return bucket, count
}

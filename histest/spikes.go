package histest

import (
	"math"
	"slices"
)

// A single request that hits a time-out, in an interval of ordinary ones, shows in the sum. It is taken out as
// a known observation when the sum is spikeScore robust standard deviations too high. The value was tuned on
// the tuning and design families.
const spikeScore = 8

// takeSpikes moves such observations of the +Inf bucket from the rows to spikes.
func (f *fit) takeSpikes() {
	b := f.lastOpen()
	if b < 1 || f.rows.len() < 20 || f.lower[b] <= 0 {
		return
	}
	excess := f.excessOver(b)
	candidates := f.spikeRows(b, excess)
	if len(candidates) == 0 {
		return
	}
	mean := f.plainExcess(b, excess, candidates)
	kept := newRows()
	counts := make([]float64, len(f.upper))
	for i := range f.rows.len() {
		bucket, count := f.rows.of(i)
		clear(counts)
		for k, c := range bucket {
			counts[c] = count[k]
		}
		sum := f.rows.sum[i]
		if slices.Contains(candidates, i) {
			x := excess[i] - (counts[b]-1)*(f.lower[b]+mean)
			if x > f.lower[b]+10*mean {
				f.spikes = append(f.spikes, x)
				counts[b]--
				sum -= x
			}
		}
		if cells, n := sparse(counts); len(cells) > 0 {
			kept.appendCells(cells, n, sum)
		}
	}
	f.rows, f.size = kept, kept.sizes()
	f.counts, f.sum = kept.totals(len(f.upper))
	f.n -= float64(len(f.spikes))
}

// excessOver returns for each row the sum less that of the finite buckets at
// the means of the smooth curve through the totals.
func (f *fit) excessOver(b int) []float64 {
	c := newCurve(f.upper[f.points:], f.counts[f.points:], f.sum)
	means := make([]float64, len(f.upper))
	for k := range b {
		if k < f.points {
			means[k] = f.upper[k]
			continue
		}
		s := shape{x: evenGrid(f.lower[k], f.upper[k])}
		if !c.empty() {
			s.p = cells(nil, c.at, s.x)
		}
		if !normalise(s.p, 1e-250) {
			s.p = flat()
		}
		means[k], _ = s.moments()
	}
	excess := make([]float64, f.rows.len())
	for i := range excess {
		excess[i] = f.rows.sum[i] - f.rows.dot(i, means)
	}
	return excess
}

// spikeRows returns the rows whose sum is far too high for their number of
// observations beyond the last bound, while that number is not.
func (f *fit) spikeRows(b int, excess []float64) []int {
	var with []int
	var over, rate []float64 // observations in b, excess over the last bound for each
	all := 0.0
	for i := range f.rows.len() {
		bucket, count := f.rows.of(i)
		if k := len(bucket) - 1; bucket[k] == b {
			with = append(with, i)
			over = append(over, count[k])
			rate = append(rate, (excess[i]-count[k]*f.lower[b])/count[k])
			all += count[k]
		}
	}
	if len(with) < 10 {
		return nil
	}
	usual := max(median(rate), 0)
	left := make([]float64, len(with))
	for k := range with {
		left[k] = (rate[k] - usual) * over[k]
	}
	centre := median(left)
	scale := max(1.4826*medianDistance(left, centre), 1e-300)
	share := all / f.n
	found, crowded, candidates := 0, 0, []int(nil)
	for k, i := range with {
		if (left[k]-centre)/scale <= spikeScore {
			continue
		}
		found++
		n := f.size[i]
		if (over[k]-n*share)/math.Sqrt(max(n*share*(1-share), 1e-9)) > 2.5 {
			crowded++
			continue
		}
		candidates = append(candidates, i)
	}
	if float64(found) > 0.1*float64(len(with)) || float64(crowded) >= 0.2*float64(found) {
		return nil
	}
	return candidates
}

// plainExcess returns the mean excess over the last bound in the other rows.
func (f *fit) plainExcess(b int, excess []float64, candidates []int) float64 {
	sum, n := 0.0, 0.0
	for i := range f.rows.len() {
		bucket, count := f.rows.of(i)
		if k := len(bucket) - 1; bucket[k] == b && !slices.Contains(candidates, i) {
			sum += excess[i] - count[k]*f.lower[b]
			n += count[k]
		}
	}
	return max(sum/max(n, 1), 1e-3*f.lower[b])
}

// median returns the middle of v, which it leaves as it is.
func median(v []float64) float64 {
	s := slices.Clone(v)
	slices.Sort(s)
	return Quantile(s, 0.5)
}

// medianDistance returns the median of |v - centre|.
func medianDistance(v []float64, centre float64) float64 {
	d := make([]float64, len(v))
	for i, x := range v {
		d[i] = math.Abs(x - centre)
	}
	return median(d)
}

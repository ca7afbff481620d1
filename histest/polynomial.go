package histest

import "math"

// sampleCap is the number of observations AIPerf generates at most; larger counts are scaled down to it.
const sampleCap = 100_000

// polynomial is AIPerf's estimator (aiperf.md section 3). AIPerf generates an array of observations and takes
// its percentiles; the array is always sorted and piecewise linear, so the same numbers follow from a few
// parameters per bucket.
type polynomial struct {
	bounds  []float64
	stats   []learned
	counts  []float64 // scratch: observations per bucket, scaled
	buckets []placement
	over    overflow
	finite  int // generated observations below +Inf
}

func newPolynomial(bounds []float64) *polynomial {
	return &polynomial{
		bounds:  bounds,
		stats:   make([]learned, len(bounds)),
		counts:  make([]float64, len(bounds)),
		buckets: make([]placement, 0, len(bounds)),
	}
}

// Interval learns the mean of d if all its observations fell into one bucket.
func (p *polynomial) Interval(d *Delta) {
	n := math.Trunc(d.Count)
	if !(n > 0) || len(d.Cum) != len(p.bounds) {
		return
	}
	if d.severalBuckets() {
		return
	}
	active, prev := -1, 0.0
	for i, c := range d.Cum {
		if c < 0 {
			c = 0
		}
		if c > prev {
			if active >= 0 {
				return
			}
			active = i
		}
		prev = c
	}
	if d.HasInf && max(d.Inf, 0)-prev > 0 || active < 0 {
		return // AIPerf learns a mean of +Inf too, but never uses it
	}
	p.stats[active].add(d.Sum/n, n)
}

// severalBuckets says of most intervals that fell into more than one bucket that they did: the first bucket
// that gained has less than the last one. It is one comparison per bucket up to that one.
func (d *Delta) severalBuckets() bool {
	for _, c := range d.Cum {
		if c > 0 {
			return d.Cum[len(d.Cum)-1] > c
		}
	}
	return false
}

// Quantiles implements [Estimator]. Intervals should be those from the
// reference scrape to the end of the recording, as AIPerf learns from.
func (p *polynomial) Quantiles(dst []Estimate, total *Delta, qs []float64) ([]Estimate, bool) {
	if !total.usable(p.bounds) || total.Sum < 0 || len(p.bounds) == 0 && !total.HasInf {
		return dst, false
	}
	if total.Sum == 0 {
		return appendZeros(dst, p.bounds, total, qs), true
	}
	if len(p.bounds) == 0 || !p.generate(total) {
		return dst, false
	}
	n := p.finite + p.over.n
	limits := limitsOf(p.bounds, total)
	start := len(dst)
	for _, q := range qs {
		at := positionOf(q, n)
		v := lerp(p.at(at.lower), p.at(at.upper), at.frac)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return dst[:start], false
		}
		dst = append(dst, limits.estimate(v, q))
	}
	return dst, true
}

// generate prepares the placements of all observations; false if there are none.
func (p *polynomial) generate(total *Delta) bool {
	inf, sum := p.perBucket(total)
	inner := p.expectedSum()
	p.over = placeOverflow(inf, sum-inner, p.bounds[len(p.bounds)-1])
	scale := p.capFinite()
	if !p.placeFinite((sum - p.over.sum()) * scale) {
		p.placeFinite((sum - p.over.exactSum()) * scale)
	}
	return p.finite+p.over.n > 0
}

// perBucket fills counts with the observations per bucket and returns those of
// +Inf and the sum, all scaled down to sampleCap observations.
func (p *polynomial) perBucket(total *Delta) (inf, sum float64) {
	prev, all := 0.0, 0.0
	for i, c := range total.Cum {
		c = math.Trunc(c)
		p.counts[i] = c - prev
		prev = c
		all += p.counts[i]
	}
	if total.HasInf {
		inf = math.Trunc(total.Inf) - prev
		all += inf
	}
	sum = total.Sum
	if all > sampleCap {
		ratio := sampleCap / all
		for i := range p.counts {
			p.counts[i] *= ratio
		}
		inf *= ratio
		sum *= ratio
	}
	return inf, sum
}

// lower returns the lower bound of bucket i. That of the first is 0 in AIPerf, even when its upper bound is negative.
func (p *polynomial) lower(i int) float64 {
	if i == 0 {
		return 0
	}
	return p.bounds[i-1]
}

// expectedSum estimates the sum of the observations below +Inf from the learned means, or the midpoints.
func (p *polynomial) expectedSum() float64 {
	var s compensated
	for i, n := range p.counts {
		if n <= 0 {
			continue
		}
		lower, upper := p.lower(i), p.bounds[i]
		mean, ok := p.stats[i].meanWithin(lower, upper)
		if !ok {
			mean = (lower + upper) / 2
		}
		s.add(n * mean)
	}
	return s.value()
}

// capFinite scales the counts down to sampleCap if they still exceed it, by a rounding of the first scaling or
// because +Inf is negative, and returns the factor.
func (p *polynomial) capFinite() float64 {
	all := p.sumCounts()
	if all <= sampleCap {
		return 1
	}
	ratio := sampleCap / all
	for i := range p.counts {
		p.counts[i] *= ratio
	}
	return ratio
}

// placeFinite fills buckets and finite with the observations below +Inf, whose sum should be target. It reports
// false when rounding of target may have decided how.
func (p *polynomial) placeFinite(target float64) bool {
	all := p.sumCounts()
	average, dominant := 0.0, -1
	if all > 0 {
		average, dominant = target/all, p.dominant(all)
	}
	p.finite = 0
	for _, n := range p.counts {
		p.finite += int(n)
	}
	p.finite = max(p.finite, 0)
	p.buckets = p.buckets[:0]
	room := p.finite
	for i := 0; i < len(p.counts) && room > 0; i++ {
		n := min(int(p.counts[i]), room)
		if n <= 0 {
			continue
		}
		p.buckets = append(p.buckets, p.placeBucket(i, n, i == dominant, average))
		room -= n
	}
	p.adjust(target)
	if dominant < 0 {
		return true
	}
	return apart(average, p.lower(dominant)) && apart(average, p.bounds[dominant])
}

// apart reports whether a and b are more than rounding away from each other.
func apart(a, b float64) bool { return math.Abs(a-b) > 1e-9*math.Abs(b) }

func (p *polynomial) sumCounts() float64 {
	var s compensated
	for _, n := range p.counts {
		s.add(n)
	}
	return s.value()
}

// dominant returns the bucket that holds at least 95 % of all, or -1.
func (p *polynomial) dominant(all float64) int {
	best := 0
	for i, n := range p.counts {
		if n > p.counts[best] {
			best = i
		}
	}
	if p.counts[best]/all >= 0.95 {
		return best
	}
	return -1
}

func (p *polynomial) placeBucket(i, n int, dominant bool, average float64) placement {
	lower, upper := p.lower(i), p.bounds[i]
	centre, variance := (lower+upper)/2, 0.0
	mean, ok := p.stats[i].meanWithin(lower, upper)
	if ok {
		centre, variance = mean, p.stats[i].variance()
	}
	if dominant && lower < average && average < upper {
		centre = average
	}
	return place(n, lower, upper, centre, mean, variance)
}

// adjust moves the values of each bucket so that their sum comes nearer to the
// target: one pass, by at most 40 % of a width, as AIPerf does.
func (p *polynomial) adjust(target float64) {
	sum := 0.0
	for i := range p.buckets {
		sum += p.buckets[i].sum()
	}
	if math.Abs(math.Abs(target-sum)/target-0.001) < 1e-9 {
		sum = p.exactSum() // so near the threshold the order of summation decides
	}
	if !(sum > 0) || !(target > 0) || math.Abs(target-sum)/target < 0.001 {
		return
	}
	for i := range p.buckets {
		b := &p.buckets[i]
		limit := (b.upper - b.lower) * 0.4
		b.moved = clip((target-sum)*(b.sum()/sum)/float64(b.n), -limit, limit)
	}
}

// exactSum adds the values one by one, in the order numpy adds AIPerf's array.
func (p *polynomial) exactSum() float64 {
	values := make([]float64, 0, p.finite)
	for i := range p.buckets {
		for k := range p.buckets[i].n {
			values = append(values, p.buckets[i].value(k))
		}
	}
	return pairwiseSum(len(values), func(i int) float64 { return values[i] })
}

// at returns the k-th generated observation.
func (p *polynomial) at(k int) float64 {
	if k >= p.finite {
		return p.over.value(k - p.finite)
	}
	for i := range p.buckets {
		if k < p.buckets[i].n {
			return p.buckets[i].value(k)
		}
		k -= p.buckets[i].n
	}
	return p.bounds[len(p.bounds)-1]
}

// overflow holds the observations of the +Inf bucket: evenly from the last
// bound up, so that their mean is what the sum leaves for them.
type overflow struct {
	n            int
	lower, upper float64 // one observation lies at upper
}

// placeOverflow spreads count observations with the given sum above last.
func placeOverflow(count, sum, last float64) overflow {
	if !(count > 0) {
		return overflow{}
	}
	n := math.Ceil(count)
	mean := sum / n
	if sum <= 0 || mean <= last {
		mean = 1.5 * last
	}
	if n == 1 {
		return overflow{n: 1, lower: mean, upper: mean}
	}
	upper := 2*mean - last
	if upper <= last {
		upper = 2 * last
	}
	return overflow{n: int(n), lower: last, upper: upper}
}

func (o *overflow) value(i int) float64 {
	if i == o.n-1 {
		return o.upper
	}
	return float64(i)*((o.upper-o.lower)/float64(o.n-1)) + o.lower
}

func (o *overflow) sum() float64 { return float64(o.n) * ((o.lower + o.upper) / 2) }

// exactSum adds the values one by one, as numpy does.
func (o *overflow) exactSum() float64 { return pairwiseSum(o.n, o.value) }

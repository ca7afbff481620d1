package histest

import (
	"math"
	"slices"
	"sort"
)

// ordered reads order statistics off placed observations.
type ordered struct {
	lower    []float64
	upTo     []float64 // observations in the buckets before b; one entry more than buckets
	buckets  []orderedBucket
	ready    []bool
	placed   placed
	rounding bool    // observations are whole numbers
	moved    float64 // how far up they were moved before they were placed
}

// orderedBucket is the running count within a bucket: a piecewise linear curve and unit jumps at the atoms.
type orderedBucket struct {
	x, cum []float64 // nil without spread observations
	atoms  []float64 // ascending
	start  []float64 // running count below each atom
}

func newOrdered(f *fit, p placed) *ordered {
	return &ordered{lower: f.lower, upTo: cumulate(f.held), buckets: make([]orderedBucket, len(f.held)),
		ready: make([]bool, len(f.held)), placed: p, rounding: f.integer}
}

// n returns the number of observations.
func (o *ordered) n() int { return int(o.upTo[len(o.upTo)-1]) }

// quantile returns the q-quantile.
func (o *ordered) quantile(q float64) float64 {
	at := positionOf(q, o.n())
	low := o.at(at.lower)
	if at.frac == 0 {
		return low
	}
	return lerp(low, o.at(at.upper), at.frac)
}

// at returns the r-th smallest observation, from 0: the value at rank r + 1/2 of the running count.
func (o *ordered) at(r int) float64 {
	b := sort.Search(len(o.buckets), func(b int) bool { return o.upTo[b+1] > float64(r) })
	if !o.ready[b] {
		o.buckets[b], o.ready[b] = o.merge(b), true
	}
	x := o.buckets[b].at(float64(r) + 0.5 - o.upTo[b])
	if math.IsNaN(x) {
		x = o.lower[b]
	}
	if o.rounding {
		x = math.RoundToEven(x)
	}
	return x - o.moved
}

// merge adds up the components of a bucket and scales them to the observations that are not atoms.
func (o *ordered) merge(b int) orderedBucket {
	c := orderedBucket{atoms: slices.Clone(o.placed.atoms[b])}
	slices.Sort(c.atoms)
	want := o.upTo[b+1] - o.upTo[b] - float64(len(c.atoms))
	if want > 0 && len(o.placed.components[b]) > 0 {
		for _, p := range o.placed.components[b] {
			c.x = append(c.x, p.x...)
		}
		slices.Sort(c.x)
		c.x = slices.Compact(c.x)
		if len(c.x) == 1 {
			c.x = append(c.x, c.x[0])
		}
		c.cum = make([]float64, len(c.x))
		for _, p := range o.placed.components[b] {
			p.addTo(c.cum, c.x)
		}
		c.cum[0] = 0
		scale := want / c.cum[len(c.cum)-1]
		for k := range c.cum {
			c.cum[k] *= scale
		}
	}
	c.start = make([]float64, len(c.atoms))
	for k, a := range c.atoms {
		c.start[k] = float64(k)
		if c.x != nil {
			c.start[k] += interpolate(c.x, c.cum, a)
		}
	}
	return c
}

// addTo adds the running count of the component at each x, which ascend and include its own knots.
func (p *component) addTo(cum, x []float64) {
	own := cumulate(p.mass)
	last := len(p.x) - 1
	j := 0
	for k, v := range x {
		if v >= p.x[last] {
			cum[k] += own[last]
			continue
		}
		if v <= p.x[0] {
			continue
		}
		for p.x[j+1] <= v {
			j++
		}
		cum[k] += own[j] + (own[j+1]-own[j])*((v-p.x[j])/(p.x[j+1]-p.x[j]))
	}
}

// at returns the value at a rank between 0 and the observations in the bucket.
func (c *orderedBucket) at(rank float64) float64 {
	if c.x == nil {
		if len(c.atoms) == 0 {
			return math.NaN()
		}
		return c.atoms[min(int(rank), len(c.atoms)-1)]
	}
	i := sort.Search(len(c.start), func(k int) bool { return c.start[k]+1 >= rank })
	if i < len(c.start) && rank >= c.start[i] {
		return c.atoms[i]
	}
	return interpolate(c.cum, c.x, rank-float64(i))
}

package histest

import (
	"math"
	"slices"
)

// gridCells is the number of cells a piece's distribution is resolved into.
const gridCells = 32

// fit is the state of one run of the refined estimator. The steps fill it one
// after the other; each has a file of its own.
type fit struct {
	layout              // buckets from the first to the last that holds observations
	first     int       // the first one, in the layout of the histogram
	rows      rows      // consistent, non-empty intervals
	size      []float64 // observations per row
	counts    []float64 // observations per bucket, in the rows
	n, sum    float64   // totals of the rows
	integer   bool      // every observation is a whole number
	spikes    []float64 // observations of +Inf known by themselves
	held      []float64 // observations per bucket, spikes included
	grouping            // rows that are alike
	pieces    []piece   // by group, then bucket
	pieceAt   []int     // index into pieces by group*len(upper)+bucket, or -1
	curves    []*curve  // by group, nil for a group of points only
	groupMean []float64
	spread    float64    // sd of ln x for groups that sit in one bucket; 0: unknown
	open      openBucket // the +Inf bucket, if it holds observations
}

// piece is a bucket within a group: the unit whose distribution is estimated.
type piece struct {
	group, bucket, param int
	n                    float64
	lower, upper         float64
	mean0, var0          float64 // of the reference shape
	mean, variance       float64 // after the regressions, then of the shape
	shape                shape
	density              []float64 // of the cells
	placed               []float64 // observations per cell after the placement
}

func (p *piece) isPoint() bool  { return p.upper <= 0 }
func (p *piece) isOpen() bool   { return math.IsInf(p.upper, 1) }
func (p *piece) isCell() bool   { return !p.isPoint() && !p.isOpen() }
func (p *piece) width() float64 { return p.upper - p.lower }

// shape is a distribution as a histogram: p[i] is the mass between x[i] and x[i+1], evenly spread.
type shape struct{ x, p []float64 }

// moments returns mean and variance.
func (s *shape) moments() (mean, variance float64) {
	for i, p := range s.p {
		mean += p * ((s.x[i] + s.x[i+1]) / 2)
	}
	for i, p := range s.p {
		d, w := (s.x[i]+s.x[i+1])/2-mean, s.x[i+1]-s.x[i]
		variance += p * (d*d + w*w/12)
	}
	return mean, variance
}

// varianceFloor keeps variances of points away from 0.
func varianceFloor(variance, mean float64) float64 {
	m := max(math.Abs(mean), 1e-12)
	return max(variance, 1e-18*m*m)
}

// newLayout returns the buckets of bounds. Observations of whole numbers are taken as spread half a unit around them.
func newLayout(bounds []float64, integer bool) layout {
	l := layout{lower: make([]float64, len(bounds)+1), upper: make([]float64, len(bounds)+1)}
	for i, b := range bounds {
		if integer && b > 0 {
			b += 0.5
		}
		l.upper[i], l.lower[i+1] = b, b
		if b <= 0 {
			l.points++
		}
	}
	l.upper[len(bounds)] = math.Inf(1)
	if integer {
		l.lower[0] = 0.5
	}
	if l.points > 0 {
		l.lower[0] = bounds[0]
		if integer {
			l.lower[l.points] = max(l.lower[l.points], 0.5)
		}
	}
	return l
}

// wholeNumbers reports whether the observations are whole numbers, as far as one
// can see: all bounds are, and the sums of at least three intervals.
func wholeNumbers(bounds []float64, r *rows) bool {
	for _, b := range bounds {
		if b != math.Round(b) {
			return false
		}
	}
	filled := 0
	for i, s := range r.sum {
		if math.Abs(s-math.Round(s)) >= 1e-9*max(1, math.Abs(s)) {
			return false
		}
		if r.start[i] < r.start[i+1] {
			filled++
		}
	}
	return filled >= 3
}

// newFit trims the buckets of consistent rows to those between the first and
// the last filled one. It takes over the rows.
func newFit(l layout, r rows, integer bool) *fit {
	counts, sum := r.totals(len(l.upper))
	first, last := -1, 0
	for b, n := range counts {
		if n > 0 {
			last = b
			if first < 0 {
				first = b
			}
		}
	}
	first = max(first, 0)
	f := &fit{first: first, rows: r, sum: sum, integer: integer, size: r.sizes()}
	f.lower, f.upper = l.lower[first:last+1], l.upper[first:last+1]
	f.points = min(max(l.points-first, 0), last+1-first)
	f.counts = counts[first : last+1]
	f.held = slices.Clone(f.counts)
	for k := range r.bucket {
		r.bucket[k] -= first
	}
	for _, n := range f.counts {
		f.n += n
	}
	return f
}

// lastOpen returns the index of the +Inf bucket, or -1 if it is empty.
func (f *fit) lastOpen() int {
	if b := len(f.upper) - 1; math.IsInf(f.upper[b], 1) {
		return b
	}
	return -1
}

// pieceOf returns the piece of a bucket in the group of row i.
func (f *fit) pieceOf(i, bucket int) *piece {
	return &f.pieces[f.pieceAt[f.groupOf[i]*len(f.upper)+bucket]]
}

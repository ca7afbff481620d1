package sweep

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// SLO is a limit that a row of package headline keeps from above.
type SLO struct {
	Text   string // as it was written
	Row    string // ttft_p99
	Limit  float64
	Strict bool // below the limit, not at it
}

// keeps reports whether a value is within the limit.
func (s *SLO) keeps(v float64) bool { return v < s.Limit || !s.Strict && v == s.Limit }

// waits reports whether it is about a time that holds the queue, which grows as long as requests pile up.
func (s *SLO) waits() bool {
	word, _, _ := strings.Cut(strings.TrimPrefix(s.Row, "requests_"), "_")
	return slices.Contains([]string{"ttft", "e2e", "queue", "latency"}, word)
}

// The statuses of a bracket.
const (
	Crossed   = "crossed"
	AllPass   = "not reached"
	NonePass  = "none passed"
	Straddled = "undecided" // no point surely keeps it, or none surely does not
	NoData    = "no data"
)

// Bracket is up to which load an SLO holds.
type Bracket struct {
	SLO
	Status string
	// Low is the last load that keeps it before the first that does not, High the first that surely does not, Load
	// between them the one where a line through the logarithms crosses; NaN where there is none.
	Low, High, Load float64
	// Moved is the largest relative change that making the values ascend took.
	Moved float64
	// Undecided are loads whose bounds straddle the limit, Without those that have no value, with why.
	Undecided []float64
	Without   []string
	// Duration is set when High is an over-saturated point, whose latency is that of its length.
	Duration bool
	// From and To are the crossings of the repeats, NaN with fewer than four.
	From, To float64
	// Repeats are the fewest that a point has.
	Repeats int
	// LowState is the state of the point at Low.
	LowState State
}

// enoughRepeats is how many repeats of each load make a range.
const enoughRepeats = 4

// bracket finds up to which of the points, by load, an SLO holds.
func bracket(points []Point, s SLO) Bracket {
	b := cross(points, s)
	b.From, b.To = math.NaN(), math.NaN()
	if b.Repeats < enoughRepeats {
		return b
	}
	from, to := math.Inf(1), math.Inf(-1)
	for k := range b.Repeats {
		var one []Point
		for i := range points {
			if of := points[i].counted(); k < len(of) {
				one = append(one, of[k])
			}
		}
		if v := cross(one, s).Load; !math.IsNaN(v) {
			from, to = min(from, v), max(to, v)
		}
	}
	if from <= to {
		b.From, b.To = from, to
	}
	return b
}

// curve is a row over the loads that have it, made to ascend.
type curve struct {
	points     []*Point
	raw, value []float64
	low, high  []float64
}

// curveOf reads a row of usable points.
func curveOf(points []Point, row string) (c curve, without []string) {
	var low, high, weight []float64
	for i := range points {
		p := &points[i]
		v := p.Value(row)
		if !p.usable() {
			continue
		}
		if !v.known() {
			without = append(without, formatLoad(p.Load)+": "+v.Why)
			continue
		}
		c.points, c.raw, weight = append(c.points, p), append(c.raw, v.Value), append(weight, cmp.Or(v.Weight, 1))
		low, high = append(low, v.Low), append(high, v.High)
	}
	c.value, c.low, c.high = isotonic(c.raw, weight), isotonic(low, weight), isotonic(high, weight)
	return c, without
}

// cross finds the bracket in one curve.
func cross(points []Point, s SLO) Bracket {
	b := Bracket{SLO: s, Status: NoData, Low: math.NaN(), High: math.NaN(), Load: math.NaN()}
	var c curve
	c, b.Without = curveOf(points, s.Row)
	first, last := -1, -1 // that surely fails, and that surely keeps it before any that may not
	kept := true
	for i, p := range c.points {
		b.Repeats = min(cmp.Or(b.Repeats, len(p.counted())), len(p.counted()))
		b.Moved = max(b.Moved, math.Abs(c.value[i]-c.raw[i])/max(math.Abs(c.raw[i]), math.SmallestNonzeroFloat64))
		over := p.State == Over && s.waits()
		switch {
		case over || !s.keeps(c.low[i]):
			if first < 0 {
				first, b.Duration = i, over
			}
			kept = false
		case !s.keeps(c.high[i]):
			b.Undecided = append(b.Undecided, p.Load)
			kept = false
		case kept:
			last = i
		}
	}
	if last >= 0 {
		b.Low, b.LowState = c.points[last].Load, c.points[last].State
	}
	if first >= 0 {
		b.High = c.points[first].Load
	}
	switch n := len(c.points); {
	case n == 0:
	case first < 0 && last == n-1:
		b.Status = AllPass
	case last < 0 && first == 0:
		b.Status = NonePass
	case last < 0 || first < 0:
		b.Status = Straddled
	default:
		b.Status = Crossed
		b.Load = c.crossing(s.Limit)
	}
	return b
}

// crossing is where a line through the logarithms of the values crosses a limit, NaN where it does not.
func (c *curve) crossing(limit float64) float64 {
	for i := 1; i < len(c.value); i++ {
		a, b := c.value[i-1], c.value[i]
		if a > limit || b <= limit {
			continue
		}
		if !(a > 0) {
			return math.NaN()
		}
		from, to := c.points[i-1].Load, c.points[i].Load
		return from + (to-from)*math.Log(limit/a)/math.Log(b/a)
	}
	return math.NaN()
}

package sweep

import (
	"math"
	"slices"
)

// The statuses of a capacity.
const (
	Reached      = "reached"
	NotReached   = "not reached"
	Inconsistent = "inconsistent" // over-saturated below loads that were not
)

// Capacity is what the server did where more came than it takes.
type Capacity struct {
	Status string
	// X is requests ended per second, TokS tokens of answers: means of the points above the highest load that was kept up
	// with. Of NotReached X is the most that any point did, and the capacity is at least that; NaN where none did any.
	X, TokS float64
	// Low is the highest load that was kept up with, 0 for none, High the lowest that was not. They are points, no
	// interval of confidence.
	Low, High float64
	Falling   bool      // the last of these points did 10 % less than the best
	Doubted   []float64 // loads that were too much though a higher one was not
	Repeats   int       // of the points it is of: the fewest
}

// saturated reports whether the server had more than it could do all the time.
func (p *Point) saturated() bool { return p.State == Over || p.State == AtLimit }

// fallen is the share of the best that the last saturated point may lack.
const fallen = 0.9

// capacity finds the capacity in points by load.
func capacity(points []Point) Capacity {
	c := Capacity{X: math.NaN(), TokS: math.NaN(), High: math.NaN()}
	var over, above []*Point
	most := math.NaN()
	for i := range points {
		p := &points[i]
		switch {
		case p.saturated():
			over = append(over, p)
		case p.State == Stable:
			c.Low = p.Load
		}
		if p.State != Restart && p.Doubt == "" && !(p.X <= most) && !math.IsNaN(p.X) {
			most = p.X
		}
	}
	for _, p := range over {
		if p.Load > c.Low {
			above = append(above, p)
		} else {
			c.Doubted = append(c.Doubted, p.Load)
		}
	}
	switch {
	case len(above) > 0:
		c.of(above)
	case len(over) > 0:
		c.Status = Inconsistent
	default:
		c.Status, c.X = NotReached, most
	}
	return c
}

// of takes the capacity from saturated points.
func (c *Capacity) of(above []*Point) {
	c.Status, c.High, c.X, c.TokS, c.Repeats = Reached, above[0].Load, 0, 0, len(above[0].counted())
	best := 0.0
	for _, p := range above {
		tok := p.Value("output_tok_s")
		c.X += p.X / float64(len(above))
		c.TokS += tok.Value / float64(len(above))
		best, c.Repeats = max(best, p.X), min(c.Repeats, len(p.counted()))
	}
	c.Falling = len(above) > 1 && above[len(above)-1].X < fallen*best
}

// Knee is the load at which a server does most for the time of a request: the largest X by the mean of E2E.
type Knee struct {
	Load float64
	Edge bool // it is the first or the last load: the knee is there or beyond
}

// knee finds the knee in points by load, nil where no point has both numbers.
func knee(points []Point) *Knee {
	best, power, n := -1, 0.0, 0
	var use []*Point
	for i := range points {
		e2e := points[i].Value("e2e_mean")
		if !points[i].usable() || points[i].Doubt != "" || !e2e.known() || !(e2e.Value > 0) || math.IsNaN(points[i].X) {
			continue
		}
		if v := points[i].X / e2e.Value; best < 0 || v > power {
			best, power = n, v
		}
		use = append(use, &points[i])
		n++
	}
	if best < 0 {
		return nil
	}
	return &Knee{use[best].Load, best == 0 || best == n-1}
}

// isotonic makes a list ascend: the nearest one in squares by weights (pool adjacent violators).
func isotonic(y, weight []float64) []float64 {
	type block struct {
		v, w float64
		n    int
	}
	var b []block
	for i, v := range y {
		b = append(b, block{v, weight[i], 1})
		for k := len(b) - 1; k > 0 && b[k-1].v > b[k].v; k-- {
			w := b[k-1].w + b[k].w
			b[k-1] = block{(b[k-1].v*b[k-1].w + b[k].v*b[k].w) / w, w, b[k-1].n + b[k].n}
			b = b[:k]
		}
	}
	out := make([]float64, 0, len(y))
	for _, x := range b {
		out = append(out, slices.Repeat([]float64{x.v}, x.n)...)
	}
	return out
}

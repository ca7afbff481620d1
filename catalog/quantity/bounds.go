package quantity

import "math"

// doubt is how sure a value is: the worst status of the increases that it is made of, and by how much the truth may be
// below and above it. The zero value is a value for certain.
type doubt struct {
	status      Status // OK, Ambiguous, LowerBound or Refused
	below, over float64
}

// of returns the doubt about a part of a gain whose value is v.
func (p Part) doubt(g *Gain, v float64) doubt {
	d := doubt{status: g.Status}
	switch {
	case g.Status == OK || g.IsGauge() || p == Present:
		return doubt{}
	case p == Value || p == Delta || p == Gained || p == Count:
		d.below, d.over = v-g.Low, g.High-v
	default:
		d.below, d.over = math.Inf(1), math.Inf(1)
	}
	return d
}

// plus is the doubt about a sum.
func (d doubt) plus(e doubt) doubt {
	return doubt{max(d.status, e.status), d.below + e.below, d.over + e.over}
}

// turned is the doubt about the negative value.
func (d doubt) turned() doubt { return doubt{d.status, d.over, d.below} }

// combined is the doubt about a product or quotient of two values, by the corners of what both may be.
func combined(a, b amount, v float64, f func(x, y float64) float64) doubt {
	d := doubt{status: max(a.doubt.status, b.doubt.status)}
	if d.status == OK {
		return d
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, x := range [...]float64{a.v - a.doubt.below, a.v + a.doubt.over} {
		for _, y := range [...]float64{b.v - b.doubt.below, b.v + b.doubt.over} {
			c := f(x, y)
			if math.IsNaN(c) {
				return doubt{d.status, math.Inf(1), math.Inf(1)}
			}
			low, high = min(low, c), max(high, c)
		}
	}
	d.below, d.over = v-low, high-v
	return d
}

// settle gives a result the status and the bounds of a doubt. A lower bound is one only where nothing is below it.
func (d doubt) settle(r *Result) {
	if d.status == OK {
		return
	}
	r.Low, r.High = r.Value-d.below, r.Value+d.over
	if d.status == LowerBound && d.below != 0 {
		d.status = Ambiguous
	}
	if r.Status = max(r.Status, d.status); r.Status == Refused {
		*r = Result{Status: Refused}
	}
}

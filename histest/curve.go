package histest

import (
	"math"
	"slices"
)

// The slope of a curve beyond its ends is kept within what occurs: 1/slope is the standard deviation of the
// logarithm there. Tuned on the tuning and design families.
const (
	slopeMin = 0.5
	slopeMax = 60.0
)

// curve is a smooth distribution function through the bucket edges: the normal quantile of the fraction of observations
// up to x, as a monotone cubic function of ln x. For a log-normal distribution it is a straight line.
type curve struct {
	y, z, slope []float64 // ln of the edge, quantile, derivative
	left, right float64   // slopes beyond the ends
}

// newCurve returns the curve of counts n in buckets with the given positive upper bounds and the sum of their
// observations. It is empty if no bound has observations on both sides. With one such edge the slope is that of
// the log-normal distribution with the right mean.
func newCurve(upper, n []float64, sum float64) *curve {
	c := &curve{}
	total, upTo := 0.0, 0.0
	for _, x := range n {
		total += x
	}
	for k, u := range upper {
		upTo += n[k]
		if upTo > 0 && upTo < total && !math.IsInf(u, 1) {
			c.y = append(c.y, math.Log(u))
			c.z = append(c.z, normalQuantile(upTo/total))
		}
	}
	switch len(c.y) {
	case 0:
		return c
	case 1:
		slope := 1 / min(max(lognormalSpread(c.y[0], c.z[0], sum/total), 1/slopeMax), 1/slopeMin)
		c.slope, c.left, c.right = []float64{slope}, slope, slope
	default:
		c.slope = pchipSlopes(c.y, c.z)
		c.left = min(max(c.slope[0], slopeMin), slopeMax)
		c.right = min(max(c.slope[len(c.slope)-1], slopeMin), slopeMax)
	}
	return c
}

// lognormalSpread returns the standard deviation of ln x of the log-normal distribution with quantile z at ln x
// = y and the given mean: the smaller root of ln mean = y - z s + s²/2 that is not next to 0.
func lognormalSpread(y, z, mean float64) float64 {
	disc := z*z - 2*(y-math.Log(max(mean, 1e-300)))
	if !(disc >= 0) {
		return max(z, 0.3)
	}
	root := math.Sqrt(disc)
	if z-root > 0.02 {
		return z - root
	}
	if z+root > 0.02 {
		return z + root
	}
	return 0.5
}

func (c *curve) empty() bool { return c == nil || len(c.y) == 0 }

// at returns the quantile at ln x = y.
func (c *curve) at(y float64) float64 {
	last := len(c.y) - 1
	if y < c.y[0] || last == 0 {
		return c.z[0] + c.left*(y-c.y[0])
	}
	if y > c.y[last] {
		return c.z[last] + c.right*(y-c.y[last])
	}
	j, _ := slices.BinarySearch(c.y, y)
	j = min(max(j-1, 0), last-1)
	h := c.y[j+1] - c.y[j]
	t := (y - c.y[j]) / h
	s := 1 - t
	return c.z[j]*(1+2*t)*s*s + h*c.slope[j]*t*s*s + c.z[j+1]*t*t*(3-2*t) + h*c.slope[j+1]*t*t*(t-1)
}

// spreadAtCentre returns the standard deviation of ln x around the edge nearest
// to the median, and how central that edge is: at most one half.
func (c *curve) spreadAtCentre() (sd, central float64) {
	j := 0
	for k, z := range c.z {
		if math.Abs(z) < math.Abs(c.z[j]) {
			j = k
		}
	}
	const d = 1e-3
	slope := (c.at(c.y[j]+d) - c.at(c.y[j]-d)) / (2 * d)
	p := normalCDF(c.z[j])
	return 1 / max(slope, 1e-3), min(p, 1-p)
}

// cells appends to dst the probability between successive x, given the quantile as a function of ln x.
func cells(dst []float64, quantile func(y float64) float64, x []float64) []float64 {
	z := make([]float64, len(x))
	for i, v := range x {
		z[i] = -40
		if v > 0 {
			z[i] = quantile(math.Log(v))
		}
	}
	return normalCells(dst, z)
}

// pchipSlopes returns the derivatives of the monotone piecewise cubic of Fritsch and Butland through at least two
// points (x ascending): harmonic means of the neighbouring slopes inside, a three-point formula at the ends.
func pchipSlopes(x, y []float64) []float64 {
	n := len(x)
	h, d := make([]float64, n-1), make([]float64, n-1)
	for i := range h {
		h[i] = x[i+1] - x[i]
		d[i] = (y[i+1] - y[i]) / h[i]
	}
	if n == 2 {
		return []float64{d[0], d[0]}
	}
	m := make([]float64, n)
	for i := 1; i < n-1; i++ {
		if d[i-1]*d[i] > 0 {
			w1, w2 := 2*h[i]+h[i-1], h[i]+2*h[i-1]
			m[i] = (w1 + w2) / (w1/d[i-1] + w2/d[i])
		}
	}
	m[0] = pchipEnd(h[0], h[1], d[0], d[1])
	m[n-1] = pchipEnd(h[n-2], h[n-3], d[n-2], d[n-3])
	return m
}

func pchipEnd(h0, h1, d0, d1 float64) float64 {
	v := ((2*h0+h1)*d0 - h0*d1) / (h0 + h1)
	if v*d0 <= 0 {
		return 0.5 * d0
	}
	if d0*d1 <= 0 && math.Abs(v) > 3*math.Abs(d0) {
		return 3 * d0
	}
	return v
}

package histest

import "math"

// shapePieces gives each piece the distribution that has its estimated mean and
// variance and is nearest to the reference shape.
func (g *regression) shapePieces() {
	for i := range g.pieces {
		p := &g.pieces[i]
		p.mean = g.mean(p)
		p.variance = p.var0 * (1 + g.eta[p.bucket])
		switch {
		case p.isPoint():
		case p.isOpen():
			p.mean = max(p.mean, p.lower+0.02*g.open.excess)
			e := p.mean - p.lower
			p.variance = g.open.cv2 * (1 + g.eta[p.bucket]) * e * e
			p.shape = g.shapeOpen(p)
		default:
			w := p.width()
			p.mean = min(max(p.mean, p.lower+0.01*w), p.upper-0.01*w)
			most := 0.9 * (p.mean - p.lower) * (p.upper - p.mean)
			p.variance = min(max(p.variance, 1e-12*w*w), most)
			p.shape.x = focusedGrid(p.lower, p.upper, p.mean, math.Sqrt(p.variance))
			p.shape.p = g.referenceCells(p, p.shape.x)
			p.shape.p = match(&p.shape, p.mean, p.variance)
		}
		p.mean, p.variance = p.shape.moments()
		p.variance = varianceFloor(p.variance, p.mean)
	}
}

// shapeOpen returns the tail of a piece of the +Inf bucket.
func (g *regression) shapeOpen(p *piece) shape {
	z, eta := g.open.quantile[p.group], g.eta[p.bucket]
	if p.lower <= 0 || g.kind == levelGroups {
		return openTail(p.lower, z, p.mean)
	}
	if c := g.curves[p.group]; c != nil && len(c.y) > 1 && z > -2.5 {
		near := p.lower * newTailNodes(z).excess(c.right)
		if p.mean-p.lower > farExcess*near {
			return farTail(p.lower, z, c.right, p.mean, p.variance)
		}
	}
	s := openTail(p.lower, z, p.mean)
	if math.Abs(eta) <= 0.05 {
		return s
	}
	_, v := s.moments()
	want := v * (1 + eta)
	z = solveFalling(-4, 6, func(z float64) float64 {
		s = openTail(p.lower, z, p.mean)
		_, v := s.moments()
		return math.Log(want / v)
	})
	return openTail(p.lower, z, p.mean)
}

// focusedGrid cuts a bucket into cells: evenly, or with most cells within 4.5
// standard deviations of the mean where the distribution is narrow.
func focusedGrid(lower, upper, mean, sd float64) []float64 {
	if sd > (upper-lower)/7 {
		return evenGrid(lower, upper)
	}
	a, b := max(lower, mean-4.5*sd), min(upper, mean+4.5*sd)
	left, right := 0, 0
	if a > lower {
		left = 4
	}
	if b < upper {
		right = 4
	}
	x := make([]float64, 0, gridCells+1)
	for i := range left {
		x = append(x, lower+(a-lower)*float64(i)/float64(left))
	}
	inner := gridCells - left - right
	for i := range inner + 1 {
		x = append(x, a+(b-a)*float64(i)/float64(inner))
	}
	for i := range right {
		x = append(x, b+(upper-b)*float64(i+1)/float64(right))
	}
	return x
}

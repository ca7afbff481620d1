package histest

// Replicas of a server differ: in load, in what they are asked, in the phase of their batches. A mixture of
// what differs has no smooth curve through its bucket edges, and its intervals vary by whose they are, not by
// the conditions. So the histograms of a merge are fitted one by one and what is pooled is where their
// observations were placed.
//
// Histograms of a few observations each show little by themselves, and there may be very many of them; these
// are taken for alike and fitted as one. The limits were chosen on tuning cases.
const (
	aloneAtLeast = 100 // observations of a histogram on average
	aloneAtMost  = 256 // histograms
)

// pooledPart is a histogram of a merge: its consistent intervals and its total.
type pooledPart struct {
	rows   rows
	counts []float64
	sum    float64
}

// poolable reports whether parts are to be fitted one by one.
func poolable(parts []pooledPart) bool {
	if len(parts) < 2 || len(parts) > aloneAtMost {
		return false
	}
	observations, squares := 0.0, 0
	for i := range parts {
		for _, n := range parts[i].counts {
			observations += n
		}
		squares += parts[i].rows.squares()
	}
	return observations >= aloneAtLeast*float64(len(parts)) && squares <= maxSquares
}

// adds reports whether parts make up a total of these counts.
func adds(parts []pooledPart, counts []float64) bool {
	for b, n := range counts {
		for i := range parts {
			n -= parts[i].counts[b]
		}
		if n != 0 {
			return false
		}
	}
	return true
}

// pool returns the order statistics of all parts together, nil where numbers are too large.
func (r *refined) pool(parts []pooledPart, counts []float64) *ordered {
	integer := true
	for i := range parts {
		integer = integer && wholeNumbers(r.bounds, &parts[i].rows)
	}
	out := &ordered{lower: make([]float64, len(counts)), upTo: cumulate(counts),
		buckets: make([]orderedBucket, len(counts)),
		ready:   make([]bool, len(counts)), placed: placed{make([][]float64, len(counts)),
			make([][]component, len(counts))}, rounding: integer}
	copy(out.lower[1:], r.bounds)
	for i := range parts {
		p := &parts[i]
		f, by, ok := r.fit(newLayout(r.bounds, integer), p.rows.clone(), integer, p.counts, p.sum)
		if !ok {
			return nil
		}
		out.takeIn(newOrdered(f, f.place()), f.first, by)
	}
	return out
}

// takeIn adds what another one placed in buckets from first on, moved by so much.
func (o *ordered) takeIn(own *ordered, first int, by float64) {
	for b := range own.buckets {
		m, at := own.merge(b), b+first
		for _, a := range m.atoms {
			o.placed.atoms[at] = append(o.placed.atoms[at], a-by)
		}
		if m.x == nil {
			continue
		}
		c := component{x: m.x, mass: make([]float64, len(m.x)-1)}
		for k := range c.x {
			c.x[k] -= by
		}
		for k := range c.mass {
			c.mass[k] = m.cum[k+1] - m.cum[k]
		}
		o.placed.components[at] = append(o.placed.components[at], c)
	}
}

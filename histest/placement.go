package histest

import "math"

// informative bounds the variance of the rest of an interval, relative to that of one observation, up to which
// the interval's sum says something about this one observation. Tuned on the tuning and design families, as is
// the balance below.
const informative = 8

// component is a part of the estimated distribution of a bucket: mass[i] observations evenly between x[i] and x[i+1].
type component struct{ x, mass []float64 }

// placed is where the observations are estimated to lie, by bucket.
type placed struct {
	atoms      [][]float64 // known exactly
	components [][]component
}

// placer distributes the observations given the sum of their own interval. A lone observation is its sum. One
// of a few has the piece's density times that of the rest of the sum, taken as normal. Those of crowded
// intervals are moved together, by how much the sums of their intervals deviate on average.
type placer struct {
	*fit
	crowdN    []float64 // by piece: observations in crowded intervals
	crowdMove []float64 // by piece: sum of their deviations, in units of the variance
	members   []member  // scratch: of the row
	z         []float64 // scratch: cell edges in standard units
	mass      []float64 // scratch: cell masses of the normal
}

// place runs the placement over all rows.
func (f *fit) place() placed {
	pl := &placer{fit: f, crowdN: make([]float64, len(f.pieces)), crowdMove: make([]float64, len(f.pieces))}
	out := placed{make([][]float64, len(f.upper)), make([][]component, len(f.upper))}
	for i := range f.pieces {
		p := &f.pieces[i]
		p.placed = make([]float64, gridCells)
		p.density = make([]float64, gridCells)
		for c, m := range p.shape.p {
			p.density[c] = m / max(p.shape.x[c+1]-p.shape.x[c], 1e-300)
		}
	}
	for i := range f.rows.len() {
		bucket, count := f.rows.of(i)
		if len(bucket) == 1 && count[0] == 1 {
			b := bucket[0]
			out.atoms[b] = append(out.atoms[b], min(max(f.rows.sum[i], f.lower[b]), f.upper[b]))
			continue
		}
		pl.row(i)
	}
	for i := range f.pieces {
		p := &f.pieces[i]
		for _, m := range p.placed {
			if m > 0 {
				out.components[p.bucket] = append(out.components[p.bucket], component{p.shape.x, p.placed})
				break
			}
		}
	}
	pl.crowds(&out)
	if len(f.spikes) > 0 {
		b := len(f.upper) - 1
		out.atoms[b] = append(out.atoms[b], f.spikes...)
	}
	return out
}

// member is one bucket of an informative interval.
type member struct {
	p    *piece
	n    float64
	sd   float64            // of the rest of the sum
	mass [gridCells]float64 // of the cells, for one observation
}

// row places the observations of an interval with several.
func (pl *placer) row(i int) {
	bucket, count := pl.rows.of(i)
	variance, rest := 0.0, pl.rows.sum[i]
	for k, b := range bucket {
		p := pl.pieceOf(i, b)
		variance += count[k] * p.variance
		rest -= count[k] * p.mean
	}
	members := pl.members[:0]
	crowd := 0.0
	for k, b := range bucket {
		p := pl.pieceOf(i, b)
		if p.isPoint() {
			for c := range p.placed {
				p.placed[c] += count[k] / gridCells
			}
			continue
		}
		others := max(variance-p.variance, 0)
		if others > informative*p.variance*(1+slack) { // nine alike are on the edge, so leave no choice to rounding
			at := pl.pieceAt[pl.groupOf[i]*len(pl.upper)+b]
			pl.crowdN[at] += count[k]
			pl.crowdMove[at] += count[k] * rest / variance
			crowd += count[k] * p.variance * rest / variance
			continue
		}
		members = append(members, member{p: p, n: count[k], sd: math.Sqrt(max(others, 1e-30))})
	}
	pl.members = members
	if len(members) == 0 {
		return
	}
	pl.balance(members, rest, variance, crowd)
	for k := range members {
		m := &members[k]
		for c, w := range m.mass {
			m.p.placed[c] += w * m.n
		}
	}
}

// balance finds the cell masses of the members of an interval. Placed one by one they may overshoot or miss what is
// left of the sum, so the pull is corrected up to three times until together they take 85 to 115 % of it.
func (pl *placer) balance(members []member, rest, variance, crowd float64) {
	pull := 1.0
	for try := range 4 {
		taken := crowd
		for k := range members {
			m := &members[k]
			taken += m.n * (pl.conditional(m, m.p.mean+pull*rest) - m.p.mean)
		}
		if try == 3 || !(math.Abs(rest) > 0.5*math.Sqrt(variance)) {
			return
		}
		ratio := taken / rest
		if ratio >= 0.85 && ratio <= 1.15 {
			return
		}
		pull = min(max(pull*min(max(1/max(ratio, 0.3), 0.4), 1.5), 0.02), 3)
	}
}

// conditional fills the masses of m for a rest of the sum that wants the observation at centre, and returns their mean.
func (pl *placer) conditional(m *member, centre float64) float64 {
	x, density := m.p.shape.x, m.p.density
	pl.z = pl.z[:0]
	scale := 1 / m.sd
	for _, v := range x {
		pl.z = append(pl.z, (v-centre)*scale)
	}
	pl.mass = normalCells(pl.mass[:0], pl.z)
	total := 0.0
	for c, q := range pl.mass {
		m.mass[c] = density[c] * q
		total += m.mass[c]
	}
	if !(total > 1e-300) {
		clear(m.mass[:])
		m.mass[cellOf(x, centre)], total = 1, 1
	}
	mean, inverse := 0.0, 1/total
	for c := range m.mass {
		m.mass[c] *= inverse
		mean += m.mass[c] * (x[c] + x[c+1])
	}
	return mean / 2
}

// cellOf returns the cell that holds v, or is nearest to it.
func cellOf(x []float64, v float64) int {
	c := 0
	for c < len(x)-2 && x[c+1] < v {
		c++
	}
	return c
}

// crowds adds the components of the crowded intervals.
func (pl *placer) crowds(out *placed) {
	for i, n := range pl.crowdN {
		if n == 0 {
			continue
		}
		p := &pl.pieces[i]
		mean := p.mean + p.variance*pl.crowdMove[i]/n
		x := p.shape.x
		var mass []float64
		if p.isOpen() {
			edge, reach := 0.03*(p.mean-p.lower), 0.5*(x[len(x)-1]-x[0])
			mean = min(max(mean, p.lower+edge), p.lower+reach)
			factor := max((mean-p.lower)/max(p.mean-p.lower, 1e-300), 0.05)
			x, mass = append([]float64(nil), x...), append(mass, p.shape.p...)
			for k, v := range x {
				x[k] = p.lower + (v-p.lower)*factor
			}
		} else {
			edge := 0.005 * p.width()
			mean = min(max(mean, p.lower+edge), p.upper-edge)
			mass = tilt(&p.shape, mean, 0)
		}
		for k := range mass {
			mass[k] *= n
		}
		out.components[p.bucket] = append(out.components[p.bucket], component{x, mass})
	}
}

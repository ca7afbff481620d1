package sweep

import (
	"math"
	"slices"
	"sort"
)

// Ratio is a row of one sweep by that of the base at a load.
type Ratio struct {
	Sweep, Base, Row string
	Load, Ratio      float64
	Interpolated     bool // one of the two has no point there
}

// Crossing is where the curve of a sweep goes from below that of the base to above it, or back: between two loads.
type Crossing struct {
	Sweep, Base, Row string
	Low, High        float64
}

// compared are the rows that sweeps are set against each other by; x is what they did.
var compared = []string{"x", "ttft_mean", "itl_mean", "e2e_mean"}

// steady is a row over the loads that a sweep kept up with.
type steady struct{ load, value []float64 }

// steadyOf is the row of a sweep, made to ascend.
func steadyOf(s *Sweep, row string) (c steady) {
	var weight []float64
	for i := range s.Points {
		p := &s.Points[i]
		v := exact(p.X, p.Seconds)
		if row != "x" {
			v = p.Value(row)
		}
		if p.State == Stable && v.known() {
			c.load, c.value = append(c.load, p.Load), append(c.value, v.Value)
			weight = append(weight, max(v.Weight, 1))
		}
	}
	c.value = isotonic(c.value, weight)
	return c
}

// at is the value at a load, between two points a line through them; NaN outside of them.
func (c *steady) at(load float64) (v float64, between bool) {
	i := sort.SearchFloat64s(c.load, load)
	switch {
	case i < len(c.load) && c.load[i] == load:
		return c.value[i], false
	case i == 0 || i == len(c.load):
		return math.NaN(), true
	}
	share := (load - c.load[i-1]) / (c.load[i] - c.load[i-1])
	return c.value[i-1] + share*(c.value[i]-c.value[i-1]), true
}

// against calls f with each sweep that has the unit of the first one, and each row.
func against(sweeps []*Sweep, f func(s *Sweep, row string, base, own *steady, loads []float64)) {
	for i, s := range sweeps {
		if i == 0 || s.Unit != sweeps[0].Unit {
			continue
		}
		for _, row := range compared {
			base, own := steadyOf(sweeps[0], row), steadyOf(s, row)
			loads := slices.Concat(base.load, own.load)
			slices.Sort(loads)
			f(s, row, &base, &own, slices.Compact(loads))
		}
	}
}

// Ratios sets sweeps against the first one, at every load that both kept up with.
func Ratios(sweeps []*Sweep) (out []Ratio) {
	against(sweeps, func(s *Sweep, row string, base, own *steady, loads []float64) {
		for _, load := range loads {
			b, one := base.at(load)
			v, other := own.at(load)
			if b > 0 && !math.IsNaN(v) {
				out = append(out, Ratio{s.Name, sweeps[0].Name, row, load, v / b, one || other})
			}
		}
	})
	return out
}

// Crossings are where curves of sweeps cross that of the first one, within loads that both kept up with.
func Crossings(sweeps []*Sweep) (out []Crossing) {
	against(sweeps, func(s *Sweep, row string, base, own *steady, loads []float64) {
		from, before := 0.0, 0.0
		for _, load := range loads {
			b, _ := base.at(load)
			v, _ := own.at(load)
			d := v - b
			if math.IsNaN(d) || d == 0 {
				continue
			}
			if before*d < 0 {
				out = append(out, Crossing{s.Name, sweeps[0].Name, row, from, load})
			}
			from, before = load, d
		}
	})
	return out
}

// MarkFront tells of each steady point of all sweeps whether another one gives as much to each user and more of each
// GPU, or the other way round: those that are not dominated are the Pareto front. Points without both numbers are
// neither.
func MarkFront(sweeps []*Sweep) {
	type place struct{ user, gpu float64 }
	at := map[*Point]place{}
	for _, s := range sweeps {
		for i := range s.Points {
			p := &s.Points[i]
			if v := (place{p.PerUser(), s.PerGPU(p)}); p.State == Stable && !math.IsNaN(v.user) && !math.IsNaN(v.gpu) {
				at[p] = v
			}
		}
	}
	for p, a := range at {
		p.Front = "front"
		for _, b := range at {
			if b.user >= a.user && b.gpu >= a.gpu && b != a {
				p.Front = "dominated"
			}
		}
	}
}

package histest_test

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/stat/distuv"
)

// familySpec is a way observations are distributed. Design families served to
// find weaknesses during tuning and are in no table.
type familySpec struct {
	name                         string
	tuning, tokens, tiny, design bool
	make                         func(d *draw) generator
}

// generator draws one observation at run position t (0 to 1) in an interval.
type generator func(t float64, interval int) float64

// draw is what a family may depend on. m is the scale, about the median.
type draw struct {
	*rand.Rand
	m         float64
	intervals int
	bounds    []float64
}

func (d *draw) lognormal(m, sigma float64) float64 { return m * math.Exp(sigma*d.NormFloat64()) }

func (d *draw) exponential(mean float64) float64 { return mean * d.ExpFloat64() }

var families = []familySpec{
	{name: "ln0.3", tuning: true, make: lognormal(0.3)},
	{name: "ln0.6", tuning: true, make: lognormal(0.6)},
	{name: "ln1.0", tuning: true, make: lognormal(1)},
	{name: "gamma2", tuning: true, make: gamma(2)},
	{name: "exp", tuning: true, make: func(d *draw) generator {
		return func(float64, int) float64 { return d.exponential(d.m / math.Ln2) }
	}},
	{name: "bimodal_70_8", tuning: true, make: bimodal(0.7, 8, 0.25)},
	{name: "onebucket", tuning: true, make: oneBucket},
	{name: "drift_ln0.4_x3", tuning: true, make: func(d *draw) generator {
		return func(t float64, _ int) float64 { return d.lognormal(d.m, 0.4) * math.Pow(3, t-0.5) }
	}},
	{name: "pareto1.8", tuning: true, make: pareto(1.8)},
	{name: "burst", tuning: true, make: burst},
	{name: "tok_ln0.7", tuning: true, tokens: true, make: func(d *draw) generator {
		return func(float64, int) float64 { return max(1, math.RoundToEven(d.lognormal(d.m, 0.7))) }
	}},
	{name: "tiny_ln0.6", tuning: true, tiny: true, make: lognormal(0.6)},

	{name: "ln0.15", make: lognormal(0.15)},
	{name: "ln1.4", make: lognormal(1.4)},
	{name: "gamma5", make: gamma(5)},
	{name: "weib0.7", make: weibull(0.7)},
	{name: "weib3", make: weibull(3)},
	{name: "bimodal_40_20", make: bimodal(0.4, 20, 0.4)},
	{name: "trimodal", make: trimodal},
	{name: "shiftexp", make: func(d *draw) generator {
		return func(float64, int) float64 { return 0.6*d.m + d.exponential(0.5*d.m) }
	}},
	{name: "pareto1.2", make: pareto(1.2)},
	{name: "nearbound", make: nearBound},
	{name: "uniform", make: func(d *draw) generator {
		return func(float64, int) float64 { return d.m * (0.5 + d.Float64()) }
	}},
	{name: "const", make: func(d *draw) generator {
		return func(float64, int) float64 { return d.m * (1 + 1e-4*d.NormFloat64()) }
	}},
	{name: "ramp", make: func(d *draw) generator {
		return func(t float64, _ int) float64 {
			return d.lognormal(d.m, 0.25) + d.exponential(6*d.m)*max(t-0.6, 0)/0.4
		}
	}},
	{name: "mixdrift", make: func(d *draw) generator {
		return func(t float64, _ int) float64 {
			if d.Float64() < 0.2+0.7*t {
				return d.lognormal(d.m/6, 0.3)
			}
			return d.lognormal(d.m, 0.4)
		}
	}},
	{name: "step", make: step},
	{name: "outlier", make: outliers(0.02, 25, 0.5, 0.3)},
	{name: "tok_geo", tokens: true, make: func(d *draw) generator {
		p := 1 / max(1.5, d.m/math.Ln2)
		return func(float64, int) float64 { return math.Floor(math.Log(1-d.Float64())/math.Log1p(-p)) + 1 }
	}},
	{name: "tok_fixed", tokens: true, make: func(d *draw) generator {
		most := max(2, math.RoundToEven(d.m))
		return func(float64, int) float64 {
			if d.Float64() < 0.7 {
				return most
			}
			return max(1, math.RoundToEven(most*d.Float64()))
		}
	}},
	{name: "tiny_gamma2", tiny: true, make: gamma(2)},

	{name: "dev_zero", design: true, make: func(d *draw) generator {
		return func(float64, int) float64 {
			if d.Float64() < 0.6 {
				return 0
			}
			return d.exponential(d.m)
		}
	}},
	{name: "dev_batch", design: true, make: batch},
	{name: "dev_fixed2", design: true, make: func(d *draw) generator {
		return func(float64, int) float64 {
			m := d.m
			if d.Float64() >= 0.8 {
				m *= 3.1
			}
			return m * (1 + 0.003*d.NormFloat64())
		}
	}},
	{name: "dev_floor", design: true, make: func(d *draw) generator {
		g := distuv.Gamma{Alpha: 2, Beta: 1 / (0.3 * d.m), Src: d.Rand}
		return func(float64, int) float64 { return 0.5*d.m + g.Rand() }
	}},
	{name: "dev_out2", design: true, make: outliers(0.04, 12, 0.4, 0.25)},
	{name: "dev_timeout", design: true, make: func(d *draw) generator {
		return func(float64, int) float64 {
			if d.Float64() < 0.015 {
				return 40 * d.m
			}
			return d.lognormal(d.m, 0.5)
		}
	}},
	{name: "dev_pareto15", design: true, make: pareto(1.5)},
}

func lognormal(sigma float64) func(*draw) generator {
	return func(d *draw) generator {
		return func(float64, int) float64 { return d.lognormal(d.m, sigma) }
	}
}

func gamma(shape float64) func(*draw) generator {
	return func(d *draw) generator {
		g := distuv.Gamma{Alpha: shape, Beta: (shape - 0.3333) / d.m, Src: d.Rand}
		return func(float64, int) float64 { return g.Rand() }
	}
}

func weibull(k float64) func(*draw) generator {
	return func(d *draw) generator {
		scale := d.m / math.Pow(math.Ln2, 1/k)
		return func(float64, int) float64 { return scale * math.Pow(d.ExpFloat64(), 1/k) }
	}
}

func pareto(a float64) func(*draw) generator {
	return func(d *draw) generator {
		return func(float64, int) float64 { return d.m / math.Pow(2, 1/a) * math.Pow(1-d.Float64(), -1/a) }
	}
}

func bimodal(share, ratio, sigma float64) func(*draw) generator {
	return func(d *draw) generator {
		return func(float64, int) float64 {
			if d.Float64() < share {
				return d.lognormal(d.m/ratio, sigma)
			}
			return d.lognormal(d.m, 1.6*sigma)
		}
	}
}

func outliers(share, factor, sigma, own float64) func(*draw) generator {
	return func(d *draw) generator {
		return func(float64, int) float64 {
			if d.Float64() < share {
				return d.lognormal(d.m*factor, sigma)
			}
			return d.lognormal(d.m, own)
		}
	}
}

func trimodal(d *draw) generator {
	return func(float64, int) float64 {
		u, m := d.Float64(), d.m
		switch {
		case u < 0.5:
			m *= 0.25
		case u >= 0.85:
			m *= 5
		}
		return d.lognormal(m, 0.18)
	}
}

// oneBucket is narrow, at a fixed place within the bucket that holds m.
func oneBucket(d *draw) generator {
	lower, upper := around(d.bounds, d.m, 0)
	h := fnv.New32a()
	h.Write([]byte(strconv.FormatFloat(d.m, 'g', -1, 64)))
	w := upper - lower
	centre := lower + w*(0.15+0.7*float64(h.Sum32()%1000)/1000)
	return func(float64, int) float64 {
		return min(max(centre+0.06*w*d.NormFloat64(), lower+1e-3*w), upper)
	}
}

// nearBound has most observations just above, the others just above the lower
// bound of the bucket that holds m.
func nearBound(d *draw) generator {
	lower, upper := around(d.bounds, d.m, 1)
	return func(float64, int) float64 {
		if d.Float64() < 0.7 {
			return upper * (1 + math.Abs(0.02*d.NormFloat64()))
		}
		return lower * (0.97 + 0.02*d.Float64())
	}
}

// around returns the bounds of the bucket that holds m, but not one before least.
func around(bounds []float64, m float64, least int) (lower, upper float64) {
	j, _ := slices.BinarySearch(bounds, m)
	j = min(max(j, least), len(bounds)-1)
	if j > 0 {
		lower = bounds[j-1]
	}
	return lower, bounds[j]
}

// burst has slow phases: a tenth of the intervals is four times slower.
func burst(d *draw) generator {
	factor := make([]float64, d.intervals)
	for i := range factor {
		factor[i] = 1
		if d.Float64() < 0.1 {
			factor[i] = 4
		}
	}
	return func(_ float64, interval int) float64 { return d.lognormal(d.m, 0.3) * factor[interval] }
}

// step lets all observations of an interval share most of the randomness.
func step(d *draw) generator { return shared(d, 0.5, 0.08) }

func batch(d *draw) generator { return shared(d, 0.2, 0.3) }

func shared(d *draw, common, own float64) generator {
	factor := make([]float64, d.intervals)
	for i := range factor {
		factor[i] = math.Exp(common * d.NormFloat64())
	}
	return func(_ float64, interval int) float64 { return d.lognormal(d.m, own) * factor[interval] }
}

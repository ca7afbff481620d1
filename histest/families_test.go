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
	law                          string // what make draws; Z standard normal, U even on [0, 1), t as in generator
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
	{name: "ln0.3", law: "m·exp(0.3·Z)", tuning: true, make: lognormal(0.3)},
	{name: "ln0.6", law: "m·exp(0.6·Z)", tuning: true, make: lognormal(0.6)},
	{name: "ln1.0", law: "m·exp(Z)", tuning: true, make: lognormal(1)},
	{name: "gamma2", law: "Gamma(shape 2, mean 2m/(2-0.3333))", tuning: true, make: gamma(2)},
	{name: "exp", law: "Exp(mean m/ln 2)", tuning: true, make: func(d *draw) generator {
		return func(float64, int) float64 { return d.exponential(d.m / math.Ln2) }
	}},
	{name: "bimodal_70_8", law: "70 %: m/8·exp(0.25·Z), else m·exp(0.4·Z)", tuning: true, make: bimodal(0.7, 8, 0.25)},
	{name: "onebucket", law: "normal, sd 0.06 w, around a fixed place between 0.15 and 0.85 of the bucket (width w) " +
		"that holds m, kept within it", tuning: true, make: oneBucket},
	{name: "drift_ln0.4_x3", law: "m·exp(0.4·Z)·3^(t-0.5)", tuning: true, make: func(d *draw) generator {
		return func(t float64, _ int) float64 { return d.lognormal(d.m, 0.4) * math.Pow(3, t-0.5) }
	}},
	{name: "pareto1.8", law: "m·2^(-1/1.8)·(1-U)^(-1/1.8)", tuning: true, make: pareto(1.8)},
	{name: "burst", law: "m·exp(0.3·Z), times 4 in a random tenth of the intervals", tuning: true, make: burst},
	{name: "tok_ln0.7", law: "max(1, round(m·exp(0.7·Z)))", tuning: true, tokens: true, make: func(d *draw) generator {
		return func(float64, int) float64 { return max(1, math.RoundToEven(d.lognormal(d.m, 0.7))) }
	}},
	{name: "tiny_ln0.6", law: "m·exp(0.6·Z)", tuning: true, tiny: true, make: lognormal(0.6)},

	{name: "ln0.15", law: "m·exp(0.15·Z)", make: lognormal(0.15)},
	{name: "ln1.4", law: "m·exp(1.4·Z)", make: lognormal(1.4)},
	{name: "gamma5", law: "Gamma(shape 5, mean 5m/(5-0.3333))", make: gamma(5)},
	{name: "weib0.7", law: "Weibull(shape 0.7, median m)", make: weibull(0.7)},
	{name: "weib3", law: "Weibull(shape 3, median m)", make: weibull(3)},
	{name: "bimodal_40_20", law: "40 %: m/20·exp(0.4·Z), else m·exp(0.64·Z)", make: bimodal(0.4, 20, 0.4)},
	{name: "trimodal", law: "50 %: 0.25m, 35 %: m, 15 %: 5m, each times exp(0.18·Z)", make: trimodal},
	{name: "shiftexp", law: "0.6m + Exp(mean 0.5m)", make: func(d *draw) generator {
		return func(float64, int) float64 { return 0.6*d.m + d.exponential(0.5*d.m) }
	}},
	{name: "pareto1.2", law: "m·2^(-1/1.2)·(1-U)^(-1/1.2)", make: pareto(1.2)},
	{name: "nearbound", law: "70 %: upper·(1+|0.02·Z|), else lower·(0.97+0.02·U), bounds of the bucket that holds m, " +
		"not the first", make: nearBound},
	{name: "uniform", law: "m·(0.5+U)", make: func(d *draw) generator {
		return func(float64, int) float64 { return d.m * (0.5 + d.Float64()) }
	}},
	{name: "const", law: "m·(1+0.0001·Z)", make: func(d *draw) generator {
		return func(float64, int) float64 { return d.m * (1 + 1e-4*d.NormFloat64()) }
	}},
	{name: "ramp", law: "m·exp(0.25·Z) + Exp(mean 6m)·max(t-0.6, 0)/0.4", make: func(d *draw) generator {
		return func(t float64, _ int) float64 {
			return d.lognormal(d.m, 0.25) + d.exponential(6*d.m)*max(t-0.6, 0)/0.4
		}
	}},
	{name: "mixdrift", law: "with probability 0.2+0.7t: m/6·exp(0.3·Z), else m·exp(0.4·Z)", make: func(d *draw) generator {
		return func(t float64, _ int) float64 {
			if d.Float64() < 0.2+0.7*t {
				return d.lognormal(d.m/6, 0.3)
			}
			return d.lognormal(d.m, 0.4)
		}
	}},
	{name: "step", law: "m·exp(0.08·Z)·F, F = exp(0.5·Z) common to an interval", make: step},
	{name: "outlier", law: "2 %: 25m·exp(0.5·Z), else m·exp(0.3·Z)", make: outliers(0.02, 25, 0.5, 0.3)},
	{name: "tok_geo", law: "geometric from 1, p = 1/max(1.5, m/ln 2)", tokens: true, make: func(d *draw) generator {
		p := 1 / max(1.5, d.m/math.Ln2)
		return func(float64, int) float64 { return math.Floor(math.Log(1-d.Float64())/math.Log1p(-p)) + 1 }
	}},
	{name: "tok_fixed", law: "M = max(2, round(m)); 70 %: M, else max(1, round(M·U))", tokens: true,
		make: func(d *draw) generator {
			most := max(2, math.RoundToEven(d.m))
			return func(float64, int) float64 {
				if d.Float64() < 0.7 {
					return most
				}
				return max(1, math.RoundToEven(most*d.Float64()))
			}
		}},
	{name: "tiny_gamma2", law: "Gamma(shape 2, mean 2m/(2-0.3333))", tiny: true, make: gamma(2)},

	{name: "dev_zero", law: "60 %: 0, else Exp(mean m)", design: true, make: func(d *draw) generator {
		return func(float64, int) float64 {
			if d.Float64() < 0.6 {
				return 0
			}
			return d.exponential(d.m)
		}
	}},
	{name: "dev_batch", law: "m·exp(0.3·Z)·F, F = exp(0.2·Z) common to an interval", design: true, make: batch},
	{name: "dev_fixed2", law: "80 %: m, else 3.1m, each times (1+0.003·Z)", design: true, make: func(d *draw) generator {
		return func(float64, int) float64 {
			m := d.m
			if d.Float64() >= 0.8 {
				m *= 3.1
			}
			return m * (1 + 0.003*d.NormFloat64())
		}
	}},
	{name: "dev_floor", law: "0.5m + Gamma(shape 2, mean 0.6m)", design: true, make: func(d *draw) generator {
		g := distuv.Gamma{Alpha: 2, Beta: 1 / (0.3 * d.m), Src: d.Rand}
		return func(float64, int) float64 { return 0.5*d.m + g.Rand() }
	}},
	{name: "dev_out2", law: "4 %: 12m·exp(0.4·Z), else m·exp(0.25·Z)", design: true, make: outliers(0.04, 12, 0.4, 0.25)},
	{name: "dev_timeout", law: "1.5 %: 40m, else m·exp(0.5·Z)", design: true, make: func(d *draw) generator {
		return func(float64, int) float64 {
			if d.Float64() < 0.015 {
				return 40 * d.m
			}
			return d.lognormal(d.m, 0.5)
		}
	}},
	{name: "dev_pareto15", law: "m·2^(-1/1.5)·(1-U)^(-1/1.5)", design: true, make: pareto(1.5)},
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

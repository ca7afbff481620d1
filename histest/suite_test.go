package histest_test

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/scrapestat/scrapestat/histest"
)

// The accuracy suite of docs/percentiles.md: bucket layouts of real servers,
// distributions, rates and lengths. Constants of the refined estimator were
// chosen on the tuning layouts and families; the others test them.

// layoutSpec is the buckets of a metric. Token metrics count whole numbers.
type layoutSpec struct {
	name   string
	tuning bool
	tokens bool
	bounds []float64
}

var layouts = []layoutSpec{
	{"vllm_e2e", true, false, []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480,
		960, 1920, 7680}},
	{"vllm_ttft", true, false, []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5,
		7.5, 10, 20, 40, 80, 160, 640, 2560}},
	{"vllm_itl", true, false, []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5,
		10, 20, 40, 80}},
	{"dynamo_ttft", true, false, dynamoBounds(0.001, 480, 18)},
	{"sglang_e2e", true, false, []float64{0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400,
		600, 1200, 1800, 2400}},
	{"omni_seconds", true, false, []float64{0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300}},
	{"prom_default", true, false, []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}},
	{"vllm_tokens", true, true, []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000}},
	{"omni_fast", false, false, []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60}},
	{"omni_rtf", false, false, []float64{0.1, 0.25, 0.5, 0.75, 0.9, 1, 1.25, 1.5, 2, 5, 10}},
	{"triton_ms", false, false, []float64{100, 500, 2000, 5000}},
	{"trtllm_prefill", false, false, []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40,
		80, 160, 640, 2560}},
	{"dynamo_itl", false, false, dynamoBounds(0.001, 2, 13)},
	{"dynamo_duration", false, false, dynamoBounds(1, 256, 10)},
	{"sglang_itl", false, false, []float64{0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04,
		0.06, 0.08, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8}},
	{"otel_ms", false, false, []float64{0, 5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10000}},
	{"iter_tokens", false, true, []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}},
}

// dynamoBounds are log-spaced bounds rounded to two digits, after a bound of 0.
func dynamoBounds(least, most float64, n int) []float64 {
	out := []float64{0}
	for i := 1; i < n; i++ {
		v := math.Exp(math.Log(least) + (math.Log(most)-math.Log(least))*float64(i)/float64(n-1))
		scale := math.Pow(10, 1-math.Floor(math.Log10(v)))
		if v = math.RoundToEven(v*scale) / scale; v != out[len(out)-1] {
			out = append(out, v)
		}
	}
	return out
}

// suiteCase is one simulated run.
type suiteCase struct {
	layout    *layoutSpec
	family    *familySpec
	place     float64 // where among the bounds the distribution lies, 0 to 1
	rate      float64 // observations per interval; 0: size observations in all
	size      int
	intervals int
	seed      uint64
}

func (c *suiteCase) tuning() bool { return c.layout.tuning && c.family.tuning }

// split names the half of the suite that the case belongs to.
func (c *suiteCase) split() string {
	if c.tuning() {
		return "tuning"
	}
	return "test"
}

// expected is about how many observations there are.
func (c *suiteCase) expected() float64 { return c.rate*float64(c.intervals) + float64(c.size) }

func (c *suiteCase) String() string {
	return fmt.Sprintf("%s %s p=%v rate=%v n=%d T=%d seed=%d", c.layout.name, c.family.name, c.place, c.rate, c.size,
		c.intervals, c.seed)
}

// The places, rates and lengths of the suite.
var (
	suitePlaces    = []float64{0.25, 0.5, 0.7, 0.95}
	suiteRates     = []float64{0.3, 3, 30, 300}
	suiteIntervals = []int{90, 360, 1800}
	tinySizes      = []int{20, 60, 200}
	tinyIntervals  = []int{90, 360}
)

// suiteCases lists the suite for one seed; design families are left out.
func suiteCases(seed uint64) []suiteCase {
	var out []suiteCase
	for l := range layouts {
		for f := range families {
			layout, family := &layouts[l], &families[f]
			if layout.tokens != family.tokens || family.design {
				continue
			}
			for _, place := range suitePlaces {
				out = append(out, variants(suiteCase{layout: layout, family: family, place: place, seed: seed})...)
			}
		}
	}
	return out
}

func variants(c suiteCase) (out []suiteCase) {
	if c.family.tiny {
		for _, c.size = range tinySizes {
			for _, c.intervals = range tinyIntervals {
				out = append(out, c)
			}
		}
		return out
	}
	for _, c.rate = range suiteRates {
		for _, c.intervals = range suiteIntervals {
			out = append(out, c)
		}
	}
	return out
}

// suiteSample returns n cases of the suite in random order.
func suiteSample(seed uint64, n int, keep func(*suiteCase) bool) []suiteCase {
	all := slices.DeleteFunc(suiteCases(seed), func(c suiteCase) bool { return !keep(&c) })
	r := rand.New(rand.NewPCG(seed, 99))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(n, len(all))]
}

// simulated is a run: what the server shows, and what it hides.
type simulated struct {
	scale     float64 // m of the family
	intervals []*histest.Delta
	total     *histest.Delta
	sorted    []float64 // all observations
}

func (c *suiteCase) simulate() *simulated {
	s := &simulated{total: emptyDelta(c.layout.bounds)}
	h := fnv.New64a()
	fmt.Fprint(h, c)
	r := rand.New(rand.NewPCG(h.Sum64(), c.seed))
	positive := c.layout.bounds
	if positive[0] <= 0 {
		positive = positive[1:]
	}
	j := min(max(c.place*float64(len(positive)-1)+r.Float64()-0.5, 0), float64(len(positive)-1))
	i := min(int(j), len(positive)-2)
	scale := math.Exp(math.Log(positive[i]) + (j-float64(i))*(math.Log(positive[i+1])-math.Log(positive[i])))
	s.scale = scale
	sizes := c.sizes(r)
	next := c.family.make(&draw{Rand: r, m: scale, intervals: c.intervals, bounds: c.layout.bounds})
	for i, n := range sizes {
		d := emptyDelta(c.layout.bounds)
		for range n {
			x := next((float64(i)+0.5)/float64(c.intervals), i)
			b, _ := slices.BinarySearch(d.Bounds, x)
			if b < len(d.Cum) {
				d.Cum[b]++
			}
			d.Inf++
			d.Sum += x
			s.sorted = append(s.sorted, x)
		}
		d.Count = d.Inf
		for b := 1; b < len(d.Cum); b++ {
			d.Cum[b] += d.Cum[b-1]
		}
		addDelta(s.total, d)
		s.intervals = append(s.intervals, d)
	}
	slices.Sort(s.sorted)
	return s
}

func emptyDelta(bounds []float64) *histest.Delta {
	return &histest.Delta{Bounds: bounds, Cum: make([]float64, len(bounds)), HasInf: true}
}

func addDelta(to, d *histest.Delta) {
	for i, c := range d.Cum {
		to.Cum[i] += c
	}
	to.Inf += d.Inf
	to.Count += d.Count
	to.Sum += d.Sum
}

// sizes draws the number of observations of each interval; at least one in all.
func (c *suiteCase) sizes(r *rand.Rand) []int {
	n := make([]int, c.intervals)
	if c.rate == 0 {
		for range c.size {
			n[r.IntN(len(n))]++
		}
		return n
	}
	p := distuv.Poisson{Lambda: c.rate, Src: r}
	all := 0
	for i := range n {
		n[i] = int(p.Rand())
		all += n[i]
	}
	if all == 0 {
		n[r.IntN(len(n))] = 1
	}
	return n
}

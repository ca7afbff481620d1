package normalize_test

import (
	"math"

	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/normalize"
)

// histogram returns nil when there is nothing to tell.
func (o *oracle) histogram(all []scrape) *normalize.Histogram {
	clamp := o.o.Resets == normalize.ResetClamp
	if len(all) == 0 {
		return nil
	}
	if clamp {
		all = frozen(all)
	}
	ref, in := split(o, all, func(s scrape) int64 { return s.at })
	seq := append(ref, in...)
	if len(seq) == 0 || len(in) == 0 && !clamp {
		return nil
	}
	shared := common(seq)
	h := &normalize.Histogram{Segments: 1, NoSum: !shared["sum"]}
	var keys []string
	for _, k := range keysOf(seq[0].v) {
		if shared[k] {
			keys = append(keys, k)
			h.Bounds = append(h.Bounds, normalize.Bucket{Text: k, Upper: boundOf(k)})
		}
	}
	counter := "count"
	if !shared["count"] && shared["+Inf"] {
		counter = "+Inf"
	}
	at, running := o.run(seq, shared, h)
	gain := map[string]float64{}
	for k := range shared {
		gain[k] = running[k][len(seq)-1] - running[k][0]
	}
	h.Count = int64(gain[counter])
	h.Buckets = bucketsOf(keys, gain)
	if h.Count == 0 {
		return h
	}
	h.Sum = gain["sum"]
	h.Avg = h.Sum / float64(h.Count)
	if d := at[len(at)-1] - at[0]; d > 0 {
		h.HasRates = true
		h.CountRate = float64(h.Count) / (float64(d) / 1e9)
		h.SumRate = h.Sum / (float64(d) / 1e9)
	}
	if h.Buckets != nil && !h.NoSum {
		h.Quantiles = o.quantiles(o.learnt(all, seq, keys), keys, gain, counter)
	}
	if len(seq) > 1 {
		o.histogramSlices(h, at, running, keys, counter)
	}
	return h
}

// run returns the values at every sample: raw, or the sum of increases.
func (o *oracle) run(seq []scrape, shared map[string]bool, h *normalize.Histogram) (at []int64,
	running map[string][]float64) {
	running = map[string][]float64{}
	for i, s := range seq {
		at = append(at, s.at)
		var gain map[string]float64
		if i > 0 {
			gain = interval(seq[i-1], s)
			if s.layout != seq[i-1].layout {
				h.Segments++
			}
		}
		for k := range shared {
			v := s.v[k]
			if i > 0 && o.o.Resets == normalize.ResetAdjust {
				v = running[k][i-1] + gain[k]
			}
			running[k] = append(running[k], v)
		}
	}
	return at, running
}

func bucketsOf(keys []string, gain map[string]float64) []normalize.Bucket {
	out := []normalize.Bucket{}
	for _, k := range keys {
		n := int64(gain[k])
		if n < 0 {
			return nil
		}
		out = append(out, normalize.Bucket{Text: k, Upper: boundOf(k), Count: n})
	}
	return out
}

// learnt returns an estimator that has seen the intervals it may see: from the
// reference on, under ResetClamp to the end of storage; under ResetAdjust those
// since a bound was last lost.
func (o *oracle) learnt(all, seq []scrape, keys []string) histest.Estimator {
	if o.o.Resets == normalize.ResetClamp {
		for all[0].at < seq[0].at { // samples at the same time as the reference stay
			all = all[1:]
		}
		for len(all) > 1 && all[1].at < o.o.StartNS {
			all = all[1:]
		}
		seq = all
	}
	est, err := histest.New(o.o.Estimator, delta(keys, nil, "count").Bounds)
	if err != nil {
		panic(err)
	}
	for i := 1; i < len(seq); i++ {
		so := common(seq[:i+1])
		n := 0
		for _, k := range keysOf(seq[0].v) {
			if so[k] {
				n++
			}
		}
		counter := "count"
		if !so["count"] && so["+Inf"] {
			counter = "+Inf"
		}
		if n > len(keys) || !so[counter] {
			continue // a bound is yet to be lost
		}
		gain := interval(seq[i-1], seq[i])
		est.Interval(delta(keys, gain, counter))
	}
	return est
}

// quantiles asks an estimator for the quantiles of whole gains.
func (o *oracle) quantiles(est histest.Estimator, keys []string, gain map[string]float64,
	counter string) []histest.Estimate {
	whole := map[string]float64{"sum": gain["sum"]}
	floor := math.Inf(-1)
	for _, k := range keys {
		whole[k] = math.Trunc(gain[k])
		if o.o.Resets == normalize.ResetAdjust {
			floor = max(floor, whole[k])
			whole[k] = floor
		}
	}
	whole["n"] = math.Trunc(gain[counter])
	d := delta(keys, whole, "n")
	if len(d.Bounds) == 0 {
		return nil
	}
	q, ok := est.Quantiles(nil, d, o.o.Quantiles)
	if !ok {
		return nil
	}
	return q
}

func (o *oracle) histogramSlices(h *normalize.Histogram, at []int64, running map[string][]float64, keys []string,
	counter string) {
	clamp := o.o.Resets == normalize.ResetClamp
	for _, s := range o.cuts() {
		gain := map[string]float64{}
		for k, v := range running {
			gain[k] = o.gained(s, at, v)
		}
		if s.EndNS <= at[0] || gain[counter] < 0 || clamp && gain["sum"] < 0 {
			continue
		}
		out := normalize.HistogramSlice{Slice: s, Count: int64(gain[counter]), Sum: gain["sum"]}
		if out.Count != 0 {
			out.Avg = out.Sum / float64(out.Count)
		}
		buckets := bucketsOf(keys, gain)
		for _, b := range buckets {
			out.Counts = append(out.Counts, b.Count)
		}
		if o.o.SliceQuantiles && buckets != nil && !h.NoSum {
			est, err := histest.New(o.o.Estimator, delta(keys, nil, "count").Bounds)
			if err != nil {
				panic(err)
			}
			out.Quantiles = o.quantiles(est, keys, gain, counter)
		}
		h.Slices = append(h.Slices, out)
	}
}

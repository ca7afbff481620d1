package normalize

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
)

// ErrBounds is why [MergeHistograms] refuses histograms of different buckets.
var ErrBounds = errors.New("bucket bounds differ")

// MergeHistograms pools what several histograms gained, such as those of the replicas of a server: counts,
// sums, rates and buckets add up, and the quantiles are those of all observations together, of the histograms'
// Gain and never of their quantiles. Those need Options.Mergeable; where they cannot be had a warning has the
// reason. The result has no slices.
//
// Histograms of different bounds are taken together at the finite bounds that all of them have, as what was
// counted between the bounds of one is unknown in the other; a warning says so. Where there is no such bound
// they are refused with [ErrBounds].
func MergeHistograms(hs []*Histogram, quantiles []float64) (*Histogram, []metric.Warning, error) {
	if len(hs) == 0 {
		return nil, nil, errors.New("merge histograms: none given")
	}
	native := 0
	for _, h := range hs {
		if h.Native != nil {
			native++
		}
	}
	if native == len(hs) {
		return mergeNative(hs, quantiles), nil, nil
	}
	if native > 0 {
		return nil, nil, fmt.Errorf("merge %d native histograms with %d others: %w", native, len(hs)-native, ErrBounds)
	}
	hs, warnings, err := coarsen(hs)
	if err != nil {
		return nil, nil, err
	}
	out := &Histogram{Bounds: hs[0].Bounds, Buckets: slices.Clone(hs[0].Bounds)}
	for _, h := range hs {
		out.add(h)
	}
	if out.NoSum {
		out.Sum, out.SumRate = 0, 0
	} else if out.Count != 0 {
		out.Avg = finite(out.Sum / float64(out.Count))
	}
	if warning := out.pool(hs, quantiles); warning != nil {
		warnings = append(warnings, *warning)
	}
	return out, warnings, nil
}

// coarsen brings histograms of different bounds to those that all of them have.
func coarsen(hs []*Histogram) ([]*Histogram, []metric.Warning, error) {
	same := func(a, b Bucket) bool { return a.Upper == b.Upper }
	if !slices.ContainsFunc(hs, func(h *Histogram) bool { return !slices.EqualFunc(h.Bounds, hs[0].Bounds, same) }) {
		return hs, nil, nil
	}
	common, most := slices.Clone(hs[0].Bounds), 0
	for i, h := range hs {
		most = max(most, len(h.Bounds))
		common = slices.DeleteFunc(common, func(b Bucket) bool { return h.find(b.Upper) < 0 })
		if len(common) == 0 || math.IsInf(common[0].Upper, 1) {
			return nil, nil, fmt.Errorf("merge histogram %d of %d: %w, and none is common", i, len(hs), ErrBounds)
		}
	}
	out := make([]*Histogram, len(hs))
	for i, h := range hs {
		c := *h
		c.Bounds, c.Buckets = common, nil
		for _, b := range common {
			if h.Buckets != nil {
				c.Buckets = append(c.Buckets, h.Buckets[h.find(b.Upper)])
			}
		}
		if h.Gain != nil {
			finite := make([]float64, 0, len(common))
			for _, b := range common {
				if !math.IsInf(b.Upper, 1) {
					finite = append(finite, b.Upper)
				}
			}
			var err, fileErr error
			if c.Gain, err = h.Gain.Coarsen(finite); h.FileGain != nil {
				c.FileGain, fileErr = h.FileGain.Coarsen(finite)
			}
			if err := cmp.Or(err, fileErr); err != nil {
				return nil, nil, fmt.Errorf("merge histogram %d of %d: %w", i, len(hs), err)
			}
		}
		out[i] = &c
	}
	return out, []metric.Warning{{Code: "bounds_differ",
		Text: fmt.Sprintf("bucket bounds differ: taken together at the %d bounds that all %d histograms have, of %d at "+
			"most", len(common), len(hs), most)}}, nil
}

// find returns the place of a bound, -1 where there is none.
func (h *Histogram) find(upper float64) int {
	return slices.IndexFunc(h.Bounds, func(b Bucket) bool { return b.Upper == upper })
}

// add adds the gains of h, whose bounds are the same.
func (out *Histogram) add(h *Histogram) {
	out.Count, out.Late = addCounts(out.Count, h.Count), out.Late+h.Late
	out.Sum = finite(out.Sum + h.Sum)
	out.CountRate = finite(out.CountRate + h.CountRate)
	out.SumRate = finite(out.SumRate + h.SumRate)
	out.HasRates = out.HasRates || h.HasRates
	out.NoSum = out.NoSum || h.NoSum
	out.Segments = max(out.Segments, h.Segments)
	if h.Buckets == nil {
		out.Buckets = nil
	}
	for i := range out.Buckets {
		out.Buckets[i].Count = addCounts(out.Buckets[i].Count, h.Buckets[i].Count)
	}
}

// addCounts adds, up to the largest number there is.
func addCounts(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	if b < 0 && a < math.MinInt64-b {
		return math.MinInt64
	}
	return a + b
}

// pool sets the quantiles, or tells why there are none.
func (out *Histogram) pool(hs []*Histogram, quantiles []float64) *metric.Warning {
	var gains, fileGains []*histest.Gain
	unusable := 0
	for _, h := range hs {
		if h.Gain != nil {
			gains = append(gains, h.Gain)
			if h.FileGain != nil {
				fileGains = append(fileGains, h.FileGain)
			}
		} else if !h.idle() {
			unusable++
		}
	}
	if unusable > 0 {
		return &metric.Warning{Code: "quantiles_not_merged",
			Text: fmt.Sprintf("no quantiles: %d of %d histograms have no usable counts, no sum or no finite bound",
				unusable, len(hs))}
	}
	if len(gains) == 0 {
		return nil // nothing was observed
	}
	var err, fileErr error
	if out.Quantiles, out.Gain, err = mergeGains(gains, quantiles); len(fileGains) > 0 {
		out.FileQuantiles, out.FileGain, fileErr = mergeGains(fileGains, quantiles)
	}
	if err := cmp.Or(err, fileErr); err != nil {
		return &metric.Warning{Code: "quantiles_not_merged", Text: "no quantiles: " + err.Error()}
	}
	return nil
}

// mergeGains returns the quantiles of all observations together, nil for none, and what they were made of.
func mergeGains(gains []*histest.Gain, quantiles []float64) ([]histest.Estimate, *histest.Gain, error) {
	all, err := histest.Merge(gains...)
	if err != nil {
		return nil, nil, err
	}
	if q, ok := all.Quantiles(make([]histest.Estimate, 0, len(quantiles)), quantiles); ok {
		return q, all, nil
	}
	return nil, nil, nil
}

// idle reports whether nothing was observed, and that this is certain.
func (h *Histogram) idle() bool {
	observed := func(b Bucket) bool { return b.Count != 0 }
	return h.Count == 0 && h.Buckets != nil && !slices.ContainsFunc(h.Buckets, observed)
}

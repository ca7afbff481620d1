package summary

import (
	"iter"
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/normalize"
)

// The statuses of Recorded.
const (
	Proven     = "exact"    // the records are all that the histogram counted
	Bounded    = "bounds"   // some are missing: percentiles lie between bounds
	NotTheSame = "refused"  // the records are not those of the histogram
	Unproven   = "unproven" // no histogram of the same
)

// Recorded is a time of an engine as the records of its requests have it, held against the histogram of the same: by
// count, by sum and by the count of each bucket.
type Recorded struct {
	ID      string  `json:"quantity"` // canonical: ttft_s
	Engine  string  `json:"engine,omitempty"`
	Family  string  `json:"family,omitempty"`
	Records int     `json:"records"`
	Gained  int64   `json:"gained"` // by the histogram
	Missing int64   `json:"missing"`
	Sum     float64 `json:"sum_s"`
	Status  string  `json:"status"`
	Reason  string  `json:"reason,omitempty"`
	// Buckets are those that records are missing in.
	Buckets     []MissingBucket      `json:"missing_buckets,omitempty"`
	Percentiles []RecordedPercentile `json:"percentiles"`

	Latency int `json:"-"` // into Run.Latencies, -1 for none
}

// MissingBucket is observations of a bucket that no record is of, in seconds.
type MissingBucket struct {
	Lower, Upper float64
	N            int64
}

// RecordedPercentile is a percentile in seconds, by numpy's linear method. Low and High are equal where it is exact.
// The estimate of the histogram stands beside it.
type RecordedPercentile struct {
	Q        float64  `json:"q"`
	Value    *float64 `json:"value_s"`
	Low      *float64 `json:"low_s"`
	High     *float64 `json:"high_s"`
	Estimate *float64 `json:"estimate_s"`
}

// Usable reports whether the percentiles stand for those of the server.
func (x *Recorded) Usable() bool {
	return x.Latency >= 0 && (x.Status == Proven || x.Status == Bounded)
}

// Proves reports whether records are all that a time of an engine was.
func (r *Run) Proves(id, engine string) bool {
	return slices.ContainsFunc(r.Recorded, func(x Recorded) bool {
		return x.ID == id && x.Engine == engine && x.Status == Proven
	})
}

// UseRecorded makes the percentiles of the run those of Recorded, where they are usable and of the quantiles of the
// run. It is called before anybody else has the run.
func (r *Run) UseRecorded() {
	for i := range r.Recorded {
		x := &r.Recorded[i]
		f, ok := r.Options.Catalog.Family(x.Family)
		if !ok || !x.Usable() || len(x.Percentiles) != len(r.Options.Quantiles) {
			continue
		}
		unit := f.Seconds(x.Family)
		var out []histest.Estimate
		for _, p := range x.Percentiles {
			e := histest.Estimate{Value: math.NaN(), Low: *p.Low / unit, High: *p.High / unit, Flags: histest.Recorded}
			if p.Value != nil {
				e.Value = *p.Value / unit
			}
			out = append(out, e)
		}
		r.record(x.Latency, out)
	}
}

// record makes the quantiles of Latencies[i] those of records wherever the run shows them. What files show stays an
// estimate.
func (r *Run) record(i int, quantiles []histest.Estimate) {
	l := &r.Latencies[i]
	if r.Options.FileEstimator == "" { // files had the estimates of screens
		r.Options.FileEstimator = r.Options.Estimator
		for h := range r.histograms() {
			h.FileQuantiles = h.Quantiles
		}
	}
	replace := func(h *normalize.Histogram) {
		if h != nil {
			h.Quantiles = quantiles
		}
	}
	replace(l.Histogram)
	for k := range r.Aggregates {
		if a := &r.Aggregates[k]; a.Metric == l.Metric && a.Series == l.Series {
			replace(a.Histogram)
		}
	}
	if list := r.Metrics[l.Metric].Series; len(list) == 1 {
		replace(list[0].Histogram)
	}
}

// histograms are all of the run.
func (r *Run) histograms() iter.Seq[*normalize.Histogram] {
	return func(yield func(*normalize.Histogram) bool) {
		for _, list := range [][]Metric{r.Metrics, r.Warmup} {
			for i := range list {
				for k := range list[i].Series {
					if h := list[i].Series[k].Histogram; h != nil && !yield(h) {
						return
					}
				}
			}
		}
		for i := range r.Aggregates {
			if h := r.Aggregates[i].Histogram; h != nil && !yield(h) {
				return
			}
		}
		for i := range r.Latencies {
			if h := r.Latencies[i].Histogram; h != nil && !yield(h) {
				return
			}
		}
	}
}

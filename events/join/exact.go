package join

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// exactIDs are the times that records have.
var exactIDs = [...]string{"ttft_s", "queue_s", "prefill_s", "decode_s", "e2e_s"}

// timesOf are the times of a record in the order of exactIDs, in nanoseconds, -1 where they are not known.
func timesOf(q *metric.ServerRequest) [len(exactIDs)]int64 {
	return [...]int64{int64(q.TTFT), int64(q.Queue), int64(q.Prefill), int64(q.Decode), int64(q.E2E)}
}

// recorded are the times of the records of a kind of source, in nanoseconds.
type recorded struct {
	kind       string
	resolution float64 // seconds
	values     [len(exactIDs)][]float64
}

// placed tells when a time of a record was observed, on the clock of the recording; ok is false where it is not known.
type placed func(q *metric.ServerRequest, ns int64) (at int64, ok bool)

// ExactTimes holds the records of requests against the histograms of a run. Records of which it is not known when they
// were count as those of the run; at may be nil, then Unix times are those of the recording. Quantiles are from 0 to 1.
func ExactTimes(ctx context.Context, run *summary.Run, rec Records, quantiles []float64,
	at placed) ([]summary.Recorded, error) {
	sources, err := rec.ServerSources(ctx)
	if err != nil || len(sources) == 0 {
		return nil, err
	}
	of := map[int]metric.ServerSource{}
	for _, s := range sources {
		of[s.ID] = s
	}
	if at == nil {
		at = func(q *metric.ServerRequest, ns int64) (int64, bool) {
			return ns, of[q.Source].Clock == metric.ServerUnix
		}
	}
	x := &exacting{run: run, rec: rec, of: of, quantiles: quantiles}
	all, err := x.read(ctx, "", nil)
	if err != nil {
		return nil, err
	}
	var out []summary.Recorded
	for n, id := range exactIDs {
		list, err := x.quantity(ctx, n, id, all, at)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

// exacting holds records against histograms.
type exacting struct {
	run       *summary.Run
	rec       Records
	of        map[int]metric.ServerSource
	quantiles []float64
}

// read collects the times of all records of a model ("" is all) that keep lets pass (nil is all).
func (x *exacting) read(ctx context.Context, model string,
	keep func(n int, q *metric.ServerRequest) bool) (out []*recorded, err error) {
	kinds := map[string]*recorded{}
	for q, err := range x.rec.ServerRequests(ctx) {
		if err != nil {
			return nil, fmt.Errorf("read records of requests: %w", err)
		}
		if model != "" && q.Model != "" && q.Model != model || q.Stage != "" {
			continue
		}
		s := x.of[q.Source]
		r := kinds[s.Kind]
		if r == nil {
			r = &recorded{kind: s.Kind}
			kinds[s.Kind], out = r, append(out, r)
		}
		r.resolution = max(r.resolution, s.Resolution.Seconds())
		for n, ns := range timesOf(q) {
			if ns >= 0 && (keep == nil || keep(n, q)) {
				r.values[n] = append(r.values[n], float64(ns)/1e9)
			}
		}
	}
	for _, r := range out {
		for _, v := range r.values {
			slices.Sort(v)
		}
	}
	return out, nil
}

// quantity judges one time for each engine that has a histogram of it, or by itself.
func (x *exacting) quantity(ctx context.Context, n int, id string, all []*recorded, at placed) (out []summary.Recorded,
	err error) {
	for i := range x.run.Latencies {
		l := &x.run.Latencies[i]
		if l.ID != id || l.Histogram == nil {
			continue
		}
		model := x.model(l)
		best, sure := x.best(n, i, all)
		if !sure || model != "" {
			windowed, err := x.read(ctx, model, x.within(l, at))
			if err != nil {
				return nil, err
			}
			if e, _ := x.best(n, i, windowed); e != nil && (best == nil || rank(e) > rank(best)) {
				best = e
			}
		}
		if best != nil {
			out = append(out, *best)
		}
	}
	if out != nil {
		return out, nil
	}
	for _, r := range all {
		if v := r.values[n]; len(v) > 0 {
			e := summary.Recorded{ID: id, Records: len(v), Sum: sumOf(v), Status: summary.Unproven, Latency: -1,
				Reason: "no histogram of the run says how many there were"}
			for _, q := range x.quantiles {
				p := quantile(v, q)
				e.Percentiles = append(e.Percentiles, summary.RecordedPercentile{Q: q, Value: p, Low: p, High: p})
			}
			return append(out, e), nil
		}
	}
	return nil, nil
}

// model is that of a histogram where the engine has histograms of several.
func (x *exacting) model(l *summary.Latency) string {
	n := 0
	for i := range x.run.Latencies {
		if o := &x.run.Latencies[i]; o.ID == l.ID && o.Engine == l.Engine {
			n++
		}
	}
	if model, ok := l.Labels.Get("model_name"); ok && n > 1 {
		return model
	}
	return ""
}

// within keeps what was observed between the polls that the gain of a histogram lies between.
func (x *exacting) within(l *summary.Latency, at placed) func(n int, q *metric.ServerRequest) bool {
	from, to := int64(math.MaxInt64), int64(0)
	for _, s := range x.run.Metrics[l.Metric].Series {
		if s.Histogram != nil {
			from, to = min(from, s.RefNS), max(to, s.LastNS)
		}
	}
	return func(n int, q *metric.ServerRequest) bool {
		ns := q.FinishNS
		if n == 0 {
			ns = q.FirstNS
		}
		when, ok := at(q, cmp.Or(ns, q.FinishNS, q.LastNS))
		return ok && ns != 0 && when > from && when <= to
	}
}

func rank(e *summary.Recorded) int64 {
	switch e.Status {
	case summary.Proven:
		return math.MaxInt64
	case summary.Bounded:
		return math.MaxInt64/2 - e.Missing
	}
	return 0
}

// best is the kind of source that fits a histogram best; sure reports whether it is all of it.
func (x *exacting) best(n, latency int, kinds []*recorded) (best *summary.Recorded, sure bool) {
	l := &x.run.Latencies[latency]
	for _, r := range kinds {
		if len(r.values[n]) == 0 || !speaksOf(r.kind, l.Engine) {
			continue
		}
		e := x.judge(l, r.values[n], r.resolution)
		e.Latency = latency
		if best == nil || rank(&e) > rank(best) {
			best = &e
		}
	}
	return best, best != nil && best.Status == summary.Proven
}

// speaksOf reports whether records of a kind can be those of an engine: a kind that has an engine's name is of it.
func speaksOf(kind, engine string) bool {
	for _, name := range []string{"dynamo", "sglang", "trtllm", "triton"} {
		if strings.HasPrefix(kind, name) {
			return strings.HasPrefix(engine, name)
		}
	}
	return true
}

// judge holds sorted times against a histogram.
func (x *exacting) judge(l *summary.Latency, values []float64, resolution float64) summary.Recorded {
	h, m := l.Histogram, &x.run.Metrics[l.Metric]
	e := summary.Recorded{ID: l.ID, Engine: l.Engine, Family: m.Name, Records: len(values), Gained: h.Count,
		Sum:     sumOf(values),
		Missing: h.Count - int64(len(values)), Status: summary.NotTheSame}
	unit := 0.0
	if f, ok := x.run.Options.Catalog.Family(m.Name); ok {
		unit = f.Seconds(m.Name)
	}
	switch {
	case unit == 0 || len(h.Buckets) == 0 || h.Native != nil:
		e.Status, e.Reason = summary.Unproven, "the histogram has no buckets to hold the records against"
	case !missingIn(&e, h, values, unit):
		e.Reason = "the records are of other requests or another window: a bucket gained less than they are"
	case e.Missing > 0:
		e.Status = summary.Bounded
		e.Reason = fmt.Sprintf("%d of %d requests not seen", e.Missing, h.Count)
	case !h.NoSum && math.Abs(e.Sum-h.Sum*unit) > 1e-6*math.Abs(h.Sum*unit)+resolution/2*float64(len(values)):
		e.Reason = fmt.Sprintf("the records add up to %.6f s, the histogram to %.6f s", e.Sum, h.Sum*unit)
	default:
		e.Status = summary.Proven
	}
	x.percentiles(&e, l, values, unit)
	return e
}

// missingIn notes what is missing in each bucket, and reports whether none gained less than there are records.
func missingIn(e *summary.Recorded, h *normalize.Histogram, values []float64, unit float64) bool {
	below, before, lower := 0, int64(0), 0.0
	for _, b := range h.Buckets {
		upper := b.Upper * unit
		n := len(values)
		if !math.IsInf(upper, 1) {
			n, _ = slices.BinarySearchFunc(values, upper, func(v, upper float64) int {
				if v <= upper {
					return -1
				}
				return 1
			})
		}
		missing := b.Count - before - int64(n-below)
		if missing < 0 {
			return false
		}
		if missing > 0 {
			e.Buckets = append(e.Buckets, summary.MissingBucket{Lower: lower, Upper: upper, N: missing})
		}
		below, before, lower = n, b.Count, upper
	}
	return below == len(values)
}

// percentiles are those of the values, with what is missing at the lower and at the upper ends of its buckets.
func (x *exacting) percentiles(e *summary.Recorded, l *summary.Latency, values []float64, unit float64) {
	if e.Status != summary.Proven && e.Status != summary.Bounded {
		return
	}
	low, high := values, values
	if e.Status == summary.Bounded {
		low, high = slices.Clone(values), slices.Clone(values)
		for _, b := range e.Buckets {
			low = append(low, slices.Repeat([]float64{b.Lower}, int(b.N))...)
			high = append(high, slices.Repeat([]float64{b.Upper}, int(b.N))...)
		}
		slices.Sort(low)
		slices.Sort(high)
	}
	for _, q := range x.quantiles {
		p := summary.RecordedPercentile{Q: q, Low: quantile(low, q), High: quantile(high, q)}
		p.Value = p.Low
		if at := slices.Index(x.run.Options.Quantiles, q); at >= 0 && at < len(l.Histogram.Quantiles) {
			v := l.Histogram.Quantiles[at].Value * unit
			p.Estimate = &v
		}
		if *p.Low != *p.High {
			if p.Value = nil; p.Estimate != nil {
				v := min(max(*p.Estimate, *p.Low), *p.High)
				p.Value = &v
			}
		}
		e.Percentiles = append(e.Percentiles, p)
	}
}

func sumOf(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

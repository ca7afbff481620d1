package export

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// JSON writes the statistics of a run as AIPerf does, in schema 1.1 or 1.0, with
// two spaces of indent and no newline at the end. Percentiles other than AIPerf's
// nine, and everything AIPerf has no place for, are under "scrapestat". Times in
// "summary" are local, as AIPerf's are; all others are nanoseconds since 1970.
func JSON(w io.Writer, r *summary.Run, o Options) error {
	if err := o.validate(); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	d := &document{encoder: encoder{w: w}, run: r, o: o, nine: pickNine(r.Options.Quantiles)}
	d.write()
	if err := d.flush(); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

// document writes one run.
type document struct {
	encoder
	run  *summary.Run
	o    Options
	nine [9]int // where in the quantiles of the run AIPerf's nine are; -1 where not
}

// ninePercent are the percentiles AIPerf has.
var ninePercent = [9]int{1, 5, 10, 25, 50, 75, 90, 95, 99}

// nineNames and nineEstimates name them in gauges and in histograms.
var (
	nineNames     = [9]string{"p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99"}
	nineEstimates = [9]string{"p1_estimate", "p5_estimate", "p10_estimate", "p25_estimate", "p50_estimate",
		"p75_estimate", "p90_estimate", "p95_estimate", "p99_estimate"}
)

func pickNine(quantiles []float64) (at [9]int) {
	for i, p := range ninePercent {
		at[i] = slices.Index(quantiles, float64(p)/100)
	}
	return at
}

func (d *document) write() {
	schema := cmp.Or(d.o.AIPerfSchema, Schema11)
	d.open('{')
	d.strField("schema_version", schema)
	d.strField("aiperf_version", toolVersion(d.run))
	if d.run.ID != "" {
		d.strField("benchmark_id", d.run.ID)
	}
	d.summary(schema)
	if schema == Schema11 {
		d.strField("metrics_phase", metric.PhaseProfiling)
	}
	d.metrics("metrics", d.run.Metrics)
	if schema == Schema11 && slices.ContainsFunc(d.run.Warmup, exported) {
		d.metrics("warmup_metrics", d.run.Warmup)
	}
	d.key("input_config")
	d.open('{')
	d.close('}')
	d.extras()
	d.close('}')
}

// toolVersion names us in the place of AIPerf's version.
func toolVersion(r *summary.Run) string {
	if strings.HasPrefix(r.Version, "scrapestat") {
		return r.Version
	}
	return strings.TrimSpace("scrapestat " + r.Version)
}

// delivered returns the endpoints that have counted fetches, each URL once, in
// the order of their first one.
func delivered(r *summary.Run) []*summary.Endpoint {
	var out []*summary.Endpoint
	for i := range r.Endpoints {
		e := &r.Endpoints[i]
		if e.Fetches.Total > 0 && !slices.ContainsFunc(out, func(have *summary.Endpoint) bool { return have.URL == e.URL }) {
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b *summary.Endpoint) int { return cmp.Compare(a.Fetches.FirstNS, b.Fetches.FirstNS) })
	return out
}

func (d *document) summary(schema string) {
	endpoints := delivered(d.run)
	d.key("summary")
	d.open('{')
	for _, name := range []string{"endpoints_configured", "endpoints_successful"} {
		d.key(name)
		d.open('[')
		for _, e := range endpoints {
			d.elem()
			d.str(e.URL)
		}
		d.close(']')
	}
	d.strField("start_time", d.o.localTime(d.run.Window.StartNS))
	d.strField("end_time", d.o.localTime(d.run.Window.PhaseEndNS))
	slices.SortFunc(endpoints, func(a, b *summary.Endpoint) int { return cmp.Compare(a.URL, b.URL) })
	d.key("endpoint_info")
	d.open('{')
	for _, e := range endpoints {
		d.key(e.URL)
		d.open('{')
		d.fetches(&e.Fetches)
		d.close('}')
	}
	d.close('}')
	if schema == Schema11 {
		d.key("phase_time_ranges")
		d.open('{')
		d.timeRange(metric.PhaseProfiling, d.run.Window.StartNS, d.run.Window.PhaseEndNS)
		if w := d.run.WarmupWindow; w != nil {
			d.timeRange(metric.PhaseWarmup, w.StartNS, w.EndNS)
		}
		d.close('}')
	}
	d.close('}')
}

func (d *document) timeRange(name string, start, end int64) {
	if start >= end {
		return
	}
	d.key(name)
	d.open('{')
	d.intField("start_ns", start)
	d.intField("end_ns", end)
	d.close('}')
}

// fetches writes the ten fields of AIPerf's endpoint_info.
func (d *document) fetches(f *summary.FetchStats) {
	d.intField("total_fetches", int64(f.Total))
	d.intField("first_fetch_ns", f.FirstNS)
	d.intField("last_fetch_ns", f.LastNS)
	d.floatField("avg_fetch_latency_ms", f.AvgLatencyMS)
	d.intField("unique_updates", int64(f.Unique))
	d.intField("first_update_ns", f.FirstUpdateNS)
	d.intField("last_update_ns", f.LastUpdateNS)
	d.floatField("duration_seconds", f.UpdateSeconds())
	d.floatField("avg_update_interval_ms", f.AvgUpdateIntervalMS)
	if f.HasMedian {
		d.floatField("median_update_interval_ms", f.MedianUpdateIntervalMS)
	}
}

// localTime formats an instant as Python's naive isoformat() does for a time
// made of float seconds: rounded to microseconds, half to even, the fraction
// left out when it is 0.
func (o *Options) localTime(ns int64) string {
	whole, frac := math.Modf(float64(ns) / 1e9)
	micros := int64(math.RoundToEven(frac * 1e6))
	t := time.Unix(int64(whole), micros*1000)
	if o.Location != nil {
		t = t.In(o.Location)
	}
	if t.Nanosecond() == 0 {
		return t.Format("2006-01-02T15:04:05")
	}
	return t.Format("2006-01-02T15:04:05.000000")
}

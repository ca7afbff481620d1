package export

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// JSON writes the statistics of a run as AIPerf does, in schema 1.1 or 1.0, with two spaces of indent and no newline at
// the end. Percentiles other than AIPerf's nine, and everything AIPerf has no place for, are under "scrapestat". Times
// in "summary" are local, as AIPerf's are; all others are nanoseconds since 1970.
func JSON(w io.Writer, r *summary.Run, o Options) error {
	if err := o.validate(); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	d := &document{run: r, o: o, nine: pickNine(r.Options.Quantiles)}
	e := &encoder{w: w, fields: map[reflect.Type][]jsonField{}}
	e.value(reflect.ValueOf(d.export()).Elem())
	if err := e.flush(); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

// document makes the JSON of one run.
type document struct {
	run  *summary.Run
	o    Options
	warm float64 // seconds of the warm-up, where that is what is written; else 0
	nine [9]int  // where in the quantiles of the run AIPerf's nine are; -1 where not
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

func (d *document) export() *jsonExport {
	schema, r := cmp.Or(d.o.AIPerfSchema, Schema11), d.run
	x := &jsonExport{Schema: schema, Tool: toolVersion(r), ID: r.ID, Summary: d.summary(), Metrics: d.metrics(r.Metrics),
		Extras: d.extras()}
	if schema == Schema11 {
		warm := *d
		warm.warm = warmSeconds(r)
		x.Phase, x.Warmup = metric.PhaseProfiling, warm.metrics(r.Warmup).orNone()
		x.Summary.Phases = &jsonPhases{Profiling: period(r.Window.StartNS, r.Window.PhaseEndNS)}
		if w := r.WarmupWindow; w != nil {
			x.Summary.Phases.Warmup = period(w.StartNS, w.EndNS)
		}
	}
	return x
}

// warmSeconds is the length of the warm-up, 0 without one.
func warmSeconds(r *summary.Run) (seconds float64) {
	switch w := r.Window.Resolved; {
	case r.WarmupWindow == nil:
	case w != nil && len(w.Warmups) > 0:
		for _, s := range w.Warmups {
			seconds += s.Seconds()
		}
	default:
		seconds = float64(r.WarmupWindow.EndNS-r.WarmupWindow.StartNS) / 1e9
	}
	return seconds
}

// period is the zero value where it is empty.
func period(start, end int64) jsonPeriod {
	if start >= end {
		return jsonPeriod{}
	}
	return jsonPeriod{StartNS: start, EndNS: end}
}

// toolVersion names us in the place of AIPerf's version.
func toolVersion(r *summary.Run) string {
	if strings.HasPrefix(r.Version, "scrapestat") {
		return r.Version
	}
	return strings.TrimSpace("scrapestat " + r.Version)
}

// delivered returns the endpoints that have counted fetches, each URL once, in the order of their first one.
func delivered(r *summary.Run) []*summary.Endpoint {
	var out []*summary.Endpoint
	for i := range r.Endpoints {
		e := &r.Endpoints[i]
		twin := slices.ContainsFunc(out, func(have *summary.Endpoint) bool { return have.URL == e.URL })
		if e.Fetches.Total > 0 && !e.Client() && !twin {
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b *summary.Endpoint) int {
		return cmp.Compare(a.Fetches.FirstNS,
			b.Fetches.FirstNS)
	})
	return out
}

func (d *document) summary() *jsonSummary {
	endpoints := delivered(d.run)
	x := &jsonSummary{Start: d.o.localTime(d.run.Window.StartNS), End: d.o.localTime(d.run.Window.PhaseEndNS)}
	for _, e := range endpoints {
		x.Configured = append(x.Configured, e.URL)
	}
	x.Successful = x.Configured
	slices.SortFunc(endpoints, func(a, b *summary.Endpoint) int { return cmp.Compare(a.URL, b.URL) })
	x.Info = func(yield func(string, jsonFetches) bool) {
		for _, e := range endpoints {
			if !yield(e.URL, *fetchesOf(&e.Fetches)) {
				return
			}
		}
	}
	return x
}

// fetchesOf has the ten fields of AIPerf's endpoint_info; nil of nil.
func fetchesOf(f *summary.FetchStats) *jsonFetches {
	if f == nil {
		return nil
	}
	return &jsonFetches{Total: f.Total, First: f.FirstNS, Last: f.LastNS, Latency: float(f.AvgLatencyMS), Unique: f.Unique,
		FirstUpdate: f.FirstUpdateNS, LastUpdate: f.LastUpdateNS, Duration: float(f.UpdateSeconds()),
		AvgInterval: float(f.AvgUpdateIntervalMS), MedianInterval: float(f.MedianUpdateIntervalMS).when(f.HasMedian)}
}

// localTime formats an instant as Python's naive isoformat() does for a time made of float seconds: rounded to
// microseconds, half to even, the fraction left out when it is 0.
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

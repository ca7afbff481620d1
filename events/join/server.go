package join

import (
	"math"

	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// source is where a server has a time: a histogram or a summary, or two counters of a
// sum and a count.
type source struct {
	family string
	count  string  // of two counters: the family of the count
	unit   float64 // seconds in a unit of the family; 0 is 1
}

func (s source) seconds(v float64) float64 {
	if s.unit == 0 {
		return v
	}
	return v * s.unit
}

// engine is where a server has what is joined.
type engine struct {
	name                      string
	ttft, e2e, queue, prefill source
	underWay                  []string // gauges that add up to the requests under way
}

// engines are the known servers. A front end comes before what it stands in
// front of, as it has the requests of the clients.
var engines = []engine{
	{name: "dynamo", ttft: source{family: "dynamo_frontend_time_to_first_token_seconds"}, e2e: source{family: "dynamo_frontend_request_duration_seconds"},
		underWay: []string{"dynamo_frontend_inflight_requests"}},
	{name: "vllm", ttft: source{family: "vllm:time_to_first_token_seconds"}, e2e: source{family: "vllm:e2e_request_latency_seconds"},
		queue: source{family: "vllm:request_queue_time_seconds"}, prefill: source{family: "vllm:request_prefill_time_seconds"},
		underWay: []string{"vllm:num_requests_running", "vllm:num_requests_waiting"}},
	{name: "sglang", ttft: source{family: "sglang:time_to_first_token_seconds"}, e2e: source{family: "sglang:e2e_request_latency_seconds"},
		queue: source{family: "sglang:queue_time_seconds"}, underWay: []string{"sglang:num_running_reqs", "sglang:num_queue_reqs"}},
	{name: "trtllm", ttft: source{family: "trtllm_time_to_first_token_seconds"}, e2e: source{family: "trtllm_e2e_request_latency_seconds"},
		queue: source{family: "trtllm_request_queue_time_seconds"}, prefill: source{family: "trtllm_request_prefill_time_seconds"},
		underWay: []string{"trtllm_num_requests_running", "trtllm_num_requests_waiting"}},
	{name: "tgi", e2e: source{family: "tgi_request_duration"}, queue: source{family: "tgi_request_queue_duration"}},
	{name: "triton", ttft: source{family: "nv_inference_first_response_histogram_ms", unit: 1e-3},
		e2e:      source{family: "nv_inference_request_duration_us", count: "nv_inference_request_success", unit: 1e-6},
		queue:    source{family: "nv_inference_queue_duration_us", count: "nv_inference_request_success", unit: 1e-6},
		underWay: []string{"nv_inference_pending_request_count"}},
	{name: "torchserve", e2e: source{family: "ts_inference_latency_microseconds", count: "ts_inference_requests_total", unit: 1e-6},
		queue: source{family: "ts_queue_latency_microseconds", count: "ts_inference_requests_total", unit: 1e-6}},
}

// Engines returns the names of the known servers, those that are preferred first.
func Engines() []string {
	var names []string
	for _, e := range engines {
		names = append(names, e.name)
	}
	return names
}

// server adds up what all series of a source gained, with the polls that the
// gain lies between.
func (j *joiner) server(src source) (side ServerSide, fromNS, toNS int64) {
	fromNS = math.MaxInt64
	sum, some := 0.0, false
	edges := func(s summary.Series) {
		some = true
		fromNS, toNS = min(fromNS, s.RefNS), max(toNS, s.LastNS)
	}
	for _, s := range j.series(src.family) {
		switch {
		case s.Histogram != nil && !s.Histogram.NoSum:
			side.Count, sum = side.Count+float64(s.Histogram.Count), sum+s.Histogram.Sum
			edges(s)
		case s.Summary != nil && s.Summary.Defined:
			side.Count, sum = side.Count+float64(s.Summary.Count), sum+s.Summary.Sum
			edges(s)
		case s.Counter != nil && s.Counter.Defined && src.count != "":
			sum += s.Counter.Total
			edges(s)
		}
	}
	for _, s := range j.series(src.count) {
		if s.Counter != nil && s.Counter.Defined {
			side.Count += s.Counter.Total
		}
	}
	if !some {
		return ServerSide{}, j.r.FromNS, j.r.ToNS
	}
	side.Family = src.family
	side.Mean = quotient(src.seconds(sum), side.Count)
	j.percentiles(src, &side)
	return side, fromNS, toNS
}

// percentiles takes those of all series together.
func (j *joiner) percentiles(src source, side *ServerSide) {
	for _, a := range j.run.Aggregates {
		if a.Histogram == nil || j.run.Metrics[a.Metric].Name != src.family || len(a.Histogram.Quantiles) != len(percentiles) {
			continue
		}
		for i, e := range a.Histogram.Quantiles {
			if v := src.seconds(e.Value); !math.IsNaN(v) && !math.IsInf(v, 0) && a.Histogram.Count > 0 {
				side.p[i] = &v
			}
		}
	}
}

// eachSlice tells what the series of a source gained in each slice.
func (j *joiner) eachSlice(src source, tell func(s normalize.Slice, sumSeconds, count float64)) {
	for _, s := range j.series(src.family) {
		switch {
		case s.Histogram != nil && !s.Histogram.NoSum:
			for _, h := range s.Histogram.Slices {
				tell(h.Slice, src.seconds(h.Sum), float64(h.Count))
			}
		case s.Counter != nil && src.count != "":
			for _, c := range s.Counter.Slices {
				tell(c.Slice, src.seconds(c.Total), 0)
			}
		}
	}
	for _, s := range j.series(src.count) {
		if s.Counter != nil {
			for _, c := range s.Counter.Slices {
				tell(c.Slice, 0, c.Total)
			}
		}
	}
}

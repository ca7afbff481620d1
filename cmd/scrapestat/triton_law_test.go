package main

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scrapestat/scrapestat/collect"
	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/source/triton"
	"github.com/scrapestat/scrapestat/summary"
)

// tritonLaw records 40 s of load on a simulated Triton, of which the metrics and the statistics are polled, each at two
// intervals, in a bubble, where time costs nothing.
func tritonLaw(t *testing.T) (r *summary.Run, truth []simulate.Request) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	synctest.Test(t, func(t *testing.T) {
		sim, err := simulate.New("triton", simulate.Options{Seed: 7, KeepTruth: true,
			Load: []simulate.LoadStep{{}, {At: 5 * time.Second, Rate: 8}, {At: 45 * time.Second}}})
		if err != nil {
			t.Fatal(err)
		}
		o := collect.Options{Scrape: scrape.Options{MaxScrapeShare: -1}}
		for _, interval := range []time.Duration{250 * time.Millisecond, time.Second} {
			s, err := triton.New("triton+http://sim:8000", triton.Options{RoundTripper: served{sim}})
			if err != nil {
				t.Fatal(err)
			}
			o.Targets = append(o.Targets, scrape.Target{URL: "http://" + interval.String() + "/metrics", Interval: interval,
				RoundTripper: served{sim}}, scrape.Target{URL: "triton+http://" + interval.String(), Interval: interval,
				Kind: "triton", Source: s})
		}
		s, err := collect.Open(t.Context(), dir, o)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		go func() {
			<-s.Ready()
			<-time.After(60 * time.Second)
			if err := s.Mark(metric.MarkEnd); err != nil {
				t.Error(err)
			}
		}()
		if _, err := s.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		truth = sim.Truth().Requests
	})
	db, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if r, err = summary.Build(t.Context(), []summary.Recording{db}, summary.Options{}); err != nil {
		t.Fatal(err)
	}
	return r, truth
}

// Little's law on a simulated Triton: of each model metrics and statistics, at both intervals, have one rate and one
// mean time, and those of requests that are no step of another one are the truth.
func TestLittlesLawOfTriton(t *testing.T) {
	t.Parallel()
	r, truth := tritonLaw(t)
	names := map[string]int{"nv_inference_request_success": 0, "nv_inference_request_duration_us": 1,
		"triton_stats_requests_total": 0, "triton_stats_request_duration_nanoseconds_total": 1}
	var of [4]map[string][2]float64 // by model: requests and their time in seconds, both by the second
	for i := range of {
		of[i] = map[string][2]float64{}
	}
	for i := range r.Metrics {
		what, ok := names[r.Metrics[i].Name]
		for _, s := range r.Metrics[i].Series {
			if stat, labelled := s.Labels.Get("stat"); !ok || labelled && stat != "success" {
				continue
			}
			model, _ := s.Labels.Get("model")
			if model == "canary" { // is loaded after the load
				continue
			}
			x := of[s.Endpoint][model]
			x[what] = s.Counter.Rate
			if strings.HasSuffix(r.Metrics[i].Name, "_us") {
				x[what] /= 1e6
			} else if what == 1 {
				x[what] /= 1e9
			}
			of[s.Endpoint][model] = x
		}
	}
	stood := 0.0
	for _, q := range truth {
		if q.Reason == "stop" {
			stood += (q.Last - q.Arrival).Seconds()
		}
	}
	for target, models := range of {
		law := 0.0
		for model, x := range models {
			// The metrics cut times to µs.
			if first := of[0][model]; x[0] != first[0] || x[0] == 0 || math.Abs(x[1]/first[1]-1) > .001 {
				t.Errorf("target %d: %s has %v requests/s that take %v s each second, %v by the first", target, model, x[0], x[1],
					first)
			}
			if model != "tokenizer" && model != "encoder" { // steps of the pipeline
				law += x[1]
			}
		}
		if want := stood / r.Endpoints[target].Seconds; len(models) != 4 || math.Abs(law/want-1) > .05 {
			t.Errorf("target %d: %d models, rate times latency is %v, %v requests were there", target, len(models), law, want)
		}
	}
}

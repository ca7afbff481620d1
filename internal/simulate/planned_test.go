package simulate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/simulate"
)

func TestNamedPlans(t *testing.T) {
	t.Parallel()
	for _, name := range simulate.Pipelines() {
		p, err := simulate.NamedPlan(name, 2)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range p.Stages {
			if s.Replicas != 2 {
				t.Errorf("%s: stage %d has %d replicas", name, i, s.Replicas)
			}
		}
		c := newClock()
		s := start(t, c, "vllm-omni", simulate.Options{Plan: &p, KeepTruth: true, Rate: 1})
		c.add(time.Minute)
		s.Advance()
		truth := s.Truth()
		if total := truth.Pipeline(0, truth.Until); total.Served < 30 || len(total.Stages) != len(p.Stages) {
			t.Errorf("%s: %d served in %d stages", name, total.Served, len(total.Stages))
		}
	}
	if _, err := simulate.NamedPlan("video", 1); err == nil || !strings.Contains(err.Error(), "image") {
		t.Errorf("an unknown pipeline gives %v", err)
	}
}

// The truth of a fixed plan is the plan itself.
func TestPipelineTotals(t *testing.T) {
	t.Parallel()
	c := newClock()
	o := known(false)
	s := start(t, c, "vllm-omni", o)
	c.add(time.Hour)
	f, truth := scrape(t, s), s.Truth()
	got, n := truth.Pipeline(0, truth.Until), 0.0
	if n = float64(got.Served); n < 700 {
		t.Fatalf("%v served", n)
	}
	if want := truth.Plan.Serial().Seconds(); got.E2E.Seconds()/n < want || got.E2E.Seconds()/n > want+0.02 {
		t.Errorf("end to end %v, the plan says %v", got.E2E.Seconds()/n, want)
	}
	for i, h := range got.Hops {
		near(t, "hop", (h.Tx+h.InFlight+h.Rx).Seconds()/n, truth.Plan.Stages[i].Hop.Mean().Seconds())
	}
	near(t, "stage 0", got.Stages[0].Time.Seconds(), f.value("vllm:e2e_request_latency_seconds", "stage=0"))
	near(t, "stage 2", got.Stages[2].Time.Seconds(), f.value("vllm_omni:stage_gen_time_s", "stage=2"))
	near(t, "queue of stage 2", got.Stages[2].Queue.Seconds(), f.value("vllm_omni:stage_in_queue_s", "stage=2"))
	near(t, "e2e", got.E2E.Seconds(), f.value("vllm_omni:e2e_request_latency_s"))
	for i, at := range got.Stages {
		if d := at.ByReplica[0] - at.ByReplica[1]; at.Visits != got.Served || d > got.Served/5 || -d > got.Served/5 {
			t.Errorf("stage %d: %d visits, by replica %v", i, at.Visits, at.ByReplica)
		}
	}
	if half := truth.Pipeline(0, time.Minute); half.Served == 0 || half.Served >= got.Served {
		t.Errorf("%d of %d served in the first minute", half.Served, got.Served)
	}
	if p := (&simulate.Truth{}).Pipeline(0, time.Hour); p.Served != 0 || p.Stages != nil {
		t.Errorf("a truth without a plan has %v", p)
	}
}

// Labels and suffixes change, the numbers stay.
func TestOmniSpellings(t *testing.T) {
	t.Parallel()
	body := func(change func(*simulate.Options)) string {
		c := newClock()
		o := known(true)
		o.Load = []simulate.LoadStep{{At: 20 * time.Second}}
		change(&o)
		s := start(t, c, "vllm-omni", o)
		c.add(time.Minute)
		return string(s.AppendBody(nil))
	}
	usual := parse(t, body(func(*simulate.Options) {}))
	flat := parse(t, body(func(o *simulate.Options) { o.EngineLabel = true }))
	for engine, at := range [][2]string{{"stage=0", "replica=0"}, {"stage=0", "replica=1"}, {"stage=1", "replica=0"},
		{"stage=1", "replica=1"}} {
		const name = "vllm:e2e_request_latency_seconds"
		near(t, name, flat.value(name, "engine="+string(rune('0'+engine))), usual.value(name, at[:]...))
	}
	if len(flat.find("vllm:num_requests_running", "stage=0")) != 0 {
		t.Error("a label stage beside engine")
	}
	if b := body(func(o *simulate.Options) { o.BareCounters = true }); strings.Contains(b, "_total{") ||
		parse(t, b).value("vllm_omni:requests_success") != usual.value("vllm_omni:requests_success_total") {
		t.Error("counters keep _total, or their values change")
	}
}

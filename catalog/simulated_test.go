package catalog_test

import (
	"math"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/simulate"
)

// explained is a simulated server with what the catalog derives of it.
type explained struct {
	*testing.T
	truth   simulate.Totals
	whole   simulate.Truth
	seconds float64
	results []catalog.Derived
}

func explain(t *testing.T, profile string, o simulate.Options) explained {
	t.Helper()
	s, truth, whole := simulated(t, profile, o, 60, 2)
	return explained{t, truth, whole, s.Seconds, known(t).Derive(s, catalog.Window)}
}

// headlines checks that all headlines of a pack have a value, and that there are
// at least so many.
func (e explained) headlines(pack string, least int) {
	e.Helper()
	n := map[string]bool{}
	for _, d := range e.results {
		if d.Pack != pack || !d.Headline {
			continue
		}
		if !d.Status.Defined() {
			e.Errorf("%s %s%v is %v", pack, d.Name, d.Labels, d.Status)
		}
		n[d.Name] = true
	}
	if len(n) < least {
		e.Errorf("%s has %d headlines, want at least %d: %v", pack, len(n), least, n)
	}
}

// is checks a quantity, without further labels, against the truth.
func (e explained) is(pack, name string, want, tolerance float64) {
	e.Helper()
	for _, d := range e.results {
		if d.Pack == pack && d.Name == name {
			if !d.Status.Defined() || math.Abs(d.Value-want) > tolerance*math.Abs(want)+1e-12 {
				e.Errorf("%s %s%v = %v (%v), want %v", pack, name, d.Labels, d.Value, d.Status, want)
			}
			return
		}
	}
	e.Errorf("%s %s is not derived", pack, name)
}

func (e explained) per(total time.Duration) float64 { return total.Seconds() / float64(e.truth.Served) }
func (e explained) rate(n int) float64              { return float64(n) / e.seconds }

const (
	exact = 1e-9
	// edges is what requests under way at the ends of the window may change.
	edges = 0.06
)

func loaded() simulate.Options {
	return simulate.Options{Rate: 6, Seed: 7, ErrorShare: 0.02, AbortShare: 0.02}
}

func TestSGLangSimulated(t *testing.T) {
	e := explain(t, "sglang", loaded())
	const p = "sglang"
	e.headlines(p, 10)
	e.is(p, "request_rate", e.rate(e.truth.Served), exact)
	e.is(p, "e2e_mean", e.per(e.truth.E2E), exact)
	e.is(p, "ttft_mean", e.per(e.truth.TTFT()), edges)
	e.is(p, "queue_mean", e.per(e.truth.Queue), 0.5)
	e.is(p, "input_tok_s", e.rate(e.truth.PromptTokens), exact)
	e.is(p, "output_tok_s", e.rate(e.truth.AllOutputTokens), edges)
	e.is(p, "osl_mean", float64(e.truth.OutputTokens)/float64(e.truth.Served), exact)
	e.is(p, "prefix_hit_ratio", float64(e.truth.CachedTokens)/float64(e.truth.PromptTokens), edges)
	e.is(p, "concurrency_little", e.truth.E2E.Seconds()/e.seconds, exact)
	e.is(p, "abort_ratio", float64(e.truth.Aborted+e.truth.Failed)/float64(e.truth.Served+e.truth.Aborted+e.truth.Failed),
		exact)
	e.is(p, "tpot_mean_request", e.truth.Decode.Seconds()/float64(e.truth.OutputTokens-e.truth.Served), 2*edges)
	// Ranks that all report, and priorities beside their total, change nothing.
	o := loaded()
	o.Ranks, o.Priorities = 4, 3
	all := explain(t, "sglang", o)
	for i, d := range e.results {
		if i >= len(all.results) || all.results[i].Name != d.Name || math.Abs(all.results[i].Value-d.Value) > 1e-12 {
			t.Errorf("with all ranks %+v, with one %+v", all.results[i], d)
		}
	}
}

func TestTRTLLMSimulated(t *testing.T) {
	e := explain(t, "trtllm", loaded())
	const p = "trtllm"
	e.headlines(p, 11)
	e.is(p, "request_rate", e.rate(e.truth.Served), exact)
	e.is(p, "output_tok_s", e.rate(e.truth.OutputTokens), exact)
	e.is(p, "input_tok_s", e.rate(e.truth.PromptTokens), exact)
	e.is(p, "e2e_mean", e.per(e.truth.E2E-e.truth.Front), exact)
	e.is(p, "ttft_mean", e.per(e.truth.TTFT()-e.truth.Front), exact)
	e.is(p, "waiting_mean_little", e.truth.Queue.Seconds()/e.seconds, exact)
	e.is(p, "running_mean_little", e.truth.Inference().Seconds()/e.seconds, exact)
	e.is(p, "itl_mean_token_weighted", e.truth.Decode.Seconds()/float64(e.truth.OutputTokens-e.truth.Served), exact)
	e.is(p, "prefix_hit_ratio", float64(e.truth.CachedTokens)/float64(e.truth.PromptTokens), exact)
	e.is(p, "queue_share_e2e", e.truth.Queue.Seconds()/(e.truth.E2E-e.truth.Front).Seconds(), exact)
	for _, check := range []string{"self_check_e2e", "self_check_ttft", "self_check_inference"} {
		e.is(p, check, 0, 0) // to 1e-12
	}
}

func TestDynamoSimulated(t *testing.T) {
	e := explain(t, "dynamo", loaded())
	const p = "dynamo"
	ended := e.truth.Served + e.truth.Aborted + e.truth.Failed
	e.headlines(p, 9)
	e.is(p, "request_rate", e.rate(ended), exact)
	e.is(p, "error_ratio", float64(e.truth.Aborted+e.truth.Failed)/float64(ended), exact)
	e.is(p, "output_tok_s", e.rate(e.truth.AllOutputTokens), edges)
	e.is(p, "ttft_mean", e.per(e.truth.TTFT()), edges)
	e.is(p, "cached_share", float64(e.truth.CachedTokens)/float64(e.truth.PromptTokens), edges)

	w := explain(t, "dynamo-worker", loaded())
	w.headlines("dynamo-worker", 5)
	w.is("dynamo-worker", "request_rate", w.rate(ended), exact)
	w.is("dynamo-worker", "network_transit_mean", w.per(w.truth.Front), edges)

	// Both together, as a run that watches both has them.
	front, truth, whole := simulated(t, "dynamo", loaded(), 60, 2)
	work, _, _ := simulated(t, "dynamo-worker", loaded(), 60, 2)
	front.Gains = append(front.Gains, work.Gains...)
	both := explained{t, truth, whole, 60, known(t).Derive(front, catalog.Window)}
	both.headlines("dynamo-path", 1)
	both.is("dynamo-path", "frontend_overhead", both.per(truth.Front), edges)
}

func TestTritonSimulated(t *testing.T) {
	o := loaded()
	o.Rate = 30
	e := explain(t, "triton", o)
	e.headlines("triton", 8)
	e.headlines("triton-host", 2)
	var requests, failures float64
	for _, d := range e.results {
		if d.Pack != "triton" {
			continue
		}
		if model, _ := d.Labels.Get("model"); model == "tokenizer" || model == "encoder" {
			continue // parts of an ensemble
		}
		switch d.Name {
		case "request_rate":
			requests += d.Numerator
		case "failure_ratio":
			failures += d.Numerator
		}
	}
	// The canary that came and went within the window is not in its last body.
	if want := float64(e.truth.Served); requests > want || requests < 0.85*want {
		t.Errorf("%v requests, want %v", requests, want)
	}
	if want := float64(e.truth.Aborted + e.truth.Failed); failures > want || failures < 0.8*want {
		t.Errorf("%v failures, want %v", failures, want)
	}
}

func TestTorchServeSimulated(t *testing.T) {
	e := explain(t, "torchserve", loaded())
	e.headlines("torchserve", 7)
	e.headlines("torchserve-host", 1)
	var requests, time, queue float64
	for _, d := range e.results {
		switch {
		case d.Pack != "torchserve":
		case d.Name == "avg_inference":
			requests, time = requests+d.Denominator, time+d.Numerator
		case d.Name == "avg_queue":
			queue += d.Numerator
		}
	}
	near := func(name string, got, want, tolerance float64) {
		t.Helper()
		if math.Abs(got-want) > tolerance*want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	near("requests", requests, float64(e.truth.Served+e.truth.Failed), 0.01)
	near("time", time, e.truth.E2E.Seconds(), 1e-6)
	near("queue", queue, e.truth.Queue.Seconds(), 1e-6)
}

func TestTGISimulated(t *testing.T) {
	e := explain(t, "tgi", loaded())
	const p = "tgi"
	e.headlines(p, 10)
	e.is(p, "request_rate", e.rate(e.truth.Served+e.truth.Aborted+e.truth.Failed), edges)
	e.is(p, "output_tok_s", e.rate(e.truth.OutputTokens), exact)
	e.is(p, "e2e_mean", e.per(e.truth.E2E), exact)
	e.is(p, "queue_mean", e.per(e.truth.Queue), exact)
	e.is(p, "inference_mean", e.per(e.truth.Inference()), exact)
	e.is(p, "queue_share", e.truth.Queue.Seconds()/e.truth.E2E.Seconds(), exact)
	e.is(p, "spec_skipped_mean", 0, exact)
}

func TestLlamaSimulated(t *testing.T) {
	const p = "llamacpp"
	check := func(generation string) explained {
		t.Helper()
		o := loaded()
		o.Generation = generation
		e := explain(t, "llamacpp", o)
		e.is(p, "output_tok_s", e.rate(e.truth.AllOutputTokens), 1e-3) // the server prints six digits
		steps, slots := 0, 0
		for _, s := range e.whole.Steps {
			if s.End > warmup && s.End <= warmup+60*time.Second {
				steps++
				slots += s.Batch
			}
		}
		e.is(p, "busy_slots_mean", float64(slots)/float64(steps), 1e-3)
		e.is(p, "decode_calls_s", float64(steps)/e.seconds, 1e-3)
		e.is(p, "tpot_mean", e.truth.Decode.Seconds()/float64(e.truth.OutputTokens), 0.02)
		return e
	}
	check("").headlines(p, 11)
	check("old") // which does not count what is cached, and calls the mean a counter
}

func TestDCGMSimulated(t *testing.T) {
	o := simulate.Options{Rate: 12, Seed: 3, Engines: 2}
	s, _, _ := simulated(t, "dcgm", o, 120, 5)
	e := explained{t, simulate.Totals{}, simulate.Truth{}, 120, known(t).Derive(s, catalog.Window)}
	e.headlines("dcgm", 5)
	engine, truth, _ := simulated(t, "sglang", loaded(), 120, 5)
	s.Gains = append(s.Gains, engine.Gains...)
	e.results = known(t).Derive(s, catalog.Window)
	e.headlines(catalog.EnergyPack, 2)
	watts := 0.0
	for _, d := range e.results {
		if d.Pack == "dcgm" && d.Name == "avg_power" {
			watts += d.Value
		}
	}
	e.is(catalog.EnergyPack, "j_per_output_token", watts*120/float64(truth.AllOutputTokens), edges)
}

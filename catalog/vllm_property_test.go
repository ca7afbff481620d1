package catalog_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/metric"
)

// outline is all of the results as text.
func outline(list []catalog.Derived) string {
	var b strings.Builder
	for _, d := range list {
		fmt.Fprintln(&b, d.Pack, d.Name, d.Labels, d.Status, d.Value, d.Families, d.Flags)
	}
	return b.String()
}

// Every generation of names gives the same results.
func TestVLLMGenerations(t *testing.T) {
	c := vllmCatalog(t)
	want := outline(c.Derive(vllmStretch(vllmGains(t)), catalog.Window))
	check := func(what string, rename func(*catalog.Gain)) {
		t.Helper()
		gains, renamed := vllmGains(t), 0
		for i := range gains {
			old := gains[i].Family
			if rename(&gains[i]); gains[i].Family != old {
				renamed++
			}
		}
		if got := outline(c.Derive(vllmStretch(gains), catalog.Window)); got != want || renamed == 0 {
			t.Errorf("%s: %d renamed, got\n%s\nwant\n%s", what, renamed, got, want)
		}
	}
	old := strings.NewReplacer("kv_cache_usage_perc", "gpu_cache_usage_perc", ":prefix_cache", ":gpu_prefix_cache",
		"inter_token_latency_seconds", "time_per_output_token_seconds", "request_queue_time_seconds",
		"time_in_queue_requests")
	retired := func(g *catalog.Gain) {
		if g.Family != "vllm:request_time_per_output_token_seconds" {
			g.Family = old.Replace(g.Family)
		}
	}
	check("retired names", retired)
	check("Ray", func(g *catalog.Gain) { g.Family = strings.Replace(g.Family, "vllm:", "ray_vllm:", 1) })
	check("Ray, sanitised", func(g *catalog.Gain) { g.Family = strings.Replace(g.Family, "vllm:", "ray_vllm_", 1) })
	check("retired names in Ray", func(g *catalog.Gain) {
		retired(g)
		g.Family = strings.Replace(g.Family, "vllm:",
			"ray_vllm:", 1)
	})
	check("counters with _total", func(g *catalog.Gain) {
		if g.Type == metric.Counter && strings.HasPrefix(g.Family, "vllm:") {
			g.Family += "_total"
		}
	})
	// A server that shows hidden metrics has both; the sum of them is nothing.
	both := vllmGains(t)
	for _, g := range vllmGains(t) {
		if retired(&g); !strings.HasPrefix(g.Family, "http") && !strings.HasPrefix(g.Family, "process") {
			if name := g.Family; !slices.ContainsFunc(both, func(h catalog.Gain) bool { return h.Family == name }) {
				g.Total, g.Count, g.Sum, g.TimeAvg, g.Last = 1e6, 1e6, 1e6, 1e6, 1e6
				both = append([]catalog.Gain{g}, both...)
			}
		}
	}
	if got := outline(c.Derive(vllmStretch(both), catalog.Window)); got != want {
		t.Errorf("both names: got\n%s\nwant\n%s", got, want)
	}
}

// Triton's backend tells the model by other labels, and keeps models apart.
func TestVLLMInTriton(t *testing.T) {
	gains := exposed(t, `# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{model="a",version="1"} 10
vllm:generation_tokens_total{model="b",version="1"} 30
# TYPE vllm:time_per_output_token_seconds histogram
vllm:time_per_output_token_seconds_bucket{model="a",version="1",le="+Inf"} 4
vllm:time_per_output_token_seconds_sum{model="a",version="1"} 2
vllm:time_per_output_token_seconds_count{model="a",version="1"} 4
`)
	d := derive(t, known(t), 10, gains)
	d.want("output_tok_s", "ok", 1, "model", "a")
	d.want("output_tok_s", "ok", 3, "model", "b")
	d.want("itl_mean_token_weighted", "ok", 0.5, "model", "a")
	d.absent("itl_mean_token_weighted", "model", "b")
}

// amounts multiplies what gains add up to, gauges left alone.
func amounts(gains []catalog.Gain, factor float64) []catalog.Gain {
	out := slices.Clone(gains)
	for i := range out {
		g := &out[i]
		g.Total, g.Count, g.Sum = g.Total*factor, g.Count*factor, g.Sum*factor
		g.Buckets = slices.Clone(g.Buckets)
		for k := range g.Buckets {
			g.Buckets[k].Count *= factor
		}
	}
	return out
}

// Two servers with the same load double what is counted and leave what is a
// quotient; so does one twice as long with twice the work, but for its rates.
func TestVLLMScaling(t *testing.T) {
	c, body := known(t), exposed(t, vllmBody())
	byTime := map[string]bool{}
	for _, p := range catalog.Packs() {
		for i := range p.Rules {
			r := &p.Rules[i]
			byTime[r.Name] = byTime[r.Name] || p.Name == catalog.VLLMPack &&
				(strings.Contains(r.Text, " / time") || strings.HasPrefix(r.Text, "mean of "))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		gains := slices.Clone(body)
		for i := range gains {
			g := &gains[i]
			f := float64(rapid.IntRange(1, 50).Draw(t, "factor"))
			if *g = amounts([]catalog.Gain{*g}, f)[0]; g.Type == metric.Gauge && g.Family != "vllm:kv_cache_usage_perc" {
				g.TimeAvg *= f
			}
		}
		k := float64(rapid.IntRange(2, 5).Draw(t, "servers"))
		seconds := rapid.Float64Range(0.5, 1000).Draw(t, "seconds")
		alone := c.Derive(catalog.Interval{Seconds: seconds, Gains: gains}, catalog.Window)
		longer := derived{t, c.Derive(catalog.Interval{Seconds: seconds * k, Gains: amounts(gains, k)}, catalog.Window)}
		var fleet []catalog.Gain
		for server := range int(k) {
			for _, g := range gains {
				g.Source = server
				fleet = append(fleet, g)
			}
		}
		together := derived{t, c.Derive(catalog.Interval{Seconds: seconds, Gains: fleet}, catalog.Window)}
		for _, d := range alone {
			if d.Pack != catalog.VLLMPack || !d.HasParts || d.Category == catalog.Check ||
				strings.HasSuffix(d.Name, "_per_gpu") || d.Name == "arithmetic_intensity" {
				continue
			}
			labels := []string{}
			for name, value := range d.Labels.All() {
				labels = append(labels, name, value)
			}
			factor := 1.0
			if byTime[d.Name] && d.Name != "kv_usage_mean" { // the fullest of several
				factor = k
			}
			same := func(what string, other derived, factor float64) {
				got := other.one(d.Name, labels...)
				if got == nil || d.Status == catalog.OK && got.Status != catalog.OK ||
					math.Abs(got.Value-factor*d.Value) > 1e-9*math.Abs(factor*d.Value) {
					t.Errorf("%s %v is %v; %s: %+v, want %v times as much", d.Name, d.Labels, d.Value, what, got, factor)
				}
			}
			if d.Name != "mean_step_time" && d.Name != "engine_busy_share" {
				same("together", together, factor)
			}
			same("longer", longer, 1)
		}
	})
}

// The identities hold on any simulated server, and the shares are those of what
// really happened.
func TestVLLMSimulated(t *testing.T) {
	check := func(seed uint64, rate float64) {
		t.Helper()
		now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		s, err := simulate.New("vllm", simulate.Options{Rate: rate, Seed: seed, KeepTruth: true,
			Now:    func() time.Time { return now },
			Prompt: simulate.Lengths{Mean: 200, CV: 0.5}, Output: simulate.Lengths{Mean: 60, CV: 0.5}})
		if err != nil {
			t.Fatal(err)
		}
		before := string(s.AppendBody(nil))
		now = now.Add(2 * time.Minute)
		s.SetRate(0)
		now = now.Add(10 * time.Minute) // drained: nothing is under way
		d := derive(t, known(t), 720, between(t, before, string(s.AppendBody(nil))))
		truth := s.Truth()
		all := truth.Totals(-1, 13*time.Minute)
		requests := float64(all.Served + all.Aborted + all.Failed)
		if requests < 20 {
			t.Fatalf("seed %d: %v requests", seed, requests)
		}
		d.want("request_rate", "ok", requests/720)
		d.want("output_tok_s", "ok", float64(all.AllOutputTokens)/720)
		if all.Aborted+all.Failed == 0 {
			d.want("queue_share_e2e", "ok", all.Queue.Seconds()/all.E2E.Seconds())
			d.want("prefill_share_e2e", "ok", all.Prefill.Seconds()/all.E2E.Seconds())
			d.want("decode_share_e2e", "ok", all.Decode.Seconds()/all.E2E.Seconds())
			d.want("ttft_mean", "ok", all.TTFT().Seconds()/requests)
			d.want("preemptions_per_request", "ok", float64(all.Preemptions)/requests)
		}
		for _, q := range d.list {
			if q.Category == catalog.Check && strings.HasPrefix(q.Name, "self_check") && (q.Status != catalog.OK ||
				math.Abs(q.Value) > 1e-6 || len(q.Flags) > 0) {
				t.Errorf("seed %d: %s: %s %v %v", seed, q.Name, q.Status, q.Value, q.Flags)
			}
		}
	}
	check(1, 1)
	check(2, 4)
	check(3, 12)
}

// A server whose sums do not agree is found out, one with requests under way at
// the edges is not.
func TestSelfChecks(t *testing.T) {
	check := func(family string, add float64, name string, violated bool) {
		t.Helper()
		gains := vllmGains(t)
		for i := range gains {
			if g := &gains[i]; g.Family == family {
				g.Sum, g.Total = g.Sum+add, g.Total+add
			}
		}
		q := derive(t, known(t), 10, gains).one(name)
		if q == nil || slices.Contains(q.Flags, "violated") != violated {
			t.Errorf("%s with %v more %s: %+v", name, add, family, q)
		}
	}
	check("vllm:request_inference_time_seconds", 0, "self_check_inference", false)
	check("vllm:request_inference_time_seconds", 0.01, "self_check_inference", true)
	check("vllm:request_decode_time_seconds", 5, "self_check_decode", false) // 12 of 20 requests were under way
	check("vllm:request_decode_time_seconds", 100, "self_check_decode", true)
}

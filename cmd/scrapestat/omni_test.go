package main

import (
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/report"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/summary"
)

// served lets a handler answer without a network.
type served struct{ http.Handler }

func (s served) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	answer := w.Result()
	answer.Request = r
	return answer, nil
}

// omniChain goes the whole way in simulated time: a server, a collector that polls
// it every second, a recording on disk, its analysis. The load lasts until load,
// and the recording until all requests have ended. The warm-up is half a minute;
// quiet lets the load pause around its end, so that no request is on both sides.
func omniChain(t *testing.T, o simulate.Options, quiet bool, load time.Duration) (result *summary.Run,
	truth simulate.Truth) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		o.KeepTruth = true
		if quiet {
			o.Load = []simulate.LoadStep{{At: 20 * time.Second}, {At: 35 * time.Second, Rate: o.Rate}}
		}
		o.Load = append(o.Load, simulate.LoadStep{At: load})
		server, err := simulate.New("vllm-omni", o)
		if err != nil {
			t.Fatal(err)
		}
		origin := time.Now()
		db, err := rundb.Create(dir, rundb.Meta{ID: "omni", OriginNS: origin.UnixNano(), Interval: time.Second,
			Warmup: 30 * time.Second},
			rundb.WriterOptions{CommitEvery: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		target := scrape.Target{URL: "http://omni/metrics", RoundTripper: served{server}}
		if _, err := db.AddTarget(target.Public()); err != nil {
			t.Fatal(err)
		}
		c, err := scrape.New([]scrape.Target{target}, scrape.Options{Interval: time.Second, Origin: origin,
			MaxScrapeShare: -1}, db)
		if err != nil {
			t.Fatal(err)
		}
		stop := make(chan struct{})
		time.AfterFunc(load+30*time.Second+time.Second/2, func() { close(stop) })
		if err := c.Run(t.Context(), stop); err != nil {
			t.Fatal(err)
		}
		if err := db.Mark(metric.Mark{Name: metric.MarkEnd, AtNS: time.Now().UnixNano()}); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		truth = server.Truth()
	})
	run, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = run.Close() })
	if result, err = summary.Build(t.Context(), []summary.Recording{run}, summary.Options{}); err != nil {
		t.Fatal(err)
	}
	return result, truth
}

// quantity is a derived quantity of vLLM-Omni with labels, which are names and
// values in turn.
func quantity(r *summary.Run, name string, labels ...string) *summary.Derived {
	want := map[string]string{}
	for i := 0; i < len(labels); i += 2 {
		want[labels[i]] = labels[i+1]
	}
	for i := range r.Derived {
		if d := &r.Derived[i]; d.Pack == catalog.OmniPack && d.Name == name && d.Labels == metric.LabelsFromMap(want) {
			return d
		}
	}
	return nil
}

func fixedOmni(overlap bool) simulate.Options {
	plan := simulate.FixedPlan(2, overlap)
	return simulate.Options{Seed: 4, Rate: 6, Plan: &plan, AbortShare: -1, ErrorShare: -1}
}

// omniSpread is the standard error of the mean of what each request of the window
// met.
func omniSpread(truth *simulate.Truth, from time.Duration, of func(*simulate.Request) float64) (mean, se float64) {
	var n, sum, squares float64
	for i := range truth.Requests {
		if r := &truth.Requests[i]; r.Last > from && r.Reason == "stop" {
			x := of(r)
			n, sum, squares = n+1, sum+x, squares+x*x
		}
	}
	mean = sum / n
	return mean, math.Sqrt(max(0, squares/n-mean*mean) / n)
}

// inStage and onHop are what a request met.
func inStage(stage int) func(*simulate.Request) float64 {
	return func(r *simulate.Request) (sum float64) {
		for _, v := range r.Pipeline.Stages {
			if v.Stage == stage || stage < 0 {
				sum += (v.Finished - v.Submitted).Seconds()
			}
		}
		return sum
	}
}

func onHop(from int) func(*simulate.Request) float64 {
	return func(r *simulate.Request) (sum float64) {
		for _, h := range r.Pipeline.Hops {
			if h.From == from || from < 0 {
				sum += (h.Tx + h.InFlight + h.Rx).Seconds()
			}
		}
		return sum
	}
}

// omniSplit checks every part of the split against what requests really met: up to
// four standard errors of the mean, and what those have that were in the pipeline
// when the window began, whose times are partly before it. Without any it is exact.
func omniSplit(t *testing.T, r *summary.Run, truth *simulate.Truth) {
	t.Helper()
	from := time.Duration(r.Window.StartNS - truth.Origin.UnixNano())
	edges := 0.0
	for i := range truth.Plan.Stages {
		d := quantity(r, "check_stage_count", "stage", strconv.Itoa(i))
		edges = max(edges, math.Abs(d.Value))
	}
	n := quantity(r, "omni_e2e_mean").Denominator
	if n < 300 || edges > 0.03*n {
		t.Fatalf("%v requests, %v at the edge", n, edges)
	}
	total := quantity(r, "omni_stages_mean").Value
	check := func(name string, of func(*simulate.Request) float64, labels ...string) {
		t.Helper()
		d := quantity(r, name, labels...)
		if d == nil || d.Status != catalog.OK {
			t.Fatalf("%s%v is %+v", name, labels, d)
		}
		want, se := omniSpread(truth, from, of)
		allowed := 4*se + 2*edges/n*total
		if edges == 0 {
			allowed = 0
		}
		if allowed += 1e-9 * total; math.Abs(d.Value-want) > allowed {
			t.Errorf("%s%v is %v, want %v within %v", name, labels, d.Value, want, allowed)
		}
	}
	e2e := func(r *simulate.Request) float64 { return (r.Last - r.Arrival).Seconds() }
	queue := func(r *simulate.Request) float64 { return (r.Scheduled - r.Arrival).Seconds() }
	slack := func(r *simulate.Request) float64 { return e2e(r) - inStage(-1)(r) }
	check("omni_e2e_mean", e2e)
	check("omni_queue_mean", queue)
	check("omni_stages_mean", inStage(-1))
	check("omni_hops_mean", onHop(-1))
	check("omni_slack_mean", slack)
	check("omni_residual_mean", func(r *simulate.Request) float64 { return slack(r) - onHop(-1)(r) - queue(r) })
	if truth.Plan.Overlap {
		check("omni_overlap_mean", func(r *simulate.Request) float64 { return -slack(r) })
	} else if d := quantity(r, "omni_overlap_mean"); d.Value != 0 {
		t.Errorf("overlap %v without any", d.Value)
	}
	for i := range truth.Plan.Stages {
		check("stage_time_mean", inStage(i), "stage", strconv.Itoa(i))
		if i+1 < len(truth.Plan.Stages) {
			check("edge_hop_mean", onHop(i), "from_stage", strconv.Itoa(i), "to_stage", strconv.Itoa(i+1))
		}
	}
}

// omniShows looks at the view of the fixed plan: a row for each stage and edge, the
// bar, the goals of audio, in text, Markdown and JSON.
func omniShows(t *testing.T, r *summary.Run, overlap bool) {
	t.Helper()
	check := func(format string, wants ...string) {
		t.Helper()
		var b strings.Builder
		if err := report.Write(&b, r, format, report.Options{Title: "omni", All: true}); err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !regexp.MustCompile(want).MatchString(b.String()) {
				t.Errorf("%s: no match for %q in\n%s", format, want, b.String())
			}
		}
	}
	check(report.FormatText, `(?m)^STAGE +REQ/S +TIME`, `(?m)^1 .* 2 .*bottleneck$`,
		`(?m)^0 +1 +24 ms .* 4 +48\.8 KiB +3 ms +1 ms +2 ms`,
		`made in real time \(RTF <= 1\) +100 %`, `gaps of at most 100 ms +100 %`)
	check(report.FormatMarkdown, `(?m)^\*\*stages\*\*$`, `(?m)^\| 1 \| 2 \| 7\.5 ms \|`)
	check(report.FormatJSON, `"omni_stages": \[`, `"from_stage": "0",\s+"to_stage": "1",\s+"hop_mean_s": 0\.0(24|239)`,
		`"omni_audio": \[`)
	if overlap {
		check(report.FormatText, `E2E [0-9]+ ms = queue \(q\) 0 s \+ stage 0 .* that overlap`)
	} else {
		check(report.FormatText, `(?m)^\[0{13,15}1{35,37}2{8,10}hr\]$`,
			`E2E 1\.34 s = queue \(q\) 0 s \+ stage 0 30[0-9] ms .* \+ rest \(r\) 7 ms`)
	}
}

// TestOmniSplitIsThePlan goes from a server whose plan is known to the split of the
// end-to-end time, which must be the plan: here nothing varies but the phase of the
// step that a request finds.
func TestOmniSplitIsThePlan(t *testing.T) {
	t.Parallel()
	for _, overlap := range []bool{false, true} {
		r, truth := omniChain(t, fixedOmni(overlap), true, 3*time.Minute)
		omniSplit(t, r, &truth)
		omniShows(t, r, overlap)
		for i, s := range truth.Plan.Stages {
			stage := quantity(r, "stage_time_mean", "stage", strconv.Itoa(i))
			step := 0.0
			if s.Kind == simulate.Autoregressive {
				step = s.Service.Seconds() / float64(s.Tokens)
			}
			if d := stage.Value - s.Service.Seconds(); !overlap && (d < -1e-9 || d > step) {
				t.Errorf("stage %d takes %v, the plan says %v and at most %v more", i, stage.Value, s.Service, step)
			}
			if n := quantity(r, "stage_replicas", "stage", strconv.Itoa(i)); n.Value != 2 {
				t.Errorf("stage %d has %v replicas", i, n.Value)
			}
			if skew := quantity(r, "replica_skew", "of", "requests", "stage", strconv.Itoa(i)); skew.Value < 1 ||
				skew.Value > 1.1 {
				t.Errorf("stage %d: skew %v", i, skew.Value)
			}
			if i+1 == len(truth.Plan.Stages) {
				continue
			}
			at := []string{"from_stage", strconv.Itoa(i), "to_stage", strconv.Itoa(i + 1)}
			if hop, want := quantity(r, "edge_hop_mean", at...), s.Hop.Mean().Seconds(); math.Abs(hop.Value-want) > 0.01*want {
				t.Errorf("hop %d takes %v, the plan says %v", i, hop.Value, want)
			}
			if bytes := quantity(r, "edge_chunk_bytes", at...); bytes.Value != float64(s.Hop.Bytes) {
				t.Errorf("hop %d has chunks of %v bytes, the plan says %d", i, bytes.Value, s.Hop.Bytes)
			}
		}
		if d := quantity(r, "omni_residual_mean"); !overlap && math.Abs(d.Value-truth.Plan.Overhead.Seconds()) > 1e-6 {
			t.Errorf("residual %v, the plan has an overhead of %v", d.Value, truth.Plan.Overhead)
		}
		if b := quantity(r, "bottleneck_stage", "stage", "1"); b == nil {
			t.Error("the bottleneck is not the slowest stage")
		}
	}
}

// TestOmniSplitIsTheTruth has everything that the fixed plan has not: variation,
// batches that slow down, a queue before the pipeline.
func TestOmniSplitIsTheTruth(t *testing.T) {
	t.Parallel()
	check := func(overlap, quiet bool) {
		t.Helper()
		plan := simulate.StandardPlan(2)
		plan.Overlap, plan.MaxInFlight, plan.SkipShare = overlap, 20, -1
		r, truth := omniChain(t, simulate.Options{Seed: 9, Rate: 5, Plan: &plan, AbortShare: -1, ErrorShare: -1}, quiet,
			3*time.Minute)
		omniSplit(t, r, &truth)
		if d := quantity(r, "omni_queue_mean"); d.Value < 0.001 {
			t.Errorf("the queue is empty: %v", d.Value)
		}
	}
	check(false, true)
	check(true, false)
}

// omniQuantities are the quantities of a run by name and labels.
func omniQuantities(r *summary.Run) map[string]*summary.Derived {
	out := map[string]*summary.Derived{}
	for i := range r.Derived {
		if d := &r.Derived[i]; d.Pack == catalog.OmniPack && d.Status.Defined() {
			out[d.Name+d.Labels.String()] = d
		}
	}
	return out
}

// TestOmniGenerationsAgree shows the same server under the names of each of its
// generations. What a generation shows must give what the newest gives, and what it
// lacks is listed here, so that nothing is lost in silence.
func TestOmniGenerationsAgree(t *testing.T) {
	t.Parallel()
	image, err := simulate.NamedPlan("image", 2)
	if err != nil {
		t.Fatal(err)
	}
	speech := simulate.FixedPlan(2, true)
	run := func(plan *simulate.Plan, change func(*simulate.Options)) map[string]*summary.Derived {
		o := simulate.Options{Seed: 4, Rate: 6, Plan: plan, AbortShare: -1, ErrorShare: -1}
		change(&o)
		r, _ := omniChain(t, o, true, 65*time.Second)
		return omniQuantities(r)
	}
	newest := map[*simulate.Plan]map[string]*summary.Derived{}
	for _, plan := range []*simulate.Plan{&speech, &image} {
		newest[plan] = run(plan, func(*simulate.Options) {})
	}
	// lacks are names of quantities, or beginnings of them, that need a family or
	// a label that the generation does not have.
	check := func(name string, plan *simulate.Plan, change func(*simulate.Options), lacks ...string) {
		t.Helper()
		got, same := run(plan, change), 0
		for key, want := range newest[plan] {
			lacking := slices.ContainsFunc(lacks, func(l string) bool { return strings.HasPrefix(key, l) })
			d := got[key]
			switch {
			case d == nil && !lacking:
				t.Errorf("%s: %s is gone", name, key)
			case d == nil || d.Status == catalog.Partial, key == "check_stage_time_missing" && len(lacks) > 0:
			case math.Abs(d.Value-want.Value) > 1e-9*math.Abs(want.Value)+1e-12:
				t.Errorf("%s: %s is %v, of the newest generation %v", name, key, d.Value, want.Value)
			default:
				same++
			}
		}
		for _, l := range lacks {
			if d := got[l]; d != nil && d.Status == catalog.OK {
				t.Errorf("%s: %s is there after all", name, l)
			}
		}
		if same < 6 {
			t.Errorf("%s: only %d quantities are the same", name, same)
		}
	}
	as := func(generation string) func(*simulate.Options) {
		return func(o *simulate.Options) { o.Generation = generation }
	}
	// Before g4 there is no family of the time in a stage that is no language model,
	// nor of queues and failures.
	timeless := []string{"omni_queue_mean", "queue_wait_share", `stage_time_mean{stage="2"}`,
		`stage_share_of_e2e{stage="2"}`, `stage_queue_mean{stage="2"}`,
		`in_queue_share{stage="2"}`, `stage_request_rate{stage="2"}`, `fan_out{stage="2"}`, `stage_utilization{stage="2"}`,
		`check_stage_count{stage="2"}`}
	check("g3", &speech, as("g3"), timeless...)
	check("g2", &speech, as("g2"), timeless...)
	check("g1", &speech, as("g1"), timeless...)
	// g0 has neither transfers nor audio, and numbers its engines.
	stages := []string{"edge_", "edges_", "omni_hops_mean", "rtf_", "ttfp_", "audio_", "underrun_", "continuity_",
		"stream_share", "check_edge_counts",
		"check_continuity", "omni_finished_share", "stage_", "in_queue_share", "fan_out", "replica_", "check_stage",
		"bottleneck_stage"}
	check("g0", &speech, as("g0"), stages...)
	check("g4 with engine", &speech, func(o *simulate.Options) { o.EngineLabel = true })
	check("g4 without _total", &speech, func(o *simulate.Options) { o.BareCounters = true })
	check("g2 with engine, without _total", &speech, func(o *simulate.Options) {
		o.Generation, o.EngineLabel,
			o.BareCounters = "g2", true, true
	}, timeless...)
	drawn := []string{"omni_queue_mean", "queue_wait_share", `stage_time_mean{stage="1"}`, `stage_share_of_e2e{stage="1"}`,
		`stage_queue_mean{stage="1"}`,
		`in_queue_share{stage="1"}`, `stage_request_rate{stage="1"}`, `fan_out{stage="1"}`, `stage_utilization{stage="1"}`,
		`check_stage_count{stage="1"}`,
		"images_s", "megapixels_s", "mean_pixels", "steps_mean", "diffusion_step_mean", "image_ttfp",
		`diffusion_share{part="vae_decode"`, "peak_memory", "bottleneck_stage"}
	check("g3 images", &image, as("g3"), drawn...)
	check("g2 images", &image, as("g2"), append(drawn, "diffusion_", "replica_")...)
	check("g0 images", &image, as("g0"), append(drawn[2:], stages...)...)
}

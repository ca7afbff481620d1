package doctor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/doctor"
	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/internal/testkit"
	"github.com/scrapestat/scrapestat/scrape"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// quick looks twice, at once, and lets a server spend all its time.
var quick = doctor.Options{MaxShare: 100, Scrapes: 2, Pause: time.Millisecond}

// examine examines what a handler serves at /metrics, or at the path given.
func examine(t *testing.T, h http.Handler, path ...string) *doctor.Report {
	t.Helper()
	srv := httptest.NewServer(h)
	defer srv.Close()
	target, err := scrape.ParseTarget("it=" + srv.URL + strings.Join(path, ""))
	if err != nil {
		t.Fatal(err)
	}
	return examineTarget(t, target)
}

func examineTarget(t *testing.T, target scrape.Target) *doctor.Report {
	t.Helper()
	p, err := scrape.NewProber(target, scrape.Options{Timeout: 5 * time.Second, Sentinel: catalog.Embedded().Sentinel})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	return doctor.Examine(t.Context(), target.Public(), p, quick)
}

// TestPackOfUser asks by what a pack tells of its server, which the program does not know.
func TestPackOfUser(t *testing.T) {
	const acme = `pack: acme
title: Acme
recognise: {families: ["acme:*"], paths: [/acme/metrics], where: port 7,
  asks: [{get: /who, json: acme, version: version}]}
hints:
  - {code: flag_acme, level: error, run: hidden, text: Acme runs without its metrics, fix: start it with --acme}
  - {code: teapot, level: error, run: failing, status: 418, text: switch the teapot off}
families: [{name: "acme:a", type: gauge, aggregate: sum, meaning: A.}]`
	c, err := catalog.New(strings.NewReader(acme))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(mux http.Handler) *doctor.Report {
		srv := httptest.NewServer(mux)
		defer srv.Close()
		p, err := scrape.NewProber(scrape.Target{URL: srv.URL + "/metrics"}, scrape.Options{Timeout: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		o := quick
		o.Catalog = c
		return doctor.Examine(t.Context(), scrape.Target{URL: srv.URL + "/metrics"}.Public(), p, o)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/who", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"acme":1,"version":"8"}`) })
	r := ask(mux)
	if got := codes(r); !slices.Equal(got, []string{"error flag_acme"}) || r.Engines[0].Version != "8" {
		t.Errorf("findings %v of %+v", got, r.Engines)
	}
	if r = ask(status(418, "no")); r.Finding[0].Code != "teapot" || !strings.Contains(r.Finding[0].Remedy, "teapot off") {
		t.Errorf("findings %+v", r.Finding)
	}
	if r = ask(status(404, "no")); !strings.Contains(r.Finding[0].Remedy, "Acme has its metrics at port 7") {
		t.Errorf("findings %+v", r.Finding)
	}
	mux.HandleFunc("/acme/metrics", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "acme:a 1\n") })
	if r = ask(mux); !r.Collectable || r.Engines[0].ID != "acme" || r.Engines[0].Version != "8" {
		t.Errorf("at another path: %+v", r)
	}
}

// body serves one text at /metrics.
func body(text string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		fmt.Fprint(w, text)
	})
	return mux
}

func status(code int, text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		fmt.Fprint(w, text)
	})
}

func codes(r *doctor.Report) (out []string) {
	for _, f := range r.Finding {
		out = append(out, string(f.Level)+" "+f.Code)
	}
	return out
}

// simulated is a server of the profile after two minutes, whose clock moves by
// 100 ms each time it is looked at.
func simulated(t *testing.T, profile string, o simulate.Options) http.Handler {
	t.Helper()
	now := time.Unix(1790470234, 0)
	o.Seed, o.Rate = 3, 10
	o.Now = func() time.Time { now = now.Add(100 * time.Millisecond); return now }
	s, err := simulate.New(profile, o)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Minute)
	return s
}

// TestGolden compares what is said of each simulated engine, healthy and
// without its flag, with golden texts.
func TestGolden(t *testing.T) {
	check := func(name, profile, engine string, o simulate.Options, path ...string) {
		t.Helper()
		r := examine(t, simulated(t, profile, o), path...)
		if engine != "" && (len(r.Engines) == 0 || r.Engines[0].ID != engine) {
			t.Errorf("%s: engines %+v, want %s first", name, r.Engines, engine)
		}
		if len(r.Dropped) > 0 {
			t.Errorf("%s: dropped %+v", name, r.Dropped)
		}
		golden(t, name, r)
	}
	off := simulate.Options{FlagsOff: true}
	for _, p := range simulate.Profiles() {
		check(p, p, strings.TrimSuffix(p, "-worker"), simulate.Options{})
	}
	check("trtllm-path", "trtllm", "trtllm", simulate.Options{}, "/prometheus/metrics")
	check("sglang-ranks", "sglang", "sglang", simulate.Options{Ranks: 2, Priorities: 2})
	check("sglang-redirect", "sglang", "sglang", simulate.Options{Redirect: true})
	check("llamacpp-old", "llamacpp", "llamacpp", simulate.Options{Generation: "old"})
	check("torchserve-legacy", "torchserve", "torchserve", simulate.Options{Generation: "legacy"})
	check("triton-latencies", "triton", "triton", simulate.Options{Generation: "latencies"})
	check("omni-g2", "vllm-omni", "vllm-omni", simulate.Options{Generation: "g2"})
	check("omni-off", "vllm-omni", "vllm-omni", off)
	check("sglang-off", "sglang", "sglang", off)
	check("trtllm-off", "trtllm", "trtllm", off)
	check("triton-off", "triton", "triton", off)
	check("torchserve-off", "torchserve", "", off)
	check("llamacpp-off", "llamacpp", "llamacpp", off)
	check("dcgm-off", "dcgm", "dcgm", off)
}

// golden compares the text of a report, times, ports and what depends on the
// exact numbers of the model left out.
func golden(t *testing.T, name string, r *doctor.Report) {
	t.Helper()
	r.SkewMS = nil
	if r.Cost.Scrapes > 0 {
		if moves := r.Cost.Changed > 0; moves == strings.HasPrefix(name, "dcgm") || r.Cost.BytesPerHour <= 0 {
			t.Errorf("%s: cost %+v", name, r.Cost)
		}
		r.Cost.AnswerMS, r.Cost.SmallestMS, r.Cost.Changed, r.Cost.BytesPerHour = 1, 1, 1, 1e6
	}
	for i := range r.Tries {
		if r.Tries[i].What == "gzip" {
			r.Tries[i].WireBytes = 0 // what the compressor makes of it
		}
	}
	var b bytes.Buffer
	if err := doctor.Text(&b, []*doctor.Report{r}); err != nil {
		t.Fatal(err)
	}
	origin, _, _ := strings.Cut(strings.TrimPrefix(r.URL, "http://"), "/")
	got := strings.ReplaceAll(b.String(), origin, "host:8000")
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

// TestBodies looks for the findings that a body must give, and no other
// warnings.
func TestBodies(t *testing.T) {
	check := func(text string, want ...string) {
		t.Helper()
		got := slices.DeleteFunc(codes(examine(t, body(text))), func(c string) bool {
			return strings.HasPrefix(c, "note ") && !slices.Contains(want, c)
		})
		if !slices.Equal(got, want) {
			t.Errorf("%.60q: findings %q, want %q", text, got, want)
		}
	}
	check("a 1\n")
	check("a 1\nprocess_start_time_seconds 3\n")
	check("a 1\nno sample\n", "warning dropped_parse")
	check("# TYPE vllm:gpu_prefix_cache_hit_rate gauge\nvllm:gpu_prefix_cache_hit_rate -1\n", "warning sentinels")
	check("# TYPE DCGM_FI_DEV_X gauge\nDCGM_FI_DEV_X 2147483632\n", "warning sentinels", "note flag_profiling")
	check("# TYPE DCGM_FI_DEV_X gauge\nDCGM_FI_DEV_X 2147483648\n")
	check("# TYPE trtllm_e2e_request_latency_seconds histogram\ntrtllm_e2e_request_latency_seconds_bucket{le=\"+Inf\"} "+
		"1\n"+
		"trtllm_e2e_request_latency_seconds_count 1\ntrtllm_e2e_request_latency_seconds_sum 2\n", "warning flag_iter_stats")
	check("trtllm_num_requests_running 1\n", "warning flag_perf_metrics", "note stale_gauges")
	check("# TYPE dynamo_component_requests_total counter\ndynamo_component_requests_total 4\n")
	check("lmcache:retrieve_hit_rate 1\n", "note biased_histograms")
	check("ray_serve_num_http_requests_total 1\n", "note dead_workers")
	check("# TYPE a counter\n", "error no_samples", "note declared_only")
	check("", "error empty")
}

// TestLineNumber wants the line number of what is wrong.
func TestLineNumber(t *testing.T) {
	r := examine(t, body("a 1\nb 2\n\nc{ 3\n"))
	if len(r.Dropped) != 1 || r.Dropped[0].Lines != 1 || !strings.Contains(r.Dropped[0].First, "line 4") {
		t.Errorf("dropped %+v, want line 4", r.Dropped)
	}
}

func TestRefusals(t *testing.T) {
	check := func(h http.Handler, want, remedy string) {
		t.Helper()
		r := examine(t, h)
		if len(r.Finding) == 0 || r.Finding[0].Code != want ||
			!strings.Contains(r.Finding[0].Remedy+r.Finding[0].Text, remedy) {
			t.Errorf("findings %+v, want %s with %q", r.Finding, want, remedy)
		}
		if r.Collectable || r.Cost.Scrapes != 0 {
			t.Errorf("%s: collectable %v, cost %+v", want, r.Collectable, r.Cost)
		}
	}
	check(status(404, "no"), "not_found", "--enable-metrics")
	check(status(401, "no"), "auth", "--bearer-token-file")
	check(status(403, "no"), "auth", "--header")
	check(status(500, "no"), "server_error", "PROMETHEUS_MULTIPROC_DIR")
	check(status(503, "no"), "not_ready", "wait")
	check(status(418, "no"), "http_error", "418")
	check(status(200, "<!doctype html><title>Sign in</title>"), "not_prometheus", "HTML")
	check(status(200, `{"a": 1}`), "not_prometheus", "JSON")
	check(status(200, `[{"iter": 1}]`), "json_list", "return_perf_metrics")
	triton := http.NewServeMux()
	triton.HandleFunc("/v2", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"name":"triton","version":"2.50.0","extensions":["statistics"]}`)
	})
	check(triton, "triton_port", "8002")
	elsewhere := http.NewServeMux()
	elsewhere.HandleFunc("/version", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"version":"1"}`) })
	check(elsewhere, "flag_perf_metrics", "vLLM")
	check(http.RedirectHandler("http://elsewhere.invalid/metrics", http.StatusFound), "refused_redirect", "another origin")
}

// TestUnreachable has nobody listening.
func TestUnreachable(t *testing.T) {
	srv := httptest.NewServer(nil)
	srv.Close()
	r := examineTarget(t, scrape.Target{URL: srv.URL + "/metrics"})
	if got := codes(r); !slices.Equal(got, []string{"error unreachable"}) || len(r.Tries) != 1 {
		t.Errorf("findings %q after %d tries", got, len(r.Tries))
	}
}

// TestOtherPath has a target of a path of its own, where nothing is.
func TestOtherPath(t *testing.T) {
	r := examine(t, body("a 1\n"), "/custom/metrics")
	if r.Collectable {
		t.Error("found /metrics from /custom/metrics: the other path of that is /prometheus/metrics")
	}
	r = examineTarget(t, scrape.Target{URL: strings.Replace(startServer(t, body("a 1\n")), "/metrics",
		"/prometheus/metrics", 1)})
	if !r.Collectable || !slices.Contains(codes(r), "warning other_path") || !strings.HasSuffix(r.Endpoint, "/metrics") {
		t.Errorf("%q at %s", codes(r), r.Endpoint)
	}
}

func startServer(t *testing.T, h http.Handler) string {
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL + "/metrics"
}

func TestClockSkew(t *testing.T) {
	r := examine(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
		fmt.Fprint(w, "a 1\n")
	}))
	if r.SkewMS == nil || *r.SkewMS > -3598e3 || *r.SkewMS < -3602e3 || !slices.Contains(codes(r), "warning clock_skew") {
		t.Errorf("skew %v, findings %q", r.SkewMS, codes(r))
	}
}

// TestHostile has a server that writes to the terminal, and knows the secret of
// the target. Neither may come out.
func TestHostile(t *testing.T) {
	const evil = "\x1b[31mred\u202e\r\n\x07"
	mux := http.NewServeMux()
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; x=\"\u202e\"")
		fmt.Fprintf(w, "# TYPE DCGM_FI_\x1b gauge\nsglang:a_info{version=\"hunter2 \x1b[1m\"} 1\nhunter2 %s 1\nbad{ "+
			"hunter2 \x1b]0;t\x07 1\n", evil)
	})
	mux.HandleFunc("/get_server_info", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"version":"\u001b[31m hunter2"}`)
	})
	for _, h := range []http.Handler{mux, status(500, "hunter2 "+evil), status(200, "<hunter2 "+evil)} {
		u := startServer(t, h)
		r := examineTarget(t, scrape.Target{URL: strings.Replace(u, "http://", "http://me:hunter2@", 1) + "?token=hunter2"})
		var text, js bytes.Buffer
		if err := doctor.Text(&text, []*doctor.Report{r}); err != nil {
			t.Fatal(err)
		}
		if err := doctor.JSON(&js, []*doctor.Report{r}); err != nil {
			t.Fatal(err)
		}
		for _, c := range strings.ReplaceAll(text.String()+js.String(), "\n", "") {
			if !unicode.IsPrint(c) {
				t.Errorf("unprintable %q in the output", c)
			}
		}
		if out := text.String() + js.String(); strings.Contains(out, "hunter2") {
			t.Errorf("the secret is in the output:\n%s", out)
		}
	}
}

func TestJSON(t *testing.T) {
	r := examine(t, simulated(t, "sglang", simulate.Options{}))
	var b bytes.Buffer
	if err := doctor.JSON(&b, []*doctor.Report{r}); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Targets []struct {
			Name, URL, Outcome string
			Collectable        bool
			Engines            []struct{ ID, Version string }
			Cost               map[string]any
			Findings           []struct{ Level, Code, Text, Remedy string }
		}
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Targets) != 1 || !got.Targets[0].Collectable || got.Targets[0].Engines[0].Version != "0.5.20" ||
		len(got.Targets[0].Findings) == 0 ||
		got.Targets[0].Cost["recommended_interval_ms"] != 333.0 {
		t.Errorf("got %+v", got)
	}
}

// TestSlowServer is given an interval that it can bear.
func TestSlowServer(t *testing.T) {
	u := startServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		timer := time.NewTimer(30 * time.Millisecond)
		defer timer.Stop()
		<-timer.C
		fmt.Fprint(w, "a 1\n")
	}))
	p, err := scrape.NewProber(scrape.Target{URL: u}, scrape.Options{Sentinel: catalog.Embedded().Sentinel})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	r := doctor.Examine(t.Context(), scrape.Target{URL: u}.Public(), p, doctor.Options{Scrapes: 1, Pause: 1})
	// At 2 % an answer of 30 ms or more allows one scrape in 1.5 s or more. Half of
	// an answer may have been taken for the way.
	if c := r.Cost; c.SmallestMS < 749 || c.Recommended() < time.Second || c.RecommendedMS < c.SmallestMS ||
		c.AnswerMS < 14 {
		t.Errorf("cost %+v", c)
	}
}

func TestCancelled(t *testing.T) {
	u := startServer(t, body("a 1\n"))
	p, err := scrape.NewProber(scrape.Target{URL: u}, scrape.Options{Sentinel: catalog.Embedded().Sentinel})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := doctor.Examine(ctx, scrape.Target{URL: u}.Public(), p, doctor.Options{}); r.Collectable ||
		len(r.Finding) == 0 {
		t.Errorf("report %+v", r)
	}
}

// TestRealBodies recognises the engine of every body that a real server sent.
func TestRealBodies(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testkit.Path(t, "bodies"), "*.prom"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no bodies: %v", err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		engine, _, _ := strings.Cut(name, "-")
		if strings.HasPrefix(name, "vllm-omni") {
			engine = "vllm-omni"
		}
		r := examine(t, body(string(testkit.Data(t, "bodies/"+name))))
		got := ""
		if len(r.Engines) > 0 {
			got = r.Engines[0].ID
		}
		if got != engine {
			t.Errorf("%s: engines %+v, want %q first", name, r.Engines, engine)
		}
		if !r.Collectable || len(r.Dropped) > 0 {
			t.Errorf("%s: dropped %v, findings %+v", name, r.Dropped, r.Finding)
		}
	}
}

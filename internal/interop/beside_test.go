package interop_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/simulate"
)

// beside is a run of AIPerf with its own collection of server metrics, which was
// the command of a collection of ours at the same endpoint.
type beside struct {
	scrapestat string // the binary
	dir        string // has the folders run and aiperf
	requests   int
	metrics    string // the endpoint
}

// TestAIPerfBeside has AIPerf itself put load on a simulated server while both
// collect its metrics, and compares what they say series by series: about what
// each polled, about the same polls, and about the requests. The tables of
// docs/formats.md are of such a run.
func TestAIPerfBeside(t *testing.T) {
	interpreter := python(t)
	server := httptest.NewServer(countScrapes(t, idleServer(t)))
	defer server.Close()
	b := &beside{scrapestat: filepath.Join(tool(t), "scrapestat"), dir: t.TempDir(), requests: 150,
		metrics: server.URL + "/metrics"}
	b.bench(t, interpreter, server.URL)
	theirs := readExport(t, filepath.Join(b.dir, "aiperf", "server_metrics_export.json"))
	t.Run("side by side", func(t *testing.T) { b.sideBySide(t, theirs) })
	t.Run("same polls", func(t *testing.T) { b.samePolls(t, theirs) })
	t.Run("requests", b.clients)
}

// idleServer is a vLLM server with no load but that of its clients.
func idleServer(t *testing.T) *simulate.Server {
	t.Helper()
	s, err := simulate.New("vllm", simulate.Options{Load: []simulate.LoadStep{{}}, Seed: 5, AbortShare: -1,
		ErrorShare: -1})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// countScrapes adds a counter of scrapes to the metrics of a server, as servers
// have that count all their requests: no body is equal to the one before, which
// AIPerf would leave out of its JSONL.
func countScrapes(t *testing.T, next http.Handler) http.Handler {
	var scrapes atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			next.ServeHTTP(w, r)
			return
		}
		r.Header.Del("Accept-Encoding")
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		kind := answer.Header().Get("Content-Type")
		if !strings.HasPrefix(kind, "text/plain") {
			t.Errorf("a scrape got %s", kind)
		}
		w.Header().Set("Content-Type", kind)
		fmt.Fprintf(w, "%s# HELP scrapes_total Scrapes of this server.\n# TYPE scrapes_total counter\nscrapes_total %d\n",
			answer.Body.Bytes(), scrapes.Add(1))
	})
}

// bench runs AIPerf under our collect.
func (b *beside) bench(t *testing.T, interpreter, url string) {
	t.Helper()
	tokenizer := filepath.Join(b.dir, "tokenizer")
	b.exec(t, interpreter, filepath.Join("python", "tokenizer.py"), tokenizer)
	b.exec(t, b.scrapestat, "collect", "vllm="+url, "-o", filepath.Join(b.dir, "run"), "--formats", "json,jsonl",
		"--quiet", "--",
		filepath.Join(filepath.Dir(interpreter), "aiperf"), "profile", "--model", "qwen3-8b", "--url", url, "--endpoint-type",
		"chat", "--streaming",
		"--tokenizer", tokenizer, "--isl", "400", "--osl", "60", "--concurrency", "8", "--request-count",
		fmt.Sprint(b.requests), "--random-seed", "1",
		"--use-server-token-count", "--extra-inputs", "ignore_eos:true", "--ui", "none", "--no-gpu-telemetry",
		"--server-metrics", b.metrics, "--server-metrics-formats", "json", "csv", "parquet", "jsonl", "--output-artifact-dir",
		filepath.Join(b.dir, "aiperf"))
}

// exec runs a program that must succeed and returns its stdout.
func (b *beside) exec(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "TZ=UTC", "HF_HOME="+filepath.Join(b.dir, "hf"),
		"HF_HUB_DISABLE_TELEMETRY=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s\n%s", filepath.Base(name), strings.Join(args, " "), err, out, stderr.String())
	}
	return out
}

// window is what AIPerf's file is about: from the start of its profiling to its
// last poll.
func (b *beside) window(t *testing.T, theirs *exported) (from, to int64) {
	t.Helper()
	info, ok := theirs.Summary.Endpoints[b.metrics]
	phase, profiled := theirs.Summary.Phases["profiling"]
	if !ok || !profiled {
		t.Fatalf("AIPerf's summary lacks the endpoint or the phase: %+v", theirs.Summary)
	}
	return phase.StartNS, info.LastNS
}

// sideBySide compares AIPerf's file with ours over the same window.
func (b *beside) sideBySide(t *testing.T, theirs *exported) {
	from, to := b.window(t, theirs)
	instant := func(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }
	ours := b.export(t, "run", "cut", "--from", instant(from), "--to", instant(to))
	c := newComparison(t, b, theirs, ours, from, to)
	c.families()
	for _, name := range slices.Sorted(maps.Keys(theirs.Metrics)) {
		m := theirs.Metrics[name]
		c.family(name, &m)
	}
	for _, m := range []exportedMetric{theirs.Metrics["vllm:e2e_request_latency_seconds"],
		ours.Metrics["vllm:e2e_request_latency_seconds"]} {
		if len(m.Series) != 1 || m.Series[0].Stats["count"] != float64(b.requests) {
			t.Errorf("requests of the window: %+v, want %d", m.Series, b.requests)
		}
	}
	c.table()
}

// samePolls gives AIPerf's polls to our import, and holds our statistics of them
// against AIPerf's: what differs side by side is due to the polls. AIPerf's JSONL
// lacks families that end in _info.
func (b *beside) samePolls(t *testing.T, theirs *exported) {
	maps.DeleteFunc(theirs.Metrics, func(name string, _ exportedMetric) bool { return strings.HasSuffix(name, "_info") })
	b.exec(t, b.scrapestat, "import", "aiperf-jsonl", filepath.Join(b.dir, "aiperf", "server_metrics_export.jsonl"), "-o",
		filepath.Join(b.dir, "imported"), "--quiet")
	ours := b.export(t, "imported", "imported", "--counter-resets", "clamp")
	from, to := b.window(t, theirs)
	c := newComparison(t, b, theirs, ours, from, to)
	c.families()
	for name, m := range theirs.Metrics {
		other := ours.Metrics[name]
		for _, s := range m.Series {
			key := seriesKey(name, s.Labels)
			o := other.find(name, key)
			if len(s.Stats) != len(o.Stats) || len(s.Buckets) != len(o.Buckets) {
				t.Errorf("%s: AIPerf has %d statistics and %d buckets, scrapestat %d and %d", key, len(s.Stats), len(s.Buckets),
					len(o.Stats), len(o.Buckets))
			}
			for stat, v := range s.Stats {
				c.add("statistic of a "+m.Type, "", key+" "+stat, v, undust(stat, &s, o), 0)
			}
			for le, n := range s.Buckets {
				c.add("bucket", "", key+" "+le, n, o.Buckets[le], 0)
			}
		}
	}
	c.table()
}

// clients adds AIPerf's requests to our run, and holds our report of them against
// AIPerf's, and their number against the server's.
func (b *beside) clients(t *testing.T) {
	run := filepath.Join(b.dir, "run")
	b.exec(t, b.scrapestat, "requests", "import", filepath.Join(b.dir, "aiperf", "profile_export.jsonl"), "-o", run,
		"--strict")
	type distribution struct {
		N           int                `json:"n"`
		Mean        float64            `json:"mean"`
		Min         float64            `json:"min"`
		Max         float64            `json:"max"`
		Percentiles map[string]float64 `json:"percentiles"`
	}
	var report struct {
		Issued    int          `json:"issued"`
		Succeeded int          `json:"succeeded"`
		TTFT      distribution `json:"ttft_ns"`
		Latency   distribution `json:"latency_ns"`
		TPOT      distribution `json:"tpot_ns"`
		OSL       distribution `json:"osl_tokens"`
	}
	b.json(t, &report, b.exec(t, b.scrapestat, "requests", "report", run, "--format", "json"))
	var summary map[string]json.RawMessage
	text, err := os.ReadFile(filepath.Join(b.dir, "aiperf", "profile_export_aiperf.json"))
	if err != nil {
		t.Fatal(err)
	}
	b.json(t, &summary, text)
	if report.Issued != b.requests || report.Succeeded != b.requests {
		t.Errorf("%d requests issued, %d succeeded, want %d", report.Issued, report.Succeeded, b.requests)
	}
	compared := 0
	for name, d := range map[string]distribution{"time_to_first_token": report.TTFT, "request_latency": report.Latency,
		"inter_token_latency": report.TPOT, "output_sequence_length": report.OSL} {
		var theirs map[string]any
		b.json(t, &theirs, summary[name])
		scale := 1.0
		if theirs["unit"] == "ms" {
			scale = 1e6
		}
		check := func(stat string, ours float64) {
			t.Helper()
			compared++
			if want, ok := theirs[stat].(float64); !ok || math.Abs(ours-want*scale) > 1e-6*want*scale {
				t.Errorf("%s %s: AIPerf %v, scrapestat %v", name, stat, theirs[stat], ours/scale)
			}
		}
		check("avg", d.Mean)
		check("min", d.Min)
		check("max", d.Max)
		for _, p := range []string{"1", "5", "10", "25", "50", "75", "90", "95", "99"} {
			check("p"+p, d.Percentiles[p])
		}
	}
	type side struct {
		Client struct {
			Count int `json:"count"`
		} `json:"client"`
		Server struct {
			Count int `json:"count"`
		} `json:"server"`
		Agree bool `json:"counts_agree"`
	}
	var joined struct {
		TTFT side `json:"ttft"`
		E2E  side `json:"e2e"`
	}
	b.json(t, &joined, b.exec(t, b.scrapestat, "requests", "join", run, "--json"))
	for name, s := range map[string]side{"TTFT": joined.TTFT, "end to end": joined.E2E} {
		if !s.Agree || s.Client.Count != b.requests || s.Server.Count != b.requests {
			t.Errorf("%s: clients count %d, the server %d, want %d", name, s.Client.Count, s.Server.Count, b.requests)
		}
	}
	t.Logf("%d statistics of %d requests are AIPerf's, and the server counts as many requests", compared, report.Issued)
}

func (b *beside) json(t *testing.T, to any, text []byte) {
	t.Helper()
	if err := json.Unmarshal(text, to); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

// export analyses a run again and returns the JSON.
func (b *beside) export(t *testing.T, run, to string, flags ...string) *exported {
	t.Helper()
	args := append([]string{"export", filepath.Join(b.dir, run), "--formats", "json", "--quiet", "-o",
		filepath.Join(b.dir, to)}, flags...)
	b.exec(t, b.scrapestat, args...)
	return readExport(t, filepath.Join(b.dir, to, "server_metrics_export.json"))
}

func readExport(t *testing.T, path string) *exported {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := &exported{}
	if err := json.Unmarshal(text, out); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return out
}

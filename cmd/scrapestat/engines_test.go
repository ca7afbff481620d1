package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/source/triton"
)

// enginesDir has the pages of engines. A block of text there whose info string
// names a command is what that command prints about the simulated engine.
const enginesDir = "../../docs/data/engines"

// shownBlock is such a block: ```text scrapestat show run1
var shownBlock = regexp.MustCompile("(?ms)^```text (scrapestat [^\n]*)\n(.*?)^```$")

// simulatedTarget is a target of the run of a page.
type simulatedTarget struct {
	name, profile string
	labels        map[string]string
	options       simulate.Options
	path          string // of the metrics; "" is /metrics
	stats         bool   // Triton's statistics rather than its exposition
}

// pages are the runs that the pages of engines show: a minute after half a minute
// of load, polled once a second, by a clock that is not ours.
func pages() map[string][]simulatedTarget {
	load := func(rate float64, seed uint64) simulate.Options { return simulate.Options{Rate: rate, Seed: seed} }
	role := func(name string) map[string]string { return map[string]string{"role": name} }
	return map[string][]simulatedTarget{
		"vllm.md": {{name: "a", profile: "vllm", labels: role("gold"), options: load(8, 1)},
			{name: "b", profile: "vllm", labels: role("silver"), options: load(4, 2)}},
		"vllm-omni.md": {{name: "omni", profile: "vllm-omni", options: simulate.Options{Rate: 4, Seed: 3, Engines: 2}}},
		"sglang.md":    {{name: "sglang", profile: "sglang", options: load(8, 3)}},
		"trtllm.md":    {{name: "trtllm", profile: "trtllm", options: load(8, 4), path: "/prometheus/metrics"}},
		"dynamo.md": {{name: "frontend", profile: "dynamo", options: load(8, 5)},
			{name: "worker", profile: "dynamo-worker", options: load(8, 5)}},
		"triton.md": {{name: "triton", profile: "triton", options: load(40, 6)},
			{name: "statistics", profile: "triton", options: load(40, 6), stats: true}},
		"torchserve.md": {{name: "torchserve", profile: "torchserve", options: load(20, 7)}},
		"tgi.md":        {{name: "tgi", profile: "tgi", options: load(8, 8)}},
		"llamacpp.md":   {{name: "llama", profile: "llamacpp", options: load(4, 9)}},
		"dcgm.md": {{name: "vllm", profile: "vllm", options: load(8, 1)},
			{name: "gpus", profile: "dcgm", options: simulate.Options{Seed: 10, Engines: 2}}},
	}
}

// TestEnginePages holds the pages of engines against what show prints; -update
// rewrites them. The first screen of an engine must fit on 40 lines.
func TestEnginePages(t *testing.T) {
	for name, targets := range pages() {
		t.Run(name, func(t *testing.T) {
			path, err := filepath.Abs(filepath.Join(enginesDir, name))
			if err != nil {
				t.Fatal(err)
			}
			page, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir())
			recordSimulated(t, "run1", targets, 30*time.Second, time.Minute)
			blocks := 0
			got := shownBlock.ReplaceAllFunc(page, func(block []byte) []byte {
				blocks++
				command := string(shownBlock.FindSubmatch(block)[1])
				var out, talk bytes.Buffer
				if code := run(context.Background(), strings.Fields(command)[1:], stdio{nil, &out, &talk}); code != exitDone {
					t.Fatalf("%s: exit code %d: %s", command, code, talk.String())
				}
				if command == "scrapestat show run1" {
					checkFirstScreen(t, out.String())
				}
				return []byte("```text " + command + "\n" + out.String() + "```")
			})
			if blocks == 0 {
				t.Fatal("the page shows nothing that the program printed")
			}
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			} else if !bytes.Equal(got, page) {
				t.Errorf("%s is not what show prints; rewrite it: go test ./cmd/scrapestat -run TestEnginePages -update", path)
			}
		})
	}
}

// checkFirstScreen wants at most 40 lines for each engine: from its heading, the
// line before its first table, to the next one.
func checkFirstScreen(t *testing.T, screen string) {
	t.Helper()
	_, rest, _ := strings.Cut(screen, "\ntargets\n")
	for _, engine := range strings.Split(rest, "\nQUESTION ")[1:] {
		block, _, _ := strings.Cut(engine, "\nacross engines\n")
		block, _, _ = strings.Cut(block, "\nwarnings\n")
		if n := strings.Count(block, "\n") + 1; n > 39 { // and the heading
			t.Errorf("an engine takes %d lines, want at most 40:\n%s", n+1, block)
		}
	}
}

// recordSimulated records a run of simulated engines, all of it by their clock: so
// long, after a load of lead.
func recordSimulated(t *testing.T, dir string, targets []simulatedTarget, lead, length time.Duration) {
	t.Helper()
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	now := start.Add(-lead)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := rundb.Create(dir, rundb.Meta{ID: filepath.Base(dir), Version: "0.1.0", OriginNS: start.UnixNano(),
		Interval: time.Second}, rundb.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var polls []func(at int64, s *metric.Snapshot)
	for i, target := range targets {
		o := target.options
		o.Now = func() time.Time { return now }
		sim, err := simulate.New(target.profile, o)
		if err != nil {
			t.Fatal(err)
		}
		poll, source := poller(t, sim, target)
		polls = append(polls, poll)
		url := "http://" + target.name + ":8000/metrics"
		if n, err := w.AddTarget(metric.Target{Name: target.name, URL: url, Source: source,
			Labels: metric.LabelsFromMap(target.labels)}); err != nil || n != i {
			t.Fatal(n, err)
		}
	}
	for second := range int(length/time.Second) + 1 {
		now = start.Add(time.Duration(second) * time.Second)
		at := now.UnixNano()
		if second == 0 {
			mark(t, w, metric.PhaseProfiling, at)
		}
		for i := range polls {
			s := metric.Snapshot{Target: i, Seq: uint64(second), DueNS: at, SentNS: at, FirstByteNS: at,
				Duration: 3 * time.Millisecond, Status: http.StatusOK}
			polls[i](at, &s)
			if err := w.Record(&s); err != nil {
				t.Fatal(err)
			}
		}
	}
	mark(t, w, metric.MarkEnd, now.UnixNano())
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func mark(t *testing.T, w *rundb.Writer, name string, at int64) {
	t.Helper()
	if err := w.Mark(metric.Mark{Name: name, AtNS: at, Kind: metric.MarkOwn}); err != nil {
		t.Fatal(err)
	}
}

// poller returns what polls a simulated engine without a network, and the name of
// the kind of source.
func poller(t *testing.T, sim http.Handler, target simulatedTarget) (poll func(int64, *metric.Snapshot),
	source string) {
	t.Helper()
	if target.stats {
		s, err := triton.New("triton+http://statistics:8000", triton.Options{RoundTripper: inProcess{sim}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return func(at int64, snapshot *metric.Snapshot) {
			s.Poll(context.Background(), func() int64 { return at }, snapshot)
			snapshot.Duration = 3 * time.Millisecond
		}, "triton"
	}
	d, err := scrape.NewDecoder(scrape.Options{Sentinel: catalog.Embedded().Sentinel})
	if err != nil {
		t.Fatal(err)
	}
	path := target.path
	if path == "" {
		path = "/metrics"
	}
	return func(_ int64, s *metric.Snapshot) {
		answer := httptest.NewRecorder()
		sim.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		s.Body, s.BodyBytes = answer.Body.Bytes(), int64(answer.Body.Len())
		d.Decode(s, scrape.Body{Bytes: s.Body, ContentType: answer.Header().Get("Content-Type")})
	}, "prometheus"
}

// inProcess is a transport to a handler.
type inProcess struct{ http.Handler }

func (h inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	if r.Body == nil {
		r.Body = io.NopCloser(bytes.NewReader(nil))
	}
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/events/join"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
)

const serverFixtures = "../../testdata/fixtures/server-requests/"

// fixtureRun has the metrics, clients and records of a fixture; "" leaves one out.
func fixtureRun(t *testing.T, importKind, metrics, clients, kind string, records ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	if metrics != "" {
		commandOK(t, "import", importKind, serverFixtures+metrics, "-o", dir)
	}
	into := "--run"
	if metrics == "" {
		into = "-o"
	}
	commandOK(t, "requests", "record", into, dir, clients)
	if kind != "" {
		args := []string{"requests", "import", kind}
		for _, r := range records {
			args = append(args, serverFixtures+r)
		}
		commandOK(t, append(args, "-o", dir)...)
	}
	return dir
}

func commandOK(t *testing.T, args ...string) string {
	t.Helper()
	var out, talk bytes.Buffer
	if code := command(t, args, &out, &talk); code != exitDone {
		t.Fatalf("%q: exit code %d\n%s", args, code, talk.String())
	}
	return out.String()
}

func commandFails(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	var out, talk bytes.Buffer
	if got := command(t, args, &out, &talk); got != code || !strings.Contains(talk.String(), want) {
		t.Errorf("%q: exit code %d, want %d with %q\n%s", args, got, code, want, talk.String())
	}
}

func joinJSON(t *testing.T, args ...string) (r join.Result) {
	t.Helper()
	text := commandOK(t, append([]string{"requests", "join", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// shifted is a client's file with all times later by so many nanoseconds.
func shifted(t *testing.T, path string, by int64) string {
	t.Helper()
	data, err := os.ReadFile(serverFixtures + path)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for line := range bytes.Lines(data) {
		var row map[string]any
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&row); err != nil {
			t.Fatal(err)
		}
		for name, v := range row {
			if n, ok := v.(json.Number); ok && strings.HasSuffix(name, "_ns") {
				ns, err := n.Int64()
				if err != nil {
					t.Fatal(err)
				}
				row[name] = ns + by
			}
		}
		if err := json.NewEncoder(&out).Encode(row); err != nil {
			t.Fatal(err)
		}
	}
	return writeFile(t, t.TempDir(), out.String())
}

func near(t *testing.T, what string, got *float64, want, within float64) {
	t.Helper()
	if got == nil || math.Abs(*got-want) > within {
		t.Errorf("%s is %v, want %v", what, deref(got), want)
	}
}

// TestServerRequestsVLLM is A1 to A4 and A18 of the acceptance table, on spans of a real vLLM beside its histograms,
// and what commands show of them.
func TestServerRequestsVLLM(t *testing.T) {
	dir := fixtureRun(t, "openmetrics", "vllm/edges.prom", serverFixtures+"vllm/client.jsonl", "otlp-json",
		"vllm/spans.otlp.jsonl")
	r := joinJSON(t, dir)
	q := r.Requests
	if q.Joined != 150 || q.Records != 150 || q.Gained == nil || *q.Gained != 150 || q.TTFT.Requests != 133 {
		t.Errorf("joined %+v", q.Coverage)
	}
	near(t, "outside", q.TTFT.Outside, .010008434, 1e-6)
	near(t, "front", q.TTFT.Front, .024158513, 1e-6)
	near(t, "from", q.Clocks[0].LoS, -.001615788, 2e-6) // the records are as good as a microsecond
	near(t, "to", q.Clocks[0].HiS, .000963965, 2e-6)
	for id, want := range map[string][4]float64{"ttft_s": {21.611890793, .063995957, .436159992, 1.020465677},
		"e2e_s": {82.822014332, .442468166, 1.137503266, 1.739993961}, "queue_s": {0, .000013572, .400287365, .918634850},
		"prefill_s": {0, .014853590, .077001892, .116712857}, "decode_s": {0, .30326119, .932922273, 1.678233437}} {
		found := false
		for _, e := range r.Exact {
			if e.ID != id {
				continue
			}
			if found = true; e.Status != summary.Proven || e.Records != 150 {
				t.Errorf("%s: %+v", id, e)
			}
			if want[0] != 0 {
				near(t, id+" sum", &e.Sum, want[0], 1e-8)
			}
			for i, p := range e.Percentiles {
				near(t, id, p.Value, want[i+1], 1e-8)
			}
		}
		if !found {
			t.Errorf("no %s", id)
		}
	}
	if out := commandOK(t, "show", dir); !strings.Contains(out, "exact, of all 150 requests") {
		t.Errorf("show:\n%s", out)
	}
	out := commandOK(t, "query", dir, "-m", "ttft", "--stat", "p90", "--format", "csv")
	if !strings.Contains(out, "0.436159991") || !strings.Contains(out, ",requests,ok,") {
		t.Errorf("query: %s", out)
	}
	traceOf(t, commandOK(t, "requests", "export", dir, "--format", "trace", "-o", "-"))
	if n := strings.Count(commandOK(t, "requests", "export", dir, "-o", "-"), "\n"); n != 150 {
		t.Errorf("%d rows", n)
	}
	commandOK(t, "requests", "join", dir, "--min-joined", "99%", "--by-request", "3", "--same-host")
}

// traceOf holds a trace against A18: requests of a lane do not overlap, times rise, 150 requests are of the server.
func traceOf(t *testing.T, text string) {
	t.Helper()
	var doc struct {
		TraceEvents []struct {
			Ph       string
			PID, TID int
			TS, Dur  float64
			Name     string
		}
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	servers, ends, last, processes := 0, map[[2]int]float64{}, map[[2]int]float64{}, map[int]bool{}
	for _, e := range doc.TraceEvents {
		if processes[e.PID] = true; e.Ph != "X" {
			continue
		}
		lane := [2]int{e.PID, e.TID}
		if e.TS < last[lane] {
			t.Fatalf("times go back: %+v", e)
		}
		last[lane] = e.TS
		switch {
		case !strings.HasPrefix(e.Name, "q"): // phases lie inside
			if e.TS+e.Dur > ends[lane]+1e-3 {
				t.Fatalf("a phase ends after its request: %+v", e)
			}
			continue
		case e.TS < ends[lane]:
			t.Fatalf("requests overlap: %+v", e)
		case e.PID == 2:
			servers++
		}
		ends[lane] = e.TS + e.Dur
	}
	if servers != 150 || len(processes) != 3 {
		t.Errorf("%d requests of the server, processes %v", servers, processes)
	}
}

// TestServerRequestsShifted is A4 and A6: counters alone tell times that are off, to 1 s exactly those of other times.
func TestServerRequestsShifted(t *testing.T) {
	dir := fixtureRun(t, "openmetrics", "vllm/edges.prom", shifted(t, "vllm/client.jsonl", 69e9), "otlp-json",
		"vllm/spans.otlp.jsonl")
	commandFails(t, exitFailed, "s late, by the 2 polls", "requests", "join", dir)
	near(t, "outside", joinJSON(t, dir, "--shift", "-69s").Requests.TTFT.Outside, .010008434, 1e-6)
	polls := fixtureRun(t, "aiperf-jsonl", "vllm/polls.jsonl", serverFixtures+"vllm/client-proxy.jsonl", "")
	a := joinJSON(t, polls).Anchor
	near(t, "from", &a.Low, -.163, 1e-3)
	near(t, "to", &a.High, .0103, 1e-3) // the document counts from when a poll was read: it was sent 9 ms before
	commandFails(t, exitIncomplete, "--min-joined", "requests", "join", polls, "--min-joined", "1%")
	commandFails(t, exitNothing, "nothing to export", "requests", "export", polls, "-o", "-")
	late := fixtureRun(t, "aiperf-jsonl", "vllm/polls.jsonl", shifted(t, "vllm/client-proxy.jsonl", 15e9), "")
	commandFails(t, exitFailed, "14.8 to 15.0 s late, by the 106 polls of vllm's counter of requests; --shift -15s",
		"requests", "join", late)
	near(t, "from", &joinJSON(t, late, "--shift", "-15s").Anchor.Low, -.163, 1e-3)
}

// TestServerRequestsSGLang is A10 and A11: a bad line, records of others, a drift, a step, and no prompt anywhere.
func TestServerRequestsSGLang(t *testing.T) {
	files := func(folder string) []string {
		return []string{folder + "/sglang-request-metrics-20261122_08.log",
			folder + "/sglang-request-metrics-20261122_09.log"}
	}
	dir := fixtureRun(t, "", "", serverFixtures+"sglang/client.jsonl", "sglang-requests", files("sglang")...)
	q := joinJSON(t, dir).Requests
	if q.Joined != 57 || q.Records != 61 || q.WithoutClient != 4 {
		t.Errorf("joined %+v", q.Coverage)
	}
	near(t, "outside", q.TTFT.Outside, .002004296, 1e-6)
	near(t, "queue", q.TTFT.Queue, .053030373, 1e-6)
	near(t, "from", q.Clocks[0].LoS, 2.499738, 3e-6)
	near(t, "to", q.Clocks[0].HiS, 2.501349, 3e-6)
	if joinJSON(t, dir, "--max-drift", "0ppm").Requests.Refused() == "" {
		t.Error("0 ppm passed")
	}
	commandFails(t, exitFailed, "--same-host", "requests", "join", dir, "--same-host")
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte("PRIVATE")) {
			t.Errorf("a prompt is in %s", path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	step := fixtureRun(t, "", "", serverFixtures+"sglang-step/client.jsonl", "sglang-requests", files("sglang-step")...)
	for _, flags := range [][]string{nil, {"--drop-conflicting"}} {
		q = joinJSON(t, append([]string{step}, flags...)...).Requests
		c := q.Clocks[0].Refused
		if c == nil || math.Abs(c.Gap-.0486) > 1e-4 || c.Others != 28 || c.Of != 57 || q.TTFT.Requests != 57 {
			t.Errorf("a step: %+v", c)
		}
	}
	commandFails(t, exitIncomplete, "contradict each other", "requests", "join", step, "--strict")
	commandOK(t, "requests", "export", step, "--format", "trace", "-o", "-") // on two axes
}

// TestSameBootRun places a monotonic file by the boot that the run was recorded in, and refuses a run that knows none.
func TestSameBootRun(t *testing.T) {
	file := writeFile(t, t.TempDir(), `{"event_type":"sample.issued","timestamp_ns":6000000000,"sample_uuid":"a"}
{"event_type":"sample.complete","timestamp_ns":7000000000,"sample_uuid":"a"}
`)
	for _, boot := range []string{"boot", ""} {
		dir := t.TempDir()
		w, err := rundb.Create(dir, rundb.Meta{ID: "r", OriginNS: 1_800_000_000e9, BootID: boot, BootNS: 5e9},
			rundb.WriterOptions{})
		if err == nil {
			err = w.Close(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		args := []string{"requests", "import", "events-jsonl", file, "-o", dir, "--same-boot", "run"}
		if boot == "" {
			commandFails(t, exitFailed, "does not tell which boot", args...)
			continue
		}
		commandOK(t, args...)
		r, err := rundb.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		clocks, err := r.Clocks(t.Context())
		if err != nil || len(clocks) != 1 || clocks[0].UnixNS-clocks[0].MonoNS != 1_800_000_000e9-5e9 {
			t.Errorf("%+v, %v", clocks, err)
		}
	}
}

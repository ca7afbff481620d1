package reqfile_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source/reqfile"
)

const fixtures = "../../testdata/fixtures/server-requests/"

// read reads files with one reader.
func read(t testing.TB, kind reqfile.Kind, files ...string) ([]metric.ServerRequest, *reqfile.Reader) {
	t.Helper()
	var all []metric.ServerRequest
	r := reqfile.NewReader(kind, func(q *metric.ServerRequest) { all = append(all, *q) })
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var in io.Reader = bytes.NewReader(b)
		if strings.HasSuffix(name, ".gz") {
			if in, err = gzip.NewReader(in); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Read(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	noPrompts(t, all, r)
	return all, r
}

func noPrompts(t testing.TB, all []metric.ServerRequest, r *reqfile.Reader) {
	t.Helper()
	if text := fmt.Sprintf("%+v %+v %s", all, r.Counts(), r.Warning()); strings.Contains(text, "PRIVATE") {
		t.Errorf("a prompt was kept: %s", text)
	}
}

func text(t testing.TB, kind reqfile.Kind, s string) ([]metric.ServerRequest, *reqfile.Reader) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, []byte(s), 0o600); err != nil {
		t.Fatal(err)
	}
	return read(t, kind, name)
}

// mean is that of a duration over records that have it, in ms.
func mean(all []metric.ServerRequest, of func(*metric.ServerRequest) time.Duration) float64 {
	sum, n := time.Duration(0), 0
	for i := range all {
		if d := of(&all[i]); d >= 0 {
			sum, n = sum+d, n+1
		}
	}
	return sum.Seconds() * 1e3 / float64(n)
}

// TestSGLang reads two files of an hour each: 61 records, of which 4 are of no client and one line is cut.
func TestSGLang(t *testing.T) {
	for _, dir := range []string{"sglang", "sglang-step"} {
		files, err := filepath.Glob(fixtures + dir + "/*.log")
		if err != nil || len(files) != 2 {
			t.Fatal(files, err)
		}
		all, r := read(t, reqfile.SGLang, files...)
		if c := r.Counts(); c.Records != 61 && dir == "sglang" || c.Bad > 1 || len(all) != int(c.Records) {
			t.Errorf("%s: %+v", dir, c)
		}
		if !strings.Contains(r.Warning(), "--log-requests-level") {
			t.Errorf("%s: warning %q of a file with prompts", dir, r.Warning())
		}
		for _, q := range all {
			if q.Output < 0 && (q.TTFT != -1 || q.Decode != -1) || q.Output >= 0 && (q.TTFT < 0 || q.Prefill < 0) {
				t.Errorf("%s: %+v", dir, q)
			}
		}
		// Read again, nothing is told twice.
		if again, r := read(t, reqfile.SGLang, append(files, files...)...); len(again) != len(all) ||
			r.Counts().Seen != int64(len(all)) {
			t.Errorf("%s twice: %d records, %+v", dir, len(again), r.Counts())
		}
	}
	_, r := text(t, reqfile.SGLang, `{"id":"a","request_parameters":"{\"stream\":true}","e2e_latency":1}`)
	if r.Warning() != "" || r.Counts().Records != 1 {
		t.Errorf("%q, %+v", r.Warning(), r.Counts())
	}
}

// expected are the records of an expected.json.
type expected struct {
	Records []struct {
		ID                                       string `json:"rid"`
		Alt                                      *string
		Front, Queue, Prefill, Decode, TTFT, E2E *float64
		Prompt                                   *int64
	}
}

func expect(t testing.TB, dir string) (e expected) {
	t.Helper()
	b, err := os.ReadFile(fixtures + dir + "/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// same compares a duration with a number of units, to the microsecond.
func same(t testing.TB, what string, got time.Duration, want *float64, unit float64) {
	t.Helper()
	if want == nil && got != -1 || want != nil && math.Abs(got.Seconds()/unit-*want) > 1e-6/unit {
		t.Errorf("%s: %v", what, got)
	}
}

// TestTensorRT reads the answer of /perf_metrics and the same as lines: 20 records with the expected times.
func TestTensorRT(t *testing.T) {
	e := expect(t, "trtllm")
	lines, err := filepath.Glob(fixtures + "trtllm/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(lines, fixtures+"trtllm/perf_metrics.json") {
		all, r := read(t, reqfile.TensorRT, name)
		if c := r.Counts(); len(all) != 20 || len(all) != len(e.Records) || c.Bad > 0 {
			t.Fatalf("%s: %d records, %+v", name, len(all), c)
		}
		for i, want := range e.Records {
			q := all[i]
			what := name + " " + want.ID
			same(t, what+" front", q.Front, want.Front, 1)
			same(t, what+" queue", q.Queue, want.Queue, 1)
			same(t, what+" prefill", q.Prefill, want.Prefill, 1)
			same(t, what+" decode", q.Decode, want.Decode, 1)
			same(t, what+" ttft", q.TTFT, want.TTFT, 1)
			same(t, what+" e2e", q.E2E, want.E2E, 1)
		}
		for what, x := range map[string][2]float64{
			"front":   {mean(all, func(q *metric.ServerRequest) time.Duration { return q.Front }), 3.653},
			"queue":   {mean(all, func(q *metric.ServerRequest) time.Duration { return q.Queue }), 55.923},
			"prefill": {mean(all, func(q *metric.ServerRequest) time.Duration { return q.Prefill }), 34.828},
			"ttft":    {mean(all, func(q *metric.ServerRequest) time.Duration { return q.TTFT }), 94.404},
			"e2e":     {mean(all, func(q *metric.ServerRequest) time.Duration { return q.E2E }), 867.981}} {
			if math.Abs(x[0]-x[1]) > 1e-3 {
				t.Errorf("%s %s: %v ms, want %v", name, what, x[0], x[1])
			}
		}
	}
}

// TestDisaggregated reads what a front door tells of two servers: three records of one id.
func TestDisaggregated(t *testing.T) {
	all, r := read(t, reqfile.TensorRT, fixtures+"trtllm/perf_metrics-disagg.json")
	if len(all) != 3 || r.Counts().Bad > 0 {
		t.Fatalf("%d records, %+v", len(all), r.Counts())
	}
	door, ctx, gen := all[0], all[1], all[2]
	const ms = time.Millisecond
	got := map[string]time.Duration{"door to ctx": time.Duration(ctx.ArrivalNS - door.ArrivalNS), "ctx front": ctx.Front,
		"ctx queue": ctx.Queue, "ctx prefill": ctx.Prefill, "transfer": gen.Transfer, "gen front": gen.Front,
		"gen queue": gen.Queue, "ttft": door.TTFT}
	want := map[string]time.Duration{"door to ctx": 5 * ms, "ctx front": 3 * ms, "ctx queue": 5 * ms,
		"ctx prefill": 27 * ms, "transfer": 14 * ms, "gen front": 2 * ms, "gen queue": 3 * ms, "ttft": 95 * ms}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if door.ID != "7" || ctx.ID != "7" || gen.ID != "7" || ctx.Stage != "ctx" || gen.Stage != "gen" || ctx.Alt != "3" {
		t.Errorf("%+v", all)
	}
}

// TestDynamo reads a trace, plain and compressed: 15 records, of which 3 have arrival and tokens alone.
func TestDynamo(t *testing.T) {
	e := expect(t, "dynamo")
	all, r := read(t, reqfile.Dynamo, fixtures+"dynamo/request-trace.jsonl")
	if c := r.Counts(); c.Records != 15 || c.Other != 2 || c.Bad != 0 || r.Warning() == "" {
		t.Fatalf("%+v %q", c, r.Warning())
	}
	bare := 0
	for i, want := range e.Records {
		q := all[i]
		same(t, want.ID+" queue", q.Queue, want.Queue, 1e-3)
		same(t, want.ID+" prefill", q.Prefill, want.Prefill, 1e-3)
		same(t, want.ID+" ttft", q.TTFT, want.TTFT, 1e-3)
		same(t, want.ID+" e2e", q.E2E, want.E2E, 1e-3)
		if q.ID != want.ID || (want.Alt == nil) != (q.Alt == "") || want.Prompt != nil && q.Prompt != *want.Prompt {
			t.Errorf("%+v", q)
		}
		if q.E2E == -1 && q.FinishNS == 0 && q.ArrivalNS != 0 && q.Output > 0 {
			bare++
		}
	}
	if bare != 3 {
		t.Errorf("%d with arrival and tokens alone", bare)
	}
	packed, _ := read(t, reqfile.Dynamo, fixtures+"dynamo/request-trace.000001.jsonl.gz")
	if d := cmp.Diff(all, packed); d != "" {
		t.Error(d)
	}
}

// TestTriton reads events in any order: queue, compute and the whole, and no tensor.
func TestTriton(t *testing.T) {
	all, r := read(t, reqfile.Triton, fixtures+"responses/triton-trace.json")
	if len(all) != 1 || r.Counts().Bad != 0 {
		t.Fatalf("%+v %+v", all, r.Counts())
	}
	if q := all[0]; q.ID != "t-1" || q.Queue != 95_681 || q.Compute != 2_653_791 || q.E2E != 3_125_548 || q.Decode != -1 {
		t.Errorf("%+v", q)
	}
}

// TestBad counts what cannot be read or cannot be, names the first by its line, and reads on.
func TestBad(t *testing.T) {
	good := map[string]string{
		"sglang-requests": `{"id":"good","e2e_latency":1,"request_received_ts":1795337978.5}`,
		"trtllm-requests": `{"request_id":1,"perf_metrics":{"timing_metrics":{"arrival_time":5.5,"first_token_time":6}}}`,
		"dynamo-trace": `{"schema":"dynamo.request.trace.v1","event_type":"request_end",` +
			`"request":{"request_id":"good","request_received_ms":1795337980000}}`,
		"triton-trace": `{"id":1,"model_name":"m","timestamps":[{"name":"REQUEST_START","ns":5}]}`,
	}
	wrong := map[string][]string{
		"": {`{"PRIVATE`, `[PRIVATE]`, `PRIVATE`, `{"id":{}}`, "{}", strings.Repeat("x", 1<<20+1), `{"id":NaN}`},
		"sglang-requests": {`{"id":"PRIVATE","e2e_latency":-1}`, `{"id":"PRIVATE","e2e_latency":1e9}`,
			`{"id":"PRIVATE","request_received_ts":12}`, `{"id":"PRIVATE","prompt_tokens":-5}`,
			`{"id":"PRIVATE","request_received_ts":1795337978,"request_finished_ts":1795337977}`, `{"id":""}`,
			`{"id":"PRIVATE","queue_time":"PRIVATE"}`, `{"id":"PRIVATE","queue_time":NaN}`},
		"trtllm-requests": {`{"request_id":1}`,
			`{"request_id":1,"perf_metrics":{"timing_metrics":{"arrival_time":5.5,"first_token_time":5}}}`},
		"dynamo-trace": {`{"schema":"PRIVATE"}`, `{"schema":"dynamo.request.trace.v1","event_type":"request_end"}`},
	}
	for _, kind := range reqfile.Kinds() {
		for _, line := range append(wrong[""], wrong[kind.Name]...) {
			all, r := text(t, kind, good[kind.Name]+"\n"+line+"\n\n"+line)
			if c := r.Counts(); len(all) != 1 || c.Bad != 2 || !strings.HasPrefix(c.FirstBad, "line 2: ") {
				t.Errorf("%s %.60s: %d records, %+v", kind.Name, line, len(all), c)
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	for i, dir := range []string{"sglang", "trtllm", "dynamo", "responses"} {
		files, err := filepath.Glob(fixtures + dir + "/*")
		if err != nil {
			f.Fatal(err)
		}
		for _, name := range files {
			b, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(i), b[:min(len(b), 2000)])
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		kind := reqfile.Kinds()[int(which)%len(reqfile.Kinds())]
		n := int64(0)
		r := reqfile.NewReader(kind, func(q *metric.ServerRequest) {
			n++
			if err := q.Check(kind.Clock); err != nil {
				t.Errorf("%+v: %v", q, err)
			}
		})
		if err := r.Read(t.Context(), bytes.NewReader(b)); err != nil {
			t.Error(err)
		}
		if r.Counts().Records != n {
			t.Errorf("%d records, %+v", n, r.Counts())
		}
	})
}

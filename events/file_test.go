package events_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/internal/fuzzbound"
	"github.com/scrapestat/scrapestat/internal/testkit"
	"github.com/scrapestat/scrapestat/metric"
)

// fixture returns the path of a file of client events.
func fixture(t *testing.T, name string) string {
	t.Helper()
	return testkit.Path(t, "fixtures/mlperf/"+name)
}

// open reads all events of a file.
func open(t *testing.T, path string, o events.FileOptions) (*events.File, []metric.Event) {
	t.Helper()
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	f, err := events.Open(path, in, o)
	if err != nil {
		t.Fatal(err)
	}
	return f, collect(t, f)
}

func openText(t *testing.T, text string, o events.FileOptions) (*events.File, []metric.Event) {
	t.Helper()
	f, err := events.Open("text", strings.NewReader(text), o)
	if err != nil {
		t.Fatal(err)
	}
	return f, collect(t, f)
}

func collect(t *testing.T, f *events.File) []metric.Event {
	t.Helper()
	var all []metric.Event
	for e, err := range f.Stream(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		c := *e
		c.Data = slices.Clone(e.Data)
		all = append(all, c)
	}
	return all
}

func TestT6(t *testing.T) {
	type dist struct {
		N             int
		Mean          float64
		Min, Max      float64
		Linear, Lower map[string]float64
	}
	var want struct {
		Issued     int
		Completed  int     `json:"completed_all"`
		Failed, OK int     `json:"-"`
		QPSLegacy  float64 `json:"qps_legacy_all"`
		QPSTracked float64 `json:"qps_tracked_all"`
		QPSOK      float64 `json:"qps_tracked_ok"`
		QPSLoad    float64 `json:"qps_loadgen"`
		TPS        float64 `json:"tps_tracked_chars"`
		DurLegacy  float64 `json:"duration_legacy_ns"`
		DurTracked float64 `json:"duration_tracked_ns"`
		DurLoad    float64 `json:"loadgen_window_ns"`
		TTFT       dist    `json:"ttft_ns"`
		LatencyOK  dist    `json:"latency_ok_ns"`
		LatencyAll dist    `json:"latency_all_ns"`
		TPOT       dist    `json:"tpot_request_weighted_ns"`
		TPOTTokens struct {
			Tokens int
			Mean   float64
			CDF    map[string]float64 `json:"inverted_cdf"`
		} `json:"tpot_token_weighted_ns"`
	}
	text, err := os.ReadFile(fixture(t, "a_expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	same := func(what string, linear, lower events.Distribution, w dist) {
		t.Helper()
		equal(t, what+" n", linear.N, w.N)
		near(t, what+" mean", linear.Mean, w.Mean)
		near(t, what+" min", linear.Min, w.Min)
		near(t, what+" max", linear.Max, w.Max)
		for _, q := range linear.Quantiles {
			if v, ok := w.Linear[q.Key]; ok {
				near(t, what+" linear "+q.Key, q.Value, v)
			}
		}
		for _, q := range lower.Quantiles {
			if v, ok := w.Lower[q.Key]; ok {
				near(t, what+" lower "+q.Key, q.Value, v)
			}
		}
	}
	for _, name := range []string{"a_legacy.db", "a_head.db", "a_head.jsonl"} {
		t.Run(name, func(t *testing.T) {
			f, list := open(t, fixture(t, name), events.FileOptions{})
			equal(t, "clock", f.Clock, events.ClockMonotonic)
			s := assemble(t, list, events.Rules{Tokenizer: events.TokensChars})
			o := events.ReportOptions{TPOT: events.PerAfterFirst}
			r := summarise(t, s, o)
			o.Method = events.Lower
			low := summarise(t, s, o)
			equal(t, "issued", r.Issued, want.Issued)
			equal(t, "completed", r.Completed, want.Completed)
			equal(t, "failed", r.Failed, 5)
			equal(t, "succeeded", r.Succeeded, 195)
			nearValue(t, "duration", r.Duration, want.DurTracked*1e-9)
			nearValue(t, "QPS all", r.QPSAll, want.QPSTracked)
			nearValue(t, "QPS", r.QPS, want.QPSOK)
			near(t, "QPS all as printed", r.QPSAll.V, 77.04160246533128)
			nearValue(t, "TPS", r.TPS, want.TPS)
			same("TTFT", r.TTFT, low.TTFT, want.TTFT)
			same("latency", r.Latency, low.Latency, want.LatencyOK)
			same("latency of all", r.LatencyAll, low.LatencyAll, want.LatencyAll)
			same("TPOT", r.TPOT, low.TPOT, want.TPOT)
			equal(t, "tokens", r.TPOTTokens.N, want.TPOTTokens.Tokens)
			near(t, "token mean", r.TPOTTokens.Mean, want.TPOTTokens.Mean)
			for _, q := range r.TPOTTokens.Quantiles {
				if v, ok := want.TPOTTokens.CDF[q.Key]; ok {
					near(t, "token "+q.Key, q.Value, v)
				}
			}
			r = summarise(t, s, events.ReportOptions{Window: events.Window{Name: events.WindowLegacy}})
			nearValue(t, "legacy duration", r.Duration, want.DurLegacy*1e-9)
			nearValue(t, "legacy QPS", r.QPSAll, want.QPSLegacy)
			r = summarise(t, s, events.ReportOptions{Window: events.Window{Name: events.WindowLoadGen}})
			nearValue(t, "loadgen duration", r.Duration, want.DurLoad*1e-9)
			nearValue(t, "loadgen QPS", r.QPSAll, want.QPSLoad)
			if !slices.ContainsFunc(r.Warnings, func(w metric.Warning) bool {
				return strings.Contains(w.Text,
					"last-issued sample failed")
			}) {
				t.Errorf("loadgen window: got warnings %v, want one about the last-issued sample", r.Warnings)
			}
		})
	}
}

const aiperfText = `{"metadata":{"session_num":0,"x_request_id":"r-1","conversation_id":"c","turn_index":2,` +
	`"request_start_ns":1760000000000000000,"request_ack_ns":1760000000010000000,"request_end_ns":1760000000500000000,` +
	`"benchmark_phase":"profiling","was_cancelled":false},"metrics":{"input_sequence_length":{"value":550,` +
	`"unit":"tokens"},"time_to_first_token":{"value":100.5,"unit":"ms"},"output_sequence_length":{"value":5,` +
	`"unit":"tokens"}},"error":null}
not json
{"metadata":{"x_request_id":"r-2","request_start_ns":1760000000100000000,"request_end_ns":1760000000200000000,` +
	`"benchmark_phase":"warmup","was_cancelled":true},"metrics":{"error_isl":{"value":7,"unit":"tokens"}},"error":{` +
	`"code":499,"type":"RequestCancellationError","message":"x"}}
{"metadata":{"x_request_id":"r-3"}}
`

func TestAIPerf(t *testing.T) {
	f, list := openText(t, aiperfText, events.FileOptions{})
	equal(t, "kind", f.Kind, events.KindAIPerf)
	equal(t, "clock", f.Clock, events.ClockUnix)
	equal(t, "bad", f.Bad, 2)
	if !strings.HasPrefix(f.FirstBad, "line 2: ") {
		t.Errorf("first bad: got %q, want line 2", f.FirstBad)
	}
	s := assemble(t, list, events.Rules{})
	equal(t, "requests", len(s.Requests), 2)
	q := s.Requests[0]
	equal(t, "first", q.FirstNS-q.IssuedNS, 100500000)
	equal(t, "ack", q.ByteNS-q.IssuedNS, 10000000)
	equal(t, "end", q.CompleteNS-q.IssuedNS, 500000000)
	equal(t, "isl", q.Input, 550)
	equal(t, "osl", q.Output, 5)
	equal(t, "turn", q.Turn, 2)
	equal(t, "source", q.Source, events.TokensLoad)
	equal(t, "status", s.Requests[1].Status, events.Failed)
	equal(t, "HTTP status", s.Requests[1].HTTPStatus, 499)
	equal(t, "error", s.Requests[1].Error, "RequestCancellationError")
	equal(t, "isl of a failure", s.Requests[1].Input, 7)
	if diff := cmp.Diff([]string{"profiling", "warmup"}, s.Phases()); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
	r := summarise(t, s, events.ReportOptions{Window: events.Window{Name: events.WindowPhase, Phase: "profiling"}})
	nearValue(t, "QPS", r.QPS, 2)
	near(t, "TPOT", r.TPOT.Mean, 399.5e6/4)

	_, list = openText(t, strings.Replace(aiperfText, `"metrics":{`,
		`"metrics":{"request_latency":{"value":480.25,"unit":"ms"},`, 1), events.FileOptions{})
	q = assemble(t, list, events.Rules{}).Requests[0]
	equal(t, "end by AIPerf's latency", q.CompleteNS-q.IssuedNS, 480250000)
}

const vllmText = `{"date":"20260101-000000","backend":"openai","model_id":"m","num_prompts":3,"duration":2.0,` +
	`"completed":2,
"input_lens":[10,20,30],"output_lens":[3,1,0],"start_times":[100.0,100.5,101.0],"ttfts":[0.1,0.2,0.0],
"itls":[[0.05,0.15],[],[]],"generated_texts":["abc","d",""],"errors":["","","Traceback\n  x\nTimeoutError: late"],` +
	`"mean_ttft_ms":150.0}`

func TestVLLM(t *testing.T) {
	f, list := openText(t, vllmText, events.FileOptions{Anchor: events.Anchor{Source: "--anchor",
		FirstNS: 1_700_000_000e9}})
	equal(t, "kind", f.Kind, events.KindVLLM)
	equal(t, "clock", f.Clock, events.ClockAnchored)
	equal(t, "first event", f.FirstNS, 1_700_000_000e9)
	s := assemble(t, list, events.Rules{})
	r := summarise(t, s, events.ReportOptions{})
	equal(t, "issued", r.Issued, 3)
	equal(t, "succeeded", r.Succeeded, 2)
	equal(t, "failed", r.Failed, 1)
	equal(t, "in flight", r.InFlight, 1)
	near(t, "TTFT", r.TTFT.Mean, 150e6)
	near(t, "TPOT", r.TPOT.Mean, 100e6)
	equal(t, "TPOT n", r.TPOT.N, 1)
	equal(t, "TPOT missing", r.TPOT.Missing, 1)
	equal(t, "error", s.Requests[2].Error, "TimeoutError: late")
	nearValue(t, "duration", r.Duration, 0.7)
	s = assemble(t, list, events.Rules{Tokenizer: events.TokensChunks})
	equal(t, "chunks", s.Requests[0].Output, 3)
}

const guideText = `{"metadata":{"version":1},"args":{},"benchmarks":[
{"config":{"x":[{"y":1}]},"requests":{"successful":[{"request_id":"g1","prompt_tokens":4,"output_tokens":3,"info":{` +
	`"status":"completed","timings":{"request_start":1760000000.0,"first_token_iteration":1760000000.25,` +
	`"last_token_iteration":1760000001.0,"request_end":1760000001.25}}},
{"request_id":5}],"errored":[{"request_id":"g2","info":{"error":"boom","timings":{"resolve_start":1760000000.5,` +
	`"request_end":1760000000.75}}}],
"incomplete":[{"request_id":"g3","info":{"timings":{"request_start":1760000001.0,"request_end":1760000002.0}}}],` +
	`"total":null}},
{"requests":{"successful":[{"request_id":"old","prompt_tokens":1,"output_tokens":2,"start_time":1760000010.0,` +
	`"first_token_time":1760000010.5,"last_token_time":1760000011.0,"end_time":1760000011.0}],"errored":[],` +
	`"incomplete":[]}}]}`

func TestGuideLLM(t *testing.T) {
	f, list := openText(t, guideText, events.FileOptions{})
	equal(t, "kind", f.Kind, events.KindGuideLLM)
	equal(t, "bad", f.Bad, 1)
	s := assemble(t, list, events.Rules{})
	r := summarise(t, s, events.ReportOptions{Window: events.Window{Name: events.WindowPhase, Phase: "benchmark-0"}})
	equal(t, "issued", r.Issued, 3)
	equal(t, "failed", r.Failed, 1)
	equal(t, "in flight", r.InFlight, 1)
	near(t, "TTFT", r.TTFT.Mean, 250e6)
	near(t, "latency", r.Latency.Mean, 1250e6)
	equal(t, "error", r.Errors[0].Name, "boom")
	r = summarise(t, s, events.ReportOptions{Window: events.Window{Name: events.WindowPhase, Phase: "benchmark-1"}})
	near(t, "old TTFT", r.TTFT.Mean, 500e6)
	near(t, "old OSL", r.OSL.Mean, 2)
}

// TestLegacyJSONL checks that old recordings keep their rules under new names and
// are anchored by their texts.
func TestLegacyJSONL(t *testing.T) {
	const text = `{"approx_datetime_str":"2026-01-02 03:04:05.000001","event_type":"loadgen_issue_called",` +
		`"sample_uuid":"a","timestamp_ns":1000,"value":null}
{"approx_datetime_str":"x","event_type":"complete","sample_uuid":"a","timestamp_ns":1500,"value":"[\"one \",\"two\"]"}
{"approx_datetime_str":"x","event_type":"complete","sample_uuid":"a","timestamp_ns":2000,"value":["one ","two"]}
{"event_type":"complete"}
`
	f, list := openText(t, text, events.FileOptions{})
	equal(t, "clock", f.Clock, events.ClockAnchored)
	equal(t, "anchor", f.Anchor.Source, "approx_datetime_str")
	equal(t, "bad", f.Bad, 1)
	equal(t, "first", f.FirstNS, 1767323045000001000)
	s := assemble(t, list, events.Rules{})
	equal(t, "legacy", s.Legacy, true)
	equal(t, "latest completion", s.Requests[0].CompleteNS-s.Requests[0].IssuedNS, 1000)
	equal(t, "chunks of the list", s.Requests[0].Output, 2)
	equal(t, "unknown", s.Unknown, 0)
	f, _ = openText(t, text, events.FileOptions{Anchor: events.Anchor{Source: "--same-boot", OffsetNS: 5}})
	equal(t, "given anchor", f.FirstNS, 1005)
}

// TestFinishReason checks that a reason on the completion of today's records counts.
func TestFinishReason(t *testing.T) {
	_, list := openText(t, `{"event_type":"sample.issued","timestamp_ns":1,"sample_uuid":"a","turn":1}
{"event_type":"sample.complete","timestamp_ns":2,"sample_uuid":"a","data":null,"finish_reason":"length"}`,
		events.FileOptions{})
	s := assemble(t, list, events.Rules{})
	equal(t, "finish reason", s.Requests[0].Finish, "length")
	equal(t, "completed", s.Requests[0].CompleteNS, 2)
}

func TestOpenRefuses(t *testing.T) {
	check := func(text string, o events.FileOptions, want string) {
		t.Helper()
		f, err := events.Open("f", strings.NewReader(text), o)
		if err == nil {
			for _, err = range f.Stream(context.Background()) {
				if err != nil {
					break
				}
			}
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got error %v, want %q", text, err, want)
		}
	}
	none := events.FileOptions{}
	check("", none, "known are mlperf-db and events-jsonl")
	check("a,b\n1,2\n", none, "unknown kind")
	check(`{"x":1}`, none, "unknown kind")
	check(`{"version":"1","n_samples_issued":5}`, none, "take events.jsonl")
	check(`{"input_config":{}}`, none, "profile_export.jsonl")
	check("{}", events.FileOptions{Kind: "csv"}, `"csv"`)
	check("SQLite format 3\x00", none, "a database must be a file")
	check(`{"num_prompts":1,"request_throughput":1}`, none, "--save-detailed")
	check(`{"request_throughput":1,"ttfts":[1]}`, none, "no start_times")
	check(`{"ttfts":[1],"start_times":[1,2]}`, none, "differ in length")
	check(`{"ttfts":[1,1,1]}`, events.FileOptions{MaxRequests: 2}, "more than 2 requests")
	check(vllmText, events.FileOptions{Kind: events.KindVLLM, MaxSize: 100}, "larger than 100 bytes")
	check(`{"benchmarks":[{"requests":{"successful":[{`, none, "guidellm")
	_, err := events.Open("f", strings.NewReader("?"), none)
	if !errors.Is(err, events.ErrKind) {
		t.Errorf("got %v, want it to wrap ErrKind", err)
	}
}

// TestLongLine checks that a line over the limit costs itself.
func TestLongLine(t *testing.T) {
	long := `{"event_type":"sample.issued","timestamp_ns":1,"sample_uuid":"a"}` + "\n" + strings.Repeat("x", 600<<10) +
		"\n" +
		`{"event_type":"sample.complete","timestamp_ns":2,"sample_uuid":"a"}`
	f, list := openText(t, long, events.FileOptions{MaxLine: 1000})
	equal(t, "events", len(list), 2)
	equal(t, "bad", f.Bad, 1)
	if f.FirstBad != "line 2: longer than 1000 bytes" {
		t.Errorf("got %q", f.FirstBad)
	}
}

// TestRequestEvents checks that requests written as events come back.
func TestRequestEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := int64(0)
		step := func(name string) int64 {
			at += rapid.Int64Range(1, 1e9).Draw(t, name)
			return at
		}
		maybe := func(name string) int64 {
			if rapid.Bool().Draw(t, "has "+name) {
				return step(name)
			}
			return 0
		}
		text := rapid.StringMatching(`[a-z0-9<>"é]{0,9}`)
		tokens := rapid.IntRange(-1, 99)
		q := events.Request{ID: "x" + text.Draw(t, "id"), IssuedNS: step("issued"), UpstreamNS: maybe("upstream"),
			ByteNS: maybe("byte"), FirstNS: maybe("first"),
			Input: tokens.Draw(t, "isl"), Output: tokens.Draw(t, "osl"), AfterFirst: tokens.Draw(t, "after"),
			Finish: text.Draw(t, "finish"), RequestID: text.Draw(t, "rid"), Endpoint: text.Draw(t, "endpoint"),
			Model: text.Draw(t, "model"),
			Phase: text.Draw(t, "phase"), Conversation: text.Draw(t, "conversation"),
			Turn: rapid.IntRange(0, 3).Draw(t, "turn"), Tracked: true}
		q.LastNS = q.FirstNS
		if q.Output >= 0 {
			q.Source = events.TokensUsage
		}
		if q.CompleteNS = maybe("complete"); q.CompleteNS != 0 {
			q.Status = events.Succeeded
		}
		if rapid.Bool().Draw(t, "fails") {
			q.Status, q.Error, q.HTTPStatus = events.Failed, text.Draw(t, "error"),
				rapid.SampledFrom([]int{0, 200, 500}).Draw(t, "http")
		}
		s, err := events.Assemble(stream(q.Events()), events.Rules{})
		if err != nil || len(s.Requests) != 1 || s.Orphans+s.Unknown+s.BadData != 0 {
			t.Fatalf("got %+v, %v", s, err)
		}
		if diff := cmp.Diff(q, s.Requests[0], cmpopts.IgnoreUnexported(events.Request{})); diff != "" {
			t.Fatalf("request (-told +made):\n%s", diff)
		}
	})
}

// FuzzOpen reads arbitrary files and reports what they give.
func FuzzOpen(f *testing.F) {
	for _, s := range []string{aiperfText, vllmText, guideText, snapshotText, resultText, legacyText,
		`{"event_type":"sample.issued","timestamp_ns":1,"sample_uuid":"a"}`, `{"ttfts":null,"start_times":[null]}`} {
		for _, kind := range []string{"", events.KindMLPerf, events.KindAIPerf, events.KindVLLM, events.KindGuideLLM,
			events.KindSummary} {
			f.Add(s, kind)
		}
	}
	f.Fuzz(func(t *testing.T, text, kind string) {
		defer fuzzbound.Check(t)()
		file, err := events.Open("", strings.NewReader(text),
			events.FileOptions{Kind: kind, MaxLine: 1 << 16, MaxSize: 1 << 20, MaxRequests: 1000})
		if err != nil {
			return
		}
		if file.Kind == events.KindSummary {
			r, err := file.Summarise(events.ReportOptions{})
			if err != nil {
				return
			}
			if data, err := json.Marshal(r); err != nil {
				t.Errorf("encode report: %v in %s", err, data)
			}
			return
		}
		s, err := events.Assemble(file.Stream(t.Context()), events.Rules{Lenient: true, MaxRequests: 1000})
		if err != nil {
			return
		}
		for _, w := range []string{events.WindowTracked, events.WindowLegacy, events.WindowLoadGen, events.WindowSteady} {
			r, err := events.Summarise(s, events.ReportOptions{Window: events.Window{Name: w}})
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range []events.Value{r.QPS, r.QPSAll, r.TPS, r.Duration} {
				if v.Known == (v.Reason != "") || math.IsNaN(v.V) || math.IsInf(v.V, 0) || v.V < 0 && v.Known {
					t.Errorf("window %s: got %+v", w, v)
				}
			}
			if _, err := json.Marshal(r); err != nil {
				t.Errorf("encode report: %v", err)
			}
		}
	})
}

// FuzzAssemble gives one request arbitrary data with every event.
func FuzzAssemble(f *testing.F) {
	f.Add(`["TextModelOutput",["a","b"],["c","d"]]`, "sample.complete", "chars")
	f.Add(`["TextModelOutput",["a"],[]]`, "complete", "words")
	f.Add(`["PromptData","x",[1,2]]`, "sample.issued", "")
	f.Add(`["ErrorData","T","m"]`, "error.generic", "")
	f.Add(`{"osl":5,"token_source":"usage","http_status":500}`, "sample.detail", "usage")
	f.Fuzz(func(t *testing.T, data, kind, tokenizer string) {
		defer fuzzbound.Check(t)()
		list := []metric.Event{ev(1, events.SampleIssued, "a", data), ev(2, kind, "a", data),
			ev(3, events.SampleComplete, "a", data)}
		s, err := events.Assemble(stream(list), events.Rules{Lenient: true, Tokenizer: tokenizer})
		if err != nil {
			return
		}
		if s.Events != 3 || len(s.Requests) > 2 {
			t.Errorf("got %d events, %d requests", s.Events, len(s.Requests))
		}
	})
}

package join_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/events/join"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

const fixtures = "../../testdata/fixtures/server-requests/"

// records are those of one source.
type records struct {
	source metric.ServerSource
	list   []metric.ServerRequest
}

func (r *records) ServerSources(context.Context) ([]metric.ServerSource, error) {
	return []metric.ServerSource{r.source}, nil
}

func (r *records) ServerRequests(context.Context) iter.Seq2[*metric.ServerRequest, error] {
	return func(yield func(*metric.ServerRequest, error) bool) {
		for i := range r.list {
			if !yield(&r.list[i], nil) {
				return
			}
		}
	}
}

func eachLine(t *testing.T, path string, do func(line []byte)) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := bufio.NewScanner(bytes.NewReader(data))
	s.Buffer(nil, 1<<24)
	for s.Scan() {
		do(s.Bytes())
	}
}

// clientsOf reads what a client wrote of its requests.
func clientsOf(t *testing.T, path string) *events.Session {
	t.Helper()
	f, err := os.Open(fixtures + path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var list []metric.Event
	if _, err := events.ReadLines(t.Context(), f, events.LineOptions{}, func(ev metric.Event) {
		list = append(list, ev)
	}); err != nil {
		t.Fatal(err)
	}
	s, err := events.Assemble(func(yield func(*metric.Event, error) bool) {
		for i := range list {
			if !yield(&list[i], nil) {
				return
			}
		}
	}, events.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// spansOf reads spans of vLLM, by hand: the decoder of the program is another one.
func spansOf(t *testing.T, path string) *records {
	t.Helper()
	out := &records{source: metric.ServerSource{ID: 1, Kind: "otlp-json", Name: path,
		ServerClock: metric.ServerClock{Clock: metric.ServerUnix, Resolution: 1}}}
	eachLine(t, fixtures+path, func(line []byte) {
		var doc struct {
			ResourceSpans []struct {
				ScopeSpans []struct {
					Spans []struct {
						Name, TraceID     string
						StartTimeUnixNano string
						Attributes        []struct {
							Key   string
							Value map[string]any
						}
					}
				}
			}
		}
		if err := json.Unmarshal(line, &doc); err != nil {
			t.Fatal(err)
		}
		for _, r := range doc.ResourceSpans {
			for _, s := range r.ScopeSpans {
				for _, span := range s.Spans {
					if span.Name != "llm_request" {
						continue
					}
					q := metric.NewServerRequest()
					q.Source, q.Trace = 1, span.TraceID
					q.ArrivalNS, _ = strconv.ParseInt(span.StartTimeUnixNano, 10, 64)
					for _, a := range span.Attributes {
						for _, v := range a.Value {
							attribute(&q, a.Key, v)
						}
					}
					q.FirstNS, q.FinishNS = q.ArrivalNS+int64(q.TTFT), q.ArrivalNS+int64(q.E2E)
					out.list = append(out.list, q)
				}
			}
		}
	})
	return out
}

func attribute(q *metric.ServerRequest, key string, v any) {
	if id, ok := v.(string); ok && key == "gen_ai.request.id" {
		q.ID = id
	}
	seconds, ok := v.(float64)
	if to := map[string]*time.Duration{"time_to_first_token": &q.TTFT, "e2e": &q.E2E, "time_in_queue": &q.Queue,
		"time_in_model_prefill": &q.Prefill, "time_in_model_decode": &q.Decode}[strings.TrimPrefix(key,
		"gen_ai.latency.")]; to != nil && ok {
		*to = time.Duration(math.Round(seconds * 1e9))
	}
	if s, is := v.(string); is && key == "gen_ai.usage.completion_tokens" {
		q.Output, _ = strconv.ParseInt(s, 10, 64)
	}
}

// rowsOf reads files of SGLang, by hand.
func rowsOf(t *testing.T, folder string) *records {
	t.Helper()
	out := &records{source: metric.ServerSource{ID: 1, Kind: "sglang-requests", Name: folder + "/x",
		ServerClock: metric.ServerClock{Clock: metric.ServerUnix, Resolution: 1}}}
	files, err := filepath.Glob(fixtures + folder + "/*.log")
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		eachLine(t, file, func(line []byte) {
			var row map[string]any
			if json.Unmarshal(line, &row) != nil {
				return
			}
			ns := func(name string) int64 {
				v, _ := row[name].(float64)
				return int64(math.Round(v * 1e9))
			}
			q := metric.NewServerRequest()
			q.Source = 1
			q.ID, _ = row["id"].(string)
			q.ArrivalNS, q.FinishNS = ns("request_received_ts"), ns("request_finished_ts")
			q.E2E = time.Duration(ns("e2e_latency"))
			if _, ok := row["first_token_latency"]; ok {
				q.TTFT, q.Queue = time.Duration(ns("first_token_latency")), time.Duration(ns("queue_time"))
				q.Prefill = time.Duration(ns("prefill_finished_time") - ns("forward_entry_time"))
				q.FirstNS = q.ArrivalNS + int64(q.TTFT)
			}
			if v, ok := row["completion_tokens"].(float64); ok {
				q.Output = int64(v)
			}
			out.list = append(out.list, q)
		})
	}
	return out
}

// whole is a window with nothing of a server in it.
func whole(s *events.Session) *summary.Run {
	first, last := s.Requests[0].IssuedNS, s.LastNS
	return &summary.Run{Window: summary.Window{StartNS: first - second, EndNS: last + second}}
}

func joined(t *testing.T, s *events.Session, rec join.Records, o join.ClockOptions) *join.Result {
	t.Helper()
	r, err := join.Join(t.Context(), s, whole(s), join.Options{Clocks: clocks, Records: rec, ClockOptions: o})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// close holds seconds against those of a fixture, within a microsecond.
func within(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	if got == nil || math.Abs(*got-want) > 1e-6 {
		t.Errorf("%s is %v, want %.9f", what, show(got), want)
	}
}

func show(v *float64) any {
	if v == nil {
		return "not known"
	}
	return *v
}

// want is expected.json of a fixture.
type want struct {
	Join struct {
		Clients        int `json:"clients"`
		Records        int `json:"records"`
		Joined         int `json:"joined_clients"`
		JoinedRecords  int `json:"joined_records"`
		Groups         int `json:"groups_of_several"`
		WithoutClient  int `json:"records_without_client"`
		Ambiguous      int `json:"records_ambiguous"`
		WithoutRecords int `json:"clients_without_record"`
	} `json:"join"`
	Exact map[string]map[string]float64 `json:"exact"`
	Means struct {
		N       int     `json:"n"`
		Client  float64 `json:"client_ttft"`
		Outside float64 `json:"outside"`
		Front   float64 `json:"front"`
		Queue   float64 `json:"queue"`
		Prefill float64 `json:"prefill"`
	} `json:"decomposition_means"`
	OutsideTTFT, OutsideE2E spread
	Mismatches              int `json:"token_mismatches"`
	Alignment               map[string]struct {
		Empty bool
		Worst float64    `json:"worst_gap_s"`
		Mid   [2]float64 `json:"at_middle"`
	} `json:"alignment_client_minus_server"`
	Tail *struct {
		K      int
		IDs    []string           `json:"ids"`
		Excess float64            `json:"excess_s"`
		Share  map[string]float64 `json:"share"`
	} `json:"tail_ttft"`
	TTFT spread `json:"outside_ttft"`
	E2E  spread `json:"outside_e2e"`
}

type spread struct {
	N                        int
	Mean, Min, P50, P99, Max float64
}

func expected(t *testing.T, path string) (w want) {
	t.Helper()
	data, err := os.ReadFile(fixtures + path)
	if err == nil {
		err = json.Unmarshal(data, &w)
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestFixtures joins real spans of vLLM and rows of SGLang with their clients: A3, A5, A8, A10 and A11 of the
// acceptance table, number for number.
func TestFixtures(t *testing.T) {
	for _, c := range []struct {
		name, expected, clients string
		rec                     *records
	}{
		{"vllm", "vllm/expected.json", "vllm/client.jsonl", spansOf(t, "vllm/spans.otlp.jsonl")},
		{"proxy", "vllm/client-proxy.expected.json", "vllm/client-proxy.jsonl", spansOf(t, "vllm/spans.otlp.jsonl")},
		{"quirks", "vllm/quirks.expected.json", "vllm/quirks.client.jsonl", spansOf(t, "vllm/quirks.otlp.jsonl")},
		{"sglang", "sglang/expected.json", "sglang/client.jsonl", rowsOf(t, "sglang")},
		{"step", "sglang-step/expected.json", "sglang-step/client.jsonl", rowsOf(t, "sglang-step")},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, s := expected(t, c.expected), clientsOf(t, c.clients)
			r := joined(t, s, c.rec, join.ClockOptions{Drift: 200e-6})
			w.counts(t, r.Requests)
			w.parts(t, r.Requests)
			w.tail(t, r.Requests.Tail)
			w.exact(t, r.Exact)
			for name, drift := range map[string]float64{"0ppm": 0, "200ppm": 200e-6} {
				w.clock(t, name, joined(t, s, c.rec, join.ClockOptions{Drift: drift}).Requests.Clocks[0])
			}
			var text strings.Builder
			if err := r.Text(&text); err != nil {
				t.Fatal(err)
			}
			t.Log(text.String())
			if _, err := json.Marshal(r); err != nil {
				t.Error(err)
			}
		})
	}
}

func (w *want) counts(t *testing.T, r *join.Requests) {
	t.Helper()
	got := w.Join
	got.Clients, got.Records, got.Joined, got.JoinedRecords = r.Clients, r.Records, r.Joined, r.JoinedRecords
	got.Groups, got.WithoutClient, got.Ambiguous = r.Groups, r.WithoutClient, r.Ambiguous
	if got.WithoutRecords = r.WithoutRecord; got != w.Join {
		t.Errorf("joined %+v, want %+v", got, w.Join)
	}
	if r.Tokens.Differ != w.Mismatches || r.Contradictory != 0 {
		t.Errorf("tokens %+v, contradictory %d, want %d mismatches", r.Tokens, r.Contradictory, w.Mismatches)
	}
}

func (w *want) parts(t *testing.T, r *join.Requests) {
	t.Helper()
	b, m := &r.TTFT, &w.Means
	if b.Requests != m.N {
		t.Errorf("parts of %d requests, want %d", b.Requests, m.N)
	}
	within(t, "client", b.Client, m.Client)
	within(t, "outside", b.Outside, m.Outside)
	within(t, "front", b.Front, m.Front)
	within(t, "queue", b.Queue, m.Queue)
	within(t, "prefill", b.Prefill, m.Prefill)
	within(t, "sum of the parts", b.Client, *b.Outside+*b.Front+*b.Queue+*b.Prefill)
	for name, x := range map[string]struct {
		got  join.Outside
		want spread
	}{"outside of TTFT": {r.OutsideTTFT, w.TTFT}, "outside of E2E": {r.OutsideE2E, w.E2E}} {
		if x.got.Requests != x.want.N {
			t.Errorf("%s of %d requests, want %d", name, x.got.Requests, x.want.N)
		}
		within(t, name+" min", x.got.Min, x.want.Min)
		within(t, name+" p50", x.got.P50, x.want.P50)
		within(t, name+" max", x.got.Max, x.want.Max)
	}
}

func (w *want) tail(t *testing.T, got *join.Tail) {
	t.Helper()
	if w.Tail == nil {
		if got != nil {
			t.Errorf("a tail of too few: %+v", got)
		}
		return
	}
	if got == nil || got.K != w.Tail.K || strings.Join(got.IDs, " ") != strings.Join(w.Tail.IDs, " ") {
		t.Fatalf("tail %+v, want %+v", got, w.Tail)
	}
	within(t, "excess", &got.Excess, w.Tail.Excess)
	for name, v := range map[string]float64{"outside": got.Outside, "front": got.Front, "queue": got.Queue,
		"prefill": got.Prefill} {
		within(t, "share of "+name, &v, w.Tail.Share[name])
	}
}

func (w *want) exact(t *testing.T, list []summary.Recorded) {
	t.Helper()
	for _, e := range list {
		x := w.Exact[strings.TrimSuffix(e.ID, "_s")]
		if x == nil {
			continue
		}
		if e.Status != summary.Unproven || e.Records != int(x["n"]) {
			t.Errorf("%s: %s of %d records, want %v", e.ID, e.Status, e.Records, x["n"])
		}
		within(t, e.ID+" sum", &e.Sum, x["sum"])
		for i, name := range []string{"p50", "p90", "p99"} {
			within(t, e.ID+" "+name, e.Percentiles[i].Value, x[name])
		}
	}
}

func (w *want) clock(t *testing.T, name string, c *join.Clock) {
	t.Helper()
	x := w.Alignment[name]
	if (c.Refused != nil) != x.Empty {
		t.Fatalf("%s: refused %+v, want %v", name, c.Refused, x.Empty)
	}
	if x.Empty {
		if math.Abs(c.Refused.Gap-x.Worst) > 1e-4 || len(c.Refused.IDs) != 2 {
			t.Errorf("%s: gap %v, want %v", name, c.Refused.Gap, x.Worst)
		}
		return
	}
	within(t, name+" from", c.LoS, x.Mid[0])
	within(t, name+" to", c.HiS, x.Mid[1])
}

package otlp_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source/otlp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const fixtures = "../../testdata/fixtures/server-requests/vllm/"

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(fixtures + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// kept is what a decoder or a receiver told.
type kept struct{ all []metric.ServerRequest }

func (k *kept) record(q *metric.ServerRequest) { k.all = append(k.all, *q) }

func decodeFile(t testing.TB, text []byte) ([]metric.ServerRequest, metric.ServerCounts) {
	t.Helper()
	var k kept
	d := otlp.NewDecoder(k.record)
	if err := d.Read(t.Context(), bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return k.all, d.Counts()
}

// TestFile reads a real run: 150 requests and 11 other spans, with the sums of the histograms of that run.
func TestFile(t *testing.T) {
	text := fixture(t, "spans.otlp.jsonl")
	all, counts := decodeFile(t, text)
	if counts != (metric.ServerCounts{Records: 150, Other: 11}) {
		t.Errorf("%+v", counts)
	}
	var ttft, e2e, queue, prefill time.Duration
	for _, q := range all {
		ttft, e2e, queue, prefill = ttft+q.TTFT, e2e+q.E2E, queue+q.Queue, prefill+q.Prefill
		if q.Trace != "" || q.FirstNS != q.ArrivalNS+int64(q.TTFT) || q.SchedNS != 0 || q.Cached != -1 || q.Replica == "" {
			t.Errorf("%+v", q)
		}
	}
	for name, x := range map[string]struct {
		got  time.Duration
		want float64
	}{"ttft": {ttft, 21.611890793}, "e2e": {e2e, 82.822014332}, "queue": {queue, 13.536978249},
		"prefill": {prefill, 4.44665246}} {
		if math.Abs(x.got.Seconds()-x.want) > 1e-6 {
			t.Errorf("%s: %v seconds, want %v", name, x.got.Seconds(), x.want)
		}
	}
	// The same twice is the same once.
	if all, counts := decodeFile(t, append(bytes.TrimSpace(text), append([]byte("\n"), text...)...)); len(all) != 150 ||
		counts.Seen != 150 {
		t.Errorf("twice: %d records, %+v", len(all), counts)
	}
	quirks, counts := decodeFile(t, fixture(t, "quirks.otlp.jsonl"))
	traced := 0
	for _, q := range quirks {
		if q.Trace != "" {
			traced++
			if q.ID != "cmpl-traced-0" || q.Trace != "0af7651916cd43dd8448eb211c80319c" {
				t.Errorf("%+v", q)
			}
		}
	}
	if counts.Records != 9 || traced != 1 {
		t.Errorf("quirks: %+v, %d traced", counts, traced)
	}
}

func listen(t testing.TB, record func(*metric.ServerRequest)) *otlp.Receiver {
	t.Helper()
	r, err := otlp.Listen(t.Context(), "127.0.0.1:0", record)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- r.Serve() }()
	t.Cleanup(func() {
		if err := errors.Join(r.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	return r
}

// codec passes messages through as bytes.
type codec struct{}

func (codec) Name() string { return "proto" }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

const exportMethod = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

func dial(t testing.TB, r *otlp.Receiver) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient("passthrough:///"+r.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec{})))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func call(ctx context.Context, c *grpc.ClientConn, message []byte, o ...grpc.CallOption) error {
	var answer []byte
	err := c.Invoke(ctx, exportMethod, message, &answer, o...)
	if err == nil && len(answer) != 0 {
		return fmt.Errorf("answer %x", answer)
	}
	return err
}

func post(t testing.TB, r *otlp.Receiver, kind, encoding string, body []byte) int {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.Addr().String()+"/v1/traces",
		bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", kind)
	if encoding != "" {
		q.Header.Set("Content-Encoding", encoding)
	}
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Do(q)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(resp.Body)
	if err != nil || bytes.Contains(answer, []byte("PRIVATE")) {
		t.Errorf("%v: answer %q", err, answer)
	}
	resp.Body.Close()
	return resp.StatusCode
}

func zipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestWays sends the batch of a real exporter over gRPC and HTTP, plain and compressed, and reads the same spans as
// JSON: 48 records each, all equal.
func TestWays(t *testing.T) {
	batch := fixture(t, "batch.pb")
	var want kept
	if err := otlp.NewDecoder(want.record).Protobuf(batch); err != nil || len(want.all) != 48 {
		t.Fatalf("%d records, %v", len(want.all), err)
	}
	ids := map[string]bool{}
	for _, q := range want.all {
		ids[q.ID] = true
	}
	var fromJSON []metric.ServerRequest
	all, _ := decodeFile(t, fixture(t, "spans.otlp.jsonl"))
	for _, q := range all {
		if ids[q.ID] {
			fromJSON = append(fromJSON, q)
		}
	}
	if d := cmp.Diff(want.all, fromJSON); d != "" {
		t.Errorf("as JSON: %s", d)
	}
	for name, send := range map[string]func(*otlp.Receiver) error{
		"gRPC": func(r *otlp.Receiver) error {
			c := dial(t, r)
			return errors.Join(call(t.Context(), c, batch), c.Close())
		},
		"gRPC, gzip": func(r *otlp.Receiver) error {
			c := dial(t, r)
			return errors.Join(call(t.Context(), c, batch, grpc.UseCompressor("gzip")), c.Close())
		},
		"HTTP": func(r *otlp.Receiver) error {
			return want200(post(t, r, "application/x-protobuf", "", batch))
		},
		"HTTP, gzip": func(r *otlp.Receiver) error {
			return want200(post(t, r, "application/x-protobuf", "gzip", zipped(t, batch)))
		},
	} {
		var got kept
		r := listen(t, got.record)
		if err := send(r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := send(r); err != nil { // again, as after an answer that was lost
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(want.all, got.all); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if c := r.Counts(); c.Records != 48 || c.Seen != 48 || c.Bad != 0 {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func want200(status int) error {
	if status != http.StatusOK {
		return fmt.Errorf("status %d", status)
	}
	return nil
}

// TestRefused sends what is no trace, too large, or compressed too well. Nothing of it is retried or kept, and what
// follows is taken.
func TestRefused(t *testing.T) {
	var got kept
	r := listen(t, got.record)
	c := dial(t, r)
	defer c.Close()
	bomb := zipped(t, make([]byte, 15<<20))
	for name, x := range map[string]struct {
		message []byte
		want    codes.Code
	}{"no message": {[]byte("PRIVATE no message"), codes.InvalidArgument},
		"too large": {make([]byte, 17<<20), codes.InvalidArgument}} {
		err := call(t.Context(), c, x.message, grpc.MaxCallSendMsgSize(32<<20))
		if status.Code(err) != x.want || strings.Contains(fmt.Sprint(err), "PRIVATE") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.Invoke(t.Context(), "/opentelemetry.proto.collector.logs.v1.LogsService/Export", []byte{},
		new([]byte)); status.Code(err) != codes.Unimplemented {
		t.Errorf("logs: %v", err)
	}
	for name, x := range map[string]struct {
		kind, encoding string
		body           []byte
		want           int
	}{"no JSON": {"application/json", "", []byte(`{"PRIVATE`), 400}, "bomb": {"application/x-protobuf", "gzip", bomb, 413},
		"too large": {"application/json", "", make([]byte, 17<<20), 413}, "zstd": {"application/json", "zstd", nil, 415},
		"no gzip": {"application/json", "gzip", []byte("PRIVATE"), 400}, "text": {"text/plain", "", []byte("{}"), 415},
		"cut gzip": {"application/json", "gzip", zipped(t, []byte(`{"resourceSpans":[]}`))[:20], 400}} {
		if status := post(t, r, x.kind, x.encoding, x.body); status != x.want {
			t.Errorf("%s: %d, want %d", name, status, x.want)
		}
	}
	if err := call(t.Context(), c, fixture(t, "batch.pb")); err != nil || len(got.all) != 48 {
		t.Errorf("%d records after it, %v", len(got.all), err)
	}
	if n := r.Counts(); n.Bad != 2 || strings.Contains(n.FirstBad, "PRIVATE") {
		t.Errorf("%+v", n)
	}
}

// TestConnections opens more connections than there may be: those beyond are closed, and one that is free is taken.
func TestConnections(t *testing.T) {
	r := listen(t, func(*metric.ServerRequest) {})
	var open []net.Conn
	for range 64 {
		c, err := net.Dial("tcp", r.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	beyond, err := net.Dial("tcp", r.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := beyond.Read(make([]byte, 1)); err == nil {
		t.Error("a connection beyond the limit is served")
	}
	beyond.Close()
	for _, c := range open {
		c.Close()
	}
	for c := range 1000 { // until the server has seen the end of one
		q, err := net.Dial("tcp", r.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(q, "GET / HTTP/1.0\r\n\r\n")
		answer, _ := io.ReadAll(q)
		q.Close()
		if len(answer) > 0 {
			return
		}
		if c == 999 {
			t.Error("none is free again")
		}
	}
}

// appendField appends a field with a length.
func appendField(b []byte, number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), content)
}

// one is a message of one span with attributes of text, which are on no list, and its name.
func one(name string, attributes map[string]string, more []byte) []byte {
	span := appendField(nil, 5, []byte(name))
	span = protowire.AppendFixed64(protowire.AppendTag(span, 7, protowire.Fixed64Type), 1_795_337_043_000_000_000)
	for key, text := range attributes {
		kv := appendField(appendField(nil, 1, []byte(key)), 2, appendField(nil, 1, []byte(text)))
		span = appendField(span, 9, kv)
	}
	span = append(span, more...)
	return appendField(nil, 1, appendField(nil, 2, appendField(nil, 2, span)))
}

func number(key string, v float64) []byte {
	x := protowire.AppendFixed64(protowire.AppendTag(nil, 4, protowire.Fixed64Type), math.Float64bits(v))
	return appendField(nil, 9, appendField(appendField(nil, 1, []byte(key)), 2, x))
}

// TestBadSpans counts spans that cannot be true as bad, and names none of their texts.
func TestBadSpans(t *testing.T) {
	id := map[string]string{"gen_ai.request.id": "PRIVATE"}
	for name, x := range map[string]struct {
		message []byte
		want    string
	}{
		"no id":        {one("llm_request", nil, nil), "it has no id"},
		"NaN":          {one("llm_request", id, number("gen_ai.latency.e2e", math.NaN())), "no number of seconds"},
		"negative":     {one("llm_request", id, number("gen_ai.latency.e2e", -1)), "no number of seconds"},
		"more than 24": {one("llm_request", id, number("gen_ai.latency.e2e", 90_000)), "longer than 24h"},
		"half a token": {one("llm_request", id, number("gen_ai.usage.prompt_tokens", 1.5)), "count of tokens"},
		"text":         {one("llm_request", map[string]string{"gen_ai.latency.e2e": "PRIVATE"}, nil), "no number of seconds"},
		"long id":      {one("llm_request", map[string]string{"gen_ai.request.id": strings.Repeat("x", 300)}, nil), "an id"},
	} {
		var got kept
		d := otlp.NewDecoder(got.record)
		if err := d.Protobuf(x.message); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		c := d.Counts()
		if c.Bad != 1 || len(got.all) > 0 || !strings.Contains(c.FirstBad, x.want) || strings.Contains(c.FirstBad, "PRIV") {
			t.Errorf("%s: %+v", name, c)
		}
	}
	for _, line := range []string{"{", "[1]", `{"resourceSpans":3}`, `{"resourceSpans":[{"scopeSpans":[{"spans":[4]}]}]}`,
		`"PRIVATE`, strings.Repeat("[", 20_000)} {
		if _, c := decodeFile(t, []byte(line+"\n\n")); c.Bad != 1 || !strings.HasPrefix(c.FirstBad, "line 1: it is no OTLP") {
			t.Errorf("%.20s: %+v", line, c)
		}
	}
	if _, c := decodeFile(t, append(bytes.Repeat([]byte("x"), 17<<20), '\n')); c.FirstBad != "line 1: longer than 16 MiB" {
		t.Errorf("%+v", c)
	}
}

// TestPrivate puts prompts into every place of a span that may hold text: none is in a record or an error.
func TestPrivate(t *testing.T) {
	private := []byte("PRIVATE")
	more := appendField(nil, 3, private)                       // trace state
	more = appendField(more, 11, appendField(nil, 2, private)) // an event
	more = appendField(more, 15, appendField(nil, 2, private)) // message of the status
	more = append(more, number("gen_ai.latency.e2e", 1)...)    // what makes it a request
	more = appendField(more, 9, appendField(appendField(nil, 1, []byte("gen_ai.prompt")), 2, more))
	message := one("PRIVATE", map[string]string{"gen_ai.request.id": "a", "gen_ai.prompt": "PRIVATE",
		"gen_ai.completion": "PRIVATE", "PRIVATE": "PRIVATE"}, more)
	var got kept
	d := otlp.NewDecoder(got.record)
	if err := d.Protobuf(message); err != nil || len(got.all) != 1 {
		t.Fatalf("%d records, %v, %+v", len(got.all), err, d.Counts())
	}
	line := `{"resourceSpans":[{"resource":{"attributes":[{"key":"PRIVATE","value":{"stringValue":"PRIVATE"}}]},
		"scopeSpans":[{"spans":[{"name":"PRIVATE","startTimeUnixNano":1795337043000000000,"events":[{"name":"PRIVATE"}],
		"status":{"message":"PRIVATE","code":2},"attributes":[{"key":"gen_ai.request.id","value":{"stringValue":"b"}},
		{"key":"gen_ai.prompt","value":{"stringValue":"PRIVATE"}},{"value":{"doubleValue":1.5},"key":"gen_ai.latency.e2e"},
		{"key":"gen_ai.response.finish_reasons","value":{"arrayValue":{"values":[{"stringValue":"stop"}]}}}]}]}]}]}`
	if err := d.JSON([]byte(line)); err != nil || len(got.all) != 2 {
		t.Fatalf("%d records, %v, %+v", len(got.all), err, d.Counts())
	}
	if text := fmt.Sprintf("%+v %+v", got.all, d.Counts()); strings.Contains(text, "PRIVATE") {
		t.Error(text)
	}
	if q := got.all[1]; q.Finish != "stop" || q.Status != "error" || q.E2E != 1500*time.Millisecond || q.Prefill != -1 {
		t.Errorf("%+v", q)
	}
}

// TestAllocations decodes a batch with few allocations: two texts of a record, and no more.
func TestAllocations(t *testing.T) {
	batch := fixture(t, "batch.pb")
	n := testing.AllocsPerRun(20, func() {
		if err := otlp.NewDecoder(func(*metric.ServerRequest) {}).Protobuf(batch); err != nil {
			t.Error(err)
		}
	})
	if n > 48*4 {
		t.Errorf("%v allocations for 48 spans", n)
	}
}

func FuzzProtobuf(f *testing.F) {
	b, err := os.ReadFile(fixtures + "batch.pb")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b[:2000])
	f.Add(one("llm_request", map[string]string{"gen_ai.request.id": "a"}, number("gen_ai.latency.e2e", 1)))
	f.Fuzz(func(t *testing.T, b []byte) { fuzz(t, b, (*otlp.Decoder).Protobuf) })
}

func FuzzJSON(f *testing.F) {
	b, err := os.ReadFile(fixtures + "quirks.otlp.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	line, _, _ := bytes.Cut(b, []byte("\n"))
	f.Add(line[:min(len(line), 3000)])
	f.Add([]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"spanId":"0",` +
		`"attributes":[{"value":{"intValue":"7"}}]}]}]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) { fuzz(t, b, (*otlp.Decoder).JSON) })
}

// fuzz holds that what is told can be true, that all is counted, and that errors have words of ours alone.
func fuzz(t *testing.T, b []byte, decode func(*otlp.Decoder, []byte) error) {
	var got kept
	d := otlp.NewDecoder(got.record)
	err := decode(d, b)
	if err != nil && !strings.HasPrefix(err.Error(), "it is no ") {
		t.Errorf("%v", err)
	}
	for _, q := range got.all {
		if err := q.Check(metric.ServerUnix); err != nil || q.ArrivalNS == 0 {
			t.Errorf("%+v: %v", q, err)
		}
	}
	if c := d.Counts(); c.Records != int64(len(got.all)) {
		t.Errorf("%d records, %+v", len(got.all), c)
	}
}

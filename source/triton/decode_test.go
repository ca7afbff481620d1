package triton_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/internal/fuzzbound"
	"github.com/scrapestat/scrapestat/internal/testkit"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source/triton"
)

// fixture reads an answer of the statistics extension.
func fixture(t testing.TB, name string) []byte {
	t.Helper()
	return testkit.Data(t, "fixtures/triton/"+name)
}

// tape is what a decoder told so far.
type tape struct {
	t    testing.TB
	dict metric.Schema
	bits map[int]uint64
	at   int64
}

func newTape(t testing.TB) *tape { return &tape{t: t, bits: map[int]uint64{}} }

func (p *tape) take(s *metric.Snapshot) {
	p.t.Helper()
	if !s.Outcome.Stored() {
		return
	}
	if err := p.dict.Grow(&s.DictDelta); err != nil {
		p.t.Fatal(err)
	}
	if s.Delta.Full {
		clear(p.bits)
	}
	for i, slot := range s.Delta.Slots {
		p.bits[int(slot)] = s.Delta.Bits[i]
	}
}

// values lists the present series in the order of the dictionary, integers with
// all digits; creation times are left out.
func (p *tape) values() []string {
	var out []string
	for i, slot := range p.dict.Slots {
		bits, ok := p.bits[i]
		if !ok || slot.Role == metric.RoleCreated {
			continue
		}
		f := metric.Delta{Bits: []uint64{bits}}
		text := fmt.Sprint(f.Float(0))
		if slot.Integer {
			text = fmt.Sprint(bits)
		}
		out = append(out, p.dict.FamilyOf(slot.Series).Name+p.dict.Series[slot.Series].Labels.String()+" "+text)
	}
	return out
}

// with returns the values whose text has all of the parts.
func (p *tape) with(parts ...string) []string {
	return slices.DeleteFunc(p.values(), func(v string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(v, part) })
	})
}

func (p *tape) want(value string) {
	p.t.Helper()
	if !slices.Contains(p.values(), value) {
		p.t.Errorf("there is no %s in\n%s", value, strings.Join(p.values(), "\n"))
	}
}

func (p *tape) none(parts ...string) {
	p.t.Helper()
	if got := p.with(parts...); len(got) > 0 {
		p.t.Errorf("found %v", got)
	}
}

func newDecoder(t testing.TB, o triton.Options) *triton.Decoder {
	t.Helper()
	d, err := triton.NewDecoder(o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// json decodes bodies one second apart and returns the last snapshot.
func (p *tape) json(d *triton.Decoder, bodies ...string) metric.Snapshot {
	p.t.Helper()
	var s metric.Snapshot
	for _, b := range bodies {
		p.at += 1e9
		s = metric.Snapshot{SentNS: p.at}
		d.JSON([]byte(b), &s)
		p.take(&s)
	}
	return s
}

const quoted = "triton_stats_requests_total{model=\"%s\",stat=\"%s\",version=\"1\"} %d"

// T4: a JSON form of protobuf, with strings for numbers and zeros left out.
func TestT4ProtoJSON(t *testing.T) {
	p := newTape(t)
	s := p.json(newDecoder(t, triton.Options{}), string(fixture(t, "protojson_strings.json")))
	if s.Outcome != metric.OK || s.Err != "" || len(s.Drops) > 0 {
		t.Fatalf("outcome %v %q %v", s.Outcome, s.Err, s.Drops)
	}
	p.want(fmt.Sprintf(quoted, "ens", "success", 104))
	p.want(fmt.Sprintf(quoted, "ens", "fail", 0))
	p.want(`triton_stats_request_duration_nanoseconds_total{model="ens",stat="success",version="1"} 2094905413`)
	p.want(`triton_stats_request_duration_nanoseconds_total{model="ens",stat="fail",version="1"} 0`)
	p.none("triton_stats_batch")
}

// T5: one request that failed.
func TestT5OnlyFailures(t *testing.T) {
	p := newTape(t)
	p.json(newDecoder(t, triton.Options{}), string(fixture(t, "failonly.json")))
	p.want(fmt.Sprintf(quoted, "m", "fail", 1))
	p.want(`triton_stats_request_duration_nanoseconds_total{model="m",stat="fail",version="1"} 3141593`)
	p.none("last_inference")
	p.none("cache_hit")
}

// T7: the responses of a decoupled model, in the order of their numbers.
func TestT7DecoupledResponses(t *testing.T) {
	p := newTape(t)
	p.json(newDecoder(t, triton.Options{}), string(fixture(t, "decoupled_response_stats.json")))
	var order []string
	for _, v := range p.with("triton_stats_responses_total", `stat="success"`) {
		order = append(order, strings.Split(strings.Split(v, `response="`)[1], `"`)[0])
	}
	if !slices.Equal(order, []string{"0", "2", "10"}) {
		t.Errorf("order of responses is %v", order)
	}
	p.none(`response="0"`, `stat="cancel"`)
	p.want(`triton_stats_responses_total{model="square_int32",response="10",stat="cancel",version="1"} 1`)
	p.want(`triton_stats_response_duration_nanoseconds_total{model="square_int32",response="10",stat="cancel",` +
		`version="1"} 400000000`)
	p.want(`triton_stats_responses_total{model="square_int32",response="2",stat="cancel",version="1"} 0`)
	p.want(`triton_stats_memory_usage_bytes{memory_id="0",memory_type="CPU_PINNED",model="square_int32",version="1"} ` +
		`1048576`)
}

// The wire form of a fixture gives the series and values of its JSON.
func TestWireForm(t *testing.T) {
	for name, text := range map[string][]byte{
		"stats_load":               testkit.Data(t, "bodies/triton-stats-load.json"),
		"decoupled_response_stats": fixture(t, "decoupled_response_stats.json"),
		"grpc_edge_values":         fixture(t, "grpc_edge_values.json"),
	} {
		a, b := newTape(t), newTape(t)
		s := a.json(newDecoder(t, triton.Options{}), string(text))
		if s.Outcome != metric.OK {
			t.Errorf("%s: %v %s", name, s.Outcome, s.Err)
		}
		s = metric.Snapshot{SentNS: 1e9}
		newDecoder(t, triton.Options{}).Protobuf(fixture(t, name+".binpb"), &s)
		b.take(&s)
		slices.Sort(a.values())
		av, bv := a.values(), b.values()
		slices.Sort(av)
		slices.Sort(bv)
		if !slices.Equal(av, bv) {
			t.Errorf("%s: JSON gives\n%s\nthe wire form\n%s", name, strings.Join(av, "\n"), strings.Join(bv, "\n"))
		}
	}
}

// bodyOf is an answer with one model whose counters are n.
func bodyOf(n int, more string) string {
	return fmt.Sprintf(`{"model_stats":[{"name":"m","version":"1","inference_count":%d,"execution_count":%d,`+
		`"inference_stats":{"success":{"count":%d,"ns":%d}}%s}]}`, n, n, n, n, more)
}

// A value that is no unsigned 64-bit integer costs itself; the rest is stored.
func TestBadValues(t *testing.T) {
	check := func(value string) {
		t.Helper()
		p := newTape(t)
		s := p.json(newDecoder(t, triton.Options{}),
			`{"model_stats":[{"name":"m","version":"1","inference_count":`+value+`,"execution_count":7}]}`)
		if s.Outcome != metric.Partial || s.Lost() != 1 || s.Drops[0].Reason != "parse" || s.Lines != len(p.values())+1 {
			t.Errorf("%s: %v, lines %d, drops %v", value, s.Outcome, s.Lines, s.Drops)
		}
		p.want(`triton_stats_executions_total{model="m",version="1"} 7`)
		p.none("inferences_total")
	}
	check("-1")
	check("1.5")
	check("1e3")
	check("18446744073709551616")
	check(`"0x1"`)
	check("true")
	check("{}")
	check("[1]")
	check(`""`)
	p := newTape(t)
	p.json(newDecoder(t, triton.Options{}), `{"model_stats":[{"name":"m\u0022","version":"1","inference_count":null,`+
		`"execution_count":18446744073709551615,"other":[{"x":[1,"]"]}]}]}`)
	p.want(`triton_stats_executions_total{model="m\"",version="1"} 18446744073709551615`)
	p.none("inferences_total")
}

// Bodies that are no answer end in an outcome, and the next poll goes on.
func TestNoAnswers(t *testing.T) {
	p := newTape(t)
	d := newDecoder(t, triton.Options{})
	p.json(d, bodyOf(1, ""))
	for _, body := range []string{"", "<html>", `{"error":"x"}`, `[]`, `{"model_stats":5}`, `{"model_stats":[`,
		`{"models":[{}]}`} {
		if s := p.json(d, body); s.Outcome != metric.NotPrometheus || s.Err == "" || !s.DictDelta.Empty() ||
			len(s.Delta.Slots) > 0 {
			t.Errorf("%q: %v %q", body, s.Outcome, s.Err)
		}
	}
	s := p.json(d, bodyOf(2, ""))
	if s.Outcome != metric.OK {
		t.Errorf("after them: %v %s", s.Outcome, s.Err)
	}
	p.want(`triton_stats_inferences_total{model="m",version="1"} 2`)
}

// A model that vanishes is told once; when it is back it counts from zero.
func TestVanish(t *testing.T) {
	p := newTape(t)
	d := newDecoder(t, triton.Options{})
	const ready = `triton_stats_model_ready{model="m",version="1"} `
	p.json(d, bodyOf(5, ""))
	p.want(ready + "1")
	p.json(d, `{"model_stats":[]}`)
	p.want(ready + "0")
	p.none("inferences_total")
	p.json(d, `{"model_stats":[]}`)
	p.none("model_ready")
	before := p.at
	p.json(d, bodyOf(9, ""))
	p.want(ready + "1")
	for i, slot := range p.dict.Slots {
		if f := (metric.Delta{Bits: []uint64{p.bits[i]}}); slot.Role == metric.RoleCreated &&
			f.Float(0) != float64(before)/1e9 &&
			p.dict.FamilyOf(slot.Series).Name != "triton_stats_torn_reads_total" {
			t.Errorf("%s was created at %v, want that of the poll before", p.dict.FamilyOf(slot.Series).Name, f.Float(0))
		}
	}
}

// A poll that caught the server between two counters is stored, and counted when what did not add up is gone; what
// stays or grows is how the server counts.
func TestTornReads(t *testing.T) {
	at := func(success, queue int) string {
		return fmt.Sprintf(`{"model_stats":[{"name":"m","version":"1","inference_count":1,`+
			`"inference_stats":{"success":{"count":%d,"ns":1},"queue":{"count":%d,"ns":1}}}]}`, success, queue)
	}
	check := func(want string, bodies ...string) {
		t.Helper()
		p := newTape(t)
		if s := p.json(newDecoder(t, triton.Options{}), bodies...); s.Outcome != metric.OK {
			t.Errorf("%v %s", s.Outcome, s.Err)
		}
		p.want(`triton_stats_torn_reads_total{model="m",version="1"} ` + want)
	}
	check("0", at(1, 1), at(2, 2), at(3, 3))
	check("1", at(1, 1), at(3, 2), at(3, 3))
	check("0", at(3, 2), at(4, 3), at(5, 4))
	check("0", at(1, 1), at(5, 2), at(9, 3), at(13, 4))  // 0, 3, 6, 9
	check("1", at(1, 1), at(5, 2), at(6, 6), at(7, 7))   // 0, 3, 0, 0
	check("2", at(1, 1), at(5, 2), at(6, 4), at(7, 7))   // 0, 3, 2, 0
	check("0", at(9, 1), `{"model_stats":[]}`, at(2, 2)) // another life
	check("0", at(9, 1), at(2, 2))                       // loaded again
}

// Limits cost what exceeds them, counted and named.
func TestLimits(t *testing.T) {
	check := func(l triton.Limits, body, reason string, lost int) {
		t.Helper()
		p := newTape(t)
		s := p.json(newDecoder(t, triton.Options{Limits: l}), body)
		if s.Outcome != metric.Partial || s.Lost() != lost || s.Drops[0].Reason != reason || s.Lines != len(p.values())+lost {
			t.Errorf("%s: %v, lines %d of %d stored, drops %+v", reason, s.Outcome, s.Lines, len(p.values()), s.Drops)
		}
	}
	two := `{"model_stats":[{"name":"a","version":"1","inference_count":1},{"name":"b","version":"1",` +
		`"inference_count":1}]}`
	check(triton.Limits{Models: 1}, two, "model_limit", 1)
	check(triton.Limits{Series: 4}, two, "series_limit", 2)
	check(triton.Limits{Batches: 1},
		bodyOf(1, `,"batch_stats":[{"batch_size":1},{"batch_size":2,"compute_infer":{"count":1,"ns":1}}]`), "batch_limit", 6)
	check(triton.Limits{Responses: 1}, bodyOf(1, `,"response_stats":{"0":{},"1":{}}`), "response_limit", 12)
	check(triton.Limits{ValueLength: 4}, `{"model_stats":[{"name":"abcde","version":"1"}]}`, "value_limit", 1)
	check(triton.Limits{}, bodyOf(1, `,"batch_stats":[{"batch_size":2,"compute_infer":{"count":1,"ns":1}},`+
		`{"batch_size":2,"compute_infer":{"count":5,"ns":1}}]`), "duplicate_series", 2)
	check(triton.Limits{}, `{"model_stats":[{"name":"a","version":"1"},{"name":"a","version":"1"}]}`, "duplicate_series",
		1)
	check(triton.Limits{}, bodyOf(1,
		`,"memory_usage":[{"type":"GPU","id":0,"byte_size":18446744073709551615},{"type":"GPU","id":0,"byte_size":1}]`),
		"overflow", 1)

	p := newTape(t)
	if s := p.json(newDecoder(t, triton.Options{Limits: triton.Limits{Samples: 3}}), two); s.Outcome != metric.TooLarge ||
		!strings.Contains(s.Err, "--max-samples") {
		t.Errorf("samples: %v %q", s.Outcome, s.Err)
	}
	if s := p.json(newDecoder(t, triton.Options{Limits: triton.Limits{Body: 10}}), two); s.Outcome != metric.TooLarge {
		t.Errorf("body: %v", s.Outcome)
	}
	keep := func(name string) bool { return name == "triton_stats_inferences_total" }
	s := p.json(newDecoder(t, triton.Options{Keep: keep}), two)
	if s.Outcome != metric.OK || s.Lost() != 0 || s.Dropped() == 0 {
		t.Errorf("filtered: %v, lost %d, dropped %d", s.Outcome, s.Lost(), s.Dropped())
	}
	p = newTape(t)
	p.json(newDecoder(t, triton.Options{}),
		bodyOf(1, `,"memory_usage":[{"type":"GPU","id":0,"byte_size":2},{"type":"GPU","id":0,"byte_size":3}]`))
	p.want(`triton_stats_memory_usage_bytes{memory_id="0",memory_type="GPU",model="m",version="1"} 5`)
}

// checkDecoded checks what holds for any body: the contract of package metric,
// the account of values, and memory that the body pays for.
func checkDecoded(t *testing.T, s *metric.Snapshot, p *tape, body []byte) {
	t.Helper()
	p.take(s)
	if s.Outcome.Stored() {
		if got := len(p.values()); got != s.Lines-s.Dropped() {
			t.Errorf("%d values stored, %d lines less %d dropped", got, s.Lines, s.Dropped())
		}
	}
	if n := len(p.dict.Slots); n > 64+8*len(body) {
		t.Errorf("%d slots of a body of %d bytes", n, len(body))
	}
	if len(s.Drops) > 16 || len(s.Err) > 500 {
		t.Errorf("%d kinds of drops, error of %d bytes", len(s.Drops), len(s.Err))
	}
}

func FuzzJSON(f *testing.F) {
	for _, seed := range []string{bodyOf(1, ""), `{"modelStats":[{"name":"m","batchStats":[{"batchSize":"4",` +
		`"computeInfer":{"count":"1"}}],"responseStats":{"10":{"success":{}}}}]}`,
		bodyOf(3, `,"memory_usage":[{"type":"GPU","id":-1,"byte_size":18446744073709551615}],`+
			`"batch_stats":[{"batch_size":1}],"response_stats":{"2":{},"x":5}`),
		`{"model_stats":[{"name":"\ud800","version":{}}]}`, `{"model_stats":[[[{}]]]}`, `{"model_stats":[]} `} {
		f.Add([]byte(seed), []byte(bodyOf(0, "")))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		defer fuzzbound.Check(t)()
		d, p := newDecoder(t, triton.Options{Limits: triton.Limits{Models: 50, Series: 500}}), newTape(t)
		for i, body := range [][]byte{a, b, a} {
			s := metric.Snapshot{SentNS: int64(i+1) * 1e9}
			d.JSON(body, &s)
			checkDecoded(t, &s, p, append(a, b...))
		}
	})
}

func FuzzProtobuf(f *testing.F) {
	f.Add([]byte{}, []byte("\x0a\x05\x0a\x01m\x20\x05"))
	f.Add([]byte("\x0a\x0f\x0a\x01m\x12\x011\x3a\x07\x08\x02\x1a\x03\x08\x01\x10"),
		[]byte("\x0a\x0b\x42\x09\x0a\x01G\x10\xff\xff\xff\xff\x0f"))
	f.Add([]byte("\x0a\x0d\x4a\x0b\x0a\x0210\x12\x05\x1a\x03\x08\x01\x10\x02"), []byte("\x0b\x0b\x0b\x0c\x0c\x0c"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		defer fuzzbound.Check(t)()
		d, p := newDecoder(t, triton.Options{Limits: triton.Limits{Models: 50, Series: 500}}), newTape(t)
		for i, body := range [][]byte{a, b, a} {
			s := metric.Snapshot{SentNS: int64(i+1) * 1e9}
			d.Protobuf(body, &s)
			checkDecoded(t, &s, p, append(a, b...))
		}
	})
}

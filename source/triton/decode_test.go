package triton_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source/triton"
)

// fixture reads a file of the shared folder; the test is skipped without one.
func fixture(t testing.TB, name string) []byte {
	t.Helper()
	dir := os.Getenv("SCRAPESTAT_SHARED")
	if dir == "" {
		t.Skip("SCRAPESTAT_SHARED is not set")
	}
	b, err := os.ReadFile(filepath.Join(dir, "fixtures", "triton", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// tape is what a decoder told so far.
type tape struct {
	t    testing.TB
	dict metric.Dict
	bits map[int]uint64
	at   int64
}

func newTape(t testing.TB) *tape { return &tape{t: t, bits: map[int]uint64{}} }

func (p *tape) take(s *metric.Snapshot) {
	p.t.Helper()
	if !s.Outcome.Stored() {
		return
	}
	if err := p.dict.Grow(&s.Growth); err != nil {
		p.t.Fatal(err)
	}
	if s.Frame.Full {
		clear(p.bits)
	}
	for i, slot := range s.Frame.Slots {
		p.bits[int(slot)] = s.Frame.Bits[i]
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
		f := metric.Frame{Bits: []uint64{bits}}
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
	s := p.json(newDecoder(t, triton.Options{}), string(fixture(t, "cap_protojson_strings_2023.json")))
	if s.Outcome != metric.OK || s.Err != "" || len(s.Drops) > 0 {
		t.Fatalf("outcome %v %q %v", s.Outcome, s.Err, s.Drops)
	}
	p.want(fmt.Sprintf(quoted, "ens_y", "success", 3076))
	p.want(fmt.Sprintf(quoted, "ens_y", "fail", 0))
	p.want(`triton_stats_request_duration_nanoseconds_total{model="ens_y",stat="success",version="1"} 13579332296838`)
	p.want(`triton_stats_request_duration_nanoseconds_total{model="ens_y",stat="fail",version="1"} 0`)
	p.none("triton_stats_batch")
}

// T5: one request that failed.
func TestT5OnlyFailures(t *testing.T) {
	p := newTape(t)
	p.json(newDecoder(t, triton.Options{}), string(fixture(t, "cap_failonly_2021.json")))
	p.want(fmt.Sprintf(quoted, "m", "fail", 1))
	p.want(`triton_stats_request_duration_nanoseconds_total{model="m",stat="fail",version="1"} 2919154`)
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
	p.want(`triton_stats_response_duration_nanoseconds_total{model="square_int32",response="10",stat="cancel",version="1"} 400000000`)
	p.want(`triton_stats_responses_total{model="square_int32",response="2",stat="cancel",version="1"} 0`)
	p.want(`triton_stats_memory_usage_bytes{memory_id="0",memory_type="CPU_PINNED",model="square_int32",version="1"} 1048576`)
}

// The wire form of a fixture gives the series and values of its JSON.
func TestWireForm(t *testing.T) {
	for _, name := range []string{"cap_dynbatch_2025", "decoupled_response_stats", "grpc_edge_values"} {
		a, b := newTape(t), newTape(t)
		s := a.json(newDecoder(t, triton.Options{}), string(fixture(t, name+".json")))
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

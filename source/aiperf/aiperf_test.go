package aiperf_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/fuzzbound"
	"github.com/scrapestat/scrapestat/internal/sourcetest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source/aiperf"
)

const two = `{"endpoint_url":"http://u:hunter2@h:1/metrics","timestamp_ns":1700000000000000000,` +
	`"endpoint_latency_ns":5000,"metrics":{` +
	`"lat":[{"labels":{"m":"x"},"buckets":{"0.5":1.0,"+Inf":2.0},"sum":1.5,"count":2.0}],"reqs":[{"value":7.0}],` +
	`"depth":[{"value":3}]},` +
	`"request_sent_ns":1699999999999999000,"first_byte_ns":1700000000000000000}
{"endpoint_url":"http://u:hunter2@h:1/metrics","timestamp_ns":1700000001000000000,"endpoint_latency_ns":5000,` +
	`"metrics":{` +
	`"reqs":[{"value":9.0}],"lat":[{"labels":{"m":"x"},"buckets":{"0.5":3.0,"+Inf":5.0},"sum":2.5,"count":5.0}]},` +
	`"request_sent_ns":1700000001000000000}
`

const export = `{"schema_version":"1.1","summary":{"endpoints_configured":[],"phase_time_ranges":{` +
	`"warmup":{"start_ns":1,"end_ns":5},"profiling":{"start_ns":5,"end_ns":9}}},"metrics":{` +
	`"reqs":{"type":"counter","description":"Requests.","series":[{"stats":{"total":2}}]},"lat":{"type":"histogram",` +
	`"description":""}},` +
	`"warmup_metrics":{"depth":{"type":"gauge","description":""}}}`

func importText(t testing.TB, text string, o aiperf.Options) (*sourcetest.Recorder, aiperf.Stats) {
	t.Helper()
	r := sourcetest.New(t, sourcetest.Limits{Secrets: []string{"hunter2"}})
	st, err := aiperf.Import(context.Background(), strings.NewReader(text), o, r)
	if err != nil {
		t.Fatal(err)
	}
	return r, st
}

func TestImport(t *testing.T) {
	types, err := aiperf.ReadTypes(strings.NewReader(export))
	if err != nil {
		t.Fatal(err)
	}
	if len(types.Marks) != 3 || types.Marks[2] != (metric.Mark{Name: metric.MarkEnd, AtNS: 9}) {
		t.Errorf("marks %+v", types.Marks)
	}
	r, st := importText(t, two, aiperf.Options{Types: types})
	if st.Polls != 2 || st.Stored != 11 || st.Untyped != 0 || r.Targets[0].URL != "http://h:1/metrics" {
		t.Errorf("stats %+v, targets %+v", st, r.Targets)
	}
	check := func(family string, typ metric.Type, labels string, role metric.Role, bound, want float64) {
		t.Helper()
		if v, ok := r.Value(0, family, typ, labels, role, bound); !ok || v != want {
			t.Errorf("%s %v%s %v %v: got %v, %v, want %v", family, typ, labels, role, bound, v, ok, want)
		}
	}
	check("lat", metric.Histogram, `{m="x"}`, metric.RoleBucket, 0.5, 3)
	check("lat", metric.Histogram, `{m="x"}`, metric.RoleBucket, math.Inf(1), 5)
	check("lat", metric.Histogram, `{m="x"}`, metric.RoleSum, 0, 2.5)
	check("reqs", metric.Counter, "", metric.RoleValue, 0, 9)
	if v, ok := r.Value(0, "depth", metric.Gauge, "", metric.RoleValue, 0); ok {
		t.Errorf("depth is %v at the last poll, which does not have it", v)
	}
	if i := r.Instants(0)[0]; i.AtNS != 1700000000e9 || i.Took != 5*time.Microsecond {
		t.Errorf("first poll %+v", i)
	}

	_, st = importText(t, two, aiperf.Options{})
	if st.Untyped != 2 {
		t.Errorf("%d families without a type, want 2", st.Untyped)
	}
	r, st = importText(t, two, aiperf.Options{Counters: regexp.MustCompile("reqs"), Drop: regexp.MustCompile("depth")})
	check("reqs", metric.Counter, "", metric.RoleValue, 0, 9)
	if st.Dropped != 0 || r.Instants(0)[0].Outcome != metric.OK {
		t.Errorf("a filter is no loss: %+v", st)
	}
}

func line(url string, at int64, metrics string) string {
	return fmt.Sprintf(`{"endpoint_url":%q,"timestamp_ns":%d,"endpoint_latency_ns":1,"metrics":%s,`+
		`"request_sent_ns":%d}`+"\n", url, at, metrics, at)
}

// TestOrder: overlapping scrapes of an endpoint are sorted within 32 polls.
func TestOrder(t *testing.T) {
	var b strings.Builder
	for i := range int64(100) {
		b.WriteString(line("u", 1000+(i^3), `{"g":[{"value":1}]}`)) // reversed in fours
		b.WriteString(line("v", 5000-i, `{"g":[{"value":1}]}`))     // reversed altogether
	}
	r, st := importText(t, b.String(), aiperf.Options{})
	if n := len(r.Instants(0)); n != 100 {
		t.Errorf("endpoint u has %d polls, want 100", n)
	}
	if n := len(r.Instants(1)); n != 33 || st.Dropped != 67 {
		t.Errorf("endpoint v has %d polls, %d dropped; want 33 and 67", n, st.Dropped)
	}
}

func TestDamage(t *testing.T) {
	check := func(text string, polls int, dropped int64, refused string) {
		t.Helper()
		_, st := importText(t, text, aiperf.Options{Limits: aiperf.Limits{Series: 5, Buckets: 4, Labels: 1, ValueLength: 3,
			Endpoints: 2}})
		got := ""
		for _, d := range st.Refused {
			got += fmt.Sprintf("%s=%d ", d.Reason, d.Lines)
		}
		if st.Polls != polls || st.Dropped != dropped || strings.TrimSpace(got) != refused {
			t.Errorf("%s\n got %d polls, %d dropped, refused %s\nwant %d, %d, %s", text, st.Polls, st.Dropped, got, polls,
				dropped, refused)
		}
	}
	check("", 0, 0, "")
	check("\n\n{}\n[1]\nnull\n{\"endpoint_url\":3}\n", 0, 0, "no_poll=2 parse=2")
	check(line("u", 1, `{"g":[{"value":1}]}`)[:60], 0, 0, "parse=1")
	check(line("u", 1, `{}`)+line("v", 1, `{}`)+line("w", 1, `{}`), 2, 0, "endpoint_limit=1")
	check(line("u", 1, `[]`)+line("u", 2, `{"g":{}}`), 0, 0, "parse=2")
	check(line("u", 1, `{"g":[{}]}`), 1, 1, "")
	check(line("u", 1, `{"g":[{"value":1},{"value":1}]}`), 1, 1, "")
	check(line("u", 1, `{"g":[{"labels":{"a":"1","b":"2"},"value":1}],"h":[{"labels":{"a":"1234"},"value":1}]}`), 1, 2, "")
	check(line("u", 1, `{"h":[{"buckets":{"wide":1,"1":1,"1.0":1}}]}`), 1, 2, "")
	check(line("u", 1, `{"h":[{"buckets":{"1":1,"2":1,"3":1,"4":1,"5":1}}]}`), 1, 5, "")
	check(line("u", 1, `{"a":[{"buckets":{"1":1,"2":1,"3":1}}],"b":[{"buckets":{"1":1,"2":1,"3":1}}]}`), 1, 3, "")
	check(line("u", 1, `{"a":[{"buckets":{"1":1,"2":1,"3":1}}]}`)+line("u", 2,
		`{"a":[{"buckets":{"1":1,"4":1,"5":1,"6":1}}]}`), 2, 1, "")

	if _, err := aiperf.Import(context.Background(), strings.NewReader(strings.Repeat(" ", 300_000)),
		aiperf.Options{Limits: aiperf.Limits{Line: 1000}},
		sourcetest.New(t, sourcetest.Limits{})); err == nil ||
		!strings.Contains(err.Error(), "line 1 is longer than 1000 bytes") {
		t.Errorf("a long line gave %v", err)
	}
	for _, bad := range []string{"", "{}", "[]", `{"summary":{},"metrics":3}`} {
		if _, err := aiperf.ReadTypes(strings.NewReader(bad)); err == nil {
			t.Errorf("types of %q were read", bad)
		}
	}
	r := sourcetest.New(t, sourcetest.Limits{})
	st, err := aiperf.Import(context.Background(), io.MultiReader(strings.NewReader(two), errReader{}), aiperf.Options{},
		r)
	if err == nil || st.Polls != 2 {
		t.Errorf("a reader that broke off: %+v, %v", st, err)
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func FuzzImport(f *testing.F) {
	f.Add([]byte(two))
	f.Add([]byte(line("u", 1, `{"h":[{"buckets":{"wide":1,"1":1,"1.0":1},"sum":1e300}],"g":[{"value":null},`+
		`{"labels":null,"value":1}]}`)))
	f.Add([]byte(line("u", 9, `{"g":[{"value":1}]}`) + line("u", 1, `{"g":[{"value":1}],"g":[{"value":2}]}`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer fuzzbound.Check(t)()
		r := sourcetest.New(t, sourcetest.Limits{Slots: 20})
		if _, err := aiperf.Import(context.Background(), bytes.NewReader(text),
			aiperf.Options{Limits: aiperf.Limits{Series: 20}}, r); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzReadTypes(f *testing.F) {
	f.Add([]byte(export))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer fuzzbound.Check(t)()
		types, err := aiperf.ReadTypes(bytes.NewReader(text))
		if err == nil && types.Families == nil {
			t.Error("no error and no families")
		}
	})
}

// TestTags: the phases are those that lines are tagged with.
func TestTags(t *testing.T) {
	check := func(tags, want string) {
		t.Helper()
		var b strings.Builder
		for i, tag := range strings.Fields(tags) {
			b.WriteString(strings.Replace(line("u", int64(i+1), `{"g":[{"value":1}]}`), "{", `{"benchmark_phase":`+tag+`,`, 1))
		}
		_, st := importText(t, b.String(), aiperf.Options{})
		got := ""
		for _, m := range st.Marks {
			got += fmt.Sprintf("%s=%d ", m.Name, m.AtNS)
		}
		if strings.TrimSpace(got) != want {
			t.Errorf("%s: got %s, want %s", tags, got, want)
		}
	}
	check(`null "warmup" "warmup" null "profiling" "profiling" null`, "warmup=2 profiling=5 end=6")
	check(`null "profiling" "profiling"`, "profiling=2 end=3")
	check(`"profiling"`, "profiling=1 end=1")
	check(`"profiling" "warmup" "profiling"`, "profiling=1 warmup=2 profiling=3 end=3")
	check(`"warmup" null`, "")
	check(`null "cooldown" 7`, "")
}

package tachometer_test

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/scrapestat/scrapestat/internal/sourcetest"
	"github.com/scrapestat/scrapestat/internal/testkit"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source/tachometer"
)

const anchor = 1_767_225_600_000_000_000 // 2026-01-01

func read(t testing.TB, o tachometer.Options, bodies ...[]byte) (*sourcetest.Recorder, tachometer.Stats) {
	t.Helper()
	var files []tachometer.File
	for i, b := range bodies {
		files = append(files, tachometer.File{Name: strconv.Itoa(i), ReaderAt: bytes.NewReader(b), Size: int64(len(b))})
	}
	r, err := tachometer.Open(files, o)
	if err != nil {
		t.Fatal(err)
	}
	to := sourcetest.New(t, sourcetest.Limits{Secrets: []string{"hunter2"}})
	st, err := r.Import(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	return to, st
}

// TestFixtures compares what a recording gained with a reference that read it by itself.
func TestFixtures(t *testing.T) {
	for name, rounded := range map[string]float64{"small": 0, "big": 2} {
		var want map[string]struct {
			Tokens float64            `json:"generation_tokens_total"`
			Count  float64            `json:"ttft_count"`
			Sum    float64            `json:"ttft_sum"`
			TTFT   map[string]float64 `json:"ttft_buckets"`
			Polls  int
		}
		expected := testkit.Data(t, "fixtures/integrations/tachometer_"+name+"_expected.json")
		if err := json.Unmarshal(expected, &want); err != nil {
			t.Fatal(err)
		}
		got, st := read(t, tachometer.Options{AnchorNS: anchor, Type: func(string) metric.Type { return metric.Gauge }},
			testkit.Data(t, "fixtures/integrations/tachometer_"+name+".parquet"))
		if len(got.Targets) != len(want) || st.Guessed != 0 || st.Dropped != 0 || st.Repeated != 0 || len(st.Refused) != 0 ||
			st.Steps["vllm:generation_tokens_total"] != rounded || len(st.Steps) > 1 || got.FirstNS < anchor {
			t.Errorf("%s: %+v of %v", name, st, got.Targets)
		}
		for i, target := range got.Targets {
			w, polls := want[target.URL], got.Instants(i)
			if node, _ := target.Labels.Get("node"); node != "n0" || target.Name != "" || len(polls) != w.Polls {
				t.Errorf("%+v has %d polls, want %d", target, len(polls), w.Polls)
			}
			const labels, ttft = `{engine="0",model_name="m"}`, "vllm:time_to_first_token_seconds"
			gain := func(family string, typ metric.Type, role metric.Role, text string) float64 {
				return value(got, i, len(polls)-1, family, typ, labels, role, text) -
					value(got, i, 0, family, typ, labels, role, text)
			}
			sum := gain(ttft, metric.Histogram, metric.RoleSum, "")
			if gain("vllm:generation_tokens_total", metric.Gauge, metric.RoleValue, "") != w.Tokens ||
				gain(ttft, metric.Histogram, metric.RoleCount, "") != w.Count || math.Abs(sum-w.Sum) > 1e-6 {
				t.Errorf("%s: tokens, count or sum differ: sum %v, want %+v", target.URL, sum, w)
			}
			for le, n := range w.TTFT {
				if g := gain(ttft, metric.Histogram, metric.RoleBucket, le); g != n {
					t.Errorf("%s: bucket %s gained %v, want %v", target.URL, le, g, n)
				}
			}
		}
	}
}

// value is that of a slot at a poll.
func value(r *sourcetest.Recorder, target, poll int, family string, typ metric.Type, labels string, role metric.Role,
	bound string) float64 {
	b, _ := strconv.ParseFloat(bound, 64)
	slot := r.Slot(target, family, typ, labels, role, b)
	bits, ok := r.Instants(target)[poll].Values[slot]
	switch {
	case !ok:
		return -1
	case r.Dict(target).Slots[slot].Integer:
		return float64(bits)
	}
	return math.Float64frombits(bits)
}

// line is a row of a file.
type line struct {
	Endpoint string   `parquet:"scraper_endpoint"`
	Name     string   `parquet:"metric_name"`
	Value    float32  `parquet:"metric_value"`
	Upper    *float32 `parquet:"histogram_bucket_upper"`
	Sum      *float32 `parquet:"histogram_sum"`
	Count    *float32 `parquet:"histogram_count"`
	Since    float64  `parquet:"time_since_start"`
	Node     string   `parquet:"node"`
	Rank     string   `parquet:"rank"`
}

func file(t testing.TB, lines ...line) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := parquet.Write(&b, lines); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestRows reads two files of a recording: polls are put together, columns become labels where they belong, and what
// cannot be told is counted.
func TestRows(t *testing.T) {
	const a = "http://u:hunter2@a:1/metrics"
	sum, count := float32(43.9), float32(2)
	first := file(t,
		line{Endpoint: a, Name: `g{k="a\"b"}`, Value: 0.1, Since: 1, Node: "n0", Rank: "0"},
		line{Endpoint: a, Name: `g{k="a\"b"}`, Value: float32(math.NaN()), Since: 2, Node: "n0", Rank: "1"},
		line{Endpoint: a, Name: "n_total", Value: 1 << 30, Since: 1.004, Node: "n0", Rank: "0"},
		line{Endpoint: a, Name: `torn{k="a`, Value: 1, Since: 1, Node: "n0", Rank: "0"},
		line{Endpoint: a, Name: "late", Value: 1, Since: math.Inf(1), Node: "n0", Rank: "0"},
		line{Endpoint: "http://b:1/metrics", Name: "g", Value: 7, Since: 1.5, Node: "n1", Rank: "0"})
	second := file(t,
		line{Endpoint: a, Name: `h{le="1.0"}`, Value: 1, Sum: &sum, Count: &count, Since: 2, Node: "n0", Rank: "0"},
		line{Endpoint: a, Name: `h{le="+Inf"}`, Value: 2, Sum: &sum, Count: &count, Since: 2, Node: "n0", Rank: "0"})
	got, st := read(t, tachometer.Options{AnchorNS: anchor}, first, second)
	if len(got.Targets) != 2 || st.Polls != 3 || st.Repeated != 0 || st.Steps["n_total"] != 128 || len(st.Steps) != 1 {
		t.Fatalf("%+v of %v", st, got.Targets)
	}
	var refused []string
	for _, d := range st.Refused {
		refused = append(refused, d.Reason+" "+strconv.Itoa(d.Lines))
	}
	if slices.Sort(refused); !slices.Equal(refused, []string{"no_timestamp 1", "parse 1"}) {
		t.Errorf("refused %q", refused)
	}
	i := slices.IndexFunc(got.Targets, func(x metric.Target) bool { return x.URL == "http://a:1/metrics" })
	if i < 0 || got.Targets[i].Labels.String() != `{node="n0"}` {
		t.Fatalf("targets %+v", got.Targets)
	}
	if v := value(got, i, 0, "g", metric.Unknown, `{k="a\"b",rank="0"}`, metric.RoleValue, ""); v != 0.1 {
		t.Errorf("0.1 of 32 bits became %v", v)
	}
	if v := value(got, i, 1, "g", metric.Unknown, `{k="a\"b",rank="1"}`, metric.RoleValue, ""); !math.IsNaN(v) {
		t.Errorf("NaN became %v", v)
	}
	if v := value(got, i, 0, "n", metric.Counter, `{rank="0"}`, metric.RoleValue, ""); v != 1<<30 {
		t.Errorf("the counter is %v, in the poll of 1.004 s", v)
	}
	if v := value(got, i, 1, "h", metric.Histogram, `{rank="0"}`, metric.RoleSum, ""); v != 43.9 {
		t.Errorf("the sum is %v", v)
	}
	if at := got.Instants(i)[0].AtNS; at != anchor+1e9 {
		t.Errorf("the first poll is at %d", at)
	}
}

func TestOpenRefuses(t *testing.T) {
	type other struct {
		Endpoint string `parquet:"scraper_endpoint"`
		Name     string `parquet:"metric_name"`
	}
	var b bytes.Buffer
	if err := parquet.Write(&b, []other{{"a", "b"}}); err != nil {
		t.Fatal(err)
	}
	for want, text := range map[string]string{
		"no column metric_value, histogram_bucket_upper, time_since_start": b.String(),
		"read x": "PAR1 and no more",
	} {
		_, err := tachometer.Open([]tachometer.File{{Name: "x", ReaderAt: strings.NewReader(text), Size: int64(len(text))}},
			tachometer.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// FuzzParseName reads anything; what is taken is written so that it is read again.
func FuzzParseName(f *testing.F) {
	for _, s := range []string{`a{b="c",d="e\"f\n"}`, "a", "a{}", `a{b="c",}`, `a{b="c"`, `a{b="1",b="2"}`, ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, labels, ok := tachometer.ParseName(text)
		if !ok {
			return
		}
		var b strings.Builder
		for _, l := range labels {
			escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(l.Value)
			b.WriteString("," + l.Name + `="` + escaped + `"`)
		}
		again, same, ok := tachometer.ParseName(name + "{" + strings.TrimPrefix(b.String(), ",") + "}")
		if !ok || again != name || !slices.Equal(same, labels) {
			t.Errorf("%q is %q %q, and then %q %q", text, name, labels, again, same)
		}
	})
}

// FuzzImport reads damaged files: an error, never a crash.
func FuzzImport(f *testing.F) {
	f.Add(testkit.Data(f, "fixtures/integrations/tachometer_small.parquet"))
	f.Add(file(f, line{Endpoint: "a", Name: `g{k="v"}`, Value: 1, Since: 1, Node: "n"}))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := tachometer.Open([]tachometer.File{{Name: "x", ReaderAt: bytes.NewReader(body), Size: int64(len(body))}},
			tachometer.Options{})
		if err == nil {
			_, _ = r.Import(t.Context(), sourcetest.New(t, sourcetest.Limits{})) // an error is as good
		}
	})
}

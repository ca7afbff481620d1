package export_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

func linesOf(t *testing.T, f *fakeRun) []string {
	t.Helper()
	r, recs := runOfFake(t, f, summary.Options{})
	return strings.Split(strings.TrimSuffix(string(jsonlOf(t, r, recs)), "\n"), "\n")
}

// TestJSONLMetrics checks what of a body is written.
func TestJSONLMetrics(t *testing.T) {
	check := func(name, body, want string) {
		t.Helper()
		f := newFake("u")
		f.Scrape(0, 0, body)
		got := linesOf(t, f)[0]
		if want == "" {
			if got != "" {
				t.Errorf("%s: got %s, want no line", name, got)
			}
			return
		}
		_, got, _ = strings.Cut(got, `"metrics":`)
		got, _, _ = strings.Cut(got, `,"request_sent_ns"`)
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, want)
		}
	}
	check("scalars", "# TYPE b gauge\nb 0.5\n# TYPE a counter\na{y=\"2\",x=\"\"} 1e20\n",
		`{"b":[{"value":0.5}],"a":[{"labels":{"x":"","y":"2"},"value":1e+20}]}`)
	check("not finite", "# TYPE g gauge\ng{a=\"1\"} NaN\ng{a=\"2\"} 3\n# TYPE n gauge\nn +Inf\n",
		`{"g":[{"labels":{"a":"2"},"value":3.0}]}`)
	check("nothing finite", "# TYPE g gauge\ng NaN\n", "")
	check("info gauges", "# TYPE x_info gauge\nx_info 1\n", "")
	check("other types", "# TYPE s summary\ns_sum 1\n# TYPE g gauge\ng 2\n", `{"g":[{"value":2.0}]}`)
	check("no type", "odd 1\n", `{"odd":[{"value":1.0}]}`)
	check("buckets in order", "# TYPE h histogram\nh_bucket{le=\"+Inf\"} 3\nh_bucket{le=\"10\"} 2\n"+
		"h_bucket{le=\"2.50\"} 1\nh_count 3\nh_sum 4\n",
		`{"h":[{"buckets":{"2.50":1.0,"10":2.0,"+Inf":3.0},"sum":4.0,"count":3.0}]}`)
	check("missing sum and count", "# TYPE h histogram\nh_bucket{le=\"1\"} 3\n", `{"h":[{"buckets":{"1":3.0}}]}`)
	check("only sum", "# TYPE h histogram\nh_sum 3\nh_created 5\n", `{"h":[{"buckets":{},"sum":3.0}]}`)
	check("one line of a histogram not finite",
		"# TYPE h histogram\nh_bucket{le=\"1\"} NaN\nh_sum 1\nh_sum{a=\"1\"} NaN\nh_count{a=\"2\"} NaN\nh_count{a=\"3\"} 1\n",
		`{"h":[{"labels":{"a":"3"},"buckets":{},"count":1.0}]}`)
	check("created is metadata", "# TYPE c counter\nc_created 5\n# TYPE d counter\nd 1\nd_created 7\n",
		`{"d":[{"value":1.0}]}`)
	check("one name, two types", "# TYPE x gauge\nx{a=\"1\"} 1\n# TYPE x counter\nx{b=\"1\"} 2\n",
		`{"x":[{"labels":{"a":"1"},"value":1.0},{"labels":{"b":"1"},"value":2.0}]}`)
}

// TestJSONLOthers checks the types that AIPerf does not know.
func TestJSONLOthers(t *testing.T) {
	f := newFake("u")
	f.Scrape(0, 0, "# TYPE s summary\ns{quantile=\"0.5\"} NaN\ns{quantile=\"0.9\"} 2\ns_sum 1\ns_count 3\n# TYPE i "+
		"info\ni{v=\"1\"} 1\n# TYPE e stateset\ne{e=\"on\"} 0\n"+
		"# TYPE q gaugehistogram\nq_bucket{le=\"1\"} 2\nq_count 4\n")
	_, got, _ := strings.Cut(linesOf(t, f)[0], `"scrapestat":`)
	want := `{"metrics":{"s":{"type":"summary","series":[{"quantiles":{"0.9":2.0},"sum":1.0,"count":3.0}]},` +
		`"i":{"type":"info","series":[{"labels":{"v":"1"},"value":1.0}]},` +
		`"e":{"type":"stateset","series":[{"labels":{"e":"on"},"value":0.0}]},` +
		`"q":{"type":"gaugehistogram","series":[{"buckets":{"1":2.0},"count":4.0}]}}}}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestJSONLRecords checks which polls are written, and when series come and go.
func TestJSONLRecords(t *testing.T) {
	f := newFake("http://a", "http://b")
	f.Scrape(0, 0, "a 1\n")
	f.Scrape(0, 1, "a 1\n") // a duplicate
	f.Fail(0, 2, metric.Timeout, "late")
	f.Scrape(0, 3, "a 1\nb 2\n")
	f.Scrape(0, 4, "b 2\n")
	f.Scrape(0, 4.5, "") // nothing usable
	f.Scrape(0, 5, "a 9\n").FirstByteNS = 0
	f.Scrape(1, 0, "z 1\n")
	f.Scrape(1, 3.5, "z 2\n")
	var got []string
	for _, l := range linesOf(t, f) {
		var line struct {
			URL     string `json:"endpoint_url"`
			At      int64  `json:"timestamp_ns"`
			Latency int64  `json:"endpoint_latency_ns"`
			Sent    int64  `json:"request_sent_ns"`
			First   *int64 `json:"first_byte_ns"`
			Metrics json.RawMessage
		}
		if err := json.Unmarshal([]byte(l), &line); err != nil {
			t.Fatal(err)
		}
		if line.Latency != 3e6 || line.First != nil && (line.Sent != line.At-1e6 || *line.First != line.At) ||
			line.First == nil && line.Sent != line.At {
			t.Errorf("times of %s", l)
		}
		got = append(got, line.URL[7:]+" "+time.Duration(line.At-origin).String()+" "+string(line.Metrics))
	}
	want := []string{`a 0s {"a":[{"value":1.0}]}`, `b 0s {"z":[{"value":1.0}]}`,
		`a 3s {"a":[{"value":1.0}],"b":[{"value":2.0}]}`,
		`b 3.5s {"z":[{"value":2.0}]}`, `a 4s {"b":[{"value":2.0}]}`, `a 4.999s {"a":[{"value":9.0}]}`}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got:\n%s\nwant:\n%s", g, w)
	}
}

// TestJSONLIntegers checks that integers beyond 2^53 keep their digits.
func TestJSONLIntegers(t *testing.T) {
	f := newFake("u")
	s := f.Scrape(0, 0, "# TYPE c counter\nc 1\n")
	s.DictDelta.Slots[0].Integer, s.Delta.Bits[0] = true, math.MaxUint64
	if l := linesOf(t, f)[0]; !strings.Contains(l, `"value":18446744073709551615.0}`) {
		t.Errorf("got %s", l)
	}
}

// brokenRecording yields an error after its first poll.
type brokenRecording struct{ *fakeRun }

var errDamaged = errors.New("page 7 is damaged")

func (b brokenRecording) Snapshots(ctx context.Context, target int) iter.Seq2[*metric.Snapshot, error] {
	return func(yield func(*metric.Snapshot, error) bool) {
		if yield(&b.Polled[target].Polls[0], nil) {
			yield(nil, errDamaged)
		}
	}
}

func TestJSONLErrors(t *testing.T) {
	f := golden()
	r, recs := runOfFake(t, f, summary.Options{})
	check := func(name, want string, recs []export.Recording) {
		t.Helper()
		if err := export.JSONL(context.Background(), io.Discard, r, recs, inUTC); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one with %q", name, err, want)
		}
	}
	check("another run", "3 targets, the result 2", append(recs, newFake("x")))
	check("reading", "http://vllm:8000/metrics: page 7", []export.Recording{brokenRecording{f}})
	damaged := golden()
	damaged.Polled[1].Polls[2].DictDelta.Series = []metric.Series{{Family: 99}}
	check("growth", "https://node:9100/api/metrics: grow dictionary", []export.Recording{damaged})
	damaged = golden()
	damaged.Polled[0].Polls[2].Delta.Slots[0] = 99
	check("slot", "slot 99 of", []export.Recording{damaged})
	damaged.Polled[0].Polls[2].Delta.Bits = nil
	check("values", "with 0 values", []export.Recording{damaged})
	if err := export.JSONL(context.Background(), io.Discard, r, recs, export.Options{AIPerfSchema: "3"}); err == nil {
		t.Error("schema 3: no error")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := export.JSONL(ctx, io.Discard, r, recs, inUTC); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got error %v", err)
	}
}

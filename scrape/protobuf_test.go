package scrape_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/scrapestat/scrapestat/internal/fuzzbound"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

const protobuf = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"

// encode writes families as a server does.
func encode(t testing.TB, families ...*dto.MetricFamily) string {
	t.Helper()
	var b bytes.Buffer
	e := expfmt.NewEncoder(&b, expfmt.NewFormat(expfmt.TypeProtoDelim).WithEscapingScheme(model.NoEscaping))
	for _, f := range families {
		if err := e.Encode(f); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func family(name string, typ dto.MetricType, metrics ...*dto.Metric) *dto.MetricFamily {
	return &dto.MetricFamily{Name: &name, Help: new("help of " + name), Type: &typ, Metric: metrics}
}

func engine(n string) []*dto.LabelPair {
	return []*dto.LabelPair{{Name: new("engine"), Value: &n}}
}

// native is a histogram of observations in (1,2] and (4,8], one negative in
// [-2,-1), and some zeros, at schema 0.
func native(scale uint64) *dto.Histogram {
	return &dto.Histogram{
		SampleCount: new(5 * scale), SampleSum: new(20.0 * float64(scale)),
		Schema: new(int32(0)), ZeroThreshold: new(0.001), ZeroCount: new(2 * scale),
		PositiveSpan: []*dto.BucketSpan{{Offset: new(int32(1)), Length: new(uint32(1))},
			{Offset: new(int32(1)), Length: new(uint32(1))}},
		PositiveDelta: []int64{int64(scale), 0},
		NegativeSpan:  []*dto.BucketSpan{{Offset: new(int32(1)), Length: new(uint32(1))}},
		NegativeDelta: []int64{int64(scale)},
	}
}

// bounds names the samples of a consumer with both bounds of native buckets.
func bounds(c *consumer) map[string]float64 {
	out := map[string]float64{}
	for slot, bits := range c.values {
		s := c.dict.Slots[slot]
		f := c.dict.FamilyOf(s.Series)
		out[fmt.Sprintf("%s %s%s %s %v %v", f.Type, f.Name, c.dict.Series[s.Series].Labels, s.Role, s.Lower,
			s.Bound)] = math.Float64frombits(bits)
	}
	return out
}

func TestProtobufTypes(t *testing.T) {
	started := &dto.MetricFamily{Name: new("c_total"), Type: dto.MetricType_COUNTER.Enum(), Unit: new("requests"),
		Help: new("c")}
	counter := &dto.Counter{Value: new(5.0)}
	started.Metric = []*dto.Metric{{Label: engine("0"), Counter: counter}}
	check(t, protobuf, encode(t, started), metric.OK, `counter c{engine="0"} = 5`)
	check(t, protobuf, encode(t, family("g", dto.MetricType_GAUGE, &dto.Metric{Gauge: &dto.Gauge{Value: new(-1.5)}})),
		metric.OK, `gauge g = -1.5`)
	check(t, protobuf, encode(t, family("u", dto.MetricType_UNTYPED,
		&dto.Metric{Untyped: &dto.Untyped{Value: new(3.0)}})), metric.OK, `unknown u = 3`)
	check(t, protobuf, encode(t, family("my.metric", dto.MetricType_GAUGE,
		&dto.Metric{Gauge: &dto.Gauge{Value: new(3.0)}})), metric.OK, `gauge my.metric = 3`)
	check(t, protobuf, encode(t, family("s", dto.MetricType_SUMMARY,
		&dto.Metric{Summary: &dto.Summary{SampleCount: new(uint64(4)), SampleSum: new(2.0),
			Quantile: []*dto.Quantile{{Quantile: new(0.5), Value: new(math.NaN())}}}})), metric.OK,
		"summary s quantile[0.5] = NaN\nsummary s sum = 2\nsummary s count = 4")
	classic := &dto.Histogram{SampleCount: new(uint64(3)), SampleSum: new(4.0),
		Bucket: []*dto.Bucket{{UpperBound: new(1.0), CumulativeCount: new(uint64(2))}}}
	check(t, protobuf, encode(t, family("h", dto.MetricType_HISTOGRAM, &dto.Metric{Histogram: classic})), metric.OK,
		"histogram h bucket[1.0] = 2\nhistogram h bucket[+Inf] = 3\nhistogram h sum = 4\nhistogram h count = 3")
	check(t, protobuf, encode(t, family("gh", dto.MetricType_GAUGE_HISTOGRAM, &dto.Metric{Histogram: classic})), metric.OK,
		"gaugehistogram gh bucket[1.0] = 2\ngaugehistogram gh bucket[+Inf] = 3\ngaugehistogram gh sum = 4\ngaugehistogram "+
			"gh count = 3")
}

func TestProtobufMetadata(t *testing.T) {
	c := family("c_seconds_total", dto.MetricType_COUNTER, &dto.Metric{Counter: &dto.Counter{Value: new(5.0)}})
	c.Unit = new("seconds")
	_, s := decodeOne(t, scrape.Options{}, protobuf, encode(t, c))
	if f := s.DictDelta.Families[0]; f.Name != "c_seconds" || f.Unit != "seconds" || f.Help != "help of c_seconds_total" {
		t.Errorf("got family %+v", f)
	}
}

func TestNativeHistogram(t *testing.T) {
	for _, typ := range []dto.MetricType{dto.MetricType_HISTOGRAM, dto.MetricType_GAUGE_HISTOGRAM} {
		word := strings.ReplaceAll(strings.ToLower(typ.String()), "_", "")
		d := newDecoder(t, scrape.Options{})
		c := new(consumer)
		for scale := uint64(1); scale <= 3; scale++ {
			var s metric.Snapshot
			d.Decode(&s, scrape.Body{Bytes: []byte(encode(t,
				family("n", typ, &dto.Metric{Label: engine("0"), Histogram: native(scale)}))), ContentType: protobuf})
			c.apply(t, &s)
			if s.Outcome != metric.OK || s.Delta.Full != (scale == 1) {
				t.Fatalf("got %v %q, full frame %v", s.Outcome, s.Err, s.Delta.Full)
			}
			got, n := bounds(c), float64(scale)
			at := func(rest string, want float64) {
				t.Helper()
				if v, ok := got[word+` n{engine="0"} `+rest]; !ok || v != want {
					t.Errorf("%s: got %v (there: %v), want %v, of %v", rest, v, ok, want, got)
				}
			}
			at("count 0 0", 5*n)
			at("sum 0 0", 20*n)
			at("native_bucket -0.001 0.001", 2*n)
			at("native_bucket 1 2", n)
			at("native_bucket 4 8", n)
			at("native_bucket -2 -1", n)
			if len(got) != 6 {
				t.Errorf("got %d slots, want 6: %v", len(got), got)
			}
		}
	}
}

func TestFloatHistogram(t *testing.T) {
	h := &dto.Histogram{SampleCountFloat: new(2.5), SampleSum: new(4.0), Schema: new(int32(-1)),
		ZeroThreshold: new(0.0), ZeroCountFloat: new(0.5),
		PositiveSpan: []*dto.BucketSpan{{Offset: new(int32(1)), Length: new(uint32(1))}}, PositiveCount: []float64{2}}
	c, s := decodeOne(t, scrape.Options{}, protobuf,
		encode(t, family("n", dto.MetricType_HISTOGRAM, &dto.Metric{Histogram: h})))
	got := bounds(c)
	if s.Outcome != metric.OK || got["histogram n count 0 0"] != 2.5 || got["histogram n native_bucket 1 4"] != 2 ||
		got["histogram n native_bucket 0 0"] != 0.5 {
		t.Errorf("got %v %q: %v", s.Outcome, s.Err, got)
	}
}

func TestBadProtobuf(t *testing.T) {
	good := family("g", dto.MetricType_GAUGE, &dto.Metric{Gauge: &dto.Gauge{Value: new(1.0)}})
	last := family("z", dto.MetricType_GAUGE, &dto.Metric{Gauge: &dto.Gauge{Value: new(2.0)}})
	// Spans that promise four billion buckets and have one.
	huge := native(1)
	huge.PositiveSpan[0].Length = new(uint32(math.MaxUint32))
	body := encode(t, good, family("n", dto.MetricType_HISTOGRAM, &dto.Metric{Histogram: huge}), last)
	s := check(t, protobuf, body, metric.Partial, "gauge g = 1\ngauge z = 2")
	if s.Err == "" || len(s.Drops) != 1 || s.Drops[0].Lines != 1 ||
		!strings.Contains(s.Drops[0].First, "n: no exposition line") {
		t.Errorf("got %q, drops %+v", s.Err, s.Drops)
	}
	whole := encode(t, good, last)
	s = check(t, protobuf, whole[:len(whole)-3], metric.Partial, "gauge g = 1")
	if s.Err != "body ends within a message: it was cut short" {
		t.Errorf("got %q", s.Err)
	}
	check(t, protobuf, whole[:4], metric.Truncated, "")
	check(t, protobuf, strings.Repeat("\x00", 1<<20), metric.NotPrometheus, "")
	check(t, protobuf, encode(t, good, good), metric.Partial, "gauge g = 1")
	// Each of the two formats under the name of the other is read as what it is.
	s = check(t, classic, whole, metric.OK, "gauge g = 1\ngauge z = 2")
	if len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0].Text, "the body is protobuf") {
		t.Errorf("got warnings %+v", s.Warnings)
	}
	s = check(t, protobuf, "# TYPE g gauge\ng 1\n", metric.OK, "gauge g = 1")
	if len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0].Text, "the body is text") {
		t.Errorf("got warnings %+v", s.Warnings)
	}
}

// Bounds that are none make the histogram unusable, not its buckets those of
// something else; buckets that floating point cannot tell apart are one.
func TestNativeBounds(t *testing.T) {
	for _, threshold := range []float64{math.NaN(), -1} {
		h := native(1)
		h.ZeroThreshold = new(threshold)
		_, s := decodeOne(t, scrape.Options{}, protobuf,
			encode(t, family("n", dto.MetricType_HISTOGRAM, &dto.Metric{Histogram: h}),
				family("g", dto.MetricType_GAUGE, &dto.Metric{Gauge: &dto.Gauge{Value: new(1.0)}})))
		if s.Outcome != metric.Partial || s.Dropped() != s.Lines-1 || len(s.Drops) != 1 {
			t.Errorf("threshold %v: got %v, %d lines, drops %+v", threshold, s.Outcome, s.Lines, s.Drops)
		}
	}
	h := native(1)
	h.PositiveSpan = []*dto.BucketSpan{{Offset: new(int32(2000)), Length: new(uint32(2))}}
	c, s := decodeOne(t, scrape.Options{}, protobuf,
		encode(t, family("n", dto.MetricType_HISTOGRAM, &dto.Metric{Histogram: h})))
	if got := bounds(c)["histogram n native_bucket +Inf +Inf"]; got != 2 || s.Lines != 5 || s.Dropped() != 0 {
		t.Errorf("got %v observations beyond all numbers, %d lines, drops %+v of %v", got, s.Lines, s.Drops, bounds(c))
	}
}

func TestNativeBucketLimit(t *testing.T) {
	h := native(1)
	body := encode(t, family("n", dto.MetricType_HISTOGRAM, &dto.Metric{Histogram: h}))
	_, s := decodeOne(t, scrape.Options{Limits: scrape.Limits{NativeBuckets: 2}}, protobuf, body)
	if s.Outcome != metric.Partial || len(s.Drops) != 1 || s.Drops[0].Reason != "native_bucket_limit" ||
		s.Drops[0].Lines != s.Lines {
		t.Errorf("got %v, %d lines, drops %+v", s.Outcome, s.Lines, s.Drops)
	}
	_, s = decodeOne(t, scrape.Options{Limits: scrape.Limits{Samples: 2}}, protobuf, body)
	if s.Outcome != metric.TooLarge {
		t.Errorf("got %v, want too_large", s.Outcome)
	}
}

func TestFormatChanges(t *testing.T) {
	d, c := newDecoder(t, scrape.Options{}), new(consumer)
	step := func(contentType, body string) *metric.Snapshot {
		var s metric.Snapshot
		d.Decode(&s, scrape.Body{Bytes: []byte(body), ContentType: contentType})
		c.apply(t, &s)
		return &s
	}
	step(classic, "# TYPE c_total counter\nc_total 5\n")
	s := step(openMetrics, "# TYPE c counter\nc_total 6\n# EOF\n")
	if !s.DictDelta.Empty() || len(s.Warnings) != 1 || s.Warnings[0].Code != "format_changed" {
		t.Errorf("the family did not go on: growth %+v, warnings %+v", s.DictDelta, s.Warnings)
	}
	s = step(protobuf, encode(t, family("c_total", dto.MetricType_COUNTER,
		&dto.Metric{Counter: &dto.Counter{Value: new(7.0)}})))
	if !s.DictDelta.Empty() || s.Outcome != metric.OK || c.values[0] != math.Float64bits(7) {
		t.Errorf("the family did not go on: %v, growth %+v, values %v", s.Outcome, s.DictDelta, c.values)
	}
	if s = step(classic, "# TYPE c_total counter\nc_total 8\n"); !s.DictDelta.Empty() ||
		c.values[0] != math.Float64bits(8) {
		t.Errorf("the family did not go on: growth %+v, values %v", s.DictDelta, c.values)
	}
}

func TestExemplars(t *testing.T) {
	d := newDecoder(t, scrape.Options{})
	step := func(contentType, body string) []metric.Exemplar {
		t.Helper()
		s := metric.Snapshot{SentNS: 99}
		d.Decode(&s, scrape.Body{Bytes: []byte(body), ContentType: contentType})
		if s.Outcome != metric.OK {
			t.Fatalf("got %v %q", s.Outcome, s.Err)
		}
		return s.Exemplars
	}
	const text = "# TYPE h histogram\nh_bucket{le=\"1.0\"} 1 # {trace_id=\"%s\"} 0.5 " +
		"1700000000.25\nh_bucket{le=\"+Inf\"} 1\nh_count 1\nh_sum 0.5\n# EOF\n"
	got := step(openMetrics, fmt.Sprintf(text, "abc"))
	if len(got) != 1 || got[0].Slot != 0 || got[0].Value != 0.5 || got[0].AtNS != 1700000000250e6 || got[0].SeenNS != 99 ||
		got[0].Labels.String() != `{trace_id="abc"}` {
		t.Errorf("got %+v", got)
	}
	if got = step(openMetrics, fmt.Sprintf(strings.Replace(text, "h_sum 0.5", "h_sum 0.6", 1), "abc")); len(got) != 0 {
		t.Errorf("an exemplar that did not change was told again: %+v", got)
	}
	if got = step(openMetrics, fmt.Sprintf(text, "def")); len(got) != 1 || got[0].Labels.String() != `{trace_id="def"}` {
		t.Errorf("got %+v", got)
	}
	h := native(1)
	at := time.Unix(1700000001, 0)
	h.Exemplars = []*dto.Exemplar{{Label: engine("7"), Value: new(5.0), Timestamp: timestamppb.New(at)}}
	got = step(protobuf, encode(t, family("n", dto.MetricType_HISTOGRAM, &dto.Metric{Histogram: h})))
	if len(got) != 1 || got[0].Value != 5 || got[0].AtNS != at.UnixNano() || got[0].Labels.String() != `{engine="7"}` {
		t.Errorf("got %+v", got)
	}
}

func FuzzProtobuf(f *testing.F) {
	f.Add([]byte(encode(f, family("n", dto.MetricType_HISTOGRAM, &dto.Metric{Label: engine("0"), Histogram: native(3)}),
		family("c_total", dto.MetricType_COUNTER, &dto.Metric{Counter: &dto.Counter{Value: new(5.0)}}))))
	f.Add([]byte("\x05\x0a\x03abc"))
	f.Add([]byte("\xff\xff\xff\xff\x0f\x0a"))
	for _, body := range hostileFamilies {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		defer fuzzbound.Check(t)()
		d, c := newDecoder(t, scrape.Options{}), new(consumer)
		for range 2 {
			var s metric.Snapshot
			d.Decode(&s, scrape.Body{Bytes: body, ContentType: protobuf})
			c.apply(t, &s)
		}
	})
}

// hostileFamilies are bodies of the kind that made decoders of this class panic,
// written byte by byte: no encoder makes them. A field is its number and kind
// (number<<3 | kind), then its value.
var hostileFamilies = []string{
	// A native histogram with spans and no deltas (prometheus#18414): span of
	// offset 0 and length 4.
	delimited("\x0a\x01h\x18\x04\x22\x0e\x3a\x0c\x08\x04\x28\x06\x62\x04\x08\x00\x10\x04\x38\x00"),
	// Deltas and no spans.
	delimited("\x0a\x01h\x18\x04\x22\x08\x3a\x06\x08\x04\x28\x06\x68\x02"),
	// A span of 2^32-1 buckets, at an offset of -2^31.
	delimited("\x0a\x01h\x18\x04\x22\x16\x3a\x14\x08\x04\x28\x06\x62\x0c" +
		"\x08\xff\xff\xff\xff\x0f\x10\xff\xff\xff\xff\x0f\x68\x02"),
	// A schema of 2^30, and one of -2^31.
	delimited("\x0a\x01h\x18\x04\x22\x12\x3a\x10\x08\x04\x28\x80\x80\x80\x80\x08\x62\x04\x08\x00\x10\x01\x68\x02"),
	delimited("\x0a\x01h\x18\x04\x22\x12\x3a\x10\x08\x04\x28\xff\xff\xff\xff\x0f\x62\x04\x08\x00\x10\x01\x68\x02"),
	// A summary without quantiles (prometheus#18382), an empty one, and a metric
	// of type summary that has none.
	delimited("\x0a\x01s\x18\x02\x22\x04\x22\x02\x08\x03"),
	delimited("\x0a\x01s\x18\x02\x22\x02\x22\x00"),
	delimited("\x0a\x01s\x18\x02\x22\x00"),
	// No name, no type, a type that is none, a label without a name or a value.
	delimited("\x22\x00"), delimited(""), delimited("\x0a\x01x\x18\x63\x22\x00"),
	delimited("\x0a\x01x\x22\x04\x0a\x00\x2a\x00"),
	// Varints: of eleven bytes, cut, and a string of 2^63 bytes inside a family.
	"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x80",
	delimited("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
	delimited("\x0a\x80"), strings.Repeat("\x00", 1000),
	// Groups within groups, which recursive readers descend into.
	delimited(strings.Repeat("\x0b", 10_000)),
}

// delimited puts the length of a message before it.
func delimited(message string) string {
	return string(binary.AppendUvarint(nil, uint64(len(message)))) + message
}

// TestHostileProtobuf: the decoder reports what is wrong with them, or counts, and a
// length that is not there costs no memory.
func TestHostileProtobuf(t *testing.T) {
	for _, body := range append(hostileFamilies, "\xff\xff\xff\xff\x07", "\xff\xff\xff\xff\xff\xff\xff\xff\x7f") {
		d := newDecoder(t, scrape.Options{})
		var s metric.Snapshot
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		d.Decode(&s, scrape.Body{Bytes: []byte(body), ContentType: protobuf})
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
			t.Errorf("%.40q: %d bytes allocated", body, got)
		}
		if s.Outcome == metric.OK && len(s.Delta.Slots) == 0 && len(s.Drops) == 0 && len(s.Warnings) == 0 && s.Err == "" {
			t.Errorf("%.40q: is said to be good, and nothing came of it", body)
		}
	}
}

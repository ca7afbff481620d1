package torchserve_test

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/scrapestat/scrapestat/internal/fuzzbound"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source/torchserve"
)

func dims(pairs ...string) []metric.Label {
	var out []metric.Label
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, metric.Label{Name: pairs[i], Value: pairs[i+1]})
	}
	return out
}

func TestParseLine(t *testing.T) {
	check := func(line string, want torchserve.Line) {
		t.Helper()
		got, err := torchserve.ParseLine([]byte(line), true)
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(torchserve.Line{}), cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("%s: %s", line, diff)
		}
	}
	const prefix = 1648637919358e6
	host := dims("Level", "Host")
	check("2022-03-30T10:58:39,358 - QueueTime.ms:1|#Level:Host|#hostname:h1,timestamp:1648663119",
		torchserve.Line{Name: "QueueTime", Unit: "ms", Value: 1, Dimensions: host, Host: "h1", PrefixNS: prefix,
			StampS: 1648663119})
	check("2022-03-30 10:58:39.358 - QueueTime.ms:-1.5e-3|#Level:Host|#hostname:h1\r",
		torchserve.Line{Name: "QueueTime", Unit: "ms", Value: -0.0015, Dimensions: host, Host: "h1", PrefixNS: prefix})
	check("A.Count:4.9E7|#|#hostname:h1,requestID:a,b,c,timestamp:null",
		torchserve.Line{Name: "A", Unit: "Count", Value: 4.9e7, Host: "h1", Requests: []string{"a", "b", "c"}})
	check("A.ms:NaN|#hostname:h,requestID:null,timestamp:7",
		torchserve.Line{Name: "A", Unit: "ms", Value: math.NaN(), Host: "h", StampS: 7})
	check("W-9000-m_1.0.ms:2500|#Level:Host|#hostname:h,timestamp:7",
		torchserve.Line{Name: "W-9000-m_1.0", Unit: "ms", Value: 2500, Dimensions: host, Host: "h", StampS: 7})
	check("2022-03-30T10:58:39,358 [INFO ] pool-3-thread-1 TS_METRICS - A.Percent:0.0|#Level:Host|#hostname:h,timestamp:7",
		torchserve.Line{Name: "A", Unit: "Percent", Dimensions: host, Host: "h", PrefixNS: prefix, StampS: 7})
	check("[METRICS]A.Milliseconds:20.1|#Level:Host|#type:GAUGE|#hostname:h,7,id1,id2",
		torchserve.Line{Name: "A", Unit: "Milliseconds", Value: 20.1, Dimensions: host, Type: metric.Gauge, Host: "h",
			StampS: 7, Requests: []string{"id1", "id2"}})
}

func TestParseLineRefuses(t *testing.T) {
	check := func(line, want string) {
		t.Helper()
		_, err := torchserve.ParseLine([]byte(line), false)
		if none := errors.Is(err, torchserve.ErrNoMetric); err == nil || none != (want == "") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: got error %v, want %q", line, err, want)
		}
	}
	const none = ""
	check("garbage", none)
	check("", none)
	check("Model server started.", none)
	check("[METRICS]A.ms:1|#L:H|#hostname:h,7", none) // echoed elsewhere
	check("2022-03-30T10:58:39,358 [INFO ] t org.pytorch.serve.wlm.WorkerLifeCycle - "+
		"result=[METRICS]A.ms:1|#L:H|#type:GAUGE|#hostname:h,7,i, pattern=[METRICS]", none)
	check("2022-03-30T10:58:39,358 [INFO ] t ACCESS_LOG - A.ms:1|#L:H|#hostname:h,timestamp:7", none)
	check("A:1|#L:H|#hostname:h,timestamp:1", none) // no unit
	check("A.ms:1,5|#L:H|#hostname:h,timestamp:1", `A has value "1,5"`)
	check("A.ms:0x10|#L:H|#hostname:h,timestamp:1", "has value")
	check("A.ms:1_0|#L:H|#hostname:h,timestamp:1", "has value")
	check("A.ms:.5|#L:H|#hostname:h,timestamp:1", "has value")
	check("A.ms:1.|#L:H|#hostname:h,timestamp:1", "has value")
	check("A.ms:1e|#L:H|#hostname:h,timestamp:1", "has value")
	check("A.ms:1e999|#L:H|#hostname:h,timestamp:1", "has value")
	check("A.ms:|#L:H|#hostname:h,timestamp:1", "has value")
	check("A.ms:1|#LH|#hostname:h,timestamp:1", "name:value")
	check("A.ms:1|#L:H|#hostname:h,timestamp:x", "timestamp")
	check("A.ms:1|#L:H|#hostname:h,rubbish", "want a timestamp")
	check("A.ms:1|#L:H|#hostname:h,rubbish,timestamp:1", "after its host")
	check("A.ms:1|#L:H|#type:SUMM|#hostname:h,timestamp:1", "want COUNTER")
	check("A."+strings.Repeat("m", 2000)+":1|#L:H|#hostname:h,timestamp:1", "unit is too long")
	check("A.ms:1|#L:H\xff|#hostname:h,timestamp:1", "UTF-8")
	check("A.ms:1|#L:H|#hostname:"+strings.Repeat("h", 70_000), "70022 bytes")
}

func TestLineTime(t *testing.T) {
	const stamp = 1648663119
	check := func(prefix string, want int64, zone *torchserve.Zone, tail string) {
		t.Helper()
		l, err := torchserve.ParseLine([]byte(prefix+"A.ms:1|#L:H|#hostname:h,timestamp:"+tail), false)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.AtNS(zone); got != want {
			t.Errorf("%s: got %d, want %d", prefix, got, want)
		}
	}
	s := strconv.Itoa(stamp)
	var utc, la, nepal torchserve.Zone
	check("2022-03-30T17:58:39,358 - ", stamp*1e9+358e6, &utc, s)
	check("2022-03-30T10:58:39,358 - ", stamp*1e9+358e6, &la, s)       // 7 h behind
	check("2022-03-30T10:58:41,001 - ", stamp*1e9+2001e6, &la, "null") // the zone is known by now
	check("2022-03-30T23:43:39,358 - ", stamp*1e9+358e6, &nepal, s)    // 5:45 h ahead
	check("2022-03-30T17:51:00,000 - ", stamp*1e9, &utc, s)            // no zone explains that: the stamp counts
	check("", stamp*1e9, &utc, s)
	check("", 0, &utc, "null")
	check("9999-03-30T17:58:39,358 - ", 0, &utc, "null") // beyond what nanoseconds hold
	check("9999-03-30T17:58:39,358 - ", stamp*1e9, &utc, s)
}

// shape is the grammar of the design document as one expression.
var shape = regexp.MustCompile(`^([^:|]+)\.([^.:|]+):([+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|NaN|` +
	`[+-]?Infinity)\|#` +
	`((?:[^:,|]+:[^,|]*)(?:,[^:,|]+:[^,|]*)*)?(?:\|#type:(COUNTER|GAUGE|HISTOGRAM))?\|#hostname:([^,|]*)` +
	`(?:(?:,requestID:(.*))?,timestamp:([0-9]{1,9}|null))?$`)

// A line that the grammar of the design accepts is read, with the same name,
// value, host and ids. Nothing that can be made panics.
func FuzzParseLine(f *testing.F) {
	f.Add("QueueTime.ms:1|#Level:Host|#hostname:h1,timestamp:1648663")
	f.Add("2022-03-30T10:58:39,358 - A.b.Count:1.0E10|#L:H,M:x|#type:COUNTER|#hostname:h,requestID:a,b,timestamp:null")
	f.Add("[METRICS]A.ms:20.1|#Level:Host|#type:GAUGE|#hostname:h,7,id")
	f.Add("A.ms:1|#|#hostname:|#hostname:h,timestamp:,timestamp:1")
	f.Fuzz(func(t *testing.T, line string) {
		defer fuzzbound.Check(t)()
		l, err := torchserve.ParseLine([]byte(line), false)
		if err == nil && (l.Name == "" || l.Unit == "") {
			t.Errorf("%q: line without name or unit", line)
		}
		m := shape.FindStringSubmatch(line)
		if m == nil || !strings.Contains(line, "|#") || strings.ContainsAny(m[1], "=[\r") || strings.HasSuffix(line, "\r") ||
			len(line) > 24 && line[4] == '-' || strings.HasPrefix(line, "- ") || strings.ToValidUTF8(line, "") != line ||
			len(m[1]) > 1000 {
			return
		}
		want, errValue := strconv.ParseFloat(m[3], 64)
		if errValue != nil {
			return // too large
		}
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if l.Name != m[1] || l.Unit != m[2] || l.Host != m[6] || l.Value != want && want == want ||
			len(l.Requests) > 0 && strings.Join(l.Requests, ",") != m[7] {
			t.Errorf("%q: got %+v, grammar says %q", line, l, m)
		}
	})
}

package export_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// tree is a JSON document as encoding/json reads it.
type tree = map[string]any

func parse(t testing.TB, doc []byte) tree {
	t.Helper()
	var out tree
	if err := json.Unmarshal(doc, &out); err != nil {
		t.Fatalf("%v in:\n%s", err, doc)
	}
	if err := uniqueKeys(json.NewDecoder(bytes.NewReader(doc))); err != nil {
		t.Fatalf("%v in:\n%s", err, doc)
	}
	return out
}

// uniqueKeys reads one value and refuses an object with a key that occurs twice.
func uniqueKeys(d *json.Decoder) error {
	tok, err := d.Token()
	if err != nil {
		return err
	}
	open, ok := tok.(json.Delim)
	if !ok {
		return nil
	}
	seen := map[any]bool{}
	for d.More() {
		if open == '{' {
			key, err := d.Token()
			if err != nil {
				return err
			}
			if seen[key] {
				return fmt.Errorf("key %q occurs twice", key)
			}
			seen[key] = true
		}
		if err := uniqueKeys(d); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// at walks down a document by keys and indices.
func at(t testing.TB, v any, path ...any) any {
	t.Helper()
	for i, p := range path {
		var ok bool
		switch p := p.(type) {
		case string:
			v, ok = v.(tree)[p]
		case int:
			list, isList := v.([]any)
			if ok = isList && p < len(list); ok {
				v = list[p]
			}
		}
		if !ok {
			t.Fatalf("nothing at %v", path[:i+1])
		}
	}
	return v
}

func docOf(t testing.TB, f *fakeRun, o summary.Options) tree {
	t.Helper()
	r, err := buildFake(f, o)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := export.JSON(&b, r, inUTC); err != nil {
		t.Fatal(err)
	}
	return parse(t, b.Bytes())
}

// TestLocalTime has the examples of aiperf.md section 5.1.
func TestLocalTime(t *testing.T) {
	check := func(ns int64, zone *time.Location, want string) {
		t.Helper()
		r := &summary.Run{Window: summary.Window{StartNS: ns, PhaseEndNS: ns}}
		doc := parse(t, jsonOf(t, r, export.Options{Location: zone}))
		if got := at(t, doc, "summary", "start_time"); got != want {
			t.Errorf("%d: got %v, want %s", ns, got, want)
		}
	}
	check(1700000123456789012, time.UTC, "2023-11-14T22:15:23.456789")
	check(1600000000000000000, time.UTC, "2020-09-13T12:26:40")
	check(1712345678255512575, time.UTC, "2024-04-05T19:34:38.255512")
	check(1699999999999999900, time.UTC, "2023-11-14T22:13:20")
	check(1600000000000000000, time.FixedZone("", 2*3600), "2020-09-13T14:26:40")
	r := &summary.Run{Window: summary.Window{StartNS: 1600000000000000000}}
	want := time.Unix(1600000000, 0).Format("2006-01-02T15:04:05")
	if got := at(t, parse(t, jsonOf(t, r, export.Options{})), "summary", "start_time"); got != want {
		t.Errorf("in the zone of this machine: got %v, want %s", got, want)
	}
}

// TestSchemas checks the keys of both schemas in their order, and that what we
// add is a single key at the end.
func TestSchemas(t *testing.T) {
	r, _ := goldenRun(t)
	check := func(schema string, want ...string) {
		t.Helper()
		o := inUTC
		o.AIPerfSchema = schema
		d := json.NewDecoder(bytes.NewReader(jsonOf(t, r, o)))
		var got []string
		_, _ = d.Token()
		for d.More() {
			key, err := d.Token()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, key.(string))
			var skip json.RawMessage
			if err := d.Decode(&skip); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("keys of schema %q (-want +got):\n%s", schema, diff)
		}
	}
	check("", "schema_version", "aiperf_version", "benchmark_id", "summary", "metrics_phase", "metrics",
		"warmup_metrics", "input_config", "scrapestat")
	check("1.0", "schema_version", "aiperf_version", "benchmark_id", "summary", "metrics", "input_config", "scrapestat")
	old := inUTC
	old.AIPerfSchema = export.Schema10
	doc := parse(t, jsonOf(t, r, old))
	if _, ok := at(t, doc, "summary").(tree)["phase_time_ranges"]; ok || doc["schema_version"] != "1.0" {
		t.Error("schema 1.0 has phase_time_ranges or another version")
	}
	for _, o := range []export.Options{{AIPerfSchema: "2"}, {ParquetLayout: "wide"}} {
		if err := export.JSON(io.Discard, r, o); err == nil {
			t.Errorf("%+v: no error", o)
		}
		if err := export.CSV(io.Discard, r, o); err == nil {
			t.Errorf("%+v: no error from CSV", o)
		}
	}
}

// TestEmptyRun checks a run that delivered nothing.
func TestEmptyRun(t *testing.T) {
	f := newFake("http://gone/metrics").Mark(0, metric.PhaseProfiling).Mark(2, metric.MarkEnd)
	f.Info.ID, f.Info.Version = "", ""
	f.Fail(0, 1, metric.ConnectError, "refused")
	r, _ := runOfFake(t, f, summary.Options{})
	doc := jsonOf(t, r, inUTC)
	for _, want := range []string{`"aiperf_version": "scrapestat",`, `"metrics": {},`, `"endpoints_configured": [],`,
		`"endpoint_info": {},`, `"input_config": {},`} {
		if !strings.Contains(string(doc), want) {
			t.Errorf("%s is missing in:\n%s", want, doc)
		}
	}
	tr := parse(t, doc)
	if _, ok := tr["benchmark_id"]; ok {
		t.Error("an empty benchmark_id is written")
	}
	if got := at(t, tr, "scrapestat", "endpoints", 0, "first_error", "text"); got != "refused" {
		t.Errorf("first error: got %v", got)
	}
	csv := string(csvOf(t, r))
	if !strings.HasSuffix(csv, "# benchmark_id: None\n# Note: Same benchmark_id and version appear in JSON and "+
		"Parquet exports\n#\n") {
		t.Errorf("CSV:\n%s", csv)
	}
	r.Version = "scrapestat 9"
	if got := parse(t, jsonOf(t, r, inUTC))["aiperf_version"]; got != "scrapestat 9" {
		t.Errorf("version: got %v", got)
	}
}

// TestEndpointOrder checks that both lists have the order of the first fetch and
// endpoint_info that of the URLs, each URL once.
func TestEndpointOrder(t *testing.T) {
	f := newFake("http://c", "http://a", "http://b", "http://c", "http://never")
	for i, first := range []float64{2, 3, 1, 0} {
		f.Scrape(i, first, "# TYPE g gauge\ng 1\n")
	}
	f.Scrape(4, 1, "# TYPE s summary\ns_sum 1\n")
	r, _ := runOfFake(t, f, summary.Options{})
	doc := jsonOf(t, r, inUTC)
	list := at(t, parse(t, doc), "summary", "endpoints_configured")
	if diff := cmp.Diff([]any{"http://b", "http://c", "http://a"}, list); diff != "" {
		t.Errorf("first arrivals (-want +got):\n%s", diff)
	}
	info := string(doc[bytes.Index(doc, []byte(`"endpoint_info"`)):])
	a, b, c := strings.Index(info, `"http://a": {`), strings.Index(info, `"http://b": {`), strings.Index(info,
		`"http://c": {`)
	if !(0 < a && a < b && b < c) {
		t.Errorf("endpoint_info has a, b, c at %d, %d, %d", a, b, c)
	}
	if got := at(t, parse(t, doc), "scrapestat", "endpoints", 3, "warnings", 0, "code"); got != "duplicate_endpoint" {
		t.Errorf("second http://c: got warning %v", got)
	}
}

func TestTypeConflict(t *testing.T) {
	f := newFake("http://a", "http://b").Mark(0, "profiling")
	for i, typ := range []string{"gauge", "counter"} {
		f.Scrape(i, 0, "# TYPE x "+typ+"\nx 1\n")
		f.Scrape(i, 1, "# TYPE x "+typ+"\nx 4\n")
	}
	doc := docOf(t, f, summary.Options{})
	if got := at(t, doc, "metrics", "x", "type"); got != "gauge" {
		t.Errorf("x is a %v, want that of the first endpoint", got)
	}
	if n := len(at(t, doc, "metrics", "x", "series").([]any)); n != 1 {
		t.Errorf("x has %d series", n)
	}
	if got := at(t, doc, "scrapestat", "conflicting_metrics", 0, "metric", "series", 0, "stats", "total"); got != 3.0 {
		t.Errorf("the other x: got total %v", got)
	}
	if got := at(t, doc, "scrapestat", "warnings", 0, "code"); got != "type_conflict" {
		t.Errorf("got warning %v", got)
	}
}

// TestHistogramForms has the special forms of histograms.
func TestHistogramForms(t *testing.T) {
	poll := func(sum, count string, bounds ...string) string {
		body := "# TYPE h histogram\n"
		for i := 0; i < len(bounds); i += 2 {
			body += fmt.Sprintf("h_bucket{le=%q} %s\n", bounds[i], bounds[i+1])
		}
		if sum != "" {
			body += "h_sum " + sum + "\n"
		}
		return body + "h_count " + count + "\n"
	}
	series := func(o summary.Options, bodies ...string) tree {
		t.Helper()
		f := newFake("u")
		for i, b := range bodies {
			f.Scrape(0, float64(i), b)
		}
		return at(t, docOf(t, f, o), "metrics", "h", "series", 0).(tree)
	}
	check := func(name string, got tree, want string) {
		t.Helper()
		delete(got, "endpoint_url")
		text, _ := json.Marshal(got)
		if string(text) != want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, text, want)
		}
	}
	o := summary.Options{Quantiles: []float64{0.5}, Slice: time.Second}
	check("nothing gained", series(o, poll("5", "9", "1", "9", "Inf", "9"), poll("5", "9", "1", "9", "Inf", "9")),
		`{"buckets":{"+Inf":0,"1":0},"stats":{"count":0}}`)
	check("reset under clamp", series(summary.Options{Resets: normalize.ResetClamp},
		poll("25", "100", "1", "100", "+Inf", "100"), poll("5", "50", "1", "50", "+Inf", "50")),
		`{"stats":{"avg":0.4,"count":-50,"count_rate":-50,"sum":-20,"sum_rate":-20}}`)
	check("no sum", series(summary.Options{Quantiles: []float64{}}, poll("", "0", "1", "0", "+Inf", "0"),
		poll("", "4", "1", "4", "+Inf", "4")),
		`{"buckets":{"+Inf":4,"1":4},"stats":{"count":4,"count_rate":4}}`)
}

// TestNotExported checks that nothing is lost without a word.
func TestNotExported(t *testing.T) {
	f := newFake("u")
	for i := range 2 {
		f.Scrape(0, float64(i), fmt.Sprintf("# TYPE a counter\na %d\n# TYPE e stateset\ne 1\n# TYPE i info\ni 1\n# TYPE "+
			"n gauge\nn NaN\n# TYPE s summary\ns_sum 1\n# TYPE z gauge\n", i))
	}
	f.Polled[0].Polls[1].Drops = []metric.Drop{{Reason: "series_limit", Lines: 3, First: "line 9"}}
	f.Fail(0, 2, metric.TooLarge, "body over 1 MiB; --max-body raises it")
	doc := docOf(t, f, summary.Options{})
	if got := fmt.Sprint(at(t, doc, "metrics")); strings.Contains(got, "map[e:") || len(doc["metrics"].(tree)) != 1 {
		t.Errorf("metrics: %s", got)
	}
	for i, want := range []string{"e", "i", "s"} { // what AIPerf does not know
		if m := at(t, doc, "scrapestat", "metrics", i).(tree); m["name"] != want || len(m["series"].([]any)) != 1 {
			t.Errorf("got metric %v, want %s with a series", m, want)
		}
	}
	e := at(t, doc, "scrapestat", "endpoints", 0).(tree)
	text, _ := json.Marshal([]any{e["declared_without_sample"], e["limits_hit"], e["outcomes"]})
	want := `[["z"],` +
		`{"polls_too_large":1,"series_limit_lines":3},{"ok":2,"too_large":1}]`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

func TestExactTotal(t *testing.T) {
	r := oneCounter(18446744073709551615)
	r.Metrics[0].Series[0].Counter.Exact, r.Metrics[0].Series[0].Counter.HasExact = 18446744073709551615, true
	if doc := jsonOf(t, r, inUTC); !bytes.Contains(doc, []byte(`"total_exact": 18446744073709551615`)) ||
		!bytes.Contains(doc, []byte(`"total": 1.8446744073709552e+19`)) {
		t.Errorf("got:\n%s", doc)
	}
}

// hostile is text that breaks writers that trust it.
var hostile = []string{"", "'", `"`, `\`, "\x00\x1b[31m", "\xff\xfe", "a,b\r\nc", "</script><!--", "\u2028\u2029",
	"=cmd()", "{}[]:", "é😀", " x ", "\x7f", "🏳️‍🌈"}

// TestHostileText checks that no text gets out of its string, in any format.
func TestHostileText(t *testing.T) {
	for i, a := range hostile {
		for k := range 4 {
			b := hostile[(i+k*k)%len(hostile)]
			r, recs := goldenRun(t)
			l := metric.NewLabels(metric.Label{Name: "n" + a, Value: b})
			for i := range r.Metrics {
				r.Metrics[i].Help, r.Metrics[i].Unit, r.Metrics[i].OwnUnit = a, b, a+b
				r.Metrics[i].Series[0].Labels = l
			}
			r.Metrics[0].Name, r.ID, r.Version, r.Tags = "_"+a, b, a, map[string]string{a: b}
			r.Endpoints[0].URL += a
			doc := jsonOf(t, r, inUTC)
			want := strings.ToValidUTF8(strings.Map(func(r rune) rune { return r }, b), "\ufffd")
			got := at(t, parse(t, doc), "metrics", "odd", "series", 0, "labels").(tree)
			for _, v := range got {
				if v != want {
					t.Errorf("label value %q is read back as %q", b, v)
				}
			}
			if bytes.ContainsAny(doc, "<>&\u2028\u2029\x00\x1b\x7f") {
				t.Errorf("%q, %q: unsafe bytes in JSON", a, b)
			}
			rows := readCSV(t, csvOf(t, r))
			if len(rows) != 5 { // the info metric has lost its name
				t.Errorf("%q, %q: %d CSV sections", a, b, len(rows))
			}
			for _, line := range bytes.Split(bytes.TrimSuffix(jsonlOf(t, r, recs), []byte("\n")), []byte("\n")) {
				parse(t, line)
			}
		}
	}
}

// TestSameBytes checks that two exports of one recording are equal, and that
// whatever a run holds the JSON is well-formed.
func TestSameBytes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := anyRun(rt)
		o := summary.Options{Slice: time.Duration(rapid.IntRange(0, 3).Draw(rt, "slice")) * time.Second,
			Resets: normalize.ResetMode(rapid.IntRange(0, 1).Draw(rt, "resets"))}
		var first [3]string
		for i := range 2 {
			r, recs := runOfFake(t, f, o)
			got := [3]string{string(jsonOf(t, r, inUTC)), string(csvOf(t, r)), string(jsonlOf(t, r, recs))}
			if i == 0 {
				first = got
				parse(t, []byte(got[0]))
				readCSV(t, []byte(got[1]))
			} else if got != first {
				rt.Fatalf("two exports differ:\n%s", cmp.Diff(first, got))
			}
		}
	})
}

// anyRun is a run with arbitrary values, texts and label values.
func anyRun(t *rapid.T) *fakeRun {
	f := newFake("http://a/metrics", "http://b/metrics").Mark(1, metric.PhaseWarmup).Mark(2.5,
		metric.PhaseProfiling).Mark(7, metric.MarkEnd)
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	text := rapid.StringMatching(`[^\n\r]{0,8}`)
	texts := []string{"", "it's", `"`, text.Draw(t, "text 1"), text.Draw(t, "text 2")}
	number := func() string { return []string{"0", "1", "2.5", "-3e-9", "1e300", "NaN", "+Inf", "7"}[rng.IntN(8)] }
	for i := range f.Polled {
		for n := range 9 {
			var b strings.Builder
			for _, typ := range []string{"gauge", "counter", "unknown", "info"} {
				fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", typ, texts[rng.IntN(5)], typ, typ)
				for range rng.IntN(3) {
					fmt.Fprintf(&b, "%s{l=%q} %s\n", typ, texts[rng.IntN(5)], number())
				}
			}
			fmt.Fprintf(&b, "# TYPE h histogram\nh_bucket{le=\"1\"} %s\nh_bucket{le=\"+Inf\"} %s\nh_sum %s\nh_count %s\n",
				number(), number(), number(), number())
			f.Scrape(i, float64(n), b.String())
		}
	}
	return f
}

// stingy refuses to take more than left bytes.
type stingy struct{ left int }

var errFull = errors.New("disk full")

func (w *stingy) Write(p []byte) (int, error) {
	if len(p) > w.left {
		return 0, errFull
	}
	w.left -= len(p)
	return len(p), nil
}

func TestWriteErrors(t *testing.T) {
	f := golden()
	for i := range 3000 {
		f.Scrape(0, 7+float64(i), goldenBody(float64(i), 1, 1, 1, 1)) // several buffers full
	}
	r, recs := runOfFake(t, f, summary.Options{Slice: time.Second})
	for _, left := range []int{0, 100, 70_000} {
		if err := export.JSON(&stingy{left}, r, inUTC); !errors.Is(err, errFull) ||
			!strings.Contains(err.Error(), "write JSON") {
			t.Errorf("JSON after %d bytes: got error %v", left, err)
		}
		if err := export.JSONL(t.Context(), &stingy{left}, r, recs, inUTC); !errors.Is(err, errFull) {
			t.Errorf("JSONL after %d bytes: got error %v", left, err)
		}
	}
	if err := export.CSV(&stingy{10}, r, inUTC); !errors.Is(err, errFull) || !strings.Contains(err.Error(), "write CSV") {
		t.Errorf("CSV: got error %v", err)
	}
}

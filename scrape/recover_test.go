package scrape_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/scrapestat/scrapestat/internal/testkit"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// drops formats what was dropped.
func drops(s *metric.Snapshot) string {
	var out []string
	for _, d := range s.Drops {
		out = append(out, fmt.Sprintf("%s %d", d.Reason, d.Lines))
	}
	return strings.Join(out, ", ")
}

func codes(s *metric.Snapshot) string {
	var out []string
	for _, w := range s.Warnings {
		out = append(out, w.Code)
	}
	return strings.Join(out, " ")
}

func TestBadLinesCostOneLine(t *testing.T) {
	// A good line before and one after must survive whatever stands between them.
	bad := func(line, dropped string) {
		t.Helper()
		s := check(t, classic, "a 1\n"+line+"\nz 2\n", metric.Partial, "unknown a = 1\nunknown z = 2")
		if drops(s) != dropped {
			t.Errorf("%q: drops %q, want %q", line, drops(s), dropped)
		}
		for _, d := range s.Drops {
			if len(d.First) > 200 || !strings.HasPrefix(d.First, "line ") ||
				strings.ContainsFunc(d.First, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q: first case is told as %q", line, d.First)
			}
		}
	}
	bad("foo bar", "parse 1")
	bad("b 1e999", "parse 1")
	bad("b 0x1p-2", "parse 1")
	bad("b 1_000", "parse 1")
	bad("b", "parse 1")
	bad("b{", "parse 1")
	bad("b{x=\"", "parse 1")
	bad("b{x=\"1} 1", "parse 1")
	bad("b{x=\"1\ny=\"2\"} 1", "parse 2")
	bad("{} 1", "parse 1")
	bad("b{x} 1", "parse 1")
	bad("b 1 2 3", "parse 1")
	bad("\x00b 1", "parse 1")
	bad("\x1b[2J 1", "parse 1")
	bad("b{x=\"\xff\"} 1", "invalid_utf8 1")
	bad("b{x=\"1\",x=\"2\"} 1", "duplicate_label 1")
	bad("b{__name__=\"c\"} 1", "duplicate_label 1")
	bad("# TYPE h histogram\nh_bucket{le=\"abc\"} 1\nh_bucket{le=\"NaN\"} 1\nh_bucket{le=\"\"} 1", "bad_bound 3")
	bad("# TYPE s summary\ns{quantile=\"x\"} 1", "bad_bound 1")
	bad(strings.Repeat("x", 1025)+" 1", "name_limit 1")
	bad("b{x=\""+strings.Repeat("v", 16<<10+1)+"\"} 1", "value_limit 1")
	bad("b{"+strings.Repeat("y", 1025)+"=\"\"} 1", "name_limit 1")
	var many strings.Builder
	for i := range 129 {
		fmt.Fprintf(&many, "l%d=\"\",", i)
	}
	bad("b{"+many.String()+"} 1", "label_limit 1")
	bad(strings.Repeat("b{x=\"\n", 50)+"foo", "parse 51")
}

func TestTolerated(t *testing.T) {
	good := func(line, want, code string) {
		t.Helper()
		s := check(t, classic, "a 1\n"+line+"\nz 2\n", metric.OK, "unknown a = 1\nunknown z = 2\n"+want)
		if codes(s) != code {
			t.Errorf("%q: warnings %q, want %q", line, codes(s), code)
		}
	}
	good("b 3\r", "unknown b = 3", "crlf")
	good(" \tb 3 \t", "unknown b = 3", "")
	good("\n\n b{x=\"1\",} 3", `unknown b{x="1"} = 3`, "")
	good("b{ x=\"1\" , y=\"\" }\t3", `unknown b{x="1",y=""} = 3`, "")
	good("b -nan(ind)", "unknown b = NaN", "")
	good("b -NaN", "unknown b = NaN", "")
	good("b Inf", "unknown b = +Inf", "")
	good("b 3 # {trace=\"x\"} 1", "unknown b = 3", "")
	good("b 3 1700000000000", "unknown b = 3\nunknown b sample_time = 1.7e+12", "timestamps")
	good("b 3 -5", "unknown b = 3", "timestamps timestamps_absurd")
	good("b 3 1700000000001.5", "unknown b = 3\nunknown b sample_time = 1.700000000001e+12", "timestamps")
	good("b 3 99999999999999999999", "unknown b = 3", "timestamps timestamps_absurd")
	good(`{"b.c","l.x"="1"} 3`, `unknown b.c{"l.x"="1"} = 3`, "")
	good("# TYPE b.c gauge\n# TYPE \"b.c\" gauge\n{\"b.c\"} 3", `gauge b.c = 3`, "bad_metadata")
	good("# TYPE b bananas\nb 3", "unknown b = 3", "type_unknown")
	good("# TYPE b gauge\nb 3\n# TYPE b counter", "unknown b = 3", "type_conflict")
	good("b 3\n# TYPE b gauge", "unknown b = 3", "type_late")
	good("#  TYPE\tb  gauge\nb 3", "gauge b = 3", "")
	good("#\x00\n# \x00 \nb 3", "unknown b = 3", "")
	good(`b{x="}\",\\\n=\"",y="é"} 3`, `unknown b{x="}\",\\\n=\"",y="é"} = 3`, "")
	good("b{x=\"\x00\"} 3", `unknown b{x="\x00"} = 3`, "")
	check(t, classic, "\xef\xbb\xbf# TYPE a gauge\na 1\n", metric.OK, "gauge a = 1")
	check(t, openMetrics, "a 1 # {x=\"\x01\"} 1\nb -nan\nc 1 -5\n# EOF\n", metric.OK,
		"unknown a = 1\nunknown b = NaN\nunknown c = 1")
}

func TestDuplicates(t *testing.T) {
	s := check(t, classic, "a{x=\"1\",y=\"2\"} 1\nb 2\na{y=\"2\",x=\"1\"} 3\na{x=\"1\",y=\"2\"} 4\n", metric.Partial,
		"unknown a{x=\"1\",y=\"2\"} = 4\nunknown b = 2")
	if drops(s) != "duplicate_series 2" {
		t.Errorf("drops %q", drops(s))
	}
	// Spellings of one bound share a slot, whose text is the first.
	s = check(t, classic, "# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"1.0\"} 2\nh_bucket{le=\"1e0\"} "+
		"3\n", metric.Partial, "histogram h bucket[1] = 3")
	if drops(s) != "duplicate_series 2" {
		t.Errorf("drops %q", drops(s))
	}
}

func TestLimits(t *testing.T) {
	body := "a{x=\"1\"} 1\na{x=\"2\"} 1\na{x=\"3\"} 1\na{x=\"4\",y=\"1\"} 1\n"
	_, s := decodeOne(t, scrape.Options{Limits: scrape.Limits{Samples: 3}}, classic, body)
	if s.Outcome != metric.TooLarge || s.Lines != 4 || s.Dropped() != 4 || !strings.Contains(s.Err, "--max-samples") {
		t.Errorf("samples: %v, %d lines, drops %v: %s", s.Outcome, s.Lines, s.Drops, s.Err)
	}
	_, s = decodeOne(t, scrape.Options{Limits: scrape.Limits{Samples: 4}}, classic, body)
	if s.Outcome != metric.OK {
		t.Errorf("samples, exactly the limit: %v %s", s.Outcome, s.Err)
	}
	_, s = decodeOne(t, scrape.Options{Limits: scrape.Limits{Series: 2}}, classic, body)
	if drops(s) != "series_limit 2" || len(s.Warnings) != 1 ||
		!strings.Contains(s.Warnings[0].Text, `label "x" has the most values (2)`) ||
		!strings.Contains(s.Warnings[0].Text, "--max-series") {
		t.Errorf("series: drops %v, warnings %v", s.Drops, s.Warnings)
	}
	_, s = decodeOne(t, scrape.Options{Limits: scrape.Limits{Buckets: 2}}, classic,
		"# TYPE h histogram\nh_bucket{le=\"3\"} 1\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"2\"} 1\nh_sum 1\n")
	if drops(s) != "bucket_limit 1" || !strings.Contains(s.Drops[0].First, "--max-buckets") {
		t.Errorf("buckets: drops %v", s.Drops)
	}
}

func TestKeepAndDrop(t *testing.T) {
	body := "# TYPE a_total counter\na_total 1\n# TYPE a_created gauge\na_created 5\n# TYPE h histogram\nh_sum " +
		"1\nh_count 2\nb 3\n"
	filter := func(keep, drop, want string, filtered int) {
		t.Helper()
		var o scrape.Options
		if keep != "" {
			o.Keep = regexp.MustCompile(keep)
		}
		if drop != "" {
			o.Drop = regexp.MustCompile(drop)
		}
		c, s := decodeOne(t, o, classic, body)
		if got := strings.Join(c.samples(), "; "); got != want || s.Outcome != metric.OK || s.Dropped() != filtered ||
			len(s.Warnings) > 0 {
			t.Errorf("keep %q drop %q: %v, got %s, drops %v, warnings %v", keep, drop, s.Outcome, got, s.Drops, s.Warnings)
		}
	}
	filter("^h$", "", "histogram h count = 2; histogram h sum = 1", 3)
	filter("^a_total$", "", "counter a = 1; counter a created = 5", 3)
	filter("", "^(a|h)$", "unknown b = 3", 4)
	filter(".", ".", "", 5)
}

func TestDeclaredWithoutSamples(t *testing.T) {
	if s := check(t, classic, "a 1\n# TYPE g gau", metric.Partial, "unknown a = 1"); len(s.DictDelta.Families) != 1 {
		t.Errorf("a TYPE line that was cut off declares %v", s.DictDelta.Families)
	}
	s := check(t, classic, "# HELP g Text.\n# TYPE g gauge\n", metric.OK, "")
	if len(s.DictDelta.Families) != 1 || s.DictDelta.Families[0] != (metric.Family{Name: "g", Type: metric.Gauge,
		Help: "Text."}) {
		t.Errorf("families %v", s.DictDelta.Families)
	}
}

// TestOverTime follows one target through changes of its body.
func TestOverTime(t *testing.T) {
	w := newTwins(t)
	poll := func(body, want string, full bool) {
		t.Helper()
		s := w.step(t, scrape.Body{Bytes: []byte(body), ContentType: classic})
		if got := strings.Join(w.saw.samples(), "; "); got != want || s.Delta.Full != full {
			t.Errorf("%q: got %s, full %v; want %s, %v", body, got, s.Delta.Full, want, full)
		}
	}
	poll("# TYPE x_total counter\nx_total 1\n", "counter x = 1", true)
	poll("# TYPE x_total counter\nx_total 2\n", "counter x = 2", false)
	poll("# TYPE x gauge\nx 9\n# TYPE x_total counter\nx_total 3\n", "counter x = 3; gauge x = 9", true)
	poll("# TYPE x_total gauge\nx_total 3\n", "gauge x_total = 3", true)
	poll("# TYPE x_total counter\nx_total 4\n", "counter x = 4", true)
	poll("<html>", "counter x = 4", false)
	poll("# TYPE x_total counter\nx_total 4\n", "counter x = 4", false)
	poll("", "", true)
	poll("", "", false)
	poll("x_total 4\n", "unknown x_total = 4", true)
	poll("x_total 4\ny", "unknown x_total = 4", false)
	if n := len(w.saw.dict.Families); n != 4 {
		t.Errorf("%d families, want 4: %v", n, w.saw.dict.Families)
	}
}

// TestValuesEqualTextparse compares all samples of whole bodies with those that
// textparse finds by itself, but for values that mean "none".
func TestValuesEqualTextparse(t *testing.T) {
	all := bodies(3)
	files, err := filepath.Glob(filepath.Join(testkit.Path(t, "bodies"), "*.prom"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no bodies: %v", err)
	}
	for _, file := range files {
		all = append(all, testkit.Data(t, "bodies/"+filepath.Base(file)))
	}
	none := regexp.MustCompile(`(?m)^(DCGM_.* )(2147483632|9223372036854775794)$|^(.*_cache_hit_rate.* )-1(\.0)?$`)
	for _, body := range all {
		body = none.ReplaceAll(body, []byte("$1${3}NaN"))
		b := scrape.Body{Bytes: body, ContentType: classic}
		c, s := decodeOne(t, scrape.Options{}, classic, string(body))
		if !c.agrees(t, s, b) {
			t.Errorf("%v: not compared with textparse; drops %v", s.Outcome, s.Drops)
		}
	}
}

func TestHostileBodiesAreQuick(t *testing.T) {
	quick := func(name, body string) {
		t.Helper()
		start := time.Now()
		_, s := decodeOne(t, scrape.Options{}, classic, body)
		if d := time.Since(start); d > 20*time.Second { // usually below 0.1 s
			t.Errorf("%s: %v after %v", name, s.Outcome, d)
		}
	}
	quick("comments", strings.Repeat("# x\n\n", 100_000))
	quick("open quotes", strings.Repeat("b{x=\"\n", 10_000))
	quick("escaped quotes", "b{x=\""+strings.Repeat("\n\\\"", 10_000))
	quick("one line", "a{x=\""+strings.Repeat("y", 2<<20)+"\"} 1\n")
	quick("one open line", "a{x=\""+strings.Repeat("y", 2<<20))
	var labels strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&labels, "l%d=\"\",", i)
	}
	quick("labels", "a{"+labels.String()+"} 1\n")
	var types strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&types, "# TYPE t%d histogram\nt%d_bucket{le=\"%d\"} 1\n", i, i, i)
	}
	quick("types", types.String())
	types.Reset()
	for i := range 2000 {
		fmt.Fprintf(&types, "h_bucket{le=\"%d\"} 1\n", -i)
	}
	quick("descending buckets", "# TYPE h histogram\n"+types.String())
}

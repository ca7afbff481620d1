package openmetrics_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/scrapestat/scrapestat/internal/fuzzbound"
	"github.com/scrapestat/scrapestat/internal/sourcetest"
	"github.com/scrapestat/scrapestat/internal/timeline"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source/openmetrics"
)

func TestParseSample(t *testing.T) {
	check := func(line, want string) {
		t.Helper()
		s, reason := openmetrics.ParseSample([]byte(line), nil)
		got := reason
		if reason == "" {
			got = fmt.Sprintf("%s%s %v", s.Name, metric.NewLabels(s.Labels...), s.Value)
			if s.Stamped {
				got += fmt.Sprintf(" @%d", s.AtNS)
			}
		}
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", line, got, want)
		}
	}
	check("a 1", "a 1")
	check("a 1 1700000000", "a 1 @1700000000000000000")
	check("a 1 1700000000000", "a 1 @1700000000000000000")
	check("a 1 1700000000.123", "a 1 @1700000000123000000")
	check("a 1 1.7e9", "a 1 @1700000000000000000")
	check("a\t NaN  0", "a NaN @0")
	check("a{} +Inf -5", "a +Inf @-5000000000")
	check(`a{b="c",d="e"} 1`, `a{b="c",d="e"} 1`)
	check(`a { d = "e" , b = "c" , } 1 # {trace="x"} 2`, `a{b="c",d="e"} 1`)
	check(`a{b="c"} 1 1700000000.5 # {trace="x"} 2 3`, `a{b="c"} 1 @1700000000500000000`)
	check(`{__name__="a",b="\"\\\n\x"} 1`, `a{b="\"\\\n\\x"} 1`)
	check(`{"odd name",b="c"} 1`, `odd name{b="c"} 1`)
	check(`{"odd name","odd label"="c"} 1`, `odd name{"odd label"="c"} 1`)
	check("a:b_c 1", "a:b_c 1")
	for _, bad := range []string{"", "a", "a b", "a{ 1", `a{b} 1`, `a{b="c} 1`, `a{b="c"d="e"} 1`, `a{,} 1`, "1",
		"a 0x1p3", "a 1_000",
		"a 1 2 3", `a{__name__="b"} 1`, `{"a","b"} 1`, "{} 1", "a{b=\"\xff\"} 1", "\xff 1", `{b="c"} 1`} {
		check(bad, "parse")
	}
	check(`a{b="1",b="2"} 1`, "duplicate_label")
	for _, bad := range []string{"a 1 x", "a 1 NaN", "a 1 1e300", "a 1 9300000000.5", "a 1 99999999999999"} {
		check(bad, "bad_timestamp")
	}
}

func importText(t testing.TB, text string, o openmetrics.Options) (*sourcetest.Recorder, openmetrics.Stats) {
	t.Helper()
	r := sourcetest.New(t, sourcetest.Limits{})
	st, err := openmetrics.Import(context.Background(), strings.NewReader(text), o, r)
	if err != nil {
		t.Fatal(err)
	}
	return r, st
}

const dump = "\ufeff# HELP lat Latency \\n of.\r\n# TYPE lat histogram\r\n# UNIT lat seconds\r\n" +
	"lat_bucket{le=\"1\"} 1 1700000000.000\r\nlat_bucket{le=\"+Inf\"} 2 1700000000.000\r\n" +
	"lat_bucket{le=\"1\"} 1 1700000010.000\nlat_bucket{le=\"+Inf\"} 5 1700000010.000\n" +
	"lat_count 2 1700000000.000\nlat_count 5 1700000010.000\n\n# any comment\n" +
	"g 3\n# EOF\nlate 1 1700000010.000"

func TestImport(t *testing.T) {
	r, st := importText(t, dump, openmetrics.Options{Address: "file:x"})
	if st.Polls != 2 || st.Stored != 6 || st.Lines != 8 || st.Dropped != 1 {
		t.Errorf("stats %+v", st)
	}
	if len(st.Refused) != 1 || st.Refused[0].Reason != "after_eof" {
		t.Errorf("refused %+v, want one line after_eof", st.Refused)
	}
	if v, ok := r.Value(0, "lat", metric.Histogram, "", metric.RoleBucket, math.Inf(1)); !ok || v != 5 {
		t.Errorf("last +Inf bucket is %v, %v, want 5", v, ok)
	}
	if f := r.Dict(0).Families[0]; f.Unit != "seconds" || !strings.HasPrefix(f.Help, "Latency") {
		t.Errorf("family %+v", f)
	}
	if d := r.Instants(0)[0].Drops; len(d) != 1 || d[0].Reason != "no_timestamp" {
		t.Errorf("drops %+v, want no_timestamp", d)
	}
	if _, st = importText(t, dump, openmetrics.Options{Address: "file:x", AtNS: 1700000005e9}); st.Polls != 3 ||
		st.Dropped != 0 {
		t.Errorf("with a time for samples without: %+v", st)
	}
}

// TestLimits: a line that is too long costs that line; too many samples end the
// import and keep what was read; a reader that breaks off too.
func TestLimits(t *testing.T) {
	long := "a{b=\"" + strings.Repeat("x", 200_000) + "\"} 1 1700000000\n"
	_, st := importText(t, long+"a 1 1700000000\n"+long, openmetrics.Options{Address: "x", LineLength: 150_000})
	if st.Stored != 1 || len(st.Refused) != 1 || st.Refused[0].Lines != 2 || st.Lines != 3 {
		t.Errorf("long lines: %+v", st)
	}
	broken := errors.New("disk on fire")
	check := func(r io.Reader, o openmetrics.Options, want error, stored int64) {
		t.Helper()
		rec := sourcetest.New(t, sourcetest.Limits{})
		o.Address = "x"
		st, err := openmetrics.Import(context.Background(), r, o, rec)
		if !errors.Is(err, want) || st.Stored != stored || len(rec.Instants(0)) == 0 {
			t.Errorf("got %+v, error %v; want %d stored and %v", st, err, stored, want)
		}
	}
	check(io.MultiReader(strings.NewReader("a 1 1700000000\na 2 17000"), errReader{broken}), openmetrics.Options{},
		broken, 1)
	check(strings.NewReader("a 1 1700000000\na 2 1700000001\na 3 1700000002\n"),
		openmetrics.Options{Limits: timeline.Limits{Samples: 2}}, timeline.ErrFull, 2)
}

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) { return 0, e.err }

// FuzzImport: any bytes give polls that keep the contract, and every line is
// accounted for.
func FuzzImport(f *testing.F) {
	for _, s := range []string{dump, "a 1 1700000000\na 1 1700000000\na 2 1700000000\n",
		"x_bucket{le=\"1\"} 1 1\nx_sum 2 1\nx_count 3 1\n",
		"up 0 1\nup 1 2\na NaN 2\n", "{__name__=\"a\",job=\"j\",instance=\"i\"} 1 1700000000000\n",
		"# TYPE a bananas\n# HELP\n#\na 1 1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		defer fuzzbound.Check(t)()
		r := sourcetest.New(t, sourcetest.Limits{Slots: 50})
		st, err := openmetrics.Import(context.Background(), bytes.NewReader(text),
			openmetrics.Options{Address: "x", LineLength: 4096,
				Limits: timeline.Limits{Series: 50, Targets: 5}}, r)
		if err != nil {
			t.Fatal(err)
		}
		refused := int64(0)
		for _, d := range st.Refused {
			refused += int64(d.Lines)
		}
		if st.Failed == 0 && st.Stored+st.Dropped+st.Repeated+st.Stale+refused != st.Lines {
			t.Errorf("%d lines, but %+v", st.Lines, st)
		}
	})
}

// FuzzParseSample holds the line parser against expfmt: what that accepts as one
// sample of classic text has the same name, labels and value here.
func FuzzParseSample(f *testing.F) {
	for _, s := range []string{"a 1", `a{b="c"} 1 1700000000000`, `a{b="\\\"\n",c=""} -Inf`, "a:b{} 1e5",
		`{"n a",x="y"} 1`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		defer fuzzbound.Check(t)()
		s, reason := openmetrics.ParseSample([]byte(line), nil)
		if strings.ContainsAny(line, "#\n\r\x00") {
			return
		}
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(line + "\n"))
		if err != nil || len(families) != 1 || reason != "" {
			return
		}
		for name, family := range families {
			if len(family.Metric) != 1 || family.Metric[0].Untyped == nil {
				return
			}
			// expfmt wants no blank before a value: its "A+0 0" is A at the time 0.
			if rest, ok := strings.CutPrefix(s.Name, name); ok && rest != "" {
				if _, err := strconv.ParseFloat(rest, 64); err == nil {
					return
				}
			}
			m := family.Metric[0]
			if name != s.Name || len(m.Label) != len(s.Labels) {
				t.Fatalf("%q: got %q with %d labels, expfmt has %q with %d", line, s.Name, len(s.Labels), name, len(m.Label))
			}
			have := metric.NewLabels(s.Labels...)
			for _, l := range m.Label {
				if v, ok := have.Get(l.GetName()); !ok || v != l.GetValue() {
					t.Fatalf("%q: label %q is %q (%v), expfmt has %q", line, l.GetName(), v, ok, l.GetValue())
				}
			}
			if math.Float64bits(m.Untyped.GetValue()) != math.Float64bits(s.Value) && !math.IsNaN(s.Value) {
				t.Fatalf("%q: value %v, expfmt has %v", line, s.Value, m.Untyped.GetValue())
			}
		}
	})
}

package compare_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/compare"
	"github.com/scrapestat/scrapestat/metric"
)

// drawRun draws a run of a few families, in seconds times scale.
func drawRun(t *rapid.T, id string) func(scale float64) built {
	n := rapid.IntRange(1, 30).Draw(t, "slices")
	values := func(name string) []float64 {
		return rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(0, 8), rapid.SampledFrom([]float64{0, 0.5, 1, 3})), n,
			n).Draw(t, name)
	}
	served, level, times := values("served"), values("level"), values("times")
	perSecond := rapid.IntRange(1, 3).Draw(t, "per second")
	with := rapid.SampledFrom([]int{7, 7, 7, 3, 5, 6}).Draw(t, "families")
	layout := rapid.SampledFrom([][]float64{{.5, 1, 2, 4}, {.5, 1, 2, 4}, {1, 2, 3}}).Draw(t, "bounds")
	return func(scale float64) built {
		b := newRun(id)
		unit, bounds, scaled := "seconds", make([]float64, len(layout)), make([]float64, n)
		if scale != 1 {
			unit = "milliseconds"
		}
		for i, v := range layout {
			bounds[i] = v * scale
		}
		for i, v := range times {
			scaled[i] = v * scale
		}
		if with&1 != 0 {
			b.counter("t:served", metric.Labels{}, served...)
		}
		if with&2 != 0 {
			b.gauge("t:waiting", "", labels("stage", "0"), level...)
		}
		if with&4 != 0 {
			b.histogram("time", unit, metric.Labels{}, bounds, perSecond, scaled...)
		}
		return b
	}
}

// drawSides draws the repeats of two sides.
func drawSides(t *rapid.T) (a, b []func(float64) built) {
	for i := range rapid.IntRange(1, 5).Draw(t, "base runs") {
		a = append(a, drawRun(t, fmt.Sprint("a", i)))
	}
	for i := range rapid.IntRange(1, 5).Draw(t, "other runs") {
		b = append(b, drawRun(t, fmt.Sprint("b", i)))
	}
	return a, b
}

func inputsOf(a, b []func(float64) built, scale float64) []compare.Input {
	var out []compare.Input
	for _, f := range a {
		out = append(out, run("a", f(scale)))
	}
	for _, f := range b {
		out = append(out, run("b", f(scale)))
	}
	return out
}

// byRow are the rows by what they are about.
func byRow(r *compare.Result) map[string]*compare.Row {
	out := map[string]*compare.Row{}
	for i := range r.Rows {
		row := &r.Rows[i]
		out[row.Family+" "+row.Stat+row.Labels.String()] = row
	}
	return out
}

// TestMirror: with the sides swapped each verdict is the opposite one, on the same
// evidence.
func TestMirror(t *testing.T) {
	cat := testCatalog(t)
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawSides(t)
		there := mustCompare(t, cat, inputsOf(a, b, 1))
		back := byRow(mustCompare(t, cat, append(rename(inputsOf(b, nil, 1), "b"), rename(inputsOf(a, nil, 1), "a")...)))
		if len(back) != len(there.Rows) {
			t.Fatalf("%d rows there, %d back", len(there.Rows), len(back))
		}
		opposite := map[compare.Verdict]compare.Verdict{compare.Better: compare.Worse, compare.Worse: compare.Better}
		for key, row := range byRow(there) {
			x := row.Against[1]
			other := back[key]
			if other == nil {
				t.Fatalf("no row %s back", key)
			}
			y := other.Against[1]
			want, ok := opposite[x.Verdict]
			if !ok {
				want = x.Verdict
			}
			if y.Verdict != want || x.Evidence != y.Evidence || !equal(x.P, y.P) || !equal(x.Q, y.Q) ||
				!equal(x.Difference, -y.Difference) ||
				!equal(x.Low, -y.High) || !equal(x.High, -y.Low) || !equal(x.Effect, -y.Effect) {
				t.Fatalf("%s: there %+v\nback %+v", key, x, y)
			}
		}
	})
}

func rename(in []compare.Input, side string) []compare.Input {
	for i := range in {
		in[i].Side = side
	}
	return in
}

func mustCompare(t *rapid.T, cat *catalog.Catalog, in []compare.Input) *compare.Result {
	r, err := compare.Compare(in, compare.Options{Catalog: cat})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// equal reports whether two numbers are the same to rounding, or both none.
func equal(x, y float64) bool {
	if math.IsNaN(x) || math.IsNaN(y) {
		return math.IsNaN(x) && math.IsNaN(y)
	}
	return x == y || math.Abs(x-y) <= 1e-9*math.Max(math.Abs(x), math.Abs(y))+1e-12
}

// TestUnits: in another unit every verdict is the same, and so is every relative
// number; 1024 keeps rounding out of it.
func TestUnits(t *testing.T) {
	cat := testCatalog(t)
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawSides(t)
		one, other := byRow(mustCompare(t, cat, inputsOf(a, b, 1))), byRow(mustCompare(t, cat, inputsOf(a, b, 1024)))
		for key, row := range one {
			x, y := row.Against[1], other[key].Against[1]
			if x.Verdict != y.Verdict || x.Evidence != y.Evidence || !equal(x.Change, y.Change) || !equal(x.P, y.P) ||
				!equal(x.Q, y.Q) {
				t.Fatalf("%s: %+v\nscaled %+v", key, x, y)
			}
		}
	})
}

// TestSelf: a run against itself is the same everywhere, however often it is given;
// what cannot be compared is missing in it.
func TestSelf(t *testing.T) {
	cat := testCatalog(t)
	rapid.Check(t, func(t *rapid.T) {
		a := drawRun(t, "a")
		n := rapid.IntRange(1, 6).Draw(t, "repeats")
		var list []func(float64) built
		for range n {
			list = append(list, a)
		}
		in := inputsOf(list, list, 1)
		for i := range in {
			in[i].Run.ID = fmt.Sprint(i) // repeats are runs of their own
		}
		for key, row := range byRow(mustCompare(t, cat, in)) {
			x := row.Against[1]
			if x.Verdict != compare.Same && (x.Verdict != compare.Incomparable || row.Cells[0].Missing == "") {
				t.Fatalf("%s: %+v", key, x)
			}
			if x.Verdict == compare.Same && x.Difference != 0 {
				t.Fatalf("%s: differs by %v from itself", key, x.Difference)
			}
		}
	})
}

// TestForms: JSON and CSV of anything can be read, and hold every row.
func TestForms(t *testing.T) {
	cat := testCatalog(t)
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawSides(t)
		r := mustCompare(t, cat, inputsOf(a, b, 1))
		var js, cs bytes.Buffer
		if err := compare.JSON(&js, r); err != nil {
			t.Fatal(err)
		}
		if err := compare.CSV(&cs, r); err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Rows []struct {
				Verdict string
				Sides   []struct{ Value *float64 }
			}
			Verdicts map[string]int
		}
		if err := json.Unmarshal(js.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		sum := 0
		for _, n := range doc.Verdicts {
			sum += n
		}
		if len(doc.Rows) != len(r.Rows) || sum != len(r.Rows) ||
			len(doc.Verdicts) != compare.Verdicts+len([]string{"moved_up", "moved_down"}) {
			t.Fatalf("%d rows and %v in the JSON, want %d", len(doc.Rows), doc.Verdicts, len(r.Rows))
		}
		if lines := strings.Count(cs.String(), "\n"); lines != len(r.Rows)+1 {
			t.Fatalf("%d lines of CSV, want %d", lines, len(r.Rows)+1)
		}
		if s := cs.String(); strings.Contains(s, "NaN") || strings.Contains(s, "Inf") && !strings.Contains(s, "needs") {
			t.Fatalf("NaN in the CSV:\n%s", s)
		}
	})
}

// TestOrder: the worst rows are first, in any order of the metrics.
func TestOrder(t *testing.T) {
	none := metric.Labels{}
	of := func(id string, served, waiting, usage float64) built {
		return newRun(id).counter("t:served", none, wave(40, served, 1)...).gauge("t:usage", "", none,
			wave(40, usage, .01)...).
			gauge("t:waiting", "", none, wave(40, waiting, .1)...).counter("gone"+id, none, 1, 2)
	}
	r := do(t, compare.Options{}, run("a", of("1", 20, 4, .5)), run("b", of("2", 30, 8, .7)))
	var got []string
	for i := range r.Rows {
		got = append(got, r.Rows[i].Verdict().String()+" "+r.Rows[i].Family)
	}
	if want := "worse t:waiting,better t:served,changed t:usage,incomparable gone1,incomparable gone2"; strings.Join(got,
		",") != want {
		t.Errorf("rows are %s\nwant %s", strings.Join(got, ","), want)
	}
	if v, ok := compare.ParseVerdict("needs-repeats"); !ok || v != compare.NeedsRepeats {
		t.Error("needs-repeats is no verdict")
	}
	if _, ok := compare.ParseVerdict("nice"); ok {
		t.Error("nice is a verdict")
	}
}

// TestSeveralSides: every side is held against the first.
func TestSeveralSides(t *testing.T) {
	of := func(id string, served float64) built {
		return newRun(id).counter("t:served", metric.Labels{}, wave(40, served, 1)...)
	}
	r := do(t, compare.Options{}, run("a", of("1", 20)), run("b", of("2", 30)), run("c", of("3", 10)),
		run("d", newRun("4")))
	row := find(t, r, "t:served", "rate", metric.Labels{})
	want := []compare.Verdict{compare.Same, compare.Better, compare.Worse, compare.Incomparable}
	for side, v := range want {
		if row.Against[side].Verdict != v {
			t.Errorf("side %d: %v, want %v", side, row.Against[side].Verdict, v)
		}
	}
	if row.Verdict() != compare.Worse {
		t.Errorf("the row is %v, want the worst of its sides", row.Verdict())
	}
}

// TestBy: series are taken together by the labels that are given, gauges by the rule
// of the catalog, histograms with all their observations.
func TestBy(t *testing.T) {
	bounds := []float64{1, 2, 4}
	of := func(id string, scale float64) built {
		b := newRun(id)
		for _, replica := range []string{"0", "1"} {
			l := labels("stage", "0", "replica", replica)
			b.counter("t:served", l, wave(40, 10*scale, 1)...).gauge("t:waiting", "", l, wave(40, 2*scale, .1)...).
				gauge("t:usage", "", l, wave(40, .4*scale, .01)...).gauge("unknown", "", l, wave(40, 1, .1)...).
				histogram("time", "seconds", l, bounds, 4, wave(160, 1.4*scale, .5)...)
		}
		return b
	}
	r := do(t, compare.Options{By: []string{"stage"}}, run("a", of("1", 1)), run("b", of("2", 1.5)))
	near := func(family, stat string, value float64) {
		t.Helper()
		row := find(t, r, family, stat, labels("stage", "0"))
		if got := row.Cells[0].Value; math.Abs(got-value) > 0.05*value || row.Series != 2 {
			t.Errorf("%s %s is %v of %d series, want about %v of 2", family, stat, got, row.Series, value)
		}
	}
	near("t:served", "rate", 20)
	near("t:waiting", "avg", 4)
	near("t:usage", "avg", .4)
	near("time", "mean", 1.4)
	near("time", "p50", 1.4)
	row := find(t, r, "unknown", "avg", labels("stage", "0"))
	if got := row.Against[1].Reason; got != "several gauges, and the catalog has no rule to take them together" {
		t.Errorf("unknown gauges: %q", got)
	}
	all := do(t, compare.Options{By: []string{}}, run("a", of("1", 1)), run("b", of("2", 1.5)))
	if got := find(t, all, "t:served", "rate", metric.Labels{}).Cells[0].Value; math.Abs(got-20) > 0.5 {
		t.Errorf("by nothing: %v, want about 20", got)
	}
}

package compare_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/compare"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// incomparable wants the one row of a family and statistic to have that reason.
func incomparable(t *testing.T, a, b built, family, stat, reason string) {
	t.Helper()
	r := do(t, compare.Options{}, run("a", a), run("b", b))
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Family != family || row.Stat != stat {
			continue
		}
		got := row.Against[1]
		if got.Verdict != compare.Incomparable || got.Reason != reason {
			t.Errorf("%s %s: %v, %q, want incomparable, %q", family, stat, got.Verdict, got.Reason, reason)
		}
		if !math.IsNaN(got.P) || !math.IsNaN(got.Change) {
			t.Errorf("%s %s: p %v, change %v of what cannot be compared", family, stat, got.P, got.Change)
		}
		return
	}
	t.Errorf("no row for %s %s", family, stat)
}

// TestReasons: everything that cannot be compared has a row that says why.
func TestReasons(t *testing.T) {
	none, bounds := metric.Labels{}, []float64{1, 2, 4}
	vals := wave(40, 1.5, 1)
	with := func() built { return newRun("1") }
	incomparable(t, with().counter("x", none, 1, 2), with(), "x", "", "only in a, not in b")
	incomparable(t, with(), with().counter("x", none, 1, 2), "x", "", "only in b, not in a")
	incomparable(t, with().counter("x", none, 1), with().gauge("x", "", none, 1), "x", "",
		"type changed: counter in a, gauge in b")
	incomparable(t, with().gauge("x", "seconds", none, 1), with().gauge("x", "bytes", none, 1), "x", "",
		"unit changed: seconds in a, bytes in b")
	incomparable(t, with().counter("x", labels("stage", "0"), 1), with().counter("x", labels("stage", "1"), 1), "x", "",
		"series only in a, not in b")
	incomparable(t, with().gauge("process_start_time_seconds", "seconds", none, 1),
		with().gauge("process_start_time_seconds", "seconds", none, 2),
		"process_start_time_seconds", "", "an instant of time, not a quantity")

	single := with()
	single.add("x", metric.Counter, "", summary.Series{Series: normalize.Series{Counter: &normalize.Counter{}}})
	incomparable(t, single, with().counter("x", none, 1, 2), "x", "rate",
		"a has none: a single sample, so nothing to take a difference of")
	empty := with()
	empty.add("h", metric.Histogram, "", summary.Series{Series: normalize.Series{Histogram: &normalize.Histogram{}}})
	full := with().histogram("h", "", none, bounds, 4, vals...)
	for _, stat := range []string{"mean", "p50", "p99"} {
		incomparable(t, full, empty, "h", stat, "b has none: no observations in the window")
		incomparable(t, empty, empty, "h", stat, "no observations in the window")
	}
	noSum := with().histogram("h", "", none, bounds, 4, vals...)
	noSum.Metrics[0].Series[0].Histogram.NoSum = true
	incomparable(t, full, noSum, "h", "mean", "b has none: the server sends no sum")

	finer := with().histogram("h", "", none, []float64{1, 1.5, 2, 4}, 4, vals...)
	incomparable(t, full, finer, "h", "p50", "bucket layouts differ (3 and 4 bounds): see the mean, and the shares at "+
		"common bounds")
	refined := with()
	refined.Options.Estimator = histest.Refined
	refined.histogram("h", "", none, bounds, 4, vals...)
	incomparable(t, full, refined, "h", "p99", "percentiles of different estimators: polynomial and refined")
	fewer := with()
	fewer.Options.Quantiles = []float64{0.5}
	fewer.histogram("h", "", none, bounds, 4, vals...)
	incomparable(t, full, fewer, "h", "p99", "b has none: the file has no p99")

	gap := with()
	gap.add("g", metric.Gauge, "", summary.Series{Series: normalize.Series{Gauge: &normalize.Gauge{}}})
	incomparable(t, with().gauge("g", "", none, 1), gap, "g", "avg", "b has none: no finite sample in the window")
	sum := with()
	sum.add("s", metric.Summary, "", summary.Series{Series: normalize.Series{Summary: &normalize.Summary{Defined: true,
		Count: 2, Sum: 3,
		Quantiles: []normalize.SummaryQuantile{{Q: .5, Text: "0.5", Value: 1}}}}})
	incomparable(t, sum, sum, "s", "quantiles", "the server's own quantiles: over a time of its choice, not the window")
	derived := func(s catalog.Status) built {
		b := with()
		b.Derived = []summary.Derived{{Derived: catalog.Derived{Pack: "p", Name: "d", Status: s, Value: 1}}}
		return b
	}
	incomparable(t, derived(catalog.OK), derived(catalog.ZeroDenominator), "d", "value", "b has none: zero_denominator")
	incomparable(t, derived(catalog.Missing), derived(catalog.Missing), "d", "value", "missing")
	declared := with()
	declared.Endpoints[0].Declared = []string{"x"}
	incomparable(t, with().counter("x", none, 1, 2), declared, "x", "", "only in a, not in b (declared without a sample)")
	incomparable(t, declared, declared, "x", "", "declared, but without a sample in any run")
}

// TestTargetsApart: targets meet by alias; one that has no partner says so.
func TestTargetsApart(t *testing.T) {
	two := func(names ...string) built {
		b := newRun("1")
		b.Endpoints = nil
		for i, n := range names {
			b.Endpoints = append(b.Endpoints, summary.Endpoint{Target: metric.Target{Name: n,
				URL: fmt.Sprintf("http://%s:%p/", n, b.Run)}})
			b.counter("x", labels("i", "0"), wave(20, float64(10*(i+1)), 1)...)
			b.Metrics[0].Series[i].Endpoint = i
		}
		return b
	}
	r := do(t, compare.Options{}, run("a", two("prefill", "decode")), run("b", two("decode", "other")))
	want := map[string]string{"prefill": "target series", "other": "target", "decode": ""}
	for i := range r.Rows {
		row := &r.Rows[i]
		switch got := row.Against[1]; row.Target {
		case "decode":
			if got.Change != -0.5 && math.Abs(got.Change+0.5) > 0.1 {
				t.Errorf("decode: change %v, want about -50 %%", got.Change)
			}
		case "prefill", "other":
			if !strings.HasPrefix(got.Reason, "target only in ") {
				t.Errorf("%s: %q", row.Target, got.Reason)
			}
		default:
			t.Errorf("row of target %q", row.Target)
		}
		delete(want, row.Target)
	}
	if len(want) > 0 {
		t.Errorf("no rows for %v", want)
	}
	one := do(t, compare.Options{}, run("a", two("x")), run("b", two("y")))
	if got := one.Rows[0]; got.Target != "" || got.Verdict() == compare.Incomparable {
		t.Errorf("single targets of other names: %q, %v", got.Target, got.Verdict())
	}
}

// TestAlignment: renamed families and labels, converted units and numbered engines
// meet, and the row says what was done.
func TestAlignment(t *testing.T) {
	bounds := []float64{.5, 1, 2}
	milli := []float64{500, 1000, 2000}
	vals := wave(40, 1, .4)
	scaled := make([]float64, len(vals))
	for i, v := range vals {
		scaled[i] = v * 1000
	}
	a := newRun("1").histogram("t:latency_ms", "milliseconds", labels("stage_id", "1", "pod", "x-1"), milli, 2, scaled...)
	b := newRun("2").histogram("t:latency_seconds", "seconds", labels("stage", "1", "pod", "y-7"), bounds, 2, vals...)
	r := do(t, compare.Options{}, run("a", a), run("b", b))
	if n := len(r.Rows); n != 4 {
		t.Errorf("%d rows, want 4", n)
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Verdict() != compare.Same || row.Stat != "rate" && row.Unit != "seconds" || len(row.Notes) == 0 {
			t.Errorf("%s: %v in %s: %v", row.Stat, row.Verdict(), row.Unit, row.Notes)
		}
	}
	row := find(t, r, "t:latency_ms", "mean", labels("stage", "1"))
	if d := row.Against[1].Distance; d == nil || d.Max > 1e-12 || len(d.Shares) != 3 || d.Shares[1].Bound != 1 {
		t.Errorf("distance %+v, want none at bounds 0.5, 1 and 2", d)
	}
	if row.Names[1] != "t:latency_seconds" || !strings.Contains(strings.Join(row.Notes, ";"),
		"renamed: t:latency_seconds in b") {
		t.Errorf("names %v, notes %v", row.Names, row.Notes)
	}

	old := newRun("1").counter("n", labels("engine", "0"), wave(20, 10, 1)...).counter("n", labels("engine", "1"),
		wave(20, 20, 1)...)
	staged := func(replicas ...string) built {
		b := newRun("2")
		for i, s := range replicas {
			b.counter("n", labels("stage", s[:1], "replica", s[1:]), wave(20, float64(10*(i+1)), 1)...)
		}
		return b
	}
	r = do(t, compare.Options{}, run("a", old), run("b", staged("00", "10")))
	for i := range r.Rows {
		if row := &r.Rows[i]; row.Verdict() != compare.Same ||
			!strings.Contains(strings.Join(row.Notes, ";"), "engines of a taken as stages") {
			t.Errorf("%v: %v %v", row.Labels, row.Verdict(), row.Notes)
		}
	}
	lone := newRun("1").counter("n", labels("engine", "0", "stage_id", "1"), wave(20, 10, 1)...)
	r = do(t, compare.Options{}, run("a", lone), run("b", newRun("2").counter("n", labels("stage", "1"),
		wave(20, 10, 1)...)))
	if row := find(t, r, "n", "rate", labels("stage", "1")); row.Verdict() != compare.Same ||
		strings.Join(row.Notes, ";") != "label engine, of one value, dropped in a" {
		t.Errorf("a lone engine: %v %v", row.Verdict(), row.Notes)
	}
	incomparable(t, old, staged("00", "01", "10"), "n", "", "series only in a, not in b")
}

// TestModels: a label that names the whole run and differs keeps nothing apart.
func TestModels(t *testing.T) {
	of := func(id, model string) built {
		return newRun(id).counter("n", labels("model_name", model, "stage", "0"), wave(20, 10, 1)...)
	}
	r := do(t, compare.Options{}, run("a", of("1", "qwen")), run("b", of("2", "qwen-fp8")))
	find(t, r, "n", "rate", labels("stage", "0"))
	if d := r.Differences; len(d) != 1 || d[0].Kind != "model" || strings.Join(d[0].Values, "|") != "qwen|qwen-fp8" {
		t.Errorf("differences %+v", d)
	}
	two := of("1", "qwen").counter("n", labels("model_name", "other", "stage", "0"), 1, 2)
	r = do(t, compare.Options{}, run("a", two), run("b", of("2", "qwen")))
	find(t, r, "n", "rate", labels("model_name", "qwen", "stage", "0"))
}

// TestDifferences: what the servers say of themselves and how it was measured comes
// first.
func TestDifferences(t *testing.T) {
	of := func(id, blocks string) built {
		b := newRun(id)
		b.add("t:cache_config_info", metric.Gauge, "", summary.Series{Labels: labels("block_size", blocks, "pid", id),
			Series: normalize.Series{Gauge: &normalize.Gauge{N: 1}}})
		return b
	}
	a, b := of("1", "16"), of("2", "32")
	b.Version, b.Window.EndNS, b.Tags = "newer", 60*second, map[string]string{"sha": "abc"}
	b.Options.Quantiles = []float64{.5}
	b.Options.Resets = normalize.ResetClamp
	in := []compare.Input{run("a", a), run("b", b)}
	in[0].Interval, in[1].Interval = 0.333, 1
	in[1].Format = compare.FormatAIPerf
	in[0].Settings = []compare.Setting{{Kind: "host", Name: "name", Value: "x"}, {Kind: "lone", Name: "y", Value: "z"}}
	in[1].Settings = []compare.Setting{{Kind: "host", Name: "name", Value: "w"}}
	r := do(t, compare.Options{}, in...)
	var got []string
	for _, d := range r.Differences {
		got = append(got, fmt.Sprintf("%s %s: %s", d.Kind, d.Name, strings.Join(d.Values, " -> ")))
	}
	want := []string{
		"info t:cache_config{block_size}: 16 -> 32", "host name: x -> w", "tag sha:  -> abc",
		"format input: run -> aiperf-json",
		"version recorded by: test -> newer", "window length: 20 s -> 60 s", "interval between polls: 0.333 s -> 1 s",
		"analysis counter resets: adjust -> clamp", "analysis percentiles: p50 p99 -> p50",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for i := range r.Rows {
		if strings.Contains(r.Rows[i].Family, "_info") {
			t.Errorf("a row for %s", r.Rows[i].Family)
		}
	}
}

// TestRefusals: what cannot be meant is an error.
func TestRefusals(t *testing.T) {
	a := run("a", newRun("1"))
	check := func(o compare.Options, inputs ...compare.Input) {
		t.Helper()
		if _, err := compare.Compare(inputs, o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
	check(compare.Options{}, a, a)
	check(compare.Options{})
	check(compare.Options{Alpha: 0.7}, a, run("b", newRun("2")))
	check(compare.Options{MinEffect: 11}, a, run("b", newRun("2")))
	check(compare.Options{Profile: "nosuch"}, a, run("b", newRun("2")))
}

// TestCaveats: percentiles of SGLang's time to the first token carry the catalog's
// caveat, its mean and other engines' do not, and the result lists it once.
func TestCaveats(t *testing.T) {
	const ttft = "sglang:time_to_first_token_seconds"
	with := func(factor float64) built {
		bounds, vals := []float64{0.1, 1, 2, 4}, wave(40, 1.5, factor)
		return newRun("1").histogram(ttft, "seconds", metric.Labels{}, bounds, 4, vals...).
			histogram("vllm:time_to_first_token_seconds", "seconds", metric.Labels{}, bounds, 4, vals...)
	}
	r := do(t, compare.Options{}, run("a", with(1)), run("b", with(1.1)))
	got := map[string]bool{}
	for i := range r.Rows {
		got[r.Rows[i].Family+" "+r.Rows[i].Stat] = slices.Contains(r.Rows[i].Notes, "caveat n")
	}
	for row, want := range map[string]bool{ttft + " p50": true, ttft + " p99": true, ttft + " mean": false,
		ttft + " rate":                         false,
		"vllm:time_to_first_token_seconds p99": false} {
		if has, ok := got[row]; !ok || has != want {
			t.Errorf("%s: caveat n %v (there: %v), want %v", row, has, ok, want)
		}
	}
	if len(r.Caveats) != 1 || r.Caveats[0].Letter != "n" || r.Caveats[0].Text == "" {
		t.Errorf("caveats %+v, want n once", r.Caveats)
	}
}

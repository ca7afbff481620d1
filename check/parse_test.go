package check_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/scrapestat/scrapestat/check"
	"github.com/scrapestat/scrapestat/internal/fuzzbound"
)

// TestParse: what each part of an expression means.
func TestParse(t *testing.T) {
	good := func(text string, want check.Assertion) {
		t.Helper()
		got, err := check.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			return
		}
		want.Text = strings.Join(strings.Fields(text), " ")
		want.Name = want.Text
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(check.Matcher{}), cmpopts.EquateEmpty(),
			cmpopts.EquateApprox(1e-12, 0)); diff != "" {
			t.Errorf("%s: -want +got\n%s", text, diff)
		}
	}
	avg, p99 := check.Stat{Name: "avg"}, check.Stat{Name: "p", Arg: 99}
	family := func(name string, s check.Stat, op string, v float64, unit string) check.Assertion {
		return check.Assertion{From: check.FromFamily, Metric: name, Stat: s, Op: op, Want: check.Limit{Value: v, Unit: unit}}
	}
	// The examples of the contract.
	d := family("vllm:omni_audio_rtf", p99, "<", 1, "")
	d.Match = []check.Matcher{{Label: "stage", Op: "=", Value: "1"}}
	good(`vllm:omni_audio_rtf{stage="1"} p99 < 1`, d)
	good(`derived:rtf_slo_attainment >= 0.99`, check.Assertion{From: check.FromDerived, Metric: "rtf_slo_attainment",
		Op: ">=", Want: check.Limit{Value: 0.99}})
	good(`vllm:num_preemptions total == 0`, family("vllm:num_preemptions", check.Stat{Name: "total"}, "==", 0, ""))
	good(`requests:ttft p99 <= 450ms`, check.Assertion{From: check.FromRequests, Metric: "ttft", Stat: p99, Op: "<=",
		Want: check.Limit{Value: 450, Unit: "ms"}})
	good(`qps ~= 100 ±10%`, check.Assertion{From: check.FromRequests, Metric: "qps", Op: "~=",
		Want: check.Limit{Value: 100}, Tolerance: check.Margin{Value: 0.1, Percent: true}})

	good("  a  mean<1.5 GiB ", family("a", avg, "<", 1.5, "GiB"))
	good("a p999>1e3tok/s", family("a", check.Stat{Name: "p", Arg: 99.9}, ">", 1000, "tok/s"))
	good("a p99.9 != -2E-3", family("a", check.Stat{Name: "p", Arg: 99.9}, "!=", -0.002, ""))
	good("a median >= 1_000", family("a", check.Stat{Name: "p", Arg: 50}, ">=", 1000, ""))
	good("a share(450ms) >= 95%", family("a", check.Stat{Name: "share", Arg: 450, Unit: "ms"}, ">=", 95, "%"))
	d = family("m.n", avg, "<", 1, "")
	d.Match = []check.Matcher{{Label: "b.c", Op: "!=", Value: `x"y`}, {Label: "e", Op: "=~", Value: "a|b"},
		{Label: "f", Op: "!~", Value: ".*"}}
	good(`{"m.n", "b.c"!="x\"y", e=~"a|b",f!~".*",} avg < 1`, d)
	good(`{__name__="up"} avg < 1`, family("up", avg, "<", 1, ""))
	d = family("a", avg, "<=", 0, "")
	d.Grouped, d.By = true, []string{"stage", "replica"}
	good("a by (stage, replica) avg <= 0", d)
	d.By = nil
	good("a by() avg <= 0", d)
	d = family("a", avg, ">=", 0, "")
	d.Want = check.Limit{Baseline: true, Shift: check.Margin{Value: -0.05, Percent: true}}
	good("a avg >= baseline - 5%", d)
	d.Want.Shift = check.Margin{Value: 10, Unit: "ms"}
	good("a avg >= baseline+10ms", d)
	d.Want.Shift = check.Margin{}
	good("a avg >= baseline", d)
}

// TestParseErrors: each says what is wrong, and what would be right.
func TestParseErrors(t *testing.T) {
	bad := func(text, want string) {
		t.Helper()
		_, err := check.Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
	bad("", "no metric")
	bad("a avg 5", "no comparison")
	bad("a < 5", "which statistic of a? of a counter: total rate")
	bad("a avgg < 5", `unknown statistic "avgg"; did you mean avg`)
	bad("a p101.5 < 5", "not between 0 and 100")
	bad("a avg < five", "no number")
	bad("a avg < 5 parsecs", "no known unit")
	bad("a avg < NaN", "no number")
	bad("a avg < 1e999", "no number")
	bad("a avg < ", "no number")
	bad("a avg ~= 5", "belong together")
	bad("a avg < 5 ±1", "belong together")
	bad("a avg ~= 5 ±-1", "not negative")
	bad("a avg < baseline * 2", "after baseline")
	bad(`a{b="c" avg < 5`, "no , or }")
	bad(`a{b} avg < 5`, "label b: no =")
	bad(`a{b=c} avg < 5`, "label b: no quoted value")
	bad(`a{b=~"("} avg < 5`, "label b: error parsing regexp")
	bad("a by avg < 5", "want by (LABELS)")
	bad("a by (b,b) avg < 5", "b is named twice")
	bad("a by (b avg < 5", "no , or )")
	bad("qps by (b) < 5", "requests are one population")
	bad("derived:x avg < 5", "has no statistic avg: it is one number")
	bad("requests:ttft < 5", "which statistic of ttft? known: avg, min")
	bad("requests:qps avg < 5", "has no statistic avg: it is one number")
	bad("requests:tttft avg < 5", "did you mean ttft")
	bad("requests:ttft total < 5", "has no statistic total")
	bad("requests:ttft p99 < 5 MB", "the limit is in MB, the metric in seconds")
	bad(`requests:ttft{a="b"} p99 < 5`, "requests have no labels")
	bad("a share(x) < 5", "want share(VALUE)")
	bad("a avg < "+strings.Repeat("1", 5000), "longer than 4096 bytes")
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`a{b="c",d=~"e|f"} by (g) p99 <= 450ms`, "derived:x >= baseline - 5%", "qps ~= 100 ±10%",
		`{"a b"} share(1ms) > 0.5`, "a p999999999999999999999 < 1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		defer fuzzbound.Check(t)()
		d, err := check.Parse(text)
		if err != nil {
			return
		}
		again, err := check.Parse(d.Text)
		if err != nil || again.Text != d.Text {
			t.Fatalf("%q became %q, which is %v, %q", text, d.Text, err, again.Text)
		}
	})
}

func FuzzReadSLO(f *testing.F) {
	f.Add("checks:\n  - a avg < 1\n  - {metric: a, stat: p99, max: 1ms, min: 0, by: 'x'}\nready: [resets, " +
		"concurrency=3]\ntargets: [qps=100]\n")
	f.Add("checks: &a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		defer fuzzbound.Check(t)()
		g, err := check.ReadSLO(strings.NewReader(text))
		if (g == nil) == (err == nil) {
			panic("a gate or an error")
		}
	})
}

// TestReadSLO: a file gives the demands in its order; what is wrong names its line.
func TestReadSLO(t *testing.T) {
	g, err := check.ReadSLO(strings.NewReader(`
checks:
  - vllm:num_preemptions total == 0
  - name: time to first token
    check: vllm:time_to_first_token_seconds p99 <= 450ms
  - metric: vllm:kv_cache_usage_perc{engine="0"}
    stat: max
    min: 10%
    max: 0.95
  - {metric: derived:output_tok_s, by: "", min: 100}
ready: [resets, concurrency=64]
targets: [qps=100, "ttft_p99_ms<=450"]
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range g.Demands {
		got = append(got, d.Name+" | "+d.Text)
	}
	for _, r := range g.Ready {
		got = append(got, r.String())
	}
	want := []string{
		"vllm:num_preemptions total == 0 | vllm:num_preemptions total == 0",
		"time to first token | vllm:time_to_first_token_seconds p99 <= 450ms",
		`vllm:kv_cache_usage_perc{engine="0"} max >= 10% | vllm:kv_cache_usage_perc{engine="0"} max >= 10%`,
		`vllm:kv_cache_usage_perc{engine="0"} max <= 0.95 | vllm:kv_cache_usage_perc{engine="0"} max <= 0.95`,
		"derived:output_tok_s by () >= 100 | derived:output_tok_s by () >= 100",
		"qps=100 | qps=100", "ttft_p99_ms<=450 | ttft_p99_ms<=450", "resets", "concurrency=64"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	bad := func(text, want string) {
		t.Helper()
		_, err := check.ReadSLO(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
	bad("", "there is none")
	bad("checks: []", "there is none")
	bad("cheks: [a avg < 1]", "line 1: field cheks not found")
	bad("checks:\n  - nam: x\n    check: a avg < 1", `line 2: unknown key "nam"; did you mean name`)
	bad("checks:\n  - {metric: a, stat: avg}", "want check, or metric with min or max")
	bad("checks:\n  - {check: a avg < 1, max: 1}", "does not go with")
	bad("checks:\n  - {metric: a, stat: avg, min: 2, max: 1}", "line 2: min 2 is above max 1")
	bad("checks:\n  - {metric: a, stat: avg, min: 2s, max: 1MB}", "min and max")
	bad("checks:\n  - [a]", "line 2: want an expression")
	bad("checks:\n  - {name: {a: b}}", "name is no text")
	bad("\n\nchecks:\n  - a avg", "line 4: parse expression")
	bad("ready: [resets, preemtions]", `unknown ready check "preemtions"; did you mean preemptions`)
	bad("ready: [concurrency]", "needs a value")
	bad("ready: [resets=3]", "takes no value")
	bad("targets: [foo=3]", "line 1: parse target")
	bad("checks: [a avg < 1]\n---\nchecks: [a avg < 2]", "second document")
	bad("checks: ["+strings.Repeat(" ", 1<<20)+"]", "longer than")
	bad("a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nchecks: [*b]", "read checks")
}

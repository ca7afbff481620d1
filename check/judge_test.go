package check_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/check"
	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

func labels(pairs ...string) metric.Labels {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return metric.LabelsFromMap(m)
}

// result is a run of two endpoints with a series of each kind, made by hand.
func result(t testing.TB) *summary.Run {
	t.Helper()
	c, err := catalog.New()
	if err != nil {
		t.Fatal(err)
	}
	one := func(e int, l metric.Labels, s normalize.Series) summary.Series {
		s.Samples = 10
		return summary.Series{Endpoint: e, Labels: l, Series: s}
	}
	counter := func(v float64) normalize.Series {
		return normalize.Series{Counter: &normalize.Counter{Defined: true, Total: v, Rate: v / 10}}
	}
	h := &normalize.Histogram{Count: 100, Sum: 30, Avg: 0.3, CountRate: 10, HasRates: true,
		Buckets:   []normalize.Bucket{{Upper: 0.1, Count: 10}, {Upper: 0.5, Count: 90}, {Upper: math.Inf(1), Count: 100}},
		Quantiles: []histest.Estimate{{Value: 0.3, Low: 0.1, High: 0.5}, {Value: 0.45, Low: 0.1, High: 0.5}}}
	r := &summary.Run{ID: "r", Options: summary.Options{Catalog: c, Quantiles: []float64{0.5, 0.9}}}
	r.Endpoints = []summary.Endpoint{{Target: metric.Target{Name: "a", URL: "http://a/metrics",
		Labels: labels("role", "prefill")}, Declared: []string{"silent"}},
		{Target: metric.Target{URL: "http://b/metrics"}}}
	restarted := counter(5)
	restarted.Resets = 2
	r.Metrics = []summary.Metric{
		{Name: "empty_seconds", Unit: "seconds", Series: []summary.Series{one(0, labels(),
			normalize.Series{Histogram: &normalize.Histogram{}})}},
		{Name: "lat_seconds", Unit: "seconds", Series: []summary.Series{one(0, labels("k", "x"),
			normalize.Series{Histogram: h})}},
		{Name: "nan", Series: []summary.Series{one(0, labels(),
			normalize.Series{Gauge: &normalize.Gauge{N: 3, Last: math.NaN()}})}},
		{Name: "once", Series: []summary.Series{one(0, labels(), normalize.Series{Counter: &normalize.Counter{}})}},
		{Name: "reqs", Unit: "requests", Series: []summary.Series{one(0, labels("r", "stop"), counter(80)),
			one(0, labels("r", "error"), counter(0)), one(1, labels("r", "stop"), restarted)}},
		{Name: "size_us", OwnUnit: "microseconds", Series: []summary.Series{one(0, labels(),
			normalize.Series{Summary: &normalize.Summary{Defined: true, Count: 4, Sum: 8000, Avg: 2000}})}},
		{Name: "vllm:gpu_cache_usage_perc", Unit: "ratio", Series: []summary.Series{one(1, labels("engine", "0"),
			normalize.Series{Gauge: &normalize.Gauge{N: 9, Spread: normalize.Spread{Avg: 0.5, Min: 0.1, Max: 0.9, Std: 0.2},
				TimeAvg: 0.4, First: 0.2, Last: 0.6, Quantiles: []float64{0.5, 0.8}}})}},
	}
	r.Derived = []summary.Derived{
		{Endpoint: 0, Derived: catalog.Derived{Name: "output_tok_s", Unit: "tokens/s", Labels: labels("model_name", "m"),
			Value: 1200, Canonical: "output_tokens_rate"}},
		{Endpoint: 0, Derived: catalog.Derived{Name: "spec_rate", Unit: "ratio", Status: catalog.Missing,
			Families: []string{"vllm:spec"}}},
		{Endpoint: 0, Derived: catalog.Derived{Name: "share", Unit: "ratio", Status: catalog.Partial, Value: 0.5}},
	}
	r.Aggregates = []summary.Aggregate{
		{Metric: 4, Labels: labels("r", "stop"), Series: 2, Counter: &normalize.Counter{Defined: true, Total: 85, Rate: 8.5},
			Resets: 2},
		{Metric: 1, Refused: "no bucket bound is common"},
		{Metric: 6, Series: 2, Gauge: &summary.GaugeAggregate{Rule: "sum", TimeAvg: 0.8, Min: 0.2, Max: 1.8}},
	}
	r.Combined = []summary.FleetResult{{Derived: []summary.Derived{{Endpoint: -1,
		Derived: catalog.Derived{Name: "output_tok_s", Unit: "tokens/s", Value: 2400}}}},
		{Labels: labels("r", "stop"), Derived: []summary.Derived{{Endpoint: -1,
			Derived: catalog.Derived{Name: "output_tok_s", Unit: "tokens/s", Value: 7}}}}}
	return r
}

// evidence has the same numbers for every grouping.
func evidence(t testing.TB) *check.Evidence {
	t.Helper()
	r := result(t)
	q := []events.Quantile{{Key: "99", P: 99, Value: 4e8}}
	return &check.Evidence{Run: r, Grouped: map[string]*summary.Run{"": r, "r": r, "k": r},
		Requests: &events.Report{Issued: 100, Completed: 99, Succeeded: 97, Failed: 3, InFlight: 1,
			QPS: events.Value{Known: true, V: 95}, TPS: events.Value{Reason: "no request says how many tokens it got"},
			TTFT: events.Distribution{N: 97, Mean: 2e8, Min: 1e8, Max: 5e8, Quantiles: q},
			TPOT: events.Distribution{Reason: "no tokens"}}}
}

func judge(t testing.TB, text string, e *check.Evidence) (check.Check, error) {
	t.Helper()
	d, err := check.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	g := check.Gate{Demands: []check.Assertion{d}}
	r, err := g.Judge(e)
	if err != nil {
		return check.Check{}, err
	}
	if r.Verdict != r.Answers[0].Verdict {
		t.Errorf("%s: the gate says %s, its only check %s", text, r.Verdict, r.Answers[0].Verdict)
	}
	return r.Answers[0], nil
}

// TestJudge: closed cases of every source, statistic and operator.
func TestJudge(t *testing.T) {
	e := evidence(t)
	holds := func(text string, want check.Verdict, value float64) {
		t.Helper()
		a, err := judge(t, text, e)
		if err != nil || a.Verdict != want || a.Outcomes[0].Value != value || a.Outcomes[0].Why != "" {
			t.Errorf("%s: %s %v, %v; want %s %v", text, a.Verdict, a.Outcomes, err, want, value)
		}
	}
	holds(`reqs{r="error"} total == 0`, check.Pass, 0)
	holds("reqs_total total > 0", check.Fail, 0) // of three series the worst
	holds("reqs total <= 80", check.Pass, 80)    // the one with the least room first
	holds("reqs total <= 79 req", check.Fail, 80)
	holds(`reqs{target="http://b/metrics"} total == 5`, check.Pass, 5)
	holds(`reqs{role="prefill",r="stop"} rate >= 8 req/s`, check.Pass, 8)
	holds(`reqs{endpoint=~"http://b.*"} resets == 0`, check.Fail, 2)
	holds("reqs series == 3", check.Pass, 3)
	holds("reqs samples >= 10", check.Pass, 10)
	holds("lat_seconds p90 < 450ms", check.Fail, 0.45)
	holds("lat_seconds p90 <= 450ms", check.Pass, 0.45)
	holds("lat_seconds p50 < 0.4", check.Pass, 0.3)
	holds("lat_seconds avg ~= 290ms ±5%", check.Pass, 0.3)
	holds("lat_seconds avg ~= 290ms ±5ms", check.Fail, 0.3)
	holds("lat_seconds count != 100", check.Fail, 100)
	holds("lat_seconds rate > 9 /s", check.Pass, 10)
	holds("lat_seconds sum == 30s", check.Pass, 30)
	holds("lat_seconds share(500ms) >= 90%", check.Pass, 0.9)
	holds("lat_seconds share(200ms) >= 10%", check.Pass, 0.1) // provably
	holds("size_us avg < 3ms", check.Pass, 2000)
	holds("vllm:kv_cache_usage_perc max <= 90%", check.Pass, 0.9) // a newer name
	holds("vllm:gpu_cache_usage_perc time_avg <= 0.3", check.Fail, 0.4)
	holds("vllm:gpu_cache_usage_perc p90 <= 0.8", check.Pass, 0.8)
}

// TestJudgeTogether: groups, derived quantities and requests.
func TestJudgeTogether(t *testing.T) {
	e := evidence(t)
	holds := func(text string, want check.Verdict, value float64) {
		t.Helper()
		a, err := judge(t, text, e)
		if err != nil || a.Verdict != want || a.Outcomes[0].Value != value || a.Outcomes[0].Why != "" {
			t.Errorf("%s: %s %v, %v; want %s %v", text, a.Verdict, a.Outcomes, err, want, value)
		}
	}
	holds("reqs by (r) total >= 85", check.Pass, 85)
	holds(`reqs by (r) resets == 0`, check.Fail, 2)
	holds("vllm:kv_cache_usage_perc by () time_avg < 1", check.Pass, 0.8)
	holds("vllm:kv_cache_usage_perc by () max > 0.5", check.Pass, 1.8)
	holds("derived:output_tok_s >= 1.2e3 tok/s", check.Pass, 1200)
	holds("derived:output_tokens_rate >= 1000", check.Pass, 1200)
	holds(`derived:output_tok_s{model_name="m",target="a"} < 1000`, check.Fail, 1200)
	holds("derived:output_tok_s by () > 2000", check.Pass, 2400)
	holds("derived:output_tok_s by (r) > 2000", check.Fail, 7)
	holds("derived:share >= 50%", check.Pass, 0.5)
	holds("qps ~= 100 ±10%", check.Pass, 95)
	holds("requests:failed == 0", check.Fail, 3)
	holds("requests:ttft p99 <= 400ms", check.Pass, 0.4)
	holds("requests:ttft avg < 200ms", check.Fail, 0.2)
	holds("requests:ttft count > 96", check.Pass, 97)

	// MLPerf's targets are demands like others.
	ds, err := check.FromTargets([]string{"qps=105.5", "qps=106", "ttft_p99_ms<=399", "ttft_ms=180"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := (&check.Gate{Demands: ds}).Judge(e)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []check.Verdict{check.Pass, check.Fail, check.Fail, check.Pass} {
		if r.Answers[i].Verdict != want {
			t.Errorf("%s: %s, want %s", r.Answers[i].Text, r.Answers[i].Verdict, want)
		}
	}
}

// TestNoData: nothing that is missing, misspelt, empty or NaN passes, and each
// says why.
func TestNoData(t *testing.T) {
	e := evidence(t)
	none := func(text, want string) {
		t.Helper()
		a, err := judge(t, text, e)
		if err != nil || a.Verdict != check.NoData || !strings.Contains(a.Outcomes[0].Why, want) {
			t.Errorf("%s: %s %+v, %v; want NO DATA %q", text, a.Verdict, a.Outcomes, err, want)
		}
	}
	none("lat_secnds p90 < 1", "did you mean lat_seconds?")
	none("vllm:num_preemptions total == 0", "it is known of vllm")
	none("silent total == 0", "was announced by a and never had a sample")
	none("nothing_like_it series == 0", "has no metric")
	none(`reqs{r="length"} total == 0`, `no series of reqs has these labels; it has`)
	none("once total == 0", "a single sample")
	none("empty_seconds p90 < 1", "nothing was observed")
	none("empty_seconds share(1s) >= 0", "nothing was observed")
	none("nan last < 1", "the value is NaN")
	none("lat_seconds p99 < 1", "give no p99")
	none("lat_seconds max < 1", "has no statistic max")
	none("derived:spec_rate > 0", "the quantity is missing: it is made of vllm:spec")
	none("derived:outptu_tok_s > 0", "did you mean output_tok_s")
	none(`derived:output_tok_s{model_name="n"} > 0`, "has these labels")
	none("lat_seconds by () avg < 1", "no bucket bound is common")
	none("vllm:kv_cache_usage_perc by () avg < 1", "have time_avg, min and max")
	none("reqs by (x) total > 0", "was not analysed by (x)")
	none("requests:tps > 0", "no request says how many tokens it got")
	none("requests:tpot avg < 1s", "no tokens")
	none("requests:ttft p98 < 1s", "not among the percentiles of requests (p99)")
	none("reqs total <= baseline", "there is no")
	e.Requests = nil
	none("qps > 0", "has no request events")

	if r, err := (&check.Gate{}).Judge(e); err != nil || r.Verdict != check.NoData {
		t.Errorf("no checks at all: %s, %v", r.Verdict, err)
	}
	for _, text := range []string{"lat_seconds avg < 1 GB", "vllm:kv_cache_usage_perc max <= 150%",
		"vllm:kv_cache_usage_perc max < 0", "lat_seconds share(1s) > 1"} {
		if _, err := judge(t, text, e); err == nil {
			t.Errorf("%s was held against the run", text)
		}
	}
}

// TestBaseline: limits made of another run, and what it lacks.
func TestBaseline(t *testing.T) {
	e := evidence(t)
	e.Baseline = evidence(t)
	base := e.Baseline.Run
	base.Metrics[1].Series[0].Histogram.Avg = 0.25
	base.Derived[0].Value, base.Derived[0].Labels = 1300, labels("model_name", "old")
	want := func(text string, verdict check.Verdict, limit float64) {
		t.Helper()
		a, err := judge(t, text, e)
		if err != nil || a.Verdict != verdict || math.Abs(a.Outcomes[0].Limit-limit) > 1e-12 {
			t.Errorf("%s: %s, %+v, %v; want %s %v", text, a.Verdict, a.Outcomes, err, verdict, limit)
		}
	}
	want("lat_seconds avg <= baseline", check.Fail, 0.25)
	want("lat_seconds avg <= baseline + 20%", check.Pass, 0.3)
	want("lat_seconds avg <= baseline + 40ms", check.Fail, 0.29)
	want("derived:output_tok_s >= baseline - 10%", check.Pass, 1170) // the only one, under another label
	want("reqs total <= baseline", check.Pass, 80)
	base.Metrics = base.Metrics[:1]
	want("lat_seconds avg <= baseline", check.NoData, 0)
}

// TestProvable: an estimate passes by its value, or by the whole of its interval.
func TestProvable(t *testing.T) {
	e := evidence(t)
	for text, both := range map[string][2]check.Verdict{
		"lat_seconds p90 < 480ms":        {check.Pass, check.Fail},
		"lat_seconds p90 <= 500ms":       {check.Pass, check.Pass},
		"lat_seconds p90 > 0.2":          {check.Pass, check.Fail},
		"lat_seconds p90 >= 0.1":         {check.Pass, check.Pass},
		"lat_seconds share(0.3s) <= 50%": {check.Pass, check.Fail},
	} {
		for i, provable := range []bool{false, true} {
			e.Provable = provable
			if a, err := judge(t, text, e); err != nil || a.Verdict != both[i] {
				t.Errorf("%s, provable %v: %s, %v", text, provable, a.Verdict, err)
			}
		}
	}
}

// TestReady: each ready check has a run that passes, one that fails and one that
// says nothing.
func TestReady(t *testing.T) {
	verdict := func(text string, e *check.Evidence) check.Verdict {
		t.Helper()
		r, err := check.ParseReady(text)
		if err != nil {
			t.Fatal(err)
		}
		out, err := (&check.Gate{Ready: []check.Ready{r}}).Judge(e)
		if err != nil {
			t.Fatal(err)
		}
		return out.Verdict
	}
	want := func(text string, want check.Verdict, change func(r *summary.Run)) {
		t.Helper()
		e := evidence(t)
		change(e.Run)
		if got := verdict(text, e); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	as := func(name string, s normalize.Series) func(*summary.Run) {
		return func(r *summary.Run) {
			r.Metrics = append(r.Metrics, summary.Metric{Name: name, Series: []summary.Series{{Endpoint: 0, Series: s},
				{Endpoint: 1, Series: s}}})
		}
	}
	nothing := func(r *summary.Run) { r.Metrics = nil }
	want("resets", check.Fail, func(*summary.Run) {})
	want("resets", check.Pass, func(r *summary.Run) { r.Metrics = r.Metrics[:2] })
	want("resets", check.NoData, nothing)
	polled := func(outcome metric.Outcome) func(*summary.Run) {
		return func(r *summary.Run) {
			for i := range r.Endpoints {
				r.Endpoints[i].Ledger.InWindow[metric.OK] = 3
				r.Endpoints[i].Ledger.InWindow[outcome]++
			}
		}
	}
	want("complete", check.Pass, polled(metric.OK))
	want("complete", check.Fail, polled(metric.Timeout))
	want("complete", check.Fail, func(r *summary.Run) {
		polled(metric.OK)(r)
		r.Endpoints[0].Ledger.Dropped = []metric.Drop{{Reason: "parse", Lines: 1}}
	})
	want("complete", check.NoData, func(*summary.Run) {})
	preempted := func(n float64) normalize.Series {
		return normalize.Series{Counter: &normalize.Counter{Defined: true, Total: n}}
	}
	want("preemptions", check.Pass, as("vllm:num_preemptions", preempted(0)))
	want("preemptions", check.Fail, as("vllm:num_preemptions", preempted(1)))
	want("preemptions", check.NoData, nothing)
	want("kv-ceiling", check.Pass, func(*summary.Run) {})
	want("kv-ceiling=80%", check.Fail, func(*summary.Run) {})
	want("kv-ceiling", check.NoData, nothing)
	running := func(most, mean float64) normalize.Series {
		return normalize.Series{Gauge: &normalize.Gauge{N: 2, Spread: normalize.Spread{Max: most}, TimeAvg: mean}}
	}
	want("concurrency=10", check.Pass, as("vllm:num_requests_running", running(10, 1)))
	want("concurrency=10", check.Pass, as("vllm:num_requests_running", running(6, 5)))
	want("concurrency=10", check.NoData, as("vllm:num_requests_running", running(6, 2))) // perhaps never at once
	want("concurrency=10", check.Fail, as("vllm:num_requests_running", running(4, 2)))
	want("concurrency=10", check.NoData, nothing)
	want("counts", check.NoData, func(*summary.Run) {})
	want("log-stats", check.NoData, nothing)
	want("log-stats", check.Fail, func(r *summary.Run) {
		r.Endpoints[0].Warnings = []metric.Warning{{Code: "flag_log_stats", Text: "start it with --log-stats"}}
	})
	want("log-stats", check.Pass, as("vllm:omni_num_requests_running", running(1, 1)))
}

// TestVerdicts is a property: the gate has the worst verdict of its checks, FAIL
// before NO DATA, in any order; and a looser limit never turns a pass into a failure.
func TestVerdicts(t *testing.T) {
	e := evidence(t)
	texts := []string{"lat_seconds avg < 1", "lat_seconds avg < 0.1", "lat_secnds avg < 1"}
	of := []check.Verdict{check.Pass, check.Fail, check.NoData}
	rapid.Check(t, func(t *rapid.T) {
		picks := rapid.SliceOfN(rapid.IntRange(0, 2), 1, 6).Draw(t, "checks")
		g, want := check.Gate{}, check.Pass
		for _, p := range picks {
			d, err := check.Parse(texts[p])
			if err != nil {
				t.Fatal(err)
			}
			g.Demands = append(g.Demands, d)
			if of[p] == check.Fail || want != check.Fail && of[p] == check.NoData {
				want = of[p]
			}
		}
		if r, err := g.Judge(e); err != nil || r.Verdict != want {
			t.Fatalf("%v: %s, %v; want %s", picks, r.Verdict, err, want)
		}
		a, b := rapid.Float64Range(0, 1).Draw(t, "a"), rapid.Float64Range(0, 1).Draw(t, "b")
		d, err := check.Parse("lat_seconds p90 <= 1")
		if err != nil {
			t.Fatal(err)
		}
		held := func(limit float64) bool {
			d.Want.Value = limit
			r, err := (&check.Gate{Demands: []check.Assertion{d}}).Judge(e)
			return err == nil && r.Verdict == check.Pass
		}
		if held(min(a, b)) && !held(max(a, b)) {
			t.Fatalf("%v passes and %v does not", min(a, b), max(a, b))
		}
	})
}

// TestWrite: every output has every verdict, and hostile texts stay texts.
func TestWrite(t *testing.T) {
	e := evidence(t)
	hostile := labels("r", "<script>|`\x1b]0;x\x07\n")
	e.Run.Metrics[4].Series[1].Labels = hostile
	var ds []check.Assertion
	for _, text := range []string{"lat_seconds p90 < 1", "reqs total > 0", "lat_secnds avg < 1"} {
		d, err := check.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		ds = append(ds, d)
	}
	r, err := (&check.Gate{Demands: ds}).Judge(e)
	if err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"text":     func(b *bytes.Buffer) error { return r.WriteText(b) },
		"markdown": func(b *bytes.Buffer) error { return r.WriteMarkdown(b) },
		"json":     func(b *bytes.Buffer) error { return r.WriteJSON(b) },
		"junit":    func(b *bytes.Buffer) error { return r.WriteJUnit(b, "run1") }} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if bytes.ContainsAny(b.Bytes(), "\x1b\x07") || name != "text" && strings.Contains(codeless(b.String()), "<script") {
			t.Errorf("%s lets a label out:\n%s", name, b.String())
		}
		if !strings.Contains(b.String(), "did you mean") {
			t.Errorf("%s does not say why there is no data", name)
		}
		switch name {
		case "json":
			var v struct {
				Schema  string
				Version int `json:"schema_version"`
				Verdict string
				Checks  []struct {
					Verdict  string
					Outcomes []struct{ Labels map[string]string }
				}
			}
			if err := json.Unmarshal(b.Bytes(), &v); err != nil || v.Schema != "scrapestat.check" || v.Version != 2 ||
				v.Verdict != "FAIL" || len(v.Checks) != 3 ||
				v.Checks[2].Verdict != "NO DATA" || v.Checks[1].Outcomes[0].Labels["r"] != "<script>|`\x1b]0;x\x07\n" {
				t.Errorf("JSON: %v %+v", err, v)
			}
		case "junit":
			var v struct {
				Suite struct {
					Tests    int `xml:"tests,attr"`
					Failures int `xml:"failures,attr"`
					Errors   int `xml:"errors,attr"`
				} `xml:"testsuite"`
			}
			if err := xml.Unmarshal(b.Bytes(), &v); err != nil || v.Suite.Tests != 3 || v.Suite.Failures != 1 ||
				v.Suite.Errors != 1 {
				t.Errorf("JUnit: %v %+v", err, v)
			}
		case "markdown":
			for _, line := range strings.Split(strings.TrimSpace(b.String()), "\n")[2:] {
				if strings.Count(line, "|")-strings.Count(line, `\|`) != 7 {
					t.Errorf("a row of Markdown is torn: %s", line)
				}
			}
		}
	}
}

// codeless is Markdown without what it shows as code.
func codeless(s string) string {
	return regexp.MustCompile("``[^`](?s:.*?)[^`]``").ReplaceAllString(s, "")
}

// TestHardening has findings by the numbers that package faults lists.
func TestHardening(t *testing.T) {
	t.Run("K25", func(t *testing.T) {
		e := evidence(t)
		e.Run.Endpoints[0].NonFinite = map[string]int{"blank": 2}
		e.Run.Endpoints[1].NonFinite = map[string]int{"blank": 1}
		for text, want := range map[string]string{"blank avg < 1": "blank has no number in the window (3 NaN or infinite)",
			"blank_total rate < 1": "blank_total has no number in the window (3 NaN or infinite)"} {
			a, err := judge(t, text, e)
			if err != nil || a.Verdict != check.NoData || a.Outcomes[0].Why != want {
				t.Errorf("%s: %s %q, %v", text, a.Verdict, a.Outcomes[0].Why, err)
			}
			var b bytes.Buffer
			r := check.Result{Verdict: a.Verdict, Answers: []check.Check{a}}
			if err := r.WriteJUnit(&b, "r"); err != nil || !strings.Contains(b.String(), "<error ") ||
				strings.Contains(b.String(), "<failure") {
				t.Errorf("%s: %v %s", text, err, b.String())
			}
		}
	})
}

// TestValidate: what is wrong with a gate shows without a run.
func TestValidate(t *testing.T) {
	c := result(t).Options.Catalog
	says := func(text, want string) {
		t.Helper()
		d, err := check.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		err = (&check.Gate{Demands: []check.Assertion{d}}).Validate(c, false)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	says("vllm:time_to_first_token_seconds p99 < 450ms", "")
	says("vllm:time_to_first_token_seconds p99 < 450 MB", "the limit is in MB, the metric in seconds")
	says("vllm:time_to_first_token_seconds total < 1", "is a histogram, which has no statistic total")
	says("vllm:time_to_first_token_seconds share(3 GB) > 0.5", "share(3GB)")
	says("vllm:num_preemptions_total p99 < 1", "is a counter")
	says("vllm:generation_tokens_total rate > 100 tok/s", "")
	says("not:known p99 < 1 GB", "")
	says(`a{r="x"} by (k) total > 0`, "add it to by (...)")
	says("a total <= baseline", "give --baseline RUN")
	if got := check.Quantiles([]check.Assertion{{Stat: check.Stat{Name: "p", Arg: 99}},
		{Stat: check.Stat{Name: "p", Arg: 50}}, {Stat: check.Stat{Name: "p", Arg: 99}}}); !slices.Equal(got,
		[]float64{0.5, 0.99}) {
		t.Errorf("quantiles %v", got)
	}
}

// A share above 1 is a mistake of who wrote it, a sum of shares is not.
func TestSumOfShares(t *testing.T) {
	e := evidence(t)
	e.Run.Metrics = append(e.Run.Metrics, summary.Metric{Name: "shares", Unit: "ratio", Series: []summary.Series{{
		Series: normalize.Series{Samples: 10, Histogram: &normalize.Histogram{Count: 4, Sum: 2.5, Avg: 0.625}}}}})
	for text, holds := range map[string]bool{"shares sum == 2.5": true, "shares avg > 2.5": false} {
		a, err := judge(t, text, e)
		if (err == nil) != holds || holds && a.Verdict != check.Pass {
			t.Errorf("%s: %v, %v", text, a.Verdict, err)
		}
	}
}

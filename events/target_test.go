package events_test

import (
	"testing"

	"github.com/scrapestat/scrapestat/events"
)

func value(v float64) events.Value { return events.Value{Known: true, V: v} }

func TestT8(t *testing.T) {
	check := func(target string, r events.Report, want events.Verdict) {
		t.Helper()
		targets, err := events.ParseTargets([]string{target})
		if err != nil {
			t.Fatal(err)
		}
		if got := events.Validate(&r, targets, -1); got.Verdict != want || len(got.Outcomes) != 1 ||
			got.Outcomes[0].Verdict != want {
			t.Errorf("%s: got %+v, want %s", target, got, want)
		}
	}
	qps := func(v float64) events.Report { return events.Report{QPS: value(v)} }
	check("qps=100", qps(90), events.Pass)
	check("qps=100", qps(110), events.Pass)
	check("qps=100", qps(111.111), events.Pass)
	check("qps=100", qps(89.99), events.Fail)
	check("qps=100", qps(111.12), events.Fail)
	check("qps=0", qps(0), events.Pass)
	check("qps>=100", qps(200), events.Pass)
	check("qps>=100", qps(99.999), events.Fail)
	check("qps=100", events.Report{QPS: events.Value{Reason: "none"}}, events.NoData)
	ttft := func(ms float64) events.Report {
		return events.Report{TTFT: events.Distribution{N: 1, Mean: ms * 1e6,
			Quantiles: []events.Quantile{{P: 99, Value: ms * 1e6}}}}
	}
	check("ttft<=450", ttft(450), events.Pass)
	check("ttft<=450", ttft(450.0001), events.Fail)
	check("ttft_p99_ms<=450", ttft(450), events.Pass)
	check("ttft p99 <= 0.45s", ttft(450.0001), events.Fail)
	check("ttft<=450", events.Report{TTFT: events.Distribution{Reason: "none"}}, events.NoData)
	check("latency_from_qps=4", events.Report{Latency: events.Distribution{N: 1, Mean: 250e6}}, events.Pass)
	targets, err := events.ParseTargets([]string{"latency_from_qps=4"})
	if err != nil || targets[0].Value != 250e6 {
		t.Errorf("latency_from_qps=4: got %+v, %v, want 250 ms", targets, err)
	}
}

// TestValidateWorst checks that a failure outranks missing data, and margins.
func TestValidateWorst(t *testing.T) {
	r := events.Report{QPS: value(50), TTFT: events.Distribution{Reason: "no request has one"},
		Latency: events.Distribution{N: 1, Mean: 90e6}}
	check := func(want events.Verdict, texts ...string) events.Validation {
		t.Helper()
		targets, err := events.ParseTargets(texts)
		if err != nil {
			t.Fatal(err)
		}
		v := events.Validate(&r, targets, 0.1)
		if v.Verdict != want {
			t.Errorf("%q: got %s, want %s", texts, v.Verdict, want)
		}
		return v
	}
	check(events.NoData)
	check(events.NoData, "latency<=100", "ttft<=1")
	check(events.Fail, "ttft<=1", "qps>=100", "ttft<=2")
	v := check(events.Pass, "latency<=100")
	nearValue(t, "margin", v.Outcomes[0].Margin, 0.1)
	v = check(events.Fail, "qps>=100")
	nearValue(t, "margin", v.Outcomes[0].Margin, -0.5)
}

func TestParseTargetsRefuses(t *testing.T) {
	for _, s := range []string{"", "qps", "=5", "qps=", "qps=x", "qps=NaN", "qps=-1", "qps<5", "qps>5", "qps_p99=5",
		"qps_ms=5", "speed=5",
		"ttft_p98<=5", "ttft_p99<=5m", "ttftp99<=5", "latency_from_qps=0", "isl_ms<=5", "latency<=Inf"} {
		if got, err := events.ParseTargets([]string{s}); err == nil {
			t.Errorf("%q: got %+v, want an error", s, got)
		}
	}
}

func FuzzParseTargets(f *testing.F) {
	f.Add("qps=100")
	f.Add("ttft_p99_ms<=450")
	f.Add("latency p999 >= 1.5 s")
	f.Fuzz(func(t *testing.T, s string) {
		targets, err := events.ParseTargets([]string{s})
		if err != nil {
			return
		}
		if v := events.Validate(&events.Report{}, targets, -1); v.Verdict != events.NoData {
			t.Errorf("%q against nothing: got %s", s, v.Verdict)
		}
	})
}

package events_test

import (
	"fmt"
	"iter"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/metric"
)

// legacy events of the old MLPerf design, as the tests of the design write them.
func ev(at int64, kind, sample, data string) metric.Event {
	return metric.Event{AtNS: at, Type: kind, Sample: sample, Data: []byte(data)}
}

func stream(list []metric.Event) iter.Seq2[*metric.Event, error] {
	return func(yield func(*metric.Event, error) bool) {
		for i := range list {
			if !yield(&list[i], nil) {
				return
			}
		}
	}
}

const (
	issue   = "loadgen_issue_called"
	first   = "first_chunk_received"
	done    = "complete"
	started = "test_started"
	ended   = "test_ended"
	stop    = "stop_performance_tracking"
)

// runE is "run E" of the design.
func runE() []metric.Event {
	return []metric.Event{
		ev(5000, started, "", ""),
		ev(10000, issue, "u1", ""),
		ev(10003, issue, "u2", ""),
		ev(10010, first, "u1", `"Hello, "`),
		ev(10190, first, "u2", `"And "`),
		ev(10202, issue, "u3", ""),
		ev(10211, done, "u1", `["Hello, ", "world"]`),
		ev(10211, "error", "u3", `{"error_type": "Timeout", "error_message": "late"}`),
		ev(10216, "error", "u3", ``),
		ev(10219, done, "u2", `{"output": ["And ", "goodbye."]}`),
		ev(10225, "error", "u3", `"again"`),
		ev(10300, ended, "", ""),
	}
}

func assemble(t *testing.T, list []metric.Event, rules events.Rules) *events.Session {
	t.Helper()
	s, err := events.Assemble(stream(list), rules)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func summarise(t *testing.T, s *events.Session, o events.ReportOptions) *events.Report {
	t.Helper()
	r, err := events.Summarise(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func reportE(t *testing.T, o events.ReportOptions) *events.Report {
	t.Helper()
	if o.Window.Name == "" {
		o.Window.Name = events.WindowLegacy
	}
	return summarise(t, assemble(t, runE(), events.Rules{Tokenizer: events.TokensChars}), o)
}

// near compares to the digits that the design prints.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > 1e-6*math.Max(1, math.Abs(want)) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func nearValue(t *testing.T, what string, got events.Value, want float64) {
	t.Helper()
	if !got.Known {
		t.Errorf("%s: got nothing (%s), want %v", what, got.Reason, want)
		return
	}
	near(t, what, got.V, want)
}

func quantile(t *testing.T, what string, d events.Distribution, p, want float64) {
	t.Helper()
	q, ok := d.Quantile(p)
	if !ok {
		t.Errorf("%s: no percentile %v", what, p)
		return
	}
	near(t, fmt.Sprintf("%s p%v", what, p), q.Value, want)
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestT1(t *testing.T) {
	r := reportE(t, events.ReportOptions{})
	equal(t, "issued", r.Issued, 3)
	equal(t, "completed", r.Completed, 2)
	equal(t, "failed", r.Failed, 1)
	equal(t, "in flight", r.InFlight, 1)
	nearValue(t, "duration", r.Duration, 5300e-9)
	nearValue(t, "QPS", r.QPSAll, 377358.4905660377)
	equal(t, "error", r.Errors[0].Name, "Timeout")
}

func TestT2(t *testing.T) {
	r, low := reportE(t, events.ReportOptions{}), reportE(t, events.ReportOptions{Method: events.Lower})
	near(t, "TTFT min", r.TTFT.Min, 10)
	near(t, "TTFT max", r.TTFT.Max, 187)
	near(t, "TTFT mean", r.TTFT.Mean, 98.5)
	quantile(t, "TTFT linear", r.TTFT, 50, 98.5)
	quantile(t, "TTFT lower", low.TTFT, 50, 10)
	quantile(t, "TTFT linear", r.TTFT, 99, 185.23)
	near(t, "latency min", r.Latency.Min, 211)
	near(t, "latency max", r.Latency.Max, 216)
	quantile(t, "latency linear", r.Latency, 90, 215.5)
	quantile(t, "latency lower", low.Latency, 90, 211)
}

func TestT3(t *testing.T) {
	r := reportE(t, events.ReportOptions{TPOT: events.PerAfterFirst})
	near(t, "max", r.TPOT.Max, 40.2)
	near(t, "min", r.TPOT.Min, 3.625)
	near(t, "request mean", r.TPOT.Mean, 21.9125)
	near(t, "token mean", r.TPOTTokens.Mean, 17.692308)
	equal(t, "tokens", r.TPOTTokens.N, 13)
	quantile(t, "token", r.TPOTTokens, 50, 3.625)
	quantile(t, "token", r.TPOTTokens, 90, 40.2)
	r = reportE(t, events.ReportOptions{})
	near(t, "n-1 max", r.TPOT.Max, 201.0/11)
	near(t, "n-1 min", r.TPOT.Min, 29.0/11)
	r = reportE(t, events.ReportOptions{TPOT: events.PerN})
	near(t, "n max", r.TPOT.Max, 16.75)
	near(t, "n min", r.TPOT.Min, 2.416667)
}

func TestT4(t *testing.T) {
	list := []metric.Event{
		ev(5000, started, "", ""),
		ev(10000, issue, "u1", ""), ev(10003, issue, "u2", ""), ev(10211, done, "u1", ""),
		ev(10213, issue, "u3", ""), ev(10216, stop, "", ""), ev(10219, done, "u3", ""), ev(10250, done, "u2", ""),
		ev(10300, ended, "", ""),
	}
	legacy := events.ReportOptions{Window: events.Window{Name: events.WindowLegacy}}
	r := summarise(t, assemble(t, list, events.Rules{}), legacy)
	nearValue(t, "duration", r.Duration, 5250e-9)
	equal(t, "completed", r.Completed, 3)
	for _, name := range []string{events.WindowLegacy, events.WindowTracked} {
		edge := slices.Clone(list)
		edge[5].AtNS = 10213 // exactly at the issue of u3
		o := events.ReportOptions{Window: events.Window{Name: name}}
		equal(t, name+": issued before a stop at an issue", summarise(t, assemble(t, edge, events.Rules{}), o).Issued, 2)
		edge[5].AtNS = 9999 // before any issue
		r = summarise(t, assemble(t, edge, events.Rules{}), o)
		if r.Duration.Known || r.QPS.Known || r.Duration.Reason == "" || r.QPS.Reason == "" {
			t.Errorf("%s, stop before any issue: got duration %+v and QPS %+v, want none with reasons", name, r.Duration, r.QPS)
		}
	}
}

func TestT5(t *testing.T) {
	refuse := func(list []metric.Event, want string) {
		t.Helper()
		if _, err := events.Assemble(stream(list), events.Rules{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
	lenient := func(list []metric.Event, want float64) {
		t.Helper()
		s := assemble(t, list, events.Rules{Lenient: true})
		r := summarise(t, s, events.ReportOptions{Window: events.Window{Name: events.WindowLegacy}})
		nearValue(t, "duration", r.Duration, want*1e-9)
		if len(r.Warnings) == 0 {
			t.Error("no warning says what was let pass")
		}
	}
	twice := append(runE(), ev(6000, started, "", ""))
	refuse(twice, "event 13: test_started at 6000 ns")
	lenient(twice, 4300)
	late := append(runE(), ev(15000, "complete", "u3", ""))
	refuse(late, "complete at 15000 ns comes after the end")
	lenient(late, 10000)
	refuse(append(runE(), ev(10300, ended, "", "")), "test_ended at 10300 ns: the session had ended")
}

func TestT7(t *testing.T) {
	var values []float64
	for v := 10.0; v <= 10000; v += 10 {
		values = append(values, v)
	}
	check := func(method string, p, want float64) {
		t.Helper()
		near(t, fmt.Sprintf("%s p%v", method, p), events.Percentile(method, values, p), want)
	}
	check(events.Linear, 50, 5005)
	check(events.Linear, 90, 9001)
	check(events.Linear, 99, 9900.1)
	check(events.Linear, 99.9, 9990.01)
	check(events.Lower, 50, 5000)
	check(events.Lower, 90, 9000)
	check(events.Lower, 99, 9900)
	check(events.Lower, 99.9, 9990)
	weights := []events.Weighted{{Value: 10, N: 1}, {Value: 20, N: 2}, {Value: 30, N: 7}}
	for p, want := range map[float64]float64{10: 10, 10.1: 20, 30: 20, 30.1: 30} {
		near(t, fmt.Sprintf("weighted p%v", p), events.WeightedPercentile(weights, p), want)
	}
}

// TestWeightedIsRepeated holds weighted percentiles against the values written
// out, and every method against order and bounds.
func TestWeightedIsRepeated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []events.Weighted
		var flat []float64
		for range rapid.IntRange(1, 20).Draw(t, "values") {
			w := events.Weighted{Value: float64(rapid.IntRange(0, 50).Draw(t, "v")), N: rapid.IntRange(1, 9).Draw(t, "n")}
			list = append(list, w)
			for range w.N {
				flat = append(flat, w.Value)
			}
		}
		slices.SortFunc(list, func(a, b events.Weighted) int { return int(a.Value - b.Value) })
		slices.Sort(flat)
		p := rapid.Float64Range(0, 100).Draw(t, "p")
		if got, want := events.WeightedPercentile(list, p), events.Percentile(events.InvertedCDF, flat, p); got != want {
			t.Fatalf("p%v of %v: got %v, want %v", p, list, got, want)
		}
		higher := min(100, p+rapid.Float64Range(0, 50).Draw(t, "step"))
		for _, m := range events.Methods {
			a, b := events.Percentile(m, flat, p), events.Percentile(m, flat, higher)
			if a > b || a < flat[0] || b > flat[len(flat)-1] {
				t.Fatalf("%s of %v: p%v is %v, p%v is %v", m, flat, p, a, higher, b)
			}
		}
	})
}

func TestT11(t *testing.T) {
	check := func(n int, p, want float64) {
		t.Helper()
		got, ok := events.EarlyStopping(upTo(n), p)
		if ok != (want != 0) || ok && got != want {
			t.Errorf("n=%d p%v: got %v, %v, want %v", n, p, got, ok, want)
		}
	}
	check(10, 50, 0)
	check(11, 50, 11)
	check(200, 50, 118)
	check(200, 95, 198)
	check(129, 95, 0)
	check(130, 95, 130)
	check(500, 90, 467)
	check(2000, 99, 1992)
	for p, least := range map[float64]int{50: 11, 75: 24, 80: 31, 95: 130, 97: 219, 99.9: 6636} {
		check(least-1, p, 0)
		check(least, p, float64(least))
	}
	check(1000, 25, 0)
	check(0, 50, 0)
}

func upTo(n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(i + 1)
	}
	return values
}

// TestEarlyStoppingOracle searches hmin(t) as the definition says, in exact
// arithmetic.
func TestEarlyStoppingOracle(t *testing.T) {
	atMost := func(n, t int, p int64) *big.Rat { // probability of at most t of n above percentile p
		sum := new(big.Rat)
		for k := range t + 1 {
			term := new(big.Rat).SetInt(new(big.Int).Binomial(int64(n), int64(k)))
			for range k {
				term.Mul(term, big.NewRat(100-p, 100))
			}
			for range n - k {
				term.Mul(term, big.NewRat(p, 100))
			}
			sum.Add(sum, term)
		}
		return sum
	}
	limit := big.NewRat(1, 100)
	for _, p := range []int64{50, 75, 90} {
		for n := 2; n <= 26; n += 6 {
			best := 0
			for tt := 1; tt < n; tt++ {
				h := 1
				for h+tt <= n && atMost(h+tt, tt, p).Cmp(limit) >= 0 {
					h++
				}
				if h+tt <= n {
					best = tt
				}
			}
			got, ok := events.EarlyStopping(upTo(n), float64(p))
			if want := float64(n - best + 1); ok != (best > 0) || ok && got != want {
				t.Errorf("n=%d p%d: got %v, %v, want %v (t=%d)", n, p, got, ok, want, best)
			}
		}
	}
}

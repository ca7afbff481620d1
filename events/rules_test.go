package events_test

import (
	"testing"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/metric"
)

// TestTextAfterFirst is the table of chunk rules, in characters, and that of the
// old design.
func TestTextAfterFirst(t *testing.T) {
	check := func(data string, current, legacy int) {
		t.Helper()
		for _, old := range []bool{false, true} {
			names := map[bool][2]string{false: {events.SampleIssued, events.SampleComplete}, true: {issue, done}}[old]
			s := assemble(t, []metric.Event{ev(1, names[0], "a", ""), ev(9, names[1], "a", data)},
				events.Rules{Tokenizer: events.TokensChars})
			want := map[bool]int{false: current, true: legacy}[old]
			if got := s.Requests[0].AfterFirst; got != want {
				t.Errorf("%s, legacy %v: got %d characters after the first chunk, want %d", data, old, got, want)
			}
		}
	}
	check(`["TextModelOutput","abc"]`, -1, -1)
	check(`["TextModelOutput",["a","bc","d"]]`, 3, 3)
	check(`["TextModelOutput",["a","bc"],""]`, 2, 2)
	check(`["TextModelOutput",["a"]]`, -1, -1)
	check(`["TextModelOutput","abc","rrrr"]`, -1, -1)
	check(`["TextModelOutput",["a","bc"],"rrrr"]`, 3, 2)
	check(`["TextModelOutput","abc",["rr","r"]]`, 4, 3)
	check(`["TextModelOutput",["a","bc"],["rr","r"]]`, 4, 5)
	check(`{"output":["a","bc"],"reasoning":["rr"]}`, 3, 4)
	check(`null`, -1, -1)
}

// TestLifecycle is the row lifecycle of the current design.
func TestLifecycle(t *testing.T) {
	s := assemble(t, []metric.Event{
		ev(1, events.SampleIssued, "early", ""),
		ev(2, events.StartTracking, "", ""),
		ev(3, events.SampleFirst, "stray", ""),
		ev(10, events.SampleIssued, "a", ""),
		ev(11, events.SampleFirst, "a", ""),
		ev(12, events.SampleIssued, "a", ""), // a retry
		ev(20, events.SampleComplete, "a", ""),
		ev(21, events.SampleComplete, "a", ""), // not in flight any more
		ev(22, events.ErrorClient, "a", `["ErrorData","Late","m"]`),
		ev(30, events.StopTracking, "", ""),
		ev(40, events.SampleIssued, "idle", ""),
		ev(50, events.StartTracking, "", ""),
		ev(55, events.SampleIssued, "a", ""), // another request of that name
		ev(56, events.StopTracking, "", ""),
		ev(75, events.SampleComplete, "a", ""), // late: extends its block
		ev(80, events.ErrorSession, "", ""),
	}, events.Rules{})
	equal(t, "requests", len(s.Requests), 4)
	equal(t, "orphans", s.Orphans, 2)
	equal(t, "session errors", s.SessionErrors, 1)
	a := s.Requests[1]
	equal(t, "issue of the retry", a.IssuedNS, 12)
	equal(t, "first chunk", a.FirstNS, 11)
	equal(t, "completion", a.CompleteNS, 20)
	equal(t, "failed after its end", a.Status, events.Failed)
	equal(t, "error", a.Error, "Late")
	r := summarise(t, s, events.ReportOptions{})
	equal(t, "issued", r.Issued, 2)
	equal(t, "outside", r.Outside, 2)
	nearValue(t, "duration", r.Duration, (18+25)*1e-9) // (20-2) + (75-50)
	r = summarise(t, s, events.ReportOptions{Window: events.Window{Name: events.WindowRange, FromNS: 12, ToNS: 41}})
	equal(t, "in range", r.Issued, 2)
	nearValue(t, "range", r.Duration, 29e-9)
}

// TestTokens is the order of what counts tokens.
func TestTokens(t *testing.T) {
	list := []metric.Event{ev(1, events.SampleIssued, "a", `["PromptData","p p",[7,8,9]]`),
		ev(2, events.SampleFirst, "a", ""), ev(3, events.SampleNext, "a", ""),
		ev(3, events.SampleDetail, "a", `{"osl":9,"token_source":"usage"}`),
		ev(4, events.SampleComplete, "a", `["TextModelOutput",["one ","two three"]]`)}
	check := func(tokenizer string, input, output int, source string) {
		t.Helper()
		q := assemble(t, list, events.Rules{Tokenizer: tokenizer}).Requests[0]
		if q.Input != input || q.Output != output || q.Source != source {
			t.Errorf("%q: got %d, %d by %q, want %d, %d by %q", tokenizer, q.Input, q.Output, q.Source, input, output, source)
		}
	}
	check("", 3, 9, events.TokensUsage)
	check(events.TokensUsage, -1, 9, events.TokensUsage)
	check(events.TokensIDs, 3, -1, "")
	check(events.TokensChunks, -1, 2, events.TokensChunks)
	check(events.TokensChars, 3, 13, events.TokensChars)
	check(events.TokensWords, 2, 3, events.TokensWords)
	if _, err := events.Assemble(stream(list), events.Rules{Tokenizer: "gpt2"}); err == nil {
		t.Error("an unknown tokenizer passes")
	}
}

// TestGoodput counts successes that keep all limits, and says of how many it
// cannot tell.
func TestGoodput(t *testing.T) {
	targets, err := events.ParseTargets([]string{"ttft<=0.00001ms", "latency_p99<=1ms", "qps>=5"})
	if err != nil {
		t.Fatal(err)
	}
	r := reportE(t, events.ReportOptions{Limits: targets})
	nearValue(t, "goodput", r.Goodput, 1/5300e-9)
	targets, err = events.ParseTargets([]string{"tpot<=1ms"})
	if err != nil {
		t.Fatal(err)
	}
	s := assemble(t, runE(), events.Rules{Tokenizer: events.TokensUsage})
	r = summarise(t, s, events.ReportOptions{Limits: targets})
	equal(t, "unjudged", r.GoodMissing, 2)
	equal(t, "no limits", reportE(t, events.ReportOptions{}).Goodput.Known, false)
	equal(t, "TPOT without tokens", r.TPOT.N, 0)
	if r.TPOT.Reason == "" || r.TPS.Known {
		t.Errorf("got TPOT %+v and TPS %+v, want reasons", r.TPOT, r.TPS)
	}
}

func TestParseWindow(t *testing.T) {
	check := func(s string, want events.Window) {
		t.Helper()
		if got, err := events.ParseWindow(s, 1000); err != nil || got != want {
			t.Errorf("%q: got %+v, %v, want %+v", s, got, err, want)
		}
	}
	check("tracked", events.Window{Name: "tracked"})
	check("steady", events.Window{Name: "steady"})
	check("steady=0.25", events.Window{Name: "steady", Crop: 0.25})
	check("phase=warm=up", events.Window{Name: "phase", Phase: "warm=up"})
	check("range=1us..2us", events.Window{Name: "range", FromNS: 2000, ToNS: 3000})
	check("range=1970-01-01T00:00:01Z..1970-01-01T00:00:02Z", events.Window{Name: "range", FromNS: 1e9, ToNS: 2e9})
	for _, s := range []string{"", "all", "tracked=1", "steady=0.5", "steady=x", "phase=", "range=5s", "range=5s..1s",
		"range=a..b"} {
		if w, err := events.ParseWindow(s, 0); err == nil {
			t.Errorf("%q: got %+v, want an error", s, w)
		}
	}
}

// TestSteady crops by time of issue.
func TestSteady(t *testing.T) {
	var list []metric.Event
	for i := int64(0); i <= 100; i++ {
		id := string(rune('A' + i))
		list = append(list, ev(i*1e9+1, events.SampleIssued, id, ""), ev(i*1e9+5, events.SampleComplete, id, ""))
	}
	r := summarise(t, assemble(t, list, events.Rules{}),
		events.ReportOptions{Window: events.Window{Name: events.WindowSteady, Crop: 0.2}})
	equal(t, "issued", r.Issued, 60)
	nearValue(t, "duration", r.Duration, 60)
	nearValue(t, "QPS", r.QPS, 1)
}

// TestWarmup: where nothing says what is tracked, the marks of the run say what was
// warm-up.
func TestWarmup(t *testing.T) {
	list := []metric.Event{ev(10, events.SampleIssued, "a", ""), ev(15, events.SampleComplete, "a", ""),
		ev(20, events.SampleIssued, "b", ""), ev(30, events.SampleComplete, "b", "")}
	check := func(want string, marks ...metric.Mark) {
		t.Helper()
		got := ""
		for _, r := range assemble(t, list, events.Rules{Marks: marks}).Requests {
			if r.Tracked {
				got += r.ID
			}
		}
		equal(t, "tracked", got, want)
	}
	warm, profiling := metric.Mark{Name: metric.PhaseWarmup, AtNS: 1}, metric.Mark{Name: metric.PhaseProfiling, AtNS: 20}
	check("ab")
	check("b", warm, profiling)
	check("ab", profiling)
	check("ab", warm)
	check("ab", warm, metric.Mark{Name: metric.PhaseProfiling, AtNS: 1000}) // a clock of its own
}

// TestOwnTracking: where our recorder told what is tracked, the rate is that of the requests, not of the time since.
func TestOwnTracking(t *testing.T) {
	stream := []metric.Event{ev(0, events.StartTracking, "", "")}
	for i := range 10 {
		at := int64(60e9 + 1e9*i)
		stream = append(stream, ev(at, events.SampleIssued, string(rune('a'+i)), ""),
			ev(at+1e9, events.SampleComplete, string(rune('a'+i)), ""))
	}
	for own, want := range map[bool]float64{true: 10. / 10, false: 10. / 70} {
		r, err := events.Summarise(assemble(t, stream, events.Rules{OwnTracking: own}), events.ReportOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.QPS.V; got != want {
			t.Errorf("own tracking %v: %v requests/s, want %v", own, got, want)
		}
	}
}

package events_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// randomJSONL writes a session as MLPerf's events.jsonl of the old or the current
// design, with retries, failures, strays and nonsense.
func randomJSONL(t *rapid.T) string {
	var b strings.Builder
	old := rapid.Bool().Draw(t, "old")
	names := map[bool][]string{
		true: {"loadgen_issue_called", "first_chunk_received", "non_first_chunk_received", "complete", "error", "nonsense"},
		false: {"sample.issued", "sample.recv_first", "sample.recv_non_first", "sample.complete", "error.generic",
			"nonsense"},
	}[old]
	field := map[bool]string{true: "value", false: "data"}[old]
	at := int64(1000)
	for range rapid.IntRange(0, 40).Draw(t, "events") {
		at += rapid.Int64Range(0, 1000).Draw(t, "step")
		data := rapid.SampledFrom([]string{"null", `"text"`, `["a","bc"]`, `["TextModelOutput",["a","b c"],["d"]]`,
			`{"osl":3,"isl":2}`, `["ErrorData","E","m"]`, `["PromptData","pp",[1,2]]`}).Draw(t, "data")
		kind := rapid.SampledFrom(names).Draw(t, "kind")
		if !old {
			kind = rapid.SampledFrom([]string{kind, kind, kind, kind, "session.start_performance_tracking",
				"session.stop_performance_tracking"}).Draw(t, "tracking")
		}
		fmt.Fprintf(&b, "{\"event_type\":%q,\"timestamp_ns\":%d,\"sample_uuid\":\"s%d\",%q:%s}\n", kind, at,
			rapid.IntRange(0, 5).Draw(t, "sample"), field, data)
	}
	return b.String()
}

// TestRunIsFile checks that events in a run.db say what the file said that they
// were imported from.
func TestRunIsFile(t *testing.T) {
	for seed := range 4 { // a database is too slow for rapid's hundred
		text := rapid.Custom(randomJSONL).Example(seed)
		rules := events.Rules{Tokenizer: []string{"", events.TokensChars, events.TokensWords, events.TokensUsage}[seed%4]}
		f, err := events.Open("", strings.NewReader(text), events.FileOptions{Kind: events.KindMLPerf})
		if err != nil {
			t.Fatal(err)
		}
		direct, err := events.Assemble(f.Stream(t.Context()), rules)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		f, err = events.Open("", strings.NewReader(text), events.FileOptions{Kind: events.KindMLPerf})
		if err != nil {
			t.Fatal(err)
		}
		w, err := rundb.OpenEvents(t.Context(), dir, rundb.EventWriterOptions{Source: "test", Create: &rundb.Meta{ID: "x"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(t.Context(), collect(t, f), rundb.EventStats{}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		run, err := rundb.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := events.Assemble(run.Events(t.Context()), rules)
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Close(); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{events.WindowTracked, events.WindowLegacy, events.WindowLoadGen, events.WindowSteady} {
			o := events.ReportOptions{Window: events.Window{Name: name}}
			a, b := reportJSON(t, direct, o), reportJSON(t, stored, o)
			if a != b {
				t.Fatalf("window %s of\n%s\nfile: %s\nrun:  %s", name, text, a, b)
			}
		}
	}
}

func reportJSON(t *testing.T, s *events.Session, o events.ReportOptions) string {
	t.Helper()
	r, err := events.Summarise(s, o)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestStoredRequests checks the table of requests, and phases by marks.
func TestStoredRequests(t *testing.T) {
	dir := t.TempDir()
	w, err := rundb.OpenEvents(t.Context(), dir, rundb.EventWriterOptions{Source: "test", Create: &rundb.Meta{ID: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := assemble(t, runE(), events.Rules{Tokenizer: events.TokensChars,
		Marks: []metric.Mark{{Name: "b", AtNS: 10100}, {Name: "a", AtNS: 1}}})
	equal(t, "phase of u1", s.Requests[0].Phase, "a")
	equal(t, "phase of u3", s.Requests[2].Phase, "b")
	if err := s.Store(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	run, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	var rows []rundb.Request
	for q, err := range run.Requests(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, *q)
	}
	equal(t, "rows", len(rows), 3)
	u3 := rows[2]
	if u3.ID != "u3" || u3.Status != "failed" || u3.Error != "Timeout" || u3.CompleteNS != 0 || u3.Output != -1 ||
		u3.Phase != "b" {
		t.Errorf("got %+v", u3)
	}
	equal(t, "tokens after the first chunk", rows[0].AfterFirst, 5)
}

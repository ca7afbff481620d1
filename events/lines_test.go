package events_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/internal/fuzzbound"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// readLines renders the events that lines gave, one on a line.
func readLines(t testing.TB, text string, o events.LineOptions) (string, events.LineStats) {
	t.Helper()
	var b strings.Builder
	s, err := events.ReadLines(t.Context(), strings.NewReader(text), o, func(e metric.Event) {
		fmt.Fprintf(&b, "%s %s %d", e.Type, e.Sample, e.AtNS)
		if d := string(e.Data); d != "" && d != "null" {
			b.WriteString(" " + d)
		}
		b.WriteByte('\n')
	})
	if err != nil {
		t.Errorf("read %q: %v", text, err)
	}
	return b.String(), s
}

const t0 = "1790000000000000000"

// TestReadLines reads each form of line.
func TestReadLines(t *testing.T) {
	check := func(line string, want ...string) {
		t.Helper()
		got, s := readLines(t, line, events.LineOptions{})
		if got != strings.Join(append(want, ""), "\n") || s.Bad != 0 || s.Lines != 1 {
			t.Errorf("%s\ngot  %q %+v\nwant %q", line, got, s, want)
		}
	}
	check(`{"event_type":"sample.issued","timestamp_ns":1790000000000000001,"sample_uuid":"s","conversation_id":"",`+
		`"turn":null,"data":["PromptData","p"]}`,
		`sample.issued s 1790000000000000001 ["PromptData","p"]`)
	check(`{"event_type":"sample.complete","timestamp_ns":`+t0+`,"sample_uuid":"s","data":null,"finish_reason":"stop",`+
		`"worker_id":3}`,
		`sample.detail s `+t0+` {"finish_reason":"stop"}`, `sample.complete s `+t0)
	check(`{"id":"r","issued_ns":`+t0+`}`, "sample.issued r "+t0)
	check(`{"id":7,"issued_s":1790000000.000000001,"first_ms":1790000000001.5,"complete_us":1790000000000003,"osl":2,`+
		`"isl":0,"status":"ok","error":null,"x_request_id":"x","response_id":"b","trace_id":"t","model":"m",`+
		`"finish_reason":"length"}`,
		"sample.issued 7 1790000000000000001", "sample.recv_first 7 1790000000001500000",
		`sample.detail 7 1790000000000003000 {"isl":0,"osl":2,"finish_reason":"length","x_request_id":"x","response_id":"b",`+
			`"trace_id":"t","model":"m"}`,
		"sample.complete 7 1790000000000003000")
	failed := func(end, kind string, detail ...string) {
		t.Helper()
		check(`{"id":"f","issued_ns":`+t0+`,`+end+`}`, append(append([]string{"sample.issued f " + t0}, detail...),
			`error.generic f `+t0+` ["ErrorData","`+kind+`",""]`)...)
	}
	failed(`"status":"error"`, "error")
	failed(`"error":"timeout"`, "timeout")
	failed(`"error":{"type":"T","message":"m"}`, "T")
	failed(`"error":{"message":"m"}`, "m")
	failed(`"error":true`, "")
	failed(`"status":503`, "", `sample.detail f `+t0+` {"http_status":503}`)
}

// TestReadLinesBad counts what it cannot use and goes on.
func TestReadLinesBad(t *testing.T) {
	check := func(line, why string) {
		t.Helper()
		got, s := readLines(t, "\n"+line+"\n{\"id\":\"r\",\"issued_ns\":"+t0+"}\n", events.LineOptions{})
		if got != "sample.issued r "+t0+"\n" || s.Bad != 1 || s.Lines != 2 || s.Requests != 1 ||
			!strings.Contains(s.FirstBad, "line 2: "+why) {
			t.Errorf("%.80s: got %q, %+v", line, got, s)
		}
	}
	check(`[]`, "no JSON object")
	check(`{"id":"x"`, "no JSON object")
	check(`{"issued_ns":1}`, "a request without id")
	check(`{"id":"x"}`, "a request without issued_ns")
	check(`{"id":"x","issued_ns":"soon"}`, "issued_ns: no time")
	check(`{"id":"x","issued_s":1e300}`, "issued_s: no time")
	check(`{"id":"x","issued_ns":-5}`, "issued_ns: no time")
	check(`{"id":"x","issued_ns":9,"complete_ns":8}`, "a request that completed before")
	check(`{"event_type":"sample.issued"}`, "an event without")
	check(strings.Repeat("x", 17<<20), "longer than 16 MiB")

	_, s := readLines(t, `{"id":"a","issued_ns":`+t0+`,"b":1,"a":2}`+"\n"+`{"id":"b","issued_ns":`+t0+`,"c":null,"a":2}`,
		events.LineOptions{})
	if got := strings.Join(s.Unknown, " "); got != "a b c" {
		t.Errorf("unknown keys %q", got)
	}
	broken := errors.New("broken")
	if _, err := events.ReadLines(t.Context(), iotest.ErrReader(broken), events.LineOptions{}, nil); !errors.Is(err,
		broken) {
		t.Errorf("an input that fails: %v", err)
	}
}

// TestReadLinesClock places the times of another clock where lines come live, and
// leaves them where they do not.
func TestReadLinesClock(t *testing.T) {
	const lines = `{"event_type":"sample.issued","timestamp_ns":100,"sample_uuid":"s"}` + "\n" +
		`{"event_type":"sample.complete","timestamp_ns":130,"sample_uuid":"s"}`
	var anchor rundb.Clock
	now := int64(1_790_000_000_000_000_000)
	live := events.LineOptions{Now: func() int64 { now++; return now }, OnAnchor: func(c rundb.Clock) { anchor = c }}
	if got, s := readLines(t, lines, live); got != "sample.issued s 1790000000000000001\nsample.complete s "+
		"1790000000000000031\n" || s.Unanchored != 0 {
		t.Errorf("live: %q, %+v", got, s)
	}
	if want := (rundb.Clock{Source: "arrival", MonoNS: 100, UnixNS: 1_790_000_000_000_000_001}); anchor != want {
		t.Errorf("anchor %+v, want %+v", anchor, want)
	}
	if got, s := readLines(t, lines, events.LineOptions{}); got != "sample.issued s 100\nsample.complete s 130\n" ||
		s.Unanchored != 2 {
		t.Errorf("from a file: %q, %+v", got, s)
	}
}

// FuzzReadLines feeds anything: what comes out must be events with a type, and as
// many lines as there are.
func FuzzReadLines(f *testing.F) {
	for _, seed := range []string{`{"id":"r","issued_ns":` + t0 + `,"complete_s":1.5e9,"osl":3,"status":"failed"}`,
		`{"event_type":"complete","timestamp_ns":5,"data":{}}`,
		"{}\n\n[1]\nnull\n\"x\"", `{"id":"r","issued_s":1e18}`,
		`{"id":null,"sample_uuid":4,"issued_ms":0.1,"error":{"type":1}}`, "{\"id\":\"\xff\",\"issued_ns\":1}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		defer fuzzbound.Check(t)()
		n := 0
		s, err := events.ReadLines(t.Context(), bytes.NewReader(text), events.LineOptions{}, func(e metric.Event) {
			n++
			if e.Type == "" || e.AtNS < 0 {
				t.Errorf("event %+v", e)
			}
		})
		lines := 0
		for _, l := range bytes.Split(text, []byte("\n")) {
			if len(bytes.TrimSpace(l)) > 0 {
				lines++
			}
		}
		if err != nil || s.Lines != lines || s.Lines != s.Bad+s.Events+s.Requests || n < s.Events+s.Requests ||
			(s.Bad > 0) != (s.FirstBad != "") {
			t.Errorf("%q: %+v, %d events, %v", text, s, n, err)
		}
	})
}

// TestRebuild makes the table of requests of what was recorded, twice.
func TestRebuild(t *testing.T) {
	dir := t.TempDir()
	r := newRecorder(t, dir, events.RecorderOptions{})
	if _, err := events.ReadLines(t.Context(), strings.NewReader(`{"id":"r","issued_ns":`+t0+
		`,"first_ns":1790000000000000005,"complete_ns":1790000000000000009,"osl":2,"model":"m","http_status":200}
		{"id":"f","issued_ns":`+t0+`,"error":"E"}`), events.LineOptions{}, r.Record); err != nil {
		t.Fatal(err)
	}
	closeRecorder(t, r)
	for range 2 {
		if _, err := events.Rebuild(t.Context(), dir, events.Rules{}); err != nil {
			t.Fatal(err)
		}
	}
	run, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	var got []string
	for q, err := range run.Requests(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(q.ID, q.Status, q.Error, q.FirstNS-q.IssuedNS, q.CompleteNS-q.IssuedNS, q.Output,
			q.Model, q.HTTPStatus))
	}
	if want := "rok592m200"; len(got) != 2 || !strings.Contains(strings.ReplaceAll(strings.Join(got, "|"), " ", ""),
		want) || !strings.Contains(got[0]+got[1], "failedE") {
		t.Errorf("got %q", got)
	}
}

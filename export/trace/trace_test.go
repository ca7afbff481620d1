package trace_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/export/trace"
)

type event struct {
	Ph       string
	PID, TID int
	TS, Dur  float64
	Name     string
	Args     map[string]any
}

func written(t interface{ Fatal(...any) }, tracks []trace.Track, counters []trace.Counter) []event {
	var b bytes.Buffer
	if err := trace.Write(&b, 1_800_000_000_000_000_000, tracks, counters); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		DisplayTimeUnit string
		TraceEvents     []event
	}
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil || doc.DisplayTimeUnit != "ms" {
		t.Fatal(err, b.String())
	}
	return doc.TraceEvents
}

// TestLanes: on a lane no two spans overlap and times rise, phases lie inside of their span, nothing is lost, and
// there are as many lanes as spans at a time.
func TestLanes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var spans []trace.Span
		depth := map[int64]int{}
		for range rapid.IntRange(0, 40).Draw(t, "n") {
			from := rapid.Int64Range(0, 100).Draw(t, "from") * 1000
			to := from + rapid.Int64Range(1, 30).Draw(t, "took")*1000
			mid := (from + to) / 2
			for at := from; at < to; at += 1000 {
				depth[at]++
			}
			const origin = 1_800_000_000_000_000_000
			spans = append(spans, trace.Span{Name: "r", From: origin + from, To: origin + to, Phases: []trace.Span{
				{Name: "first", From: origin + from, To: origin + mid}, {Name: "rest", From: origin + mid, To: origin + to}}})
		}
		deepest := 0
		for _, d := range depth {
			deepest = max(deepest, d)
		}
		ends, last, widest, n := map[int]float64{}, map[int]float64{}, 0, 0
		for _, e := range written(t, []trace.Track{{Name: "server", Spans: spans}}, nil) {
			if e.Ph != "X" {
				continue
			}
			widest = max(widest, e.TID)
			if e.TS < last[e.TID] {
				t.Fatalf("times go back: %+v", e)
			}
			last[e.TID] = e.TS
			if e.Name == "r" {
				if n++; e.TS < ends[e.TID] {
					t.Fatalf("requests overlap on lane %d: %+v", e.TID, e)
				}
				ends[e.TID] = e.TS + e.Dur
			} else if e.TS+e.Dur > ends[e.TID]+1e-9 {
				t.Fatalf("a phase ends after its request: %+v", e)
			}
		}
		if n != len(spans) || widest != deepest {
			t.Fatalf("%d of %d spans on %d lanes, want %d", n, len(spans), widest, deepest)
		}
	})
}

// TestCounters: counters are of a process of their own; too many events are refused.
func TestCounters(t *testing.T) {
	list := written(t, []trace.Track{{Name: "clients"}}, []trace.Counter{{Name: "running", AtNS: []int64{
		1_800_000_000_000_000_000, 1_800_000_000_000_001_234}, Values: []float64{1, 2}}})
	last := list[len(list)-1]
	if last.Ph != "C" || last.PID != 2 || last.TS != 1.234 || last.Args["value"] != 2.0 {
		t.Errorf("%+v", last)
	}
	err := trace.Write(&bytes.Buffer{}, 0, []trace.Track{{Spans: make([]trace.Span, 200_001)}}, nil)
	if !errors.Is(err, trace.ErrTooMany) {
		t.Error(err)
	}
}

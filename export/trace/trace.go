// Package trace writes requests as a Chrome trace, which Perfetto and chrome://tracing open.
package trace

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// ErrTooMany is why nothing is written: viewers do not open more.
var ErrTooMany = errors.New("more than 200,000 events: take a part with --from and --to, or --slowest")

// maxEvents is how many a trace may have.
const maxEvents = 200_000

// Span is something that took time, in nanoseconds on the axis of the trace.
type Span struct {
	Name     string
	From, To int64
	Args     map[string]any
	Phases   []Span // within it, in order, each from where the one before ended or later
}

// Track is spans of one side. Those that overlap go to different lanes.
type Track struct {
	Name  string
	Spans []Span
}

// Counter is a value that changes.
type Counter struct {
	Name   string
	AtNS   []int64
	Values []float64
}

// event is one of the Trace Event Format; times are microseconds.
type event struct {
	Phase string         `json:"ph"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	TS    json.Number    `json:"ts,omitempty"`
	Dur   json.Number    `json:"dur,omitempty"`
	Name  string         `json:"name"`
	Args  map[string]any `json:"args,omitempty"`
}

// Write writes tracks as processes 1, 2, ... and counters as the one behind them. originNS is the time 0 of the trace.
func Write(w io.Writer, originNS int64, tracks []Track, counters []Counter) error {
	t := &writer{w: bufio.NewWriter(w), origin: originNS}
	n := 0
	for _, k := range tracks {
		for _, s := range k.Spans {
			n += 1 + len(s.Phases)
		}
	}
	for _, c := range counters {
		n += len(c.AtNS)
	}
	if n > maxEvents {
		return ErrTooMany
	}
	t.text(`{"displayTimeUnit":"ms","traceEvents":[`)
	for i, k := range tracks {
		t.track(i+1, k)
	}
	if len(counters) > 0 {
		t.counters(len(tracks)+1, counters)
	}
	t.text("\n]}\n")
	if t.err == nil {
		t.err = t.w.Flush()
	}
	if t.err != nil {
		return fmt.Errorf("write trace: %w", t.err)
	}
	return nil
}

type writer struct {
	w      *bufio.Writer
	origin int64
	some   bool
	err    error
}

func (t *writer) text(s string) {
	if t.err == nil {
		_, t.err = t.w.WriteString(s)
	}
}

func (t *writer) event(e event) {
	data, err := json.Marshal(e)
	t.err = cmp.Or(t.err, err)
	if t.some {
		t.text(",")
	}
	t.some = true
	t.text("\n" + string(data))
}

// micros is a time in microseconds, exact to the nanosecond.
func micros(ns int64) json.Number {
	sign := ""
	if ns < 0 {
		sign, ns = "-", -ns
	}
	return json.Number(sign + strconv.FormatInt(ns/1000, 10) + fmt.Sprintf(".%03d", ns%1000))
}

// track writes spans by lane, each lane in order of time.
func (t *writer) track(pid int, k Track) {
	t.event(event{Phase: "M", PID: pid, Name: "process_name", Args: map[string]any{"name": k.Name}})
	spans := slices.Clone(k.Spans)
	slices.SortStableFunc(spans, func(a, b Span) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	for i, lane := range lanes(spans) {
		t.event(event{Phase: "M", PID: pid, TID: i + 1, Name: "thread_name", Args: map[string]any{
			"name": fmt.Sprintf("%s %d", k.Name, i+1)}})
		for _, s := range lane {
			t.span(pid, i+1, s)
		}
	}
}

func (t *writer) span(pid, tid int, s Span) {
	t.event(event{Phase: "X", PID: pid, TID: tid, TS: micros(s.From - t.origin), Dur: micros(s.To - s.From), Name: s.Name,
		Args: s.Args})
	for _, p := range s.Phases {
		t.span(pid, tid, p)
	}
}

func (t *writer) counters(pid int, all []Counter) {
	t.event(event{Phase: "M", PID: pid, Name: "process_name", Args: map[string]any{"name": "server counters"}})
	for _, c := range all {
		for i, at := range c.AtNS {
			t.event(event{Phase: "C", PID: pid, TS: micros(at - t.origin), Name: c.Name,
				Args: map[string]any{"value": c.Values[i]}})
		}
	}
}

// lanes deals out spans, which are in order, to as few lanes as there are at a time: each goes to the first that is
// free.
func lanes(spans []Span) (out [][]Span) {
	var free []int64 // when the last span of each lane ends
	for _, s := range spans {
		at := slices.IndexFunc(free, func(end int64) bool { return end <= s.From })
		if at < 0 {
			at = len(free)
			free, out = append(free, 0), append(out, nil)
		}
		free[at] = s.To
		out[at] = append(out[at], s)
	}
	return out
}

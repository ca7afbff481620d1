package events

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// maxLine is the longest line that is read; a longer one is bad.
const maxLine = 16 << 20

// maxNames is how many different unknown keys are named.
const maxNames = 32

// LineOptions says how lines are read.
type LineOptions struct {
	// Now, if not nil, is for lines that come as things happen: it is the instant, in nanoseconds since 1970. The first
	// time of a clock that does not count from 1970 is then taken to be that of its arrival. Otherwise such times stay as
	// they are.
	Now func() int64
	// OnAnchor is told of the instant that was found in that way.
	OnAnchor func(rundb.Clock)
}

// LineStats counts what was in the lines.
type LineStats struct {
	Lines, Events, Requests int // all but empty ones; event records; whole requests
	Bad                     int
	FirstBad                string // why the first bad line is bad, with its number
	// Unanchored are times of a clock whose relation to that of others is not known.
	Unanchored int
	// Unknown are the keys that were not understood, sorted, the first 32 of them.
	Unknown []string
}

// lineReader is the state of ReadLines.
type lineReader struct {
	LineStats
	o        LineOptions
	to       func(metric.Event)
	anchored bool
	offset   int64
}

// ReadLines reads JSONL to its end, or until ctx ends, and hands events to the function. A line is an event record of
// MLPerf's endpoints benchmark (event_type, timestamp_ns, sample_uuid, ...) or a whole request:
//
//	{"id": "r1", "issued_ns": 1790000000000000000, "first_ns": ..., "complete_ns": ..., "osl": 128,
//	 "isl": 512, "status": "ok", "error": null, "x_request_id": "...", "model": "...", "finish_reason": "stop"}
//
// Times end in _ns, _us, _ms or _s. A bad line is counted and never an error, nor is a key that is not known; only in
// fails.
func ReadLines(ctx context.Context, in io.Reader, o LineOptions, to func(metric.Event)) (LineStats, error) {
	l := &lineReader{o: o, to: to}
	r := bufio.NewReaderSize(in, 64<<10)
	var line []byte
	for number := 1; ctx.Err() == nil; number++ {
		var tooLong bool
		var err error
		line, tooLong, err = readLine(r, line[:0], maxLine)
		if text := bytes.TrimSpace(line); tooLong || len(text) > 0 {
			l.Lines++
			if tooLong {
				l.bad(number, errors.New("longer than 16 MiB"))
			} else if why := l.line(text); why != nil {
				l.bad(number, why)
			}
		}
		if errors.Is(err, io.EOF) {
			return l.LineStats, nil
		}
		if err != nil {
			return l.LineStats, fmt.Errorf("read line %d: %w", number, err)
		}
	}
	return l.LineStats, ctx.Err()
}

// readLine reads a line into buf, which stays empty for one of more than so many bytes.
func readLine(r *bufio.Reader, buf []byte, most int) (line []byte, tooLong bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if tooLong = tooLong || len(buf)+len(part) > most; tooLong {
			buf = buf[:0]
		} else {
			buf = append(buf, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return buf, tooLong, err
		}
	}
}

func (l *lineReader) bad(number int, why error) {
	l.Bad++
	if l.FirstBad == "" {
		l.FirstBad = fmt.Sprintf("line %d: %v", number, why)
	}
}

// line reads one line.
func (l *lineReader) line(text []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return fmt.Errorf("no JSON object: %w", err)
	}
	f := lineFields{all: fields}
	if _, ok := fields["event_type"]; ok {
		return l.event(&f)
	}
	return l.request(&f)
}

func (l *lineReader) event(f *lineFields) error {
	ev := metric.Event{Type: f.text("event_type"), Sample: f.text("sample_uuid"), Conversation: f.text("conversation_id"),
		Data: bytes.Clone(f.take("data"))}
	at, err := f.time("timestamp")
	switch {
	case err != nil:
		return err
	case ev.Type == "" || at == 0:
		return errors.New("an event without event_type or timestamp_ns")
	}
	if n, ok := f.integer("turn"); ok {
		ev.Turn, ev.HasTurn = n, true
	}
	ev.AtNS = l.onAxis(at)
	finish := f.text("finish_reason")
	f.take("worker_id")
	l.Events++
	l.unknown(f)
	if name, _ := Current(ev.Type); name == SampleComplete && finish != "" {
		d := Detail{Finish: finish}
		if extra, err := d.Event(ev.Sample, ev.AtNS); err == nil {
			l.to(extra)
		}
	}
	l.to(ev)
	return nil
}

func (l *lineReader) request(f *lineFields) error {
	q := Request{Conversation: f.text("conversation_id"), RequestID: f.text("x_request_id"),
		ResponseID: f.text("response_id"), TraceID: f.text("trace_id"), Model: f.text("model"),
		Endpoint: f.text("endpoint"), Finish: f.text("finish_reason"), Phase: f.text("phase"),
		Source: f.text("token_source"), Input: -1, Output: -1, AfterFirst: -1}
	for _, name := range []string{"id", "sample_uuid", "request_id"} {
		if id := f.text(name); q.ID == "" {
			q.ID = id
		}
	}
	for _, t := range []struct {
		name string
		to   *int64
	}{{"issued", &q.IssuedNS}, {"upstream", &q.UpstreamNS}, {"byte", &q.ByteNS}, {"first", &q.FirstNS},
		{"last", &q.LastNS}, {"complete", &q.CompleteNS}} {
		at, err := f.time(t.name)
		if err != nil {
			return err
		}
		*t.to = at
	}
	for name, to := range map[string]*int{"isl": &q.Input, "osl": &q.Output, "osl_after_first": &q.AfterFirst,
		"turn": &q.Turn, "http_status": &q.HTTPStatus} {
		if n, ok := f.integer(name); ok && n >= 0 && n <= maxTokens {
			*to = n
		}
	}
	switch {
	case q.ID == "":
		return errors.New("a request without id")
	case q.IssuedNS == 0:
		return errors.New("a request without issued_ns")
	case q.CompleteNS != 0 && q.CompleteNS < q.IssuedNS:
		return errors.New("a request that completed before it was issued")
	}
	f.outcome(&q)
	for _, at := range []*int64{&q.IssuedNS, &q.UpstreamNS, &q.ByteNS, &q.FirstNS, &q.LastNS, &q.CompleteNS} {
		if *at != 0 {
			*at = l.onAxis(*at)
		}
	}
	l.Requests++
	l.unknown(f)
	for _, ev := range q.Events() {
		l.to(ev)
	}
	return nil
}

// onAxis moves a time to that of the run.
func (l *lineReader) onAxis(at int64) int64 {
	switch {
	case at >= unixFrom:
		return at
	case l.o.Now == nil:
		l.Unanchored++
		return at
	case !l.anchored:
		now := l.o.Now()
		l.anchored, l.offset = true, now-at
		if l.o.OnAnchor != nil {
			l.o.OnAnchor(rundb.Clock{Source: "arrival", MonoNS: at, UnixNS: now})
		}
	}
	return at + l.offset
}

// unknown notes the keys that nobody took.
func (l *lineReader) unknown(f *lineFields) {
	for name := range f.all {
		name = cut(name)
		if i, ok := slices.BinarySearch(l.Unknown, name); !ok && len(l.Unknown) < maxNames {
			l.Unknown = slices.Insert(l.Unknown, i, name)
		}
	}
}

// lineFields are the keys of a line that nobody has taken yet.
type lineFields struct{ all map[string]json.RawMessage }

// take returns the value of a key, nil when it is missing or null.
func (f *lineFields) take(name string) json.RawMessage {
	raw := f.all[name]
	delete(f.all, name)
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// text is a string, or a number as it is written.
func (f *lineFields) text(name string) string {
	raw := f.take(name)
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return cut(s)
	}
	if len(raw) > 0 && strings.IndexByte("-0123456789", raw[0]) >= 0 {
		return cut(string(raw))
	}
	return ""
}

func (f *lineFields) integer(name string) (int, bool) {
	raw := f.take(name)
	var v float64
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil || v != math.Trunc(v) || math.Abs(v) > maxTokens {
		return 0, false
	}
	return int(v), true
}

// time is an instant whose unit is the end of its key, 0 when there is none.
func (f *lineFields) time(name string) (ns int64, err error) {
	for _, u := range []struct {
		suffix string
		scale  float64
	}{{"_ns", 1}, {"_us", 1e3}, {"_ms", 1e6}, {"_s", 1e9}} {
		raw := f.take(name + u.suffix)
		if raw == nil || ns != 0 {
			continue
		}
		if ns, err = scaled(string(raw), u.scale); err != nil {
			return 0, fmt.Errorf("%s%s: %w", name, u.suffix, err)
		}
	}
	return ns, nil
}

// scaled is a number times a scale. Integers are exact, and seconds are so to the nanosecond where they are written as
// decimals.
func scaled(s string, scale float64) (int64, error) {
	whole, fraction, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err == nil && n >= 0 && float64(n)*scale < math.MaxInt64/2 {
		part, err := strconv.ParseFloat("0."+fraction, 64)
		if fraction == "" {
			part, err = 0, nil
		}
		if err == nil {
			return n*int64(scale) + int64(math.Round(part*scale)), nil
		}
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 0 && v*scale < math.MaxInt64/2) {
		return 0, errors.New("no time: " + strconv.Quote(cut(s)))
	}
	return int64(math.Round(v * scale)), nil
}

// outcome reads how a request ended: status is a word or an HTTP status, error a text or an object with a type.
func (f *lineFields) outcome(q *Request) {
	status := strings.ToLower(f.text("status"))
	if code, err := strconv.Atoi(status); err == nil {
		if code >= 100 && code < 600 {
			q.HTTPStatus = code
		}
		status = ""
	}
	raw := f.take("error")
	var object struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	var told bool
	switch {
	case len(raw) == 0:
	case json.Unmarshal(raw, &q.Error) == nil:
	case json.Unmarshal(raw, &told) == nil:
	case json.Unmarshal(raw, &object) == nil:
		if q.Error = object.Type; q.Error == "" {
			q.Error = object.Message
		}
		told = true
	}
	q.Error = cut(q.Error)
	said := Detail{Status: status, HTTPStatus: q.HTTPStatus, ErrorType: q.Error}
	if told || said.failed() {
		q.Status = Failed
		q.Error = cmp.Or(q.Error, status)
	}
}

package events

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// Stream is events in the order in which they were recorded. An event is valid until the next one is asked for. An
// error ends it.
type Stream = iter.Seq2[*metric.Event, error]

// Rules say how events become requests. The zero value is what MLPerf's tools do.
type Rules struct {
	// Lenient lets a session pass that started twice, ended twice or went on after its end: then the latest start and the
	// last event of all count.
	Lenient bool
	// Tokenizer is one of Tokenizers, or "" for the best that the source has: usage, then token_ids, then chunks.
	Tokenizer string
	// MaxRequests limits their number; 0 is 5 million.
	MaxRequests int
	// Memory counts what they take; nil is not bounded.
	Memory *metric.Memory
	// OwnTracking is set where our recorder, not the load generator, told what is tracked: a stretch begins with the first
	// request in it then, as before that the load generator is starting.
	OwnTracking bool
	// Marks are those of the run, in order of time. A request whose source names no phase is of the phase that the latest
	// mark before its issue began.
	Marks []metric.Mark
}

const defaultMaxRequests = 5_000_000

// requestMemory is what a request takes until it is reported, but for its names.
const requestMemory = 800

// Block is a stretch in which performance was tracked.
type Block struct {
	StartNS int64
	StopNS  int64 // 0 when it never stopped
	LastNS  int64 // last completion of its requests, 0 when there is none
	begun   bool  // StartNS is the first issue
}

// Session is all requests of one run of a load generator.
type Session struct {
	// Requests are sorted by time of issue, then name.
	Requests []Request
	Blocks   []Block
	// StartedNS, EndedNS and StopNS, the first stop of tracking, are 0 where the session has no such event. LastNS is the
	// latest time of any event.
	StartedNS, EndedNS, StopNS, LastNS int64
	Started, Ended, Stopped            bool
	// Legacy reports whether the rules of MLPerf's old recordings were used.
	Legacy bool
	// Events were read; Orphans of them fit no request in flight, Unknown are of a type nobody knows, BadData hold data
	// that could not be read, and SessionErrors are errors of no request.
	Events, Orphans, Unknown, BadData, SessionErrors int
	// Warnings say what was let pass.
	Warnings []metric.Warning
}

// Lost is how many events are in no request as they were told.
func (s *Session) Lost() int64 { return int64(s.Orphans + s.Unknown + s.BadData) }

// assembly is a session in the making.
type assembly struct {
	Session
	rules    Rules
	rows     map[string]int // the latest request of each name
	open     int            // block in which tracking is on, or -1
	starts   bool           // there was a start of tracking
	lastType string         // of the event at LastNS
	ends     int
}

// Assemble makes requests of events, in one pass. By the current rules a request is in flight from issue to
// completion: a second issue meanwhile is a retry that changes the time of issue and nothing else, one after it is
// another request, and an event that finds no request in flight has no effect. By the legacy rules all events of a
// name are one request with the latest time of each kind. A session that contradicts itself is an error that names the
// event (Rules.Lenient).
func Assemble(stream Stream, rules Rules) (*Session, error) {
	if err := checkTokenizer(rules.Tokenizer); err != nil {
		return nil, err
	}
	rules.MaxRequests = cmp.Or(rules.MaxRequests, defaultMaxRequests)
	a := &assembly{rules: rules, rows: map[string]int{}, open: -1}
	for ev, err := range stream {
		if err != nil {
			return nil, err
		}
		if err := a.add(ev); err != nil {
			return nil, fmt.Errorf("assemble requests: event %d: %w", a.Events, err)
		}
	}
	if err := a.checkEnd(); err != nil {
		return nil, fmt.Errorf("assemble requests: %w", err)
	}
	a.finish()
	return &a.Session, nil
}

func (a *assembly) add(ev *metric.Event) error {
	a.Events++
	name, legacy := Current(ev.Type)
	a.Legacy = a.Legacy || legacy
	if a.Events == 1 || ev.AtNS > a.LastNS {
		a.LastNS, a.lastType = ev.AtNS, ev.Type
	}
	switch name {
	case SessionStarted:
		return a.started(ev)
	case SessionEnded:
		return a.ended(ev)
	case StartTracking:
		a.starts = true
		if a.open < 0 {
			a.Blocks = append(a.Blocks, Block{StartNS: ev.AtNS})
			a.open = len(a.Blocks) - 1
		}
	case StopTracking:
		if !a.Stopped {
			a.Stopped, a.StopNS = true, ev.AtNS
		}
		if a.open >= 0 {
			a.Blocks[a.open].StopNS = ev.AtNS
			a.open = -1
		}
	case StopLoad:
	case SessionNote:
		a.rulesOf(ev)
	case SampleIssued:
		return a.issued(ev)
	case ErrorGeneric, ErrorLoadGen, ErrorSession, ErrorClient:
		return a.failed(ev)
	case SampleFirst, SampleNext, SampleComplete, SampleUpstream, SampleFirstByte, SampleDetail:
		return a.progress(name, ev)
	default:
		if !ignoredLegacy(ev.Type) {
			a.Unknown++
		}
	}
	return nil
}

// ignoredLegacy are old types that say nothing about requests.
func ignoredLegacy(name string) bool {
	switch name {
	case "loadgen_data_load", "http_request_issued", "http_response_completed", "zmq_request_received",
		"zmq_response_sent":
		return true
	}
	return false
}

// rulesOf reads by which rules a session is meant.
func (a *assembly) rulesOf(ev *metric.Event) {
	if d, ok := ParseDetail(ev.Data); ok && d.Rules == LegacyRules {
		a.Legacy = true
	}
}

func (a *assembly) started(ev *metric.Event) error {
	a.rulesOf(ev)
	if a.Started {
		if !a.rules.Lenient {
			return fmt.Errorf("%s at %d ns: the session had started at %d ns (--lenient takes the latest start)", ev.Type,
				ev.AtNS, a.StartedNS)
		}
		a.warn("started_twice", "the session started more than once; the latest start counts")
	}
	a.Started, a.StartedNS = true, max(a.StartedNS, ev.AtNS)
	return nil
}

func (a *assembly) ended(ev *metric.Event) error {
	a.ends++
	if a.Ended {
		if !a.rules.Lenient {
			return fmt.Errorf("%s at %d ns: the session had ended at %d ns (--lenient lets it pass)", ev.Type, ev.AtNS,
				a.EndedNS)
		}
		a.warn("ended_twice", "the session ended more than once; the last event counts")
	}
	a.Ended, a.EndedNS = true, max(a.EndedNS, ev.AtNS)
	return nil
}

// checkEnd refuses events after the end of the session.
func (a *assembly) checkEnd() error {
	if !a.Ended || a.LastNS <= a.EndedNS {
		return nil
	}
	if !a.rules.Lenient {
		return fmt.Errorf("%s at %d ns comes after the end of the session at %d ns (--lenient lets it pass)", a.lastType,
			a.LastNS, a.EndedNS)
	}
	a.warn("after_end", "events follow the end of the session; the last event counts")
	return nil
}

func (a *assembly) warn(code, text string) {
	w := metric.Warning{Code: code, Text: text}
	if !slices.Contains(a.Warnings, w) {
		a.Warnings = append(a.Warnings, w)
	}
}

// row is the request of a name that an event may still change, or nil.
func (a *assembly) row(name string) *Request {
	i, ok := a.rows[name]
	if !ok || a.Requests[i].done && !a.Legacy {
		return nil
	}
	return &a.Requests[i]
}

func (a *assembly) issued(ev *metric.Event) error {
	if ev.Sample == "" {
		a.Orphans++
		return nil
	}
	switch r := a.row(ev.Sample); {
	case r == nil || !r.issued:
	case a.Legacy:
		r.IssuedNS = max(r.IssuedNS, ev.AtNS)
		return nil
	default:
		if r.Block < 0 && a.open >= 0 {
			r.Block, r.FirstNS = a.open, 0 // MLPerf makes the row now that tracking is on
		}
		r.IssuedNS = ev.AtNS
		return nil
	}
	r, err := a.make(ev)
	if err != nil {
		return err
	}
	r.IssuedNS, r.issued, r.Block = ev.AtNS, true, a.open
	if n := promptTokens(ev.Data, a.rules.Tokenizer); n >= 0 {
		r.Input = n
	}
	if d, ok := ParseDetail(ev.Data); ok {
		d.apply(r)
	}
	return nil
}

// make appends a request, or returns the one that earlier events of a legacy recording have made.
func (a *assembly) make(ev *metric.Event) (*Request, error) {
	if i, ok := a.rows[ev.Sample]; ok && a.Legacy {
		return &a.Requests[i], nil
	}
	if len(a.Requests) >= a.rules.MaxRequests {
		return nil, fmt.Errorf("more than %d requests (--max-requests)", a.rules.MaxRequests)
	}
	if !a.rules.Memory.Use(int64(requestMemory + len(ev.Sample) + len(ev.Conversation))) {
		return nil, rundb.ErrMemory
	}
	a.rows[ev.Sample] = len(a.Requests)
	a.Requests = append(a.Requests, Request{ID: ev.Sample, Conversation: ev.Conversation, Turn: ev.Turn, Block: -1,
		Input: -1, Output: -1, AfterFirst: -1, chunks: -1})
	return &a.Requests[len(a.Requests)-1], nil
}

// failed marks a request, even one that is complete: the order of the error and the completion is not fixed.
func (a *assembly) failed(ev *metric.Event) error {
	if ev.Sample == "" || ev.Sample == "<NO_SAMPLE_UUID>" {
		a.SessionErrors++
		return nil
	}
	i, ok := a.rows[ev.Sample]
	if !ok && a.Legacy {
		_, err := a.make(ev)
		i, ok = a.rows[ev.Sample]
		if err != nil {
			return err
		}
	}
	if !ok {
		a.Orphans++
		return nil
	}
	r := &a.Requests[i]
	r.Status = Failed
	if r.Error == "" {
		r.Error = errorType(ev.Data)
	}
	return nil
}

func (a *assembly) progress(name string, ev *metric.Event) error {
	if ev.Sample == "" {
		a.Orphans++
		return nil
	}
	r := a.row(ev.Sample)
	if r == nil && a.Legacy {
		var err error
		if r, err = a.make(ev); err != nil {
			return err
		}
	}
	if r == nil {
		a.Orphans++
		return nil
	}
	switch name {
	case SampleFirst:
		r.FirstNS = max(r.FirstNS, ev.AtNS)
		r.LastNS = max(r.LastNS, ev.AtNS)
		r.seen++
	case SampleNext:
		r.LastNS = max(r.LastNS, ev.AtNS)
		r.seen++
	case SampleUpstream:
		r.UpstreamNS = ev.AtNS
	case SampleFirstByte:
		r.ByteNS = ev.AtNS
	case SampleComplete:
		r.CompleteNS, r.done = max(r.CompleteNS, ev.AtNS), true
		o, err := parseOutput(ev.Data)
		if err != nil {
			a.BadData++
		}
		o.count(r, a.rules.Tokenizer, a.Legacy)
	}
	if d, ok := ParseDetail(ev.Data); ok {
		a.detail(r, &d)
	} else if name == SampleDetail {
		a.BadData++
	}
	return nil
}

// detail applies what a source counted, unless text is to be counted.
func (a *assembly) detail(r *Request, d *Detail) {
	counted := cmp.Or(d.TokenSource, TokensUsage)
	if want := a.rules.Tokenizer; want != "" && want != counted {
		d.ISL, d.OSL, d.AfterFirst = nil, nil, nil
	}
	d.apply(r)
}

// finish decides what every request was, once all events are known.
func (a *assembly) finish() {
	all := len(a.Requests)
	a.Requests = slices.DeleteFunc(a.Requests, func(r Request) bool { return !r.issued })
	a.Orphans += all - len(a.Requests)
	if !a.starts {
		a.implicitBlock()
	}
	for i := range a.Requests {
		r := &a.Requests[i]
		a.countChunks(r)
		if r.Phase == "" {
			r.Phase = phaseAt(a.rules.Marks, r.IssuedNS)
		}
		if r.Status != Failed && r.CompleteNS != 0 {
			r.Status = Succeeded
		}
		if r.Block >= 0 {
			b := &a.Blocks[r.Block]
			if r.Tracked = b.StopNS == 0 || r.IssuedNS < b.StopNS; r.Tracked {
				if b.LastNS = max(b.LastNS, r.CompleteNS); a.rules.OwnTracking && !b.begun {
					b.StartNS, b.begun = r.IssuedNS, true
				} else if a.rules.OwnTracking {
					b.StartNS = min(b.StartNS, r.IssuedNS)
				}
			} else {
				r.Block = -1
			}
		}
	}
	slices.SortStableFunc(a.Requests, func(x, y Request) int {
		return cmp.Or(cmp.Compare(x.IssuedNS, y.IssuedNS), cmp.Compare(x.ID, y.ID))
	})
}

// phaseAt is the name of the latest mark at or before a time.
func phaseAt(marks []metric.Mark, atNS int64) (phase string) {
	latest := int64(math.MinInt64)
	for _, m := range marks {
		if m.AtNS <= atNS && m.AtNS >= latest {
			phase, latest = m.Name, m.AtNS
		}
	}
	return phase
}

// implicitBlock tracks from the first issue to the first stop where no event starts tracking, as in recordings of
// other tools. What was issued in the warm-up of the run is not tracked, unless nothing would be.
func (a *assembly) implicitBlock() {
	b := Block{StopNS: a.StopNS}
	found := false
	warm := warmUntil(a.rules.Marks)
	if !slices.ContainsFunc(a.Requests, func(r Request) bool { return r.IssuedNS >= warm }) {
		warm = math.MinInt64
	}
	for i := range a.Requests {
		if r := &a.Requests[i]; r.IssuedNS >= warm && (!a.Stopped || r.IssuedNS < a.StopNS) {
			if r.Block = 0; !found || r.IssuedNS < b.StartNS {
				b.StartNS, found = r.IssuedNS, true
			}
		}
	}
	if found {
		a.Blocks = []Block{b}
	}
}

// warmUntil is the end of the warm-up, by the marks of the run.
func warmUntil(marks []metric.Mark) int64 {
	warm := false
	for _, m := range marks {
		if warm && m.Name == metric.PhaseProfiling {
			return m.AtNS
		}
		warm = warm || m.Name == metric.PhaseWarmup
	}
	return math.MinInt64
}

// countChunks takes chunks for tokens where nothing better is known.
func (a *assembly) countChunks(r *Request) {
	if t := a.rules.Tokenizer; r.Output >= 0 || t != "" && t != TokensChunks {
		return
	}
	n := r.chunks
	if n < 0 && r.seen > 1 {
		n = r.seen
	}
	if n > 0 {
		r.Output, r.AfterFirst, r.Source = n, n-1, TokensChunks
	}
}

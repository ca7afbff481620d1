package otlp

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// Decoder turns messages into records. It is not safe for concurrent use.
type Decoder struct {
	record func(*metric.ServerRequest)
	counts metric.ServerCounts
	seen   recent
	span   span // of which the fields are being read
}

// NewDecoder returns a decoder that hands on records, each valid until record returns.
func NewDecoder(record func(*metric.ServerRequest)) *Decoder {
	return &Decoder{record: record, seen: recent{known: map[uint64]struct{}{}}}
}

// Counts says what was in the messages so far.
func (d *Decoder) Counts() metric.ServerCounts { return d.counts }

// Clock is that of all spans.
func Clock() metric.ServerClock {
	return metric.ServerClock{Clock: metric.ServerUnix, Resolution: time.Microsecond}
}

// span is what is taken of one.
type span struct {
	trace, id, parent [16]byte
	startNS           uint64
	engine            bool // it is named as vLLM names that of a request
	failed            bool
	latency           bool
	prefill           time.Duration
	q                 metric.ServerRequest
	bad               error
}

func (s *span) reset(replica string) {
	*s = span{prefill: -1, q: metric.NewServerRequest()}
	s.q.Replica = replica
}

// value is an attribute's: text, or a number in both forms.
type value struct {
	text    []byte
	isText  bool
	integer int64
	number  float64
}

// wanted reports whether an attribute is on the list: nothing else of a span is copied.
func wanted(key []byte) bool {
	switch string(key) {
	case "gen_ai.request.id", "gen_ai.response.model", "gen_ai.request.model", "gen_ai.response.finish_reasons",
		"gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens", "gen_ai.usage.cached_tokens",
		"gen_ai.latency.time_to_first_token", "gen_ai.latency.e2e", "gen_ai.latency.time_in_queue",
		"gen_ai.latency.time_in_model_prefill", "gen_ai.latency.time_in_model_decode":
		return true
	}
	return false
}

// set takes an attribute.
func (s *span) set(key []byte, v value) {
	q := &s.q
	switch string(key) {
	case "gen_ai.request.id":
		q.ID = v.string()
	case "gen_ai.response.model", "gen_ai.request.model":
		q.Model = v.string()
	case "gen_ai.response.finish_reasons":
		q.Finish = v.string()
	case "gen_ai.usage.prompt_tokens":
		q.Prompt = s.count(v)
	case "gen_ai.usage.completion_tokens":
		q.Output = s.count(v)
	case "gen_ai.usage.cached_tokens":
		q.Cached = s.count(v)
	case "gen_ai.latency.time_to_first_token":
		q.TTFT = s.seconds(v)
	case "gen_ai.latency.e2e":
		q.E2E, s.latency = s.seconds(v), true
	case "gen_ai.latency.time_in_queue":
		q.Queue = s.seconds(v)
	case "gen_ai.latency.time_in_model_prefill":
		s.prefill = s.seconds(v)
	case "gen_ai.latency.time_in_model_decode":
		q.Decode = s.seconds(v)
	}
}

// maxText is how much of a text is copied: more than any id may have.
const maxText = 512

func (v *value) string() string { return string(v.text[:min(len(v.text), maxText)]) }

func (s *span) count(v value) int64 {
	if v.isText || v.integer < 0 {
		s.bad = errors.New("a count of tokens is none")
		return -1
	}
	return v.integer
}

func (s *span) seconds(v value) time.Duration {
	if v.isText || !(v.number >= 0 && v.number < 1e9) {
		s.bad = errors.New("a latency is no number of seconds")
		return -1
	}
	return time.Duration(math.Round(v.number * 1e9))
}

// end takes the span whose fields have been read.
func (d *Decoder) end() {
	s := &d.span
	if !s.engine && (s.q.ID == "" || !s.latency) {
		d.counts.Other++
		return
	}
	key := binary.LittleEndian.Uint64(s.id[:])
	if key != 0 && d.seen.has(key) {
		d.counts.Seen++
		return
	}
	q := &s.q
	if s.engine {
		q.Prefill = s.prefill // that of SGLang runs from the dispatch, so the queue is in it
	}
	if s.failed {
		q.Status = "error"
	}
	if s.parent != [16]byte{} && s.trace != [16]byte{} { // no client knows the trace of a root
		q.Trace = hex.EncodeToString(s.trace[:])
	}
	if s.startNS < math.MaxInt64 {
		q.ArrivalNS = int64(s.startNS)
	}
	if q.ArrivalNS != 0 && q.TTFT >= 0 {
		q.FirstNS = q.ArrivalNS + int64(q.TTFT)
	}
	if q.ArrivalNS != 0 && q.E2E >= 0 {
		q.FinishNS = q.ArrivalNS + int64(q.E2E)
	}
	err := s.bad
	if err == nil && q.ArrivalNS == 0 {
		err = errors.New("it has no start")
	}
	if err == nil {
		err = q.Check(metric.ServerUnix)
	}
	if err != nil {
		d.counts.Note("span %d: %v", d.counts.Records+d.counts.Bad+d.counts.Other+d.counts.Seen+1, err)
		return
	}
	d.counts.Records++
	d.record(q)
}

// recent knows the last spans by their ids: a batch is sent again when its answer did not come.
type recent struct {
	known map[uint64]struct{}
	order []uint64 // a ring when it is full
	next  int
}

const maxRecent = 1 << 18

// has reports whether a key was there, and keeps it.
func (r *recent) has(key uint64) bool {
	if _, ok := r.known[key]; ok {
		return true
	}
	r.known[key] = struct{}{}
	if len(r.order) < maxRecent {
		r.order = append(r.order, key)
		return false
	}
	delete(r.known, r.order[r.next])
	r.order[r.next] = key
	r.next = (r.next + 1) % maxRecent
	return false
}

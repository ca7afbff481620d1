package events

import (
	"github.com/scrapestat/scrapestat/metric"
)

// Status is how a request ended.
type Status uint8

// The statuses. A request that failed may have an end all the same.
const (
	InFlight Status = iota
	Succeeded
	Failed
)

var statusNames = [...]string{"in_flight", "ok", "failed"}

// String returns the name that the requests table has.
func (s Status) String() string { return statusNames[min(int(s), len(statusNames)-1)] }

// Request is one request as the client saw it. Times are nanoseconds since 1970 (or of the file's own clock where it
// has no anchor), 0 for what did not happen.
type Request struct {
	ID         string
	IssuedNS   int64
	UpstreamNS int64 // passed on by a proxy
	ByteNS     int64 // first byte of the answer
	FirstNS    int64 // first chunk with content
	LastNS     int64 // last chunk
	CompleteNS int64

	Status     Status
	Error      string // type of the first error
	HTTPStatus int    // 0 when unknown
	RequestID  string // the x-request-id header of the answer
	ResponseID string // the id in the body of the answer
	TraceID    string // that the request was sent with, 32 hexadecimal digits
	Endpoint   string
	Model      string
	Phase      string // of the benchmark: warmup, profiling, ...
	Finish     string // finish_reason

	// Tokens, -1 when unknown. AfterFirst are those that came after the first chunk, and Source says who counted: usage,
	// token_ids, chunks, chars, words.
	Input, Output, AfterFirst int
	Source                    string

	Conversation string
	Turn         int
	Tracked      bool // issued while performance was tracked
	Block        int  // number of the tracked stretch, from 0, or -1

	chunks int  // with content, -1 when nobody counted
	seen   int  // events of chunks
	issued bool // an event said so
	done   bool // complete: later events of the name are another request's
}

// The types of events, by the names of MLPerf's endpoints benchmark since 2026. Those of the session come without a
// sample.
const (
	SessionStarted  = "session.started"
	SessionEnded    = "session.ended"
	StopLoad        = "session.stop_loadgen"
	StartTracking   = "session.start_performance_tracking"
	StopTracking    = "session.stop_performance_tracking"
	SampleIssued    = "sample.issued"
	SampleFirst     = "sample.recv_first" // the first chunk with content
	SampleNext      = "sample.recv_non_first"
	SampleComplete  = "sample.complete"
	ErrorGeneric    = "error.generic"
	ErrorLoadGen    = "error.loadgen"
	ErrorSession    = "error.session"
	ErrorClient     = "error.client"
	SampleUpstream  = "sample.upstream_sent" // ours: a proxy has passed the request on
	SampleFirstByte = "sample.first_byte"    // ours: before the first chunk with content
	SessionNote     = "session.note"         // ours: a Detail that says by which rules the session is meant
	SampleDetail    = "sample.detail"        // ours: a Detail, before the end of the request
)

// legacyTypes are the names until April 2026, which are still found in files. Those that are not here had no successor.
var legacyTypes = map[string]string{
	"test_started":              SessionStarted,
	"test_ended":                SessionEnded,
	"loadgen_stop":              StopLoad,
	"stop_performance_tracking": StopTracking,
	"loadgen_issue_called":      SampleIssued,
	"first_chunk_received":      SampleFirst,
	"non_first_chunk_received":  SampleNext,
	"complete":                  SampleComplete,
	"error":                     ErrorGeneric,
}

// Current returns the name that an event type has today. legacy reports whether it was the old one; an unknown type
// keeps its name.
func Current(name string) (current string, legacy bool) {
	if c, ok := legacyTypes[name]; ok {
		return c, true
	}
	return name, false
}

// Events returns the events of a request that is known as a whole, in an order in which [Assemble] makes the same
// request of them. What the session decides, Tracked and Block, is not in them.
func (q *Request) Events() []metric.Event {
	var out []metric.Event
	add := func(kind string, atNS int64) {
		out = append(out, metric.Event{Sample: q.ID, Type: kind, AtNS: atNS, Conversation: q.Conversation, Turn: q.Turn,
			HasTurn: q.Conversation != "" || q.Turn != 0})
	}
	add(SampleIssued, q.IssuedNS)
	if q.UpstreamNS != 0 {
		add(SampleUpstream, q.UpstreamNS)
	}
	if q.ByteNS != 0 {
		add(SampleFirstByte, q.ByteNS)
	}
	if q.FirstNS != 0 {
		add(SampleFirst, q.FirstNS)
	}
	end := max(q.IssuedNS, q.UpstreamNS, q.ByteNS, q.FirstNS, q.LastNS)
	if q.CompleteNS != 0 {
		end = q.CompleteNS
	}
	d := q.detail()
	if ev, err := d.Event(q.ID, end); err == nil && string(ev.Data) != "{}" {
		ev.Conversation, ev.Turn, ev.HasTurn = out[0].Conversation, out[0].Turn, out[0].HasTurn
		out = append(out, ev)
	}
	if q.Status == Failed {
		add(ErrorGeneric, end)
		out[len(out)-1].Data = append(append([]byte(`["ErrorData",`), quoteJSON(q.Error)...), `,""]`...)
	}
	if q.CompleteNS != 0 {
		add(SampleComplete, q.CompleteNS)
		out[len(out)-1].Data = []byte("null")
	}
	return out
}

func (q *Request) detail() Detail {
	d := Detail{ISL: count(q.Input), OSL: count(q.Output), AfterFirst: count(q.AfterFirst), TokenSource: q.Source,
		Finish:     q.Finish,
		HTTPStatus: q.HTTPStatus, RequestID: q.RequestID, Endpoint: q.Endpoint, Model: q.Model, Phase: q.Phase,
		ResponseID: q.ResponseID, TraceID: q.TraceID}
	if q.chunks > 0 {
		d.Chunks = count(q.chunks)
	}
	if q.LastNS > q.FirstNS {
		d.LastNS = q.LastNS
	}
	return d
}

func count(n int) *int {
	if n < 0 {
		return nil
	}
	return &n
}

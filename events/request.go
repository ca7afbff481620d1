package events

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

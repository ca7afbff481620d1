package metric

import (
	"errors"
	"fmt"
	"time"
)

// ServerRequest is what a server itself says of one request, or of one stage of it. Nothing in it is computed from an
// assumption: what the source does not give is missing, which is 0 for instants, -1 for durations and counts, and ""
// for texts. [NewServerRequest] returns one of which all is missing. It holds no text of prompts or answers.
type ServerRequest struct {
	// Source is [ServerSource.ID] of who told it, which says of which clock the instants are.
	Source int
	// ID is the engine's; Alt a second one (x_request_id); Trace the trace id in 32 hexadecimal digits. One is given.
	ID, Alt, Trace string
	// Part is the number within a request of several sequences, from 0.
	Part int64
	// Instants in nanoseconds on the clock of the source. FinishNS is when the server was done, SentNS when the first
	// bytes of the answer left it.
	ArrivalNS, QueuedNS, SchedNS, FirstNS, LastNS, FinishNS, SentNS int64
	// Durations the source gave, or differences of its own instants. Front is from the arrival to the queue, Transfer
	// that of a KV cache between servers, Compute that of models that know no tokens.
	Front, Queue, Prefill, Decode, TTFT, E2E, Transfer, Compute time.Duration
	// Counts of tokens, of which Cached are a part of Prompt, and of preemptions.
	Prompt, Cached, Output, Preempted int64
	Finish, Status                    string // at most 64 bytes
	ServerPlace
}

// ServerPlace is where a server dealt with a request: texts of at most 128 bytes, of which few differ.
type ServerPlace struct {
	Stage   string // of a pipeline, such as "ctx" and "gen"
	Role    string // what the process is for, such as "prefill"
	Replica string // which of several equal servers
	Worker  string // which process, rank or engine of it
	Model   string
}

// ServerSource is one origin of records about requests.
type ServerSource struct {
	ID   int    // its row in the recording
	Kind string // "otlp", "sglang-requests", ...
	Name string // of the file or address, without secrets
	ServerClock
	OpenedNS int64 // when it was opened, nanoseconds since 1970
	ServerCounts
}

// ServerClock is what the instants of a source mean.
type ServerClock struct {
	Clock      string        // ServerUnix, ServerMonotonic or ServerNone
	Resolution time.Duration // of the instants: the truth is within one of what is written
	BootID     string        // of the machine whose monotonic clock it is, where that is known
}

// The clocks of sources.
const (
	ServerUnix      = "unix"      // nanoseconds since 1970
	ServerMonotonic = "monotonic" // since the machine booted
	ServerNone      = "none"      // durations alone
)

// ServerCounts says how the reading of a source went.
type ServerCounts struct {
	Records int64 // that were taken
	Bad     int64 // that could not be read, or say what cannot be
	Dropped int64 // that were read and could not be kept
	Other   int64 // that are not about requests
	// Seen counts records that were there before: a retry, a file read anew. FirstBad tells the first bad one. They
	// are not in the recording.
	Seen     int64
	FirstBad string
}

// Note counts a record that cannot be taken. The text must hold nothing that the source wrote.
func (c *ServerCounts) Note(format string, args ...any) {
	if c.Bad++; c.Bad == 1 {
		c.FirstBad = fmt.Sprintf(format, args...)
	}
}

// NewServerRequest returns a record of which all is missing.
func NewServerRequest() ServerRequest {
	return ServerRequest{Part: -1, Front: -1, Queue: -1, Prefill: -1, Decode: -1, TTFT: -1, E2E: -1, Transfer: -1,
		Compute: -1, Prompt: -1, Cached: -1, Output: -1, Preempted: -1}
}

// The limits of what a record may say.
const (
	maxServerID       = 256
	maxServerText     = 64
	maxServerPlace    = 128
	maxServerDuration = 24 * time.Hour
	maxServerCount    = 1 << 40
)

// Check returns why the record cannot be true on a clock, or nil. It cuts texts that are too long, save for ids. Its
// errors hold nothing that the source wrote.
func (q *ServerRequest) Check(clock string) error {
	for _, t := range []*string{&q.Finish, &q.Status} {
		*t = Clean(*t, maxServerText)
	}
	for _, t := range []*string{&q.Stage, &q.Role, &q.Replica, &q.Worker, &q.Model} {
		*t = Clean(*t, maxServerPlace)
	}
	if q.ID == "" && q.Alt == "" && q.Trace == "" {
		return errors.New("it has no id")
	}
	if max(len(q.ID), len(q.Alt), len(q.Trace)) > maxServerID {
		return fmt.Errorf("an id is longer than %d bytes", maxServerID)
	}
	for _, d := range q.Durations() {
		if *d < -1 || *d > maxServerDuration {
			return fmt.Errorf("a duration is negative or longer than %v", maxServerDuration)
		}
	}
	for _, n := range []int64{q.Part, q.Prompt, q.Cached, q.Output, q.Preempted} {
		if n < -1 || n > maxServerCount {
			return errors.New("a count is negative or too large")
		}
	}
	if q.Cached > q.Prompt && q.Prompt >= 0 {
		return errors.New("more tokens were cached than the prompt has")
	}
	return q.checkInstants(clock)
}

// checkInstants refuses instants that no clock shows, and those that are out of their order.
func (q *ServerRequest) checkInstants(clock string) error {
	from, to := int64(0), int64(1<<62)
	if clock == ServerUnix {
		from = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
		to = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	}
	for _, at := range q.Instants() {
		switch {
		case *at == 0:
		case clock == ServerNone:
			return errors.New("it has an instant, and its source no clock")
		case *at < from || *at > to:
			return errors.New("an instant is outside of the years 2001 to 2100, or before the boot")
		case q.ArrivalNS != 0 && *at < q.ArrivalNS:
			return errors.New("something of it was before it arrived")
		case q.ArrivalNS != 0 && *at-q.ArrivalNS > int64(maxServerDuration):
			return fmt.Errorf("it took longer than %v", maxServerDuration)
		}
	}
	if q.FinishNS != 0 && q.FirstNS > q.FinishNS {
		return errors.New("its first token was after its end")
	}
	return nil
}

// Instants are the instants of the record, the arrival first.
func (q *ServerRequest) Instants() [7]*int64 {
	return [7]*int64{&q.ArrivalNS, &q.QueuedNS, &q.SchedNS, &q.FirstNS, &q.LastNS, &q.FinishNS, &q.SentNS}
}

// Durations are the durations of the record.
func (q *ServerRequest) Durations() [8]*time.Duration {
	return [8]*time.Duration{&q.Front, &q.Queue, &q.Prefill, &q.Decode, &q.TTFT, &q.E2E, &q.Transfer, &q.Compute}
}

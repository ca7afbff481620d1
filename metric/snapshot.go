package metric

import (
	"fmt"
	"math"
	"time"
)

// Outcome is how one poll ended. Every scheduled poll has exactly one.
type Outcome uint8

// The outcomes. OK stored every line; Partial stored what was good and counted
// the rest in Snapshot.Drops; the others stored nothing.
const (
	OK Outcome = iota
	Partial
	HTTPError       // a status other than 200
	Timeout         // the whole-scrape deadline passed
	ConnectError    // no connection, or it broke before a body
	TooLarge        // a limit on bytes, samples or series was hit
	Truncated       // the body ended early and nothing of it was usable
	NotPrometheus   // JSON, HTML or anything else that is no exposition
	RefusedRedirect // a redirect to another origin, or too many
	SkippedOverlap  // due while the previous poll was still running
	Cancelled       // the run ended first
	Unwritten       // recorded too late: writing failed for longer than the polls that wait had room
)

// InternalError begins the Err of a poll in which the decoder itself panicked: a bug
// of ours, whatever the target sent, which cost this poll alone.
const InternalError = "internal error while decoding"

var outcomeNames = [...]string{"ok", "partial", "http_error", "timeout", "connect_error", "too_large", "truncated",
	"not_prometheus", "refused_redirect", "skipped_overlap", "cancelled", "unwritten"}

// Outcomes is the number of outcomes: valid ones are below it.
const Outcomes = Outcome(len(outcomeNames))

// String returns the name of the outcome as exports spell it.
func (o Outcome) String() string {
	if o < Outcomes {
		return outcomeNames[o]
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// Stored reports whether the poll delivered samples (possibly none: an empty body is OK).
func (o Outcome) Stored() bool { return o == OK || o == Partial }

// Kind is why a poll was made.
type Kind uint8

// The kinds: before the load starts, on schedule, at a mark, after the end.
const (
	Periodic Kind = iota
	Baseline
	Boundary
	Final
)

var kindNames = [...]string{"periodic", "baseline", "boundary", "final"}

// String returns the lower-case name of the kind.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Delta is the samples of one poll in terms of the slots of its target.
type Delta struct {
	// Full is set when Slots lists every slot the poll saw, so a slot that is not listed has vanished. Otherwise the set
	// of slots is that of the previous stored poll and only those whose bits changed are listed.
	Full bool
	// Slots holds slot indices, strictly ascending.
	Slots []uint32
	// Bits is parallel to Slots: math.Float64bits of the value, or the integer
	// itself where SampleID.Integer is set. Bits keep NaN payloads and -0.
	Bits []uint64
}

// Float returns the value at position i of a slot that is not an integer.
func (f *Delta) Float(i int) float64 { return math.Float64frombits(f.Bits[i]) }

// DropFiltered is the reason of lines that the user asked to leave out. They are
// counted, so that stored and dropped add up, and are no loss.
const DropFiltered = "filtered"

// Drop counts lines of a poll that were not stored, by reason.
type Drop struct {
	Reason string // a stable word: "parse", "duplicate_label", "series_limit", ...
	Lines  int
	First  string // the first case: line number and series, sanitised, at most 200 bytes
}

// AddDrop counts lines of a reason in drops, where each reason has one entry. first is called for a new one.
func AddDrop(drops []Drop, reason string, lines int, first func() string) []Drop {
	for i := range drops {
		if drops[i].Reason == reason {
			drops[i].Lines += lines
			return drops
		}
	}
	return append(drops, Drop{Reason: reason, Lines: lines, First: first()})
}

// Snapshot is one poll of one target. All times are nanoseconds since 1970 on
// the run's axis: one origin plus the monotonic clock.
//
// Who receives a Snapshot may read it during the call only: slices in it are reused for the next poll.
type Snapshot struct {
	Target int    // index of the target in the run
	Seq    uint64 // number of the poll within its target, from 0
	Kind   Kind

	DueNS       int64         // when the schedule wanted it
	SentNS      int64         // when the request was sent
	FirstByteNS int64         // when the first byte of the body arrived; 0 if none did
	Duration    time.Duration // from SentNS until the body was read; no work of ours in it

	Outcome Outcome
	Status  int    // HTTP status, 0 when none was received
	Err     string // what went wrong, sanitised; "" when OK

	BodyBytes int64
	Body      []byte // the body, decompressed; nil when none was read
	// Duplicate is set when the body equals that of the previous stored poll byte for byte.
	Duplicate bool
	Lines     int    // sample lines in the body
	Drops     []Drop // those that were not stored: stored + dropped = lines
	Warnings  []Warning

	DictDelta DictDelta
	Delta     Delta
	// Observations are the single events behind the samples, where a source logs each of them.
	Observations []Observation
	// Exemplars holds those that are new or changed since the previous stored poll, at most one per slot.
	Exemplars []Exemplar
}

// Observation is one logged event of a series: the duration of one request, say.
type Observation struct {
	Series   int   // index into Schema.Series
	AtNS     int64 // by the log's own time, nanoseconds since 1970
	Value    float64
	Requests []string // ids of the requests it was measured for; nil when unknown
}

// Exemplar is one observation that a server shows beside a bucket or a counter, with what leads to its trace.
type Exemplar struct {
	Slot   int // index into Schema.Slots
	Labels Labels
	Value  float64
	// AtNS is when the server observed it, 0 when it does not say.
	AtNS int64
	// SeenNS is the time of the first poll that showed it.
	SeenNS int64
}

// AtNS returns the instant the samples belong to: the first byte of the body,
// as AIPerf has it, or the sending of the request when there was no body.
func (s *Snapshot) AtNS() int64 {
	if s.FirstByteNS != 0 {
		return s.FirstByteNS
	}
	return s.SentNS
}

// Lose sets the drops of a poll whose Lines do not count them yet. It is Partial when lines were lost.
func (s *Snapshot) Lose(drops []Drop) {
	s.Drops = drops
	if s.Lines += s.Dropped(); s.Lost() > 0 {
		s.Outcome = Partial
	}
}

// Lost returns the number of lines that were to be stored and were not.
func (s *Snapshot) Lost() int {
	n := 0
	for _, d := range s.Drops {
		if d.Reason != DropFiltered {
			n += d.Lines
		}
	}
	return n
}

// Dropped returns the number of lines that were not stored.
func (s *Snapshot) Dropped() int {
	n := 0
	for _, d := range s.Drops {
		n += d.Lines
	}
	return n
}

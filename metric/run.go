package metric

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Target is one polled endpoint as the run knows it. Nothing in it is secret: URL is the redacted form.
type Target struct {
	Name   string // the user's alias, or ""
	URL    string // as it appears in every output
	Source string // "prometheus", "triton", "torchserve-log", ...
	// Labels say what the target is, such as job and instance of a Prometheus
	// configuration. They are not those of its series.
	Labels Labels
}

// SourceProcess is the Source of the target that is no server but the load generator on this machine.
const SourceProcess = "process"

// Client reports whether the target is the load generator, of which readers of servers' numbers are told nothing.
func (t *Target) Client() bool { return t.Source == SourceProcess }

// Shown is the target for people: the user's alias, or else its address.
func (t *Target) Shown() string { return cmp.Or(t.Name, t.URL) }

// TargetEvent is a target that comes or goes while a run is recorded. A target without
// any was there from the beginning to the end.
type TargetEvent struct {
	AtNS   int64
	Gone   bool   // it went; otherwise it came
	Reason string // who says so, in words: "pod is no longer listed"
}

// Mark starts a phase of that name. The phases "warmup" and "profiling" are
// those of AIPerf; "end" closes the last phase.
type Mark struct {
	Name string
	AtNS int64
	// Kind is "" for a mark that a user set, MarkOwn for one of the collector, MarkPolled for one of it at which it
	// polled all targets, and of phases that a load generator told PhaseWarmup or PhaseProfiling: whether it measured.
	Kind string
}

// Own reports whether the collector set the mark by itself.
func (m Mark) Own() bool { return m.Kind == MarkOwn || m.Kind == MarkPolled }

// Validate refuses names that no output could show.
func (m Mark) Validate() error {
	if m.Name == "" || len(m.Name) > 200 || strings.ContainsFunc(m.Name, unicode.IsControl) || !utf8.ValidString(m.Name) {
		return errors.New("NAME must have 1 to 200 bytes and no control characters")
	}
	return nil
}

// The names of marks that have a meaning of their own.
const (
	PhaseWarmup    = "warmup"
	PhaseProfiling = "profiling"
	PhaseCooldown  = "cooldown"
	MarkEnd        = "end"
	MarkOwn        = "own"    // a kind
	MarkPolled     = "polled" // a kind
)

// Warning tells the user about data that is doubtful. Bad data is not an error
// of ours: warnings travel inside results, and nothing is logged from a library.
type Warning struct {
	Code string // a stable word: "counter_reset", "buckets_changed", ...
	Text string // one sentence for a person, sanitised
}

// Warnf makes a warning whose text is formatted as by fmt.Sprintf.
func Warnf(code, format string, args ...any) Warning {
	return Warning{Code: code, Text: fmt.Sprintf(format, args...)}
}

// Event is one instant in the life of a client-side request, or of the session that sends them, as a load
// generator records it. Names and the form of Data are those of MLPerf's endpoints benchmark.
type Event struct {
	Sample       string // the request's id; "" for events of the session
	Type         string // "sample.issued", "sample.recv_first", ...: see package events
	AtNS         int64  // nanoseconds since 1970, of one anchor plus a monotonic clock
	Conversation string
	Turn         int // within the conversation, when HasTurn
	HasTurn      bool
	Data         []byte // JSON, or empty
}

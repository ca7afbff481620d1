package continuity

import "github.com/scrapestat/scrapestat/metric"

// Options are what a tracker is told about its target.
type Options struct {
	// Places are the labels whose values name a replica or a device. What a new place shows first has run elsewhere
	// before and is not counted from zero. The usual ones (uuid, device, instance, pod, hostname) need not be given.
	Places []string
}

// Tracker follows one target through its polls. It has one owner and is not safe for concurrent use.
type Tracker struct {
	o    Options
	step Step
}

// New returns a tracker of a target without polls.
func New(o Options) *Tracker { return &Tracker{o: o} }

// Step is one stored poll after the decision. It belongs to the tracker and is valid until its next Step.
type Step struct {
	// Delta replaces that of the snapshot. Its cumulative slots are adjusted; where nothing ever happened it is the
	// snapshot's own. It is empty where Held is set.
	Delta   metric.Delta
	Process int32   // whose body it is, from 0 in order of appearance; gauges of it belong to that process
	Held    bool    // an older copy of the body, which is no sample of anything
	Born    []int32 // series first seen that count from zero in this poll, ascending
	Events  []Event // decided in this poll
	// Tentative is set while a restart is not confirmed: the cumulative slots stay where they were meanwhile.
	Tentative bool
}

// Event is something that happened to a target.
type Event struct {
	AtNS    int64
	Kind    EventKind
	Process int32
	Series  int32  // -1 for the whole target
	Text    string // one sentence without secrets, at most 200 bytes
}

// EventKind is what happened.
type EventKind uint8

// The kinds of events.
const (
	Restart    EventKind = iota // the process, or one series, counts from zero
	Takeover                    // another process answers that ran before, once and for all
	Back                        // a process answers that answered before
	Other                       // another process answers beside the present one
	Excursion                   // a few bodies of something else
	OlderBody                   // an older copy of a body
	Dip                         // some values fell for a moment
	Birth                       // series that count from zero
	Unsure                      // evidence that can be read in two ways
	eventKinds = iota
)

var eventNames = [eventKinds]string{"restart", "takeover", "back", "other_process", "excursion", "older_body", "dip",
	"birth", "unsure"}

// String returns the lower-case name of the kind.
func (k EventKind) String() string { return eventNames[min(int(k), eventKinds-1)] }

// Summary is what happened to a target in a window.
type Summary struct {
	Status     Status
	Processes  int // that answered, without those that followed one by a restart; 0 for several, not told apart
	Restarts   int
	HeldBodies int
	Dips       int
	Events     []Event // the first ones; Lost counts the others
	Lost       int
}

// Step takes the next poll and returns what it means; nil for a poll that is not stored, which only teaches the
// dictionary. It keeps nothing of s. A poll that does not fit the dictionary is refused and changes nothing.
func (t *Tracker) Step(s *metric.Snapshot) (*Step, error) {
	if !s.Outcome.Stored() {
		return nil, nil
	}
	t.step = Step{Delta: s.Delta}
	return &t.step, nil
}

// Verdict returns what is known of a series in a window: from is the time of its reference, to that of its last
// sample. Only what happened after from and not after to counts, but every decision knows the whole recording so far.
func (t *Tracker) Verdict(series int, from, to int64) Verdict { return Verdict{} }

// Target returns what happened to the target after from and not after to.
func (t *Tracker) Target(from, to int64) Summary { return Summary{Processes: 1} }

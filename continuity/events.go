package continuity

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
	eventKinds = iota
)

var eventNames = [eventKinds]string{"restart", "takeover", "back", "other_process", "excursion", "older_body", "dip"}

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

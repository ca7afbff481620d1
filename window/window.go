package window

import (
	"math"

	"github.com/scrapestat/scrapestat/window/traffic"
)

// Rule is why a window is what it is: the What of a selector, or LoadGenerator.
type Rule = What

// LoadGenerator is the rule of phases that the load generator itself told, or a user's mark "profiling".
const LoadGenerator Rule = "load_generator"

// Stretch is time from one instant to another, nanoseconds since 1970.
type Stretch struct {
	StartNS int64 `json:"start_ns"`
	EndNS   int64 `json:"end_ns"`
}

// Seconds is the length.
func (s Stretch) Seconds() float64 { return float64(s.EndNS-s.StartNS) / 1e9 }

// EdgeKind is what an edge comes from.
type EdgeKind string

// The kinds. At a Snapped edge nobody polled: each target uses its stored poll nearest to it, and its rates divide by
// the time from that poll. The other ones have no such choice.
const (
	Event   EdgeKind = "event"   // issue or end of a client's request: exact
	Mark    EdgeKind = "mark"    // all targets are polled at it
	Request EdgeKind = "traffic" // the first or last request, as polls bound it
	Snapped EdgeKind = "snapped"
)

// Edge is where a window begins or ends.
type Edge struct {
	Kind EdgeKind `json:"kind"`
	AtNS int64    `json:"at_ns"`
	// LowNS and HighNS are where it is at the earliest and the latest.
	LowNS  int64 `json:"low_ns"`
	HighNS int64 `json:"high_ns"`
	// Target and Family told of it, where Kind is Request; About is that of a traffic.Edge.
	Target int    `json:"-"`
	Family string `json:"family,omitempty"`
	About  bool   `json:"about,omitempty"`
}

// PhaseSpan is a phase of a run. Phases of one name are numbered in the order of time.
type PhaseSpan struct {
	Name     string
	Kind     string // of its mark
	Instance int    // from 1
	Of       int    // how many there are of that name
	Stretch
}

// Window is the time that the numbers of a run describe.
type Window struct {
	Rule     Rule
	Phase    string // of rule Phase; "profiling" of those that leave warm-up and cool-down out; "" for times
	Instance int
	// Parts are the stretches, ascending and apart; none when nothing is left. Empty says why where that is because of
	// what was to be left out, or was asked for.
	Parts      []Stretch
	Start, End Edge
	Empty      string
	// LastNS is the time up to which polls count for what was gained, as what belongs to the window may be published
	// after it; math.MaxInt64 where nothing else follows.
	LastNS int64

	// Warmup is what was left out between the start of the load and the window, nil for nothing; Cooldown after it.
	Warmup, Cooldown *Stretch
	// Warmups are the stretches that a load generator told to be warm-up where these are several, Warmup from the first
	// to the last of them; Told is set where Parts and Warmup are what it told.
	Warmups []Stretch
	Told    bool

	Phases    []PhaseSpan
	Command   Stretch // from the base of the load, COMMAND's start, to its end
	Recording Stretch // from the first to the last poll
	Traffic   traffic.Traffic
}

// Bounds returns the length of the window in seconds, and the least and the most that it can be.
func (w *Window) Bounds() (seconds, low, high float64) {
	for _, p := range w.Parts {
		seconds += p.Seconds()
	}
	if seconds == 0 {
		return 0, 0, 0
	}
	early := float64(w.Start.AtNS-w.Start.LowNS) / 1e9
	late := float64(w.Start.HighNS-w.Start.AtNS) / 1e9
	return seconds, max(0, seconds-late-float64(w.End.AtNS-w.End.LowNS)/1e9),
		seconds + early + float64(w.End.HighNS-w.End.AtNS)/1e9
}

// Slopes is for how many seconds of the window the load was less than 0.9 of that in its middle, at the start and at
// the end.
func (w *Window) Slopes() (ramp, drain float64) {
	within := func(from, to int64) float64 { return max(0, float64(min(to, w.End.AtNS)-max(from, w.Start.AtNS))/1e9) }
	if at := w.Traffic.RampNS; at != 0 {
		ramp = within(w.Start.AtNS, at)
	}
	if at := w.Traffic.DrainNS; at != 0 {
		drain = within(at, w.End.AtNS)
	}
	return ramp, drain
}

// SecondsBetween is the time that the rates of one target divide by: that of the window, where its gains are counted
// from the poll at refNS to the one at lastNS. These matter at snapped edges alone.
func (w *Window) SecondsBetween(refNS, lastNS int64) float64 {
	seconds, _, _ := w.Bounds()
	if seconds == 0 {
		return 0
	}
	if w.Start.Kind == Snapped && refNS != 0 {
		seconds += float64(w.Start.AtNS-refNS) / 1e9
	}
	if w.End.Kind == Snapped && lastNS != 0 {
		seconds += float64(lastNS-w.End.AtNS) / 1e9
	}
	return max(seconds, 0)
}

// forever is later than every poll.
const forever = math.MaxInt64

func mark(at int64) Edge    { return Edge{Kind: Mark, AtNS: at, LowNS: at, HighNS: at} }
func snapped(at int64) Edge { return Edge{Kind: Snapped, AtNS: at, LowNS: at, HighNS: at} }
func request(e traffic.Edge) Edge {
	return Edge{Kind: Request, AtNS: e.AtNS, LowNS: e.LowNS, HighNS: e.HighNS, Target: e.Target, Family: e.Family,
		About: e.About}
}

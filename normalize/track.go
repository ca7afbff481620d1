package normalize

import "math"

// presence is what a series shows at a poll.
type presence uint8

const (
	absent presence = iota // not in the poll
	good                   // a sample
	bad                    // there, but not finite: dropped
)

// never is a poll number that is not reached.
const never = math.MaxInt32

// span is a range of polls, by number: from <= n < to.
type span struct{ from, to int32 }

func (w span) has(n int32) bool { return w.from <= n && n < w.to }

// track accounts for the samples of a series. It is only told about changes:
// between two of them every poll shows the series as it was.
type track struct {
	state    presence
	vanished bool  // absent now, after having been there
	since    int32 // poll from which state holds
	last     int32 // last sample before the present state; -1 without one
	ref      int32 // last sample before the window; -1 without one

	// Inside the window, up to since:
	first, final         int32 // first and last sample; -1 without one
	samples, drops, gaps int32
}

func newTrack() track { return track{last: -1, ref: -1, first: -1, final: -1} }

// set changes the state from poll n on. It is not called for what is absent already.
func (t *track) set(state presence, n int32, w span) {
	t.settle(n, w)
	if t.state == good {
		t.last = n - 1
	}
	switch {
	case state == absent:
		t.vanished = true
	case t.vanished:
		t.vanished = false
		if w.has(n) {
			t.gaps++
		}
	}
	t.state, t.since = state, n
}

// settle counts the polls of the window since the last change, up to poll n exclusive.
func (t *track) settle(n int32, w span) {
	from, to := max(t.since, w.from), min(n, w.to)
	if from >= to {
		return
	}
	switch t.state {
	case good:
		if t.first < 0 {
			t.first = from
		}
		t.final = to - 1
		t.samples += to - from
	case bad:
		t.drops += to - from
	}
}

// open notes the reference when poll n is the first of the window.
func (t *track) open(n int32) {
	t.ref = t.last
	if t.state == good {
		t.ref = n - 1
	}
}

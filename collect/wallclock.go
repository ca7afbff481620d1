package collect

import (
	"fmt"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// maxWallStep is how far the wall clock may move against the monotonic one
// between two looks without being told: a time service may slew it.
const maxWallStep = time.Second

// wallClock watches whether somebody sets the clock of this machine while a run
// is recorded. The times of the run are those of its origin and the monotonic
// clock, so that nothing changes; who lays them beside the log of another program
// must know.
type wallClock struct {
	origin time.Time // with its monotonic reading
	off    time.Duration
}

// check looks at the clock and returns a warning when it was set since the last
// look. The wall clock tells wall when mono has passed since the origin.
func (w *wallClock) check(wall time.Time, mono time.Duration) *metric.Warning {
	off := time.Duration(wall.UnixNano()-w.origin.UnixNano()) - mono
	step := off - w.off
	w.off = off
	if step.Abs() < maxWallStep {
		return nil
	}
	return &metric.Warning{Code: "clock_jump", Text: fmt.Sprintf(
		"the clock of this machine was set by %v about %v after the start (or the machine slept); times of the run go "+
			"on as if it had not been",
		step.Round(time.Millisecond), mono.Round(time.Second))}
}

// checkClock records a step of the wall clock.
func (s *Session) checkClock() {
	now := time.Now()
	warning := s.wall.check(now.Round(0), now.Sub(s.origin))
	if warning != nil {
		s.o.Events.Warning(*warning)
		s.note(s.db.Warn(*warning))
	}
}

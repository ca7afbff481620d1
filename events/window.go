package events

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// The windows of a report: which requests count, and what their number is divided by.
const (
	WindowTracked = "tracked"
	WindowLegacy  = "mlperf-legacy"
	WindowLoadGen = "loadgen"
	WindowSteady  = "steady"
	WindowPhase   = "phase"
	WindowRange   = "range"
)

// Window chooses the requests of a report. The zero value is the tracked window.
type Window struct {
	Name  string
	Crop  float64 // of steady: the share of the issue span cut at each end; 0 is 0.1
	Phase string  // of phase
	// FromNS and ToNS, of range, bound the time of issue: [from, to).
	FromNS, ToNS int64
}

// windowForms is what ParseWindow understands.
const windowForms = "tracked, mlperf-legacy, loadgen, steady, steady=SHARE, phase=NAME or range=FROM..TO (durations " +
	"from the first issue, or RFC 3339)"

// ParseWindow reads a window as the command line writes it. Durations of a range count from originNS, the time of the
// first issue.
func ParseWindow(s string, originNS int64) (Window, error) {
	name, arg, has := strings.Cut(s, "=")
	w := Window{Name: name}
	switch {
	case name == WindowTracked && !has, name == WindowLegacy && !has, name == WindowLoadGen &&
		!has, name == WindowSteady && !has:
		return w, nil
	case name == WindowSteady:
		v, err := strconv.ParseFloat(arg, 64)
		if err != nil || !(v > 0 && v < 0.5) {
			return w, fmt.Errorf("parse window %q: the share is no number between 0 and 0.5", s)
		}
		w.Crop = v
		return w, nil
	case name == WindowPhase && arg != "":
		w.Phase = arg
		return w, nil
	case name == WindowRange:
		from, to, ok := strings.Cut(arg, "..")
		var err1, err2 error
		w.FromNS, err1 = parseBound(from, originNS, math.MinInt64)
		w.ToNS, err2 = parseBound(to, originNS, math.MaxInt64)
		if !ok || err1 != nil || err2 != nil || w.FromNS >= w.ToNS {
			return w, fmt.Errorf("parse window %q: want range=FROM..TO, such as range=30s..5m, with FROM before TO", s)
		}
		return w, nil
	}
	return w, fmt.Errorf("parse window %q: unknown; want %s", s, windowForms)
}

func parseBound(s string, originNS, open int64) (int64, error) {
	if s == "" {
		return open, nil
	}
	if d, err := time.ParseDuration(s); err == nil {
		return originNS + int64(d), nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	return t.UnixNano(), err
}

// span is a window applied to a session.
type span struct {
	window   Window
	requests []*Request // in order of issue
	duration Value      // seconds
	from, to int64      // 0 when the window is no single stretch of time
	// minus is 1 where the rate counts the intervals between requests.
	minus int
	warn  string
}

const seconds = 1e-9

// pick keeps the requests that pass.
func (s *Session) pick(keep func(*Request) bool) []*Request {
	var out []*Request
	for i := range s.Requests {
		if r := &s.Requests[i]; keep(r) {
			out = append(out, r)
		}
	}
	return out
}

func tracked(r *Request) bool { return r.Tracked }

// apply finds the requests of a window and its length.
func (s *Session) apply(w Window) (span, error) {
	sp := span{window: w}
	switch w.Name {
	case "", WindowTracked:
		sp.window.Name = WindowTracked
		s.tracked(&sp)
	case WindowLegacy:
		s.legacy(&sp)
	case WindowLoadGen:
		s.loadgen(&sp)
	case WindowSteady:
		s.steady(&sp)
	case WindowPhase:
		sp.requests = s.pick(func(r *Request) bool { return r.Phase == w.Phase })
		if len(sp.requests) == 0 {
			return sp, fmt.Errorf("report requests: no request is of phase %q (known: %s)", w.Phase,
				strings.Join(s.Phases(), ", "))
		}
		sp.between(sp.requests)
	case WindowRange:
		sp.requests = s.pick(func(r *Request) bool { return r.IssuedNS >= w.FromNS && r.IssuedNS < w.ToNS })
		s.ranged(&sp)
	default:
		return sp, fmt.Errorf("report requests: unknown window %q; want %s", w.Name, windowForms)
	}
	if sp.duration.Known && sp.duration.V < 0 {
		sp.duration = unknown("the window ends before it begins: requests complete before they are issued")
	}
	return sp, nil
}

// tracked adds up the blocks, so idle time between them is left out.
func (s *Session) tracked(sp *span) {
	sp.requests = s.pick(tracked)
	total, some := int64(0), false
	for _, b := range s.Blocks {
		if b.LastNS != 0 {
			total, some = total+b.LastNS-b.StartNS, true
			sp.to = max(sp.to, b.LastNS)
		}
	}
	sp.duration = known(float64(total) * seconds)
	if some {
		sp.from = s.Blocks[0].StartNS
	} else {
		sp.duration = unknown("no tracked request completed")
	}
}

// legacy is the window of MLPerf's reports until April 2026.
func (s *Session) legacy(sp *span) {
	sp.requests = s.pick(func(r *Request) bool { return !s.Stopped || r.IssuedNS < s.StopNS })
	if !s.Started {
		sp.duration = unknown("the recording has no %s, which this window starts with", SessionStarted)
		return
	}
	sp.from = s.StartedNS
	if sp.to = s.LastNS; s.Stopped {
		sp.to = lastComplete(sp.requests)
	}
	switch {
	case s.Stopped && len(sp.requests) == 0:
		sp.to, sp.duration = 0, unknown("no request was issued before tracking stopped")
	case sp.to == 0:
		sp.duration = unknown("no request completed")
	default:
		sp.duration = known(float64(sp.to-sp.from) * seconds)
	}
}

func lastComplete(requests []*Request) int64 {
	last := int64(0)
	for _, r := range requests {
		last = max(last, r.CompleteNS)
	}
	return last
}

// loadgen is the window of MLPerf's LoadGen: it ends with the request that was issued last, and the rate counts
// intervals.
func (s *Session) loadgen(sp *span) {
	sp.requests, sp.minus = s.pick(tracked), 1
	if len(sp.requests) == 0 {
		sp.duration = unknown("no request was tracked")
		return
	}
	last := sp.requests[len(sp.requests)-1]
	sp.from = sp.requests[0].IssuedNS
	if last.Status == Failed {
		sp.warn = "last-issued sample failed"
	}
	if last.CompleteNS == 0 {
		sp.duration = unknown("the last-issued sample did not complete")
		return
	}
	sp.to = last.CompleteNS
	sp.duration = known(float64(sp.to-sp.from) * seconds)
}

// steady crops the ends of the time in which requests were issued.
func (s *Session) steady(sp *span) {
	all := s.pick(tracked)
	sp.window.Crop = cmp.Or(sp.window.Crop, 0.1)
	if len(all) < 2 {
		sp.duration = unknown("fewer than two requests were tracked")
		return
	}
	first, last := all[0].IssuedNS, all[len(all)-1].IssuedNS
	cropped := int64(sp.window.Crop * float64(last-first))
	sp.from, sp.to = first+cropped, last-cropped
	for _, r := range all {
		if r.IssuedNS >= sp.from && r.IssuedNS < sp.to {
			sp.requests = append(sp.requests, r)
		}
	}
	sp.duration = known(float64(sp.to-sp.from) * seconds)
}

// between sets a window from the first issue to the last completion.
func (sp *span) between(requests []*Request) {
	sp.from, sp.to = requests[0].IssuedNS, lastComplete(requests)
	if sp.to == 0 {
		sp.duration = unknown("no request completed")
		return
	}
	sp.duration = known(float64(sp.to-sp.from) * seconds)
}

// ranged takes the given bounds; an open one is where the requests end.
func (s *Session) ranged(sp *span) {
	sp.from, sp.to = sp.window.FromNS, sp.window.ToNS
	if len(sp.requests) == 0 {
		sp.duration = unknown("no request was issued in the range")
		return
	}
	if sp.from == math.MinInt64 {
		sp.from = sp.requests[0].IssuedNS
	}
	if sp.to == math.MaxInt64 {
		sp.to = lastComplete(sp.requests)
	}
	sp.duration = known(float64(sp.to-sp.from) * seconds)
	if sp.to <= sp.from {
		sp.duration = unknown("no request of the range completed")
	}
}

// Phases returns the names of the phases of all requests, in order of issue.
func (s *Session) Phases() []string {
	var out []string
	seen := map[string]bool{}
	for i := range s.Requests {
		if p := s.Requests[i].Phase; p != "" && !seen[p] {
			seen[p] = true
			out = append(out, p)
		}
	}
	return out
}

package sweep

import (
	"math"
	"slices"
	"strconv"
)

// Sweep is the points of one configuration and what follows from them.
type Sweep struct {
	Name, Engine, Unit string
	Points             []Point // by load
	Capacity           Capacity
	Knee               *Knee // nil where none can be told
	SLO                []Bracket
	// Limit is the resource that bound the lowest point that one bound, at the load LimitAt; "" for none.
	Limit   string
	LimitAt float64
	// GPUs is how many there were, 0 where nothing tells.
	GPUs float64
	// PerHour is what an hour of the configuration costs in Currency, 0 where nothing tells.
	PerHour  float64
	Currency string
	Notes    []string
}

// Analyse makes a sweep of points, in any order. The same points give the same sweep whatever their order, where
// Follows says the same of them.
func Analyse(name, unit string, points []Point, slos []SLO) *Sweep {
	points = slices.Clone(points)
	judgeAll(points, unit)
	s := &Sweep{Name: name, Unit: unit, Points: byLoad(points, unit), LimitAt: math.NaN()}
	s.Capacity, s.Knee = capacity(s.Points), knee(s.Points)
	for _, slo := range slos {
		s.SLO = append(s.SLO, bracket(s.Points, slo))
	}
	for i := range s.Points {
		p := &s.Points[i]
		if p.Limit = p.bound(s, slos); p.Limit != "" && s.Limit == "" && p.usable() {
			s.Limit, s.LimitAt = p.Limit, p.Load
		}
	}
	return s
}

// What makes a limit: the share of the time of requests that was queueing, that of requests that was refused, and that
// of the offered load that came.
const (
	queueing = 0.10
	refusing = 0.02
	arriving = 0.95
)

// bound is the resource that limits a point, "" for none.
func (p *Point) bound(s *Sweep, slos []SLO) string {
	switch {
	case p.Refused >= refusing:
		return "refused"
	case p.State == Restart || p.State == Draining:
		return ""
	case p.Bound != "" && (p.saturated() || p.State == Undecided || p.QueueShare >= queueing):
		return p.Bound
	case p.saturated():
		return "cannot tell"
	case slices.ContainsFunc(slos, func(o SLO) bool {
		v := p.Value(o.Row)
		return (o.Row[:3] == "itl" || o.Row[:4] == "tpot") && v.known() && !o.keeps(v.Low)
	}):
		return "decode"
	case s.Unit == PerSecond && !p.Measured && p.State == Stable && p.Arrivals < arriving*p.Load:
		return "client"
	}
	return ""
}

// Within is the bracket of the SLO that holds least far, nil without one. Where one has no data there is none.
func (s *Sweep) Within() (least *Bracket) {
	far := func(b *Bracket) (high, low float64) {
		if high, low = b.High, b.Low; math.IsNaN(high) {
			high = math.Inf(1)
		}
		if math.IsNaN(low) {
			low = math.Inf(-1)
		}
		return high, low
	}
	for i := range s.SLO {
		b := &s.SLO[i]
		if b.Status == NoData {
			return nil
		}
		if least == nil {
			least = b
			continue
		}
		h, l := far(b)
		if mh, ml := far(least); l < ml || l == ml && h < mh {
			least = b
		}
	}
	return least
}

// Verdict is what --require asks for.
type Verdict int

// The verdicts.
const (
	CannotTell Verdict = iota
	Takes
	DoesNot
)

// Require tells whether the server takes a load: within all SLOs, or without any as a capacity. Between the points that
// bracket it, and where a point was not steady, it cannot be told.
func (s *Sweep) Require(load float64) Verdict {
	if len(s.SLO) == 0 {
		switch c := &s.Capacity; {
		case c.Status == Inconsistent || !(c.X > 0):
			return CannotTell
		case c.X >= load:
			return Takes
		case c.Status == Reached:
			return DoesNot
		}
		return CannotTell
	}
	takes := Takes
	for i := range s.SLO {
		switch b := &s.SLO[i]; {
		case b.High <= load:
			return DoesNot
		case !(b.Low >= load) || b.LowState != Stable && b.LowState != AtLimit:
			takes = CannotTell
		}
	}
	return takes
}

// formatLoad is a load as people write it.
func formatLoad(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

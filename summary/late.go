package summary

import (
	"fmt"
	"time"

	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

// lateFor is how long after the end of a request a server may publish what it observed of it.
const lateFor = 3 * time.Second

// late watches the first moments of a window that follows a warm-up: what a server
// shows then may be of requests of the warm-up, and nothing in its metrics tells.
type late struct {
	fold  *normalize.Accumulator
	until int64 // polls after it are not for the fold
	// latency reports whether a family has an observation for each request or token.
	latency func(family string) bool
}

// watchLate returns the watch of a plan, nil when no warm-up goes before.
func (b *Builder) watchLate(p *plan, tracker *continuity.Tracker) (*late, error) {
	if p.warmup == nil || p.empty {
		return nil, nil
	}
	l := &late{until: p.window.StartNS + int64(lateFor),
		latency: func(family string) bool { return isLatency(b.o.Catalog, family) }}
	o := b.o.fold(p.window.StartNS, l.until)
	o.Quantiles, o.Slice, o.SliceQuantiles, o.Resets, o.Tracker = []float64{}, 0, false, normalize.ResetAdjust, tracker
	var err error
	l.fold, err = normalize.NewFold(o)
	return l, err
}

// add gives a poll to the watch, which may be nil.
func (l *late) add(s *metric.Snapshot, step *continuity.Step) error {
	if l == nil || s.AtNS() > l.until {
		return nil
	}
	return l.fold.AddStep(s, step)
}

// warning counts the observations of the window came at its beginning, of the
// family of which that was the largest share; nil when there were none.
func (l *late) warning(main *normalize.Result, each normalize.Each) *metric.Warning {
	if l == nil || main == nil {
		return nil
	}
	all := observations(main)
	family, few, of := "", int64(0), int64(1)
	for name, n := range observations(l.fold.ResultEach(l.until, each)) {
		// As shares, without dividing: n/all > few/of.
		if more, as := float64(n)*float64(of), float64(few)*float64(all[name]); l.latency(name) && n > 0 &&
			(more > as || more == as && name < family) {
			family, few, of = name, n, max(all[name], 1)
		}
	}
	if family == "" {
		return nil
	}
	return &metric.Warning{Code: "late_observations", Text: fmt.Sprintf(
		"%d of %d observations of %s (%.1f %%) came in the first %v after the warm-up: as many may be of requests of the "+
			"warm-up, unless the load paused for %v before",
		few, of, family, 100*float64(few)/float64(of), lateFor, lateFor)}
}

// observations adds up the counts of the histograms of each family.
func observations(r *normalize.Result) map[string]int64 {
	out := map[string]int64{}
	for i := range r.Series {
		if h := r.Series[i].Histogram; h != nil {
			out[r.Dict.Families[r.Dict.Series[r.Series[i].Index].Family].Name] += h.Count
		}
	}
	return out
}

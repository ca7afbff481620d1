package doctor

import (
	"context"
	"slices"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// ExamineSource examines a target that is no exposition: it polls it once, and a few times more to see what that
// costs. It leaves the source open.
func ExamineSource(ctx context.Context, t metric.Target, src scrape.Source, o Options) *Report {
	o = o.withDefaults()
	r := &Report{Name: t.Name, URL: t.URL, Endpoint: t.URL, Format: t.Source, Finding: []Finding{}, Tries: []Attempt{}}
	var dict metric.Schema
	var took []time.Duration
	origin, changed := time.Now(), 0
	now := func() int64 { return origin.UnixNano() + int64(time.Since(origin)) }
	timer := time.NewTimer(o.Pause)
	defer timer.Stop()
	for i := range o.Scrapes + 1 {
		if i > 0 {
			timer.Reset(o.Pause)
			select {
			case <-ctx.Done():
				return r
			case <-timer.C:
			}
		}
		s := metric.Snapshot{}
		src.Poll(ctx, now, &s)
		if s.Outcome.Stored() && dict.Extend(&s) != nil {
			s.Outcome, s.Err = metric.NotPrometheus, "the source contradicts itself"
		}
		if i == 0 || !s.Outcome.Stored() {
			r.source(t.Source, &s)
		}
		if !s.Outcome.Stored() {
			return r
		}
		if i > 0 {
			took = append(took, s.Duration)
			changed += len(s.Delta.Slots)
		}
		r.Samples, r.Series, r.Families = max(r.Samples, s.Lines), len(dict.Series), len(dict.Families)
	}
	for _, g := range catalog.Engines(&dict) {
		r.Engines = append(r.Engines, Engine{ID: g.ID, Name: g.Name})
	}
	slices.Sort(took)
	r.Cost = costOf(took[len(took)/2], float64(changed)/float64(len(took)), false, r.Samples, o, nil)
	r.Cost.Scrapes = len(took)
	return r
}

// source fills in how a poll of a source of that kind went.
func (r *Report) source(kind string, s *metric.Snapshot) {
	r.Outcome, r.Status, r.Error, r.BodyBytes = s.Outcome.String(), s.Status, s.Err, s.BodyBytes
	r.Collectable = s.Outcome.Stored()
	r.Tries = append(r.Tries, Attempt{What: kind, URL: r.URL, Outcome: r.Outcome, Status: s.Status,
		WireBytes: s.BodyBytes, Samples: s.Lines, TookMS: millis(s.Duration)})
	if !s.Outcome.Stored() {
		r.add(Error, r.Outcome, s.Err, "")
	}
	for _, w := range s.Warnings {
		r.add(Warning, w.Code, w.Text, "")
	}
}

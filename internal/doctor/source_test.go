package doctor_test

import (
	"context"
	"slices"
	"testing"

	"github.com/scrapestat/scrapestat/internal/doctor"
	"github.com/scrapestat/scrapestat/metric"
)

// counting is a source of one counter, beside one that stays, which fails from a poll on.
type counting struct {
	g     metric.SnapshotBuilder
	n     uint64
	fails uint64
	full  bool // each poll tells all values
}

func (c *counting) Poll(_ context.Context, now func() int64, s *metric.Snapshot) {
	c.n++
	s.SentNS = now()
	if c.n == c.fails {
		s.Outcome, s.Err = metric.ConnectError, "gone"
		return
	}
	f := c.g.Family("requests", metric.Counter, "", "")
	slot := c.g.Slot(c.g.Series(f, metric.Labels{}), metric.SampleID{Role: metric.RoleValue, Integer: true})
	c.g.SetInteger(slot, c.n)
	still := c.g.Series(f, metric.NewLabels(metric.Label{Name: "still", Value: "1"}))
	c.g.SetInteger(c.g.Slot(still, metric.SampleID{Role: metric.RoleValue, Integer: true}), 7)
	c.g.Finish(s)
	if c.full { // as after a series went
		s.Delta = metric.Delta{Full: true, Slots: []uint32{0, 1}, Bits: []uint64{c.n, 7}}
	}
	s.Warnings = append(s.Warnings, metric.Warning{Code: "odd", Text: "odd"})
}

func TestSource(t *testing.T) {
	target := metric.Target{URL: "triton+http://host:8000", Source: "triton"}
	for _, full := range []bool{false, true} {
		r := doctor.ExamineSource(t.Context(), target, &counting{full: full}, quick)
		if !r.Collectable || r.Samples != 2 || r.Families != 1 || r.Cost.Scrapes != 2 || r.Cost.Changed != 1 ||
			!slices.Equal(codes(r), []string{"warning odd"}) {
			t.Errorf("report %+v", r)
		}
	}
	r := doctor.ExamineSource(t.Context(), target, &counting{fails: 1}, quick)
	if r.Collectable || !slices.Equal(codes(r), []string{"error connect_error"}) {
		t.Errorf("report %+v", r)
	}
	r = doctor.ExamineSource(t.Context(), target, &counting{fails: 2}, quick)
	if r.Collectable || r.Error != "gone" {
		t.Errorf("report %+v", r)
	}
}

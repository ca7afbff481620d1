package doctor_test

import (
	"context"
	"slices"
	"testing"

	"github.com/scrapestat/scrapestat/internal/doctor"
	"github.com/scrapestat/scrapestat/metric"
)

// counting is a source of one counter, which fails from a poll on.
type counting struct {
	g     metric.SnapshotBuilder
	n     uint64
	fails uint64
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
	c.g.Finish(s)
	s.Warnings = append(s.Warnings, metric.Warning{Code: "odd", Text: "odd"})
}

func TestSource(t *testing.T) {
	target := metric.Target{URL: "triton+http://host:8000", Source: "triton"}
	r := doctor.ExamineSource(t.Context(), target, &counting{}, quick)
	if !r.Collectable || r.Samples != 1 || r.Families != 1 || r.Cost.Scrapes != 2 || r.Cost.Changed != 1 ||
		!slices.Equal(codes(r), []string{"warning odd"}) {
		t.Errorf("report %+v", r)
	}
	r = doctor.ExamineSource(t.Context(), target, &counting{fails: 1}, quick)
	if r.Collectable || !slices.Equal(codes(r), []string{"error connect_error"}) {
		t.Errorf("report %+v", r)
	}
	r = doctor.ExamineSource(t.Context(), target, &counting{fails: 2}, quick)
	if r.Collectable || r.Error != "gone" {
		t.Errorf("report %+v", r)
	}
}

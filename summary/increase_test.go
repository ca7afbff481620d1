package summary_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// TestShownIncrease: a number comes with how sure it is.
func TestShownIncrease(t *testing.T) {
	plain := func(v float64) string { return fmt.Sprint(v) }
	for _, c := range []struct {
		i      continuity.Increase
		format func(float64) string
		want   string
		status catalog.Status
	}{
		{continuity.Increase{}, plain, "7", catalog.OK},
		{continuity.Increase{Status: continuity.Born}, plain, "7 born", catalog.OK},
		{continuity.Increase{Status: continuity.Corrected, Restarts: 2}, plain, "7 restarted x2", catalog.OK},
		{continuity.Increase{Status: continuity.Refused}, plain, "refused", catalog.Refused},
		{continuity.Increase{Status: continuity.LowerBound}, plain, ">= 7", catalog.LowerBound},
		{continuity.Increase{Status: continuity.Ambiguous, Low: 6, High: 9}, plain, "7 (6 .. 9)", catalog.Ambiguous},
		{continuity.Increase{Status: continuity.Ambiguous, Low: 6, High: 9}, nil, "~ 7", catalog.Ambiguous},
		{continuity.Increase{Status: continuity.Ambiguous, Low: 6, High: math.Inf(1)}, plain, "~ 7", catalog.Ambiguous},
	} {
		if got := summary.ShownIncrease("7", &c.i, c.format); got != c.want {
			t.Errorf("%v: got %q, want %q", c.i.Status, got, c.want)
		}
		if got := summary.StatusOf(c.i.Status); got != c.status {
			t.Errorf("%v: got status %v, want %v", c.i.Status, got, c.status)
		}
	}
}

// TestTreeTells: what a result tells of itself.
func TestTreeTells(t *testing.T) {
	series := func(endpoint int, status continuity.Status) summary.Series {
		return summary.Series{Endpoint: endpoint, Series: normalize.Series{Increase: continuity.Increase{Status: status}}}
	}
	r := summary.Run{Endpoints: []summary.Endpoint{{InFlight: 2}, {InFlight: 3, SameAs: 1}, {InFlight: 4}},
		Metrics: []summary.Metric{{Name: "x", Unit: "seconds", Series: []summary.Series{series(0, continuity.Born)}}}}
	if got := r.Uncertain(); got != "" {
		t.Errorf("a born series is certain, got %q", got)
	}
	r.Metrics[0].Series = append(r.Metrics[0].Series, series(1, continuity.Refused), series(2, continuity.Ambiguous))
	if got, want := r.Uncertain(), "2 series are not certain (x of "+r.Endpoints[1].Shown()+" is refused)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := r.InFlight(); got != 6 {
		t.Errorf("%v requests in flight, want 6: one endpoint is another's again", got)
	}
	if r.Repeats(&r.Metrics[0].Series[0]) || !r.Repeats(&r.Metrics[0].Series[1]) {
		t.Error("the second endpoint alone repeats another")
	}
	m := &r.Metrics[0]
	if m.ShownUnit() != "seconds" {
		t.Errorf("unit %q", m.ShownUnit())
	}
	if m.OwnUnit = "minutes"; m.ShownUnit() != "minutes" {
		t.Errorf("own unit %q", m.ShownUnit())
	}
	var l summary.Ledger
	l.Outcomes[metric.OK], l.Outcomes[metric.Partial], l.Outcomes[metric.Timeout] = 3, 2, 4
	if l.StoredPolls() != 5 {
		t.Errorf("%d stored polls, want 5", l.StoredPolls())
	}
}

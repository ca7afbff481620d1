package summary_test

import (
	"slices"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// TestLosses: what was asked to be filtered is no loss, nor is a poll that was OK.
func TestLosses(t *testing.T) {
	l := summary.Ledger{Dropped: []metric.Drop{{Reason: metric.DropFiltered, Lines: 9},
		{Reason: "parse", Lines: 4, First: "line 7"}}}
	l.Outcomes[metric.OK], l.Outcomes[metric.Timeout] = 5, 2
	l.FirstOf[metric.Timeout] = summary.PollError{Text: "deadline passed"}
	want := []summary.Loss{{N: 2, What: metric.Timeout.String(), First: "deadline passed"},
		{Lines: true, N: 4, What: "parse", First: "line 7"}}
	if got := l.Losses(); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestDerivedList: a quantity is found by its name and all its labels.
func TestDerivedList(t *testing.T) {
	var list summary.DerivedList
	for _, stage := range []string{"1", "0", "1"} {
		labels := metric.NewLabels(metric.Label{Name: "stage", Value: stage}, metric.Label{Name: "of", Value: "x"})
		list = append(list, &summary.Derived{Endpoint: len(list), Derived: catalog.Derived{Name: "time", Labels: labels}})
	}
	if d := list.Get("time", "of", "x", "stage", "0"); d == nil || d.Endpoint != 1 {
		t.Errorf("got %+v, want the second", d)
	}
	if list.Get("time", "stage", "0") != nil || list.Get("queue", "of", "x", "stage", "0") != nil {
		t.Error("a quantity of fewer labels or another name was found")
	}
	if got := list.Values("time", "stage"); !slices.Equal(got, []string{"1", "0"}) {
		t.Errorf("stages %q", got)
	}
}

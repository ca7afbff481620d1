package summary_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/summary"
)

// derived returns the quantity of a run of one endpoint that is polled each second
// with the bodies.
func derived(t *testing.T, name string, bodies ...string) *summary.Derived {
	t.Helper()
	f := newFake("http://a/metrics").mark(0, "profiling")
	for i, b := range bodies {
		f.scrape(0, float64(i), b)
	}
	r := build(t, summary.Options{Slice: time.Second}, f)
	for i := range r.Derived {
		if r.Derived[i].Name == name {
			return &r.Derived[i]
		}
	}
	return nil
}

// Quantities are made of series of every type, and those of no use do no harm.
func TestDerivedOfEveryType(t *testing.T) {
	check := func(name, want string, bodies ...string) {
		t.Helper()
		got := "none"
		if d := derived(t, name, bodies...); d != nil {
			got = fmt.Sprintf("%s %v", d.Status, d.Value)
			for _, s := range d.Slices {
				got += fmt.Sprintf(" %v", s.Value)
			}
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	const (
		running = "# TYPE sglang:num_running_reqs gauge\nsglang:num_running_reqs %d\n"
		balance = "# TYPE sglang:eplb_balancedness summary\nsglang:eplb_balancedness_sum %d\nsglang:eplb_balancedness_count %d\n"
	)
	// Of gauges alone the time is that of their samples.
	check("running_mean", "ok 3", fmt.Sprintf(running, 2), fmt.Sprintf(running, 4), fmt.Sprintf(running, 4))
	check("running_mean", "ok 3", fmt.Sprintf(running+balance, 2, 1, 1), fmt.Sprintf(running+balance, 4, 3, 2), fmt.Sprintf(running+balance, 4, 5, 3))
	check("request_rate", "none", fmt.Sprintf(running, 2), fmt.Sprintf(running, 4))
}

package summary_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// derived returns the quantity of a run of one endpoint that is polled each second
// with the bodies.
func derived(t *testing.T, name string, bodies ...string) *summary.Derived {
	t.Helper()
	f := newFake("http://a/metrics").Mark(0, "profiling")
	for i, b := range bodies {
		f.Scrape(0, float64(i), b)
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
		balance = "# TYPE sglang:eplb_balancedness summary\nsglang:eplb_balancedness_sum " +
			"%d\nsglang:eplb_balancedness_count %d\n"
	)
	// Of gauges alone the time is that of their samples.
	check("running_mean", "ok 3", fmt.Sprintf(running, 2), fmt.Sprintf(running, 4), fmt.Sprintf(running, 4))
	check("running_mean", "ok 3", fmt.Sprintf(running+balance, 2, 1, 1), fmt.Sprintf(running+balance, 4, 3, 2),
		fmt.Sprintf(running+balance, 4, 5, 3))
	check("request_rate", "none", fmt.Sprintf(running, 2), fmt.Sprintf(running, 4))
}

// What takes two kinds of endpoints is of them together, and of those groups in
// which the user puts both.
func TestEndpointsOfTwoKinds(t *testing.T) {
	f := newFake("http://gpu", "http://engine", "http://frontend", "http://other")
	f.Mark(0, "profiling")
	for i, host := range []string{"x", "x", "y", "y"} {
		f.Polled[i].Labels = metric.NewLabels(metric.Label{Name: "host", Value: host})
	}
	for i := range 11 {
		at := float64(i)
		f.Scrape(0, at, fmt.Sprintf("# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION "+
			"counter\nDCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu=\"0\"} %d\n", 5e6+i*400_000))
		f.Scrape(1, at, fmt.Sprintf("# TYPE sglang:generation_tokens counter\nsglang:generation_tokens{model_name=\"m\"} "+
			"%d\n", 50*i))
		duration := "# TYPE dynamo_%[1]s_request_duration_seconds " +
			"histogram\ndynamo_%[1]s_request_duration_seconds_bucket{%[2]s,le=\"+Inf\"} %[3]d\n" +
			"dynamo_%[1]s_request_duration_seconds_sum{%[2]s} %[4]d\ndynamo_%[1]s_request_duration_seconds_count{%[2]s} %[3]d\n"
		f.Scrape(2, at, fmt.Sprintf(duration, "frontend", `model="m"`, 4*i, 8*i))
		f.Scrape(3, at, fmt.Sprintf(duration, "component", `dynamo_endpoint="generate"`, 4*i, 6*i))
	}
	r := build(t, summary.Options{By: []string{"host"}, Slice: 5 * time.Second}, f)
	if got := derivedOf(r.Derived, "j_per_output_token"); got != nil {
		t.Errorf("of single endpoints: %v", got)
	}
	check := func(of int, name, want string) {
		t.Helper()
		if got := fmt.Sprint(derivedOf(r.Combined[of].Derived, name)); got != want {
			t.Errorf("%s of %v is %s, want %s", name, r.Combined[of].Labels, got, want)
		}
	}
	if len(r.Combined) != 3 {
		t.Fatalf("%d of fleet, want all and two hosts", len(r.Combined))
	}
	check(0, "j_per_output_token", "[ 8 estimate]")
	check(0, "frontend_overhead", "[ 0.5 ok]")
	check(1, "j_per_output_token", "[ 8 estimate]")
	check(1, "frontend_overhead", "[]")
	check(2, "j_per_output_token", "[]")
	check(2, "frontend_overhead", "[ 0.5 ok]")
	for _, d := range r.Combined[0].Derived {
		if d.Name == "j_per_output_token" && (len(d.Slices) != 2 || d.Slices[0].Value != 8) {
			t.Errorf("slices of energy: %+v", d.Slices)
		}
	}
}

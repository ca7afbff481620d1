package sweep_test

import (
	"testing"

	"github.com/scrapestat/scrapestat/sweep"
)

func TestNamedLoad(t *testing.T) {
	for name, want := range map[string]struct {
		load float64
		unit string
	}{
		"rate-8": {8, sweep.PerSecond}, "rps=8": {8, sweep.PerSecond}, "qps8": {8, sweep.PerSecond},
		"request-rate-0.5": {0.5, sweep.PerSecond}, "concurrency-64": {64, sweep.Concurrent},
		"c64": {64, sweep.Concurrent}, "users-64": {64, sweep.Concurrent}, "long-4096-rate-2": {2, sweep.PerSecond},
		"max_concurrency=16": {16, sweep.Concurrent}, "Rate: 3": {3, sweep.PerSecond}, "rate=-5": {-5, sweep.PerSecond},
		"isl2048-c4": {4, sweep.Concurrent},
	} {
		if load, unit, ok := sweep.NamedLoad(name); !ok || load != want.load || unit != want.unit {
			t.Errorf("%s: %v %s %v", name, load, unit, ok)
		}
	}
	for _, name := range []string{"", "low", "8", "isl2048", "rate", "rate-8-b", "basic8", "rate-1e5x"} {
		if load, unit, ok := sweep.NamedLoad(name); ok {
			t.Errorf("%s is %v %s", name, load, unit)
		}
	}
}

func TestCommandLoad(t *testing.T) {
	for _, c := range []struct {
		command []string
		load    float64
		unit    string
	}{
		{[]string{"collect", "--", "vllm", "bench", "--request-rate", "8"}, 8, sweep.PerSecond},
		{[]string{"collect", "--", "vllm", "--request-rate=inf", "--max-concurrency=16"}, 16, sweep.Concurrent},
		{[]string{"collect", "--", "aiperf", "--concurrency", "4", "--request-rate", "2"}, 2, sweep.PerSecond},
		{[]string{"collect", "--request-rate", "8"}, 0, ""},
		{[]string{"collect", "--", "x", "--request-rate"}, 0, ""},
	} {
		if load, unit, ok := sweep.CommandLoad(c.command); load != c.load || unit != c.unit || ok != (c.unit != "") {
			t.Errorf("%v: %v %s", c.command, load, unit)
		}
	}
	tags := map[string]string{"rate": "8", "size": "big", "users": "5", "isl": "4"}
	for tag, want := range map[string]string{"": sweep.PerSecond, "users": sweep.Concurrent, "isl": "isl"} {
		if _, unit, ok, err := sweep.TaggedLoad(tags, tag); unit != want || !ok || err != nil {
			t.Errorf("tag %q: %s %v", tag, unit, err)
		}
	}
	if _, _, _, err := sweep.TaggedLoad(tags, "size"); err == nil {
		t.Error("a tag without a number is a load")
	}
}

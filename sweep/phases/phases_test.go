package phases_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/sweep/phases"
)

// TestRead: each kind of file, its clock and the name of its load; what tells no time is refused with what to do.
func TestRead(t *testing.T) {
	zone := time.FixedZone("", 2*3600)
	const second = int64(time.Second)
	base := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC).UnixNano()
	at := func(seconds float64) int64 { return base + int64(seconds*1e9) }
	phase := func(name string, start, end int64) phases.Phase {
		return phases.Phase{Name: name, StartNS: start, EndNS: end}
	}
	for _, c := range []struct {
		name, text string
		zone       *time.Location
		want       []phases.Phase
		err        string
	}{
		{"guidellm", `{"benchmarks": [{"config": {"strategy": {"type_": "concurrent", "streams": 8}},
			"scheduler_metrics": {"measure_start_time": 1795428060.25, "measure_end_time": 1795428120}},
			{"config": {"strategy": {"type_": "constant", "rate": 2.5, "max_concurrency": 512}},
			"scheduler_metrics": {"measure_start_time": 1795428000, "measure_end_time": 1795428030.5}},
			{"config": {"strategy": {"type_": "throughput"}}, "start_time": 1795428200, "end_time": 1795428210},
			{"args": {"strategy": {"type_": "synchronous"}}, "start_time": 1795428220, "end_time": 1795428230}]}`, nil,
			[]phases.Phase{phase("rate-2.5", at(0), at(30.5)), phase("concurrency-8", at(60.25), at(120)),
				phase("throughput", at(200), at(210)), phase("concurrency-1", at(220), at(230))}, ""},
		{"AIPerf", `{"schema_version": "1", "start_time": "2026-11-23T12:00:00.500000", "end_time": "2026-11-23T12:01:00",
			"input_config": {"phases": [{"kind": "warmup", "concurrency": 1}, {"kind": "profiling", "rate": 12}]}}`, zone,
			[]phases.Phase{phase("rate-12", at(0.5), at(60))}, ""},
		{"AIPerf, older", `{"start_time": "2026-11-23T12:00:00", "end_time": "2026-11-23T12:01:00",
			"input_config": {"loadgen": {"concurrency": 16}}}`, zone,
			[]phases.Phase{phase("concurrency-16", at(0), at(60))}, ""},
		{"AIPerf with a zone", `{"start_time": "2026-11-23T10:00:00Z", "end_time": "2026-11-23T12:01:00+02:00"}`, nil,
			[]phases.Phase{phase("aiperf", at(0), at(60))}, ""},
		{"no zone", `{"start_time": "2026-11-23T12:00:00", "end_time": "2026-11-23T12:01:00"}`, nil, nil, "no zone"},
		{"vllm", `{"date": "20261123-120100", "duration": 30.25, "request_rate": 4.0, "max_concurrency": null}`, zone,
			[]phases.Phase{phase("rate-4", at(30.75), at(60))}, ""},
		{"vllm, closed loop", `{"date": "20261123-120100", "duration": 30, "request_rate": "inf", "max_concurrency": 64}`,
			zone, []phases.Phase{phase("concurrency-64", at(31), at(60))}, ""},
		{"vllm, all at once", `{"date": "20261123-120100", "duration": 30, "request_rate": "inf"}`, zone,
			[]phases.Phase{phase("throughput", at(31), at(60))}, ""},
		{"vllm, too short", `{"date": "20261123-120100", "duration": 0.8, "request_rate": 1}`, zone, nil, "whole seconds"},
		{"inference-perf", `{"load_summary": {"count": 3, "requested_rate": 1.0}}`, zone, nil, "--plateaus"},
		{"overlapping", `{"benchmarks": [{"start_time": 10, "end_time": 20}, {"start_time": 15, "end_time": 30}]}`, nil, nil,
			"no phase can"},
		{"backwards", `{"start_time": "2026-11-23T10:00:00Z", "end_time": "2026-11-23T09:00:00Z"}`, nil, nil, "no phase can"},
		{"without times", `{"benchmarks": [{"config": {}}]}`, nil, nil, "benchmark 1"},
		{"another file", `{"a": 1}`, nil, nil, "guidellm"},
		{"no JSON", `[`, nil, nil, "not the JSON"},
	} {
		got, left, err := phases.Read([]byte(c.text), c.zone)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want %q", c.name, err, c.err)
			}
			continue
		}
		if err != nil || len(got) != len(c.want) || left != 0 {
			t.Errorf("%s: %v, %v", c.name, got, err)
			continue
		}
		for i, want := range c.want {
			if got[i] != want {
				t.Errorf("%s: %s from %v to %v s, want %v", c.name, got[i].Name, float64(got[i].StartNS-base)/float64(second),
					float64(got[i].EndNS-base)/float64(second), want)
			}
		}
	}
	if _, _, err := phases.Read([]byte(`{"load_summary": {}}`), nil); !errors.Is(err, phases.ErrNoClock) {
		t.Error(err)
	}
}

// TestList: the phases of AIPerf's list in the order of time; one that overlaps the next ends when that begins, one
// without a start is left out and counted.
func TestList(t *testing.T) {
	got, left, err := phases.Read([]byte(`{"schema_version": 1, "phases": [
		{"phase_name": "c32", "phase_index": 2, "phase_kind": "profiling", "start_ns": 20, "end_ns": 30},
		{"phase_name": "never", "phase_index": 3, "start_ns": null, "end_ns": 40},
		{"phase_name": "warm", "phase_index": 0, "phase_kind": "warmup", "start_ns": 1, "end_ns": 12},
		{"phase_name": "c8", "phase_index": 1, "phase_kind": "profiling", "start_ns": 10, "end_ns": 20}]}`), nil)
	want := []phases.Phase{{Name: "warm", StartNS: 1, EndNS: 10, Warmup: true}, {Name: "c8", StartNS: 10, EndNS: 20},
		{Name: "c32", StartNS: 20, EndNS: 30}}
	if err != nil || left != 1 || !slices.Equal(got, want) {
		t.Errorf("%v, %d left out, %v, want %v", got, left, err, want)
	}
	if _, _, err := phases.Read([]byte(`{"phases": [{"phase_name": "x"}]}`), nil); err == nil {
		t.Error("a list without times is taken")
	}
}

// FuzzRead: any text is refused or gives phases in order that do not overlap.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"benchmarks": [{"start_time": 10, "end_time": 20}]}`))
	f.Add([]byte(`{"phases": [{"phase_name": "a", "start_ns": 1, "end_ns": 3}, {"phase_name": "b", "start_ns": 2}]}`))
	f.Add([]byte(`{"date": "20261123-120100", "duration": 30.25, "request_rate": 4.0}`))
	f.Add([]byte(`{"start_time": "2026-11-23T12:00:00", "end_time": "2026-11-23T12:01:00", "input_config": {}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, _, err := phases.Read(data, time.UTC)
		if err != nil {
			return
		}
		for i, p := range list {
			if p.Name == "" || len(p.Name) > 200 || p.EndNS <= p.StartNS || i > 0 && p.StartNS < list[i-1].EndNS {
				t.Fatalf("%+v", list)
			}
		}
	})
}

package summary_test

import (
	"math"
	"slices"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// bodies are polls of counters a second apart.
func bodies(names []string, kind metric.Type, values ...float64) []*metric.Snapshot {
	var b metric.SnapshotBuilder
	var out []*metric.Snapshot
	for i, v := range values {
		for k, name := range names {
			b.Set(b.Slot(b.Series(b.Family(name, kind, "", ""), metric.Labels{}), metric.SampleID{}), v*float64(1+9*k))
		}
		s := &metric.Snapshot{SentNS: 1.79e18 + int64(i)*1e9}
		b.Finish(s)
		out = append(out, s.Clone())
	}
	return out
}

func embedded(t *testing.T) *catalog.Catalog {
	t.Helper()
	c, err := catalog.New()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// An older copy of a body is no traffic: the detector sees adjusted polls, and has no rule of its own.
func TestTrafficIsAdjusted(t *testing.T) {
	names := []string{"vllm:request_success", "vllm:prompt_tokens", "vllm:generation_tokens"}
	idle := slices.Repeat([]float64{130}, 60)
	busy := slices.Clone(idle)
	copy(busy, []float64{100, 110, 120, 130})
	busy[30] = 120 // as a cache had it
	for _, c := range []struct {
		name     string
		values   []float64
		segments int
	}{{"load", busy[:20], 1}, {"load, and an older copy long after it", busy, 1}, {"rest", idle, 0},
		{"load twice", append(busy[:30:30], 140, 150), 2}} {
		o := summary.NewObserver(embedded(t))
		for _, s := range bodies(names, metric.Counter, c.values...) {
			if err := o.Add(s); err != nil {
				t.Fatal(err)
			}
		}
		if got := summary.FindTraffic([]*summary.Observer{o}).Segments; len(got) != c.segments {
			t.Errorf("%s: %+v, want %d segments", c.name, got, c.segments)
		}
	}
}

// The age of a process that the catalog knows tells of a restart that no value shows.
func TestUptimeOfCatalog(t *testing.T) {
	o := summary.Continuity(embedded(t))
	if !o.Uptime("dynamo_component_uptime_seconds") || o.Uptime("vllm:num_requests_running") {
		t.Error("the catalog tells which gauges are ages")
	}
	names := []string{"dynamo_component_requests", "b", "c"}
	polls := bodies(names, metric.Counter, 3, 4, 5, 60, 70, 80)
	ages := bodies([]string{"dynamo_component_uptime_seconds"}, metric.Gauge, 500, 501, 502, 0.5, 1.5, 2.5)
	tracker := continuity.New(o)
	for i, s := range polls {
		if i == 0 {
			g := &ages[0].DictDelta
			g.Series[0].Family = len(s.DictDelta.Families)
			g.Slots[0].Series = len(s.DictDelta.Series)
			s.DictDelta.Families = append(s.DictDelta.Families, g.Families...)
			s.DictDelta.Series = append(s.DictDelta.Series, g.Series...)
			s.DictDelta.Slots = append(s.DictDelta.Slots, g.Slots...)
		}
		s.Delta.Slots, s.Delta.Bits = append(s.Delta.Slots, uint32(len(names))), append(s.Delta.Bits, ages[i].Delta.Bits[0])
		if _, err := tracker.Step(s); err != nil {
			t.Fatal(err)
		}
	}
	if got := tracker.Target(polls[0].SentNS, polls[5].SentNS); got.Restarts != 1 || got.Status != continuity.Corrected {
		t.Errorf("%+v", got)
	}
}

// To look for traffic costs a poll nothing that stays: neither allocations that grow with the run nor memory.
func TestLoadIsBounded(t *testing.T) {
	load := summary.NewLoad(embedded(t))
	polls := bodies([]string{"vllm:request_success", "vllm:prompt_tokens", "vllm:generation_tokens"}, metric.Counter, 1, 2)
	add := func() {
		s := *polls[1]
		s.DictDelta = metric.DictDelta{}
		polls[1].SentNS += 1e9
		bits := slices.Clone(s.Delta.Bits)
		for i := range bits {
			bits[i] = math.Float64bits(math.Float64frombits(bits[i]) + 7)
		}
		polls[1].Delta.Bits, s.Delta.Bits = bits, bits
		if _, err := load.Add(&s); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := load.Add(polls[0]); err != nil {
		t.Fatal(err)
	}
	few := testing.AllocsPerRun(1000, add)
	for range 20_000 {
		add()
	}
	if many := testing.AllocsPerRun(1000, add); many > few+1 || many > 8 {
		t.Errorf("a poll costs %v allocations, %v at the beginning", many, few)
	}
	if found := load.Found(); len(found.Segments) != 1 {
		t.Errorf("%d segments", len(found.Segments))
	}
}

package metric_test

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/metric"
)

// TestOutcomes checks that each outcome has a name of its own, as exports and
// recordings spell it.
func TestOutcomes(t *testing.T) {
	check := func(o metric.Outcome, want string, stored bool) {
		t.Helper()
		if got := o.String(); got != want || o.Stored() != stored {
			t.Errorf("outcome %d: got %q, stored %v, want %q, %v", uint8(o), got, o.Stored(), want, stored)
		}
	}
	check(metric.OK, "ok", true)
	check(metric.Partial, "partial", true)
	check(metric.HTTPError, "http_error", false)
	check(metric.Timeout, "timeout", false)
	check(metric.ConnectError, "connect_error", false)
	check(metric.TooLarge, "too_large", false)
	check(metric.Truncated, "truncated", false)
	check(metric.NotPrometheus, "not_prometheus", false)
	check(metric.RefusedRedirect, "refused_redirect", false)
	check(metric.SkippedOverlap, "skipped_overlap", false)
	check(metric.Cancelled, "cancelled", false)
	check(metric.Unwritten, "unwritten", false)
	check(metric.Outcomes, "outcome(12)", false)

	word := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	seen := map[string]bool{}
	for o := range metric.Outcomes {
		if name := o.String(); !word.MatchString(name) || seen[name] {
			t.Errorf("outcome %d has the name %q, which is no stable word of its own", uint8(o), name)
		}
		seen[o.String()] = true
	}
	if last := metric.Unwritten; metric.Outcomes != last+1 {
		t.Errorf("got %d outcomes, want %d", metric.Outcomes, last+1)
	}
}

func TestKinds(t *testing.T) {
	check := func(k metric.Kind, want string) {
		t.Helper()
		if got := k.String(); got != want {
			t.Errorf("kind %d: got %q, want %q", uint8(k), got, want)
		}
	}
	check(metric.Periodic, "periodic")
	check(metric.Baseline, "baseline")
	check(metric.Boundary, "boundary")
	check(metric.Final, "final")
	check(metric.Final+1, "kind(4)")
}

// TestFrameFloat checks that values keep every bit.
func TestFrameFloat(t *testing.T) {
	for _, bits := range []uint64{0, 1 << 63, math.Float64bits(1.5), math.Float64bits(math.Inf(-1)),
		0x7ff8000000000001, 0x7ff0000000000002} {
		f := metric.Delta{Slots: []uint32{3}, Bits: []uint64{bits}}
		if got := math.Float64bits(f.Float(0)); got != bits {
			t.Errorf("got bits %#x, want %#x", got, bits)
		}
	}
}

func TestSnapshotAtNS(t *testing.T) {
	check := func(sent, first, want int64) {
		t.Helper()
		s := metric.Snapshot{SentNS: sent, FirstByteNS: first}
		if got := s.AtNS(); got != want {
			t.Errorf("sent %d, first byte %d: got %d, want %d", sent, first, got, want)
		}
	}
	check(10, 15, 15)
	check(10, 0, 10)
}

func TestSnapshotDropped(t *testing.T) {
	s := metric.Snapshot{Drops: []metric.Drop{{Reason: "parse", Lines: 2}, {Reason: "series_limit", Lines: 3}}}
	if got := s.Dropped(); got != 5 {
		t.Errorf("got %d dropped lines, want 5", got)
	}
	if got := new(metric.Snapshot).Dropped(); got != 0 {
		t.Errorf("got %d dropped lines without drops, want 0", got)
	}
}

func TestSnapshotLost(t *testing.T) {
	s := metric.Snapshot{Drops: []metric.Drop{{Reason: "parse", Lines: 2}, {Reason: metric.DropFiltered, Lines: 3}}}
	if got := s.Lost(); got != 2 {
		t.Errorf("got %d lost lines, want 2: what the user left out is no loss", got)
	}
}

func TestTargetShown(t *testing.T) {
	for _, c := range []struct{ name, want string }{{"a", "a"}, {"", "http://x"}} {
		if got := (&metric.Target{Name: c.name, URL: "http://x"}).Shown(); got != c.want {
			t.Errorf("name %q: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestWarnf(t *testing.T) {
	want := metric.Warning{Code: "gap", Text: "3 of 4"}
	if got := metric.Warnf("gap", "%d of %d", 3, 4); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestAddDrop: each reason has one entry, with its first case.
func TestAddDrop(t *testing.T) {
	var drops []metric.Drop
	for i, reason := range []string{"parse", "series_limit", "parse"} {
		drops = metric.AddDrop(drops, reason, i+1, func() string { return fmt.Sprint("case ", i) })
	}
	want := []metric.Drop{{Reason: "parse", Lines: 4, First: "case 0"}, {Reason: "series_limit", Lines: 2,
		First: "case 1"}}
	if !slices.Equal(drops, want) {
		t.Errorf("got %v, want %v", drops, want)
	}
}

// TestMarkValidate: a name is one that every output can show.
func TestMarkValidate(t *testing.T) {
	for name, good := range map[string]bool{"concurrency-64": true, "größer": true, "": false, "a\nb": false,
		"\xff": false, strings.Repeat("n", 201): false} {
		if err := (metric.Mark{Name: name}).Validate(); (err == nil) != good {
			t.Errorf("%.20q: %v", name, err)
		}
	}
}

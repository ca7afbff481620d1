package metric_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/metric"
)

func TestTypeNames(t *testing.T) {
	seen := map[string]bool{}
	for typ := metric.Unknown; typ <= metric.GaugeHistogram; typ++ {
		name := typ.String()
		if back, ok := metric.ParseType(name); !ok || back != typ || seen[name] {
			t.Errorf("type %d is called %q, which parses as %v, %v", typ, name, back, ok)
		}
		seen[name] = true
	}
	check := func(name string, want metric.Type, good bool) {
		t.Helper()
		if got, ok := metric.ParseType(name); got != want || ok != good {
			t.Errorf("ParseType(%q): got %v, %v, want %v, %v", name, got, ok, want, good)
		}
	}
	check("untyped", metric.Unknown, true)
	check("gauge", metric.Gauge, true)
	check("Gauge", metric.Unknown, false)
	check("", metric.Unknown, false)
	check("type(9)", metric.Unknown, false)
	if got := (metric.GaugeHistogram + 1).String(); got != "type(8)" {
		t.Errorf("got %q for a type that does not exist", got)
	}
}

func TestRoleNames(t *testing.T) {
	check := func(r metric.Role, want string) {
		t.Helper()
		if got := r.String(); got != want {
			t.Errorf("role %d: got %q, want %q", uint8(r), got, want)
		}
	}
	check(metric.RoleValue, "value")
	check(metric.RoleSum, "sum")
	check(metric.RoleCount, "count")
	check(metric.RoleBucket, "bucket")
	check(metric.RoleQuantile, "quantile")
	check(metric.RoleCreated, "created")
	check(metric.RoleNative, "native_bucket")
	check(metric.RoleSampleTime, "sample_time")
	check(metric.Roles, "role(8)")
}

// histogram is growth by one family with one series of three slots, placed
// after families and series that are already there.
func histogram(name string, families, series int) metric.DictDelta {
	return metric.DictDelta{
		Families: []metric.Family{{Name: name, Type: metric.Histogram}},
		Series:   []metric.Series{{Family: families, Labels: metric.NewLabels(label{"engine", "0"})}},
		Slots: []metric.SampleID{
			{Series: series, Role: metric.RoleBucket, Bound: 0.5, Text: "0.5"},
			{Series: series, Role: metric.RoleSum},
			{Series: series, Role: metric.RoleCount},
		},
	}
}

func TestDictGrow(t *testing.T) {
	var d metric.Schema
	first, second := histogram("a", 0, 0), histogram("b", 1, 1)
	for _, g := range []metric.DictDelta{first, second, {}} {
		if err := d.Grow(&g); err != nil {
			t.Fatal(err)
		}
	}
	// A slot that an old series shows late.
	if err := d.Grow(&metric.DictDelta{Slots: []metric.SampleID{{Series: 0, Role: metric.RoleCreated}}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int32{0, 1, 2, 6}, d.SlotsOf(0)); diff != "" {
		t.Errorf("slots of the first series (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int32{3, 4, 5}, d.SlotsOf(1)); diff != "" {
		t.Errorf("slots of the second series (-want +got):\n%s", diff)
	}
	if got := d.FamilyOf(1).Name; got != "b" {
		t.Errorf("got family %q of the second series, want b", got)
	}
	first.Families[0].Name, first.Slots[0].Text = "changed", "changed"
	if d.Families[0].Name != "a" || d.Slots[0].Text != "0.5" {
		t.Error("the dictionary shares memory with the growth")
	}
}

func TestGrowthEmpty(t *testing.T) {
	check := func(g metric.DictDelta, want bool) {
		t.Helper()
		if g.Empty() != want {
			t.Errorf("%+v: got Empty %v, want %v", g, g.Empty(), want)
		}
	}
	check(metric.DictDelta{}, true)
	check(metric.DictDelta{Families: make([]metric.Family, 1)}, false)
	check(metric.DictDelta{Series: make([]metric.Series, 1)}, false)
	check(metric.DictDelta{Slots: make([]metric.SampleID, 1)}, false)
}

// TestDictRefuses checks that damaged growth leaves the dictionary as it was.
func TestDictRefuses(t *testing.T) {
	check := func(name string, g metric.DictDelta, want string) {
		t.Helper()
		var d, before metric.Schema
		start := histogram("a", 0, 0)
		for _, dict := range []*metric.Schema{&d, &before} {
			if err := dict.Grow(&start); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Grow(&g); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one with %q", name, err, want)
		}
		if diff := dictDiff(&before, &d); diff != "" {
			t.Errorf("%s: the dictionary changed:\n%s", name, diff)
		}
	}
	check("family after the end", metric.DictDelta{Series: []metric.Series{{Family: 1}}}, "series 1 has family 1 of 1")
	check("negative family", metric.DictDelta{Series: []metric.Series{{Family: -1}}}, "family -1")
	check("series after the end", metric.DictDelta{Slots: []metric.SampleID{{Series: 1}}}, "slot 3 has series 1 of 1")
	check("negative series", metric.DictDelta{Slots: []metric.SampleID{{Series: -1}}}, "series -1")
	bad := histogram("b", 1, 1)
	bad.Slots[2].Series = 2
	check("last slot of good growth", bad, "slot 5 has series 2 of 2")
}

func dictDiff(want, got *metric.Schema) string {
	return cmp.Diff(want, got, cmp.AllowUnexported(metric.Schema{}),
		cmp.Comparer(func(a, b metric.Labels) bool { return a == b }),
		cmpopts.EquateEmpty())
}

// TestDictSteps checks that growing in steps equals growing at once, and that
// SlotsOf lists each slot once, under its series, in order.
func TestDictSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var stepped, whole metric.Schema
		var all metric.DictDelta
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			g := anyGrowth(t, len(all.Families), len(all.Series))
			all.Families = append(all.Families, g.Families...)
			all.Series = append(all.Series, g.Series...)
			all.Slots = append(all.Slots, g.Slots...)
			if err := stepped.Grow(&g); err != nil {
				t.Fatal(err)
			}
		}
		if err := whole.Grow(&all); err != nil {
			t.Fatal(err)
		}
		if diff := dictDiff(&whole, &stepped); diff != "" {
			t.Fatalf("at once and in steps differ:\n%s", diff)
		}
		seen := make([]bool, len(all.Slots))
		for series := range stepped.Series {
			last := int32(-1)
			for _, slot := range stepped.SlotsOf(series) {
				if slot <= last || seen[slot] || stepped.Slots[slot].Series != series {
					t.Fatalf("SlotsOf(%d) is %v", series, stepped.SlotsOf(series))
				}
				last, seen[slot] = slot, true
			}
		}
		for slot, ok := range seen {
			if !ok {
				t.Fatalf("no series has slot %d", slot)
			}
		}
	})
}

func anyGrowth(t *rapid.T, families, series int) metric.DictDelta {
	var g metric.DictDelta
	for range rapid.IntRange(0, 2).Draw(t, "families") {
		g.Families = append(g.Families, metric.Family{Name: rapid.String().Draw(t, "name")})
	}
	if families += len(g.Families); families > 0 {
		for range rapid.IntRange(0, 3).Draw(t, "series") {
			g.Series = append(g.Series, metric.Series{Family: rapid.IntRange(0, families-1).Draw(t, "family")})
		}
	}
	if series += len(g.Series); series > 0 {
		for range rapid.IntRange(0, 4).Draw(t, "slots") {
			g.Slots = append(g.Slots, metric.SampleID{Series: rapid.IntRange(0, series-1).Draw(t, "of"), Bound: 1})
		}
	}
	return g
}

func TestRoleMetadata(t *testing.T) {
	for r := range metric.Roles {
		if got, want := r.Metadata(), r == metric.RoleCreated || r == metric.RoleSampleTime; got != want {
			t.Errorf("%v: metadata %v, want %v", r, got, want)
		}
	}
}

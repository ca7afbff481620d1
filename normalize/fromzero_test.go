package normalize_test

import (
	"testing"

	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

// epoch is when the target of born is polled first.
const epoch = int64(1_700_000_000e9)

// born is a target of one series of integers that is there all the time, and one
// that appears at poll 2 with the given value and creation time.
type born struct {
	created float64
	integer bool
	mode    normalize.ResetMode
}

func (b born) total(t *testing.T) *normalize.Series {
	t.Helper()
	f, err := normalize.NewFold(normalize.Options{StartNS: epoch + 1e9, Slice: 1e9, Resets: b.mode})
	if err != nil {
		t.Fatal(err)
	}
	var g metric.SnapshotBuilder
	family := g.Family("c", metric.Counter, "", "")
	slot := func(name string) (created, value int) {
		s := g.Series(family, metric.NewLabels(metric.Label{Name: "name", Value: name}))
		return g.Slot(s, metric.SampleID{Role: metric.RoleCreated}), g.Slot(s, metric.SampleID{Integer: b.integer})
	}
	give := func(name string, created float64, v uint64) {
		c, s := slot(name)
		if created != 0 {
			g.Set(c, float64(epoch)/1e9+created)
		}
		if b.integer {
			g.SetInteger(s, v)
		} else {
			g.Set(s, float64(v))
		}
	}
	for poll := range uint64(5) {
		var s metric.Snapshot
		s.SentNS = epoch + int64(poll)*1e9
		give("old", 0, 100*poll)
		if poll >= 2 {
			give("new", b.created, 5+poll)
		}
		g.Finish(&s)
		if err := f.Add(&s); err != nil {
			t.Fatal(err)
		}
	}
	r := f.Result(0)
	for i := range r.Series {
		if name, _ := r.Dict.Series[r.Series[i].Index].Labels.Get("name"); name == "new" {
			return &r.Series[i]
		}
	}
	t.Fatal("no series")
	return nil
}

// A counter that appears while its target is watched counts from zero, at the poll before; AIPerf counts it from its
// first sample. One that is older than the poll before has a part that nobody saw.
func TestFromZero(t *testing.T) {
	check := func(b born, want float64, status continuity.Status, slices ...float64) {
		t.Helper()
		s := b.total(t)
		if s.Counter.Total != want || s.Increase.Value != want || s.Increase.Status != status || s.Resets != 0 {
			t.Errorf("%+v: total %v, %+v, want %v %v", b, s.Counter.Total, s.Increase, want, status)
		}
		for i, w := range slices {
			if got := s.Counter.Slices[i].Total; got != w {
				t.Errorf("%+v: slice %d is %v, want %v", b, i, got, w)
			}
		}
		if a := s.AIPerf; want == 9 && (a == nil || a.Counter.Total != 2 || a.HasRef || a.Counter.Slices[0].Total != 0) {
			t.Errorf("%+v: AIPerf's is %+v", b, a)
		}
		if want == 9 && (!s.HasRef || s.RefNS != epoch+1e9) {
			t.Errorf("%+v: reference at %d, want the poll before the first sample", b, s.RefNS)
		}
	}
	for _, integer := range []bool{true, false} {
		for _, mode := range []normalize.ResetMode{normalize.ResetAdjust, normalize.ResetClamp} {
			check(born{created: 1.5, integer: integer, mode: mode}, 9, continuity.Born, 7, 1, 1)
			check(born{integer: integer, mode: mode}, 9, continuity.Born, 7, 1, 1)
		}
		check(born{created: -3600, integer: integer}, 2, continuity.LowerBound, 0, 1, 1)
	}
}

package normalize_test

import (
	"testing"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

// born is a target of one series of integers that is there all the time, and one
// that appears at poll 2 with the given value and creation time.
type born struct {
	created float64
	integer bool
	mode    normalize.ResetMode
}

func (b born) total(t *testing.T) *normalize.Series {
	t.Helper()
	f, err := normalize.NewFold(normalize.Options{StartNS: 1e9, Slice: 1e9, Resets: b.mode})
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
		g.Set(c, created)
		if b.integer {
			g.SetInteger(s, v)
		} else {
			g.Set(s, float64(v))
		}
	}
	for poll := range uint64(5) {
		var s metric.Snapshot
		s.SentNS = int64(poll) * 1e9
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

// A counter of integers that says it is younger than the poll before counts from
// zero; every other one from its first sample, as AIPerf has it.
func TestFromZero(t *testing.T) {
	check := func(b born, want float64, slices ...float64) {
		t.Helper()
		s := b.total(t)
		if got := s.Counter.Total; got != want {
			t.Errorf("%+v: total %v, want %v", b, got, want)
		}
		for i, w := range slices {
			if got := s.Counter.Slices[i].Total; got != w {
				t.Errorf("%+v: slice %d is %v, want %v", b, i, got, w)
			}
		}
		if s.Resets != 0 {
			t.Errorf("%+v: %d resets", b, s.Resets)
		}
	}
	check(born{created: 1, integer: true}, 9, 7, 1, 1)
	check(born{created: 1.5, integer: true}, 9, 7, 1, 1)
	check(born{created: 0.5, integer: true}, 2, 0, 1, 1)
	check(born{created: 1}, 2, 0, 1, 1)
	check(born{created: 1, integer: true, mode: normalize.ResetClamp}, 2, 0, 1, 1)
	if s := (born{created: 1, integer: true}).total(t); !s.HasRef || s.RefNS != 1e9 {
		t.Errorf("reference at %d (%v), want the poll before the first sample", s.RefNS, s.HasRef)
	}
}

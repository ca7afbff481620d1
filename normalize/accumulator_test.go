package normalize_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

func TestNewFoldRefuses(t *testing.T) {
	check := func(o normalize.Options, want string) {
		t.Helper()
		if _, err := normalize.NewFold(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got error %v, want one with %q", o, err, want)
		}
	}
	check(normalize.Options{StartNS: 5, EndNS: 4}, "before its start")
	check(normalize.Options{StartNS: -1}, "before 1970")
	check(normalize.Options{Slice: -time.Second}, "slice_duration must be positive")
	check(normalize.Options{Quantiles: []float64{0.5, 1.5}}, "quantile 1.5")
	check(normalize.Options{Estimator: "guess"}, "guess")
	check(normalize.Options{Resets: 7}, "reset mode 7")
}

func TestAddRefuses(t *testing.T) {
	check := func(s *metric.Snapshot, want string) {
		t.Helper()
		f, err := normalize.NewFold(normalize.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Add(newBuilder(false).poll(10, append(counterLine(1), gaugeLine(1)...))); err != nil {
			t.Fatal(err)
		}
		if err := f.Add(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
	check(&metric.Snapshot{SentNS: 9}, "before the previous poll")
	check(&metric.Snapshot{SentNS: -9}, "before 1970")
	check(&metric.Snapshot{SentNS: 11, Delta: metric.Delta{Slots: []uint32{2}, Bits: []uint64{0}}}, "slot 2 of 2")
	check(&metric.Snapshot{SentNS: 11, Delta: metric.Delta{Slots: []uint32{1, 1}, Bits: []uint64{0, 0}}}, "slot 1 after 1")
	check(&metric.Snapshot{SentNS: 11, Delta: metric.Delta{Slots: []uint32{1}}}, "1 slots with 0 values")
	check(&metric.Snapshot{SentNS: 11, DictDelta: metric.DictDelta{Series: []metric.Series{{Family: 9}}}},
		"grow dictionary")
}

// Each type has its own kind of statistics; a slot that its type has no use for
// makes none.
func TestTypes(t *testing.T) {
	lines := []changeLog{
		{family: "s", typ: metric.Summary, role: metric.RoleQuantile, text: "0.5", value: 1},
		{family: "s", typ: metric.Summary, role: metric.RoleSum, value: 1},
		{family: "i", typ: metric.Info, value: 1},
		{family: "b", typ: metric.GaugeHistogram, role: metric.RoleBucket, text: "+Inf", value: 1},
		{family: "e", typ: metric.StateSet, value: 1},
		{family: "h", typ: metric.Histogram, value: 1},
	}
	r := adjusted(t, filter{}, []poll{{1, lines}, {2, lines}})
	var got []string
	for _, s := range r.Series {
		kinds := map[string]bool{"counter": s.Counter != nil, "gauge": s.Gauge != nil, "histogram": s.Histogram != nil,
			"summary": s.Summary != nil, "info": s.Info != nil, "state": s.State != nil,
			"gaugehistogram": s.GaugeHistogram != nil}
		for kind, ok := range kinds {
			if ok {
				got = append(got, r.Dict.FamilyOf(s.Index).Name+" "+kind)
			}
		}
		if s.Samples != 2 {
			t.Errorf("series %d: got %d samples, want 2", s.Index, s.Samples)
		}
	}
	if want := []string{"s summary", "i info", "b gaugehistogram", "e state"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A window whose end is open takes in trailing polls only if they, or a later
// one, changed something.
func TestTrailingDuplicates(t *testing.T) {
	polls := each(0, []float64{1, 2, 2, 3, 3, 3}, gaugeLine)
	check := func(end int64, samples int, want int64) {
		t.Helper()
		r := fold(t, normalize.Options{}, end, false, polls)
		if s := only(t, r); s.Samples != samples || r.EndNS != want {
			t.Errorf("end %d: got %d samples up to %d, want %d up to %d", end, s.Samples, r.EndNS, samples, want)
		}
	}
	check(0, 6, 5*second)
	check(4*second, 5, 4*second)
	check(4*second+5, 5, 4*second+5)
	check(3*second, 4, 3*second)
	check(1*second, 4, 3*second) // the poll at 3 s brought something new
	check(9*second, 6, 9*second)
	// Full frames that bring nothing new change nothing, whatever is in them.
	h := hist{3, 2, map[string]float64{"1": 1, "+Inf": 2}}
	all := append(append(counterLine(1), gaugeLine(1)...), h.lines()...)
	r := fold(t, normalize.Options{}, 2*second, true,
		[]poll{{0, all}, {second, all}, {2 * second, all}, {3 * second, all}})
	for _, s := range r.Series {
		if s.Samples != 3 || s.LastNS != 2*second {
			t.Errorf("got %d samples up to %d, want 3", s.Samples, s.LastNS)
		}
	}
	// A closed window ends where it ends.
	r = fold(t, normalize.Options{EndNS: 4 * second}, 9*second, false, polls)
	if s := only(t, r); s.Samples != 5 || r.EndNS != 4*second {
		t.Errorf("got %d samples up to %d", s.Samples, r.EndNS)
	}
}

func TestTooManySlices(t *testing.T) {
	polls := append(each(0, []float64{1, 2}, counterLine), poll{20 * second, counterLine(3)})
	r := fold(t, normalize.Options{Slice: 100 * time.Microsecond}, 0, false, polls)
	s := only(t, r)
	if s.Counter.Sliced || s.Counter.Slices != nil || len(r.Warnings) != 1 || r.Warnings[0].Code != "too_many_slices" {
		t.Errorf("got %+v with warnings %v", s.Counter, r.Warnings)
	}
}

// The width of a slice is AIPerf's product of floats.
func TestSliceWidth(t *testing.T) {
	check := func(width time.Duration, want int64) {
		t.Helper()
		r := fold(t, normalize.Options{Slice: width}, 0, false, each(0, []float64{1, 2, 3, 4, 5}, counterLine))
		if s := only(t, r).Counter.Slices[0]; s.EndNS != want {
			t.Errorf("%v: got %d, want %d", width, s.EndNS, want)
		}
	}
	check(1001*time.Millisecond, 1000999999)
	check(2010*time.Millisecond, 2009999999)
	check(time.Second, 1e9)
}

// Nothing before the window, after it, or without samples gives series.
func TestEmpty(t *testing.T) {
	f, err := normalize.NewFold(normalize.Options{StartNS: 5, Slice: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if r := f.Result(0); len(r.Series) != 0 || r.StartNS != 5 || r.EndNS != 5 {
		t.Errorf("got %+v", r)
	}
	all := append(append(counterLine(1), gaugeLine(1)...), hist{1, 1, nil}.lines()...)
	for _, at := range []int64{1, 9} {
		r := fold(t, normalize.Options{StartNS: 5, EndNS: 8}, 0, false, []poll{{at, all}, {at + 1, all}})
		if len(r.Series) != 0 || r.EndNS != 8 {
			t.Errorf("polls at %d: got %d series up to %d", at, len(r.Series), r.EndNS)
		}
	}
	r := fold(t, normalize.Options{StartNS: 5, EndNS: 8, Resets: normalize.ResetClamp}, 0, false,
		[]poll{{9, all}, {10, all}})
	if len(r.Series) != 0 {
		t.Errorf("clamp: got %d series after the window", len(r.Series))
	}
}

// Several windows of one stream add up.
func TestWindows(t *testing.T) {
	polls := each(0, ramp(20, 3), counterLine)
	var sum float64
	for from := int64(0); from < 20; from += 5 {
		o := normalize.Options{StartNS: from*second - min(from, 1)*second/2, EndNS: (from+5)*second - second/2 - 1}
		sum += only(t, fold(t, o, 0, false, polls)).Counter.Total
	}
	if sum != 57 {
		t.Errorf("got %v, want 57", sum)
	}
}

// AIPerf freezes the buckets of the first sample, even if it has none.
func TestClampFrozenEmpty(t *testing.T) {
	s := only(t, clamped(t, filter{}, each(0, []hist{{1, 1, nil}, {5, 4, map[string]float64{"1": 2, "+Inf": 4}}},
		histLines)))
	if h := s.Histogram; h.Count != 3 || len(h.Buckets) != 0 || h.Quantiles != nil || h.Segments != 2 {
		t.Errorf("got %+v", h)
	}
	// A sum that comes late was 0 before.
	first := hist{count: 4, sum: math.Inf(-1), buckets: map[string]float64{"+Inf": 4}}
	s = only(t, clamped(t, filter{}, each(0, []hist{first, {6, 7, map[string]float64{"+Inf": 7}}}, histLines)))
	if h := s.Histogram; h.Sum != 6 || h.Count != 3 {
		t.Errorf("got %+v", h)
	}
}

package continuity_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/metric"
)

// A target of one counter without times: what section 11 calls rarely decided. Falls by half and more restart it.
func TestSingleCounter(t *testing.T) {
	for _, c := range []struct {
		name     string
		values   []float64
		status   continuity.Status
		value    float64
		restarts int
	}{
		{"often", []float64{3, 5, 1, 4, 2, 6, 1, 5, 2, 3, 9}, continuity.Corrected, 2 + 4 + 6 + 5 + 9, 4},
		{"to zero", []float64{70, 80, 90, 0, 10, 20, 30}, continuity.Corrected, 20 + 30, 1},
		{"at the end", []float64{3, 5, 1, 4, 2, 6}, continuity.Corrected, 2 + 4 + 6, 2},
		{"long lives", []float64{0, 50, 90, 150, 210, 3, 60, 110, 170, 2, 40, 90}, continuity.Corrected, 210 + 170 + 90, 2},
		{"in the last body", []float64{70, 80, 90, 4}, continuity.Ambiguous, 20, 1},
		{"to less than 1 %", []float64{10, 1, 5, 2, 8, 3, 4, 1, 1, 0}, continuity.Corrected, 18, 5},
		{"once", []float64{1000, 1100, 40, 90}, continuity.Corrected, 190, 1},
		{"a repeated body", []float64{1000, 1050, 1100, 1050, 1150, 1100, 1200, 1250}, continuity.OK, 250, 0},
		{"less by one", []float64{1e6, 1e6 + 9, 1e6 + 8, 1e6 + 20}, continuity.OK, 20, 0},
	} {
		x := counters(t, c.values)
		i, _ := x.increase("c0_total")
		s := x.target()
		if i.Status != c.status || i.Value != c.value || s.Restarts != c.restarts {
			t.Errorf("%s: %+v, %d restarts, want %v %v, %d\n%+v", c.name, i, s.Restarts, c.status, c.value, c.restarts, s.Events)
		}
	}
}

// Random lives of one counter: the total is right or its interval holds it, at least four in five are certain.
func TestSingleCounterLives(t *testing.T) {
	w := &world{rng: newRand(7)}
	all, certain := 0, 0
	for range 400 {
		values, want := []float64{float64(w.rng.IntN(100))}, 0.0
		for range 20 {
			last := values[len(values)-1]
			next := last + float64(w.rng.IntN(100))
			if w.rng.IntN(20) == 0 {
				next = float64(w.rng.IntN(5))
				want += last
			}
			values = append(values, next)
		}
		want += values[20] - values[0]
		i, _ := counters(t, values).increase("c0_total")
		all++
		if i.Status.Certain() {
			certain++
			if math.Abs(i.Value-want) > 0.01*want+0.5 {
				t.Errorf("%v: %+v, want %v", values, i, want)
			}
		} else if i.Low > want+0.5 || i.High < want-0.5 {
			t.Errorf("%v: %+v, want %v", values, i, want)
		}
	}
	if 5*certain < 4*all {
		t.Errorf("%d of %d are certain", certain, all)
	}
	t.Logf("%d of %d are certain", certain, all)
}

// A counter beside a histogram of nonsense, which partial bodies lack at random: its total is right, or its interval
// holds it, or it is refused.
func TestNonsense(t *testing.T) {
	w := &world{rng: newRand(9)}
	statuses, outside := map[continuity.Status]int{}, 0
	for run := range 300 {
		x, value, last, want := newTarget(t), 0.0, -1.0, 0.0
		var seen []float64
		for i := range 25 {
			outcome := metric.Partial
			if w.rng.IntN(3) > 0 {
				outcome = metric.OK
				if value += float64(w.rng.IntN(100)); w.rng.IntN(20) == 0 {
					value = float64(w.rng.IntN(5))
				}
				if seen = append(seen, value); last >= 0 {
					want += value
					if value >= last {
						want -= last
					}
				}
				last = value
				x.set("c_total", "counter", value)
			}
			n := float64(w.rng.IntN(1000))
			x.set(`h_bucket{le="1"}`, "histogram", n)
			x.set(`h_bucket{le="+Inf"}`, "histogram", 2*n)
			x.set("h_count", "histogram", 2*n)
			x.poll(1.79e9+float64(i)/100, outcome)
		}
		i, _ := x.increase("c_total")
		statuses[i.Status]++
		if i.Status.Certain() && math.Abs(i.Value-want) > 0.01*want+0.5 {
			t.Errorf("%d: %v: %+v, want %v\n%+v", run, seen, i, want, x.target())
		} else if i.Low > 1.01*want+0.5 || i.High < 0.99*want-0.5 {
			outside++
		}
	}
	t.Logf("%v, %d outside their interval", statuses, outside)
	if outside > 6 {
		t.Errorf("%d of 300 are outside their interval", outside)
	}
}

// Cases of section 14 of the design document that no vector has.
func TestCases(t *testing.T) {
	rising := func(n int) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = 1e4 + 10*float64(i)
		}
		return out
	}
	// A server that is started with the recording, killed, and idle before it is used again: its zeros are also those of
	// the first body, and its first gains leap. What it did is known all the same.
	t.Run("restart to zeros", func(t *testing.T) {
		x := counters(t, []float64{0, 300, 800, 1400, 2100, 2500, 0, 0, 0, 0, 0, 250, 600, 1200},
			[]float64{0, 900, 2100, 4000, 6200, 7000, 0, 0, 0, 0, 0, 1700, 2900, 4800},
			[]float64{0, 150, 420, 700, 1000, 1300, 0, 0, 0, 0, 0, 60, 350, 500},
			[]float64{0, 4000, 9000, 15000, 20000, 23000, 0, 0, 0, 0, 0, 900, 7000, 9000})
		i, _ := x.increase("c0_total")
		if i.Status != continuity.Corrected || i.Value != 3700 || i.Low > 3700 || i.High < 3700 || i.Restarts != 1 {
			t.Errorf("%+v %+v", i, x.target())
		}
	})
	t.Run("older bodies", func(t *testing.T) {
		v := []float64{1000, 1050, 1100, 1050, 1150, 1100, 1200, 1250}
		scaled := func(by float64) (out []float64) {
			for _, x := range v {
				out = append(out, x*by)
			}
			return out
		}
		x := counters(t, v, scaled(3), scaled(90), scaled(7))
		if i, _ := x.increase("c0_total"); i.Status != continuity.OK || i.Value != 250 || x.target().HeldBodies != 2 {
			t.Errorf("%+v %+v", i, x.target())
		}
	})
	t.Run("dips", func(t *testing.T) {
		x := counters(t, []float64{999990, 1e6, 999999, 1000005, 1000010, 1000009, 1000023}, rising(7), rising(7), rising(7))
		i, v := x.increase("c0_total")
		if i.Status != continuity.OK || i.Value != 33 || v.Dips != 2 || x.target().Dips != 2 {
			t.Errorf("%+v %+v", i, v)
		}
	})
	t.Run("a window before the restart knows nothing of it", func(t *testing.T) {
		x := counters(t, []float64{500, 540, 580, 4, 44, 84}, []float64{5e3, 5400, 5800, 40, 440, 840},
			[]float64{50, 54, 58, 1, 5, 9})
		at := func(i int64) int64 { return x.first + i*1e9 }
		for _, c := range []struct {
			from, to int64
			want     continuity.Status
		}{{0, 2, continuity.OK}, {0, 5, continuity.Corrected}, {2, 4, continuity.Corrected}, {4, 5, continuity.OK},
			{0, 3, continuity.Ambiguous}} {
			v := x.tracker.Verdict(x.series["c0_total"], at(c.from), at(c.to))
			if i := v.Increase(40); i.Status != c.want {
				t.Errorf("%d to %d: %+v", c.from, c.to, i)
			}
		}
	})
	t.Run("older values for longer than a cache", func(t *testing.T) {
		row := append(rising(40), slices.Repeat([]float64{10100}, 80)...)
		if x := counters(t, row, row, row, row); x.target().Status < continuity.Ambiguous {
			t.Errorf("%+v", x.target())
		}
	})
	t.Run("a gauge has no verdict", func(t *testing.T) {
		x := newTarget(t)
		x.set("g", "gauge", 1)
		x.poll(1.79e9, metric.OK)
		if v := x.tracker.Verdict(x.series["g"], 0, x.last); v != (continuity.Verdict{}) {
			t.Errorf("%+v", v)
		}
	})
	t.Run("time goes back", func(t *testing.T) {
		x := counters(t, rising(3))
		if _, err := x.tracker.Step(&metric.Snapshot{SentNS: 1}); err == nil {
			t.Error("accepted")
		}
		if _, err := x.tracker.Step(&metric.Snapshot{SentNS: x.last, Delta: metric.Delta{Slots: []uint32{9},
			Bits: []uint64{1}}}); err == nil {
			t.Error("a slot that is not there is accepted")
		}
	})
	t.Run("an age instead of a start time", func(t *testing.T) {
		for _, ages := range []struct {
			name  string
			other float64 // age of what else the body tells of; 0 for none
			want  continuity.Status
		}{{"one", 0, continuity.Corrected}, {"of two workers, which need not be of the counters", 9000, continuity.OK}} {
			x := newTarget(t)
			for i := range 20 {
				age, v := 500+float64(i), float64(1000+1000*i)
				if i >= 10 {
					age, v = float64(i)-9.5, float64(2000*(i-4))
				}
				for _, u := range []string{"a_total", "b_total", "c_total"} {
					x.set(u, "counter", v)
				}
				x.set(`uptime_seconds{worker="a"}`, "gauge", age)
				if ages.other > 0 {
					x.set(`uptime_seconds{worker="b"}`, "gauge", ages.other+float64(i))
				}
				x.poll(1.79e9+float64(i), metric.OK)
			}
			want := 9000.0 + 30000
			if ages.want == continuity.OK {
				want = 29000
			}
			if i, _ := x.increase("a_total"); i.Status != ages.want || i.Value != want {
				t.Errorf("%s: %+v %+v", ages.name, i, x.target())
			}
		}
	})
}

// Bodies of a second process after the first leap look like older copies of it; so many of them are no cache.
func TestManyOlderBodies(t *testing.T) {
	for _, c := range scenarios() {
		if c.name != "random" {
			continue
		}
		x := newTarget(t)
		c.run(x, "none", 1, 7014)
		if s := x.target(); s.HeldBodies < 40 || s.Status != continuity.Ambiguous {
			t.Errorf("%v, %d older bodies", s.Status, s.HeldBodies)
		}
	}
}

// What a torn histogram held back is told with the next whole body, although that one does not list it as changed.
func TestTornThenQuiet(t *testing.T) {
	x := newTarget(t)
	for i, v := range [][2]float64{{5, 10}, {5, 11}, {4, 13}, {5, 13}} {
		x.set(`h_bucket{le="1"}`, "histogram", v[0])
		x.set(`h_bucket{le="+Inf"}`, "histogram", v[1])
		x.set("h_count", "histogram", v[1])
		x.set("h_sum", "histogram", v[1])
		x.set("other_total", "counter", v[1])
		x.poll(1.79e9+float64(i), metric.OK)
	}
	if i, _ := x.increase("h"); i != continuity.Certain(3) {
		t.Errorf("%+v, want 3", i)
	}
}

// A histogram whose sum was no number counts from the first body in which it is one, whatever else changed there.
func TestFiniteAgain(t *testing.T) {
	x := newTarget(t)
	for i, v := range []float64{math.NaN(), 7, 8} {
		x.set(`h_bucket{le="+Inf"}`, "histogram", 5)
		x.set("h_count", "histogram", 5)
		x.set("h_sum", "histogram", v)
		x.set("other_total", "counter", float64(i))
		x.poll(1.79e9+float64(i), metric.OK)
	}
	known := map[int]float64{}
	for series, v := range x.tracker.Keys {
		known[series] = v
	}
	if v, ok := known[x.series["h"]]; !ok || v != 5 {
		t.Errorf("%v, want 5 of h", known)
	}
}

// A native histogram counts on over a restart: buckets that the new process does not have keep what they had.
func TestNative(t *testing.T) {
	x := newTarget(t)
	f := x.b.Family("n", metric.Histogram, "", "")
	s := x.b.Series(f, metric.Labels{})
	slots := []int{x.b.Slot(s, metric.SampleID{Role: metric.RoleCount}),
		x.b.Slot(s, metric.SampleID{Role: metric.RoleNative, Lower: 1, Bound: 2}),
		x.b.Slot(s, metric.SampleID{Role: metric.RoleNative, Lower: 2, Bound: 4})}
	x.series["n"] = s
	for _, role := range []metric.Role{metric.RoleCount, metric.RoleNative, metric.RoleNative} {
		x.slots = append(x.slots, slot{series: s, role: role})
	}
	var last *continuity.Step
	for i, body := range [][]float64{{100, 60, 40}, {110, 65, 45}, {3, 0, 3}, {8, 0, 8}, {9, 1, 8}} {
		for b, v := range body {
			if v > 0 {
				x.b.Set(slots[b], v)
			}
		}
		for _, u := range []string{"a_total", "b_total", "c_total"} {
			x.set(u, "counter", body[0])
		}
		last = x.poll(1.79e9+float64(i), metric.OK)
		if i == 3 && !last.Delta.Full {
			t.Error("the confirmed restart does not list every slot")
		}
	}
	for b, want := range []float64{119, 66, 53} {
		if got := x.slots[slots[b]].value(x.slots[slots[b]].to); got != want {
			t.Errorf("slot %d is %v, want %v", b, got, want)
		}
	}
	if i, _ := x.increase("n"); i.Status != continuity.Corrected || i.Value != 19 {
		t.Errorf("%+v", i)
	}
}

// Marks, notes and events of a target that alternates for long stay within their limits, and their counts right.
func TestLimits(t *testing.T) {
	x := newTarget(t)
	const polls = 6000
	for i := range polls {
		for _, u := range []string{"a_total", "b_total", "c_total", "d_total"} {
			x.set(u, "counter", []float64{5000, 40}[i%2]+float64(i))
		}
		x.set("process_start_time_seconds", "gauge", 1.78e9+1e4*float64(i%2))
		x.poll(1.79e9+float64(i), metric.OK)
	}
	s := x.target()
	if s.Status != continuity.LowerBound || s.Processes != 2 || len(s.Events) != 1000 || len(s.Events)+s.Lost < polls-2 {
		t.Errorf("%v, %d processes, %d events, %d lost", s.Status, s.Processes, len(s.Events), s.Lost)
	}
	for i, e := range s.Events[1:] {
		if e.Kind != continuity.Back || e.Process != int32(i%2) {
			t.Fatalf("event %d: %+v", i+1, e)
		}
	}
	if i, _ := x.increase("a_total"); i.Value != 2*(polls-2) {
		t.Errorf("%+v", i)
	}
}

// recording is random polite load of three counters and a histogram: no gain is more than 8 of the least one and 20,
// which would be a leap.
type recording struct{ bodies [][4]float64 }

func draw(t *rapid.T) recording {
	var r recording
	v := [4]float64{1e5, 2e5, 3e5, 1e4}
	for range rapid.IntRange(6, 40).Draw(t, "polls") {
		for i := range v {
			v[i] += float64(rapid.IntRange(1, 27).Draw(t, "gain"))
		}
		r.bodies = append(r.bodies, v)
	}
	return r
}

func (x *target) body(at int, v [4]float64) {
	for i, u := range []string{"a_total", "b_total", "c_total"} {
		x.set(u, "counter", v[i])
	}
	x.set(`h_bucket{le="1"}`, "histogram", math.Floor(v[3]/2))
	x.set(`h_bucket{le="+Inf"}`, "histogram", v[3])
	x.set("h_count", "histogram", v[3])
	x.poll(1.79e9+float64(at), metric.OK)
}

// Adding a constant, leaving bodies out and repeating older ones changes no value; a histogram gains what its count
// does; slices add up.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := draw(rt)
		shift := float64(rapid.IntRange(0, 1e6).Draw(rt, "shift"))
		plain, shifted, thinned, stale := newTarget(t), newTarget(t), newTarget(t), newTarget(t)
		last, added, before := len(r.bodies)-1, 0.0, 0.0
		every := rapid.IntRange(2, 4).Draw(rt, "every")
		for i, v := range r.bodies {
			plain.body(i, v)
			now, _ := plain.increase("a_total")
			added, before = added+now.Value-before, now.Value
			up := v
			for k := range up {
				up[k] += shift
			}
			shifted.body(i, up)
			if i%every == 0 || i == last {
				thinned.body(i, v)
			}
			old := v
			if i > 3 && i < last && rapid.IntRange(0, 5).Draw(rt, "stale") == 0 {
				old = r.bodies[i-rapid.IntRange(1, 3).Draw(rt, "back")]
			}
			stale.body(i, old)
		}
		for k, u := range []string{"a_total", "b_total", "c_total", "h"} {
			want := r.bodies[last][k] - r.bodies[0][k]
			for _, x := range []*target{plain, shifted, thinned, stale} {
				if i, _ := x.increase(u); i.Status != continuity.OK || i.Value != want {
					rt.Fatalf("%s: %+v, want %v", u, i, want)
				}
			}
		}
		if want := r.bodies[last][0] - r.bodies[0][0]; added != want {
			rt.Fatalf("slices add up to %v, want %v", added, want)
		}
		for _, s := range plain.slots { // the histogram moves as one
			if s.role == metric.RoleCount && s.gain() != r.bodies[last][3]-r.bodies[0][3] {
				rt.Fatalf("count gained %v", s.gain())
			}
		}
	})
}

// Leaving bodies out makes no certain number larger by more than 1 %, whatever the target does: restarts, with start
// times and without, older bodies, dips and bodies of zeros.
func TestThinnedRudeLoad(t *testing.T) {
	certain := 0
	rapid.Check(t, func(rt *rapid.T) {
		r, times := draw(rt), rapid.Bool().Draw(rt, "times")
		every, start, base := rapid.IntRange(2, 4).Draw(rt, "every"), 1.78e9, [4]float64{}
		plain, thinned, zeros, since := newTarget(t), newTarget(t), false, 0
		for i, v := range r.bodies {
			event := ""
			if i > 3 {
				event = rapid.SampledFrom([]string{"", "", "", "", "", "restart", "older", "dip", "zeros"}).Draw(rt, "event")
			}
			if event == "restart" {
				base, start, since = r.bodies[i-1], 1.79e9+float64(i)-.5, i
			}
			for k := range v {
				v[k] -= base[k]
			}
			switch event {
			case "older":
				v = r.bodies[max(since, i-rapid.IntRange(1, 3).Draw(rt, "back"))]
				for k := range v {
					v[k] -= base[k]
				}
			case "dip":
				v[rapid.IntRange(0, 2).Draw(rt, "unit")]--
			case "zeros": // two of them with nothing between are a restart to a target that is polled so seldom
				if !zeros {
					v, zeros = [4]float64{}, true
				}
			}
			for _, x := range []*target{plain, thinned} {
				if times {
					x.set("process_start_time_seconds", "gauge", start)
				}
				if x == plain || i%every == 0 || i == len(r.bodies)-1 {
					x.body(i, v)
				}
			}
		}
		for _, u := range []string{"a_total", "b_total", "c_total", "h"} {
			all, _ := plain.increase(u)
			some, _ := thinned.increase(u)
			if all.Status.Certain() && some.Status.Certain() {
				// Of what a restart showed first, 8 are what nobody can tell from nothing.
				if certain++; some.Value > all.Value*1.01+8*float64(1+some.Restarts) {
					rt.Fatalf("%s: %+v, thinned by %d %+v", u, all, every, some)
				}
			}
		}
	})
	if certain < 20 {
		t.Errorf("only %d pairs of certain numbers", certain)
	}
}

// A series that the body before lacks was made while that was on its way, or lived elsewhere: its creation time tells,
// as far as the clocks agree. It is born, or a lower bound, and never less in silence.
func TestBirthInFlight(t *testing.T) {
	for _, c := range []struct {
		name    string
		flight  float64 // of the body that lacks it, which is asked for at 3 s
		created float64 // when it is made
		clock   float64 // of the target, ahead of ours
		coarse  bool    // creation times of whole seconds
		want    continuity.Status
	}{
		{"at once", 0, 3.5, 0, false, continuity.Born},
		{"while the body was on its way", 0.9, 3.2, 0, false, continuity.Born},
		{"in the seconds that the body took", 9, 3.001, 0, false, continuity.Born},
		{"the same in whole seconds", 9, 3.001, 0, true, continuity.Born},
		{"the same, clock behind", 9, 3.001, -1.9, false, continuity.Born},
		{"the same, clock behind, in whole seconds", 9, 3.001, -0.9, true, continuity.Born},
		{"the same, clock far behind", 9, 3.001, -5, false, continuity.LowerBound},
		{"the same, clock ahead", 9, 3.001, 1.9, false, continuity.Born},
		{"the same, clock far ahead", 9, 3.001, 60, false, continuity.Born},
		{"it lived elsewhere", 9, -600, 0, false, continuity.LowerBound},
		{"it lived elsewhere before that was asked for", 9, 0.9, 0, false, continuity.LowerBound},
		{"it lived elsewhere, clock far behind", 0.1, -600, -60, false, continuity.LowerBound},
	} {
		x, value := newTarget(t), 40.0
		for i := range 8 {
			for _, u := range []string{"a_total", "b_total", "c_total"} {
				x.set(u, "counter", 1000+100*float64(i))
			}
			if i > 3 {
				value += 10
				created := 1.79e9 + c.created + c.clock
				if c.coarse {
					created = math.Floor(created)
				}
				x.set("late_total", "counter", value)
				x.set("late_created", "gauge", created)
			}
			at := 1.79e9 + float64(i)
			if i > 3 {
				at += c.flight
			}
			if x.flight = 0; i == 3 {
				x.flight = c.flight
			}
			x.poll(at, metric.OK)
		}
		want := 80.0
		if c.want == continuity.LowerBound {
			want = 30
		}
		i, _ := x.increase("late_total")
		unbound := c.want == continuity.LowerBound
		if i.Status != c.want || i.Value != want || i.Low != want || math.IsInf(i.High, 1) != unbound {
			t.Errorf("%s: %+v, want %v %v", c.name, i, c.want, want)
		}
	}
}

// The first values of an engine that a target had not: of one that came with its counters they are gains; of one that
// worked elsewhere before they are not, and nothing but its pace since, or that of its like, tells.
func TestNewEngine(t *testing.T) {
	for _, c := range []struct {
		name             string
		beside           bool // another engine is there
		first, gains     float64
		status           continuity.Status
		value, low, high float64
	}{
		{"the first use of it", false, 29, 25, continuity.Born, 104, 104, 104},
		{"a quick one, attached", false, 5000, 25, continuity.Ambiguous, 5075, 75, 5075},
		{"idle since", false, 29, 0, continuity.Ambiguous, 29, 0, 29},
		{"a few", false, 8, 0, continuity.Born, 8, 8, 8},
		{"the second one, which began", true, 60, 25, continuity.Born, 135, 135, 135},
		{"the second one, attached", true, 5000, 25, continuity.LowerBound, 75, 75, math.Inf(1)},
	} {
		x := newTarget(t)
		for i := range 8 {
			for _, u := range []string{"a_total", "b_total", "c_total"} {
				x.set(u, "counter", 1000+100*float64(i))
			}
			if c.beside {
				x.set(`e_total{engine="0"}`, "counter", 700+20*float64(i))
			}
			if i > 3 {
				x.set(`e_total{engine="1"}`, "counter", c.first+c.gains*float64(i-4))
			}
			x.poll(1.79e9+float64(i), metric.OK)
		}
		i, _ := x.increase(`e_total{engine="1"}`)
		if i.Status != c.status || i.Value != c.value || i.Low != c.low || i.High != c.high {
			t.Errorf("%s: %+v, want %v %v (%v .. %v)", c.name, i, c.status, c.value, c.low, c.high)
		}
	}
}

// TestHostTwice: a host that a server has named by one label is no new place by the other spelling of it.
func TestHostTwice(t *testing.T) {
	for host, want := range map[string]continuity.Status{"a": continuity.Born, "b": continuity.LowerBound} {
		x := newTarget(t)
		for i := range 5 {
			x.set(`answers_total{Hostname="a"}`, "counter", float64(i))
			if i >= 2 {
				x.set(`micros_total{hostname="`+host+`"}`, "counter", 150_000*float64(i))
			}
			x.poll(float64(i), metric.OK)
		}
		if got, _ := x.increase(`micros_total{hostname="` + host + `"}`); got.Status != want {
			t.Errorf("host %s: %+v, want %v", host, got, want)
		}
	}
}

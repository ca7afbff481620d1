package align_test

import (
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/events/align"
)

const (
	ms     = 1_000_000
	second = 1000 * ms
	epoch  = 1_800_000_000 * second
)

// oracle is the interval at an instant by its definition: every fact, loosened by its distance.
func oracle(pairs []align.Pair, drift float64, at int64) (lo, hi float64) {
	lo, hi = math.Inf(-1), math.Inf(1)
	far := func(f align.Fact) float64 { return drift * math.Abs(float64(at-f.AtNS)) }
	for _, p := range pairs {
		if p.Lower.AtNS != 0 {
			lo = max(lo, float64(p.Lower.NS)-far(p.Lower))
		}
		for _, u := range p.Uppers {
			if u.AtNS != 0 {
				hi = min(hi, float64(u.NS)+far(u))
			}
		}
	}
	return lo, hi
}

func drawPairs(t *rapid.T) []align.Pair {
	fact := func(name string) align.Fact {
		if rapid.IntRange(0, 4).Draw(t, name+" none") == 0 {
			return align.Fact{}
		}
		return align.Fact{AtNS: rapid.Int64Range(1, 2000).Draw(t, name+" at") * ms,
			NS: rapid.Int64Range(-50, 50).Draw(t, name) * 10_000}
	}
	return rapid.Custom(func(*rapid.T) []align.Pair {
		out := make([]align.Pair, rapid.IntRange(0, 12).Draw(t, "pairs"))
		for i := range out {
			out[i] = align.Pair{Lower: fact("lower"), Uppers: [2]align.Fact{fact("first"), fact("finish")}}
		}
		return out
	}).Draw(t, "all")
}

// TestOracle: over a grid of instants and offsets, exactly those offsets are allowed that keep every fact; a refusal
// comes exactly where some instant allows none, and its gap is the largest.
func TestOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pairs := drawPairs(t)
		drift := rapid.SampledFrom([]float64{0, 50e-6, 200e-6, 1e-3}).Draw(t, "drift")
		lower := slices.ContainsFunc(pairs, func(p align.Pair) bool { return p.Lower.AtNS != 0 })
		upper := slices.ContainsFunc(pairs, func(p align.Pair) bool { return p.Uppers != [2]align.Fact{} })
		c, bad := align.Solve(slices.All(pairs), align.Options{Drift: drift})
		if !lower || !upper {
			if c != nil || bad != nil {
				t.Fatal("an answer without facts on both sides")
			}
			return
		}
		gap := math.Inf(-1)
		for at := int64(ms); at <= 2000*ms; at += ms { // facts lie on this grid
			lo, hi := oracle(pairs, drift, at)
			gap = max(gap, lo-hi)
			if c == nil {
				continue
			}
			gotLo, gotHi := c.At(at)
			if math.Abs(float64(gotLo)-lo) > 2 || math.Abs(float64(gotHi)-hi) > 2 ||
				float64(gotLo) > lo || float64(gotHi) < hi {
				t.Fatalf("at %d: [%d, %d], want [%v, %v]", at, gotLo, gotHi, lo, hi)
			}
		}
		switch {
		case bad == nil && gap > 2:
			t.Fatalf("no refusal for a gap of %v", gap)
		case bad != nil && math.Abs(float64(bad.GapNS)-gap) > 2:
			t.Fatalf("gap %d, want %v", bad.GapNS, gap)
		}
	})
}

// TestTruthInside: facts that are true of some clock are never refused, and the clock is inside at every instant;
// facts in any order give the same.
func TestTruthInside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := world{offset: rapid.Int64Range(-3600, 3600).Draw(t, "offset") * second,
			ppm: rapid.Float64Range(-100, 100).Draw(t, "ppm"), send: 0.2, back: 0.2,
			n: rapid.IntRange(1, 100).Draw(t, "n"), seconds: 60, seed: rapid.Uint64().Draw(t, "seed")}
		pairs := w.pairs()
		c, bad := align.Solve(slices.All(pairs), align.Options{Drift: 200e-6})
		if bad != nil {
			t.Fatal(bad)
		}
		w.inside(t, c)
		slices.Reverse(pairs)
		again, _ := align.Solve(slices.All(pairs), align.Options{Drift: 200e-6})
		for at := int64(epoch); at < epoch+60*second; at += second {
			lo, hi := c.At(at)
			if lo2, hi2 := again.At(at); lo != lo2 || hi != hi2 {
				t.Fatalf("the order changes the interval: [%d, %d] and [%d, %d]", lo, hi, lo2, hi2)
			}
		}
	})
}

// world is clients and a server whose clocks differ by a known amount.
type world struct {
	offset     int64
	ppm        float64
	send, back float64 // ms
	n          int
	seconds    float64
	seed       uint64
	step       int64 // that the server's clock goes back in the middle
	wrong      int   // pairs with the record of another request
}

func (w world) theta(at int64) int64 {
	v := w.offset + int64(w.ppm*1e-6*float64(at-epoch))
	if float64(at-epoch) > w.seconds/2*second {
		v += w.step
	}
	return v
}

// pairs are requests at random times; the front end takes 0.5 ms, each way as long as it should with jitter.
func (w world) pairs() []align.Pair {
	r := rand.New(rand.NewPCG(w.seed, 1))
	type record struct{ arrival, first, finish int64 }
	delay := func(v float64) int64 { return int64(v * ms * math.Exp(0.1*r.NormFloat64())) }
	client, server := make([]record, w.n), make([]record, w.n)
	for i := range w.n {
		send := epoch + int64((float64(i)+r.Float64())/float64(w.n)*w.seconds*second)
		at := send + delay(w.send)
		first := at + ms/2 + int64(r.ExpFloat64()*50*ms)
		finish := first + int64(r.ExpFloat64()*400*ms)
		client[i] = record{send, first + delay(w.back), finish + delay(w.back)}
		server[i] = record{at - w.theta(at), first - w.theta(first), finish - w.theta(finish)}
	}
	for i := range w.wrong { // that of the request half a run away
		server[i*7%w.n] = server[(i*7+w.n/2)%w.n]
	}
	out := make([]align.Pair, w.n)
	for i, c := range client {
		s := server[i]
		out[i] = align.NewPair(c.arrival, c.first, c.finish, s.arrival, s.first, s.finish, 1)
	}
	return out
}

type failer interface{ Fatalf(string, ...any) }

// inside fails where the truth is not in the interval, but for a share.
func (w world) inside(t failer, c *align.Clock) (widths, errs []float64, share float64) {
	in, n := 0, 1000
	for i := range n {
		at := epoch + int64(w.seconds*second*(float64(i)+0.5)/float64(n))
		lo, hi := c.At(at)
		if v := w.theta(at); v >= lo && v <= hi {
			in++
		} else if w.step == 0 {
			t.Fatalf("at %d: %d is not in [%d, %d]", at, v, lo, hi)
		}
		widths = append(widths, float64(hi-lo)/ms)
		errs = append(errs, math.Abs(float64(lo+(hi-lo)/2-w.theta(at)))/ms)
	}
	slices.Sort(widths)
	slices.Sort(errs)
	return widths, errs, float64(in) / float64(n)
}

// TestSimulated is the table of the clocks: width and error of the middle are at most 1.2 times what it has. The truth
// is in every interval.
func TestSimulated(t *testing.T) {
	seeds := uint64(20)
	if testing.Short() {
		seeds = 2
	}
	for _, c := range []struct {
		name                   string
		w                      world
		drift                  float64
		median, widest, middle float64 // ms
	}{
		{"LAN", world{send: 0.2, back: 0.2, n: 600, seconds: 60}, 200e-6, 0.59, 0.83, 0.17},
		{"an hour off", world{offset: 3600 * second, send: 0.2, back: 0.2, n: 600, seconds: 60}, 200e-6, 0.59, 0.83, 0.17},
		{"no drift", world{send: 0.2, back: 0.2, n: 600, seconds: 60}, 0, 0.38, 0.42, 0.03},
		{"20 ppm", world{ppm: 20, send: 0.2, back: 0.2, n: 6000, seconds: 600}, 200e-6, 0.59, 0.85, 0.17},
		{"100 ppm", world{ppm: 100, send: 0.2, back: 0.2, n: 6000, seconds: 600}, 200e-6, 0.57, 0.78, 0.15},
		{"WAN", world{send: 20, back: 20, n: 600, seconds: 60}, 200e-6, 33.7, 35.1, 0.62},
		{"asymmetric", world{send: 20, back: 5, n: 600, seconds: 60}, 200e-6, 21.3, 22.4, 6.7},
		{"few", world{send: 0.2, back: 0.2, n: 10, seconds: 60}, 200e-6, 0.96, 2.3, 0.73},
	} {
		var medians, widest, worst []float64
		for seed := range seeds {
			c.w.seed = seed
			clock, bad := align.Solve(slices.All(c.w.pairs()), align.Options{Drift: c.drift})
			if bad != nil {
				t.Fatalf("%s: %v", c.name, bad)
			}
			widths, errs, _ := c.w.inside(t, clock)
			medians = append(medians, widths[len(widths)/2])
			widest = append(widest, widths[len(widths)-1])
			worst = append(worst, errs[len(errs)-1])
		}
		t.Logf("%-12s width median %.2f widest %.2f, error of the middle %.2f ms", c.name, at(medians, 0.5),
			at(widest, 0.5), at(worst, 0.5))
		if at(medians, 0.5) > 1.2*c.median || at(widest, 0.5) > 1.2*c.widest {
			t.Errorf("%s: width %v, widest %v, want %v, %v", c.name, at(medians, 0.5), at(widest, 0.5), c.median, c.widest)
		}
	}
}

func at(values []float64, q float64) float64 {
	slices.Sort(values)
	return values[int(q*float64(len(values)-1))]
}

// TestRefused: drift beyond what is allowed, a step and wrong pairs are refused, by how much as the table has it;
// dropping finds every wrong pair and no right one, up to 1 %.
func TestRefused(t *testing.T) {
	lan := world{send: 0.2, back: 0.2, n: 600, seconds: 60}
	long := world{send: 0.2, back: 0.2, n: 6000, seconds: 600}
	solve := func(w world, o align.Options) (*align.Clock, *align.Conflict) {
		return align.Solve(slices.All(w.pairs()), o)
	}
	for seed := range uint64(5) {
		lan.seed, long.seed = seed, seed
		w := long
		w.ppm = 20
		if _, bad := solve(w, align.Options{}); bad == nil || math.Abs(float64(bad.GapNS)/ms-11.5) > 0.5 {
			t.Errorf("20 ppm without drift: %v, want a gap of 11.5 ms", bad)
		}
		w.ppm = 100
		if _, bad := solve(w, align.Options{Drift: 50e-6}); bad == nil {
			t.Error("100 ppm passed as 50")
		}
		clock, _ := solve(w, align.Options{Drift: 200e-6})
		if lo, hi, ok := clock.Drift(); !ok || lo > 100e-6 || hi < 100e-6 {
			t.Errorf("drift [%v, %v] %v, want 100 ppm in it", lo, hi, ok)
		}
		if _, _, ok := must(t)(solve(lan, align.Options{Drift: 200e-6})).Drift(); ok {
			t.Error("drift of a clock without")
		}
		w = lan
		w.step = 50 * ms
		_, bad := solve(w, align.Options{Drift: 200e-6, DropConflicting: true})
		if bad == nil || math.Abs(float64(bad.GapNS)/ms-49.5) > 0.4 || !strings.Contains(bad.Error(), "contradict") ||
			math.Abs(float64(bad.AtNS-epoch)/second-30) > 2 {
			t.Errorf("a step: %+v", bad)
		}
		w.step = 3 * ms / 10
		if _, _, in := w.inside(t, must(t)(solve(w, align.Options{Drift: 200e-6}))); in < 0.97 {
			t.Errorf("the truth is inside for %v of a small step", in)
		}
		wrongPairs(t, lan)
	}
}

func must(t *testing.T) func(*align.Clock, *align.Conflict) *align.Clock {
	return func(c *align.Clock, bad *align.Conflict) *align.Clock {
		t.Helper()
		if bad != nil {
			t.Fatal(bad)
		}
		return c
	}
}

func wrongPairs(t *testing.T, w world) {
	t.Helper()
	w.ppm = 30
	for _, n := range []int{1, 3, 30} {
		w.wrong = n
		pairs := slices.All(w.pairs())
		if _, bad := align.Solve(pairs, align.Options{Drift: 200e-6}); bad == nil {
			t.Errorf("%d wrong pairs passed", n)
		}
		c, bad := align.Solve(pairs, align.Options{Drift: 200e-6, DropConflicting: true})
		if n == 30 {
			if bad == nil || bad.Conflicting != 30 {
				t.Errorf("5 %% wrong: %+v", bad)
			}
			continue
		}
		var want []int
		for i := range n {
			want = append(want, i*7%w.n)
		}
		if bad != nil || !slices.Equal(c.Dropped, want) {
			t.Errorf("dropped %+v, %v, want %v", c, bad, want)
		}
		w.inside(t, c)
	}
}

// TestMany: facts beyond what is kept one by one are taken together by 100 ms; the truth stays inside and the interval
// is wider by no more than the drift of those.
func TestMany(t *testing.T) {
	if testing.Short() {
		t.Skip("a million facts")
	}
	w := world{offset: 5 * second, ppm: 40, send: 0.2, back: 0.2, n: 1000, seconds: 60, seed: 1}
	few := w.pairs()
	var many iter.Seq2[int, align.Pair] = func(yield func(int, align.Pair) bool) {
		for i := range 400 * len(few) {
			if !yield(i, few[i%len(few)]) {
				return
			}
		}
	}
	one := must(t)(align.Solve(slices.All(few), align.Options{Drift: 200e-6}))
	all := must(t)(align.Solve(many, align.Options{Drift: 200e-6}))
	w.inside(t, all)
	for at := int64(epoch); at < epoch+60*second; at += second {
		lo, hi := one.At(at)
		if lo2, hi2 := all.At(at); lo2 > lo || hi2 < hi || float64((hi2-lo2)-(hi-lo)) > 2*1.6*200e-6*float64(second)/10 {
			t.Fatalf("at %d: [%d, %d] against [%d, %d]", at, lo2, hi2, lo, hi)
		}
	}
}

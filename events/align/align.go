// Package align bounds the difference of two clocks by causality: what was sent was sent before it arrived.
//
//	theta(t) = client's time - server's time
//	send     <= arrival + theta    a lower bound
//	first    + theta <= first seen, finish + theta <= completion seen: upper bounds
//
// Nothing is assumed of delays. Clocks drift apart by at most a given rate, so a bound loosens with the distance in
// time. The result is an interval at every instant, or a refusal that names two requests that contradict each other.
package align

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"
)

// DefaultDrift is the most that two clocks are taken to drift apart: 200 ppm.
const DefaultDrift = 200e-6

// Fact is a bound of theta at an instant, both in nanoseconds; none where AtNS is 0.
type Fact struct{ AtNS, NS int64 }

// Pair is what a request that both clocks timed says: theta >= Lower, theta <= each of Uppers.
type Pair struct {
	Lower  Fact
	Uppers [2]Fact
}

// NewPair returns the facts of a request, 0 being an instant that is not known: when the client sent it, had the first
// token and the end, and when it arrived at the server, had its first token there and ended. The server's instants are
// as good as resolutionNS. The end of a request that failed is no fact: leave it out.
func NewPair(send, first, complete, arrival, firstS, finish, resolutionNS int64) (p Pair) {
	if send != 0 && arrival != 0 {
		p.Lower = Fact{send, send - arrival - resolutionNS}
	}
	if first != 0 && firstS != 0 {
		p.Uppers[0] = Fact{first, first - firstS + resolutionNS}
	}
	if complete != 0 && finish != 0 {
		p.Uppers[1] = Fact{complete, complete - finish + resolutionNS}
	}
	return p
}

// Options say what is assumed.
type Options struct {
	Drift float64 // the most that theta changes, in seconds per second; 0 is none at all
	// DropConflicting leaves out pairs that miss what most pairs have in common, up to 1 % of all.
	DropConflicting bool
}

// Clock is theta over the time of the pairs. It is immutable.
type Clock struct {
	Pairs        int   // with at least one fact
	Dropped      []int // numbers of pairs that were left out
	FromNS, ToNS int64 // of the facts, on the client's clock
	drift        float64
	knots        []knot
}

// Conflict is why there is no Clock. It is an error.
type Conflict struct {
	AtNS, GapNS  int64 // where the lower bound lies farthest above the upper one
	Lower, Upper int   // numbers of the pairs that these are of
	Pairs        int
	Conflicting  int // pairs that miss what most have in common
}

// Error says when and by how much, not which requests.
func (c *Conflict) Error() string {
	return fmt.Sprintf("the clocks fit no drift that is allowed: at %s two requests contradict each other by %.3f ms; "+
		"%d of %d requests miss what most have in common",
		time.Unix(0, c.AtNS).UTC().Format("15:04:05.000"), float64(c.GapNS)/1e6, c.Conflicting, c.Pairs)
}

const (
	maxFacts = 1 << 20                       // more are taken together
	binNS    = int64(100 * time.Millisecond) // by so much time
	maxDrop  = 0.01                          // share of pairs that may be left out
)

// knot is what is known at an instant.
type knot struct {
	at, lo, hi   int64
	lower, upper int32 // the pairs that the bounds come from
}

// Solve finds the interval of theta at every instant. It reads pairs again when they contradict each other. Without a
// fact on each side it returns neither a Clock nor a Conflict.
func Solve(pairs iter.Seq2[int, Pair], o Options) (*Clock, *Conflict) {
	c, bad := solve(pairs, nil, o)
	if bad == nil {
		return c, nil
	}
	drop := conflicting(pairs, o, bad.AtNS)
	bad.Conflicting = len(drop)
	if !o.DropConflicting || len(drop) == 0 || float64(len(drop)) > maxDrop*float64(bad.Pairs) {
		return nil, bad
	}
	c, again := solve(pairs, drop, o)
	if again != nil {
		again.Conflicting = len(drop)
	}
	return c, again
}

// solve leaves out the pairs of drop, which are sorted.
func solve(pairs iter.Seq2[int, Pair], drop []int, o Options) (*Clock, *Conflict) {
	c := &Clock{drift: o.Drift, Dropped: drop}
	b := bounds{drift: o.Drift}
	lower, upper := false, false
	for i, p := range pairs {
		if _, out := slices.BinarySearch(drop, i); out {
			continue
		}
		some := false
		if p.Lower.AtNS != 0 {
			b.add(knot{p.Lower.AtNS, p.Lower.NS, math.MaxInt64, int32(i), -1})
			some, lower = true, true
		}
		for _, u := range p.Uppers {
			if u.AtNS != 0 {
				b.add(knot{u.AtNS, math.MinInt64, u.NS, -1, int32(i)})
				some, upper = true, true
			}
		}
		if some {
			c.Pairs++
		}
	}
	if !lower || !upper {
		return nil, nil
	}
	c.knots = b.all()
	c.FromNS, c.ToNS = c.knots[0].at, c.knots[len(c.knots)-1].at
	c.tighten(false)
	c.tighten(true)
	return c.checked()
}

// bounds collects knots, and from so many on takes together what is near.
type bounds struct {
	drift float64
	list  []knot
	bins  map[int64]knot
}

func (b *bounds) add(k knot) {
	if b.bins == nil {
		if b.list = append(b.list, k); len(b.list) < maxFacts {
			return
		}
		b.bins = map[int64]knot{}
		for _, k := range b.list {
			b.bin(k)
		}
		b.list = nil
		return
	}
	b.bin(k)
}

func (b *bounds) bin(k knot) {
	at := k.at / binNS
	have, ok := b.bins[at]
	if !ok {
		have = knot{at*binNS + binNS/2, math.MinInt64, math.MaxInt64, -1, -1}
	}
	wide := int64(math.Ceil(b.drift * float64(binNS)))
	if k.lower >= 0 && k.lo-wide > have.lo {
		have.lo, have.lower = k.lo-wide, k.lower
	}
	if k.upper >= 0 && k.hi+wide < have.hi {
		have.hi, have.upper = k.hi+wide, k.upper
	}
	b.bins[at] = have
}

// all returns the knots in order of time.
func (b *bounds) all() []knot {
	for _, k := range b.bins {
		b.list = append(b.list, k)
	}
	slices.SortFunc(b.list, func(x, y knot) int { return cmp.Compare(x.at, y.at) })
	return b.list
}

// tighten carries bounds forward or backward in time. The best bound stays the best until a better one comes, as all
// loosen at one rate, so that each is rounded once.
func (c *Clock) tighten(backward bool) {
	var low, high knot // where the best bounds come from
	low.lower, high.upper = -1, -1
	for i := range c.knots {
		if backward {
			i = len(c.knots) - 1 - i
		}
		k := &c.knots[i]
		was := *k
		if low.lower >= 0 {
			if v := low.lo - c.loosen(k.at-low.at); v > k.lo {
				k.lo, k.lower = v, low.lower
			}
		}
		if high.upper >= 0 {
			if v := high.hi + c.loosen(k.at-high.at); v < k.hi {
				k.hi, k.upper = v, high.upper
			}
		}
		if was.lower >= 0 && k.lo == was.lo {
			low = was
		}
		if was.upper >= 0 && k.hi == was.hi {
			high = was
		}
	}
}

// loosen is how much a bound loosens over a time.
func (c *Clock) loosen(ns int64) int64 { return int64(math.Ceil(c.drift * math.Abs(float64(ns)))) }

// checked refuses bounds that exclude each other; the difference is largest at a knot, as between knots it is convex.
func (c *Clock) checked() (*Clock, *Conflict) {
	worst := c.knots[0]
	for _, k := range c.knots {
		if gap(k) > gap(worst) {
			worst = k
		}
	}
	if gap(worst) <= 0 {
		return c, nil
	}
	return nil, &Conflict{AtNS: worst.at, GapNS: gap(worst), Lower: int(worst.lower), Upper: int(worst.upper),
		Pairs: c.Pairs}
}

func gap(k knot) int64 { return k.lo - k.hi }

// At returns the bounds of theta at an instant of the client's clock.
func (c *Clock) At(ns int64) (lo, hi int64) {
	i, _ := slices.BinarySearchFunc(c.knots, ns, func(k knot, at int64) int { return cmp.Compare(k.at, at) })
	lo, hi = math.MinInt64, math.MaxInt64
	for _, n := range []int{i - 1, i} {
		if n >= 0 && n < len(c.knots) {
			k := &c.knots[n]
			far := c.loosen(ns - k.at)
			lo, hi = max(lo, k.lo-far), min(hi, k.hi+far)
		}
	}
	return lo, hi
}

// Allows reports whether theta may have been constant at a value.
func (c *Clock) Allows(theta int64) bool {
	for _, k := range c.knots {
		if theta < k.lo || theta > k.hi {
			return false
		}
	}
	return true
}

// Middle returns the estimate in the middle of the time, and the half of the interval there.
func (c *Clock) Middle() (theta, half int64) {
	lo, hi := c.At(c.FromNS + (c.ToNS-c.FromNS)/2)
	return lo + (hi-lo)/2, (hi - lo + 1) / 2
}

// Drift returns the bounds of the rate at which theta changes, in seconds per second. ok is false where a constant
// theta fits the first and the last tenth of the time.
func (c *Clock) Drift() (low, high float64, ok bool) {
	tenth := (c.ToNS - c.FromNS) / 20
	from, to := c.FromNS+tenth, c.ToNS-tenth
	lo1, hi1 := c.At(from)
	lo2, hi2 := c.At(to)
	if to <= from || lo2 <= hi1 && lo1 <= hi2 {
		return 0, 0, false
	}
	span := float64(to - from)
	return float64(lo2-hi1) / span, float64(hi2-lo1) / span, true
}

// conflicting returns the numbers of the pairs whose interval misses the value of theta that most pairs allow at an
// instant.
func conflicting(pairs iter.Seq2[int, Pair], o Options, atNS int64) (out []int) {
	c := Clock{drift: o.Drift}
	var edges []edge
	for _, p := range pairs {
		if lo, hi := c.interval(p, atNS); lo <= hi {
			edges = append(edges, edge{lo, false}, edge{hi, true})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		if v := cmp.Compare(a.at, b.at); v != 0 || a.end == b.end {
			return v
		}
		if a.end {
			return 1
		}
		return -1
	})
	depth, most, point := 0, 0, int64(0)
	for i, e := range edges {
		if e.end {
			depth--
		} else if depth++; depth > most && i+1 < len(edges) {
			most, point = depth, middle(e.at, edges[i+1].at)
		}
	}
	for i, p := range pairs {
		if lo, hi := c.interval(p, atNS); point < lo || point > hi {
			out = append(out, i)
		}
	}
	slices.Sort(out)
	return out
}

// edge is where an interval begins or ends.
type edge struct {
	at  int64
	end bool
}

func middle(a, b int64) int64 {
	if b == math.MaxInt64 {
		return a
	}
	return a + (b-a)/2
}

// interval is what a pair alone says of theta at an instant.
func (c *Clock) interval(p Pair, atNS int64) (lo, hi int64) {
	lo, hi = math.MinInt64, math.MaxInt64
	if p.Lower.AtNS != 0 {
		lo = p.Lower.NS - c.loosen(p.Lower.AtNS-atNS)
	}
	for _, u := range p.Uppers {
		if u.AtNS != 0 {
			hi = min(hi, u.NS+c.loosen(u.AtNS-atNS))
		}
	}
	return lo, hi
}

package html

import "math"

// lane is one slot over time.
type lane struct {
	level bool // a gauge: otherwise what it gained counts
	n     int  // values seen
	here  bool // in the last poll
	cur   float64
	since int64 // a level: up to where cur is entered

	from  int64  // first seen
	gone  int64  // when it vanished, if not here
	holes []span // in which it was not there, but for the last

	// sum is what was gained in a stretch, or the integral of a level over it in parts of a stretch; weight, lo and hi
	// are of a level: the part of the stretch it is known for, and its extremes.
	sum, weight, lo, hi []float32
}

// set enters the value at an instant. Between last, the time of the poll before, and at a counter moved evenly, and a
// level stood until at.
func (l *lane) set(b *bins, last, at int64, v float64) {
	l.n++
	if !l.here {
		if l.from == 0 {
			l.from = at
		} else if len(l.holes) < maxSpans {
			l.holes = append(l.holes, span{l.gone, at})
		}
		l.here, l.cur, l.since = true, v, at
		if l.level {
			l.touch(b.at(at), v)
		}
		return
	}
	if l.level {
		l.stand(b, at)
		l.cur = v
		l.touch(b.at(at), v)
		return
	}
	l.gain(b, last, at, v-l.cur)
	l.cur = v
}

// vanish ends the slot: it was last seen in the poll before.
func (l *lane) vanish(b *bins, last, at int64) {
	if !l.here {
		return
	}
	if l.level {
		l.stand(b, last)
	}
	l.here, l.gone = false, last
}

// gain spreads what was gained between two instants over the stretches between.
func (l *lane) gain(b *bins, from, to int64, gained float64) {
	if gained == 0 {
		return
	}
	first, last := b.at(from), b.at(to)
	l.reach(last)
	if to <= from || first == last {
		l.sum[last] += float32(gained)
		return
	}
	for i := first; i <= last; i++ {
		start := b.origin + int64(i)*b.width
		part := min(to, start+b.width) - max(from, start)
		l.sum[i] += float32(gained * float64(part) / float64(to-from))
	}
}

// stand enters the level up to an instant.
func (l *lane) stand(b *bins, to int64) {
	if to <= l.since {
		return
	}
	first, last := b.at(l.since), b.at(to)
	l.reach(last)
	for i := first; i <= last; i++ {
		start := b.origin + int64(i)*b.width
		part := float32(min(to, start+b.width)-max(l.since, start)) / float32(b.width)
		if part > 0 {
			l.sum[i] += part * float32(l.cur)
			l.weight[i] += part
			l.touch(i, l.cur)
		}
	}
	l.since = to
}

// touch widens the extremes of a stretch.
func (l *lane) touch(i int, v float64) {
	l.reach(i)
	l.lo[i], l.hi[i] = min(l.lo[i], float32(v)), max(l.hi[i], float32(v))
}

// reach makes room for a stretch.
func (l *lane) reach(i int) {
	for len(l.sum) <= i {
		l.sum = append(l.sum, 0)
		if l.level {
			l.weight = append(l.weight, 0)
			l.lo, l.hi = append(l.lo, float32(math.Inf(1))), append(l.hi, float32(math.Inf(-1)))
		}
	}
}

// join makes one stretch of two.
func (l *lane) join() {
	half := func(x []float32, f func(a, b float32) float32) []float32 {
		for i := 0; i < len(x); i += 2 {
			if x[i/2] = x[i]; i+1 < len(x) {
				x[i/2] = f(x[i], x[i+1])
			}
		}
		return x[:(len(x)+1)/2]
	}
	add := func(a, b float32) float32 { return a + b }
	l.sum = half(l.sum, add)
	if !l.level {
		return
	}
	l.weight = half(l.weight, add)
	for i := range l.sum { // the parts are of a stretch that is twice as long
		l.sum[i] /= 2
		l.weight[i] /= 2
	}
	l.lo = half(l.lo, func(a, b float32) float32 { return min(a, b) })
	l.hi = half(l.hi, func(a, b float32) float32 { return max(a, b) })
}

// known returns the part of a stretch in which the slot was there, 0 to 1, for a target whose last stored poll was at
// last.
func (l *lane) known(b *bins, i int, last int64) float64 {
	start := b.origin + int64(i)*b.width
	end := last
	if !l.here {
		end = l.gone
	}
	got := overlap(span{start, start + b.width}, span{l.from, end})
	for _, h := range l.holes {
		got -= overlap(span{start, start + b.width}, h)
	}
	return float64(max(got, 0)) / float64(b.width)
}

// overlap is the length of what two spans share.
func overlap(a, b span) int64 { return max(min(a.end, b.end)-max(a.start, b.start), 0) }

package continuity

import "math"

// Keys yields what the present process showed last of each unit: the index of its series, and its value or count.
func (t *Tracker) Keys(yield func(series int, value float64) bool) {
	for u := range t.units {
		if t.cur != nil && t.cur.known[u] && !yield(int(t.units[u].series), t.lastOf(t.cur, u)) {
			return
		}
	}
}

// Begun is when the present process began, in seconds since 1970, by its start time or the first of its creation
// times; NaN when nothing shows it.
func (t *Tracker) Begun() float64 {
	if t.cur == nil {
		return math.NaN()
	}
	return t.cur.begun()
}

package normalize

import (
	"fmt"
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/metric"
)

// Distribution is the exact statistics of the events that a source logged for a series, see
// [metric.Observation]. They count by the poll that brought them, as the gain of the series does.
type Distribution struct {
	Lines Exact // each event once
	// Requests counts each event once for each request it was measured for, and
	// once when it names none; nil when none of them names more than one.
	Requests *Exact
}

// Exact is the statistics of values that are all known.
type Exact struct {
	N                  int
	Sum, Avg, Min, Max float64
	// Quantiles, linear between order statistics: numpy's default.
	P50, P90, P95, P99, P999 float64
}

// observed is an event inside the window.
type observed struct {
	value    float64
	requests int32
}

// maxObserved bounds the events a fold keeps, 16 bytes each.
const maxObserved = 20_000_000

// observe takes the events of a poll inside the window.
func (f *Accumulator) observe(list []metric.Observation) error {
	for i := range list {
		o := &list[i]
		if o.Series < 0 || o.Series >= len(f.holders) {
			return fmt.Errorf("damaged poll: observation of series %d of %d", o.Series, len(f.holders))
		}
		if o.Value-o.Value != 0 {
			continue // NaN or infinite
		}
		if f.events >= maxObserved {
			f.unkept++
			continue
		}
		if f.observed == nil {
			f.observed = map[int][]observed{}
		}
		f.events++
		f.observed[o.Series] = append(f.observed[o.Series],
			observed{o.Value, int32(min(max(len(o.Requests), 1), math.MaxInt16))})
	}
	return nil
}

// distribution returns the exact statistics of a series, nil without events.
func (f *Accumulator) distribution(series int) *Distribution {
	events := f.observed[series]
	if len(events) == 0 {
		return nil
	}
	sorted := slices.Clone(events)
	slices.SortFunc(sorted, func(a, b observed) int {
		switch {
		case a.value < b.value:
			return -1
		case a.value > b.value:
			return 1
		}
		return 0
	})
	d := &Distribution{}
	many := false
	runs := make([]run, len(sorted))
	for i, e := range sorted {
		runs[i] = run{value: e.value, to: 1}
		many = many || e.requests > 1
	}
	d.Lines = exactly(runs)
	if many {
		for i, e := range sorted {
			runs[i] = run{value: e.value, to: e.requests}
		}
		weighted := exactly(runs)
		d.Requests = &weighted
	}
	return d
}

// exactly summarises runs sorted by value, which it overwrites.
func exactly(runs []run) Exact {
	e := Exact{Min: runs[0].value, Max: runs[len(runs)-1].value}
	var carry float64 // Neumaier's sum: exact to the last digit whatever the order
	for _, r := range runs {
		n := int(r.to - r.from)
		e.N += n
		v := r.value * float64(n)
		t := e.Sum + v
		if math.Abs(e.Sum) >= math.Abs(v) {
			carry += (e.Sum - t) + v
		} else {
			carry += (v - t) + e.Sum
		}
		e.Sum = t
	}
	e.Sum = finite(e.Sum + finite(carry))
	e.Avg = min(max(e.Sum/float64(e.N), e.Min), e.Max)
	q := weightedQuantiles(runs, e.N, []float64{0.5, 0.9, 0.95, 0.99, 0.999})
	e.P50, e.P90, e.P95, e.P99, e.P999 = q[0], q[1], q[2], q[3], q[4]
	return e
}

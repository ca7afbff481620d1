package quantity_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/catalog/quantity"
	"github.com/scrapestat/scrapestat/metric"
)

// The oracle computes a formula by recursion over raw series, from the rules of the language alone: it has a tree of
// its own, and of the package only the words for statuses.

// raw is what a server showed of one series in eight seconds, in slices of three and five.
type raw struct {
	name, k, w string
	start      float64    // of a counter
	parts      [2]float64 // what a counter or the count of a histogram gained in each slice
	values     []float64  // of a gauge, each for a second
	over       [3]float64 // observations of a histogram up to 1, up to 2, above
	sum        float64
	noSum      bool
	status     quantity.Status // of the increase: OK, ResetCorrected, BornInWindow, Ambiguous, LowerBound, Refused
	low, high  float64
	off        float64 // by how much the true increase is another one
}

func (r *raw) gain() float64 {
	if r.name == "h" || r.name == "q" {
		return r.over[0] + r.over[1] + r.over[2] + r.off
	}
	return r.parts[0] + r.parts[1] + r.off
}

// gained is the series as the package takes it.
func (r *raw) gained() *quantity.Gain {
	g := &quantity.Gain{Labels: labels("k", r.k, "w", r.w), Slices: r.parts[:], Low: r.low, High: r.high}
	switch r.status {
	case quantity.ResetCorrected:
		g.Resets = 1
	case quantity.BornInWindow:
		g.Born = true
	default:
		g.Status = r.status
	}
	switch {
	case r.values != nil:
		g.Type, g.First, g.Last, g.Slices = metric.Gauge, r.values[0], r.values[len(r.values)-1], nil
		g.Min, g.Max = slices.Min(r.values), slices.Max(r.values)
		for _, v := range r.values {
			g.TimeAvg += v / float64(len(r.values))
		}
	case r.name == "h" || r.name == "q":
		g.Type, g.Count, g.Sum, g.HasSum = metric.Histogram, r.gain(), r.sum, !r.noSum
		g.Buckets = []quantity.Bucket{{Upper: 1, Count: r.over[0]}, {Upper: 2, Count: r.over[0] + r.over[1]},
			{Upper: math.Inf(1), Count: r.gain()}}
	default:
		g.Type, g.Total, g.First, g.Last = metric.Counter, r.gain(), r.start, r.start+r.gain()
	}
	return g
}

// kinds are the families of the oracle's world: a letter for the kind, and how gauges are taken together.
func kinds() map[string]quantity.Aggregate {
	return map[string]quantity.Aggregate{"c": 0, "d": 0, "h": 0, "q": 0, "g": quantity.AggregateSum,
		"worst": quantity.AggregateMax, "even": quantity.AggregateMean}
}

type plainTypes struct{}

func (plainTypes) Family(name string) (f quantity.Family, ok bool) {
	f.Name = name
	f.Aggregate, ok = kinds()[name]
	switch name {
	case "c", "d":
		f.Type = metric.Counter
	case "h", "q":
		f.Type = metric.Histogram
	default:
		f.Type = metric.Gauge
	}
	return f, ok
}

func (plainTypes) Quantity(name string) (*quantity.Expr, error) { return nil, errors.New("no " + name) }

// lot is the series that are looked at.
type lot []*raw

func (l lot) of(keep func(*raw) bool) lot {
	return slices.DeleteFunc(slices.Clone(l), func(r *raw) bool { return !keep(r) })
}

func (l lot) Series(family string) (out []*quantity.Gain) {
	for _, r := range l {
		if r.name == family {
			out = append(out, r.gained())
		}
	}
	return out
}

func (lot) Input(string) float64 { return 0 }

// truth is what a formula is: all of its input is there, or some; it is missing, divided by zero, or nothing to tell.
type truth struct {
	all, some, missing, zero, void bool
	v                              float64
	status                         quantity.Status // the worst
}

func (a truth) undefined() bool { return a.missing || a.zero || a.void }

func both(a, b truth, v float64) truth {
	return truth{a.all && b.all, a.some || b.some, a.missing || b.missing, a.zero || b.zero, a.void || b.void, v,
		max(a.status, b.status)}
}

func by(a, b truth) truth {
	out := both(a, b, a.v/b.v)
	out.zero = out.zero || !b.missing && b.v == 0
	return out
}

// formula is one in words and in meaning.
type formula struct {
	src   string
	is    func(lot) truth
	first func(lot) lot // the series of its first term
}

// taken adds a part of the series of a family up by the family's rule.
func taken(l lot, family string, part func(*raw) (float64, bool), extreme, certain bool) (a truth) {
	rule := kinds()[family]
	if certain { // it counts series
		rule = quantity.AggregateSum
	}
	own := l.of(func(r *raw) bool { return r.name == family })
	a.missing = len(own) == 0
	for i, r := range own {
		x, ok := part(r)
		a.missing, a.some = a.missing || !ok, a.some || ok
		if rule == quantity.AggregateMax && i > 0 {
			a.v = max(a.v, x)
		} else {
			a.v += x
		}
		if ok && (!certain || r.status < quantity.Ambiguous) {
			a.status = max(a.status, r.status)
		}
	}
	if extreme && len(own) > 1 && rule != quantity.AggregateMax {
		a.status = max(a.status, quantity.Bound)
	}
	if rule == quantity.AggregateMean && len(own) > 1 {
		a.v /= float64(len(own))
	}
	a.all = !a.missing
	return a
}

const lasts = 8.0 // seconds

func seconds() truth { return truth{all: true, v: lasts} }

// term draws a function of a family.
func term(t *rapid.T) formula {
	family := rapid.SampledFrom(slices.Sorted(maps.Keys(kinds()))).Draw(t, "family")
	keep, sel := func(*raw) bool { return true }, ""
	switch value := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "value"); rapid.IntRange(0, 4).Draw(t, "selector") {
	case 0:
		keep, sel = func(r *raw) bool { return r.k == value }, `{k="`+value+`"}`
	case 1:
		keep, sel = func(r *raw) bool { return r.k != value }, `{k!="`+value+`"}`
	}
	simple := func(name string, extreme, certain bool, part func(*raw) (float64, bool)) formula {
		return formula{src: name + "(" + family + sel + ")", first: func(l lot) lot {
			return l.of(func(r *raw) bool { return r.name == family && (sel == "" || strings.Contains(sel, "!=") || keep(r)) })
		}, is: func(l lot) truth { return taken(l.of(keep), family, part, extreme, certain) }}
	}
	always := func(f func(*raw) float64) func(*raw) (float64, bool) {
		return func(r *raw) (float64, bool) { return f(r), true }
	}
	series := simple("series", false, true, always(func(*raw) float64 { return 1 }))
	gain := simple("increase", false, false, always((*raw).gain))
	var list []formula
	switch family {
	case "c", "d":
		rate := simple("rate", false, false, always((*raw).gain))
		rate.is = func(l lot) truth { return by(gain.is(l), seconds()) }
		busy := formula{src: "busy(" + gain.src + ")", first: gain.first, is: func(l lot) truth {
			var parts [2]float64
			a := gain.is(l)
			for _, r := range l.of(keep).of(func(r *raw) bool { return r.name == family }) {
				parts[0], parts[1] = parts[0]+r.parts[0], parts[1]+r.parts[1]
			}
			a.v, a.status = 0, quantity.OK
			for i, length := range []float64{3, 5} {
				if parts[i] > 0 {
					a.v += length / lasts
				}
			}
			return a
		}}
		list = []formula{gain, rate, busy, simple("delta", false, false, always((*raw).gain)),
			simple("first", false, false, always(func(r *raw) float64 { return r.start })),
			simple("last", false, false, always(func(r *raw) float64 { return r.start + r.gain() }))}
	case "h", "q":
		count := simple("count", false, false, always((*raw).gain))
		sum := simple("sum", false, false, func(r *raw) (float64, bool) { return r.sum, !r.noSum })
		over := simple("over", false, false, always(func(r *raw) float64 { return r.over[2] + r.off }))
		quotient := func(name, more string, top formula) formula {
			return formula{src: name + "(" + family + sel + more + ")", first: top.first,
				is: func(l lot) truth { return by(top.is(l), count.is(l)) }}
		}
		above := simple("", false, false, always(func(r *raw) float64 { return r.over[1] + r.over[2] + r.off }))
		overOne := above
		overOne.src = "over(" + family + sel + ", 1)"
		list = []formula{count, sum, over, overOne, quotient("mean", "", sum), quotient("overflow", "", over),
			quotient("above", ", 1", above)}
	default:
		at := func(name string, extreme bool, f func([]float64) float64) formula {
			return simple(name, extreme, false, always(func(r *raw) float64 { return f(r.values) }))
		}
		mean := func(v []float64) (m float64) {
			for _, x := range v {
				m += x / float64(len(v))
			}
			return m
		}
		list = []formula{at("avg", false, mean), at("area", false, func(v []float64) float64 { return lasts * mean(v) }),
			at("peak", true, slices.Max), at("low", true, slices.Min),
			at("first", false, func(v []float64) float64 { return v[0] }),
			at("last", false, func(v []float64) float64 { return v[len(v)-1] }),
			at("delta", false, func(v []float64) float64 { return v[len(v)-1] - v[0] })}
	}
	return rapid.SampledFrom(append(list, series)).Draw(t, "function")
}

// whole draws a formula of a depth.
func whole(t *rapid.T, depth int) formula {
	if depth == 0 {
		return term(t)
	}
	a := whole(t, depth-1)
	of := func(src string, is func(truth) truth) formula {
		return formula{src: src + "(" + a.src + ")", first: a.first, is: func(l lot) truth { return is(a.is(l)) }}
	}
	atLeast := func(s quantity.Status) func(truth) truth {
		return func(x truth) truth { x.status = max(x.status, s); return x }
	}
	switch kind := rapid.IntRange(0, 12).Draw(t, "kind"); kind {
	case 0:
		return of("opt", func(x truth) truth {
			if x.undefined() {
				return truth{all: true, some: x.some}
			}
			x.all = true
			return x
		})
	case 1:
		return of("estimate", atLeast(quantity.Estimate))
	case 2:
		return of("bound", atLeast(quantity.Bound))
	case 3:
		return of("clamp0", atLeast(quantity.OK))
	case 4:
		return of("floor", func(x truth) truth { x.v = math.Floor(x.v); return x })
	case 5:
		return of("-", func(x truth) truth { x.v = -x.v; return x })
	case 6:
		n := float64(rapid.IntRange(0, 9).Draw(t, "number"))
		return formula{src: fmt.Sprintf("%v * (%s)", n, a.src), first: a.first,
			is: func(l lot) truth { x := a.is(l); x.v *= n; return x }}
	case 7:
		return formula{src: "(" + a.src + ") / time", first: a.first,
			is: func(l lot) truth { return by(a.is(l), seconds()) }}
	case 8:
		b := whole(t, depth-1)
		return formula{src: "first_of(" + a.src + ", " + b.src + ")", is: func(l lot) truth {
			x, y := a.is(l), b.is(l)
			if x.all && x.some || x.some && !(y.all && y.some) || !y.some {
				return x
			}
			return y
		}}
	}
	b := whole(t, depth-1)
	op := rapid.SampledFrom([]string{"+", "-", "*", "/"}).Draw(t, "operator")
	return formula{src: "(" + a.src + ") " + op + " (" + b.src + ")", first: a.first, is: func(l lot) truth {
		x, y := a.is(l), b.is(l)
		switch op {
		case "+":
			return both(x, y, x.v+y.v)
		case "-":
			return both(x, y, x.v-y.v)
		case "*":
			return both(x, y, x.v*y.v)
		}
		return by(x, y)
	}}
}

// drawLot draws up to four series of each family. Doubtful ones are those whose increase is not known.
func drawLot(t *rapid.T) (out lot) {
	small := func(name string) float64 { return float64(rapid.IntRange(0, 6).Draw(t, name)) }
	for _, family := range slices.Sorted(maps.Keys(kinds())) {
		for _, at := range rapid.SliceOfNDistinct(rapid.IntRange(0, 3), 0, 3, rapid.ID).Draw(t, "series of "+family) {
			r := &raw{name: family, k: string("xy"[at%2]), w: fmt.Sprint(at)}
			if family == "g" || family == "worst" || family == "even" {
				for range int(lasts) {
					r.values = append(r.values, small("value"))
				}
				out = append(out, r)
				continue
			}
			r.start, r.parts, r.over = small("start"), [2]float64{small("slice"), small("slice")},
				[3]float64{small("bucket"), small("bucket"), small("bucket")}
			r.sum, r.noSum = small("sum"), rapid.IntRange(0, 9).Draw(t, "no sum") == 0
			switch rapid.IntRange(0, 20).Draw(t, "status") {
			case 0:
				r.status = quantity.ResetCorrected
			case 1:
				r.status = quantity.BornInWindow
			case 2:
				r.status, r.low, r.high = quantity.Ambiguous, r.gain()-small("less"), r.gain()+small("more")
			case 3:
				r.status, r.low, r.high = quantity.LowerBound, r.gain(), math.Inf(1)
			case 4:
				r.status = quantity.Refused
			}
			out = append(out, r)
		}
	}
	return out
}

// TestOracle: whatever a formula is made of and whatever series there are, it is what the oracle says, with its status;
// and what the truth may be of increases that are not known lies within its bounds.
func TestOracle(t *testing.T) {
	statuses := map[quantity.Status]int{}
	rapid.Check(t, func(t *rapid.T) {
		l := drawLot(t)
		for range 50 {
			f := whole(t, rapid.IntRange(0, 3).Draw(t, "depth"))
			e, err := quantity.Parse(f.src, plainTypes{})
			if err != nil && strings.Contains(err.Error(), "cannot be added up") {
				continue // numbers and what is by the second
			} else if err != nil {
				t.Fatalf("%s: %v", f.src, err)
			}
			q, cases := quantity.Formula{Is: e}, map[string]truth{"": f.is(l)}
			parts := map[string]lot{"": l}
			if f.first != nil && rapid.Bool().Draw(t, "by") {
				q.By = []string{"k"}
				clear(cases)
				for _, r := range f.first(l) {
					parts[r.k] = l.of(func(x *raw) bool { return x.k == r.k })
					cases[r.k] = f.is(parts[r.k])
				}
			}
			for _, b := range q.Bind(l) {
				k, _ := b.Labels.Get("k")
				want, ok := cases[k]
				if !ok {
					t.Fatalf("%s by %v: a result for %v", f.src, q.By, b.Labels)
				}
				delete(cases, k)
				got, there := b.Eval(&quantity.Interval{Seconds: lasts, SliceSeconds: []float64{3, 5}})
				if !there {
					got.Status = 99
				}
				statuses[got.Status]++
				agrees(t, f, parts[k], got, there, want)
			}
			if len(cases) > 0 {
				t.Fatalf("%s by %v: no result for %v", f.src, q.By, cases)
			}
		}
	})
	for _, s := range []quantity.Status{quantity.OK, quantity.ResetCorrected, quantity.BornInWindow, quantity.Estimate,
		quantity.Bound, quantity.Ambiguous, quantity.LowerBound, quantity.ZeroDenominator, quantity.Missing,
		quantity.Refused, 99} {
		if statuses[s] == 0 {
			t.Errorf("no result is %v", s)
		}
	}
}

// agrees holds a result against the truth.
func agrees(t *rapid.T, f formula, l lot, got quantity.Result, there bool, want truth) {
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+math.Abs(a)+math.Abs(b)) }
	status := want.status
	switch {
	case status == quantity.Refused:
	case want.missing:
		status = quantity.Missing
	case want.zero:
		status = quantity.ZeroDenominator
	}
	if !want.some {
		if there {
			t.Fatalf("%s: %+v where nothing of it is there", f.src, got)
		}
		return
	}
	if status == quantity.LowerBound && got.Status == quantity.Ambiguous {
		status = quantity.Ambiguous // some of what it is made of may make it less
	}
	if !there || got.Status != status || status.Defined() && !near(got.Value, want.v) {
		t.Fatalf("%s: %v %+v, want %v %+v", f.src, there, got, status, want)
	}
	if got.HasParts && status.Defined() && !near(got.Numerator, got.Denominator*got.Value) {
		t.Fatalf("%s: %v is not %v/%v", f.src, got.Value, got.Numerator, got.Denominator)
	}
	if status != quantity.Ambiguous && status != quantity.LowerBound {
		return
	}
	unsure := l.of(func(r *raw) bool { return r.status == quantity.Ambiguous || r.status == quantity.LowerBound })
	for corner := range 1 << min(len(unsure), 6) {
		for i, r := range unsure {
			r.off = 0
			if end := []float64{r.low, min(r.high, 1e4)}[corner>>i&1]; i < 6 {
				r.off = end - r.gain()
			}
		}
		v := f.is(l)
		for _, r := range unsure {
			r.off = 0
		}
		if !v.undefined() && (v.v < got.Low-1e-9*(1+math.Abs(got.Low)) || v.v > got.High+1e-9*(1+math.Abs(got.High))) {
			t.Fatalf("%s: it may be %v, outside of [%v, %v]", f.src, v.v, got.Low, got.High)
		}
	}
}

package quantity_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/catalog/quantity"
	"github.com/scrapestat/scrapestat/internal/fuzzbound"
	"github.com/scrapestat/scrapestat/metric"
)

// world is a pack with one family of each kind; it is both types and source.
type world map[string][]*quantity.Gain

func (w world) Family(name string) (quantity.Family, bool) {
	f := quantity.Family{Name: "p:" + name}
	switch name {
	case "c", "d", "other.c":
		f.Type, f.Unit = metric.Counter, "tokens"
	case "blocks":
		f.Type, f.Unit = metric.Counter, "blocks"
	case "h", "steps":
		f.Type, f.Unit = metric.Histogram, "seconds"
	case "g", "worst", "even":
		f.Type, f.Unit, f.Above = metric.Gauge, "requests", []float64{0, 2}
		f.Aggregate = map[string]quantity.Aggregate{"g": quantity.AggregateSum, "worst": quantity.AggregateMax,
			"even": quantity.AggregateMean}[name]
	case "info":
		f.Type = metric.Info
	case "none":
		f.Type = metric.Counter
	default:
		return f, false
	}
	return f, true
}

func (w world) Quantity(name string) (*quantity.Expr, error) {
	switch name {
	case "speed":
		return quantity.Parse("rate(c)", w)
	}
	return nil, fmt.Errorf("there is no quantity %s in the pack", name)
}

func (w world) Series(family string) []*quantity.Gain { return w[family] }

func (w world) Input(name string) float64 { return map[string]float64{"peak": 4}[name] }

func labels(pairs ...string) metric.Labels {
	m := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return metric.LabelsFromMap(m)
}

func server() world {
	counter := func(v float64, l ...string) *quantity.Gain {
		return &quantity.Gain{Type: metric.Counter, Total: v, First: 1, Last: 1 + v, Labels: labels(l...),
			Slices: []float64{v, 0}}
	}
	gauge := func(lo, mean, hi float64, l ...string) *quantity.Gain {
		return &quantity.Gain{Type: metric.Gauge, Min: lo, TimeAvg: mean, Max: hi, First: lo, Last: hi,
			Labels: labels(l...),
			Above:  []float64{mean / 8, mean / 16}}
	}
	hist := func(n, sum float64, l ...string) *quantity.Gain {
		return &quantity.Gain{Type: metric.Histogram, Count: n, Sum: sum, HasSum: true, Labels: labels(l...),
			Buckets: []quantity.Bucket{{Upper: 1, Count: n / 2}, {Upper: 2, Count: n * 3 / 4},
				{Upper: math.Inf(1), Count: n}},
			Slices: []float64{n, 0}}
	}
	gauges := []*quantity.Gain{gauge(1, 2, 4, "w", "a"), gauge(2, 4, 8, "w", "b")}
	return world{
		"p:c":       {counter(10, "k", "x", "w", "9"), counter(30, "k", "y", "w", "10")},
		"p:d":       {counter(0)},
		"p:other.c": {counter(5)},
		"p:blocks":  {counter(7)},
		"p:h":       {hist(8, 16)},
		"p:steps":   {hist(4, 2)},
		"p:g":       gauges, "p:worst": gauges, "p:even": gauges,
		"p:info": {{Type: metric.Info, Labels: labels("size", "16", "name", "m")}, {Type: metric.Info,
			Labels: labels("size", "4")}},
	}
}

func stretch() *quantity.Interval {
	return &quantity.Interval{Seconds: 10, EndNS: 100e9, SliceSeconds: []float64{4, 6}}
}

// say evaluates a formula and spells all results.
func say(t *testing.T, w world, src, when, enabled string, by ...string) string {
	t.Helper()
	e, err := quantity.Parse(src, w)
	if err != nil {
		return "error " + err.Error()
	}
	f := quantity.Formula{Is: e, By: by}
	for _, g := range []struct {
		src string
		out **quantity.Guard
	}{{when, &f.When}, {enabled, &f.Enabled}} {
		if g.src == "" {
			continue
		}
		if *g.out, err = quantity.ParseGuard(g.src, w); err != nil {
			return "error " + err.Error()
		}
	}
	var out []string
	for _, b := range f.Bind(w) {
		r, ok := b.Eval(stretch())
		if !ok {
			continue
		}
		text := fmt.Sprintf("%s %v", r.Status, r.Value)
		if b.Labels.Len() > 0 {
			text = b.Labels.String() + " " + text
		}
		if r.HasParts {
			text += fmt.Sprintf(" of %v/%v", r.Numerator, r.Denominator)
		}
		for _, flag := range []struct {
			is   bool
			name string
		}{{r.Negative, "negative"}, {r.Resets, "resets"}, {r.Disabled, "disabled"}} {
			if flag.is {
				text += " " + flag.name
			}
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// Every form of the grammar, by hand.
func TestFormulas(t *testing.T) {
	w := server()
	for _, c := range [][2]string{
		{"increase(c)", "ok 40"}, {"rate(c)", "ok 4 of 40/10"}, {`increase(c{k="x"})`, "ok 10"},
		{`increase(c{k!="x"})`, "ok 30"}, {`increase(c{k=~"x|z"})`, "ok 10"}, {`increase(c{k="x", w="9"})`, "ok 10"},
		{`increase(c{k="none"})`, ""}, {"increase(other.c)", "ok 5"}, {"speed", "ok 4 of 40/10"},
		{"speed * time", "ok 40"}, {"sum(h)", "ok 16"}, {"count(h)", "ok 8"}, {"mean(h)", "ok 2 of 16/8"},
		{"overflow(h)", "ok 0.25 of 2/8"}, {"over(h)", "ok 2"}, {"above(h, 1)", "ok 0.5 of 4/8"},
		{"above(h, 1.5)", "estimate 0.375 of 3/8"}, {"over(h, 2)", "ok 2"},
		{"avg(g)", "ok 6 of 60/10"}, {"avg(worst)", "ok 4 of 40/10"}, {"avg(even)", "ok 3 of 30/10"},
		{"avg(g) / avg(worst)", "ok 1.5 of 6/4"}, {"area(g)", "ok 60"}, {"peak(g)", "bound 12"}, {"peak(worst)",
			"ok 8"},
		{`peak(g{w="a"})`, "ok 4"}, {"low(g)", "bound 3"}, {"first(g)", "ok 3"}, {"last(g)", "ok 12"},
		{"delta(g)", "ok 9"},
		{"delta(c)", "ok 40"}, {"last(c)", "ok 42"}, {"changed(g)", "ok 2"}, {"series(g)", "ok 2"},
		{"time_above(g, 2)", "bound 0.25"}, {`label(info, "size")`, "ok 20"}, {`label(info, "name")`, ""},
		{"busy(count(steps))", "ok 0.4 of 4/10"}, {"busy_time(count(steps)) / count(steps)", "ok 1 of 4/4"},
		{"share(increase(c), by=k)", `{k="x"} ok 0.25 of 10/40; {k="y"} ok 0.75 of 30/40`},
		{"share(increase(c), of=increase(d), by=w)",
			`{w="9"} zero_denominator 0 of 10/0; {w="10"} zero_denominator 0 of 30/0`},
		{"skew(increase(c), by=k)", "ok 1.5 of 30/20"}, {"skew(increase(d), by=k)", ""},
		{"first_of(increase(none), increase(c))", "ok 40"}, {"first_of(increase(none), increase(none) + 1)", ""},
		{"first_of(increase(none) + increase(c), estimate(increase(d)))", "estimate 0"},
		{"first_of(increase(none) / increase(c), increase(none))", "missing 0"},
		{"increase(c) + opt(increase(none))", "ok 40"}, {"opt(increase(none))", ""},
		{"1 + opt(increase(c) / increase(d))", "ok 1"}, {"increase(c) + increase(none)", "missing 0"},
		{"increase(c) / increase(d)", "zero_denominator 0 of 40/0"}, {"estimate(rate(c))", "estimate 4 of 40/10"},
		{"bound(increase(c))", "bound 40"}, {"clamp0(increase(d) - increase(c))", "ok -40 negative"},
		{"floor(avg(worst) / avg(even))", "ok 1"}, {`speed / input("peak")`, "ok 1 of 40/40"},
		{`input("none") * 1`, ""},
		{`increase(c) * input("none")`, ""}, {"end - last(g)", "ok 88"}, {"-increase(c) - -2", "ok -38"},
		{"(increase(c) - 4) / 2 * 1e-3", "ok 0.018000000000000002"}, {"increase(c) - 1 - 2", "ok 37"},
		{"increase(c) - (1 - 2)", "ok 41"}, {"8 / 4 / increase(other.c)", "ok 0.4 of 2/5"},
	} {
		if got := say(t, w, c[0], "", ""); got != c[1] {
			t.Errorf("%s: %s, want %s", c[0], got, c[1])
		}
	}
	if got := say(t, w, "rate(c)", "", "", "w"); got != `{w="9"} ok 1 of 10/10; {w="10"} ok 3 of 30/10` {
		t.Errorf("by a number: %s", got)
	}
	if got := say(t, w, `opt(increase(c{k!="x"})) / increase(c)`, "", "", "k"); got !=
		`{k="x"} ok 0 of 0/10; {k="y"} ok 1 of 30/30` {
		t.Errorf("what a term leaves out: %s", got)
	}
}

func TestGuards(t *testing.T) {
	w := server()
	for guard, want := range map[string]bool{
		"named(c)": true, "named(none)": false, "not named(none)": true, `named(c{k="z"})`: false,
		"increase(c) == 40": true,
		"increase(c) != 40": false, "increase(c) < 40": false, "increase(c) <= 40": true, "increase(c) > 39": true,
		"increase(c) >= 41": false, "increase(none) == 0": false, "not increase(none) > 0": true,
		"increase(c) / increase(d) > 0": false, "named(none) and named(c)": false, "named(none) or named(c)": true,
		"named(c) and named(none) or series(g) == 2": true, "series(g) - 1 == 1": true,
	} {
		if got := say(t, w, "increase(c)", guard, ""); (got == "ok 40") != want {
			t.Errorf("when %s: %q, want a result: %v", guard, got, want)
		}
		if got := say(t, w, "increase(c)", "",
			guard); (got == "ok 40") != want || !want && got != "missing 0 disabled" {
			t.Errorf("enabled %s: %q", guard, got)
		}
	}
}

// The worst status of the parts wins, and what happened is told beside it.
func TestStatuses(t *testing.T) {
	w := server()
	w["p:c"][0].Resets = 1
	for src, want := range map[string]string{"increase(c)": "reset_corrected 40",
		"estimate(increase(c))":        "estimate 40 resets",
		"increase(c) + increase(none)": "missing 0", "increase(c) / increase(d)": "zero_denominator 0 of 40/0"} {
		if got := say(t, w, src, "", ""); got != want {
			t.Errorf("%s: %s, want %s", src, got, want)
		}
	}
	w["p:other.c"][0].Born = true
	if got := say(t, w, "increase(c) + increase(other.c)", "", ""); got != "born_in_window 45 resets" {
		t.Errorf("born and restarted: %s", got)
	}
	w["p:h"][0].Buckets = nil
	if got := say(t, w, "overflow(h)", "", "") + say(t, w, "above(h, 1)", "", ""); got != "missing 0" {
		t.Errorf("without buckets: %s", got)
	}
	w["p:h"][0].HasSum = false
	if got := say(t, w, "mean(h)", "", ""); got != "missing 0" {
		t.Errorf("without a sum: %s", got)
	}
	for s := quantity.OK; s <= quantity.Refused; s++ {
		if back,
			ok := quantity.ParseStatus(s.String()); !ok || back != s || s.Defined() != (s < quantity.ZeroDenominator) {
			t.Errorf("status %v", s)
		}
	}
}

// What is wrong is told with its place.
func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		src  string
		at   int
		want string
	}{
		{"increase(g)", 0,
			"increase() wants a counter; g is a gauge: use area, avg, changed, delta, first, last, low, peak, " +
				"time_above"},
		{"1 + mean(c)", 4, "mean() wants a histogram; c is a counter: use delta, first, increase, last, rate"},
		{"increase(x)", 9, "there is no family x"}, {"increase(c", 10, `want ")" before the end`},
		{"incr(c)", 0, "there is no function incr"}, {"speedy", 0, "there is no quantity speedy"},
		{"rate(c) rate(d)", 8, `unexpected "rate(d)"`}, {"1 + ", 4, "want a name before the end"},
		{`increase(c{k"x"})`, 12, "want =, != or =~"}, {`increase(c{k=x})`, 13, "want a text in quotes"},
		{`increase(c{k=~"("})`, 14, "missing closing"}, {"increase(c) + increase(blocks)", 30,
			"tokens and blocks cannot"},
		{"share(increase(c))", 0, "share() wants one term, and by=LABEL"}, {"skew(increase(c) + 1, by=k)", 0,
			"skew() wants"},
		{"share(increase(c), to=k)", 19, "want by=LABEL"},
		{"1 - share(increase(c), by=k)", 28, "no part of another formula: it has a result for each k"},
		{"busy(increase(c) + 1)", 0, "want one term"},
		{"time_above(g, 7)", 0, "has no level 7"}, {"1.2.3 * time", 0, "is no number"}, {"0x10 * time", 0,
			"is no number"},
		{strings.Repeat("(", 40) + "1", 32, "deeper than 32"}, {strings.Repeat("1+", 3000) + "1", 4096, "longer than"},
		{strings.Repeat("rate(c)+", 70) + "1", 512, "more than 64 terms"}, {"", 0, "want a name"}, {"é", 0,
			"want a name"},
	} {
		_, err := quantity.Parse(c.src, server())
		var e *quantity.Error
		if !errors.As(err, &e) || e.Offset != c.at || !strings.Contains(e.Text, c.want) {
			t.Errorf("%.40s: %v at %+v, want %q at %d", c.src, err, e, c.want, c.at)
		}
	}
	for _, src := range []string{"", "share(increase(c), by=k) > 1",
		"increase(c)", "named(x)", "named(c) and", "1 < 2 3", "named c", "not", "1 = 1"} {
		if _, err := quantity.ParseGuard(src, server()); err == nil {
			t.Errorf("the guard %q is none", src)
		}
	}
	for unit, ok := range map[string]bool{"tokens/s": true, "tokens/joule": false, "seconds": false, "": true,
		"1/s": true} {
		e, err := quantity.Parse("rate(c)", server())
		if err != nil || (e.Fits(unit) == nil) != ok {
			t.Errorf("tokens by seconds in %q: %v, want %v", unit, e.Fits(unit), ok)
		}
	}
}

func TestText(t *testing.T) {
	for src, want := range map[string]string{
		"rate(c)": "p:c / time", "mean(h)": "p:h_sum / p:h_count", "avg(g)": "mean of p:g", "peak(g)": "max of p:g",
		`increase(c{k="x"}) / (increase(c) + increase(d))`: "p:c{k=x} / (p:c + p:d)",
		"first_of(rate(c), estimate(rate(d)))":             "p:c / time, or else p:d / time",
		"1e-9 * increase(c) / time":                        "1e-09 * p:c / time",
		"opt(increase(c)) - (increase(d) - 1)":             "p:c (if any) - (p:d - 1)",
		"share(increase(c), by=k)":                         "p:c by k / p:c",
		"skew(increase(c), by=k)":                          "largest / mean of p:c by k",
		"busy(count(steps))":                               "slices with p:steps_count > 0 / slices",
		"time_above(g, 2)":                                 "share of the time with p:g > 2",
		"speed / input(\"peak\")":                          "p:c / time / peak", "label(info, \"size\")": "size of p:info",
	} {
		e, err := quantity.Parse(src, server())
		if err != nil || e.Text() != want {
			t.Errorf("%s: %q %v, want %q", src, e.Text(), err, want)
		}
	}
}

// FuzzParse: no panic, and what a formula writes of itself is read as the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"rate(c)", `share(increase(c{k=~"a|b"}), of=count(h), by=k)`,
		"-(1 + 2) * time - -3 / end",
		"first_of(clamp0(mean(h)), opt(avg(g)), estimate(above(h, -1e3)))", "skew(avg(g), by=w)", "overflow(h) / speed",
		`busy_time(count(steps)) / label(info, "size")`, "time_above(g, 2)", "floor(bound(peak(worst)))", "over(h, 2)",
		`input("peak") * delta(c) + series(h) - changed(g)`, "not named(c) and 1 < 2 or avg(g) >= 0", "((((",
		"\x00", "1e", "--1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		defer fuzzbound.Check(t)()
		if g, err := quantity.ParseGuard(src, server()); err == nil && g.String() != src {
			t.Errorf("the guard %q is %q", src, g)
		}
		e, err := quantity.Parse(src, server())
		if err != nil {
			return
		}
		again, err := quantity.Parse(e.String(), server())
		if err != nil || again.String() != e.String() || again.Text() != e.Text() {
			t.Fatalf("%q is %q, which is %v %v", src, e, again, err)
		}
		for _, b := range (&quantity.Formula{Is: e}).Bind(server()) {
			b.Eval(stretch())
		}
	})
}

// TestUnion: a quotient over two disjoint lots of series is the quotient of their
// sums, whatever the numbers.
func TestUnion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lot := func(name string) []*quantity.Gain {
			var out []*quantity.Gain
			for i, v := range rapid.SliceOfN(rapid.IntRange(0, 1000), 0, 4).Draw(t, name) {
				out = append(out, &quantity.Gain{Type: metric.Counter, Total: float64(v), Labels: labels("i",
					fmt.Sprint(i))})
			}
			return out
		}
		a, b := world{"p:c": lot("ac"), "p:d": lot("ad")}, world{"p:c": lot("bc"), "p:d": lot("bd")}
		both := world{}
		for _, name := range []string{"p:c", "p:d"} {
			both[name] = slices.Concat(a[name], b[name])
		}
		e, err := quantity.Parse("opt(increase(c)) / opt(increase(d))", both)
		if err != nil {
			t.Fatal(err)
		}
		part := func(w world) (r quantity.Result) {
			r, _ = (&quantity.Formula{Is: e}).Bind(w)[0].Eval(stretch())
			return r
		}
		x, y, all := part(a), part(b), part(both)
		if all.Numerator != x.Numerator+y.Numerator || all.Denominator != x.Denominator+y.Denominator {
			t.Fatalf("%+v and %+v make %+v", x, y, all)
		}
		if all.Denominator > 0 && all.Value != all.Numerator/all.Denominator {
			t.Fatalf("%+v", all)
		}
	})
}

// TestEvalAllocations: the evaluation of a bound formula allocates nothing.
func TestEvalAllocations(t *testing.T) {
	w, s := server(), stretch()
	for _, src := range []string{"rate(c)", "mean(h) + above(h, 1.5)", "skew(increase(c), by=k)",
		"first_of(rate(none), avg(g))",
		"clamp0(busy_time(count(steps)) - time)", `speed / input("peak")`} {
		e, err := quantity.Parse(src, w)
		if err != nil {
			t.Fatal(err)
		}
		g, err := quantity.ParseGuard("named(c) and increase(c) > 0", w)
		if err != nil {
			t.Fatal(err)
		}
		b := (&quantity.Formula{Is: e, When: g, Enabled: g}).Bind(w)[0]
		if n := testing.AllocsPerRun(100, func() { b.Eval(s) }); n != 0 {
			t.Errorf("%s: %v allocations", src, n)
		}
	}
}

package sweep_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/sweep"
)

// drawPoints draws points of a run, some of which lack something.
func drawPoints(t *rapid.T) []sweep.Point {
	n := rapid.IntRange(1, 12).Draw(t, "points")
	out := make([]sweep.Point, n)
	for i := range out {
		load := float64(rapid.IntRange(1, 8).Draw(t, "load"))
		growth := rapid.SampledFrom([]float64{0, 0, 0, 0.02, 0.5, 2}).Draw(t, "growth")
		p := sweep.Point{Load: load, X: rapid.Float64Range(0.1, 8).Draw(t, "x"), Seconds: 60, Slice: 2,
			StartNS: int64(i), Follows: rapid.IntRange(0, i).Draw(t, "follows"), Arrivals: load,
			Values: map[string]sweep.Value{}}
		slices60 := rapid.SampledFrom([]int{0, 9, 30, 60}).Draw(t, "slices")
		for j := range slices60 {
			p.Waiting = append(p.Waiting, growth*float64(j)+rapid.Float64Range(0, 0.5).Draw(t, "noise"))
			p.Running = append(p.Running, rapid.SampledFrom([]float64{4, 5, 5, 6, math.NaN()}).Draw(t, "running"))
		}
		for _, row := range []string{"ttft_mean", "ttft_p99", "e2e_mean"} {
			if v := rapid.Float64Range(0.01, 2).Draw(t, row); rapid.IntRange(0, 9).Draw(t, "shown") > 0 {
				p.Values[row] = sweep.Value{Value: v, Low: v * 0.8, High: v * 1.2, Weight: 10 * v}
			}
		}
		if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
			p.Restarts = 1
		}
		out[i] = p
	}
	return out
}

var limits = []sweep.SLO{{Text: "a", Row: "ttft_p99", Limit: 0.5}, {Text: "b", Row: "e2e_mean", Limit: 1}}

// TestOrder: the order in which points come changes nothing.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		points := drawPoints(t)
		want := bytesOf(t, sweep.Analyse("a", sweep.PerSecond, points, limits))
		order := rapid.Permutation(indices(len(points))).Draw(t, "order")
		shuffled, to := make([]sweep.Point, len(points)), make([]int, len(points)+1)
		for at, i := range order {
			shuffled[at], to[i+1] = points[i], at+1
		}
		for i := range shuffled {
			shuffled[i].Follows = to[shuffled[i].Follows]
		}
		if got := bytesOf(t, sweep.Analyse("a", sweep.PerSecond, shuffled, limits)); got != want {
			t.Fatalf("%s\nwant\n%s", got, want)
		}
	})
}

func indices(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

// bytesOf is what a sweep says, without the numbers of the input.
func bytesOf(t *rapid.T, s *sweep.Sweep) string {
	type point struct {
		Load   float64
		State  sweep.State
		X, Low float64
		Limit  string
	}
	all := struct {
		Points   []point
		Capacity [4]string
		Knee     *sweep.Knee
		SLO      []string
	}{Knee: s.Knee}
	for _, p := range s.Points {
		low := p.Values["ttft_p99"].Low
		if math.IsNaN(low) {
			low = -1
		}
		all.Points = append(all.Points, point{p.Load, p.State, p.X, low, p.Limit})
	}
	number := func(v float64) string { return string(jsonOf(t, math.Float64bits(v))) }
	c := &s.Capacity
	all.Capacity = [4]string{c.Status, number(c.X), number(c.Low), string(jsonOf(t, c.Doubted))}
	for _, b := range s.SLO {
		all.SLO = append(all.SLO, b.Status, number(b.Low), number(b.High), number(b.Load), number(b.Moved))
	}
	return string(jsonOf(t, all))
}

func jsonOf(t *rapid.T, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestOracle holds capacity, knee and brackets against definitions that look at every pair of points.
func TestOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sweep.Analyse("a", sweep.PerSecond, drawPoints(t), limits)
		oracleCapacity(t, s)
		oracleKnee(t, s)
		for i := range s.SLO {
			oracleBracket(t, s, &s.SLO[i])
		}
		for _, load := range []float64{0.5, 2, 5, 9} {
			oracleRequire(t, s, load)
		}
	})
}

func oracleCapacity(t *rapid.T, s *sweep.Sweep) {
	var above []float64
	anyOver, most := false, math.Inf(-1)
	for _, p := range s.Points {
		if p.State != sweep.Restart {
			most = max(most, p.X)
		}
		if p.State != sweep.Over {
			continue
		}
		anyOver = true
		if !slices.ContainsFunc(s.Points, func(q sweep.Point) bool { return q.State == sweep.Stable && q.Load >= p.Load }) {
			above = append(above, p.X)
		}
	}
	c := &s.Capacity
	switch {
	case len(above) > 0:
		sum := 0.0
		for _, x := range above {
			sum += x
		}
		if c.Status != sweep.Reached || math.Abs(c.X-sum/float64(len(above))) > 1e-9 || c.Low >= c.High {
			t.Fatalf("%+v, want the mean of %v", c, above)
		}
	case anyOver:
		if c.Status != sweep.Inconsistent {
			t.Fatalf("%+v", c)
		}
	case c.Status != sweep.NotReached || !math.IsInf(most, -1) && c.X != most:
		t.Fatalf("%+v, want at least %v", c, most)
	}
}

func oracleKnee(t *rapid.T, s *sweep.Sweep) {
	usable := func(p *sweep.Point) bool {
		return p.State != sweep.Draining && p.State != sweep.Restart && p.Values["e2e_mean"].Value > 0
	}
	for i := range s.Points {
		p := &s.Points[i]
		if !usable(p) {
			if s.Knee != nil && s.Knee.Load == p.Load {
				t.Fatalf("the knee is at %v, which is %s", p.Load, p.State)
			}
			continue
		}
		if s.Knee == nil {
			t.Fatal("no knee")
		}
		k := s.Points[slices.IndexFunc(s.Points, func(q sweep.Point) bool { return q.Load == s.Knee.Load })]
		if k.X/k.Values["e2e_mean"].Value < p.X/p.Values["e2e_mean"].Value {
			t.Fatalf("%v does more for its time than %v", p.Load, k.Load)
		}
	}
}

// oracleBracket: no load up to Low is known to miss the limit without the help of its neighbours, none above High is
// said to hold, and both ends are loads of the sweep.
func oracleBracket(t *rapid.T, s *sweep.Sweep, b *sweep.Bracket) {
	if b.Low >= b.High {
		t.Fatalf("%+v", b)
	}
	for _, p := range s.Points {
		if p.State == sweep.Over && p.Load <= b.Low && len(p.Values) > 0 && p.Values[b.Row].Why == "" {
			if _, ok := p.Values[b.Row]; ok {
				t.Fatalf("%v is over-saturated, and %s holds up to %v", p.Load, b.Row, b.Low)
			}
		}
	}
	if b.Status == sweep.AllPass != (math.IsNaN(b.High) && len(b.Undecided) == 0 && !math.IsNaN(b.Low)) {
		t.Fatalf("%+v", b)
	}
}

// oracleRequire: a load is taken only where a steady point of at least that load keeps every limit.
func oracleRequire(t *rapid.T, s *sweep.Sweep, load float64) {
	takes := true
	for _, b := range s.SLO {
		takes = takes && b.Low >= load && b.LowState == sweep.Stable
	}
	if got := s.Require(load); (got == sweep.Takes) != takes {
		t.Fatalf("require %v: %v of %+v", load, got, s.SLO)
	}
}

// TestStates: what no engine shows, and what is of several lives, is never called stable.
func TestStates(t *testing.T) {
	steady := func() sweep.Point {
		return sweep.Point{Load: 1, X: 1, Seconds: 60, Slice: 2, Waiting: make([]float64, 30),
			Running: slices.Repeat([]float64{3}, 30)}
	}
	for name, c := range map[string]struct {
		change func(*sweep.Point)
		unit   string
		want   sweep.State
	}{
		"steady":       {func(*sweep.Point) {}, sweep.PerSecond, sweep.Stable},
		"no waiting":   {func(p *sweep.Point) { p.Waiting = nil }, sweep.PerSecond, sweep.Unknown},
		"no running":   {func(p *sweep.Point) { p.Running = nil }, sweep.PerSecond, sweep.Unknown},
		"no requests":  {func(p *sweep.Point) { p.X = 0 }, sweep.PerSecond, sweep.Unknown},
		"no rate":      {func(p *sweep.Point) { p.X = math.NaN() }, sweep.PerSecond, sweep.Unknown},
		"doubtful":     {func(p *sweep.Point) { p.Doubt = "ambiguous" }, sweep.PerSecond, sweep.Unknown},
		"short":        {func(p *sweep.Point) { p.Waiting = p.Waiting[:9] }, sweep.PerSecond, sweep.Unknown},
		"a gap":        {func(p *sweep.Point) { p.Running[1] = math.NaN() }, sweep.PerSecond, sweep.Stable},
		"a large gap":  {func(p *sweep.Point) { hide(p.Running[6:9]) }, sweep.PerSecond, sweep.Unknown},
		"two lives":    {func(p *sweep.Point) { p.Restarts = 1 }, sweep.PerSecond, sweep.Restart},
		"closed":       {func(*sweep.Point) {}, sweep.Concurrent, sweep.Stable},
		"closed, full": {func(p *sweep.Point) { fill(p.Waiting, 0.5) }, sweep.Concurrent, sweep.AtLimit},
	} {
		p := steady()
		c.change(&p)
		if got := sweep.Analyse("", c.unit, []sweep.Point{p}, nil).Points[0]; got.State != c.want ||
			got.State == sweep.Unknown != (got.Why != "") {
			t.Errorf("%s: %s (%s), want %s", name, got.State, got.Why, c.want)
		}
	}
}

func hide(list []float64) { fill(list, math.NaN()) }

func fill(list []float64, v float64) {
	for i := range list {
		list[i] = v
	}
}

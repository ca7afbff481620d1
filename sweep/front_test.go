package sweep_test

import (
	"testing"

	"github.com/scrapestat/scrapestat/sweep"
)

// TestMarkFront: of steady points with both numbers those that no other one beats are the front; equal ones are both
// kept, and what is not steady or has no number is neither.
func TestMarkFront(t *testing.T) {
	point := func(state sweep.State, tok, itl float64) sweep.Point {
		return sweep.Point{State: state,
			Values: map[string]sweep.Value{"output_tok_s": exactly(tok), "itl_mean": exactly(itl)}}
	}
	a := &sweep.Sweep{GPUs: 2, Points: []sweep.Point{point(sweep.Stable, 400, 0.01), point(sweep.Stable, 800, 0.02),
		point(sweep.Stable, 600, 0.025), point(sweep.Over, 900, 0.02), {State: sweep.Stable}}}
	b := &sweep.Sweep{GPUs: 1, Points: []sweep.Point{point(sweep.Stable, 400, 0.02), point(sweep.Stable, 500, 0.05)}}
	none := &sweep.Sweep{Points: []sweep.Point{point(sweep.Stable, 4000, 0.001)}}
	sweep.MarkFront([]*sweep.Sweep{a, b, none})
	for i, want := range []string{"front", "front", "dominated", "", ""} {
		if got := a.Points[i].Front; got != want {
			t.Errorf("point %d of a is %q, want %q", i, got, want)
		}
	}
	if b.Points[0].Front != "front" || b.Points[1].Front != "front" || none.Points[0].Front != "" {
		t.Errorf("%q %q %q", b.Points[0].Front, b.Points[1].Front, none.Points[0].Front)
	}
}

// exactly is a value that is known.
func exactly(v float64) sweep.Value { return sweep.Value{Value: v, Low: v, High: v} }

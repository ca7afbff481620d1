package traffic

import "testing"

// ramp is a load of n polls that rises for a tenth and falls for a fifth of them.
func ramp(n int, level bool) *profile {
	var p profile
	began := 0.0
	for i := range n {
		share := min(1, float64(i+1)/float64(n)*10, float64(n-i)/float64(n)*5)
		began += 40 * share
		at := 0.0
		if level {
			at = 40 * share
		}
		p.add(int64(i)*1e9, at, began)
	}
	return &p
}

// TestSlopes finds where a load rises and falls, by its levels and by how fast requests begin, in a bounded memory.
func TestSlopes(t *testing.T) {
	for _, n := range []int{100, 256, 1000, 100_000} {
		for _, level := range []bool{true, false} {
			p := ramp(n, level)
			up, down := p.slopes(0, int64(n)*1e9)
			at := func(ns int64) float64 { return float64(ns) / 1e9 / float64(n) }
			if x, y := at(up), at(down); x < .08 || x > .11 || y < .81 || y > .84 || len(p.points) > maxPoints {
				t.Errorf("%d polls, levels %v: up to %v and from %v of it, %d points", n, level, x, y, len(p.points))
			}
		}
	}
	var flat profile
	for i := range 100 {
		flat.add(int64(i)*1e9, 3, float64(i))
	}
	if up, down := flat.slopes(0, 100e9); up != 0 || down != 0 {
		t.Errorf("a load that is always the same rises up to %v and falls from %v", up, down)
	}
	if up, down := new(profile).slopes(0, 1); up != 0 || down != 0 {
		t.Errorf("no load: %v, %v", up, down)
	}
}

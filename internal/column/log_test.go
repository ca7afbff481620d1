package column_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/internal/column"
)

// TestValues checks that values of either kind come back bit for bit, and that a
// counter that grows by little takes one byte per value.
func TestValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		integer := rapid.Bool().Draw(t, "integer")
		values := rapid.SliceOf(rapid.OneOf(rapid.Uint64(), rapid.Map(rapid.Float64(), math.Float64bits),
			rapid.Map(rapid.Int64Range(-1<<53-2, 1<<53+2), func(n int64) uint64 { return math.Float64bits(float64(n)) }),
			rapid.Just(math.Float64bits(math.Copysign(0, -1))), rapid.Just(math.Float64bits(math.NaN())))).Draw(t, "values")
		var b []byte
		last, bits := uint64(0), uint64(0)
		for _, v := range values {
			b = column.AppendValue(b, v, integer, &last)
		}
		last = 0
		for i, v := range values {
			if bits, b = column.CutValue(b, integer, &last); bits != v {
				t.Fatalf("value %d: %x came back as %x", i, v, bits)
			}
		}
		if len(b) != 0 {
			t.Fatalf("%d bytes are left", len(b))
		}
	})
	var b []byte
	last := uint64(0)
	for v := range 100 {
		b = column.AppendValue(b, math.Float64bits(float64(30*v)), false, &last)
	}
	if len(b) != 100 {
		t.Errorf("a counter of 100 values takes %d bytes", len(b))
	}
}

package live

import (
	"math"
	"strings"
)

var blocks = []rune("▁▂▃▄▅▆▇█")

// spark draws the last values in at most width characters, from 0 (or the lowest,
// if that is below) to the highest. NaN is a gap.
func spark(values []float64, width int) string {
	if len(values) > width {
		values = values[len(values)-max(width, 0):]
	}
	low, high := 0.0, math.Inf(-1)
	for _, v := range values {
		if !math.IsNaN(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	var b strings.Builder
	for _, v := range values {
		switch {
		case math.IsNaN(v):
			b.WriteByte(' ')
		case high <= low:
			b.WriteRune(blocks[0])
		default:
			b.WriteRune(blocks[min(int((v-low)/(high-low)*float64(len(blocks))), len(blocks)-1)])
		}
	}
	return b.String()
}

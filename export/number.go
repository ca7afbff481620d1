package export

import (
	"math"
	"strconv"
)

// appendFloat appends a finite float as Python's repr() prints it: the shortest text that reads back as the same
// number, always with a decimal point or an exponent, which appears below 1e-4 and from 1e16 on.
func appendFloat(b []byte, v float64) []byte {
	a := math.Abs(v)
	if a < 1<<53 && v == math.Trunc(v) && (v != 0 || !math.Signbit(v)) {
		return append(strconv.AppendInt(b, int64(v), 10), '.', '0')
	}
	if a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.AppendFloat(b, v, 'e', -1, 64)
	}
	n := len(b)
	b = strconv.AppendFloat(b, v, 'f', -1, 64)
	for _, c := range b[n:] {
		if c == '.' {
			return b
		}
	}
	return append(b, '.', '0')
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

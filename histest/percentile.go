package histest

import (
	"strconv"
	"strings"
)

// Percentile reads the name of a percentile, "p99.9", and returns the number of it; ok is false for another word.
// Nines without a point after the first two are those after it, as MLPerf writes them: p999 is p99.9.
func Percentile(name string) (p float64, ok bool) {
	digits, ok := strings.CutPrefix(name, "p")
	if len(digits) > 2 && strings.Trim(digits, "9") == "" {
		digits = "99." + digits[2:]
	}
	if !ok || strings.Trim(digits, "0123456789.") != "" {
		return 0, false
	}
	p, err := strconv.ParseFloat(digits, 64)
	return p, err == nil && p <= 100
}

// PercentileName is the name of the percentile of a share: "p99.9" of 0.999.
func PercentileName(q float64) string { return "p" + strconv.FormatFloat(q*100, 'g', 10, 64) }

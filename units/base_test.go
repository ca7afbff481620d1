package units_test

import (
	"testing"

	"github.com/scrapestat/scrapestat/units"
)

func TestBase(t *testing.T) {
	check := func(unit, base string, factor float64) {
		t.Helper()
		if b, f := units.Base(unit); b != base || f != factor {
			t.Errorf("Base(%q) is %q, %v, want %q, %v", unit, b, f, base, factor)
		}
	}
	check("seconds", "seconds", 1)
	check("milliseconds", "seconds", 1e-3)
	check("hours", "seconds", 3600)
	check("mebibytes", "bytes", 1<<20)
	check("megabytes", "bytes", 1e6)
	check("gb/s", "bytes/s", 1e9)
	check("bytes/s", "bytes/s", 1)
	check("ratio", "ratio", 1)
	check("percent", "ratio", 0.01)
	check("milliwatt", "watt", 1e-3)
	check("megajoule", "joule", 1e6)
	check("gigahertz", "hertz", 1e9)
	check("tokens", "tokens", 1)
	check("", "", 1)
}

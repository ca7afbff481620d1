package units_test

import (
	"testing"

	"github.com/scrapestat/scrapestat/units"
)

func TestKnown(t *testing.T) {
	check := func(want bool, list ...string) {
		t.Helper()
		for _, unit := range list {
			if units.Known(unit) != want {
				t.Errorf("%q: known %v", unit, !want)
			}
		}
	}
	check(true, "", "seconds", "milliseconds", "ratio", "percent", "mebibytes", "gb/s", "bytes/s", "watt", "celsius",
		"count", "tokens", "tokens/s", "tokens/joule", "1/s", "flop/B")
	check(false, "ms", "s", "sec", "Seconds", "token", "/", "/s", "tokens/", "tokens/x", "seconds ")
}

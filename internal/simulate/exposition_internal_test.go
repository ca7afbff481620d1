package simulate

import (
	"math"
	"testing"
)

// The spelling of floats is tested from inside, as no model makes all of them.
// The expected texts come from prometheus_client in Python.
func TestAppendFloat(t *testing.T) {
	check := func(v float64, want string) {
		t.Helper()
		if got := string(appendFloat(nil, v)); got != want {
			t.Errorf("appendFloat(%g): got %s, want %s", v, got, want)
		}
	}
	check(0, "0.0")
	check(math.Copysign(0, -1), "-0.0")
	check(1, "1.0")
	check(-3, "-3.0")
	check(0.30000000000000004, "0.30000000000000004")
	check(0.0001, "0.0001")
	check(0.00001, "1e-05")
	check(0.000123, "0.000123")
	check(1.5e-7, "1.5e-07")
	check(-1.5e-7, "-1.5e-07")
	check(-0.25, "-0.25")
	check(999999, "999999.0")
	check(999999.5, "999999.5")
	check(1e6, "1e+06")
	check(1234567, "1.234567e+06")
	check(1234567.25, "1.23456725e+06")
	check(74927947776, "7.4927947776e+10")
	check(1.7904702340023353e9, "1.7904702340023353e+09")
	check(-1234567.5, "-1234567.5")
	check(-1e15, "-1000000000000000.0")
	check(-1e16, "-1e+16")
	check(-12345678901234567890, "-1.2345678901234567e+19")
	check(1e16, "1e+16")
	check(1.5e300, "1.5e+300")
	check(math.Inf(1), "+Inf")
	check(math.Inf(-1), "-Inf")
	check(math.NaN(), "NaN")
}

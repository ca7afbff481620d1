package faults_test

import (
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/internal/faults"
)

// readings are n readings of which the i-th is what at returns.
func readings(n int, at func(i int) faults.Reading) (out []faults.Reading) {
	for i := range n {
		out = append(out, at(i))
	}
	return out
}

// TestSteady shows that the verdict on long runs finds what grows, and only that.
func TestSteady(t *testing.T) {
	check := func(name, want string, warm int, rs []faults.Reading) {
		t.Helper()
		d, err := faults.Steady(rs, warm)
		if err == nil {
			err = d.Check()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q (%v)", name, err, want, d)
		}
	}
	check("even", "", 5, readings(100, func(int) faults.Reading { return faults.Reading{50e6, 20, 30} }))
	check("a start that takes more", "", 20,
		readings(100, func(i int) faults.Reading { return faults.Reading{int64(90e6 / (1 + i/20)), 40 - i/10, 50 - i/10} }))
	check("a start that takes less", "", 20, readings(100, func(i int) faults.Reading {
		n := min(i, 20)
		return faults.Reading{int64(1e6 * n), n, n}
	}))
	check("a sawtooth", "", 0, readings(100, func(i int) faults.Reading {
		return faults.Reading{50e6 + int64(i%7)*1e6,
			20, 30}
	}))
	check("connections that come and go", "", 0, readings(100, func(i int) faults.Reading {
		if i%3 == 0 {
			return faults.Reading{50e6, 18 + i%7, 26 + i%9}
		}
		return faults.Reading{50e6, 20, 30}
	}))
	check("memory within 5 %", "", 0, readings(100, func(i int) faults.Reading {
		return faults.Reading{50e6 +
			int64(i)*30e3, 20, 30}
	}))
	check("memory that grows", "memory grew by 7", 0, readings(100,
		func(i int) faults.Reading { return faults.Reading{50e6 + int64(i)*50e3, 20, 30} }))
	check("a descriptor", "descriptors grew from 20 to 21", 0, readings(100,
		func(i int) faults.Reading { return faults.Reading{50e6, 20 + i/60, 30} }))
	check("a goroutine", "goroutines grew from 30 to 31", 0, readings(100,
		func(i int) faults.Reading { return faults.Reading{50e6, 20, 30 + i/60} }))
	check("too few", "2 readings after the warm-up, want 12", 98,
		readings(100, func(int) faults.Reading { return faults.Reading{50e6, 20, 30} }))
	check("nothing but a warm-up", "0 readings", 200, readings(100,
		func(int) faults.Reading { return faults.Reading{50e6, 20, 30} }))
}

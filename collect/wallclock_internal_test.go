package collect

import (
	"strings"
	"testing"
	"time"
)

// TestWallClock moves a wall clock against the monotonic one.
func TestWallClock(t *testing.T) {
	origin := time.Unix(1_700_000_000, 0)
	w := wallClock{origin: origin}
	check := func(mono, off time.Duration, want string) {
		t.Helper()
		got := ""
		if warning := w.check(origin.Add(mono+off), mono); warning != nil {
			got = warning.Text
		}
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%v after the start, off by %v: got %q, want %q", mono, off, got, want)
		}
	}
	check(time.Second, 0, "")
	check(2*time.Second, 10*time.Millisecond, "") // slewed
	check(3*time.Second, time.Hour, "set by 59m59.99s about 3s after")
	check(4*time.Second, time.Hour, "") // told once
	check(5*time.Second, -24*time.Hour, "set by -25h0m0s")
	check(6*time.Second, -24*time.Hour, "")
	check(7*time.Second, 0, "set by 24h0m0s")
}

package fuzzbound_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/fuzzbound"
)

// failures are what Check would have failed a test with.
type failures struct{ all []string }

func (*failures) Helper() {}
func (f *failures) Errorf(format string, args ...any) {
	f.all = append(f.all, fmt.Sprintf(format, args...))
}

func allocate(n int) { runtime.KeepAlive(make([]byte, n)) }

// TestCheck: what takes too long or allocates too much fails, and nothing else does.
func TestCheck(t *testing.T) {
	run := func(want string, most time.Duration, bytes uint64, body func()) {
		t.Helper()
		var f failures
		end := fuzzbound.Within(&f, most, bytes)
		body()
		end()
		if got := strings.Join(f.all, "\n"); want == "" && got != "" || !strings.Contains(got, want) || len(f.all) > 1 {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	busy := func() {
		for x := range 100_000 { // at least 50 ns each
			_ = fmt.Sprint(x)
		}
	}
	run("", time.Hour, 1<<40, busy)
	run("processor time", time.Millisecond, 1<<40, busy)
	run("", time.Hour, 32<<20, func() { allocate(1 << 20) })
	run("allocated", time.Hour, 32<<20, func() { allocate(64 << 20) })
	run("allocated", time.Hour, 32<<20, func() {
		for range 1024 { // in pieces that are free again at once
			allocate(256 << 10)
		}
	})
}

// Package fuzzbound holds each execution of a fuzz target to the goal that no input hangs a reader or fills the memory.
// It imports nothing of ours, so that tests inside any package can use it:
//
//	f.Fuzz(func(t *testing.T, data []byte) {
//		defer fuzzbound.Check(t)()
//
// It can only judge what comes to an end; an execution that does not is ended by Go after 10 s ("deadlocked!").
package fuzzbound

import (
	"runtime/metrics"
	"time"
)

// What an execution may take. The processor time is that of all threads; a busy machine does not make it longer. The
// bytes are those allocated in all, of which no more can be on the heap at once: half the 512 MiB of the goal, so that
// what was there before has room.
const (
	mostTime  = time.Second
	mostBytes = 256 << 20
)

// TB is the part of testing.TB that Check needs.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
}

// Check begins an execution; the function that it returns ends it, and fails the test when it took too much.
func Check(t TB) (end func()) { return Within(t, mostTime, mostBytes) }

// Within is Check with other bounds.
func Within(t TB, most time.Duration, bytes uint64) (end func()) {
	clock, heap := processorTime(), allocated()
	return func() {
		t.Helper()
		if d := processorTime() - clock; d > most {
			t.Errorf("the execution took %v of processor time, want at most %v", d, most)
		}
		if n := allocated() - heap; n > bytes {
			t.Errorf("the execution allocated %d bytes, want at most %d", n, bytes)
		}
	}
}

// allocated is how many bytes have been allocated on the heap so far.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

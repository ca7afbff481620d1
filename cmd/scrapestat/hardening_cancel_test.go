//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"testing"
)

// TestHardeningCancel has what a cancelled analysis still does, by the number that
// package faults lists.
func TestHardeningCancel(t *testing.T) { t.Run("K6", endsAtOnce) }

// allocated is how many bytes this process has allocated so far.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// endsAtOnce cancels the analysis of a large recording, and the writing of its exports,
// at many points: little of the work is done after that.
func endsAtOnce(t *testing.T) {
	const points = 8
	dir := declaring(t, 5000, true)
	a := analysisFlags{formats: []string{"json", "csv", "jsonl", "parquet"}}
	work := func(ctx context.Context) error {
		_, _, err := analyse(ctx, []string{dir}, a, a.options(), t.TempDir(), newProgress(io.Discard, true))
		return err
	}
	begin := allocated()
	if err := work(t.Context()); err != nil {
		t.Fatal(err)
	}
	total := allocated() - begin
	for i := range points {
		rest, err := cancelled(t, work, total*uint64(i)/points)
		for range 4 { // on a busy machine all may be done before anybody sees that it is time
			if err == nil {
				rest, err = cancelled(t, work, total*uint64(i)/points)
			}
		}
		if !errors.Is(err, context.Canceled) || rest > total/10 {
			t.Errorf("cancelled after %d of %d parts: %v; %.0f %% of the work came after that", i, points, err,
				100*float64(rest)/float64(total))
		}
	}
}

// cancelled cancels work when it has allocated so many bytes, and returns how many it allocated after that.
func cancelled(t *testing.T, work func(context.Context) error, after uint64) (rest uint64, err error) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	at := make(chan uint64, 1)
	var ended atomic.Bool
	begin := allocated()
	go func() {
		for allocated()-begin < after && !ended.Load() {
			runtime.Gosched()
		}
		cancel()
		at <- allocated()
	}()
	err = work(ctx)
	ended.Store(true)
	return allocated() - <-at, err
}

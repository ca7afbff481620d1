//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"runtime"
	"runtime/metrics"
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
		ctx, cancel := context.WithCancel(t.Context())
		at := make(chan uint64, 1)
		begin := allocated()
		go func() {
			for allocated()-begin < total*uint64(i)/points {
				runtime.Gosched()
			}
			cancel()
			at <- allocated()
		}()
		err := work(ctx)
		if rest := allocated() - <-at; !errors.Is(err, context.Canceled) || rest > total/10 {
			t.Errorf("cancelled after %d of %d parts: %v; %.0f %% of the work came after that", i, points, err,
				100*float64(rest)/float64(total))
		}
	}
}

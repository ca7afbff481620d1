package main

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// A bar is seen on a terminal only, says how much is done and left, and is gone
// when the work is; it takes calls from all sides.
func TestBar(t *testing.T) {
	var out bytes.Buffer
	for _, p := range []*progress{{w: &out}, {w: &out, term: true, quiet: true}} {
		b := p.bar("reading run")
		b.total(10)
		b.add(5)
		b.done()
	}
	if out.Len() > 0 {
		t.Errorf("without a terminal, or quiet: got %q, want nothing", out.String())
	}
	p := &progress{w: &out, term: true}
	b := p.bar("reading run")
	b.total(1000)
	b.add(100) // too early: short work shows nothing
	b.started = time.Now().Add(-time.Minute)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				b.add(1)
			}
		})
	}
	all.Wait()
	if got := out.String(); !strings.HasPrefix(got, "\r\x1b[Kreading run  [###...........................]  10 %") ||
		!strings.Contains(got, " left") || strings.Contains(got, "\n") {
		t.Errorf("got %q, want one line with a bar at 10 %%", got)
	}
	b.done()
	if got := out.String(); !strings.HasSuffix(got, "\r\x1b[K") || p.open {
		t.Errorf("got %q, want it to end with the line cleared", got)
	}
	for part, want := range map[float64]string{-1: "  0 %", 0: "  0 %", 0.5: " 50 %", 2: "100 %"} {
		if got := meter(part); !strings.HasSuffix(got, want) || len(got) != barWidth+8 {
			t.Errorf("meter(%v): got %q, want %q at its end", part, got, want)
		}
	}
}

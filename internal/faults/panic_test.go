package faults_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/scrapestat/scrapestat/internal/badserver"
	"github.com/scrapestat/scrapestat/internal/faults"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/scrape"
)

// TestPanicIsSeen: a panic while one target is decoded costs that poll alone, the
// recording names it, other targets go on, and the rules do not hold then. So no
// test or chaos run that checks them passes with a panic.
func TestPanicIsSeen(t *testing.T) {
	var targets []scrape.Target
	for range 2 {
		srv, err := badserver.Start(badserver.Options{Script: badserver.Steps(false, plainAnswer("a 1\n"),
			plainAnswer("a 2\nb 2\n"), plainAnswer("a 3\nb 3\n"), plainAnswer("a 4\nb 4\n"))})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		targets = append(targets, scrape.Target{URL: "http://" + srv.Addr + "/metrics"})
	}
	var struck atomic.Bool
	targets[0].Relabel = func(name string, l metric.Labels) (string, metric.Labels, bool) {
		if name == "b" && struck.CompareAndSwap(false, true) {
			panic("injected")
		}
		return name, l, true
	}
	s := collect(t, targets, 4, scrape.Options{}, nil)
	for i, want := range [][]metric.Outcome{{metric.OK, metric.NotPrometheus, metric.OK, metric.OK}, all(metric.OK, 4)} {
		for k, p := range s.polls[i] {
			if k >= len(want) || p.Outcome != want[k] {
				t.Errorf("target %d, poll %d: %v %q, want %v", i, k, p.Outcome, p.Err, want)
			}
		}
	}
	r, err := rundb.Open(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	named := 0
	for p, err := range r.Snapshots(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if p.Err == metric.InternalError+": injected" {
			named++
		}
	}
	if named != 1 {
		t.Errorf("%d polls of the recording name the panic, want one", named)
	}
	accounts, err := faults.Accounts(t.Context(), s.dir)
	if err == nil || strings.Count(err.Error(), metric.InternalError) != 1 {
		t.Errorf("the rules hold of a recording with a panic: %v", err)
	}
	if len(accounts) != 2 || accounts[0].Lines != 5 || accounts[1].Lines != 7 {
		t.Errorf("lines of the other polls: %+v", accounts)
	}
}

package main

import (
	"context"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/scrapestat/scrapestat/rundb"
)

// cmdWaitFor is `waitfor RUN POLLS`: it waits until so many polls of the first
// target are recorded, so that scripts can act in the middle of a run without
// guessing how long something takes.
func cmdWaitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waitfor RUN POLLS")
	}
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	if !waitForPolls(ts.MkAbs(args[0]), want) {
		ts.Fatalf("%s has not recorded %d polls after %v", args[0], want, patience)
	}
}

// patience is how long a test waits for another process.
const patience = 30 * time.Second

// waitForPolls reports whether the first target of the run had so many stored
// polls within patience.
func waitForPolls(dir string, want int) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if n, err := countStored(dir); err == nil && n >= want {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

// countStored returns how many polls of the first target delivered samples.
func countStored(dir string) (int, error) {
	r, err := rundb.Open(dir)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	n := 0
	for s, err := range r.Snapshots(context.Background(), 0) {
		if err != nil {
			return n, err
		}
		if s.Outcome.Stored() {
			n++
		}
	}
	return n, nil
}

package main

import (
	"context"
	"io"
	"net/http"
	"regexp"
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

// cmdWaitAnswer is `waitanswer URL REGEXP`: it waits until what the server answers
// matches.
func cmdWaitAnswer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waitanswer URL REGEXP")
	}
	want, err := regexp.Compile(args[1])
	ts.Check(err)
	matches := func() bool {
		resp, err := http.Get(args[0])
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return err == nil && want.Match(body)
	}
	if !waitUntil(matches) {
		ts.Fatalf("%s answered nothing like %s within %v", args[0], want, patience)
	}
}

// patience is how long a test waits for another process.
const patience = 30 * time.Second

// waitForPolls reports whether the first target of the run had so many stored
// polls within patience.
func waitForPolls(dir string, want int) bool {
	return waitUntil(func() bool {
		n, err := countStored(dir)
		return err == nil && n >= want
	})
}

// waitUntil reports whether done was true within patience.
func waitUntil(done func() bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if done() {
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

package events_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// TestHardening has what request events outlive, by the numbers that package faults lists.
func TestHardening(t *testing.T) {
	t.Run("K1", func(t *testing.T) {
		t.Run("write errors", eventsAreHeld)
		t.Run("no end", eventsGivenUp)
		t.Run("directory removed", eventsFollowTheFile)
	})
}

// altered runs a statement on the recording in dir by a connection of its own.
func altered(t *testing.T, dir, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, rundb.FileName)+"?_pragma=busy_timeout(20000)")
	if err == nil {
		_, err = db.Exec(statement)
	}
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

const (
	breakEvents = "CREATE TRIGGER broken BEFORE INSERT ON events BEGIN " +
		"SELECT RAISE(ABORT, 'database or disk is full'); END"
	mendEvents = "DROP TRIGGER broken"
)

// tell records n events, from the given number on.
func tell(r *events.Recorder, from, n int) {
	for i := range n {
		r.Record(metric.Event{Sample: strconv.Itoa(from + i), Type: events.SampleNext})
	}
}

// failing waits until a write has been tried that failed.
func failing(t *testing.T, r *events.Recorder) {
	t.Helper()
	for range 3 { // commits of whatever waits: the second begins when the first has failed
		r.Flush()
		r.Anchor(t.Context(), rundb.Clock{Source: "test", UnixNS: 1})
	}
}

// eventsAreHeld has writing fail for a while: what was told then is written in its order, but for the oldest where
// there was no memory for all, which are counted.
func eventsAreHeld(t *testing.T) {
	for _, most := range []int64{1 << 20, 10_000} {
		dir := t.TempDir()
		r := newRecorder(t, dir, events.RecorderOptions{MaxBytes: most})
		tell(r, 0, 50)
		altered(t, dir, breakEvents)
		tell(r, 50, 1000)
		failing(t, r)
		tell(r, 1050, 1000)
		altered(t, dir, mendEvents)
		closeRecorder(t, r)
		samples, n := stored(t, dir)
		s := stats(t, dir)
		if int64(n) != s.Recorded || s.Recorded+s.Dropped != 2050 || (s.Dropped > 0) != (most < 1<<20) {
			t.Errorf("%d bytes: %d rows, %+v", most, n, s)
		}
		if !slices.IsSortedFunc(samples, func(a, b string) int { return number(a) - number(b) }) {
			t.Errorf("%d bytes: out of order: %q", most, samples)
		}
		for i, last := range samples[max(0, len(samples)-20):] {
			if number(last) != 2030+i {
				t.Fatalf("%d bytes: the newest are not kept: %q", most, samples)
			}
		}
	}
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}

// eventsGivenUp has writing fail to the end: what could not be written is told.
func eventsGivenUp(t *testing.T) {
	dir := t.TempDir()
	r := newRecorder(t, dir, events.RecorderOptions{})
	altered(t, dir, breakEvents)
	tell(r, 0, 100)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if pending, err := r.Close(ctx); pending != 100 || err == nil {
		t.Errorf("%d pending, %v", pending, err)
	}
}

// eventsFollowTheFile removes the run directory, and the file alone, while scrapes and events are recorded: each event
// is once in what the writer of scrapes puts in its place.
func eventsFollowTheFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	remade := make(chan struct{}, 8)
	w, err := rundb.Create(dir, rundb.Meta{ID: "r", OriginNS: 1e18, Interval: time.Second}, rundb.WriterOptions{
		Retry: true, CommitEvery: time.Millisecond, OnRemade: func() error {
			select {
			case remade <- struct{}{}:
			default:
			}
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.AddTarget(metric.Target{URL: "http://a/metrics"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := newRecorder(t, dir, events.RecorderOptions{})
	for n := range 4 {
		tell(r, 100*n, 60)
		r.Flush()
		gone := dir
		if n%2 == 1 {
			gone = filepath.Join(dir, rundb.FileName)
		}
		for os.RemoveAll(gone) != nil { // a file may come meanwhile
		}
		tell(r, 100*n+60, 40)
		for again, tick := true, time.NewTicker(100*time.Millisecond); again; { // the writer looks when it writes
			if err := w.Mark(metric.Mark{Name: "m", AtNS: 1e18}); err != nil {
				t.Fatal(err)
			}
			select {
			case <-remade:
				again = false
			case <-tick.C:
			}
		}
	}
	closeRecorder(t, r)
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	samples, n := stored(t, dir)
	for i, s := range samples {
		if s != strconv.Itoa(i) {
			t.Fatalf("event %d is %s", i, s)
		}
	}
	if s := stats(t, dir); n != 400 || s.Recorded != 400 || s.Lost() != 0 {
		t.Errorf("%d events, %+v", n, s)
	}
}

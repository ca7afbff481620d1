package rundb_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// TestSlowDisk has another program hold the write lock: Record must wait when
// enough is pending, and lose nothing.
func TestSlowDisk(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, 1, rundb.WriterOptions{MaxPending: 20 << 10, CommitEvery: time.Millisecond})
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, rundb.FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	lock, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := lock.ExecContext(context.Background(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	polls := tape(0, 400, false)
	recorded := make(chan error, 1)
	go func() {
		for _, s := range polls {
			if err := w.Record(s); err != nil {
				recorded <- err
				return
			}
		}
		recorded <- nil
	}()
	select {
	case err := <-recorded:
		t.Fatalf("Record did not wait for the disk: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	if _, err := lock.ExecContext(context.Background(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(<-recorded, w.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	same(t, polls, read(t, open(t, dir), 0))
}

// TestBodies checks which bodies are kept.
func TestBodies(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, 1, rundb.WriterOptions{})
	record := func(o metric.Outcome, body string) {
		t.Helper()
		s := metric.Snapshot{Outcome: o, Body: []byte(body)}
		if err := w.Record(&s); err != nil {
			t.Fatal(err)
		}
		copy(s.Body, "overwritten")
	}
	record(metric.Timeout, "no")
	record(metric.OK, "first good")
	record(metric.OK, "second good")
	record(metric.NotPrometheus, "<html>")
	for range 9 {
		record(metric.Partial, "bad")
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, rundb.FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query("SELECT poll, bytes, zstd FROM body ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var got []string
	for rows.Next() {
		var poll, size int
		var packed []byte
		if err := rows.Scan(&poll, &size, &packed); err != nil {
			t.Fatal(err)
		}
		body, err := z.DecodeAll(packed, nil)
		if err != nil || len(body) != size {
			t.Fatalf("poll %d: %d bytes, %v, want %d", poll, len(body), err, size)
		}
		got = append(got, string(body))
	}
	if want := "first good,<html>,bad,bad,bad"; strings.Join(got, ",") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestStop ends a reading early, in both ways.
func TestStop(t *testing.T) {
	dir, _ := recorded(t)
	r := open(t, dir)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n := 0
	for _, err := range r.Snapshots(ctx, 0) {
		if n++; n == 15 {
			cancel()
		}
		if n == 16 {
			if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), dir) {
				t.Errorf("after cancel: got %v", err)
			}
		}
	}
	if n != 16 {
		t.Errorf("got %d rounds, want 16", n)
	}
	for range r.Snapshots(context.Background(), 0) {
		break
	}
	for s, err := range r.Snapshots(context.Background(), 1) {
		if s != nil || err == nil || !strings.Contains(err.Error(), "target 1 of 1") {
			t.Errorf("no such target: got %v, %v", s, err)
		}
	}
}

// TestAllocations holds Record to no allocation per sample.
func TestAllocations(t *testing.T) {
	w := create(t, t.TempDir(), 1, rundb.WriterOptions{CommitEvery: time.Hour})
	polls := tape(0, 120, false)
	i := 0
	for ; i < 60; i++ {
		if err := w.Record(polls[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := testing.AllocsPerRun(50, func() {
		if err := w.Record(polls[i]); err != nil {
			t.Fatal(err)
		}
		i++
	})
	if got > 0 {
		t.Errorf("Record makes %v allocations for a poll of %d samples", got, loadSlots)
	}
}

// TestGiant records a target of many slots, whose cost must stay in proportion.
func TestGiant(t *testing.T) {
	const slots = 20_000
	dir := t.TempDir()
	w := create(t, dir, 1, rundb.WriterOptions{})
	s := metric.Snapshot{DictDelta: metric.DictDelta{Families: []metric.Family{{Name: "f"}}},
		Delta: metric.Delta{Full: true}}
	for i := range slots {
		s.DictDelta.Series = append(s.DictDelta.Series,
			metric.Series{Labels: metric.NewLabels(metric.Label{Name: "id", Value: string(bytes.Repeat([]byte("x"), i%50))})})
		s.DictDelta.Slots = append(s.DictDelta.Slots, metric.SampleID{Series: i})
		s.Delta.Slots, s.Delta.Bits = append(s.Delta.Slots, uint32(i)), append(s.Delta.Bits, math.Float64bits(float64(i)/3))
	}
	var want []*metric.Snapshot
	for range 5 {
		if err := w.Record(&s); err != nil {
			t.Fatal(err)
		}
		want = append(want, s.Clone())
		s.Seq++
		s.DictDelta = metric.DictDelta{}
		s.Delta.Full, s.Delta.Slots, s.Delta.Bits = false, []uint32{3, slots - 1}, []uint64{s.Seq, s.Seq}
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, want, read(t, open(t, dir), 0))
}

package rundb_test

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// breakWrites has SQLite refuse what a recording writes until the returned func is
// called, by a trigger of another connection.
func breakWrites(t *testing.T, dir string) (mend func()) {
	t.Helper()
	tables := []string{"tail", "block", "mark"}
	do := func(format string) {
		t.Helper()
		db, err := sql.Open("sqlite", filepath.Join(dir, rundb.FileName)+"?_pragma=busy_timeout(20000)")
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range tables {
			if _, bad := db.Exec(strings.ReplaceAll(format, "?", table)); bad != nil {
				err = errors.Join(err, bad)
			}
		}
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	do("CREATE TRIGGER broken_? BEFORE INSERT ON ? BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END")
	return func() { do("DROP TRIGGER broken_?") }
}

// taped is a poll and the values of all slots after it.
type taped struct {
	poll   *metric.Snapshot
	values map[uint32]uint64
}

// recording is a run whose polls are known.
type recording struct {
	t     *testing.T
	dir   string
	w     *rundb.Writer
	loads []*load
	polls [][]taped
	rng   *rand.Rand
}

func newRecording(t *testing.T, targets int, seed uint64, o rundb.WriterOptions) *recording {
	t.Helper()
	r := &recording{t: t, dir: filepath.Join(t.TempDir(), "run"), rng: rand.New(rand.NewPCG(seed, 1)),
		polls: make([][]taped, targets)}
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	o.Retry, o.CommitEvery = true, time.Millisecond
	r.w = create(t, r.dir, targets, o)
	if err := r.w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for k := range targets {
		r.loads = append(r.loads, newLoad(k, seed+uint64(k)))
	}
	return r
}

// record records n polls of each target, of which some failed.
func (r *recording) record(n int) {
	r.t.Helper()
	for range n {
		for k, l := range r.loads {
			s := l.next()
			if len(r.polls[k]) > 0 && r.rng.IntN(8) == 0 {
				l.last = make([]uint64, loadSlots) // all have changed since the last stored poll
				s.Outcome, s.Err, s.Delta = metric.Timeout, "late", metric.Delta{}
			}
			if err := r.w.Record(s); err != nil {
				r.t.Fatal(err)
			}
			r.polls[k] = append(r.polls[k], taped{s.Clone(), r.after(k, s)})
			s.Outcome, s.Err = metric.OK, ""
		}
	}
}

func (r *recording) after(k int, s *metric.Snapshot) map[uint32]uint64 {
	values := map[uint32]uint64{}
	if n := len(r.polls[k]); n > 0 && !s.Delta.Full {
		values = maps.Clone(r.polls[k][n-1].values)
	}
	for i, slot := range s.Delta.Slots {
		values[slot] = s.Delta.Bits[i]
	}
	return values
}

// check reads the run: each poll is what was recorded, or has the outcome Unwritten. It
// returns how many have that, and how many are not there.
func (r *recording) check() (unwritten, missing int, warnings string) {
	r.t.Helper()
	integrity(r.t, r.dir)
	run := open(r.t, r.dir)
	for k, want := range r.polls {
		var values map[uint32]uint64
		got := read(r.t, run, k)
		missing += len(want) - len(got)
		for i, s := range got {
			w := want[i]
			if s.Seq != w.poll.Seq || s.DueNS != w.poll.DueNS || s.SentNS != w.poll.SentNS {
				r.t.Fatalf("target %d: poll %d is number %d", k, i, s.Seq)
			}
			if s.Outcome == metric.Unwritten && w.poll.Outcome.Stored() {
				unwritten++
				continue
			}
			if s.Outcome != w.poll.Outcome || s.Err != w.poll.Err && s.Err != "" {
				r.t.Fatalf("target %d: poll %d is %v %q", k, i, s.Outcome, s.Err)
			}
			if s.Delta.Full {
				values = map[uint32]uint64{}
			}
			for j, slot := range s.Delta.Slots {
				values[slot] = s.Delta.Bits[j]
			}
			if s.Outcome.Stored() && !maps.Equal(values, w.values) {
				r.t.Fatalf("target %d: the values of poll %d are others", k, i)
			}
		}
	}
	for _, x := range run.Warnings() {
		warnings += x.Code + ": " + x.Text + "\n"
		if x.Code == "recording_damaged" {
			r.t.Error(x.Text)
		}
	}
	return unwritten, missing, warnings
}

// outlivesWriteErrors has writing fail for a while: no call fails, and all that was
// recorded meanwhile is in the file afterwards.
func outlivesWriteErrors(t *testing.T) {
	var faults, mended atomic.Int64
	failed := make(chan struct{}, 100)
	r := newRecording(t, 2, 1, rundb.WriterOptions{OnFault: func(err error) {
		if err == nil {
			mended.Add(1)
		} else if faults.Add(1); !strings.Contains(err.Error(), "free space") {
			t.Errorf("told %v", err)
		}
		failed <- struct{}{}
	}})
	r.record(20)
	mend := breakWrites(t, r.dir)
	r.record(600)
	if err := r.w.Mark(metric.Mark{Name: "a", AtNS: 1}); err != nil {
		t.Fatal(err)
	}
	<-failed
	mend()
	r.record(20)
	if err := errors.Join(r.w.Flush(t.Context()), r.w.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	unwritten, missing, warnings := r.check()
	if unwritten+missing+r.w.Lost() != 0 || !strings.Contains(warnings, "write_failed: writing failed for") {
		t.Errorf("%d unwritten, %d missing, %d lost; warnings %s", unwritten, missing, r.w.Lost(), warnings)
	}
	if faults.Load() != 1 || mended.Load() != 1 || len(open(t, r.dir).Marks()) != 1 {
		t.Errorf("%d faults, %d times mended", faults.Load(), mended.Load())
	}
}

// dropsTheOldest has less room than what waits while writing fails.
func dropsTheOldest(t *testing.T) {
	r := newRecording(t, 3, 2, rundb.WriterOptions{MaxPending: 256 << 10})
	r.record(30)
	if err := r.w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	mend := breakWrites(t, r.dir)
	for r.w.Lost() < 100 {
		r.record(10)
	}
	mend()
	if err := r.w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	unwritten, missing, warnings := r.check()
	if missing != 0 || unwritten != r.w.Lost() || !strings.Contains(warnings, "--max-pending") {
		t.Errorf("%d unwritten, %d missing, %d lost; warnings %s", unwritten, missing, r.w.Lost(), warnings)
	}
	for k, polls := range r.polls {
		got := read(t, open(t, r.dir), k)
		if got[10].Outcome == metric.Unwritten || got[len(polls)-1].Outcome == metric.Unwritten {
			t.Errorf("target %d: committed or youngest polls were dropped", k)
		}
	}
}

// sharesPending has others hold all that may wait: of what is held of the polls the samples are dropped, of which there
// is room for all otherwise.
func sharesPending(t *testing.T) {
	const room = 2 << 20
	var others atomic.Int64
	r := newRecording(t, 1, 5, rundb.WriterOptions{MaxPending: room, Beside: &others})
	mend := breakWrites(t, r.dir)
	r.record(1500)
	if n := r.w.Lost(); n > 0 {
		t.Fatalf("%d polls were dropped where there was room", n)
	}
	others.Store(room)
	tick, end := time.NewTicker(time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for r.w.Lost() == 0 {
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("nothing is dropped")
		}
	}
	mend()
	if err := r.w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if unwritten, missing, _ := r.check(); missing != 0 || unwritten != r.w.Lost() {
		t.Errorf("%d unwritten, %d missing, %d lost", unwritten, missing, r.w.Lost())
	}
}

// makesDirectoryAgain removes the run directory, and the file alone, while a run is
// recorded.
func makesDirectoryAgain(t *testing.T) {
	r := newRecording(t, 2, 3, rundb.WriterOptions{})
	for n := range 4 {
		r.record(100)
		if err := r.w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		gone := r.dir
		if n%2 == 1 {
			gone = filepath.Join(r.dir, rundb.FileName)
		}
		removeAll(gone)
	}
	r.record(7)
	if err := r.w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if unwritten, missing, _ := r.check(); unwritten+missing != 0 {
		t.Errorf("%d unwritten, %d missing", unwritten, missing)
	}
	for name, mode := range map[string]os.FileMode{".": os.ModeDir | 0o700, rundb.FileName: 0o600} {
		if info, err := os.Stat(filepath.Join(r.dir, name)); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// removeAll removes a path that a writer may be making files below.
func removeAll(path string) {
	for os.RemoveAll(path) != nil {
		runtime.Gosched()
	}
}

// keepsLock removes the directory with its lock: another recorder is refused there afterwards as before.
func keepsLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	d, err := rundb.MakeDir(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := create(t, dir, 1, rundb.WriterOptions{Retry: true, OnRemade: d.Relock})
	if err := errors.Join(w.Flush(t.Context()), d.Begun(), os.RemoveAll(dir), w.Record(newLoad(0, 1).next()),
		w.Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	if _, err := rundb.MakeDir(dir, []string{}); !errors.Is(err, rundb.ErrDirInUse) {
		t.Errorf("a second recorder: %v", err)
	}
	if err := errors.Join(w.Close(t.Context()), d.Close()); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// givesUp closes a recording that cannot be written.
func givesUp(t *testing.T) {
	r := newRecording(t, 2, 4, rundb.WriterOptions{})
	r.record(20)
	if err := r.w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	mend := breakWrites(t, r.dir)
	r.record(600)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := r.w.Close(ctx)
	if err == nil || !strings.Contains(err.Error(), "the last 1200 polls are lost") {
		t.Errorf("closed: %v", err)
	}
	mend()
	unwritten, missing, _ := r.check()
	if unwritten != 0 || missing != 1200 || r.w.Lost() != 1200 {
		t.Errorf("%d unwritten, %d missing, %d lost", unwritten, missing, r.w.Lost())
	}
}

// TestAnyFaults breaks and mends writing, and removes the directory, at random.
func TestAnyFaults(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 9))
		r := newRecording(t, 1+rng.IntN(4), seed, rundb.WriterOptions{MaxPending: 16<<10 + rng.IntN(128<<10),
			BlockPolls: 1 + rng.IntN(60)})
		mend := func() {}
		for range 20 {
			switch rng.IntN(4) {
			case 0:
				mend()
				mend = breakWrites(t, r.dir)
			case 1:
				mend()
				mend = func() {}
			case 2:
				mend()
				mend = func() {}
				removeAll(r.dir)
				r.record(1)
				if err := r.w.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			r.record(rng.IntN(40))
		}
		ctx, cancel := context.WithCancel(t.Context())
		if rng.IntN(3) == 0 {
			mend() // else the last polls are lost
			mend = func() {}
		} else {
			cancel()
		}
		err := r.w.Close(ctx)
		cancel()
		mend()
		unwritten, missing, warnings := r.check()
		t.Logf("seed %d: %d unwritten, %d missing, %v", seed, unwritten, missing, err)
		if unwritten+missing != r.w.Lost() || missing > 0 && err == nil {
			t.Errorf("seed %d: %d unwritten, %d missing, %d lost: %v %s", seed, unwritten, missing, r.w.Lost(), err, warnings)
		}
	}
}

package rundb_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// The environment of this test binary when it runs as a second process.
const (
	childEnv = "RUNDB_CHILD"
	dirEnv   = "RUNDB_DIR"
)

func TestMain(m *testing.M) {
	children := map[string]func(dir string) error{"record": childRecord, "mark": childMark, "fill": childFill}
	if child, ok := children[os.Getenv(childEnv)]; ok {
		if err := child(os.Getenv(dirEnv)); err != nil {
			panic(err) // ends the process with a code other than 0
		}
		return
	}
	m.Run()
}

// child is a command that runs this test binary as a second process.
func child(name, dir string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+name, dirEnv+"="+dir)
	cmd.Stderr = os.Stderr
	return cmd
}

const killTargets = 3

// childRecord records as fast as it can and says, after every commit it knows
// of, how many polls each target has.
func childRecord(dir string) error {
	w, err := rundb.Create(dir, rundb.Meta{ID: "kill"},
		rundb.WriterOptions{BlockPolls: 25, CommitEvery: 3 * time.Millisecond})
	if err != nil {
		return err
	}
	var loads []*load
	for t := range killTargets {
		if _, err := w.AddTarget(metric.Target{URL: strconv.Itoa(t)}); err != nil {
			return err
		}
		loads = append(loads, newLoad(t, uint64(t)))
	}
	for n := 1; ; n++ {
		for _, l := range loads {
			if err := w.Record(l.next()); err != nil {
				return err
			}
		}
		if n%4 == 0 {
			if err := w.Flush(context.Background()); err != nil {
				return err
			}
			fmt.Println(n)
		}
	}
}

// TestKill kills a recording process at random moments. Every poll that was
// known to be committed must be there, and every poll that is there must be
// the one that was recorded.
func TestKill(t *testing.T) {
	kills := 20
	if testing.Short() {
		kills = 3
	}
	if n, err := strconv.Atoi(os.Getenv("SCRAPESTAT_KILLS")); err == nil {
		kills = n
	}
	recorded := make([][]*metric.Snapshot, killTargets)
	loads := make([]*load, killTargets)
	for k := range loads {
		loads[k] = newLoad(k, uint64(k))
	}
	for range kills {
		dir := t.TempDir()
		acknowledged := killOne(t, dir, time.Duration(rand.IntN(25_000))*time.Microsecond)
		integrity(t, dir)
		r := open(t, dir)
		for k := range killTargets {
			got := read(t, r, k)
			if len(got) < acknowledged {
				t.Fatalf("target %d: got %d polls, %d were committed; warnings %v", k, len(got), acknowledged, r.Warnings())
			}
			for len(recorded[k]) < len(got) {
				recorded[k] = append(recorded[k], loads[k].next().Clone())
			}
			same(t, recorded[k][:len(got)], got)
		}
		if x := r.Warnings(); len(x) > 0 {
			t.Errorf("warnings: %v", x)
		}
	}
}

// killOne starts a recording in dir, kills it some time after its first commit
// and returns how many polls of each target were acknowledged.
func killOne(t *testing.T, dir string, after time.Duration) int {
	t.Helper()
	cmd := child("record", dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	acknowledged := 0
	var killed *time.Timer
	for lines.Scan() {
		if killed == nil {
			killed = time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		}
		if acknowledged, err = strconv.Atoi(lines.Text()); err != nil {
			acknowledged = 0 // cut by the kill
		}
	}
	if err := cmd.Wait(); err == nil || killed == nil {
		t.Fatalf("the recording process ended by itself: %v", err)
	}
	return acknowledged
}

// integrity has SQLite check a file.
func integrity(t *testing.T, dir string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, rundb.FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var ok string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&ok); err != nil || ok != "ok" {
		t.Fatalf("integrity check: %q, %v", ok, err)
	}
}

func childMark(dir string) error {
	for i := range 20 {
		if err := rundb.AddMark(dir, metric.Mark{Name: "foreign " + strconv.Itoa(i), AtNS: int64(i) * 250e6}); err != nil {
			return err
		}
	}
	return nil
}

// TestMarks has two processes set marks while this one records and reads.
func TestMarks(t *testing.T) {
	dir := t.TempDir()
	seen := make(chan metric.Mark, 100)
	w := create(t, dir, 1, rundb.WriterOptions{CommitEvery: 5 * time.Millisecond,
		OnMark: func(m metric.Mark) { seen <- m }})
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	a, b := child("mark", dir), child("mark", dir)
	if err := errors.Join(a.Start(), b.Start()); err != nil {
		t.Fatal(err)
	}
	l := newLoad(0, 1)
	count := map[string]int{}
	for n := 0; n < 40; {
		select {
		case m := <-seen:
			count[m.Name]++
			n++
		default:
			if err := errors.Join(w.Record(l.next()), w.Mark(metric.Mark{Name: "own", AtNS: 10e9}),
				w.Flush(t.Context())); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(a.Wait(), b.Wait(), w.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if name := "foreign " + strconv.Itoa(i); count[name] != 2 {
			t.Errorf("%s was reported %d times, want 2", name, count[name])
		}
	}
	close(seen)
	for m := range seen {
		t.Errorf("mark %v was reported once too often", m)
	}
	marks := open(t, dir).Marks()
	if len(marks) < 41 || marks[0].Name != "foreign 0" || marks[2].Name != "foreign 1" ||
		marks[len(marks)-1].Name != "own" {
		t.Errorf("got %d marks, from %v to %v", len(marks), marks[0], marks[len(marks)-1])
	}

	if err := rundb.AddMark(dir, metric.Mark{Name: "late", AtNS: 1 << 40}); err != nil {
		t.Errorf("mark in a closed recording: %v", err)
	}
	if marks := open(t, dir).Marks(); marks[len(marks)-1].Name != "late" {
		t.Errorf("the last mark is %v", marks[len(marks)-1])
	}
	if err := rundb.AddMark(t.TempDir(), metric.Mark{Name: "x"}); err == nil ||
		!strings.Contains(err.Error(), "no recording there") {
		t.Errorf("mark without a recording: got %v", err)
	}
}

// childFill records until it fails; it exits with 0 when the failure is told
// as it should be.
func childFill(dir string) error {
	w, err := rundb.Create(dir, rundb.Meta{}, rundb.WriterOptions{CommitEvery: time.Millisecond, MaxPending: 100 << 10})
	if err != nil {
		return err
	}
	if _, err := w.AddTarget(metric.Target{}); err != nil {
		return err
	}
	if err := w.Flush(context.Background()); err != nil {
		return err
	}
	l := newLoad(0, 1)
	for err == nil {
		err = w.Record(l.next())
	}
	for _, want := range []string{"write recording " + dir, "free space", "is kept"} {
		if !strings.Contains(err.Error(), want) {
			return fmt.Errorf("error %q does not say %q", err, want)
		}
	}
	closing := func() error { return w.Close(context.Background()) }
	for name, f := range map[string]func() error{
		"Record": func() error { return w.Record(l.next()) },
		"Mark":   func() error { return w.Mark(metric.Mark{}) },
		"Warn":   func() error { return w.Warn(metric.Warning{}) },
		"Flush":  func() error { return w.Flush(context.Background()) }, "Close": closing, "second Close": closing,
	} {
		if again := f(); !errors.Is(again, err) && (again == nil || again.Error() != err.Error()) {
			return fmt.Errorf("%s after the failure: %v, want %w", name, again, err)
		}
	}
	return nil
}

// TestFullDisk records against a limit on the size of files.
func TestFullDisk(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell")
	}
	for _, blocks := range []int{300, 700, 1500, 2600} {
		dir := t.TempDir()
		cmd := child("fill", dir)
		cmd.Path, cmd.Args = shell, []string{"sh", "-c", fmt.Sprintf(`ulimit -f %d && exec "$0"`, blocks), os.Args[0]}
		if err := cmd.Run(); err != nil {
			t.Fatalf("limit of %d blocks: %v", blocks, err)
		}
		integrity(t, dir)
		l := newLoad(0, 1)
		n := 0
		for s, err := range open(t, dir).Snapshots(context.Background(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			if d := diff(l.next().Clone(), s); d != "" {
				t.Fatalf("limit of %d blocks, poll %d:\n%s", blocks, n, d)
			}
			n++
		}
		if blocks > 1000 && n == 0 {
			t.Errorf("limit of %d blocks: nothing was recorded", blocks)
		}
	}
}

// TestReadersWhileWriting reads with two goroutines while polls come in; each
// reading is a beginning of what was recorded.
func TestReadersWhileWriting(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, 2, rundb.WriterOptions{BlockPolls: 10, CommitEvery: time.Millisecond})
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	polls := [][]*metric.Snapshot{tape(0, 300, false), tape(1, 300, true)}
	errs := make(chan error)
	done := make(chan struct{})
	for target := range 2 {
		go func() { errs <- readUntil(dir, target, polls[target], done) }()
	}
	for i := range 300 {
		for target := range 2 {
			if err := w.Record(polls[target][i]); err != nil {
				t.Fatal(err)
			}
		}
		if i%7 == 0 {
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(done)
	if err := errors.Join(<-errs, <-errs); err != nil {
		t.Error(err)
	}
}

// readUntil opens and reads over and over until done is closed, and once more.
func readUntil(dir string, target int, want []*metric.Snapshot, done <-chan struct{}) error {
	for last, before := false, 0; ; {
		select {
		case <-done:
			last = true
		default:
		}
		r, err := rundb.Open(dir)
		if err != nil {
			return err
		}
		n := 0
		for s, err := range r.Snapshots(context.Background(), target) {
			if err != nil {
				return err
			}
			if d := diff(want[n], s); d != "" {
				return fmt.Errorf("target %d, poll %d:\n%s", target, n, d)
			}
			n++
		}
		if err := r.Close(); err != nil {
			return err
		}
		if n < before || last && n != len(want) || len(r.Warnings()) > 0 {
			return fmt.Errorf("target %d: got %d polls after %d; warnings %v", target, n, before, r.Warnings())
		}
		before = n
		if last {
			return nil
		}
	}
}

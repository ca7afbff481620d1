//go:build linux

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/scrapestat/scrapestat/internal/faults"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// TestCommandFaults has one to three random faults happen to each of many runs of collect while COMMAND waits for a
// word: COMMAND runs to its end in all, its exit code is that of the run, and what the servers gave is in the
// recording, poll by poll, or told to be lost. SCRAPESTAT_FAULTS is the number of runs.
func TestCommandFaults(t *testing.T) {
	t.Parallel()
	if err := exec.Command("unshare", "-rm", "true").Run(); err != nil {
		t.Skip("no user name spaces here")
	}
	most := int64(16)
	if racing {
		most = 10
	}
	if n, err := strconv.ParseInt(os.Getenv("SCRAPESTAT_FAULTS"), 10, 64); err == nil {
		most = n
	}
	count := &faultCount{of: map[string]int{}}
	t.Run("K1", func(t *testing.T) {
		for k := range waiting {
			t.Run(strconv.Itoa(k), func(t *testing.T) {
				t.Parallel()
				for n := count.next.Add(1); n <= most && !t.Failed(); n = count.next.Add(1) {
					newFaultyRun(t, uint64(n)).outlives(count)
				}
			})
		}
	})
	var kinds []string
	for _, name := range slices.Sorted(maps.Keys(count.of)) {
		kinds = append(kinds, fmt.Sprintf("%s %d", name, count.of[name]))
	}
	faults.Figure(t, "command-faults", fmt.Sprintf("%d runs of collect -- COMMAND with %d random faults (%s): COMMAND "+
		"ran to its end in all; %d polls were recorded, %d written as unwritten, %d told to be lost; each value that was "+
		"served is one of them", most, count.faults.Load(), strings.Join(kinds, ", "), count.stored.Load(),
		count.unwritten.Load(), count.lost.Load()),
		fmt.Sprintf("SCRAPESTAT_FAULTS=%d go test ./cmd/scrapestat -run '^TestCommandFaults$' -timeout 1h -v", most))
}

// faultCount is what the runs add up to.
type faultCount struct {
	next, faults, stored, unwritten, lost atomic.Int64
	mu                                    sync.Mutex
	of                                    map[string]int
}

func (c *faultCount) add(kind string) {
	c.faults.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[kind]++
}

// counting serves a value that no answer before had, or breaks the connection while it is dead.
type counting struct {
	*httptest.Server
	dead          atomic.Bool
	served, asked atomic.Int64
}

func (s *counting) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.asked.Add(1)
	if s.dead.Load() {
		panic(http.ErrAbortHandler)
	}
	fmt.Fprintf(w, "# TYPE v gauge\nv %d\n# TYPE k gauge\nk 1\n", s.served.Add(1))
}

// faultyRun is one run of collect with its faults.
type faultyRun struct {
	*testing.T
	seed     uint64
	rng      *rand.Rand
	servers  [2]*counting
	base     string // of the paths of COMMAND
	dir      string // of the run
	disk     bool   // the run has a small disk of its own
	detached bool   // SIGHUP is ignored
	code     int    // of COMMAND
	cmd      *exec.Cmd
	view     *os.File // the disk as the run sees it; nil without
	stderr   *os.File // to read; nil when nobody does
	said     *lockedBuffer
	copied   chan struct{}
	hungUp   bool
	faulty   bool // writing has failed before
	open     bool // a fault of writing was not mended
}

func newFaultyRun(t *testing.T, seed uint64) *faultyRun {
	r := &faultyRun{T: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 20)), said: &lockedBuffer{},
		copied: make(chan struct{})}
	for i := range r.servers {
		s := &counting{}
		s.Server = httptest.NewServer(s)
		s.Config.ErrorLog = nil
		r.servers[i] = s
	}
	r.base = filepath.Join(t.TempDir(), "command")
	r.dir = filepath.Join(filepath.Dir(r.base), "disk", "run")
	r.disk, r.detached = r.rng.IntN(3) == 0, r.rng.IntN(2) == 0
	r.code = []int{0, 0, 0, 7}[r.rng.IntN(4)]
	return r
}

// start starts the run and returns when COMMAND runs.
func (r *faultyRun) start() (release *os.File) {
	r.Helper()
	disk := filepath.Dir(r.dir)
	out, in, err := os.Pipe()
	if err = errors.Join(err, os.Mkdir(disk, 0o700), syscall.Mkfifo(r.base+".go", 0o600)); err != nil {
		r.Fatal(err)
	}
	args := []string{"collect", "a=" + r.servers[0].URL, "b=" + r.servers[1].URL, "-o", r.dir, "--formats", "json",
		"--interval", "10ms", "--scrape-budget", "0", "--settle", "0s"}
	if r.rng.IntN(3) == 0 {
		args = append(args, "--max-pending", strconv.Itoa(500+r.rng.IntN(5000)))
	}
	args = append(args, "--", "sh", "-c", fmt.Sprintf(
		`%s; echo $$ >"$0.began"; read x <"$0.go"; echo done >"$0.ran"; exit %d`, r.trap(), r.code), r.base)
	head := []string{"scrapestat"}
	if r.detached {
		head = []string{"nohup", "scrapestat"}
	}
	if r.disk {
		head = append([]string{"unshare", "-rm", "sh", "-c",
			`mount -t tmpfs -o size=2048k none "$0" || exit 99; exec "$@"`, disk}, head...)
	}
	args = append(head, args...)
	// Opened for both, it does not wait for a reader, who may not come; COMMAND ends when this process does.
	if release, err = os.OpenFile(r.base+".go", os.O_RDWR, 0); err != nil {
		r.Fatal(err)
	}
	r.cmd = exec.Command(args[0], args[1:]...)
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	r.cmd.Stderr = in
	if r.rng.IntN(2) == 0 {
		r.cmd.Stdout = in
	}
	err = r.cmd.Start()
	if err = errors.Join(err, in.Close()); err != nil {
		r.Fatal(err)
	}
	r.stderr = out
	r.Cleanup(r.kill)
	go func() {
		defer close(r.copied)
		_, _ = io.Copy(r.said, out) // until nobody writes, or the test closes it
	}()
	if !waitUntil(func() bool { return exists(r.base + ".began") }) {
		r.Fatal("COMMAND did not begin")
	}
	if r.disk {
		if r.view, err = os.Open(fmt.Sprintf("/proc/%d/root%s", r.cmd.Process.Pid, disk)); err != nil {
			r.Fatal(err)
		}
	}
	return release
}

// kill ends what a test that has failed leaves running.
func (r *faultyRun) kill() {
	if r.cmd.ProcessState != nil {
		return
	}
	_ = r.cmd.Process.Kill()
	text, _ := os.ReadFile(r.base + ".began")
	if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// trap is how COMMAND takes the end of the session: it uses its grace, or is told nothing.
func (r *faultyRun) trap() string {
	if r.detached {
		return ":"
	}
	return "trap '' TERM"
}

// path is the run directory, or what is in it, for this process.
func (r *faultyRun) path(name ...string) string {
	dir := r.dir
	if r.disk {
		dir = fmt.Sprintf("/proc/self/fd/%d/run", r.view.Fd())
	}
	return filepath.Join(append([]string{dir}, name...)...)
}

// outlives has one to three faults, lets COMMAND end, and checks what is left.
func (r *faultyRun) outlives(count *faultCount) {
	for _, s := range r.servers {
		defer s.Close()
	}
	var names []string
	defer func() {
		if r.Failed() {
			r.Logf("seed %d: disk %v, nohup %v, faults %q, COMMAND exits with %d, %v:\n%s", r.seed, r.disk, r.detached, names,
				r.code, r.cmd.ProcessState, r.said)
		}
	}()
	release := r.start()
	r.polled(6)
	later := func() {}
	for range 1 + r.rng.IntN(3) {
		if r.hungUp { // the run ends, and COMMAND with it
			break
		}
		name, mend := r.fault()
		names = append(names, name)
		count.add(name)
		later()
		later = func() {}
		switch n := r.rng.IntN(20); {
		case n < 14:
			mend()
		case n < 19:
			later = mend
		default:
			later = func() { r.open = true }
		}
	}
	later()
	if !r.open {
		r.polled(2)
	}
	if _, err := release.WriteString("go\n"); err != nil {
		r.Fatal(err)
	}
	err := r.cmd.Wait()
	if r.stderr != nil {
		<-r.copied
	}
	if err := release.Close(); err != nil {
		r.Error(err)
	}
	r.judge(count, err)
}

// polled waits until the servers were asked n more times; a run that was told to end asks no more. Who does not answer
// is asked seldom.
func (r *faultyRun) polled(n int64) {
	r.Helper()
	asked := func() int64 { return r.servers[0].asked.Load() + r.servers[1].asked.Load() }
	if r.servers[0].dead.Load() && r.servers[1].dead.Load() {
		n = 1
	}
	want := asked() + n
	if !r.hungUp && !waitUntil(func() bool { return asked() >= want }) {
		r.Fatal("the polls have ended")
	}
}

// noticed waits until the first fault of writing was told, where somebody listens.
func (r *faultyRun) noticed() {
	r.Helper()
	if r.stderr == nil || r.faulty {
		r.polled(40)
	} else if !waitUntil(func() bool { return strings.Contains(r.said.String(), "warning: write recording") }) {
		r.Fatal("no fault was noticed")
	}
	r.faulty = true
}

// fault has one fault and returns how it is mended.
func (r *faultyRun) fault() (name string, mend func()) {
	kinds := []func() (string, func()){r.brokenWrites, r.removed, r.deaf, r.hangUp, r.death, r.brokenWrites}
	return kinds[r.rng.IntN(len(kinds))]()
}

// brokenWrites has the disk full, or SQLite refuse what is written.
func (r *faultyRun) brokenWrites() (string, func()) {
	defer r.noticed()
	if r.disk {
		ballast := r.path("..", "ballast")
		f, err := os.Create(ballast)
		if err != nil {
			r.Fatal(err)
		}
		for n := 1 << 16; n >= 1<<12; { // up to the last page
			if _, err := f.Write(make([]byte, n)); err != nil {
				n /= 2
			}
		}
		_ = f.Close() // it is full
		return "disk full", func() {
			// A process that is being started by this one may have it open still: what it takes is freed now.
			err := errors.Join(os.Truncate(ballast, 0), os.Remove(ballast))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				r.Error(err)
			}
		}
	}
	r.triggers("CREATE TRIGGER IF NOT EXISTS broken_? BEFORE INSERT ON ? BEGIN " +
		"SELECT RAISE(ABORT, 'database or disk is full'); END")
	return "writer fails", func() { r.triggers("DROP TRIGGER IF EXISTS broken_?") }
}

// triggers runs a statement for the tables of what is recorded all the time, by a connection of its own. It returns
// how many triggers there were.
func (r *faultyRun) triggers(format string) (before int) {
	r.Helper()
	var err error
	if !waitUntil(func() bool {
		var db *sql.DB
		if db, err = sql.Open("sqlite", "file:"+r.path(rundb.FileName)+"?mode=rw&_pragma=busy_timeout(5000)"); err != nil {
			return false
		}
		// Of tail none while the file is being made again.
		err = db.QueryRow("SELECT count(*) FILTER (WHERE type = 'trigger') FROM sqlite_schema " +
			"HAVING total(name = 'tail') > 0").Scan(&before)
		for _, table := range []string{"tail", "block", "mark"} {
			_, bad := db.Exec(strings.ReplaceAll(format, "?", table))
			err = errors.Join(err, bad)
		}
		err = errors.Join(err, db.Close())
		return err == nil
	}) {
		r.Fatal(err)
	}
	return before
}

// removed removes the run directory, or the recording alone.
func (r *faultyRun) removed() (string, func()) {
	gone := r.path()
	if r.rng.IntN(2) == 0 {
		gone = r.path(rundb.FileName)
	}
	for _, companion := range []string{"", "-wal", "-shm"} {
		if !waitUntil(func() bool { return os.RemoveAll(gone+companion) == nil }) { // a file may come meanwhile
			r.Fatal(gone + companion + " is not removed")
		}
	}
	return "directory removed", func() {}
}

// deaf has nobody read stderr any more.
func (r *faultyRun) deaf() (string, func()) {
	if r.stderr != nil {
		if err := r.stderr.Close(); err != nil {
			r.Fatal(err)
		}
		<-r.copied
		r.stderr = nil
	}
	return "stderr gone", func() {}
}

// hangUp is the end of the session, which ends a run that was not started to outlive it.
func (r *faultyRun) hangUp() (string, func()) {
	for range 1 + r.rng.IntN(3) {
		if err := r.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			r.Error(err)
		}
	}
	r.hungUp = !r.detached
	return "SIGHUP", func() {}
}

// death has one server break its connections, or both.
func (r *faultyRun) death() (string, func()) {
	dead := r.servers[r.rng.IntN(2):]
	for _, s := range dead {
		s.dead.Store(true)
		s.CloseClientConnections()
	}
	r.polled(2)
	return "target death", func() {
		for _, s := range dead {
			s.dead.Store(false)
		}
	}
}

// judge checks COMMAND, the exit code and the recording.
func (r *faultyRun) judge(count *faultCount, err error) {
	r.Helper()
	if !exists(r.base + ".ran") {
		r.Error("COMMAND did not run to its end")
	}
	dir := r.dir
	if r.disk {
		dir = filepath.Join(filepath.Dir(r.base), "copy")
		from := fmt.Sprintf("/proc/%d/fd/%d/run", os.Getpid(), r.view.Fd())
		if said, err := exec.Command("cp", "-a", from, dir).CombinedOutput(); err != nil {
			r.Fatalf("%v: %s", err, said)
		}
		_ = r.view.Close()
	} else if r.triggers("DROP TRIGGER IF EXISTS broken_?") > 0 {
		r.open = true // where the file was made again once more of one that had them
	}
	code := r.cmd.ProcessState.ExitCode()
	told := int64(0)
	if m := regexp.MustCompile(`the last (\d+) polls are lost`).FindStringSubmatch(r.said.String()); m != nil {
		told, _ = strconv.ParseInt(m[1], 10, 64)
	}
	missing := r.ledger(count, dir) // told are those that failed or were skipped too
	if r.stderr != nil && missing > told || missing > 0 && !r.open {
		r.Errorf("%d polls are not in the recording, %d are told to be lost", missing, told)
	}
	count.lost.Add(missing)
	switch {
	case r.code != 0 && !r.hungUp && code != r.code, r.code == 0 && code != exitDone && !r.open,
		r.code == 0 && missing > 0 && code != exitFailed:
		r.Errorf("exit code %d: %v", code, err)
	}
	e := faults.Evidence{Dir: dir, Killed: r.open}
	if !r.open {
		e.Formats = []string{"json"}
	}
	if err := faults.Check(context.Background(), e); err != nil {
		r.Error(err)
	}
}

// ledger lays the polls of each server beside the values that it gave, and returns how many polls are not there.
func (r *faultyRun) ledger(count *faultCount, dir string) (missing int64) {
	r.Helper()
	db, err := rundb.Open(dir)
	if err != nil {
		r.Fatal(err)
	}
	defer db.Close()
	for k, s := range r.servers {
		last, unwritten, failed := int64(0), int64(0), int64(0)
		before := func(to int64) (gap int64) { // polls between two that were stored, and values
			gap = to - last - 1 - unwritten
			if last == 0 { // those that looked whether it answers
				gap = max(0, gap-2)
			}
			count.unwritten.Add(unwritten)
			return gap
		}
		for p, err := range db.Snapshots(context.Background(), k) {
			if err != nil {
				r.Fatal(err)
			}
			switch {
			case p.Outcome == metric.Unwritten:
				unwritten++
			case !p.Outcome.Stored():
				failed++
			default:
				at := slices.Index(p.Delta.Slots, 0)
				if at < 0 {
					r.Fatalf("%s: poll %d has no value", s.URL, p.Seq)
				}
				value := int64(math.Float64frombits(p.Delta.Bits[at]))
				if gap := before(value); value <= last || gap < -failed || gap > failed {
					r.Errorf("%s: poll %d has the value %d after %d, with %d unwritten and %d failed between", s.URL, p.Seq,
						value, last, unwritten, failed)
				}
				last, unwritten, failed = value, 0, 0
				count.stored.Add(1)
			}
		}
		missing += max(0, before(s.served.Load()+1)-failed)
	}
	return missing
}

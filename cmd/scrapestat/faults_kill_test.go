//go:build unix

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/faults"
	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/rundb"
)

// killed is what the kill points of TestFaultKill share.
type killed struct {
	url     string
	whole   string // a run that nobody killed, with its exports
	text    string // an OpenMetrics file
	exports []string
	lasts   map[string][]time.Duration // how long a command is at work when nobody kills it

	mu   sync.Mutex
	fell fell
}

// fell is where the points fell.
type fell struct {
	before, into, after int // no work had begun; at work; the process had ended
	unfinished          int // of those at work, the ones that left something half done
	absent              int // there was no run yet
	equal               int // runs compared with a clean stop
}

// measures is how often it is measured how long a command is at work.
const measures = 3

// killing is one of several series of points, which run side by side.
type killing struct {
	*killed
	rng *rand.Rand
}

// TestFaultKill kills scrapestat with SIGKILL at random moments of collect, mark,
// import and export (D03), seven of eight once it is at work. Whatever it was at:
// the run is readable or not begun, files are complete or absent, and the exports
// are those of a clean stop. How much a kill may cost is TestKill's question.
func TestFaultKill(t *testing.T) {
	t.Parallel()
	n := points(12)
	k := newKilled(t)
	t.Run("points", func(t *testing.T) {
		const most = 125
		for from := 0; from < n; from += most {
			t.Run(strconv.Itoa(from), func(t *testing.T) {
				t.Parallel()
				g := killing{k, rand.New(rand.NewPCG(9, uint64(10+from)))}
				for i := from; i < min(from+most, n) && !t.Failed(); i++ {
					g.point(t, [...]string{"collect", "mark", "import", "export"}[i%4])
				}
			})
		}
	})
	c := k.fell
	if got := c.before + c.into + c.after; got != n && !t.Failed() {
		t.Errorf("%d of %d points were tried", got, n)
	}
	faults.Figure(t, "kill", fmt.Sprintf("%d kill -9 points through collect, mark, import and export, %d before "+
		"there was work, %d into it, of which %d left something half done, %d after it: every run readable or not begun "+
		"(%d, in which nothing was committed), 0 broken files, %d runs equal to a clean stop, byte by byte",
		n, c.before, c.into, c.unfinished, c.after, c.absent, c.equal),
		"SCRAPESTAT_POINTS=1000 go test ./cmd/scrapestat -run TestFaultKill -parallel 2 -timeout 1h -v")
}

// newKilled records the run that is marked and exported, writes the file that is
// imported, and measures how long each command takes.
func newKilled(t *testing.T) *killed {
	t.Helper()
	tmp := t.TempDir()
	k := &killed{url: newEngineServer(t), whole: filepath.Join(tmp, "whole"), text: filepath.Join(tmp, "text"),
		lasts:   map[string][]time.Duration{},
		exports: []string{"server_metrics_export.csv", "server_metrics_export.jsonl", "server_metrics_export.parquet"}}
	try(t, exitDone, "", append([]string{"collect", k.url, "-o", k.whole, "--formats", "json,csv,jsonl,parquet"},
		quickRun...)...)
	var b strings.Builder
	b.WriteString("# TYPE a gauge\n")
	for i := range 300_000 { // so many, and so different ones, that it takes several commits
		fmt.Fprintf(&b, "a{i=\"%d\"} %d %d\n", i%50, i*7919%1_000_003, 1_700_000_000+i/50)
	}
	if err := os.WriteFile(k.text, []byte(b.String()+"# EOF\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := killing{k, rand.New(rand.NewPCG(9, 9))}
	for command := range signs {
		for i := 0; len(k.lasts[command]) < measures; i++ {
			if i == 100 {
				t.Fatalf("%s was hardly seen at work", command)
			}
			g.point(t, command)
		}
	}
	t.Logf("how long they are at work: %v", k.lasts)
	k.fell = fell{}
	return k
}

// point tries one point of a command.
func (k killing) point(t *testing.T, command string) {
	t.Helper()
	tmp, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(tmp) // a thousand of them fill a disk
	dir := filepath.Join(tmp, "run")
	switch command {
	case "collect":
		k.collect(t, dir)
	case "mark":
		k.mark(t, dir)
	case "import":
		k.importing(t, dir)
	case "export":
		k.export(t, dir)
	}
}

func newEngineServer(t *testing.T) string {
	t.Helper()
	sim, err := simulate.New("vllm", simulate.Options{Rate: 40, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	return serveHandler(t, sim)
}

// signs tell that a command has begun to write in dir.
var signs = map[string]func(dir string) bool{
	"collect": func(dir string) bool { return exists(filepath.Join(dir, "run.db")) },
	"import":  func(dir string) bool { return exists(filepath.Join(dir, "run.db")) },
	"mark":    func(dir string) bool { return exists(filepath.Join(dir, "run.db-journal")) },
	"export":  func(dir string) bool { return len(half(dir, ".*.tmp")) > 0 },
}

// half lists the files in dir that only a process at work or a killed one has.
func half(dir, pattern string) []string {
	paths, _ := filepath.Glob(filepath.Join(dir, pattern)) // the patterns are good
	return paths
}

// kill starts scrapestat and kills it: at a random moment of the time that it is at
// work when nobody does, or, one in eight, at a random moment since its start. The
// first of each command live, and tell how long that time is.
func (k killing) kill(t *testing.T, dir string, args ...string) {
	t.Helper()
	measured, lasts := len(k.lasts[args[0]]) == measures, time.Duration(0)
	if measured {
		lasts = slices.Max(k.lasts[args[0]])
	}
	early := measured && k.rng.IntN(8) == 0
	delay := time.Duration(k.rng.Int64N(int64(lasts) + 1))
	cmd := exec.Command("scrapestat", args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	since, seen, done := time.Now(), false, make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // killed: there is an error
	}()
	// Some of what is waited for is there for a millisecond: no timer sees it.
	for ended := false; !seen && !ended && !(early && time.Since(since) > delay); runtime.Gosched() {
		select {
		case <-done:
			ended = true
		default:
			seen = signs[args[0]](dir)
		}
	}
	if !early {
		since = time.Now()
	}
	if measured {
		select {
		case <-done:
		case <-time.After(time.Until(since.Add(delay))):
		}
		_ = cmd.Process.Kill() // it may have ended
	}
	<-done
	k.count(t, cmd, dir, seen)
	if !measured && seen { // on a busy machine another process may have had our turn
		k.lasts[args[0]] = append(k.lasts[args[0]], time.Since(since))
	}
}

// count notes where a point fell.
func (k killing) count(t *testing.T, cmd *exec.Cmd, dir string, seen bool) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case cmd.ProcessState.Exited():
		k.fell.after++
		if !cmd.ProcessState.Success() {
			t.Errorf("%q ended with %v before it was killed", cmd.Args, cmd.ProcessState)
		}
	case !seen:
		k.fell.before++
	default:
		k.fell.into++
		if len(half(dir, ".*.tmp"))+len(half(dir, "run.db-*")) > 0 {
			k.fell.unfinished++
		}
	}
}

// begun reports whether there is a run. Without one nothing may have been committed:
// a recording that cannot be opened for another reason is a broken one.
func (k killing) begun(t *testing.T, dir string) bool {
	t.Helper()
	r, err := rundb.Open(dir)
	if err == nil {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		return true
	}
	if why := nothingCommitted(t.Context(), dir); why != nil {
		t.Errorf("%v: %v", err, why)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fell.absent++
	return false
}

// nothingCommitted returns nil when dir holds no recording yet: no file, or a
// healthy database without a table. SQLite is asked, not the package that wrote it.
func nothingCommitted(ctx context.Context, dir string) error {
	if exists(filepath.Join(dir, "manifest.json")) {
		return errors.New("there is a manifest, which is written after the first commit")
	}
	path := filepath.Join(dir, "run.db")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	db, err := sql.Open("sqlite", "file:"+path+"?mode=rw")
	if err != nil {
		return err
	}
	defer db.Close()
	var health string
	var tables, version int
	for query, to := range map[string]any{"PRAGMA integrity_check": &health, "SELECT count(*) FROM sqlite_schema": &tables,
		"PRAGMA user_version": &version} {
		if err := db.QueryRowContext(ctx, query).Scan(to); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
	}
	if health != "ok" || tables != 0 || version != 0 {
		return fmt.Errorf("%d tables, version %d, integrity: %s", tables, version, health)
	}
	return nil
}

func (k killing) rules(t *testing.T, dir string, formats ...string) {
	t.Helper()
	if err := faults.Check(t.Context(), faults.Evidence{Dir: dir, Formats: formats, Killed: true}); err != nil {
		t.Error(err)
	}
}

func (k killing) collect(t *testing.T, dir string) {
	t.Helper()
	k.kill(t, dir, "collect", k.url, "-o", dir, "--interval", "10ms", "--scrape-budget", "0", "--quiet", "--duration",
		"300ms", "--settle", "0s")
	if !k.begun(t, dir) {
		return
	}
	k.rules(t, dir)
	clean := filepath.Join(filepath.Dir(dir), "clean")
	if err := stopCleanly(t.Context(), dir, clean); err != nil {
		t.Error(err)
		return
	}
	for _, d := range []string{dir, clean} {
		if code, talk := runQuiet("export", d, "--formats", "json,csv,jsonl,parquet"); code != exitDone {
			t.Errorf("export of %s: exit %d: %s", d, code, talk)
			return
		}
		k.rules(t, d, "json", "csv", "jsonl", "parquet")
	}
	if err := faults.Same(dir, clean, k.exports...); err != nil {
		t.Error(err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fell.equal++
}

// stopCleanly records what is in a killed run once more, and closes it.
func stopCleanly(ctx context.Context, from, to string) error {
	r, err := rundb.Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	w, err := rundb.Create(to, r.Meta(), rundb.WriterOptions{})
	if err != nil {
		return err
	}
	for i, target := range r.Targets() {
		if _, err := w.AddTarget(target); err != nil {
			return err
		}
		for s, err := range r.Snapshots(ctx, i) {
			if err != nil {
				return err
			}
			if err := w.Record(s); err != nil {
				return err
			}
		}
	}
	for _, m := range r.Marks() {
		if err := w.Mark(m); err != nil {
			return err
		}
	}
	return w.Close(context.Background())
}

// mark kills a process that sets a mark in a run: the mark is there or not.
func (k killing) mark(t *testing.T, dir string) {
	t.Helper()
	k.copyWhole(t, dir)
	r, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(0, r.Meta().OriginNS+1e6).UTC().Format(time.RFC3339Nano)
	marks := len(r.Marks())
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	k.kill(t, dir, "mark", dir, "killed", "--at", at)
	if r, err = rundb.Open(dir); err != nil {
		t.Error(err)
		return
	}
	if n := len(r.Marks()); n != marks && n != marks+1 {
		t.Errorf("%d marks, had %d", n, marks)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	k.rules(t, dir, "json", "csv", "jsonl", "parquet")
}

// importing kills an import; the next one with --force does the whole job.
func (k killing) importing(t *testing.T, dir string) {
	t.Helper()
	args := []string{"import", "openmetrics", k.text, "-o", dir, "--quiet"}
	k.kill(t, dir, args...)
	if k.begun(t, dir) {
		k.rules(t, dir)
		if code, talk := runQuiet("export", dir, "--formats", "json"); code != exitDone {
			t.Errorf("export of a killed import: exit %d: %s", code, talk)
		}
	}
	if k.rng.IntN(4) == 0 {
		if code, talk := runQuiet(append(args, "--force")...); code != exitDone {
			t.Errorf("import again: exit %d: %s", code, talk)
		}
		k.rules(t, dir)
	}
}

// export kills an export: each file is the whole old or the whole new one, and
// exporting again gives the same bytes as ever.
func (k killing) export(t *testing.T, dir string) {
	t.Helper()
	k.copyWhole(t, dir)
	k.kill(t, dir, "export", dir, "--formats", "json,csv,jsonl,parquet")
	k.rules(t, dir, "json", "csv", "jsonl", "parquet")
	if code, talk := runQuiet("export", dir, "--formats", "json,csv,jsonl,parquet"); code != exitDone {
		t.Errorf("export again: exit %d: %s", code, talk)
	}
	if err := faults.Same(dir, k.whole, k.exports...); err != nil {
		t.Error(err)
	}
}

func (k killing) copyWhole(t *testing.T, dir string) {
	t.Helper()
	if err := os.CopyFS(dir, os.DirFS(k.whole)); err != nil {
		t.Fatal(err)
	}
	chmodAll(t, dir)
}

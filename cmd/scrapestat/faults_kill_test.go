//go:build unix

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/faults"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/simulate"
)

// killed is what the kill points of TestFaultKill share.
type killed struct {
	rng           *rand.Rand
	url           string
	whole         string // a run that nobody killed, with its exports
	text          string // an OpenMetrics file
	exports       []string
	before, equal int // points before there was a run; runs compared with a clean stop
}

// TestFaultKill kills scrapestat with SIGKILL at random moments of collect, mark,
// import and export (D03). Whatever it was at: the run is readable or not begun,
// files are complete or absent, and the exports are those of a clean stop. How
// much a kill may cost is TestKill's question.
func TestFaultKill(t *testing.T) {
	n := points(12)
	engine := newEngineServer(t)
	k := &killed{rng: rand.New(rand.NewPCG(9, 10)), url: engine, whole: filepath.Join(t.TempDir(), "whole"),
		exports: []string{"server_metrics_export.csv", "server_metrics_export.jsonl", "server_metrics_export.parquet"}}
	try(t, exitDone, "", append([]string{"collect", engine, "-o", k.whole, "--formats", "json,csv,jsonl,parquet"}, quickRun...)...)
	k.text = filepath.Join(t.TempDir(), "text")
	var b strings.Builder
	b.WriteString("# TYPE a counter\n")
	for i := range 20_000 {
		fmt.Fprintf(&b, "a_total{i=\"%d\"} %d %d\n", i%50, i, 1_700_000_000+i/50)
	}
	if err := os.WriteFile(k.text, []byte(b.String()+"# EOF\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		dir := filepath.Join(t.TempDir(), "run")
		switch i % 4 {
		case 0:
			k.collect(t, dir)
		case 1:
			k.mark(t, dir)
		case 2:
			k.importing(t, dir)
		case 3:
			k.export(t, dir)
		}
		if t.Failed() {
			t.Fatalf("point %d of %d", i, n)
		}
		_ = os.RemoveAll(filepath.Dir(dir)) // a thousand of them fill a disk
	}
	faults.Figure(t, "kill", fmt.Sprintf("%d kill -9 points through collect, mark, import and export (%d before there was a run): every run readable, 0 broken files, %d runs equal to a clean stop, byte by byte", n, k.before, k.equal),
		"SCRAPESTAT_POINTS=1000 go test ./cmd/scrapestat -run TestFaultKill -v")
}

func newEngineServer(t *testing.T) string {
	t.Helper()
	sim, err := simulate.New("vllm", simulate.Options{Rate: 40, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	return serveHandler(t, sim)
}

// kill starts scrapestat and kills it after at most d.
func (k *killed) kill(t *testing.T, d time.Duration, args ...string) {
	t.Helper()
	cmd := exec.Command("scrapestat", args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if k.rng.IntN(4) > 0 && args[0] == "collect" {
		waitForFile(filepath.Join(args[3], "run.db"))
	}
	<-time.After(time.Duration(k.rng.Int64N(int64(d))))
	_ = cmd.Process.Kill() // it may have ended
	_ = cmd.Wait()         // killed: there is an error
}

// begun says whether there is a run: one that could not be opened had not.
func (k *killed) begun(dir string) bool {
	r, err := rundb.Open(dir)
	if err != nil {
		k.before++
		return false
	}
	return r.Close() == nil
}

// waitForFile waits until there is a file, but not for ever.
func waitForFile(path string) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range 5000 {
		if _, err := os.Stat(path); err == nil {
			return
		}
		<-tick.C
	}
}

func (k *killed) rules(t *testing.T, dir string, formats ...string) {
	t.Helper()
	if err := faults.Check(t.Context(), faults.Evidence{Dir: dir, Formats: formats, Killed: true}); err != nil {
		t.Error(err)
	}
}

func (k *killed) collect(t *testing.T, dir string) {
	t.Helper()
	k.kill(t, 500*time.Millisecond, "collect", k.url, "-o", dir, "--interval", "10ms", "--max-scrape-share", "0", "--quiet", "--duration", "300ms", "--settle", "0s")
	if !k.begun(dir) {
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
	k.equal++
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
	return w.Close()
}

// mark kills a process that sets a mark in a run: the mark is there or not.
func (k *killed) mark(t *testing.T, dir string) {
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
	k.kill(t, 60*time.Millisecond, "mark", dir, "killed", "--at", at)
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
func (k *killed) importing(t *testing.T, dir string) {
	t.Helper()
	args := []string{"import", "openmetrics", k.text, "-o", dir, "--quiet"}
	k.kill(t, 250*time.Millisecond, args...)
	if k.begun(dir) {
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
func (k *killed) export(t *testing.T, dir string) {
	t.Helper()
	k.copyWhole(t, dir)
	k.kill(t, 120*time.Millisecond, "export", dir, "--formats", "json,csv,jsonl,parquet")
	k.rules(t, dir, "json", "csv", "jsonl", "parquet")
	if code, talk := runQuiet("export", dir, "--formats", "json,csv,jsonl,parquet"); code != exitDone {
		t.Errorf("export again: exit %d: %s", code, talk)
	}
	if err := faults.Same(dir, k.whole, k.exports...); err != nil {
		t.Error(err)
	}
}

func (k *killed) copyWhole(t *testing.T, dir string) {
	t.Helper()
	if err := os.CopyFS(dir, os.DirFS(k.whole)); err != nil {
		t.Fatal(err)
	}
	chmodAll(t, dir)
}

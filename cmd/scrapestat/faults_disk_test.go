//go:build unix

package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/internal/faults"
	"github.com/scrapestat/scrapestat/rundb"
)

// points is how many random points a test of crashes or full disks tries: few in
// CI, SCRAPESTAT_POINTS for the figures of docs/reliability.md.
func points(few int) int {
	if n, err := strconv.Atoi(os.Getenv("SCRAPESTAT_POINTS")); err == nil && n > 0 {
		return n
	}
	return few
}

// limited runs scrapestat in a shell that may write files of so many blocks of
// 512 bytes, and returns its exit code and what it said.
func limited(blocks int, args ...string) (code int, said string) {
	cmd := exec.Command("sh", append([]string{"-c", fmt.Sprintf(`ulimit -f %d; exec scrapestat "$@"`, blocks), "sh"},
		args...)...)
	out, _ := cmd.CombinedOutput() // the code is what counts
	return cmd.ProcessState.ExitCode(), string(out)
}

// TestFaultDiskFull exports and collects against random limits on the size of
// files (D04): what does not fit is said and leaves nothing, what fits is whole,
// and the recording stays.
func TestFaultDiskFull(t *testing.T) {
	t.Parallel()
	n := points(6)
	rng := rand.New(rand.NewPCG(3, 4))
	whole := newRun(t)
	srv := serveBad(t, goodScript)
	full, fine := 0, 0
	for i := range n {
		dir := filepath.Join(t.TempDir(), "run")
		var code int
		var said string
		if i%2 == 0 { // exports of a whole run: the files have 1 to 40 KiB
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			for _, format := range []string{"json", "csv", "jsonl", "parquet"} {
				_ = os.Remove(filepath.Join(dir, "server_metrics_export."+format)) // is made anew
			}
			chmodAll(t, dir)
			code, said = limited(rng.IntN(14), "export", dir, "--formats", "json,csv,jsonl,parquet")
		} else {
			code, said = limited(rng.IntN(400), append([]string{"collect", srv.Addr, "-o", dir, "--formats",
				"json,csv,jsonl,parquet"}, quickRun...)...)
		}
		if code == exitDone {
			fine++
			checkFaultyRun(t, dir, "json", "csv", "jsonl", "parquet")
			continue
		}
		full++
		if code != exitFailed && code != exitUsage && code != exitNothing || !strings.Contains(said, "scrapestat: ") {
			t.Errorf("point %d: exit %d: %s", i, code, said)
		}
		if strings.Contains(said, "panic") || strings.Contains(said, "goroutine ") {
			t.Fatalf("point %d: %s", i, said)
		}
		afterFull(t, dir, said)
	}
	faults.Figure(t, "disk-full-ulimit", fmt.Sprintf(
		"%d random limits on the size of files (ulimit -f), %d of them hit: 0 silent losses, 0 broken files, every "+
			"recording readable, or the failure to create it told", n, full),
		"SCRAPESTAT_POINTS=200 go test ./cmd/scrapestat -run TestFaultDiskFull -v")
}

func chmodAll(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.Chmod(filepath.Join(dir, e.Name()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// notCreated is what is said when there was not even room to begin a recording, or for its first commit.
var notCreated = regexp.MustCompile(`scrapestat: .*((create|write) recording|(create|write to) run directory)`)

// afterFull checks a run whose disk was full: no broken file, and once there is
// room the recording exports, unless it had not even begun, and that was said.
func afterFull(t *testing.T, dir, said string) {
	t.Helper()
	r, err := rundb.Open(dir)
	if err != nil {
		if why := nothingCommitted(t.Context(), dir); why != nil || !notCreated.MatchString(said) {
			t.Errorf("%v: %v:\n%s", err, why, said)
		}
		return
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := faults.Check(t.Context(), faults.Evidence{Dir: dir}); err != nil {
		t.Error(err)
	}
	if code, talk := runQuiet("export", dir, "--formats", "json,csv,jsonl,parquet"); code != exitDone {
		t.Errorf("export with room again: exit %d: %s", code, talk)
	} else {
		checkFaultyRun(t, dir, "json", "csv", "jsonl", "parquet")
	}
}

// TestFaultTinyDisk does the same on a file system of random size, which is full
// for all files together: a tmpfs in a name space of its own.
func TestFaultTinyDisk(t *testing.T) {
	t.Parallel()
	if err := exec.Command("unshare", "-rm", "true").Run(); err != nil {
		t.Log("no user name spaces here: the limits of TestFaultDiskFull are what is tried")
		return
	}
	n := points(4)
	rng := rand.New(rand.NewPCG(5, 6))
	srv := serveBad(t, goodScript)
	full := 0
	for i := range n {
		tmp := t.TempDir()
		mount, kept := filepath.Join(tmp, "m"), filepath.Join(tmp, "kept")
		if err := os.Mkdir(mount, 0o700); err != nil {
			t.Fatal(err)
		}
		size := 16 + rng.IntN(400)
		script := fmt.Sprintf(`mount -t tmpfs -o size=%dk none %s || exit 99
scrapestat collect %s -o %s/run --formats json,csv,jsonl,parquet %s
code=$?
cp -a %s %s
exit $code`, size, mount, srv.Addr, mount, strings.Join(quickRun, " "), mount, kept)
		cmd := exec.Command("unshare", "-rm", "sh", "-c", script)
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		_ = cmd.Run() // the code is what counts
		switch code := cmd.ProcessState.ExitCode(); {
		case code == 99:
			t.Logf("no tmpfs here: %s", said.String())
			return
		case code == exitDone:
			checkFaultyRun(t, filepath.Join(kept, "run"), "json", "csv", "jsonl", "parquet")
		default:
			full++
			if !strings.Contains(said.String(), "scrapestat: ") || strings.Contains(said.String(), "goroutine ") {
				t.Errorf("point %d, %d KiB: exit %d: %s", i, size, code, said.String())
			}
			afterFull(t, filepath.Join(kept, "run"), said.String())
		}
	}
	faults.Figure(t, "disk-full-tmpfs", fmt.Sprintf(
		"%d file systems of random size (tmpfs), %d of them full: 0 silent losses, 0 broken files, every recording "+
			"readable, or the failure to create it told", n, full),
		"SCRAPESTAT_POINTS=200 go test ./cmd/scrapestat -run TestFaultTinyDisk -v")
}

//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/faults"
)

// TestFaultReadOnly has the file system become read-only at a random moment of a
// run (D04), as Linux makes it when the disk fails: files that are open can no
// longer be written either. What cannot be written is said, and what was is whole.
func TestFaultReadOnly(t *testing.T) {
	t.Parallel()
	n := points(4)
	rng := rand.New(rand.NewPCG(11, 12))
	srv := serveBad(t, goodScript)
	tmp := t.TempDir()
	image := newImage(t, tmp)
	if image == "" {
		t.Log("no file systems can be made here: folders become read-only for an ordinary user, and what is open stays " +
			"writable")
	}
	recording, exporting, fine := 0, 0, 0
	for i := range n {
		place := filepath.Join(tmp, fmt.Sprint(i))
		strike := mountOrMake(t, image, place)
		dir := filepath.Join(place, "run")
		code, said := struck(t, rng, strike, place,
			append([]string{"collect", srv.Addr, "-o", dir, "--formats", "json,csv,jsonl,parquet"}, quickRun...)...)
		kept := filepath.Join(tmp, "kept")
		if out, err := exec.Command("cp", "-R", place, kept).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		unmount(t, image, place)
		run := filepath.Join(kept, "run")
		if exists(run) { // cp leaves the modes of a folder that is read-only, and others to the umask
			if err := os.Chmod(run, 0o700); err != nil {
				t.Fatal(err)
			}
			chmodAll(t, run)
		}
		switch {
		case code == exitDone:
			fine++
			checkFaultyRun(t, run, "json", "csv", "jsonl", "parquet")
		case code != exitFailed || !strings.Contains(said, "scrapestat: ") || strings.Contains(said, "goroutine ") ||
			!refused(said):
			t.Errorf("point %d: exit %d: %s", i, code, said)
		default:
			if exporting++; exists(filepath.Join(run, "run.db-wal")) || !exists(filepath.Join(run, "run.db")) {
				exporting, recording = exporting-1, recording+1
			}
			afterStrike(t, run, said)
		}
		if t.Failed() {
			t.Fatalf("point %d of %d", i, n)
		}
		if err := os.RemoveAll(kept); err != nil {
			t.Fatal(err)
		}
	}
	if image != "" {
		faults.Figure(t, "disk-read-only", fmt.Sprintf(
			"%d runs whose file system (ext4) became read-only at a random moment, %d while they were recorded, %d during "+
				"the exports, %d too late to matter: 0 silent losses, 0 broken files, every recording readable, or the "+
				"failure to create it told", n, recording, exporting, fine),
			"SCRAPESTAT_POINTS=200 go test ./cmd/scrapestat -run TestFaultReadOnly -timeout 1h -v")
	}
}

// refused reports whether the reason is told.
func refused(said string) bool {
	for _, why := range []string{"read-only file system", "readonly", "permission denied", "disk I/O error",
		"input/output error", "unable to open database file"} {
		if strings.Contains(said, why) {
			return true
		}
	}
	return false
}

// afterStrike is afterFull, but for the unfinished files that could not be removed.
func afterStrike(t *testing.T, run, said string) {
	t.Helper()
	for _, pattern := range []string{".*.tmp", ".probe-*"} {
		for _, path := range half(run, pattern) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	afterFull(t, run, said)
}

// struck runs scrapestat and strikes: seven of eight times at a random moment of its
// work, else of its start. It returns the exit code and what was said.
func struck(t *testing.T, rng *rand.Rand, strike func() error, place string, args ...string) (code int, said string) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command("scrapestat", args...)
	if exists(filepath.Join(place, "ordinary")) {
		cmd = ordinary(t, cmd, place)
	}
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // the code is what counts
	}()
	if rng.IntN(8) > 0 {
		waitUntil(func() bool { return exists(filepath.Join(place, "run", "run.db")) })
	}
	select {
	case <-done:
	case <-time.After(time.Duration(rng.Int64N(int64(250 * time.Millisecond)))):
	}
	if err := strike(); err != nil {
		t.Fatal(err)
	}
	<-done
	return cmd.ProcessState.ExitCode(), out.String()
}

// newImage makes an empty file system in a file, and returns "" where none can be
// mounted or made to fail.
func newImage(t *testing.T, tmp string) string {
	t.Helper()
	image, mount := filepath.Join(tmp, "image"), filepath.Join(tmp, "try")
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 8<<20)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", image).CombinedOutput(); err != nil {
		t.Logf("%v: %s", err, out)
		return ""
	}
	if err := os.Mkdir(mount, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-o", "loop", image, mount).CombinedOutput(); err != nil {
		t.Logf("%v: %s", err, out)
		return ""
	}
	defer unmount(t, image, mount)
	if _, err := os.Stat(breaker(t, mount)); err != nil {
		t.Log(err)
		return ""
	}
	return image
}

// breaker is the file that makes the file system mounted at a place fail.
func breaker(t *testing.T, place string) string {
	t.Helper()
	device, err := exec.Command("findmnt", "-n", "-o", "SOURCE", place).Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join("/sys/fs/ext4", filepath.Base(strings.TrimSpace(string(device))), "trigger_fs_error")
}

// mountOrMake mounts a copy of the image, or makes a folder without one. What it
// returns makes that read-only.
func mountOrMake(t *testing.T, image, place string) (strike func() error) {
	t.Helper()
	if err := os.Mkdir(place, 0o700); err != nil {
		t.Fatal(err)
	}
	if image == "" {
		if err := os.WriteFile(filepath.Join(place, "ordinary"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return func() error {
			if run := filepath.Join(place, "run"); exists(run) {
				return os.Chmod(run, 0o500)
			}
			return os.Chmod(place, 0o500)
		}
	}
	copied := place + ".image"
	for _, command := range [][]string{{"cp", "--sparse=always", image, copied}, {"mount", "-o", "loop,errors=remount-ro",
		copied, place}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", command, err, out)
		}
	}
	t.Cleanup(func() {
		if exists(copied) { // the test has failed on the way
			_ = exec.Command("umount", place).Run() // or it was not mounted
		}
	})
	path := breaker(t, place)
	return func() error { return os.WriteFile(path, []byte("1"), 0) }
}

// unmount gives back what mountOrMake took.
func unmount(t *testing.T, image, place string) {
	t.Helper()
	if image != "" {
		if out, err := exec.Command("umount", place).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	} else if err := errors.Join(os.Chmod(place, 0o700), os.Chmod(filepath.Join(place, "run"), 0o700)); err != nil &&
		!errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := errors.Join(os.RemoveAll(place), os.RemoveAll(place+".image")); err != nil {
		t.Fatal(err)
	}
}

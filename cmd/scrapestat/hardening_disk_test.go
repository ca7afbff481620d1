//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/scrapestat/scrapestat/internal/faults"
)

// onDisk collects into a file system of so many KiB, with COMMAND as a shell script that
// finds it as $DISK, and the directory $OUT, which it returns with a copy of the run.
func onDisk(t *testing.T, kib int, command string, flags ...string) (code int, said, out string) {
	t.Helper()
	if err := exec.Command("unshare", "-rm", "true").Run(); err != nil {
		t.Skip("no user name spaces here")
	}
	srv := serveBad(t, goodScript)
	out = t.TempDir()
	disk := filepath.Join(out, "disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	args := append(append([]string{"collect", srv.Addr, "-o", disk + "/run", "--formats", "json", "--interval", "10ms",
		"--scrape-budget", "0", "--settle", "0s"}, flags...), "--", "sh", "-c", command)
	cmd := exec.Command("unshare", append([]string{"-rm", "sh", "-c", fmt.Sprintf(
		`mount -t tmpfs -o size=%dk none $DISK || exit 99; scrapestat "$@"; code=$?; rm -f $DISK/ballast
cp -a $DISK/run $OUT; exit $code`, kib), "sh"}, args...)...)
	cmd.Env = append(os.Environ(), "DISK="+disk, "OUT="+out)
	var talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &talk, &talk
	_ = cmd.Run() // the code is what counts
	if code = cmd.ProcessState.ExitCode(); code == 99 {
		t.Skip("no tmpfs here: " + talk.String())
	}
	return code, talk.String(), out
}

// fillDisk fills the disk, and freeDisk frees it, as parts of COMMAND.
const (
	fillDisk = "sleep 0.3; dd if=/dev/zero of=$DISK/ballast bs=4k 2>/dev/null; sleep 1; "
	freeDisk = "rm $DISK/ballast; sleep 0.4; "
)

// fullDisks fills the disk while COMMAND runs: it runs to its end, its code is that of
// the run, and what was measured is in the recording where there is room again.
func fullDisks(t *testing.T) {
	for _, x := range []struct {
		name, command string
		code          int
		said          string
		flags         []string
	}{
		{"freed", fillDisk + freeDisk + "touch $OUT/ran", exitDone, "writing failed for", nil},
		{"freed, COMMAND fails", fillDisk + freeDisk + "touch $OUT/ran; exit 7", 7, "writing failed for", nil},
		{"no room in memory", fillDisk + freeDisk + "touch $OUT/ran", exitIncomplete, "scrapes not written",
			[]string{"--strict", "--max-pending", "1000"}},
		{"not freed", fillDisk + "touch $OUT/ran", exitFailed, "polls are lost", nil},
		{"not freed, COMMAND fails", fillDisk + "touch $OUT/ran; exit 7", 7, "polls are lost", nil},
		{"no room to begin", "touch $OUT/ran", exitFailed, "it takes 262144 bytes to begin with", nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			begins, kib := x.name != "no room to begin", 64
			if begins {
				kib = 2048
			}
			code, said, out := onDisk(t, kib, x.command, x.flags...)
			if code != x.code || !strings.Contains(said, x.said) ||
				begins && strings.Count(said, "warning: write recording") != 1 {
				t.Errorf("exit %d, want %d and %q:\n%s", code, x.code, x.said, said)
			}
			if ran := exists(filepath.Join(out, "ran")); ran != begins {
				t.Errorf("COMMAND ran to its end: %v, want %v", ran, begins)
			}
			if !begins {
				return
			}
			accounts, err := faults.Accounts(t.Context(), filepath.Join(out, "run"))
			if err != nil || (accounts[0].Outcomes["unwritten"] > 0) != (x.code == exitIncomplete) {
				t.Errorf("%v, %v", accounts, err)
			}
			if strings.HasPrefix(x.name, "freed") {
				checkFaultyRun(t, filepath.Join(out, "run"), "json")
			}
		})
	}
}

// heldEvents has lines about requests come while the disk is full: they are held, and in the recording at its end.
func heldEvents(t *testing.T) {
	tmp := t.TempDir()
	pipe, file := filepath.Join(tmp, "pipe"), filepath.Join(tmp, "lines")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip("no FIFOs here: ", err)
	}
	var lines strings.Builder
	for i := range int64(200) {
		at := 1_790_000_000_000_000_000 + i*1_000_000
		fmt.Fprintf(&lines, `{"id":"r%d","issued_ns":%d,"complete_ns":%d}`+"\n", i, at, at+1000)
	}
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	command := "sleep 0.3; dd if=/dev/zero of=$DISK/ballast bs=4k 2>/dev/null; cat " + file + " >" + pipe +
		"; sleep 0.3; rm $DISK/ballast; touch $OUT/ran"
	code, said, out := onDisk(t, 2048, command, "--requests", pipe)
	if code != exitDone || !exists(filepath.Join(out, "ran")) || !strings.Contains(said, "0 events lost") {
		t.Fatalf("exit %d:\n%s", code, said)
	}
	try(t, exitDone, `"issued": 200`, "requests", "report", filepath.Join(out, "run"), "--format", "json", "--strict")
}

// removedDirectory removes the run directory while COMMAND runs.
func removedDirectory(t *testing.T) {
	srv := serveBad(t, goodScript)
	tmp := t.TempDir()
	dir, ran := filepath.Join(tmp, "run"), filepath.Join(tmp, "ran")
	try(t, exitDone, "", append(append([]string{"collect", srv.Addr, "-o", dir, "--formats", "json"},
		endless...), "--", "sh", "-c", "sleep 0.5; rm -r "+dir+"; sleep 0.5; touch "+ran)...)
	if !exists(ran) {
		t.Error("COMMAND did not run to its end")
	}
	checkFaultyRun(t, dir, "json")
	if n, err := countStored(dir); err != nil || n == 0 {
		t.Errorf("%d polls, %v", n, err)
	}
}

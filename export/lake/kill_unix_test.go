//go:build unix

package lake_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/export/lake"
)

const killAfter = "SCRAPESTAT_TEST_KILL_AFTER"

// TestKilled kills the process after each file with SIGKILL, then adds the run again: the lake is the one that was
// never killed, and what stood before was no run or a whole one.
func TestKilled(t *testing.T) {
	if n, err := strconv.Atoi(os.Getenv(killAfter)); err == nil {
		wrote := 0
		_, _, err := add(t, os.Getenv("SCRAPESTAT_TEST_LAKE"), "triton-killed", lake.Options{Wrote: func(string) {
			if wrote++; wrote == n {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}})
		t.Fatal("it was not killed", err)
	}
	whole := t.TempDir()
	if _, there, err := add(t, whole, "triton-killed", lake.Options{}); there || err != nil {
		t.Fatal(there, err)
	}
	want := tree(t, whole)
	for after := 1; after < len(want); after++ {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", killAfter, after), "SCRAPESTAT_TEST_LAKE="+dir)
		if out, err := cmd.CombinedOutput(); err == nil || strings.Contains(string(out), "not killed") {
			t.Fatalf("%v\n%s", err, out)
		}
		names, err := lake.Names(dir)
		if last := after == len(want)-1; err != nil || len(names) == 1 != last {
			t.Errorf("killed after file %d: runs %v, %v", after, names, err)
		}
		if found, err := lake.Verify(dir, time.Time{}); err != nil || len(found.Bad) > 0 ||
			len(found.Orphans) == 0 != (after == len(want)-1) {
			t.Errorf("killed after file %d: %+v, %v", after, found, err)
		}
		if _, _, err := add(t, dir, "triton-killed", lake.Options{}); err != nil {
			t.Errorf("killed after file %d, then added: %v", after, err)
		}
		if got := tree(t, dir); !maps.Equal(got, want) {
			t.Errorf("killed after file %d, then added: files %v, want %v", after, slices.Sorted(maps.Keys(got)),
				slices.Sorted(maps.Keys(want)))
		}
	}
}

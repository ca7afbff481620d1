package atomicfile_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestSyncFails puts a device, which cannot be synced, behind the writer's file
// descriptor, so that the commit fails.
func TestSyncFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	w := create(t, path, 0)
	write(t, w, "x")
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(links) == 0 {
		t.Skip("no /proc")
	}
	for _, l := range links {
		if target, err := os.Readlink(l); err == nil && strings.HasPrefix(target, dir) {
			null, err := os.OpenFile("/dev/null", os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer null.Close()
			fd, err := strconv.Atoi(filepath.Base(l))
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Dup3(int(null.Fd()), fd, 0); err != nil { // fsync of a device: EINVAL
				t.Fatal(err)
			}
		}
	}
	if err := w.Commit(); err == nil || !strings.Contains(err.Error(), "sync "+path) {
		t.Errorf("got %v", err)
	}
	leftovers(t, dir)
}

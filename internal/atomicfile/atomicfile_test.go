package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/scrapestat/scrapestat/internal/atomicfile"
)

// leftovers fails the test when dir holds anything but the named files.
func leftovers(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("directory holds %q, want %q", got, want)
	}
}

func content(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v, want %q", path, got, err, want)
	}
}

func create(t *testing.T, path string, perm fs.FileMode) *atomicfile.Writer {
	t.Helper()
	w, err := atomicfile.Create(path, perm)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Abort)
	return w
}

func write(t *testing.T, w *atomicfile.Writer, s string) {
	t.Helper()
	if n, err := w.Write([]byte(s)); n != len(s) || err != nil {
		t.Fatalf("write: got %d, %v", n, err)
	}
}

func TestCommit(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json")
	w := create(t, path, 0)
	write(t, w, "one")
	write(t, w, "two")
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("file is there before the commit: %v", err)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	content(t, path, "onetwo")
	leftovers(t, dir, "a.json")

	w.Abort()
	w.Abort()
	content(t, path, "onetwo")
	if err := w.Commit(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("second commit: got %v", err)
	}
	if _, err := w.Write(nil); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("write after commit: got %v", err)
	}
	if err := atomicfile.WriteFile(path, []byte("new"), 0); err != nil {
		t.Fatal(err)
	}
	content(t, path, "new")
	leftovers(t, dir, "a.json")
}

func TestAbort(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	w := create(t, path, 0)
	write(t, w, "new")
	w.Abort()
	w.Abort()
	content(t, path, "old")
	leftovers(t, dir, "a")
	if err := w.Commit(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("commit after abort: got %v", err)
	}
}

func TestMode(t *testing.T) {
	check := func(perm, want fs.FileMode) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "a")
		if err := atomicfile.WriteFile(path, nil, perm); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode() != want {
			t.Errorf("perm %v: got %v, %v, want %v", perm, info.Mode(), err, want)
		}
	}
	defer syscall.Umask(syscall.Umask(0))
	check(0, 0o600)
	check(0o644, 0o644)
	syscall.Umask(0o077)
	check(0o644, 0o644)
}

func TestName(t *testing.T) {
	dir := t.TempDir()
	refuse := func(path, want string) {
		t.Helper()
		if _, err := atomicfile.Create(path, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("create %q: got %v, want %q", path, err, want)
		}
	}
	refuse("", "not the name of a file")
	refuse(dir+"/", "not the name of a file")
	refuse(dir, "is a directory")
	refuse(filepath.Join(dir, "none", "a"), "no such file")
	leftovers(t, dir)

	long := strings.Repeat("x", 255)
	if err := atomicfile.WriteFile(filepath.Join(dir, long), nil, 0); err != nil {
		t.Error(err)
	}
	if err := atomicfile.WriteFile(filepath.Join(dir, "a*b"), nil, 0); err != nil {
		t.Error(err)
	}
	leftovers(t, dir, "a*b", long)
	t.Chdir(dir)
	if err := atomicfile.WriteFile("here", []byte("x"), 0); err != nil {
		t.Error(err)
	}
	content(t, filepath.Join(dir, "here"), "x")
}

// TestRenameFails has a directory take the name before the commit.
func TestRenameFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	w := create(t, path, 0)
	write(t, w, "x")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); err == nil || !strings.Contains(err.Error(), "rename "+path) ||
		strings.Contains(err.Error(), ".tmp") {
		t.Errorf("got %v", err)
	}
	leftovers(t, dir, "a")
}

// TestDiskFull runs itself under a limit on the size of files, where write(2)
// fails in the middle of a file.
func TestDiskFull(t *testing.T) {
	if dir := os.Getenv("ATOMICFILE_DIR"); dir != "" {
		w := create(t, filepath.Join(dir, "a"), 0)
		_, err := w.Write(make([]byte, 1<<20))
		if !errors.Is(err, syscall.EFBIG) || !strings.HasPrefix(err.Error(), "write "+dir) {
			t.Errorf("write: got %v", err)
		}
		if err := w.Commit(); !errors.Is(err, syscall.EFBIG) {
			t.Errorf("commit after a failed write: got %v", err)
		}
		leftovers(t, dir)
		return
	}
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell")
	}
	cmd := exec.Command(shell, "-c", `ulimit -f 64 && exec "$0" -test.run='^TestDiskFull$'`, os.Args[0])
	cmd.Env = append(os.Environ(), "ATOMICFILE_DIR="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

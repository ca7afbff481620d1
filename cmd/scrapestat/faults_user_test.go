//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobody is the user who runs what root is not refused.
const nobody = 65534

// ordinary makes a command to be run by a user who is not root and owns what is in
// the folders: ours, unless that is root.
func ordinary(t *testing.T, cmd *exec.Cmd, folders ...string) *exec.Cmd {
	t.Helper()
	if os.Getuid() != 0 {
		return cmd
	}
	reachable(t, cmd.Path)
	for _, folder := range folders {
		reachable(t, folder)
		err := filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, nobody, nobody)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return cmd
}

// reachable lets everybody pass through the folders above a path that this test has
// made.
func reachable(t *testing.T, path string) {
	t.Helper()
	top := filepath.Clean(os.TempDir()) + string(filepath.Separator)
	for dir := filepath.Dir(path); strings.HasPrefix(dir, top); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o711); err != nil {
			t.Fatal(err)
		}
	}
}

// tryOrdinary runs scrapestat as an ordinary user who owns the folders, and checks its
// exit code and what it says.
func tryOrdinary(t *testing.T, folders []string, code int, want string, args ...string) {
	t.Helper()
	cmd := ordinary(t, exec.Command("scrapestat", args...), folders...)
	said, _ := cmd.CombinedOutput() // the code is what counts
	if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(string(said), want) {
		t.Errorf("%q: exit %d, want %d and %q:\n%s", args, got, code, want, said)
	}
}

// TestCatalogueUser has the cases D04, D05 and T17 in which the system refuses what
// it grants to root: CI is root, so another user runs them.
func TestCatalogueUser(t *testing.T) {
	t.Run("D04 read-only", func(t *testing.T) {
		dir := newRun(t)
		before := names(t, dir)
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.Chmod(dir, 0o700) }() // so that it can be removed
		tryOrdinary(t, []string{dir}, exitFailed, "permission denied", "export", dir, "--formats", "csv")
		if after := names(t, dir); after != before {
			t.Errorf("it holds %s, want %s", after, before)
		}
	})
	t.Run("D05 locked directory", func(t *testing.T) {
		tmp := t.TempDir()
		locked, ran := filepath.Join(tmp, "locked"), filepath.Join(tmp, "ran")
		if err := os.Mkdir(locked, 0o500); err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(locked, "run")
		tryOrdinary(t, []string{tmp}, exitFailed, out+": permission denied", "collect", "127.0.0.1:1", "--require-targets",
			"none", "-o", out, "--", "touch", ran)
		tryOrdinary(t, []string{tmp}, exitFailed, locked, "collect", "127.0.0.1:1", "--require-targets", "none", "-o", locked,
			"--", "touch", ran)
		if exists(ran) {
			t.Error("the load was started")
		}
		tryOrdinary(t, []string{tmp}, exitNothing, "refused", "collect", "127.0.0.1:1", "--require-targets", "none", "-o",
			filepath.Join(tmp, "run"), "--settle", "0s", "--", "touch", ran)
		if !exists(ran) {
			t.Error("the load was not started where it could be")
		}
	})
	t.Run("T17 unreadable key", func(t *testing.T) {
		l, tmp := startLocked(t), t.TempDir()
		args := append([]string{"collect", "-o", filepath.Join(tmp, "run"), "--formats", "json"}, quickRun...)
		args = append(append(args, l.flags("", l.good)...), "https://"+l.host+"/metrics")
		if err := os.Chmod(l.key, 0); err != nil {
			t.Fatal(err)
		}
		tryOrdinary(t, []string{l.dir, tmp}, exitUsage, l.key+": permission denied", args...)
		if err := os.Chmod(l.key, 0o400); err != nil {
			t.Fatal(err)
		}
		tryOrdinary(t, []string{l.dir, tmp}, exitDone, "recording 1 targets", args...)
	})
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(e.Name() + " ")
	}
	return b.String()
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

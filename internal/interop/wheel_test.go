package interop_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// interpreters are the Pythons of this machine that the package is for.
func interpreters(t *testing.T) (out []string) {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	for minor := 10; minor <= 14; minor++ {
		version := fmt.Sprintf("3.%d.*", minor)
		found, err := filepath.Glob(filepath.Join(home, ".pyenv", "versions", version, "bin", "python3"))
		if err != nil {
			t.Fatal(err)
		}
		if path, err := exec.LookPath(fmt.Sprintf("python3.%d", minor)); err == nil && len(found) == 0 {
			found = []string{path}
		}
		out = append(out, found...)
	}
	return out
}

// release makes the wheel of this commit, as a pre-release.
func release(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "clone")
	do := func(dir, program string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", program, args, err, out)
		}
	}
	do(".", "git", "clone", "-q", filepath.Join("..", ".."), dir)
	changes, err := os.ReadFile(filepath.Join(dir, "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	heading := regexp.MustCompile(`(?m)^## ([0-9.]+), `).FindSubmatch(changes)
	do(dir, "git", "tag", "v"+string(heading[1])+"-rc.1")
	do(dir, "go", "run", "./internal/release", "-platforms", "linux/amd64")
	wheels, err := filepath.Glob(filepath.Join(dir, "dist", "*.whl"))
	if err != nil || len(wheels) != 1 {
		t.Fatalf("wheels %v, %v", wheels, err)
	}
	return wheels[0]
}

// TestWheel installs the wheel of this commit into a clean environment of each Python, where no Go is on PATH: the
// program and the package work, fit each other, and leave nothing behind.
func TestWheel(t *testing.T) {
	python(t) // without the environment of these tests nothing here runs
	list := interpreters(t)
	if len(list) == 0 {
		t.Fatal("no Python from 3.10 on")
	}
	wheel := release(t)
	info, err := os.Stat(wheel)
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("%s: %d bytes", filepath.Base(wheel), info.Size()); info.Size() > 20_000_000 {
		t.Error("the wheel is larger than 20 MB") // 19 were planned: docs/decisions/0088-serve.md
	}
	for _, interpreter := range list {
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(interpreter))), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			env := filepath.Join(dir, "env")
			bin := filepath.Join(env, "bin")
			do := func(program string, args ...string) string {
				t.Helper()
				cmd := exec.CommandContext(t.Context(), program, args...)
				cmd.Dir = dir
				cmd.Env = []string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + dir, "PIP_DISABLE_PIP_VERSION_CHECK=1"}
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%s %v: %v\n%s", program, args, err, out)
				}
				return string(out)
			}
			do(interpreter, "-m", "venv", env)
			pip := func(args ...string) string {
				return do(filepath.Join(bin, "python"), append([]string{"-m", "pip"}, args...)...)
			}
			pip("install", "--quiet", "--no-index", wheel)
			do("/bin/sh", "-c", "! command -v go")
			program := filepath.Join(bin, "scrapestat")
			version := strings.Fields(do(program, "version"))[1]
			do(program, "demo", "-o", "demo", "--duration", "1s", "--warmup", "0s")
			do(program, "simulate", "vllm", "--record", "run1", "--duration", "30s")
			const script = `import scrapestat as ss
print(ss.__version__, ss.binary(), len(ss.load("run1").quantiles("ttft", every="10s", to="dicts")))`
			got := strings.TrimSpace(do(filepath.Join(bin, "python"), "-c", script))
			want := strings.Replace(version, "-rc.", "rc", 1) + " " + program + " 12"
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if said := do(filepath.Join(bin, "python"), "-m", "scrapestat", "version"); !strings.Contains(said, version) {
				t.Errorf("python -m scrapestat: %q", said)
			}
			pip("check")
			pip("uninstall", "--quiet", "--yes", "scrapestat")
			left, err := filepath.Glob(filepath.Join(env, "lib", "*", "site-packages", "scrapestat*"))
			if _, gone := os.Stat(program); err != nil || len(left) > 0 || !os.IsNotExist(gone) {
				t.Errorf("left behind: %v, %v, %v", left, err, gone)
			}
		})
	}
}

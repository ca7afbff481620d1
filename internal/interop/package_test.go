package interop_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPythonPackage runs the tests of the package in python/ with the program of this tree, and holds it to its types.
func TestPythonPackage(t *testing.T) {
	interpreter := python(t)
	bin := filepath.Join(t.TempDir(), "scrapestat")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./cmd/scrapestat")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, args := range map[string][]string{
		"tests": {"-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"},
		"types": {"-m", "mypy", "--strict", "--follow-imports", "skip", "--ignore-missing-imports",
			"--cache-dir", t.TempDir(), "scrapestat"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), interpreter, args...)
			cmd.Dir = filepath.Join("..", "..", "python")
			cmd.Env = append(os.Environ(), "SCRAPESTAT_BIN="+bin, "PYTHONDONTWRITEBYTECODE=1")
			out, err := cmd.CombinedOutput()
			if t.Logf("%s", out); err != nil {
				t.Error(err)
			}
			if strings.Contains(string(out), " skipped") {
				t.Error("a test skipped")
			}
		})
	}
}

package interop_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/normalize"
)

// python returns the interpreter that has the packages of requirements.txt.
func python(t *testing.T) string {
	t.Helper()
	path := os.Getenv("SCRAPESTAT_PYTHON")
	if path == "" {
		t.Skip("SCRAPESTAT_PYTHON names no Python with the packages of internal/interop/requirements.txt")
	}
	return path
}

// check is a script of python/ with its arguments.
type check struct{ name, script, folder, bodies string }

// run has one interpreter do all checks, as to import the packages takes much
// longer than any of them. Each passes when its script says so; what it compared
// is logged.
func run(t *testing.T, interpreter string, checks []check) {
	t.Helper()
	var in strings.Builder
	for _, c := range checks {
		fmt.Fprintf(&in, "%s\t%s\t%s\n", c.script, c.folder, c.bodies)
	}
	cmd := exec.CommandContext(t.Context(), interpreter, "-u", filepath.Join("python", "checks.py"))
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "TZ=UTC")
	cmd.Stdin = strings.NewReader(in.String())
	out, err := cmd.CombinedOutput()
	parts := strings.Split(string(out), "== check\n")
	if err != nil || len(parts) != len(checks)+1 {
		t.Fatalf("%v after %d of %d checks\n%s", err, len(parts)-1, len(checks), out)
	}
	for i, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			text, passed := strings.CutSuffix(parts[i+1], "== passed\n")
			t.Log(text)
			if !passed {
				t.Errorf("%s found differences", c.script)
			}
		})
	}
}

// TestInterop records each scene, exports it in both modes for counter resets and
// lets everybody else read it.
func TestInterop(t *testing.T) {
	interpreter := python(t)
	var tables, aiperf []check
	for _, sc := range scenes(t) {
		dir := t.TempDir()
		sc.record(t, dir)
		sc.export(t, dir, "adjust", normalize.ResetAdjust)
		sc.export(t, dir, "clamp", normalize.ResetClamp)
		adjust, clamp, bodies := filepath.Join(dir, "adjust"), filepath.Join(dir, "clamp"), filepath.Join(dir, "bodies.jsonl")
		tables = append(tables, check{sc.name, "table_readers", adjust, ""})
		if sc.resets {
			tables = append(tables, check{sc.name + "/clamp", "table_readers", clamp, ""})
		}
		aiperf = append(aiperf, check{sc.name + "/models", "aiperf_models", adjust, ""})
		if !sc.foreign {
			aiperf = append(aiperf, check{sc.name + "/statistics", "aiperf_statistics", clamp, bodies})
		}
	}
	t.Run("readers", func(t *testing.T) {
		t.Parallel()
		run(t, interpreter, tables)
	})
	t.Run("aiperf", func(t *testing.T) {
		t.Parallel()
		run(t, interpreter, aiperf)
	})
}

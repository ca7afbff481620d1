package interop_test

import (
	"os"
	"os/exec"
	"path/filepath"
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

// run runs a script on a folder of exports. It passes when the script does and
// logs what the script compared.
func run(t *testing.T, interpreter, script string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), interpreter, append([]string{filepath.Join("python", script)}, args...)...)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "TZ=UTC")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("%s: %v", script, err)
	}
}

// TestInterop records each scene, exports it in both modes for counter resets and
// lets everybody else read it.
func TestInterop(t *testing.T) {
	interpreter := python(t)
	for _, sc := range scenes(t) {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			sc.record(t, dir)
			sc.export(t, dir, "adjust", normalize.ResetAdjust)
			sc.export(t, dir, "clamp", normalize.ResetClamp)
			t.Run("readers", func(t *testing.T) { run(t, interpreter, "table_readers.py", filepath.Join(dir, "adjust")) })
			if sc.resets {
				t.Run("readers/clamp", func(t *testing.T) { run(t, interpreter, "table_readers.py", filepath.Join(dir, "clamp")) })
			}
			t.Run("aiperf/models", func(t *testing.T) { run(t, interpreter, "aiperf_models.py", filepath.Join(dir, "adjust")) })
			t.Run("aiperf/statistics", func(t *testing.T) {
				run(t, interpreter, "aiperf_statistics.py", filepath.Join(dir, "bodies.jsonl"), filepath.Join(dir, "clamp"))
			})
		})
	}
}

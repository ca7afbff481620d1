package interop_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLake has DuckDB compute all statistics of a run with a restart over a lake, and compares them with the JSON of
// export. SCRAPESTAT_LAKE_ENGINES names others, which .ci/run installs for the long job: clickhouse, spark. There the
// run is that of the design, of 10 minutes.
func TestLake(t *testing.T) {
	interpreter, engines, duration, down := python(t), "duckdb", "100s", "60s..66s"
	if s := os.Getenv("SCRAPESTAT_LAKE_ENGINES"); s != "" {
		engines, duration, down = s, "10m", "100s..110s"
		interpreter = os.Getenv("SCRAPESTAT_LAKE_PYTHON")
	}
	tool, dir := filepath.Join(tool(t), "scrapestat"), t.TempDir()
	for _, args := range [][]string{
		{"simulate", "a=vllm,rate=8", "b=vllm,rate=4,seed=2,down=" + down, "f=sglang,rate=6,seed=6", "h=triton,rate=9,seed=8",
			"--record", "A", "--warmup", "30s", "--duration", duration, "--interval", "1s", "--seed", "1"},
		{"lake", "add", "A", "--to", "L"},
		{"export", "A", "-o", "out", "--estimator", "linear", "--formats", "json", "--slice-duration", "60s", "-q"},
	} {
		cmd := exec.CommandContext(t.Context(), tool, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	for engine := range strings.SplitSeq(engines, ",") {
		cmd := exec.CommandContext(t.Context(), interpreter, filepath.Join("python", "lake.py"), engine, tool,
			filepath.Join(dir, "L"), filepath.Join(dir, "out", "server_metrics_export.json"))
		cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "TZ=UTC", "PYSPARK_PYTHON="+interpreter)
		out, err := cmd.Output()
		if t.Log(string(out)); err != nil {
			t.Errorf("%s: %v", engine, err)
		}
	}
}

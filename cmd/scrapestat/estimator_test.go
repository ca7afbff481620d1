package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestScreensWithinBounds: no screen shows an estimate outside the interval that provably holds the percentile.
// AIPerf's numbers, in files and where they are asked for, are as they are: some lie outside.
func TestScreensWithinBounds(t *testing.T) {
	t.Parallel()
	runs, err := filepath.Glob("../../testdata/runs/*/run.db")
	if err != nil || len(runs) < 4 {
		t.Fatalf("%d recordings (%v), want at least 4", len(runs), err)
	}
	var shown, outside int
	for _, path := range runs {
		dir := filepath.Dir(path)
		for _, args := range [][]string{{"show", dir, "--all", "--by", "", "--format", "json"},
			{"check", dir, "--assert", "vllm:time_to_first_token_seconds p99 < 10s", "--format", "json"}} {
			n, beyond := outsideBounds(t, output(t, args...))
			if shown += n; beyond > 0 {
				t.Errorf("%v: %d of %d estimates lie outside their bounds", args, beyond, n)
			}
		}
		_, n := outsideBounds(t, output(t, "show", dir, "--all", "--format", "json", "--estimator", "polynomial"))
		outside += n
	}
	if shown < 250 || outside == 0 {
		t.Errorf("%d estimates on screens, want 250; %d of AIPerf's are outside, want some", shown, outside)
	}
}

// output is what a command prints, whatever its exit code.
func output(t *testing.T, args ...string) []byte {
	t.Helper()
	var out, talk bytes.Buffer
	if run(t.Context(), args, stdio{nil, &out, &talk}); out.Len() == 0 {
		t.Fatalf("%v prints nothing: %s", args, talk.String())
	}
	return out.Bytes()
}

// boundOf names the field of a bound of a value: "p99_low", "low".
func boundOf(key, end string) string {
	if key == "measured" || key == "value" {
		return end
	}
	return key + "_" + end
}

// outsideBounds counts the values of a document that have bounds, and those that lie beyond.
func outsideBounds(t *testing.T, doc []byte) (n, beyond int) {
	t.Helper()
	var all any
	if err := json.Unmarshal(doc, &all); err != nil {
		t.Fatal(err)
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for key, x := range v {
				low, hasLow := v[boundOf(key, "low")].(float64)
				high, hasHigh := v[boundOf(key, "high")].(float64)
				if value, ok := x.(float64); ok && (hasLow || hasHigh) {
					if n++; hasLow && value < low || hasHigh && value > high {
						beyond++
					}
				}
			}
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(all)
	return n, beyond
}

// TestCompareTakesTheEstimatorOfAnExport: the percentiles of an export cannot be made again, those of a recording can.
func TestCompareTakesTheEstimatorOfAnExport(t *testing.T) {
	t.Parallel()
	dir, run := t.TempDir(), "../../testdata/runs/vllm-bench-rate4"
	runOK(t, "export", run, "--formats", "json", "--slice-duration", "666ms", "-o", dir)
	file := filepath.Join(dir, "server_metrics_export.json")
	if _, err := os.Stat(file); err != nil {
		t.Fatal(err)
	}
	limit := "vllm:time_to_first_token_seconds p99 <= baseline + 0%"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"compare", "a=" + run, "b=" + file}, ""},
		{[]string{"compare", "a=" + file, "b=" + run}, ""},
		{[]string{"compare", "a=" + run, "b=" + file, "--estimator", "refined"}, "percentiles of different estimators"},
		{[]string{"check", run, "--baseline", file, "--assert", limit}, "PASS"},
		{[]string{"check", file, "--baseline", run, "--assert", limit}, "PASS"},
	} {
		out := output(t, c.args...)
		if c.want == "" && bytes.Contains(out, []byte("different estimators")) || !bytes.Contains(out, []byte(c.want)) {
			t.Errorf("%v: want %q in\n%s", c.args, c.want, out)
		}
	}
}

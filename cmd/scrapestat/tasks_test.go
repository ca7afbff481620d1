package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/scrapestat/scrapestat/internal/testkit"
)

// TestFiveTasks: what people come for is in README.md, at most two commands each, and answers on real recordings.
func TestFiveTasks(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	runs, made := testkit.Path(t, "runs"), filepath.Join(t.TempDir(), "ttft.parquet")
	paths := strings.NewReplacer("run1", filepath.Join(runs, "vllm-bench-rate4"), "run2",
		filepath.Join(runs, "aiperf-rate4"), "ttft.parquet", made, "'", "")
	for _, task := range []struct {
		what, command string
		code          int
		want          []string
	}{
		{"p99 TTFT of a run", "scrapestat show run1", 0, []string{"\nttft ", " P99\n", "642 ms [54.3, 750]"}},
		{"was run 2 slower", "scrapestat compare before=run1 after=run2", 0, []string{"TTFT mean ", "verdict\n"}},
		{"a gate of CI", "scrapestat check run2 --assert 'ttft p99 < 450ms' --ready resets,complete", 0,
			[]string{"PASS  ttft_p99<450ms   356 ms [291 ms, 438 ms]"}},
		{"p99 by 10 s for pandas", "scrapestat query run1 -m ttft --stat p99 --every 10s --format parquet -o ttft.parquet",
			0, nil},
		{"what limited the run", "scrapestat explain run1", 0, []string{"prefill"}},
	} {
		if !strings.Contains(string(readme), "\n"+task.command+"\n") {
			t.Errorf("%s: README.md has no %s", task.what, task.command)
		}
		args := strings.Fields(strings.Replace(task.command, "'ttft p99 < 450ms'", "ttft_p99<450ms", 1))[1:]
		for i := range args {
			args[i] = paths.Replace(args[i])
		}
		out, _ := answer(t, task.code, args...)
		for _, want := range task.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", task.what, want, out)
			}
		}
	}
	if !strings.Contains(string(readme), "\npython3 -c \"import pandas; print(pandas.read_parquet('ttft.parquet'))\"\n") {
		t.Error("README.md does not read ttft.parquet")
	}
	type row struct {
		Span  string  `parquet:"span"`
		Stat  string  `parquet:"stat"`
		Value float64 `parquet:"value"`
	}
	rows, err := parquet.ReadFile[row](made)
	slices := 0
	for _, r := range rows {
		if r.Span == "slice" && r.Stat == "p99" && r.Value > 0 && r.Value < 10 {
			slices++
		}
	}
	if err != nil || slices != 4 {
		t.Errorf("%d slices of %d rows, %v", slices, len(rows), err)
	}
}

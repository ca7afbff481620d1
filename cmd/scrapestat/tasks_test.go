package main

import (
	"bytes"
	"cmp"
	"html"
	"os"
	"path/filepath"
	"regexp"
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

// TestReportIsCompare: the report of two runs has the counts, the judged rows and the verdicts that compare prints.
func TestReportIsCompare(t *testing.T) {
	t.Parallel()
	runs, page := testkit.Path(t, "runs"), filepath.Join(t.TempDir(), "page.html")
	pair := []string{"a=" + filepath.Join(runs, "vllm-bench-rate4"), "b=" + filepath.Join(runs, "aiperf-rate4")}
	text, _ := answer(t, 0, "compare", pair[0], pair[1])
	answer(t, 0, "report", pair[0], pair[1], "-o", page, "--quiet")
	made, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, made, _ = bytes.Cut(made, []byte(`<section id="compare"`))
	section, _, _ := strings.Cut(html.UnescapeString(string(made)), "</section>")
	chips := map[string]string{}
	chip := regexp.MustCompile(`<span class="chip [a-z]*">(\d+) ([a-z ]+)</span>`)
	for _, m := range chip.FindAllStringSubmatch(section, -1) {
		chips[m[2]] = m[1]
	}
	_, totals, _ := strings.Cut(text, "exploratory rows:")
	for said, chip := range map[string]string{` (\d+) worse`: "worse", ` (\d+) moved;`: "moved", ` (\d+) the same`: "same",
		` (\d+) that need`: "needs repeats", ` (\d+) cannot be`: "incomparable"} {
		m := regexp.MustCompile(said).FindStringSubmatch(totals)
		if len(m) != 2 || m[1] != cmp.Or(chips[chip], "0") {
			t.Errorf("compare tells %v, the report has %q %s", m, chips[chip], chip)
		}
	}
	_, table, _ := strings.Cut(text, "verdict\n")
	table, _, _ = strings.Cut(table, "not judged:")
	rows := strings.Split(strings.TrimSpace(table), "\n")
	if len(rows) < 8 {
		t.Fatalf("%d judged rows in\n%s", len(rows), text)
	}
	for _, row := range rows { // columns are two spaces apart or more
		want := ""
		for _, c := range regexp.MustCompile(` {2,}`).Split(strings.TrimSpace(row), -1)[1:] {
			want += `<td class="num">` + c + `</td>`
			if !strings.Contains(section, `<td class="num">`+c+`</td>`) {
				t.Errorf("the report has no cell %q of the row %q", c, row)
			}
		}
		if strings.Contains(row, "[") && !strings.Contains(section, want) {
			t.Errorf("the report has no row %s", want)
		}
	}
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/explain"
	"github.com/scrapestat/scrapestat/internal/testkit"
	"github.com/scrapestat/scrapestat/internal/testkit/fakerun"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/report"
	"github.com/scrapestat/scrapestat/summary"
)

// screenOf is what show prints of a recording at a width.
func screenOf(t *testing.T, r *summary.Run, title string, width int) string {
	t.Helper()
	var b bytes.Buffer
	rules := explain.DefaultRules()
	o := report.Options{Title: title, Width: width, Causes: explainAll(r, rules, explain.Latency), Rules: rules}
	if err := report.Text(&b, r, o); err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(b.String(), "\n") {
		if texttab.Width(line) > width {
			t.Errorf("%s at %d columns: line %d has %d: %s", title, width, i+1, texttab.Width(line), line)
		}
	}
	if n := strings.Count(b.String(), "\n"); n > 40 {
		t.Errorf("%s at %d columns has %d lines", title, width, n)
	}
	return b.String()
}

func analysed(t *testing.T, path string) *summary.Run {
	t.Helper()
	a := analysisFlags{}
	so := a.options()
	so.Slice = summary.CauseSlices
	r, _, closeAll, err := load(context.Background(), []string{path}, a, so, newProgress(&bytes.Buffer{}, true))
	if err != nil {
		t.Fatal(err)
	}
	closeAll()
	return r
}

// TestScreens: the first screen of each recording of a real server fits 80, 120 and 200 columns and 40 lines, and says
// within 24 lines how much load there was, how fast it was, how many errors, and what limits it.
func TestScreens(t *testing.T) {
	t.Parallel()
	runs, err := filepath.Glob(testkit.Path(t, "runs") + "/*/run.db")
	if err != nil || len(runs) < 10 {
		t.Fatalf("%d recordings, %v", len(runs), err)
	}
	golden := map[string]bool{"vllm-bench-rate4": true, "classes-omni": true, "dynamo-late": true, "triton-steady": true}
	times := map[string][]string{"vllm-bench-rate4": {"ttft", "itl", "e2e"}, "aiperf-rate4": {"ttft", "itl", "e2e"},
		"classes-sglang": {"ttft", "itl", "e2e"}, "dynamo-late": {"ttft", "itl", "e2e"},
		"classes-omni":       {"e2e", "audio_ttfp"},
		"bentoml-sequential": {"e2e"}, "triton-steady": {"e2e"}, "llamacpp-late": {"tpot"}}
	for _, path := range runs {
		name := filepath.Base(filepath.Dir(path))
		r := analysed(t, filepath.Dir(path))
		for _, width := range []int{80, 120, 200} {
			got := screenOf(t, r, name, width)
			if golden[name] {
				sameAsFile(t, fmt.Sprintf("testdata/screens/%s-%d.txt", name, width), got)
			}
			first := strings.Join(strings.SplitN(got, "\n", 25)[:24], "\n")
			wanted := append(times[name], "measured", "polls", "errors")
			if strings.HasPrefix(name, "unknown-") {
				wanted = wanted[:2] // they answer no requests of a model
			}
			for _, want := range wanted {
				if !strings.Contains(first, "\n"+want+" ") {
					t.Errorf("%s at %d columns has no %s within 24 lines:\n%s", name, width, want, first)
				}
			}
			if times[name] != nil && name != "llamacpp-late" && (!strings.Contains(first, "\nlimit ") ||
				!strings.Contains(first, "\nrequest_rate ")) {
				t.Errorf("%s at %d columns does not tell load and limit:\n%s", name, width, first)
			}
		}
	}
}

// sameAsFile holds a text against a golden file.
func sameAsFile(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != got {
		t.Errorf("%s differs (%v): look at the screen, then go test ./cmd/scrapestat -run TestScreens -update\n%s", path, err,
			got)
	}
}

// TestUnknownServers: of a server that no pack knows the ten busiest families are told with rates and means, what its
// client library tells of the process last.
func TestUnknownServers(t *testing.T) {
	t.Parallel()
	f := fakerun.New("http://node/metrics")
	for i := range 11 {
		n := float64(i)
		body := fmt.Sprintf("# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total %g\n"+
			"# TYPE go_gc_cycles_total counter\ngo_gc_cycles_total %g\n"+
			"# TYPE grpc_server_handled_total counter\ngrpc_server_handled_total{m=\"a\"} %g\n"+
			"grpc_server_handled_total{m=\"b\"} %g\n"+
			"# TYPE disk_written_bytes_total counter\ndisk_written_bytes_total %g\n# TYPE load1 gauge\nload1 %g\n"+
			"# TYPE wal_seconds histogram\nwal_seconds_bucket{le=\"0.01\"} %g\nwal_seconds_bucket{le=\"+Inf\"} %g\n"+
			"wal_seconds_sum %g\nwal_seconds_count %g\n", 9e6*n, 5e6*n, 100*n, 50*n, 4e6*n, n,
			30*n, 40*n, 2*n, 40*n)
		for k := range 12 {
			body += fmt.Sprintf("# TYPE steps_%02d_total counter\nsteps_%02d_total %g\n", k, k, n*float64(k))
		}
		f.Scrape(0, n, body)
	}
	r, err := summary.Build(context.Background(), []summary.Recording{f}, summary.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := screenOf(t, r, "unknown", 80)
	_, table, _ := strings.Cut(got, "FAMILY")
	rows := strings.Split(strings.SplitN(table, "\n\n", 2)[0], "\n")[1:]
	if len(rows) != 10 || !strings.HasPrefix(rows[0], "grpc_server_handled_total ") ||
		!strings.Contains(rows[0], " 150/s ") {
		t.Errorf("%d families:\n%s", len(rows), got)
	}
	for _, want := range []string{"wal_seconds ", " 40/s ", " 50 ms "} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(table, "go_gc") || strings.Contains(table, "process_cpu") {
		t.Errorf("the process is among the busiest:\n%s", got)
	}
}

// TestRealUnknownServers: of a machine and of Prometheus, which answer no requests of a model, the busiest families
// have a rate or a mean on the first screen, in text and in the report, which has ten of each.
func TestRealUnknownServers(t *testing.T) {
	t.Parallel()
	unknownServers(t, "unknown-servers", map[string]int{"node": 10, "prom": 8}) // as many as 40 lines hold
	unknownServers(t, "unknown-etcd", map[string]int{"etcd": 10})
}

// unknownServers wants the busiest families of each target, with numbers, on the screen, and ten in the report.
func unknownServers(t *testing.T, name string, least map[string]int) {
	t.Helper()
	recording := filepath.Join(testkit.Path(t, "runs"), name)
	text, _ := answer(t, 0, "show", recording)
	page := filepath.Join(t.TempDir(), "page.html")
	answer(t, 0, "report", recording, "-o", page, "--quiet")
	made, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(made, []byte("</code></th><td class=\"num\">")); n != 10*len(least) {
		t.Errorf("%s: %d families in the report", name, n)
	}
	for target, least := range least {
		_, table, _ := strings.Cut(text, target+"  no known server: the busiest of ")
		rows := strings.Split(strings.SplitN(table, "\n\n", 2)[0], "\n")
		if len(rows) < 2+least {
			t.Fatalf("%s: %d rows in\n%s", target, len(rows), text)
		}
		for _, row := range rows[2 : 2+least] {
			fields := strings.Fields(row)
			if len(fields) < 3 || !strings.ContainsAny(fields[1], "123456789") {
				t.Errorf("no number of %q", row)
			}
			if !bytes.Contains(made, []byte("<code>"+fields[0]+"</code></th><td class=\"num\">")) {
				t.Errorf("the report has no row of %s", fields[0])
			}
		}
	}
}

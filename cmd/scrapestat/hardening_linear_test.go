//go:build unix

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/faults"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
)

// TestHardeningFamilies has what a target with very many families costs, by the number
// that package faults lists.
func TestHardeningFamilies(t *testing.T) {
	t.Parallel()
	t.Run("K18", func(t *testing.T) {
		t.Run("linear", linearFamilies)
		t.Run("other targets", besideManyFamilies)
	})
}

// declaring records a run whose target declares so many families, without a sample or
// with one each.
func declaring(t *testing.T, families int, sampled bool) string {
	t.Helper()
	dir := t.TempDir()
	w, err := rundb.Create(dir, rundb.Meta{ID: "many", OriginNS: 1e18, Interval: time.Second}, rundb.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.AddTarget(metric.Target{URL: "http://many/metrics", Source: "prometheus"}); err != nil {
		t.Fatal(err)
	}
	s := &metric.Snapshot{Status: http.StatusOK, Delta: metric.Delta{Full: true}}
	for i := range families {
		s.DictDelta.Families = append(s.DictDelta.Families, metric.Family{Name: fmt.Sprintf("x%d_total", i),
			Type: metric.Counter})
		if sampled {
			s.DictDelta.Series = append(s.DictDelta.Series, metric.Series{Family: i})
			s.DictDelta.Slots = append(s.DictDelta.Slots, metric.SampleID{Series: i})
			s.Delta.Slots, s.Delta.Bits = append(s.Delta.Slots, uint32(i)), append(s.Delta.Bits, 0)
		}
	}
	for n := range 3 {
		s.Seq, s.SentNS, s.FirstByteNS = uint64(n), int64(1e18+n*1e9), int64(1e18+n*1e9)
		if err := w.Record(s); err != nil {
			t.Fatal(err)
		}
		s.DictDelta = metric.DictDelta{}
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// linearFamilies has 20 times as many families take at most 25 times as much work.
func linearFamilies(t *testing.T) {
	const times = 20
	work := func(args ...string) time.Duration {
		t.Helper()
		cmd := exec.Command("scrapestat", args...)
		cmd.Env = append(os.Environ(), "GOGC=400") // collecting garbage is not what is asked for
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%.2000s", args, err, out)
		}
		return cmd.ProcessState.UserTime()
	}
	for _, c := range []struct {
		sampled  bool
		few      int
		commands []string
	}{
		{false, 2500, []string{"export", "compare"}},
		{true, 1000, []string{"compare"}},
		{true, 3000, []string{"export"}}, // with fewer, a search of the names for each was cheap
	} {
		sampled, few := c.sampled, c.few
		small, large := declaring(t, few, sampled), declaring(t, few*times, sampled)
		for _, command := range c.commands {
			args := func(dir string) []string {
				if command == "compare" {
					return []string{command, dir, dir}
				}
				return []string{command, dir, "--formats", "json,csv"}
			}
			a, b := work(args(small)...), work(args(large)...)
			t.Logf("%s, samples %v: %v, and %v for %d times as many families", command, sampled, a, b, times)
			if b > 25*a {
				t.Errorf("%s, samples %v: %v for %d families, %v for %d times as many", command, sampled, a, few, b, times)
			}
		}
	}
	const few = 5000
	types := func(n int) string {
		var body strings.Builder
		for i := range n {
			fmt.Fprintf(&body, "# TYPE x%d counter\n", i)
		}
		path := filepath.Join(t.TempDir(), "body.prom")
		if err := os.WriteFile(path, []byte(body.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a, b := work("catalog", "unknown", types(few)), work("catalog", "unknown", types(few*times))
	if b > 25*a {
		t.Errorf("catalog unknown: %v for %d families, %v for %d times as many", a, few, b, times)
	}
}

// besideManyFamilies polls a target that declares 100,000 families, and a good one.
func besideManyFamilies(t *testing.T) {
	var body strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&body, "# TYPE x%d counter\n", i)
	}
	body.WriteString("up 1\n")
	many := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(body.String())) // who does not read it all is none of its business
	}))
	defer many.Close()
	good := serveBad(t, goodScript)
	dir := filepath.Join(t.TempDir(), "run")
	try(t, exitDone, "", "collect", "many="+many.URL, "good="+good.Addr, "-o", dir, "--formats", "json",
		"--interval", "50ms", "--duration", "1s", "--settle", "0s", "--scrape-budget", "0")
	checkFaultyRun(t, dir, "json")
	accounts, err := faults.Accounts(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if accounts[0].Outcomes["partial"] == 0 || accounts[1].Outcomes["ok"] < 2 {
		t.Errorf("the good target: %v, the other: %v", accounts[1], accounts[0])
	}
	r, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	result, err := summary.Build(t.Context(), []summary.Recording{r}, summary.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := result.Endpoints[0].Ledger.Families; n != 20_000 {
		t.Errorf("%d families are kept", n)
	}
	if text := fmt.Sprint(result.Endpoints[0].Warnings); !strings.Contains(text, "family_limit") {
		t.Errorf("it is not told: %s", text)
	}
}

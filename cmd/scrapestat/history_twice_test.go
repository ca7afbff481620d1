//go:build unix

package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// nightlyCSV are runs of two quantities, one a day.
func nightlyCSV(n int) (lines []string) {
	r := rand.New(rand.NewPCG(24, 7))
	lines = append(lines, "time,run,commit,branch,itl_mean,ttft_p99\n")
	for i := range n {
		lines = append(lines, fmt.Sprintf("%d,r%d,c%d,main,%.6f,%.6f\n", 1_750_000_000+i*86400, i, i/2,
			0.01*(1+0.01*r.NormFloat64()), 0.1*(1+0.05*r.NormFloat64())))
	}
	return lines
}

// historyCommand is a command of history as a process of its own.
func historyCommand(t *testing.T, in io.Reader, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("scrapestat") // the test binary, by testscript's Main
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, append([]string{"history"}, args...)...)
	if in != nil {
		cmd.Stdin = in
	}
	return cmd
}

// TestHistoryTwice is the end of row 12: two processes that add the same 50 runs at once add each once, and the file is
// that of an undisturbed one. (Kills: TestKillPoints of package history.)
func TestHistoryTwice(t *testing.T) {
	t.Parallel()
	lines := nightlyCSV(50)
	all := strings.Join(lines, "")
	whole := filepath.Join(t.TempDir(), "whole.db")
	cmd := historyCommand(t, strings.NewReader(all), "add", "--csv", "-", "-f", whole)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	path := filepath.Join(t.TempDir(), "history.db")
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			cmd := historyCommand(t, strings.NewReader(all), "add", "--csv", "-", "-f", path)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	both.Wait()
	if got, want := historyParquet(t, path), historyParquet(t, whole); !bytes.Equal(got, want) {
		t.Errorf("of two at once %d bytes, want %d others", len(got), len(want))
	}
}

// historyParquet is what history export writes of a file.
func historyParquet(t *testing.T, path string) []byte {
	t.Helper()
	to := filepath.Join(t.TempDir(), "history.parquet")
	if out, err := historyCommand(t, nil, "export", "-f", path, "-o", to).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(to)
	if err != nil || len(b) == 0 {
		t.Fatal(err)
	}
	return b
}

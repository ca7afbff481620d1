package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestRunFlags: every command that reads or records runs has --strict and --max-memory, and the same ones (section 8 of
// the contract).
func TestRunFlags(t *testing.T) {
	want := map[string]bool{"collect": true, "show": true, "export": true, "report": true, "compare": true, "check": true,
		"repair": true, "history add": true, "catalog unknown": true, "catalog eval": true, "import aiperf-jsonl": true,
		"import openmetrics": true, "import prometheus": true, "import torchserve-log": true, "import triton-stats": true}
	for _, name := range []string{"record", "import", "report", "validate", "proxy", "join"} {
		want["requests "+name] = true
	}
	usage := map[string]string{}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		name := strings.TrimPrefix(cmd.CommandPath(), "scrapestat ")
		for _, flag := range []string{"strict", "max-memory"} {
			f := cmd.Flags().Lookup(flag)
			both := cmd.Flags().Lookup("strict") != nil || want[name]
			if name == "serve" || name == "promql" {
				continue // their answers carry warnings, and the limit is of columns
			}
			if (f != nil) != both {
				t.Errorf("%s --%s: %v, want %v", name, flag, f != nil, both)
			} else if f != nil && usage[flag] == "" {
				usage[flag] = f.Usage
			} else if f != nil && usage[flag] != f.Usage {
				t.Errorf("%s --%s means %q, elsewhere %q", name, flag, f.Usage, usage[flag])
			}
		}
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(newRootCmd(stdio{}))
}

// TestRequestsBounds: requests that take more than --max-memory end every command of requests with 6, those that lack
// something end it with 4 under --strict, and neither ends it otherwise.
func TestRequestsBounds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, more string) string {
		var lines strings.Builder
		for i := range int64(10) {
			at := 1_790_000_000_000_000_000 + i*1_000_000
			fmt.Fprintf(&lines, `{"id":"r%d","issued_ns":%d,"complete_ns":%d}`+"\n", i, at, at+1000)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(lines.String()+more), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	whole := write("whole.jsonl", "")
	lacks := write("lacks.jsonl", "no line\n")
	const little, room = "8000", "80000" // ten requests take more than 8000 bytes
	out := func(name string) string { return filepath.Join(dir, name) }
	for _, x := range []struct {
		memory string
		code   int
	}{{little, exitMemory}, {room, exitDone}} {
		try(t, x.code, "", "requests", "record", whole, "-o", out("record"+x.memory), "--max-memory", x.memory)
	}
	runs := map[string]string{whole: out("record" + room), lacks: out("lacks")}
	try(t, exitDone, "", "requests", "record", lacks, "-o", runs[lacks])
	try(t, exitIncomplete, "data incomplete", "requests", "record", lacks, "-o", out("strict"), "--strict")
	for _, command := range [][]string{{"report"}, {"validate", "--target", "latency<=1s"}} {
		args := append([]string{"requests"}, command...)
		try(t, exitDone, "", append(args, runs[whole], "--strict", "--max-memory", room)...)
		try(t, exitMemory, "--max-memory", append(args, runs[whole], "--max-memory", little)...)
		try(t, exitDone, "", append(args, runs[lacks])...)
		try(t, exitIncomplete, "data incomplete", append(args, runs[lacks], "--strict")...)
	}
	try(t, exitBad, "", "requests", "validate", runs[lacks], "--target", "latency<=1ns", "--strict") // 3 wins

	sim := out("sim")
	try(t, exitDone, "", "simulate", "vllm", "--record", sim, "--duration", "10s")
	try(t, exitMemory, "--max-memory", "requests", "join", sim, "--max-memory", "100000")
	try(t, exitMemory, "--max-memory", "catalog", "eval", sim, "total(num_preemptions)", "--max-memory", "100000")
	try(t, exitMemory, "--max-memory", "catalog", "unknown", sim, "--max-memory", "100000")
}

// TestHistoryMemory: --max-memory is that of one run of many that a history is given, which are not held together.
func TestHistoryMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "h.db")
	for i := range 4 {
		try(t, exitDone, "", "simulate", "vllm", "--record", filepath.Join(dir, "runs", fmt.Sprint(i)), "--duration", "10s",
			"--seed", fmt.Sprint(i+1))
	}
	one := filepath.Join(dir, "runs", "0")
	least := 1 << 20
	for code := exitMemory; code != exitDone; least += least / 4 {
		code, _ = asked(t, "show", one, "--max-memory", fmt.Sprint(least))
	}
	try(t, exitDone, "4 runs added", "history", "add", "-f", file, filepath.Join(dir, "runs"), "--max-memory",
		fmt.Sprint(least))
	try(t, exitFailed, "--max-memory", "history", "add", "-f", file, one, "--refresh", "--max-memory", "100000")
}

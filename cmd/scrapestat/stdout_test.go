package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
)

// fullDisk is a stdout that takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// printing has for each command that prints what it is for a command line that makes it. HISTORY, RUN and EVENTS are
// paths of TestFullStdout; -o - is left to those that have it.
var printing = map[string]string{
	"catalog check":         "PACK",
	"catalog eval":          "RUN increase(request_success)",
	"catalog list":          "",
	"catalog show":          "vllm",
	"catalog unknown":       "BODY",
	"check":                 "RUN --assert EXPR",
	"compare":               "RUN RUN@0s..5s",
	"completion bash":       "",
	"completion fish":       "",
	"completion powershell": "",
	"completion zsh":        "",
	"doctor":                "127.0.0.1:1",
	"explain":               "RUN",
	"export":                "RUN --formats csv -o -",
	"help":                  "collect",
	"history check":         "-f HISTORY",
	"history list":          "-f HISTORY",
	"history prune":         "-f HISTORY --keep 1",
	"history show":          "-f HISTORY",
	"lake ls":               "LAKE",
	"lake sql":              "",
	"lake verify":           "LAKE",
	"promql":                "RUN up",
	"query":                 "RUN -m ttft",
	"repair":                "RUN -o RUN-repaired",
	"report":                "RUN -o -",
	"requests join":         "RUN",
	"requests export":       "SERVED -o -",
	"requests report":       "EVENTS --tokenizer chars",
	"requests validate":     "EVENTS --tokenizer chars --target qps=1",
	"serve":                 "RUN --print url",
	"show":                  "RUN",
	"sweep":                 "RUN",
	"version":               "",
}

// silent are the commands that print nothing on stdout, and those whose words there end nothing: they record.
const silent = ` collect demo history-accept history-add history-drop history-export import-aiperf-jsonl ` +
	`import-openmetrics import-prometheus import-tachometer import-torchserve-log import-triton-stats lake-add mark ` +
	`mcp repeat requests-import requests-proxy requests-record simulate `

// TestFullStdout holds each command to an exit code that is not 0, and to a word about it, when its stdout takes
// nothing; --help of each too.
func TestFullStdout(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	path := func(name string) string { return filepath.Join(tmp, name) }
	write := func(name, text string) string {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path(name)
	}
	runOK(t, "simulate", "vllm", "--record", path("run"), "--warmup", "1s", "--duration", "5s", "--requests")
	add := []string{"history", "add", "-f", path("history.db"), path("run")}
	for seed := range 6 { // as many as history check wants beside the one that is judged
		add = append(add, path(strconv.Itoa(seed)))
		runOK(t, "simulate", "vllm", "--record", add[len(add)-1], "--warmup", "0s", "--duration", "2s", "--interval",
			"1s", "--seed", strconv.Itoa(seed+1))
	}
	runOK(t, add...)
	runOK(t, "lake", "add", path("run"), "--to", path("lake"))
	served := fixtureRun(t, "", "", serverFixtures+"vllm/quirks.client.jsonl", "otlp-json", "vllm/quirks.otlp.jsonl")
	words := strings.NewReplacer("RUN", path("run"), "LAKE", path("lake"), "SERVED", served,
		"HISTORY", path("history.db"),
		"PACK", write("pack.yaml", "pack: x\n"), "EXPR", "ttft p99 < 1h",
		"BODY", write("body.txt", "# TYPE nobody_knows_this gauge\nnobody_knows_this 1\n"),
		"EVENTS", write("events.jsonl", `{"event_type":"loadgen_issue_called","sample_uuid":"u1","timestamp_ns":1}`+
			"\n"+`{"event_type":"complete","sample_uuid":"u1","timestamp_ns":9,"value":["a","b"]}`+"\n"))
	full := func(args ...string) {
		var said, errs bytes.Buffer
		run(t.Context(), args, stdio{nil, &said, io.Discard})
		if said.Len() == 0 {
			t.Errorf("%q prints nothing", args)
		}
		_ = os.RemoveAll(path("run-repaired")) // it is made twice
		if got := run(t.Context(), args, stdio{nil, fullDisk{}, &errs}); got == exitDone ||
			!strings.Contains(errs.String(), syscall.ENOSPC.Error()) {
			t.Errorf("%q: exit %d: %s", args, got, errs.String())
		}
	}
	var each func(c *cobra.Command, name string)
	each = func(c *cobra.Command, name string) {
		for _, sub := range c.Commands() {
			each(sub, strings.TrimSpace(name+" "+sub.Name()))
		}
		full(append(strings.Fields(name), "--help")...)
		args, prints := printing[name]
		switch {
		case c.HasSubCommands(): // prints its help, or refuses
		case prints:
			line := strings.Fields(name + " " + args)
			for i := range line {
				line[i] = words.Replace(line[i])
			}
			full(line...)
		case !strings.Contains(silent, " "+strings.ReplaceAll(name, " ", "-")+" "):
			t.Errorf("nothing tells what %q prints", name)
		}
	}
	root := newRootCmd(discard())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	each(root, "")
}

// TestFullStdoutOfRun shows that a run, and COMMAND, end as they would have when their words are lost.
func TestFullStdoutOfRun(t *testing.T) {
	t.Parallel()
	srv := serveBad(t, goodScript)
	var errs bytes.Buffer
	if got := run(context.Background(), append([]string{"collect", srv.Addr, "-o", filepath.Join(t.TempDir(), "run")},
		quickRun...), stdio{nil, fullDisk{}, &errs}); got != exitDone || !strings.Contains(errs.String(), "print: ") {
		t.Errorf("exit %d: %s", got, errs.String())
	}
}

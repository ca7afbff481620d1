package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// foreignFlags are flags of other programs that the manual speaks of, and whose
// they are.
var foreignFlags = map[string]string{
	"allow-gpu-metrics": "tritonserver", "allow-metrics": "tritonserver", "cache-config": "tritonserver",
	"metrics-config":   "tritonserver",
	"api-server-count": "vLLM", "disable-log-stats": "vLLM", "enable-mfu-metrics": "vLLM, SGLang",
	"kv-cache-metrics": "vLLM", "max-num-seqs": "vLLM",
	"log-stats": "vLLM-Omni", "num-prompts": "vllm bench", "save-detailed": "vllm bench", "save-result": "vllm bench",
	"enable-metrics": "SGLang", "enable-metrics-for-all-schedulers": "SGLang", "metrics": "llama.cpp",
	"parallel": "llama.cpp", "otlp-traces-endpoint": "vLLM, SGLang", "export-metrics-to-file": "SGLang",
	"trace-config": "tritonserver",
}

var (
	mentionedFlag  = regexp.MustCompile("(?:^|[\\s(`'\"=/|\\[])--([a-z][a-z0-9-]*)")
	mentionedUsage = regexp.MustCompile("`(scrapestat [^`]*)`")
)

// TestDocFlags: each flag that the text of a page speaks of is one of ours or is
// told to be another's, each command line in the text and in the help of a command
// is one that the program takes.
func TestDocFlags(t *testing.T) {
	ours := map[string]bool{}
	for _, c := range allCommands(newRootCmd(discard())) {
		c.InitDefaultHelpFlag()
		c.Flags().VisitAll(func(f *pflag.Flag) { ours[f.Name] = true })
		for _, words := range shellCommands(c.Example) {
			if line, ok := ourWords(words); ok {
				if err := checkUsage(line); err != nil {
					t.Errorf("example in the help of %s: %q: %v", c.CommandPath(), words, err)
				}
			}
		}
	}
	used := map[string]bool{}
	pages := docPages(t)
	for _, page := range pages {
		for _, fault := range flagFaults(&page, ours, used) {
			t.Error(fault)
		}
	}
	for name, whose := range foreignFlags {
		if !used[name] {
			t.Errorf("no page speaks of --%s of %s: take it off the list", name, whose)
		}
		if ours[name] {
			t.Errorf("--%s is ours too: take it off the list", name)
		}
	}
	if len(pages) < 20 {
		t.Errorf("%d pages", len(pages))
	}
}

// flagFaults looks at the text of a page, without its blocks: those are executed.
func flagFaults(page *docPage, ours, used map[string]bool) (faults []string) {
	text := page.prose()
	for _, m := range mentionedFlag.FindAllStringSubmatch(text, -1) {
		name := strings.TrimSuffix(m[1], "-")
		switch {
		case ours[name]:
		case foreignFlags[name] != "":
			used[name] = true
		default:
			faults = append(faults, page.path+": --"+m[1]+" is no flag of ours; foreignFlags names those of others")
		}
	}
	for _, m := range mentionedUsage.FindAllStringSubmatch(text, -1) {
		if strings.ContainsAny(m[1], "|…") || strings.Contains(m[1], "...") {
			continue // a pattern
		}
		words := shellCommands(m[1])
		root := newRootCmd(discard())
		root.InitDefaultCompletionCmd()
		cmd, rest, err := root.Find(words[0][1:])
		if err == nil {
			cmd.InitDefaultHelpFlag()
			err = cmd.ParseFlags(rest)
		}
		if err == nil && cmd == root && cmd.Flags().NArg() > 0 {
			err = fmt.Errorf("there is no command %q", cmd.Flags().Arg(0))
		}
		if err != nil {
			faults = append(faults, page.path+": `"+m[1]+"`: "+err.Error())
		}
	}
	return faults
}

// prose is a page without its blocks.
func (p *docPage) prose() string {
	var b strings.Builder
	fence := ""
	for line := range strings.SplitSeq(string(p.text), "\n") {
		if m := docFence.FindStringSubmatch(line); m != nil && (fence == "" || m[2] == fence && m[3] == "") {
			if fence == "" {
				fence = m[2]
			} else {
				fence = ""
			}
			continue
		}
		if fence == "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// TestFlagFaults: what no program has is found out.
func TestFlagFaults(t *testing.T) {
	check := func(text string, n int) {
		t.Helper()
		page, err := parseDocPage("x.md", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := flagFaults(&page, map[string]bool{"warmup": true, "remote-write": true, "by": true},
			map[string]bool{}); len(got) != n {
			t.Errorf("%q: got %q, want %d", text, got, n)
		}
	}
	check("`--warmup 30s`, --warmup and `--remote-write-`, a--b, an em -- dash", 0)
	check("`--warm 30s`", 1)
	check("the server's `--log-stats`", 0)
	check("```sh\nx --nosuch\n```\n", 0)
	check("`scrapestat show RUN --by role`, `scrapestat requests record|import`", 0)
	check("`scrapestat shwo RUN`", 1)
	check("`scrapestat show RUN --bye`", 2) // as a flag, and in its command
}

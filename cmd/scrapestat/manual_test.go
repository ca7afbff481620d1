package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

const manualPath = "../../docs/data/cli.md"

const manualHead = `# The command line

Made from the commands' own --help by ` + "`go test ./cmd/scrapestat -run TestManual -update`" +
	`; a test fails when it is out of date.

Data goes to stdout, talk goes to stderr; ` + "`-o -`" + ` writes an export to stdout. Progress is a line that ` +
	`rewrites itself on a
terminal and a line every 10 s otherwise. Offsets such as ` + "`--from`" + ` and ` + "`--warmup`" +
	` count from the start of the load: the
moment when every target has had its first scrape and COMMAND was started.

`

// TestManual holds docs/data/cli.md against the commands: a flag or a text that
// changes without the page fails.
func TestManual(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(manualHead + manualExits())
	for _, c := range newRootCmd(discard()).Commands() {
		switch c.Name() {
		case "help", "completion":
			continue
		}
		writeHelp(t, &b, c)
		for _, sub := range c.Commands() {
			writeHelp(t, &b, sub)
		}
	}
	if *update {
		if err := os.WriteFile(manualPath, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(manualPath)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(page, b.Bytes()) {
		t.Errorf("%s is not what the commands say; rewrite it: go test ./cmd/scrapestat -run TestManual -update", manualPath)
	}
}

func writeHelp(t *testing.T, b *bytes.Buffer, c *cobra.Command) {
	t.Helper()
	var help bytes.Buffer
	c.SetOut(&help)
	c.InitDefaultHelpFlag()
	if c.Flags().Lookup("help-all") != nil {
		_ = c.Flags().Set("help-all", "true")
	}
	if err := c.Help(); err != nil {
		t.Fatal(err)
	}
	b.WriteString("\n## " + strings.TrimPrefix(c.CommandPath(), "scrapestat ") + "\n\n```text\n" +
		strings.TrimSpace(help.String()) + "\n```\n")
}

// TestStart has a command that analyses nothing read no pack: reading them makes a start eight times as long, and
// costs ten collections of garbage where it takes one.
func TestStart(t *testing.T) {
	for _, args := range []string{"version", "requests join --help"} {
		cmd := exec.Command("scrapestat", strings.Fields(args)...)
		var trace bytes.Buffer
		cmd.Stderr = &trace
		cmd.Env = append(os.Environ(), "GODEBUG=gctrace=1")
		if err := cmd.Run(); err != nil {
			t.Fatalf("scrapestat %s: %v", args, err)
		}
		if n := strings.Count(trace.String(), "gc "); n > 5 {
			t.Errorf("scrapestat %s: %d collections of garbage", args, n)
		}
	}
}

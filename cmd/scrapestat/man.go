//go:build man

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// releaseCommands are those of the program that a release asks for its papers,
// built with the tag man: what writes man pages is not linked into others.
func releaseCommands() []*cobra.Command { return []*cobra.Command{newManCmd()} }

// newManCmd makes the man pages of a release; users have --help.
func newManCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write man pages of all commands into a folder",
		Example: "  scrapestat man /usr/local/share/man/man1",
		Args:    exactly(1, "DIR"),
		Hidden:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("write man pages: %w", err)
			}
			root, b := cmd.Root(), thisBuild()
			root.DisableAutoGenTag = true // a date would make each build differ
			head := doc.GenManHeader{Title: "SCRAPESTAT", Section: "1", Source: "scrapestat " + b.version}
			if at, err := time.Parse(time.RFC3339, b.date); err == nil {
				head.Date = &at // without one cobra takes today
			}
			for _, c := range append(descendants(root), root) {
				if c != root && !c.IsAvailableCommand() {
					continue
				}
				if err := writeManPage(c, head, args[0]); err != nil {
					return fmt.Errorf("write man page of %s: %w", c.CommandPath(), err)
				}
			}
			return nil
		},
	}
}

func writeManPage(c *cobra.Command, head doc.GenManHeader, dir string) error {
	c.Long = indented(c.Long)
	var b bytes.Buffer
	if err := doc.GenMan(c, &head, &b); err != nil {
		return err
	}
	page := manFlag.ReplaceAll(b.Bytes(), []byte("\n.TP\n$1\n$2\n"))
	return os.WriteFile(filepath.Join(dir, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1"), page, 0o644)
}

// manFlag matches a flag as cobra writes it: a paragraph with a tab in it, whose
// later lines no reader of man pages would indent.
var manFlag = regexp.MustCompile(`\n(?:\.PP\n)?(\\fB-.*)\n\t(.*)\n`)

// indented sets the lines of a help text that are indented apart, as man pages keep
// them: by four more spaces. A help that has lines like these has columns.
func indented(text string) string {
	var out []string
	before := false
	for line := range strings.SplitSeq(text, "\n") {
		now := strings.HasPrefix(line, "  ")
		if now != before && line != "" {
			out = append(out, "")
		}
		if line != "" {
			before = now
		}
		if now {
			line = "    " + line
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

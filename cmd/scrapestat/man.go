package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

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
			root := cmd.Root()
			root.DisableAutoGenTag = true // a date would make each build differ
			if err := doc.GenManTree(root, &doc.GenManHeader{Title: "SCRAPESTAT", Section: "1", Source: "scrapestat " + toolVersion()}, args[0]); err != nil {
				return fmt.Errorf("write man pages: %w", err)
			}
			return nil
		},
	}
}

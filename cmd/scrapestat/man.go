package main

import (
	"fmt"
	"os"
	"time"

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
			head := doc.GenManHeader{Title: "SCRAPESTAT", Section: "1", Source: "scrapestat " + toolVersion()}
			if at, err := time.Parse(time.RFC3339, thisBuild().date); err == nil {
				head.Date = &at // without one cobra takes today
			}
			if err := doc.GenManTree(root, &head, args[0]); err != nil {
				return fmt.Errorf("write man pages: %w", err)
			}
			return nil
		},
	}
}

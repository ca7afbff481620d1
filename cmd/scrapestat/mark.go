package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

func newMarkCmd(std stdio) *cobra.Command {
	var at string
	cmd := &cobra.Command{
		Use:   "mark RUN NAME",
		Short: "Start a phase called NAME in a run that is being recorded",
		Long: `Starts a phase called NAME in a run that another process is recording. The
collector polls every target once more at the mark, so that the phases are cut
close to it. The name "end" ends the run.`,
		Example: "  scrapestat mark run1 concurrency-64",
		Args:    exactly(2, "RUN and NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			when := time.Now()
			if at != "" {
				var err error
				if when, err = time.Parse(time.RFC3339Nano, at); err != nil {
					return usagef("--at: %w (want a time such as 2026-11-21T10:00:00.5Z)", err)
				}
			}
			dir, name := args[0], args[1]
			if name == "" || len(name) > 200 {
				return usagef("NAME must have 1 to 200 bytes")
			}
			if err := rundb.AddMark(dir, metric.Mark{Name: name, AtNS: when.UnixNano()}); err != nil {
				return fmt.Errorf("mark %s in %s: %w", name, dir, err)
			}
			_, err := fmt.Fprintf(std.err, "phase %q from %s\n", name, when.UTC().Format(time.RFC3339Nano))
			return err
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "`time` of the mark in RFC 3339 form (default now)")
	return cmd
}

package main

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// checkMarkName refuses names that no output could show.
func checkMarkName(name string) error {
	if name == "" || len(name) > 200 || strings.ContainsFunc(name, unicode.IsControl) || !utf8.ValidString(name) {
		return usagef("NAME must have 1 to 200 bytes and no control characters")
	}
	return nil
}

// checkMark refuses a mark outside the recording: it would bend the windows of
// the run. What is marked after the end of a closed one is not part of it.
func checkMark(dir, name string, when time.Time) error {
	if err := checkMarkName(name); err != nil {
		return err
	}
	r, err := rundb.Open(dir)
	if err != nil {
		return err
	}
	defer r.Close()
	from, to := time.Unix(0, r.Meta().OriginNS), time.Now()
	if end := r.Meta().EndNS; end != 0 {
		to = time.Unix(0, end)
	}
	if when.Before(from) || when.After(to) {
		return usagef("mark at %s is outside the recording, which lasts from %s to %s (--at)", when.UTC().Format(time.RFC3339Nano),
			from.UTC().Format(time.RFC3339Nano), to.UTC().Format(time.RFC3339Nano))
	}
	return nil
}

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
			if err := checkMark(dir, name, when); err != nil {
				return err
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

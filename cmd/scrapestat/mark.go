package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/scrape"
)

// checkMark refuses a mark outside the recording: it would bend the windows of
// the run. What is marked after the end of a closed one is not part of it.
func checkMark(dir, name string, when time.Time) error {
	if err := (metric.Mark{Name: name}).Validate(); err != nil {
		return usagef("%w", err)
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
		return usagef("mark at %s is outside the recording, which lasts from %s to %s (--at)",
			when.UTC().Format(time.RFC3339Nano),
			from.UTC().Format(time.RFC3339Nano), to.UTC().Format(time.RFC3339Nano))
	}
	return nil
}

func newMarkCmd(std stdio) *cobra.Command {
	var at string
	cmd := &cobra.Command{
		Use:   "mark RUN|URL NAME",
		Short: "Start a phase called NAME in a run that is being recorded",
		Long: `Starts a phase called NAME in a run that another process is recording. The
collector polls every target once more at the mark, so that the phases are cut
close to it. The name "end" ends the run. URL is what collect --listen printed.`,
		Example: "  scrapestat mark run1 concurrency-64\n  scrapestat mark http://127.0.0.1:9400 concurrency-64",
		Args:    exactly(2, "RUN and NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.HasPrefix(args[0], "http://") || strings.HasPrefix(args[0], "https://") {
				return markOver(cmd.Context(), args[0], args[1], at, std)
			}
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

// markOver sets a mark over --listen of the collector. It uses the collector's clock.
func markOver(ctx context.Context, address, name, at string, std stdio) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return usagef("URL: want what collect --listen printed, such as http://127.0.0.1:9400")
	}
	u = u.JoinPath("mark")
	form := url.Values{"name": {name}}
	if at != "" {
		form.Set("at", at)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), strings.NewReader(form.Encode()))
	if err != nil {
		return usagef("URL: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	client := &http.Client{Transport: scrape.NewTransport(nil, scrape.Limits{})}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("mark %s: %w", name, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		return fmt.Errorf("mark %s: %w", name, err)
	}
	said := strings.TrimSpace(strings.Map(printable, string(text)))
	switch resp.StatusCode {
	case http.StatusOK:
		_, err = fmt.Fprintln(std.err, said)
		return err
	case http.StatusBadRequest:
		return usagef("mark %s: %s", name, said)
	}
	return fmt.Errorf("mark %s: %s answers with status %d: %s", name, u.Host, resp.StatusCode, said)
}

// printable replaces control characters of an answer.
func printable(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}

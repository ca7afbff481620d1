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

// markAt returns when a mark is set, on the axis of the recording: by the clocks of this machine unless at says it.
// It refuses a mark outside the recording, which would bend the windows of the run.
func markAt(ctx context.Context, dir, name, at string, clock rundb.HostClock) (metric.Mark, error) {
	m := metric.Mark{Name: name}
	if err := m.Validate(); err != nil {
		return m, usagef("%w", err)
	}
	r, err := rundb.Open(dir)
	if err != nil {
		return m, err
	}
	defer r.Close()
	meta := r.Meta()
	last := int64(0)
	if meta.BootID != clock.BootID || meta.BootID == "" {
		if last, err = lastPoll(ctx, r); err != nil {
			return m, err
		}
	}
	to, err := meta.At(clock, last)
	m.AtNS = to
	if at != "" {
		when, bad := time.Parse(time.RFC3339Nano, at)
		if bad != nil {
			return m, usagef("--at: %w (want a time such as 2026-11-21T10:00:00.5Z)", bad)
		}
		if m.AtNS = when.UnixNano(); err != nil {
			to, err = clock.UnixNS, nil
		}
	}
	if err != nil {
		return m, err
	}
	from := meta.OriginNS
	if meta.EndNS != 0 {
		to = meta.EndNS
	}
	if m.AtNS < from || m.AtNS > to {
		return m, usagef("mark at %s is outside the recording, which lasts from %s to %s (--at)", instant(m.AtNS),
			instant(from), instant(to))
	}
	return m, nil
}

func instant(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }

// lastPoll is when the last poll was made that is recorded, 0 without one.
func lastPoll(ctx context.Context, r *rundb.Run) (last int64, err error) {
	for i := range r.Targets() {
		for s, err := range r.Snapshots(ctx, i) {
			if err != nil {
				return 0, err
			}
			last = max(last, s.AtNS())
		}
	}
	return last, nil
}

func newMarkCmd(std stdio) *cobra.Command {
	var at, zone string
	var from []string
	cmd := &cobra.Command{
		Use:   "mark RUN|URL NAME",
		Short: "Start a phase called NAME in a run that is being recorded, or those of a load generator's file",
		Long: `Starts a phase called NAME in a run that another process is recording. The
collector polls every target once more at the mark, so that the phases are cut
close to it. The name "end" ends the run. URL is what collect --listen printed.

With --from the phases are those that a load generator measured: benchmarks of
guidellm, profile_export_aiperf.json of AIPerf, results of vllm bench serve
--save-result (whole seconds). They are called after their load, for sweep.`,
		Example: "  scrapestat mark run1 concurrency-64\n  scrapestat mark http://127.0.0.1:9400 concurrency-64\n" +
			"  scrapestat mark run1 --from benchmarks.json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(from) > 0 {
				return exactly(1, "RUN beside --from")(cmd, args)
			}
			return exactly(2, "RUN and NAME")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(from) > 0 {
				return markFrom(cmd.Context(), args[0], from, zone, std)
			}
			if strings.HasPrefix(args[0], "http://") || strings.HasPrefix(args[0], "https://") {
				return markOver(cmd.Context(), args[0], args[1], at, std)
			}
			dir, name := args[0], args[1]
			clock, _ := rundb.ReadHostClock() // without its boot the wall clock has to do
			m, err := markAt(cmd.Context(), dir, name, at, clock)
			if err != nil {
				return err
			}
			if err := rundb.AddMark(dir, m); err != nil {
				return fmt.Errorf("mark %s in %s: %w", name, dir, err)
			}
			_, err = fmt.Fprintf(std.err, "phase %q from %s\n", name, instant(m.AtNS))
			return err
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "`time` of the mark in RFC 3339 form (default now)")
	cmd.Flags().StringArrayVar(&from, "from", nil, "`file` of a load generator whose phases are marked; repeatable")
	cmd.Flags().StringVar(&zone, "zone", "", "`offset` of times in such a file that have no zone, such as +02:00 "+
		"(default that of this machine, if it recorded the run)")
	cmd.MarkFlagsMutuallyExclusive("at", "from")
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

package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/serve"
)

type promqlOptions struct {
	promFlags
	at, start, end string
	ranged         bool
	step           time.Duration
	format         string
	failOnEmpty    bool
}

const promqlLong = `Evaluates one PromQL expression over runs, with Prometheus' own engine, and prints the result.
Without --time that is at the end of the first run. $window is the range of its statistics and
sets the time to its end: increase(x_total[$window] anchored) is what was counted. $warmup and
$phase:NAME[/N] likewise. --range evaluates at every --step from --start to --end.`

func newPromqlCmd(std stdio) *cobra.Command {
	var o promqlOptions
	cmd := &cobra.Command{
		Use: "promql [NAME=]RUN... EXPR [flags]", Short: "Evaluate a PromQL expression over runs", Long: promqlLong,
		Example: `  scrapestat promql run1 'sum by (instance) (increase(http_requests_total[$window] anchored))'
  scrapestat promql a=run1 b=run2 'sum by (run) (rate(http_requests_total[1m]))' --range --step 10s --format csv`,
		Args: atLeast(2, "RUN and EXPR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.addresses = args[:len(args)-1]
			if err := oneOf("format", "format", o.format, "text", "json", "csv"); err != nil {
				return err
			}
			return o.promql(cmd.Context(), std, args[len(args)-1])
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.at, "time", "", "evaluate at this `time`: RFC 3339 or seconds since 1970 (default the end)")
	f.BoolVar(&o.ranged, "range", false, "evaluate at each step")
	f.DurationVar(&o.step, "step", 10*time.Second, "of --range")
	f.StringVar(&o.start, "start", "", "first `time` of --range (default the start of the first run)")
	f.StringVar(&o.end, "end", "", "last `time` of --range (default the end of the first run)")
	f.StringVar(&o.format, "format", "text", "`format`: text, json (data of Prometheus' API) or csv")
	f.BoolVar(&o.failOnEmpty, "fail-on-empty", false, "exit with 4 when there is no value")
	o.register(f)
	return cmd
}

func (o *promqlOptions) promql(ctx context.Context, std stdio, expr string) error {
	s, err := o.open(ctx, 0)
	if err != nil {
		return err
	}
	defer s.Close()
	q := serve.Request{Expr: expr, Range: o.ranged, Step: o.step}
	if err := o.times(&q, s.Runs()[0]); err != nil {
		return err
	}
	r, err := s.Query(ctx, q)
	if err != nil {
		return servedError(err)
	}
	for _, w := range append(r.Warnings, r.Infos...) {
		fmt.Fprintf(std.err, "warning: %s\n", texttab.Escape(w))
	}
	if err := o.write(std.out, r); err != nil {
		return err
	}
	if r.Empty() && o.failOnEmpty {
		return &codeError{exitIncomplete, fmt.Errorf("%s has no value (--fail-on-empty)", texttab.Escape(expr))}
	}
	return nil
}

// times reads the flags of times.
func (o *promqlOptions) times(q *serve.Request, r serve.Status) error {
	q.StartMS, q.EndMS = r.From.UnixMilli(), r.To.UnixMilli()
	for _, x := range []struct {
		flag, text string
		to         func(ms int64)
	}{{"time", o.at, func(ms int64) { q.AtMS = &ms }}, {"start", o.start, func(ms int64) { q.StartMS = ms }},
		{"end", o.end, func(ms int64) { q.EndMS = ms }}} {
		if x.text == "" {
			continue
		}
		if (x.flag == "time") == o.ranged {
			return usagef("--%s does not go with --range=%v", x.flag, o.ranged)
		}
		t, err := parseInstant(x.text, time.Now())
		if err != nil {
			return usagef("--%s: %w", x.flag, err)
		}
		x.to(t.UnixMilli())
	}
	return nil
}

func (o *promqlOptions) write(w io.Writer, r *serve.Result) error {
	if o.format == "json" {
		return r.WriteJSON(w)
	}
	seconds := func(ms int64) string { return strconv.FormatFloat(float64(ms)/1000, 'f', -1, 64) }
	if o.format == "csv" {
		out := csv.NewWriter(w)
		err := out.Write([]string{"series", "time", "value"})
		for row := range r.Rows {
			if err == nil {
				err = out.Write([]string{row.Labels, seconds(row.TimeMS), row.Value})
			}
		}
		out.Flush()
		return first(err, out.Error())
	}
	var err error
	for row := range r.Rows {
		line := texttab.Escape(row.Labels)
		if o.ranged {
			line += "  " + seconds(row.TimeMS)
		}
		if err == nil {
			_, err = fmt.Fprintf(w, "%s  %s\n", line, texttab.Escape(row.Value))
		}
	}
	return err
}

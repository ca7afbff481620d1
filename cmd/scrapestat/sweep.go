package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/report"
	"github.com/scrapestat/scrapestat/report/html"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/sweep"
)

// sweepOptions is the command line of sweep.
type sweepOptions struct {
	runs       []string
	loadTag    string
	slos       []string
	require    float64
	gpus, cost []string
	engine     string
	plateaus   bool
	skip       time.Duration
	format     string
	out        string
	window     windowFlags
	analysis   analysisFlags
}

const sweepLong = `Sets load points side by side: the phases of runs, or whole runs, of the same server at rising load.
It tells which load the server kept up with, its capacity, the load of most work for the time of a request
(the knee), up to which load limits of latency hold, and what ran out first. Loads are read off names of phases
(rate-8, concurrency-64), tags, or the command line of the load generator. RUN@'rate-*' takes phases by name;
NAME=RUN makes sweeps of several configurations, the first of which is the base.
`

const sweepExample = `  scrapestat sweep run1@'rate-*' --slo 'ttft p99 <= 500ms' --slo 'itl mean <= 20ms'
  scrapestat sweep base=run1 new=run2 --gpus base=1 --gpus new=2 --format html -o sweep.html
  scrapestat sweep run1 --slo 'e2e p99 <= 5s' --require 16   # exit 3: it does not; 4: cannot be told`

var sweepFormats = []string{"text", "markdown", "json", "csv", "html"}

func newSweepCmd(std stdio) *cobra.Command {
	o := sweepOptions{}
	cmd := &cobra.Command{
		Use: "sweep [NAME=]RUN... [flags]", Short: "Tell how much load a server takes, and what ran out first",
		Long: sweepLong + selectorHelp, Example: sweepExample, Args: atLeast(1, "RUN, a run directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.runs = args
			if !cmd.Flags().Changed("skip") {
				o.skip = -1
			} else if o.skip < 0 {
				return usagef("--skip %v is negative", o.skip)
			}
			if err := first(o.analysis.validate(), oneOf("format", "format", o.format, sweepFormats...)); err != nil {
				return err
			}
			if cmd.Flags().Changed("require") && !(o.require > 0) {
				return usagef("--require %v: want a load above 0", o.require)
			}
			return o.sweep(cmd.Context(), std)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.loadTag, "load", "", "`tag` of runs that holds the load; arrivals or running measure it (default by "+
		"names of phases, tags and command lines)")
	f.StringArrayVar(&o.slos, "slo", nil, "upper `limit` of a judged value, such as 'ttft p99 <= 500ms' (repeatable)")
	f.Float64Var(&o.require, "require", 0, "exit with 3 when the server does not take this `load` within all --slo, or "+
		"as capacity without any, with 4 when that cannot be told")
	f.StringArrayVar(&o.gpus, "gpus", nil, "`number` of GPUs, of one configuration NAME=N (default tag gpus, else what "+
		"an exporter shows)")
	f.StringArrayVar(&o.cost, "cost-per-hour", nil, "`amount` that an hour costs, such as 12.5 or NAME=12.5EUR (default "+
		"tag cost_per_hour)")
	f.StringVar(&o.engine, "engine", "", "points of this `engine` only")
	f.BoolVar(&o.plateaus, "plateaus", false, "find stretches of one load by themselves, where nobody marked phases")
	f.DurationVar(&o.skip, "skip", 0, "leave out this `duration` at the start of each phase (default a tenth, at most "+
		"30s)")
	f.StringVar(&o.format, "format", "text", "`format`: "+strings.Join(sweepFormats, ", "))
	f.StringVarP(&o.out, "out", "o", "-", "write the result to this `file`, - is stdout")
	o.window.register(cmd)
	o.analysis.registerNumbers(cmd)
	return cmd
}

func (o *sweepOptions) sweep(ctx context.Context, std stdio) error {
	r := &sweepReader{sweepOptions: o, so: o.analysis.options()}
	for _, text := range o.slos {
		s, err := sweep.ParseSLO(text)
		if err != nil {
			return usagef("--slo %w", err)
		}
		r.slos = append(r.slos, s)
	}
	r.so.Slice = cmp.Or(r.so.Slice, summary.CauseSlices)
	if r.so.Quantiles == nil {
		r.so.Quantiles = sweep.Quantiles(r.slos)
	}
	if err := r.read(ctx); err != nil {
		return err
	}
	if len(r.points) == 0 {
		return usagef("--engine %s: no point has it", o.engine)
	}
	sweeps, err := r.sweeps()
	if err != nil {
		return err
	}
	sweep.MarkFront(sweeps)
	var b bytes.Buffer
	if err := writeSweeps(&b, sweeps, o.format); err != nil {
		return err
	}
	if err := writeOutput(o.out, "sweep", b.Bytes(), std.out); err != nil {
		return err
	}
	var runs []*summary.Run
	for i := range r.points {
		runs = append(runs, r.points[i].run)
	}
	return cmp.Or(o.gate(sweeps), o.analysis.verdict(runs...))
}

func writeSweeps(w io.Writer, sweeps []*sweep.Sweep, format string) error {
	switch format {
	case "markdown":
		return report.SweepMarkdown(w, sweeps)
	case "json":
		return sweep.WriteJSON(w, sweeps)
	case "csv":
		return sweep.WriteCSV(w, sweeps)
	case "html":
		return html.WriteSweep(w, sweeps)
	}
	return report.SweepText(w, sweeps)
}

// gate is what --require says; that a server does not take the load wins over that it cannot be told.
func (o *sweepOptions) gate(sweeps []*sweep.Sweep) (err error) {
	if o.require == 0 {
		return nil
	}
	for _, s := range sweeps {
		switch name := cmp.Or(s.Name, s.Engine); s.Require(o.require) {
		case sweep.DoesNot:
			return &codeError{exitBad, fmt.Errorf("sweep: %s does not take %g (--require)", name, o.require)}
		case sweep.CannotTell:
			err = &codeError{exitIncomplete, fmt.Errorf("sweep: whether %s takes %g cannot be told: measure at that load "+
				"(--require)", name, o.require)}
		}
	}
	return err
}

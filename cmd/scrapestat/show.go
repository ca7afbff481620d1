package main

import (
	"context"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/report"
)

// showOptions is the command line of show.
type showOptions struct {
	runs     []string
	metric   string
	all      bool
	derived  bool
	paCompat bool
	window   windowFlags
	analysis analysisFlags
}

func newShowCmd(std stdio) *cobra.Command {
	var o showOptions
	cmd := &cobra.Command{
		Use:     "show RUN... [flags]",
		Short:   "Print the summary of a run",
		Long:    "Prints what a run measured: targets and what was lost, then the families that moved.",
		Example: "  scrapestat show run1\n  scrapestat show run1 --metric 'latency|queue' --percentiles 50,99,99.9\n  scrapestat show run1 --by model_name --estimator refined",
		Args:    atLeast(1, "RUN, a run directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.runs = args
			if err := o.analysis.validate(); err != nil {
				return err
			}
			return show(cmd.Context(), o, std)
		},
	}
	cmd.Flags().StringVar(&o.metric, "metric", "", "show only families whose name matches this `regexp`")
	cmd.Flags().BoolVar(&o.all, "all", false, "also show series that did not change")
	cmd.Flags().BoolVar(&o.derived, "derived", false, "list every derived quantity with its status")
	cmd.Flags().BoolVar(&o.paCompat, "pa-compat", false, "also print the whole microseconds that Triton's perf_analyzer prints")
	o.window.register(cmd)
	o.analysis.registerNumbers(cmd)
	o.analysis.registerBy(cmd)
	return cmd
}

func show(ctx context.Context, o showOptions, std stdio) error {
	so := o.analysis.options()
	if err := o.window.apply(&so); err != nil {
		return err
	}
	match, err := regexp.Compile(o.metric)
	if err != nil {
		return usagef("--metric: %w", err)
	}
	result, _, closeAll, err := load(ctx, o.runs, o.analysis, so, newProgress(std.err, false))
	if err != nil {
		return err
	}
	defer closeAll()
	return report.Text(std.out, result, report.TextOptions{Title: o.runs[0], Metric: match, All: o.all || o.metric != "",
		Derived: o.derived, PACompat: o.paCompat})
}

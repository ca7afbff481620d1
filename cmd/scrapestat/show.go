package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/explain"
	"github.com/scrapestat/scrapestat/headline"
	"github.com/scrapestat/scrapestat/internal/suggest"
	"github.com/scrapestat/scrapestat/report"
	"github.com/scrapestat/scrapestat/summary"
)

// showOptions is the command line of show.
type showOptions struct {
	runs     []string
	metric   string
	all      bool
	families bool
	derived  bool
	format   string
	paCompat bool
	cost     string
	window   windowFlags
	analysis analysisFlags
}

const showLong = `Prints what a run measured: per engine the dozen quantities that explain it (throughput, ` +
	`latency, saturation, where the
time went) over all its targets, with the lowest and the highest target, then warnings and what was lost. What a server
does not expose is named, with the flag that turns it on. Targets of no known server have their families listed.
` + selectorHelp

const showExample = `  scrapestat show run1
  scrapestat show run1 --metric 'latency|queue' --percentiles 50,99,99.9
  scrapestat show run1 --by role --derived
  scrapestat show run1 --format markdown >> $GITHUB_STEP_SUMMARY
  scrapestat show run1 --format json | jq '.quantities[] | {name, value, unit, status}'`

func newShowCmd(std stdio) *cobra.Command {
	var o showOptions
	cmd := &cobra.Command{
		Use:     "show RUN... [flags]",
		Short:   "Print the summary of a run",
		Long:    showLong,
		Example: showExample,
		Args:    atLeast(1, "RUN, a run directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.runs = args
			if err := first(o.analysis.validate(), oneOf("format", "format", o.format, report.Formats()...)); err != nil {
				return err
			}
			return show(cmd.Context(), o, std)
		},
	}
	cmd.Flags().StringVar(&o.metric, "metric", "", "show families and derived quantities whose name or word (ttft, "+
		"kv_usage) matches this `regexp`; none is exit code 4")
	cmd.Flags().BoolVar(&o.families, "families", false, "list what every family did")
	cmd.Flags().BoolVar(&o.all, "all", false, "list everything: also series that did not change, and all targets")
	cmd.Flags().BoolVar(&o.derived, "derived", false,
		"list every derived quantity with its status, by target and over all")
	cmd.Flags().StringVar(&o.format, "format", report.FormatText, "`format`: "+strings.Join(report.Formats(), ", "))
	cmd.Flags().BoolVar(&o.paCompat, "perf-analyzer", false,
		"also print the whole microseconds that Triton's perf_analyzer prints")
	cmd.Flags().StringVar(&o.cost, "cost-per-hour", "", "`amount` that an hour of the servers costs, such as 12.5 or "+
		"12.5EUR: tells what a million output tokens cost (default tag cost_per_hour)")
	o.window.register(cmd)
	o.analysis.registerNumbers(cmd)
	o.analysis.registerBy(cmd)
	return cmd
}

func show(ctx context.Context, o showOptions, std stdio) error {
	so := o.analysis.options()
	var err error
	title := o.runs[0]
	if o.runs, err = o.window.runs(o.runs, &so); err != nil {
		return err
	}
	var match *regexp.Regexp
	if o.metric != "" {
		if match, err = regexp.Compile(o.metric); err != nil {
			return usagef("--metric: %w", err)
		}
	}
	so.Slice = cmp.Or(so.Slice, summary.CauseSlices)
	o.analysis.sliceFlag = nil // not as the recording was to be sliced
	result, _, closeAll, err := load(ctx, o.runs, o.analysis, so, newProgress(std.err, false))
	if err != nil {
		return err
	}
	defer closeAll()
	if err := first(o.analysis.knowsLabels(result), matchesSome(match, result)); err != nil {
		return err
	}
	perHour, currency := 0.0, ""
	if text := cmp.Or(o.cost, result.Tags["cost_per_hour"]); text != "" {
		perHour, currency, err = amount("cost_per_hour", text)
		if err != nil && o.cost != "" {
			return err
		} else if err != nil { // a tag may be anything
			newProgress(std.err, false).logf("warning: %v", err)
		}
	}
	rules := explain.DefaultRules()
	if err := report.Write(std.out, result, o.format, report.Options{Title: title, PerHour: perHour, Currency: currency,
		Metric: match, Families: o.families,
		All: o.all, Derived: o.derived, PACompat: o.paCompat, Width: columns(std.out),
		Causes: explainAll(result, rules, explain.Latency), Rules: rules}); err != nil {
		return err
	}
	return cmp.Or(o.analysis.verdict(result), notEmpty(result, title, 1))
}

// matchesSome fails when the pattern of --metric matches nothing that the runs have.
func matchesSome(pattern *regexp.Regexp, runs ...*summary.Run) error {
	if pattern == nil || pattern.String() == "" {
		return nil
	}
	var names []string
	for _, r := range runs {
		see := func(name, id string) bool {
			names = append(append(names, name), headline.Names(id)...)
			return headline.Called(pattern, name, id)
		}
		for i := range r.Metrics {
			if see(r.Metrics[i].Name, r.Options.Catalog.Canonical(r.Metrics[i].Name)) {
				return nil
			}
		}
		for i := range r.Derived {
			if see(r.Derived[i].Name, r.Derived[i].Canonical) {
				return nil
			}
		}
	}
	slices.Sort(names)
	return &codeError{exitIncomplete, fmt.Errorf("--metric %s: no family, derived quantity or word of the run matches%s",
		pattern, suggest.Clause(pattern.String(), slices.Compact(names)))}
}

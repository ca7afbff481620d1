package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/explain"
	"github.com/scrapestat/scrapestat/report"
	"github.com/scrapestat/scrapestat/summary"
)

// explainOptions is the command line of explain.
type explainOptions struct {
	run      string
	format   string
	engine   string
	rules    string
	print    bool
	failOn   []string
	window   windowFlags
	analysis analysisFlags
}

const explainLong = `Tells where the mean time of a request went, in seconds that add up, and what was exhausted ` +
	`meanwhile:
the KV cache, the places of the batch, the tokens of a step, a replica beside idle ones, a cold start. Causes are in
order of weight; "service" is the model's own time. What the server does not show is named, and where that could
change the answer it is cannot_tell. Thresholds and words are data: --print-rules.
` + selectorHelp

const explainExample = `  scrapestat explain run1
  scrapestat explain run1@high --format json | jq '.engines[].verdict'
  scrapestat explain run1 --fail-on queue_kv,rejections`

func newExplainCmd(std stdio) *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:     "explain RUN [flags]",
		Short:   "Tell why latency is what it is",
		Long:    explainLong,
		Example: explainExample,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.print {
				return nil
			}
			return exactly(1, "RUN, a run directory")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			rules, err := o.read()
			if err != nil {
				return err
			}
			if o.print {
				_, err := io.WriteString(std.out, explain.DefaultText())
				return err
			}
			o.run = args[0]
			if err := first(o.analysis.validate(), oneOf("format", "format", o.format, "text", "json")); err != nil {
				return err
			}
			return o.explain(cmd.Context(), rules, std)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.format, "format", "text", "`format`: text, json")
	f.StringVar(&o.engine, "engine", "", "explain this `engine` only")
	f.StringVar(&o.rules, "rules", "", "YAML `file` whose thresholds and words replace those of --print-rules")
	f.BoolVar(&o.print, "print-rules", false, "print the rules as they come, and end")
	f.StringSliceVar(&o.failOn, "fail-on", nil, "exit with 3 when one of these `findings` is there, with 4 when that "+
		"cannot be told")
	o.window.register(cmd)
	o.analysis.registerNumbers(cmd)
	return cmd
}

// read returns the rules in force.
func (o *explainOptions) read() (*explain.Rules, error) {
	rules := explain.DefaultRules()
	if o.rules != "" {
		f, err := os.Open(o.rules)
		if err != nil {
			return nil, usagef("--rules: %w", err)
		}
		defer f.Close()
		if err := rules.Read(f, o.analysis.options().Catalog); err != nil {
			return nil, usagef("--rules %s: %w", o.rules, err)
		}
	}
	for _, id := range o.failOn {
		if err := oneOf("fail-on", "finding", id, rules.Names()...); err != nil {
			return nil, err
		}
	}
	return rules, nil
}

func (o *explainOptions) explain(ctx context.Context, rules *explain.Rules, std stdio) error {
	run, results, err := causesOf(ctx, o.run, &o.window, o.analysis, rules, std)
	if err != nil {
		return err
	}
	if results, err = o.chosen(results); err != nil {
		return err
	}
	write := func() error { return report.Explanation(std.out, results, rules) }
	if o.format == "json" {
		write = func() error { return explain.WriteJSON(std.out, run.ID, results, rules) }
	}
	if err := write(); err != nil {
		return err
	}
	return cmp.Or(o.gate(results), o.analysis.verdict(run))
}

// causesOf explains the engines of a part of a run.
func causesOf(ctx context.Context, arg string, w *windowFlags, a analysisFlags, rules *explain.Rules, std stdio) (
	*summary.Run, []*explain.Result, error) {
	so := a.options()
	so.Slice = cmp.Or(so.Slice, summary.CauseSlices)
	a.sliceFlag = nil // not as the recording was to be sliced
	dirs, err := w.runs([]string{arg}, &so)
	if err != nil {
		return nil, nil, err
	}
	if so.Quantiles != nil && !slices.Contains(so.Quantiles, 0.5) {
		so.Quantiles = append(so.Quantiles, 0.5)
	}
	run, _, closeAll, err := load(ctx, dirs, a, so, newProgress(std.err, false))
	if err != nil {
		return nil, nil, err
	}
	defer closeAll()
	var out []*explain.Result
	for _, f := range explain.Read(run) {
		out = append(out, explain.Explain(f, rules))
	}
	return run, out, nil
}

// chosen are the results of the engine that is asked for.
func (o *explainOptions) chosen(results []*explain.Result) (out []*explain.Result, err error) {
	var engines []string
	for _, r := range results {
		if engines = append(engines, r.Engine); o.engine == "" || r.Engine == o.engine {
			out = append(out, r)
		}
	}
	if len(out) == 0 {
		return nil, usagef("--engine %s: the run has %s", o.engine, strings.Join(slices.Compact(engines), ", "))
	}
	return out, nil
}

// gate is what --fail-on says.
func (o *explainOptions) gate(results []*explain.Result) error {
	for _, r := range results {
		for _, f := range r.Findings {
			if slices.Contains(o.failOn, f.ID) || slices.Contains(o.failOn, explain.Kind(f.ID)) {
				share := ""
				if !math.IsNaN(f.Share) {
					share = fmt.Sprintf(" (%.3g %%)", 100*f.Share)
				}
				return &codeError{exitBad, fmt.Errorf("explain: %s: %s%s (--fail-on)", r.Engine, f.ID, share)}
			}
		}
	}
	for _, r := range results {
		if len(o.failOn) > 0 && (r.Verdict == "cannot_tell" || math.IsNaN(r.E2E)) {
			return &codeError{exitIncomplete, errors.New("explain: cannot tell: " + strings.Join(r.Missing, ", ") +
				" (--fail-on)")}
		}
	}
	return nil
}

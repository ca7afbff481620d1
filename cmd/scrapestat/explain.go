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

	"github.com/scrapestat/scrapestat/compare"
	"github.com/scrapestat/scrapestat/explain"
	"github.com/scrapestat/scrapestat/report"
	"github.com/scrapestat/scrapestat/summary"
)

// explainOptions is the command line of explain.
type explainOptions struct {
	runs     []string
	why      string
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
Of two runs: which part of the mean the difference is in, row by row.
--why ttft asks for the time to the first token, --why throughput what held up those that were in the server.
` + selectorHelp

const explainExample = `  scrapestat explain run1
  scrapestat explain run1@high --format json | jq '.engines[].verdict'
  scrapestat explain run1 run2
  scrapestat explain run1 --why throughput
  scrapestat explain run1 --fail-on queue_kv,rejections`

func newExplainCmd(std stdio) *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:     "explain RUN [RUN] [flags]",
		Short:   "Tell why latency is what it is",
		Long:    explainLong,
		Example: explainExample,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.print {
				return nil
			}
			if len(args) == 2 {
				return nil
			}
			return exactly(1, "RUN, a run directory, or two")(cmd, args)
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
			o.runs = args
			if err := first(o.analysis.validate(), oneOf("format", "format", o.format, "text", "json", "markdown", "csv"),
				oneOf("why", "question", o.why, "latency", "ttft", "throughput")); err != nil {
				return err
			}
			if len(args) == 2 {
				return o.pair(cmd.Context(), rules, std)
			}
			return o.explain(cmd.Context(), rules, std)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.format, "format", "text", "`format`: text, json, markdown, csv")
	f.StringVar(&o.why, "why", "latency", "`question`: latency, ttft, throughput")
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
	run, results, err := o.causes(ctx, o.runs[0], rules, std)
	if err != nil {
		return err
	}
	if err := o.write(run.ID, results, rules, std.out); err != nil {
		return err
	}
	return cmp.Or(o.gate(results), o.analysis.verdict(run))
}

// causes explains what is asked of a run.
func (o *explainOptions) causes(ctx context.Context, arg string, rules *explain.Rules, std stdio) (*summary.Run,
	[]*explain.Result, error) {
	run, results, err := causesOf(ctx, arg, &o.window, o.analysis, rules, explain.Why(o.why), std)
	if err == nil {
		results, err = o.chosen(results)
	}
	return run, results, err
}

// write writes the results in the chosen format.
func (o *explainOptions) write(id string, results []*explain.Result, rules *explain.Rules, w io.Writer) error {
	switch o.format {
	case "json":
		return explain.WriteJSON(w, id, results, rules)
	case "csv":
		return report.ExplainedRows(results).WriteCSV(w)
	case "markdown":
		return report.ExplainedMarkdown(w, results, rules)
	}
	return report.Explanation(w, results, rules)
}

// pair explains what two runs differ in.
func (o *explainOptions) pair(ctx context.Context, rules *explain.Rules, std stdio) error {
	if len(o.failOn) > 0 {
		return usagef("--fail-on asks one run")
	}
	var runs [2]*summary.Run
	var ids [2]string
	var results [2][]*explain.Result
	for i, arg := range o.runs {
		var err error
		if runs[i], results[i], err = o.causes(ctx, arg, rules, std); err != nil {
			return err
		}
		ids[i] = runs[i].ID
	}
	compared, err := compare.Compare([]compare.Input{{Side: "A", Path: o.runs[0], Run: runs[0]},
		{Side: "B", Path: o.runs[1], Run: runs[1]}}, compare.Options{Catalog: runs[0].Options.Catalog})
	if err != nil {
		return usagef("explain: %w", err)
	}
	load := report.LoadLines(compared)
	pairs, alone := explain.Pairs(results[0], results[1])
	switch o.format {
	case "json":
		err = explain.WritePairsJSON(std.out, ids, load, pairs, alone, rules)
	case "csv":
		err = report.ExplainedPairRows(pairs).WriteCSV(std.out)
	case "markdown":
		err = report.ExplainedPairsMarkdown(std.out, load, pairs, rules)
	default:
		err = report.ExplainedPairs(std.out, [2]string(o.runs), load, pairs, alone, rules)
	}
	return cmp.Or(err, o.analysis.verdict(runs[0], runs[1]))
}

// causesOf explains the engines of a part of a run.
func causesOf(ctx context.Context, arg string, w *windowFlags, a analysisFlags, rules *explain.Rules, why explain.Why,
	std stdio) (*summary.Run, []*explain.Result, error) {
	so := a.options()
	dirs, err := w.runs([]string{arg}, &so)
	if err != nil {
		return nil, nil, err
	}
	return causesIn(ctx, dirs, so, a, rules, why, newProgress(std.err, false))
}

// causesIn explains the engines of recordings in the window that so has.
func causesIn(ctx context.Context, dirs []string, so summary.Options, a analysisFlags, rules *explain.Rules,
	why explain.Why, say *progress) (*summary.Run, []*explain.Result, error) {
	so.Slice = cmp.Or(so.Slice, summary.CauseSlices)
	a.sliceFlag = nil // not as the recording was to be sliced
	if so.Quantiles != nil && !slices.Contains(so.Quantiles, 0.5) {
		so.Quantiles = append(slices.Clone(so.Quantiles), 0.5)
	}
	run, _, closeAll, err := load(ctx, dirs, a, so, say)
	if err != nil {
		return nil, nil, err
	}
	defer closeAll()
	return run, explainAll(run, rules, why), nil
}

// explainAll has what each engine of a run was limited by.
func explainAll(run *summary.Run, rules *explain.Rules, why explain.Why) (out []*explain.Result) {
	for _, f := range explain.Read(run) {
		out = append(out, explain.Explain(f, rules, why))
	}
	return out
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
		if slices.Contains(o.failOn, "client") && !r.ClientSeen {
			return &codeError{exitIncomplete, errors.New("explain: what the load generator took is not recorded: collect " +
				"TARGET -- COMMAND records it (--fail-on client)")}
		}
		if len(o.failOn) > 0 && (r.Verdict == "cannot_tell" || math.IsNaN(r.Mean)) {
			return &codeError{exitIncomplete, errors.New("explain: cannot tell: " + strings.Join(r.Missing, ", ") +
				" (--fail-on)")}
		}
	}
	return nil
}

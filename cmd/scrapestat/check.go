package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/check"
	"github.com/scrapestat/scrapestat/compare"
	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/events/align"
	"github.com/scrapestat/scrapestat/explain"
	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/internal/atomicfile"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/report"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/window"
)

const checkLong = `Holds a run against what is demanded of it, as a gate in CI. A demand is

  SELECTOR [by (LABELS)] [STATISTIC] OP VALUE[UNIT]

SELECTOR is a word that show prints (ttft, e2e, kv_usage), a metric family with
labels as PromQL has them, a derived quantity, or requests:NAME for what the
clients saw. Every series that it finds must keep the
limit; by (LABELS) first takes series together that agree in these labels, and
by () all of them. OP is < <= > >= == != or ~= VALUE ±MARGIN. VALUE may be
baseline, baseline + 5% or baseline - 10ms.

RUN is a run directory or a server_metrics_export.json, AIPerf's or ours. Without
RUN the checks themselves are checked: unknown keys, units, statistics. Several RUNs are
repeats, as repeat records them: --history alone judges them, together.

Exit codes: 0 all pass; 3 one fails; 4 none fails and one has no data, because the
metric is missing, misspelt, empty or NaN; 2 the checks are wrong.

Ready checks (--ready):
`

const checkExample = `  scrapestat check run1 --assert 'ttft p99 < 450ms' --ready ` +
	`resets,complete
  scrapestat check run1 --slo slo.yaml --baseline main --junit out.xml --format markdown
  scrapestat check run1 --assert 'output_tok_s >= baseline - 5%' --baseline main
  scrapestat check --slo slo.yaml`

var checkFormats = []string{"text", "markdown", "json", "junit", "github"}

// checkOptions is the command line of check.
type checkOptions struct {
	run, slo, baseline, junit, format, out string
	history                                string
	asserts, targets, ready, keys, repeats []string
	provable                               bool
	window                                 windowFlags
	incomplete                             error // of --strict, by the requests
	analysis                               analysisFlags
}

func newCheckCmd(std stdio) *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:     "check [RUN...] [flags]",
		Short:   "Hold a run against targets: a gate for CI",
		Long:    checkLong + "  " + strings.Join(check.ReadyHelp(), "\n  "),
		Example: checkExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.run, o.repeats = args[0], args[1:]
			}
			if err := o.analysis.validate(); err != nil {
				return err
			}
			return judgeRun(cmd.Context(), o, std)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.asserts, "assert", nil, "`expression` that must hold (repeatable)")
	f.StringVar(&o.slo, "slo", "", "YAML `file` of checks (docs/check.md); - is stdin")
	f.StringArrayVar(&o.targets, "target", nil,
		"`target` on requests as requests validate takes it: qps=100, 'ttft_p99_ms<=450' (repeatable)")
	f.StringSliceVar(&o.ready, "ready", nil, "ready-made `checks`, see above")
	f.StringVar(&o.baseline, "baseline", "", "`run` that limits of the form baseline + 5% are made of")
	registerHistory(cmd, &o.history, &o.keys, "`file` of earlier runs: the headline must not be worse than "+
		"their last level")
	f.BoolVar(&o.provable, "require-bounds", false,
		"let an estimated percentile pass only when all of its interval keeps the limit")
	f.StringVar(&o.junit, "junit", "", "also write JUnit XML to this `file`")
	f.StringVar(&o.format, "format", "text", "`format` of the output: "+strings.Join(checkFormats, ", "))
	f.StringVarP(&o.out, "out", "o", "-", "write the output to this `file`, - is stdout")
	o.window.register(cmd)
	o.analysis.registerNumbers(cmd)
	return cmd
}

func judgeRun(ctx context.Context, o checkOptions, std stdio) error {
	if err := oneOf("format", "format", o.format, checkFormats...); err != nil {
		return err
	}
	gate, err := o.gate(std)
	if err != nil {
		return err
	}
	so := o.analysis.options()
	if _, err := o.window.ref(); err != nil {
		return err
	}
	if err := gate.Validate(so.Catalog, o.baseline != ""); err != nil {
		return usagef("%w", err)
	}
	if o.run == "" {
		_, err := fmt.Fprintf(std.out, "%d checks are well formed; give a RUN to hold it against them\n",
			len(gate.Demands)+len(gate.Ready))
		return err
	}
	e, err := o.bothSides(ctx, gate, so, std)
	if err != nil {
		return err
	}
	result, err := gate.Judge(e)
	if err != nil {
		return usagef("%w", err)
	}
	compared, err := o.againstBaseline(ctx, so)
	if err != nil {
		return fmt.Errorf("baseline: %w", err)
	}
	gated, none, err := o.againstHistory(ctx)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	past := verdictOfHistory(gated, none)
	if len(result.Answers) == 0 { // the history alone decides
		result.Verdict = map[int]check.Verdict{exitDone: check.Pass, exitBad: check.Fail,
			exitIncomplete: check.NoData}[codeOrDone(past)]
	}
	if err := o.write(&result, compared, gated, std.out); err != nil {
		return err
	}
	switch {
	case result.Verdict == check.Fail:
		return &codeError{exitBad, past}
	case past != nil:
		return past
	case result.Verdict == check.NoData:
		return &codeError{code: exitIncomplete}
	case o.incomplete != nil:
		return o.incomplete
	}
	if e.Baseline != nil {
		return o.analysis.verdict(e.Run, e.Baseline.Run)
	}
	return o.analysis.verdict(e.Run)
}

// gate reads all that is demanded.
func (o *checkOptions) gate(std stdio) (*check.Gate, error) {
	gate := &check.Gate{}
	if o.slo != "" {
		in := std.in
		if o.slo != "-" {
			f, err := os.Open(o.slo)
			if err != nil {
				return nil, usagef("--slo: %w", err)
			}
			defer f.Close()
			warnWritable(std.err, o.slo)
			in = f
		}
		var err error
		if gate, err = check.ReadSLO(in); err != nil {
			return nil, usagef("--slo %s: %w", o.slo, err)
		}
	}
	for _, text := range o.asserts {
		d, err := check.Parse(text)
		if err != nil {
			return nil, usagef("--assert: %w", err)
		}
		gate.Demands = append(gate.Demands, d)
	}
	more, err := check.FromTargets(o.targets)
	if err != nil {
		return nil, usagef("--target: %w", err)
	}
	gate.Demands = append(gate.Demands, more...)
	for _, text := range o.ready {
		r, err := check.ParseReady(text)
		if err != nil {
			return nil, usagef("--ready: %w", err)
		}
		gate.Ready = append(gate.Ready, r)
	}
	if len(gate.Demands)+len(gate.Ready) == 0 && (o.history == "" || o.run == "") {
		return nil, usagef("nothing to check: give --assert, --slo, --target, --ready, or a RUN and --history")
	}
	if len(o.repeats) > 0 && (len(gate.Demands)+len(gate.Ready) > 0 || o.baseline != "" || o.history == "") {
		return nil, usagef("several RUNs are repeats that --history judges, and nothing else: check one RUN for limits, " +
			"compare sides with compare")
	}
	return gate, nil
}

// bothSides analyses the run and, where there is one, the baseline. One that is an export has its own estimator, and
// the other takes that.
func (o *checkOptions) bothSides(ctx context.Context, gate *check.Gate, so summary.Options,
	std stdio) (e *check.Evidence, err error) {
	if e, err = o.evidence(ctx, o.run, gate, so, std); err != nil || o.baseline == "" {
		return e, err
	}
	so.Estimator = cmp.Or(e.Run.Options.Estimator, so.Estimator)
	base, err := o.evidence(ctx, o.baseline, gate, so, std)
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	if its := base.Run.Options.Estimator; its != "" && its != so.Estimator && o.analysis.estimator == "" {
		so.Estimator = its
		if e, err = o.evidence(ctx, o.run, gate, so, std); err != nil {
			return nil, err
		}
	}
	e.Baseline = base
	return e, nil
}

// evidence analyses a run as the gate needs it.
func (o *checkOptions) evidence(ctx context.Context, arg string, gate *check.Gate, so summary.Options,
	std stdio) (*check.Evidence, error) {
	dirs, err := o.window.runs([]string{arg}, &so)
	if err != nil {
		return nil, err
	}
	path := dirs[0]
	so.Quantiles = append(slices.Clone(so.Quantiles), check.Quantiles(gate.Demands)...)
	e := &check.Evidence{Provable: o.provable, Grouped: map[string]*summary.Run{}}
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return e, exportedEvidence(e, path, so.Windows[0])
	}
	build := func(by []string) (*summary.Run, error) {
		so.By = by
		result, _, closeAll, err := load(ctx, []string{path}, o.analysis, so, newProgress(std.err, false))
		if err == nil {
			closeAll()
		}
		return result, err
	}
	if e.Run, err = build(nil); err == nil {
		err = notEmpty(e.Run, path, exitIncomplete)
	}
	if err != nil {
		return nil, err
	}
	for _, by := range check.Groupings(gate.Demands) {
		if e.Grouped[check.GroupKey(by)], err = build(by); err != nil {
			return nil, err
		}
	}
	if gate.WantsRequests() {
		rf := requestFlags{window: events.WindowTracked, kind: "auto", method: events.Linear, tpot: events.PerNMinus1,
			weight: events.WeightBoth, maxRequests: maxRequests, runFlags: o.analysis.runFlags}
		if e.Requests, _, err = rf.report(ctx, path, std); err != nil {
			e.NoRequests = err.Error()
		}
		o.incomplete = cmp.Or(o.incomplete, rf.complete())
	}
	if gate.WantsExplain() {
		if _, e.Explained, err = causesOf(ctx, arg, &o.window, o.analysis, explain.DefaultRules(), explain.Latency,
			std); err != nil {
			return nil, err
		}
	}
	if gate.WantsJoin() {
		var lost error
		jo := joinOptions{run: path, ref: so.Windows[0], runFlags: o.analysis.runFlags,
			joinFlags: joinFlags{drift: align.DefaultDrift}}
		if e.Joined, lost, err = joinRun(ctx, jo, nil); err != nil {
			e.NoJoin = err.Error()
		}
		o.incomplete = cmp.Or(o.incomplete, lost)
	}
	return e, nil
}

// exportedEvidence reads a JSON export, which has no groups and no requests.
func exportedEvidence(e *check.Evidence, path string, ref window.Ref) error {
	if filepath.Ext(path) == ".csv" { // which has a headline alone
		e.Run, e.NoRequests = &summary.Run{ID: path}, "a CSV of values has no request events"
		e.NoJoin = e.NoRequests
		return nil
	}
	f, err := openExport(path, ref)
	if err != nil {
		return err
	}
	defer f.Close()
	if e.Run, _, err = export.ReadJSON(f); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	e.NoRequests = "a JSON export has no request events: give the run directory"
	e.NoJoin = e.NoRequests
	return nil
}

// againstBaseline is what compare says of the run and its baseline; nil without one.
func (o *checkOptions) againstBaseline(ctx context.Context, so summary.Options) (*compare.Result, error) {
	if o.baseline == "" {
		return nil, nil
	}
	var sides []sideArg
	so.Slice = o.analysis.slice // those of the recording are for exports
	for side, text := range []string{o.baseline, o.run} {
		a, err := o.window.arg(text)
		if err != nil {
			return nil, err
		}
		sides = append(sides, sideArg{[]string{"baseline", "run"}[side], a.Run, a.Ref})
	}
	inputs, err := readInputs(ctx, sides, &compareOptions{phases: true, analysis: o.analysis}, so)
	if err != nil {
		return nil, err
	}
	return compare.Compare(inputs, compare.Options{Catalog: o.analysis.catalog})
}

func (o *checkOptions) write(r *check.Result, baseline, past *compare.Result, stdout io.Writer) error {
	var b bytes.Buffer
	text, markdown := r.WriteText, r.WriteMarkdown
	if len(r.Answers) == 0 {
		text = func(io.Writer) error { return nil }
		markdown = text
	}
	history := "the history"
	if past != nil {
		history = fmt.Sprintf("the history: the last level, %s; this is %s", texttab.Count(len(past.Sides[0].Runs), "run"),
			texttab.Count(len(past.Sides[1].Runs), "run"))
	}
	for _, x := range []struct {
		against string
		*compare.Result
	}{{"the baseline", baseline}, {history, past}} {
		if x.Result == nil {
			continue
		}
		r.Headline = compare.HeadlineJSON(x.Result)
		before, beforeMarkdown := text, markdown
		text = func(w io.Writer) error {
			err := before(w)
			_, head := io.WriteString(w, "\nagainst "+x.against+"\n")
			return errors.Join(err, head, report.HeadlineText(w, x.Result))
		}
		markdown = func(w io.Writer) error {
			err := beforeMarkdown(w)
			_, head := io.WriteString(w, "\nAgainst "+x.against+". ")
			return errors.Join(err, head, report.HeadlineMarkdown(w, x.Result))
		}
	}
	name := filepath.Base(filepath.Clean(o.run))
	render := map[string]func() error{
		"text":     func() error { return text(&b) },
		"markdown": func() error { return markdown(&b) },
		"json":     func() error { return r.WriteJSON(&b) },
		"junit":    func() error { return r.WriteJUnit(&b, name) },
		"github":   func() error { return r.WriteGitHub(&b, strings.TrimPrefix(o.slo, "-")) },
	}
	if err := render[o.format](); err != nil {
		return err
	}
	if o.junit != "" {
		var x bytes.Buffer
		if err := errors.Join(r.WriteJUnit(&x, name), atomicfile.WriteFile(filepath.Clean(o.junit), x.Bytes(),
			0)); err != nil {
			return fmt.Errorf("--junit: %w", err)
		}
	}
	return writeOutput(o.out, "verdicts", b.Bytes(), stdout)
}

// writeOutput writes what a command makes into the file of --out, or to stdout for -.
func writeOutput(path, what string, data []byte, stdout io.Writer) error {
	if path == "-" {
		if _, err := stdout.Write(data); err != nil {
			return fmt.Errorf("write stdout: %w", err)
		}
		return nil
	}
	if err := atomicfile.WriteFile(filepath.Clean(path), data, 0); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

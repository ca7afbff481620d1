package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/compare"
	"github.com/scrapestat/scrapestat/headline"
	"github.com/scrapestat/scrapestat/report"
	"github.com/scrapestat/scrapestat/summary"
)

const compareLong = `Compares runs and says what changed, how sure that is, and what could not be
compared. The first NAME is the base; runs that share a NAME are repeats of one
side. A RUN is a run directory or a server_metrics_export.json, AIPerf's or ours.

The headline is judged first: throughput, errors, means and p99 of latencies, at
most one false finding in twenty comparisons. Three runs a side may say worse or
better; one run a side cannot know how runs vary, and says moved. --fail-on is
about the headline alone. See docs/compare.md.
` + selectorHelp

const compareExample = `  scrapestat compare run1 run2
  scrapestat compare main=a1 main=a2 main=a3 main=a4 main=a5 main=a6 pr=b1 pr=b2 pr=b3 pr=b4 pr=b5 pr=b6
  scrapestat compare low=sweep@low high=sweep@high
  scrapestat compare main=old pr=new --profile vllm-omni --by stage,replica
  scrapestat compare base=main pr=run --fail-on worse --format markdown -o comment.md
  scrapestat compare aiperf/server_metrics_export.json run2 --metric 'e2e|ttft'`

// compareFormats are the values of compare --format.
var compareFormats = []string{"text", "markdown", "json", "csv", "html"}

// compareOptions is the command line of compare.
type compareOptions struct {
	runs      []string
	metric    string
	profile   string
	alpha     float64
	minEffect string
	margins   []string
	gate      compare.Gate
	phases    bool // compare them one by one
	causes    bool
	history   string
	keys      []string // tags of its configurations
	format    string
	out       string
	all       bool
	rows      int
	window    windowFlags
	analysis  analysisFlags
}

func newCompareCmd(std stdio) *cobra.Command {
	var o compareOptions
	cmd := &cobra.Command{
		Use:     "compare [NAME=]RUN [NAME=]RUN... [flags]",
		Short:   "Compare runs: what changed, and is it real",
		Long:    compareLong,
		Example: compareExample,
		Args:    atLeast(2, "two RUNs, run directories or JSON exports"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.runs = args
			if err := o.analysis.validate(); err != nil {
				return err
			}
			return compareRuns(cmd.Context(), o, std)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.metric, "metric", "", "compare only families and derived quantities whose name, of any run, "+
		"matches this `regexp`")
	f.StringVar(&o.profile, "profile", "",
		"compare only what matters first of this `engine`: vllm, vllm-omni, sglang, ...")
	f.Float64Var(&o.alpha, "alpha", compare.DefaultAlpha,
		"accepted `share` of false findings, more than 0 and less than 0.5")
	f.StringArrayVar(&o.margins, "margin", nil, "least `change` worth a verdict: 5% of all rows, e2e_p99=10% of one "+
		"(repeatable)")
	f.StringVar(&o.minEffect, "min-effect", "", "the same as --margin without a row: 2% or 0.02")
	f.StringSliceVar(&o.gate.Words, "fail-on", nil, "exit with 3 when the headline has one of these `verdicts`: worse, "+
		"moved, unclear, or any row any-row:worse; with 4 when there is nothing to judge by")
	registerHistory(cmd, &o.history, &o.keys, "`file` of earlier runs, whose noise lets single runs say worse or better")
	f.BoolVar(&o.gate.AllowLoad, "allow-load-change", false, "let --fail-on judge runs whose load differed")
	f.BoolVar(&o.phases, "by-phase", true, "compare runs that have the same phases phase by phase")
	f.BoolVar(&o.causes, "causes", false, "list what moved also where the headline did not")
	f.StringVar(&o.format, "format", "text", "`format` of the result: "+strings.Join(compareFormats, ", "))
	f.StringVarP(&o.out, "out", "o", "-", "write the result to this `file`, - is stdout")
	f.BoolVar(&o.all, "all", false, "also list rows that are the same or need repeats")
	f.IntVar(&o.rows, "rows", 0, "`number` of rows to list without --all (default none beneath a headline, else 25)")
	o.window.register(cmd)
	o.analysis.registerNumbers(cmd)
	o.analysis.registerBy(cmd)
	f.Lookup("slice-duration").Usage = "width of the timeslices that within-run noise is estimated from (default: " +
		"1/100 of the window, at least 2 intervals)"
	f.Lookup("percentiles").Usage = "percentiles of histograms to compare, 0 to 100 (default 50,99)"
	f.Lookup("by").Usage = "take series together that agree in these `labels`, endpoint among them; '' takes all of " +
		"a family (default: each series by itself)"
	return cmd
}

// options checks the flags.
func (o *compareOptions) options() (compare.Options, error) {
	out := compare.Options{Alpha: o.alpha, Profile: o.profile, Catalog: o.analysis.catalog,
		Quantiles: o.analysis.quantiles,
		By:        o.analysis.options().By}
	if !(o.alpha > 0 && o.alpha < 0.5) {
		return out, usagef("--alpha %v: want more than 0 and less than 0.5", o.alpha)
	}
	out.Causes = o.causes
	if err := o.setMargins(&out); err != nil {
		return out, err
	}
	var err error
	if out.Metric, err = regexp.Compile(o.metric); err != nil {
		return out, usagef("--metric: %w", err)
	}
	if o.rows < 0 {
		return out, usagef("--rows %d: want a number from 0 up", o.rows)
	}
	return out, oneOf("format", "format", o.format, compareFormats...)
}

// setMargins reads --margin and its older name.
func (o *compareOptions) setMargins(out *compare.Options) error {
	out.Margins = map[string]float64{}
	if o.minEffect != "" {
		o.margins = append([]string{o.minEffect}, o.margins...)
	}
	for _, text := range o.margins {
		row, share, ok := strings.Cut(text, "=")
		if !ok {
			row, share = "", text
		}
		v, err := parseShare(share)
		if err != nil {
			return usagef("--margin %s: want a change such as 2%% or 0.02, or ROW=2%%", text)
		}
		if row == "" {
			if out.MinEffect = v; v == 0 {
				out.MinEffect = -1 // none, where 0 is the default
			}
		} else if !slices.ContainsFunc(headline.Rows(), func(r headline.Row) bool { return r.Name() == row }) {
			return usagef("--margin %s: no row is called so (known: %s)", text, strings.Join(rowNames(), ", "))
		}
		out.Margins[row] = v
	}
	return nil
}

func rowNames() (out []string) {
	for _, r := range headline.Rows() {
		out = append(out, r.Name())
	}
	return out
}

// parseShare reads 2% or 0.02, not negative.
func parseShare(s string) (float64, error) {
	number, perCent := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if perCent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v < 10) {
		return 0, fmt.Errorf("%q is no share", s)
	}
	return v, nil
}

func compareRuns(ctx context.Context, o compareOptions, std stdio) error {
	co, err := o.options()
	if err != nil {
		return err
	}
	if err := o.gate.Check(); err != nil {
		return usagef("--fail-on: %w", err)
	}
	so := o.analysis.options()
	sides, err := sidesOf(o.runs, &o.window)
	if err != nil {
		return err
	}
	if err := checkProfile(&co); err != nil {
		return err
	}
	inputs, err := readInputs(ctx, sides, &o, so)
	if err != nil {
		return err
	}
	if err := o.takeNoise(ctx, inputs, &co, std.err); err != nil {
		return err
	}
	result, err := compare.Compare(inputs, co)
	if err != nil {
		return usagef("compare: %w", err)
	}
	if err := o.finds(result, inputs); err != nil {
		return err
	}
	if err := o.write(result, std.out); err != nil {
		return err
	}
	var recorded []*summary.Run // whose losses are known
	for _, in := range inputs {
		if in.Format == "" || in.Format == compare.FormatRun {
			recorded = append(recorded, in.Run)
		}
	}
	return cmp.Or(gateVerdict(o.gate, result), o.analysis.verdict(recorded...))
}

// finds fails when --metric or --by is about nothing that the runs have.
func (o *compareOptions) finds(result *compare.Result, inputs []compare.Input) error {
	runs := make([]*summary.Run, len(inputs))
	for i := range inputs {
		runs[i] = inputs[i].Run
	}
	var match *regexp.Regexp
	if o.metric != "" && len(result.Rows) == 0 {
		match = regexp.MustCompile(o.metric)
	}
	rows := &summary.Run{} // what labels are called after the runs met
	for i := range result.Rows {
		rows.Aggregates = append(rows.Aggregates, summary.Aggregate{Labels: result.Rows[i].Labels})
	}
	return cmp.Or(o.analysis.knowsLabels(append(runs, rows)...), matchesSome(match, runs...))
}

// write writes the result in the chosen format.
func (o *compareOptions) write(r *compare.Result, stdout io.Writer) error {
	var b bytes.Buffer
	if err := o.render(&b, r); err != nil {
		return err
	}
	return writeOutput(o.out, "comparison", b.Bytes(), stdout)
}

func (o *compareOptions) render(w io.Writer, r *compare.Result) error {
	view := report.ComparisonOptions{All: o.all, Rows: o.rows}
	switch o.format {
	case "markdown":
		return report.ComparisonMarkdown(w, r, view)
	case "json":
		return compare.JSON(w, r)
	case "csv":
		return compare.CSV(w, r)
	case "html":
		return report.ComparisonHTML(w, r)
	default:
		return report.ComparisonText(w, r, view)
	}
}

// gateVerdict is what the gate says of a comparison, by the exit code: a bad answer wins over none.
func gateVerdict(g compare.Gate, r *compare.Result) error {
	switch bad, lacks := g.Judge(r); {
	case bad != "":
		return &codeError{exitBad, fmt.Errorf("compare: %s (--fail-on)", bad)}
	case lacks != "":
		return &codeError{exitIncomplete, fmt.Errorf("compare: %s", lacks)}
	}
	return nil
}

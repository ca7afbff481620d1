package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/rundb"
)

// maxRequests is how many requests are held in memory.
const maxRequests = 5_000_000

// requestFlags say how requests are read and reported.
type requestFlags struct {
	window, method, tpot, weight, tokenizer, kind, format string
	targets                                               []string
	compat, lenient                                       bool
	maxRequests                                           int
}

func (o *requestFlags) register(cmd *cobra.Command, targets string) {
	f := cmd.Flags()
	f.StringVar(&o.window, "window", events.WindowTracked,
		"`window`: tracked, mlperf-legacy, loadgen, steady[=SHARE cut at each end], phase=NAME, range=FROM..TO "+
			"(durations from the first issue, or RFC 3339)")
	f.StringVar(&o.method, "percentile-method", events.Linear, "`method` of percentiles: "+strings.Join(events.Methods,
		", "))
	f.StringVar(&o.tpot, "tpot", events.PerNMinus1,
		"`denominator` of the time per output token: "+strings.Join(events.Denominators, ", "))
	f.StringVar(&o.tokenizer, "tokenizer", "", "count tokens by this `way`: "+strings.Join(events.Tokenizers,
		", ")+" (default: the first of these three that the source has: usage, token_ids, chunks)")
	f.StringVar(&o.kind, "kind", "auto", "`kind` of a FILE: auto, "+strings.Join(events.Kinds,
		", ")+", "+events.KindSummary)
	f.StringVar(&o.format, "format", "text", "`format` of the output: text, json")
	f.StringArrayVar(&o.targets, "target", nil, targets)
	f.BoolVar(&o.lenient, "lenient", false, "let a session pass that started or ended twice, or went on after its end")
	f.IntVar(&o.maxRequests, "max-requests", maxRequests, "most requests held in memory, about 400 bytes each")
}

func (o *requestFlags) validate() error {
	if o.format != "text" && o.format != "json" {
		return usagef("--format: unknown format %q (known: text, json)", o.format)
	}
	if o.maxRequests < 1 {
		return usagef("--max-requests %d: a limit must be positive", o.maxRequests)
	}
	return nil
}

// rules are those that sessions are assembled by.
func (o *requestFlags) rules() events.Rules {
	return events.Rules{Lenient: o.lenient, Tokenizer: o.tokenizer, MaxRequests: o.maxRequests}
}

// ofRun reads the session of a run.
func (o *requestFlags) ofRun(ctx context.Context, dir string) (*events.Session, error) {
	run, err := rundb.Open(dir)
	if err != nil {
		return nil, err
	}
	if !run.HasEvents() {
		return nil, errors.Join(fmt.Errorf("%s: the run has no request events (scrapestat requests import or record "+
			"adds them)", dir), run.Close())
	}
	rules := o.rules()
	rules.Marks = run.Marks()
	s, err := events.Assemble(run.Events(ctx), rules)
	return s, errors.Join(err, run.Close())
}

// ofFile reports a file of another tool: from its requests, or from the statistics of
// a summary.
func (o *requestFlags) ofFile(ctx context.Context, path string, ro events.ReportOptions, std stdio) (*events.Report,
	error) {
	f, closeFile, err := openEvents(path, std, events.FileOptions{Kind: o.kind, MaxRequests: o.maxRequests})
	if err != nil {
		return nil, err
	}
	defer closeFile()
	if f.Kind == events.KindSummary {
		return o.ofSummary(f, ro)
	}
	s, err := events.Assemble(f.Stream(ctx), o.rules())
	if err != nil {
		return nil, err
	}
	if f.Bad > 0 {
		fmt.Fprintf(std.err, "warning: %d entries could not be read, the first: %s\n", f.Bad, texttab.Escape(f.FirstBad))
	}
	return o.ofSession(s, ro)
}

func (o *requestFlags) ofSummary(f *events.File, ro events.ReportOptions) (*events.Report, error) {
	if o.tokenizer != "" {
		return nil, usagef("--tokenizer %s: a summary has no texts and no requests to count by", o.tokenizer)
	}
	var err error
	if ro.Window, err = events.ParseWindow(o.window, 0); err != nil {
		return nil, usagef("--window: %w", err)
	}
	return f.Summarise(ro)
}

// ofSession reports the window of a session that the flags ask for.
func (o *requestFlags) ofSession(s *events.Session, ro events.ReportOptions) (*events.Report, error) {
	origin := int64(0)
	if len(s.Requests) > 0 {
		origin = s.Requests[0].IssuedNS
	}
	var err error
	if ro.Window, err = events.ParseWindow(o.window, origin); err != nil {
		return nil, usagef("--window: %w", err)
	}
	return events.Summarise(s, ro)
}

// openEvents opens a file of another tool, or stdin.
func openEvents(path string, std stdio, o events.FileOptions) (*events.File, func(), error) {
	r, closeInput, err := openInput(path, std)
	if err != nil {
		return nil, nil, err
	}
	name := path
	if path == "-" {
		name = ""
	}
	f, err := events.Open(name, r, o)
	if err != nil {
		closeInput()
		return nil, nil, err
	}
	return f, closeInput, nil
}

// report makes the report that the flags ask for.
func (o *requestFlags) report(ctx context.Context, path string, std stdio) (*events.Report, []events.Target, error) {
	targets, err := events.ParseTargets(o.targets)
	if err != nil {
		return nil, nil, usagef("--target: %w", err)
	}
	// A wrong flag shows before a large file is read.
	ro := events.ReportOptions{Method: o.method, TPOT: o.tpot, Weight: o.weight, MLPerfKeys: o.compat, Limits: targets}
	if _, err := events.Summarise(&events.Session{}, ro); err != nil {
		return nil, nil, usagef("%w", err)
	}
	if _, err := events.ParseWindow(o.window, 0); err != nil {
		return nil, nil, usagef("--window: %w", err)
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		r, err := o.ofFile(ctx, path, ro, std)
		return r, targets, err
	}
	s, err := o.ofRun(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	r, err := o.ofSession(s, ro)
	return r, targets, err
}

func newRequestsReportCmd(std stdio) *cobra.Command {
	var o requestFlags
	cmd := &cobra.Command{
		Use:   "report RUN|FILE",
		Short: "Print throughput, latency, TTFT and TPOT of requests",
		Long: `Prints what the clients saw: throughput, latency, time to first token (TTFT) and
time per output token (TPOT), of the requests of a run, or of a file of another
tool: an events database or events.jsonl of MLPerf's endpoints benchmark, AIPerf's
profile_export.jsonl, the detailed result of vllm bench serve, guidellm's JSON. Of
MLPerf's result_summary.json and final_snapshot.json it prints what they have.
What the numbers mean: docs/requests.md.`,
		Example: "  scrapestat requests report run1\n  scrapestat requests report events.jsonl --tokenizer words " +
			"--window mlperf-legacy --format json\n  scrapestat requests report run1 --target 'ttft<=450ms' --target " +
			"'tpot<=40ms'",
		Args: exactly(1, "RUN or FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			r, _, err := o.report(cmd.Context(), args[0], std)
			if err != nil {
				return err
			}
			if o.format == "json" {
				return writeJSON(std.out, r)
			}
			return writeRequests(std.out, r)
		},
	}
	o.register(cmd, "`limit` for goodput, such as 'ttft<=450ms', 'tpot<=40ms' or 'latency<=2s' (repeatable)")
	cmd.Flags().StringVar(&o.weight, "weight", events.WeightBoth,
		"`weighting` of the time per output token: "+strings.Join(events.Weights, ", "))
	cmd.Flags().BoolVar(&o.compat, "mlperf-compat", false, "name percentiles as MLPerf's tools do: 99.0 for 99")
	return cmd
}

func newRequestsValidateCmd(std stdio) *cobra.Command {
	var o requestFlags
	var tolerance float64
	cmd := &cobra.Command{
		Use:   "validate RUN|FILE --target TARGET ...",
		Short: "Hold the requests of a run against targets",
		Long: `Holds requests against targets: METRIC[_STATISTIC] OP VALUE.

METRIC is qps, qps_all, tps, goodput, ttft, tpot, latency, latency_all, isl or osl.
STATISTIC is mean (default), min, max, median, p50, p90, p99, p999, ... OP is <=, >=
or =, which allows for --tolerance either way as MLPerf does. Times are in ms
unless a unit says otherwise. latency_from_qps=4 is latency_ms=250.

The exit code is 0 when all pass, 3 when one fails, 4 when none fails and one
has no data.`,
		Example: "  scrapestat requests validate run1 --target qps=100 --target 'ttft_p99_ms<=450' --target 'tpot p99 " +
			"<= 40ms'",
		Args: exactly(1, "RUN or FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch err := o.validate(); {
			case err != nil:
				return err
			case len(o.targets) == 0:
				return usagef("no --target")
			case !(tolerance >= 0 && tolerance < 1):
				return usagef("--tolerance %v: want a share from 0 to below 1", tolerance)
			}
			r, targets, err := o.report(cmd.Context(), args[0], std)
			if err != nil {
				return err
			}
			if r.Summary != "" { // it may measure something else than was asked for
				for _, x := range r.Warnings {
					fmt.Fprintf(std.err, "warning: %s\n", texttab.Escape(x.Text))
				}
			}
			v := events.Validate(r, targets, tolerance)
			return errors.Join(writeVerdict(std.out, v, o.format), exitOf(v.Verdict))
		},
	}
	o.register(cmd, "`target` to hold, such as qps=100 or 'ttft_p99_ms<=450' (repeatable)")
	cmd.Flags().Float64Var(&tolerance, "tolerance", events.DefaultTolerance,
		"what = allows for, as a share of the larger value")
	return cmd
}

// exitOf is the exit code of a verdict, which has been printed.
func exitOf(v events.Verdict) error {
	switch v {
	case events.Fail:
		return &codeError{code: exitBad}
	case events.NoData:
		return &codeError{code: exitIncomplete}
	}
	return nil
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func writeVerdict(w io.Writer, v events.Validation, format string) error {
	if format == "json" {
		return writeJSON(w, v)
	}
	var t texttab.Table
	t.Header("TARGET", "VERDICT", "MEASURED", "MARGIN")
	t.Right(2, 3)
	for _, o := range v.Outcomes {
		measured, margin := "none: "+o.Measured.Reason, "-"
		if o.Measured.Known {
			measured = number(o.Measured.V)
			if o.Target.IsTime() {
				measured = millis(o.Measured.V) + " ms"
			}
		}
		if o.Margin.Known {
			margin = fmt.Sprintf("%+.2f %%", 100*o.Margin.V)
		}
		t.Row(o.Target.Text, string(o.Verdict), measured, margin)
	}
	if _, err := t.WriteTo(w); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, v.Verdict)
	return err
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

// millis shows nanoseconds as milliseconds, with as many digits as they deserve.
func millis(ns float64) string {
	if ns < 1e4 {
		return strconv.FormatFloat(ns/1e6, 'g', 4, 64)
	}
	return strconv.FormatFloat(ns/1e6, 'f', 2, 64)
}

// orReason shows a value with a unit, or why there is none.
func orReason(v events.Value, unit string) string {
	if !v.Known {
		return "none (" + v.Reason + ")"
	}
	return number(v.V) + unit
}

// told shows a count, or that the source does not have it.
func told(n int) string {
	if n < 0 {
		return "?"
	}
	return strconv.Itoa(n)
}

func writeRequests(w io.Writer, r *events.Report) error {
	var head texttab.Table
	length := orReason(r.Duration, " s")
	if r.Duration.Known {
		length = time.Duration(r.Duration.V * 1e9).String()
	}
	if r.Summary != "" {
		head.Row("Source", "a summary of MLPerf's endpoints benchmark, without requests")
	}
	head.Row("Window", r.Window+", "+length)
	head.Row("Requests", fmt.Sprintf("%s issued, %s completed, %s ok, %s failed, %s in flight; %s outside the window",
		told(r.Issued), told(r.Completed), told(r.Succeeded), told(r.Failed), told(r.InFlight), told(r.Outside)))
	head.Row("QPS", orReason(r.QPS, " ok/s"))
	head.Row("QPS of all", orReason(r.QPSAll, " /s"))
	head.Row("TPS", orReason(r.TPS, " tokens/s"))
	if r.Goodput.Known {
		head.Row("Goodput", fmt.Sprintf("%s (%d requests could not be judged)", orReason(r.Goodput, " /s"), r.GoodMissing))
	}
	head.Row("Tokens by", countText(r.TokenSources))
	head.Row("Finish", countText(r.Finish))
	if len(r.Errors) > 0 {
		head.Row("Errors", countText(r.Errors))
	}
	if _, err := head.WriteTo(w); err != nil {
		return err
	}
	rows := requestRows(r)
	fmt.Fprintln(w)
	if err := writeGrid(w, rows); err != nil {
		return err
	}
	for _, row := range rows {
		if row.d.Reason != "" {
			fmt.Fprintf(w, "%s: %s\n", row.name, texttab.Escape(row.d.Reason))
		}
	}
	for _, x := range r.Warnings {
		fmt.Fprintf(w, "warning: %s\n", texttab.Escape(x.Text))
	}
	return nil
}

func countText(list []events.Count) string {
	var parts []string
	for i, c := range list {
		if i == 8 {
			parts = append(parts, fmt.Sprintf("and %d others", len(list)-i))
			break
		}
		name := c.Name
		if name == "" {
			name = "(not told)"
		}
		parts = append(parts, fmt.Sprintf("%s %d", name, c.N))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// requestRow is a distribution with the form of its values.
type requestRow struct {
	name string
	d    *events.Distribution
	show func(float64) string
}

func requestRows(r *events.Report) []requestRow {
	rows := []requestRow{{"TTFT ms", &r.TTFT, millis}, {"latency ms", &r.Latency, millis},
		{"latency of all ms", &r.LatencyAll, millis}}
	if r.Weight != events.WeightToken {
		rows = append(rows, requestRow{"TPOT ms (" + r.PerToken + ")", &r.TPOT, millis})
	}
	if r.Weight != events.WeightRequest {
		rows = append(rows, requestRow{"TPOT ms by token", &r.TPOTTokens, millis})
	}
	return append(rows, requestRow{"ISL tokens", &r.ISL, number}, requestRow{"OSL tokens", &r.OSL, number})
}

// writeGrid prints the statistics: one column for each distribution and, beside
// those that have them, the early stopping estimates.
func writeGrid(w io.Writer, rows []requestRow) error {
	var t texttab.Table
	header := []string{""}
	for i, row := range rows {
		header = append(header, row.name)
		t.Right(i + 1)
	}
	t.Header(header...)
	line := func(name string, of func(requestRow) string) {
		cells := []string{name}
		for _, row := range rows {
			cell := "-"
			if row.d.N > 0 {
				cell = of(row)
			}
			cells = append(cells, cell)
		}
		t.Row(cells...)
	}
	line("n", func(r requestRow) string { return strconv.Itoa(r.d.N) })
	line("mean", func(r requestRow) string { return r.show(r.d.Mean) })
	line("std dev", func(r requestRow) string {
		if !r.d.StdDev.Known {
			return "-"
		}
		return r.show(r.d.StdDev.V)
	})
	line("min", func(r requestRow) string { return r.show(r.d.Min) })
	for i := len(events.Grid) - 1; i >= 0; i-- {
		line("p"+strconv.FormatFloat(events.Grid[i], 'f', -1, 64), func(r requestRow) string {
			if r.d.Quantiles[i].Missing {
				return "-"
			}
			return r.show(r.d.Quantiles[i].Value)
		})
	}
	line("max", func(r requestRow) string { return r.show(r.d.Max) })
	for _, p := range []float64{50, 90, 99, 99.9} {
		line(fmt.Sprintf("p%v early stop", p), func(r requestRow) string {
			if q, ok := r.d.Quantile(p); ok && q.HasEarly {
				return r.show(q.Early)
			}
			return "-"
		})
	}
	_, err := t.WriteTo(w)
	return err
}

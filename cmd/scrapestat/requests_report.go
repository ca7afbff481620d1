package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/window"
)

// maxRequests is how many requests are held in memory.
const maxRequests = 5_000_000

// requestFlags say how requests are read and reported.
type requestFlags struct {
	window, method, tpot, weight, tokenizer, kind, format string
	targets                                               []string
	compat, lenient                                       bool
	maxRequests                                           int
	runFlags

	missing int64 // what is not in the requests that were read
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
	f.IntVar(&o.maxRequests, "max-requests", maxRequests, "most requests held in memory, about 800 bytes each")
	o.runFlags.register(cmd)
}

func (o *requestFlags) validate() error {
	if o.maxRequests < 1 {
		return usagef("--max-requests %d: a limit must be positive", o.maxRequests)
	}
	return first(o.memory.validate(), oneOf("format", "format", o.format, "text", "json"))
}

// rules are those that sessions are assembled by.
func (o *requestFlags) rules() events.Rules {
	return events.Rules{Lenient: o.lenient, Tokenizer: o.tokenizer, MaxRequests: o.maxRequests, Memory: o.memory.of}
}

// ofRun reads the session of a run, and the part of it that ref asks for.
func (o *requestFlags) ofRun(ctx context.Context, dir string, ref window.Ref) (*events.Session, *window.Window, error) {
	runs, closeAll, err := openRuns([]string{dir}, o.memory)
	if err != nil {
		return nil, nil, err
	}
	defer closeAll()
	return o.sessionOf(ctx, dir, runs[0], ref)
}

func (o *requestFlags) sessionOf(ctx context.Context, dir string, run *rundb.Run, ref window.Ref) (s *events.Session,
	w *window.Window, err error) {
	if !run.HasEvents() {
		return nil, nil, fmt.Errorf("%s: the run has no request events (scrapestat requests import or record adds them)", dir)
	}
	rules := o.rules()
	rules.Marks = run.Marks()
	stats, err := run.EventStats(ctx)
	if err != nil {
		return nil, nil, err
	}
	rules.OwnTracking = !slices.ContainsFunc(stats, func(e rundb.EventStats) bool { return e.Source != "proxy" })
	if s, err = events.Assemble(run.Events(ctx), rules); err != nil {
		return nil, nil, err
	}
	if o.missing = missingOf(run, s, stats); ref == (window.Ref{}) {
		return s, nil, nil
	}
	found, err := summary.WindowOf(ctx, run, summary.Options{Window: ref})
	return s, &found, err
}

// missingOf is how much of what was told of requests is not in them as it was told.
func missingOf(run *rundb.Run, s *events.Session, stats []rundb.EventStats) int64 {
	n := s.Lost()
	for _, e := range stats {
		n += e.Lost()
	}
	told := []string{"recording_damaged", "request_lines_bad", "request_events_lost", "proxy_incomplete"}
	for _, w := range run.Warnings() {
		if slices.Contains(told, w.Code) {
			n++
		}
	}
	return n
}

// complete is the error of --strict where something is not in the requests that were read.
func (o *requestFlags) complete() error {
	return o.lost(o.missing, "of the requests something was lost or left out, at %d places", o.missing)
}

// ofFile reports a file of another tool: from its requests, or from the statistics of a summary.
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
	if o.missing = f.Bad + s.Lost(); f.Bad > 0 {
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
	o.memory.renew()
	defer limitGC(o.memory.bytes)()
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
	arg, err := (&windowFlags{}).arg(path)
	if err != nil {
		return nil, nil, err
	}
	if info, err := os.Stat(arg.Run); err != nil || !info.IsDir() {
		r, err := o.ofFile(ctx, path, ro, std)
		return r, targets, err
	}
	s, part, err := o.ofRun(ctx, arg.Run, arg.Ref)
	if err != nil {
		return nil, nil, err
	}
	if part == nil {
		r, err := o.ofSession(s, ro)
		return r, targets, err
	}
	switch {
	case o.window != events.WindowTracked:
		return nil, nil, usagef("--window %s: %s says already which part", o.window, path)
	case len(part.Parts) != 1:
		return nil, nil, fmt.Errorf("%s: the window has %d parts: requests are reported of one", path, len(part.Parts))
	}
	ro.Window = events.Window{Name: events.WindowRange, FromNS: part.Start.AtNS, ToNS: part.End.AtNS}
	r, err := events.Summarise(s, ro)
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
RUN@high/2, RUN@30s..90s and so on take the requests that were issued in that part.
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
				return cmp.Or(texttab.WriteJSON(std.out, r), o.complete())
			}
			return cmp.Or(r.Text(std.out), o.complete())
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
			if o.format == "json" {
				return cmp.Or(texttab.WriteJSON(std.out, v), exitOf(v.Verdict), o.complete())
			}
			return cmp.Or(v.Text(std.out), exitOf(v.Verdict), o.complete())
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

package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/compare"
	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/explain"
	"github.com/scrapestat/scrapestat/internal/atomicfile"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/report/html"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/window"
)

const reportLong = `Writes one HTML file that shows a run, or several beside each other: what matters
of each engine, series and distributions over time, how each target answered, and
a table of every family. The file needs no network and no other file. The first
RUN is the base of all comparison. Works on a run whose collector was killed.
` + selectorHelp

// reportOptions is the command line of report.
type reportOptions struct {
	runs     []string
	out      string
	title    string
	quiet    bool
	window   windowFlags
	analysis analysisFlags
}

func newReportCmd(std stdio) *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use:     "report [NAME=]RUN... [flags]",
		Short:   "Write the report of a run as one HTML file",
		Long:    reportLong,
		Example: "  scrapestat report run1 -o report.html\n  scrapestat report before=run1 after=run2 -o report.html",
		Args:    atLeast(1, "RUN, a run directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.runs = args
			if err := o.analysis.validate(); err != nil {
				return err
			}
			return writeReport(cmd.Context(), o, std)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.out, "out", "o", "", "output `file`, or - for stdout (default report.html in the first RUN)")
	f.StringVar(&o.title, "title", "", "`headline` of the page (default the names of the runs)")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no talk on stderr")
	o.window.register(cmd)
	o.analysis.registerNumbers(cmd)
	return cmd
}

func writeReport(ctx context.Context, o reportOptions, std stdio) error {
	so := o.analysis.options()
	sides, err := sidesOf(o.runs, &o.window)
	if err != nil {
		return err
	}
	say := newProgress(std.err, o.quiet)
	defer say.end()
	if o.out == "" {
		o.out = filepath.Join(runDir(sides[0].path), reportName)
	}
	so.Slice = cmp.Or(so.Slice, summary.NoiseSlices)
	ho := html.Options{Title: o.title, Generated: time.Now()}
	var ins []html.Input
	var compared []compare.Input
	for i, a := range sides {
		b := say.bar(fmt.Sprintf("reading %s (%d of %d)", a.side, i+1, len(sides)))
		in, ci, err := reportInput(ctx, a, o.analysis.memory, so, b)
		if err != nil {
			return err
		}
		if in.Causes, err = o.causes(ctx, a); err != nil {
			return err
		}
		ins, compared = append(ins, in), append(compared, ci)
	}
	useRecorded(results(ins)...)
	if len(ins) > 1 {
		// Runs that are all repeats of one side have nothing to be compared with.
		result, err := compare.Compare(compared, compare.Options{Catalog: o.analysis.catalog})
		if err != nil && !errors.Is(err, compare.ErrSides) {
			return usagef("compare: %w", err)
		}
		ho.Compare = result
	}
	if o.out == "-" {
		w := bufio.NewWriter(std.out)
		if err := errors.Join(html.Write(w, ins, ho), w.Flush()); err != nil {
			return fmt.Errorf("write report to stdout: %w", err)
		}
		return o.analysis.verdict(results(ins)...)
	}
	size, err := saveReport(o.out, ins, ho)
	if err != nil {
		return err
	}
	say.logf("wrote %s (%d bytes)", o.out, size)
	return o.analysis.verdict(results(ins)...)
}

// causes explains a side, over timeslices of their own: those of the page are as wide as noise is judged on.
func (o *reportOptions) causes(ctx context.Context, a sideArg) ([]*explain.Result, error) {
	so := o.analysis.options()
	so.Slice, so.Window = 0, a.ref
	_, causes, err := causesIn(ctx, []string{a.path}, so, o.analysis, explain.DefaultRules(), explain.Latency,
		newProgress(io.Discard, true))
	return causes, err
}

func results(ins []html.Input) (out []*summary.Run) {
	for _, in := range ins {
		out = append(out, in.Run)
	}
	return out
}

// reportName is the report in a run directory.
const reportName = "report.html"

// saveReport writes the page into a file, whole or not at all.
func saveReport(path string, ins []html.Input, ho html.Options) (int64, error) {
	f, err := atomicfile.Create(path, 0o600)
	if err != nil {
		return 0, fmt.Errorf("write report: %w", err)
	}
	defer f.Abort()
	c := &countingWriter{w: f}
	if err := html.Write(c, ins, ho); err != nil {
		return 0, fmt.Errorf("write report %s: %w", path, err)
	}
	if err := f.Commit(); err != nil {
		return 0, fmt.Errorf("write report: %w", err)
	}
	return c.n, nil
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// runDir is the directory of a run, which may also be named by its recording.
func runDir(path string) string {
	if filepath.Base(path) == rundb.FileName {
		return filepath.Dir(path)
	}
	return path
}

// reportInput reads a run once, for its result and for its pictures.
func reportInput(ctx context.Context, a sideArg, m memoryFlag, so summary.Options, b *bar) (in html.Input,
	ci compare.Input, err error) {
	runs, closeAll, err := openRuns([]string{a.path}, m)
	if err != nil {
		return in, ci, fmt.Errorf("run %s: %w", a.path, err)
	}
	defer closeAll()
	run := runs[0]
	meta := run.Meta()
	end, err := endOf(ctx, run)
	if err != nil {
		return in, ci, err
	}
	t := html.NewTimeline(html.TimelineOptions{OriginNS: meta.OriginNS, Interval: meta.Interval,
		Targets: len(run.Targets()), Continuity: summary.Continuity(so.Catalog), Catalog: so.Catalog})
	b.total(int64(len(run.Targets())) * (end - meta.OriginNS))
	so.Window = a.ref
	result, err := summary.Build(ctx, []summary.Recording{&watched{Run: run, timeline: t, bar: b}}, so)
	b.done()
	if err != nil {
		return in, ci, err
	}
	if err := cmp.Or(notEmpty(result, a.path, 1), readRecorded(ctx, result, run)); err != nil {
		return in, ci, err
	}
	in = html.Input{Name: a.side, Run: result, Timeline: t, Open: meta.EndNS == 0}
	if run.HasEvents() {
		s, err := events.Assemble(run.Events(ctx), events.Rules{Lenient: true, Memory: m.of})
		if err != nil {
			return in, ci, fmt.Errorf("read request events of %s: %w", a.path, err)
		}
		in.Requests = s.Requests
	}
	ci = compare.Input{Side: a.side, Path: a.path, Format: compare.FormatRun, Run: result,
		Interval: meta.Interval.Seconds(),
		Settings: settingsOf(a.path, meta)}
	if a.ref == (window.Ref{}) {
		ci.Phases, err = phasesOf(ctx, run, result, a, so)
	}
	return in, ci, err
}

// endOf is when a recording ended: by its mark, by when it was closed, or by the
// last poll of a target in one that was never closed.
func endOf(ctx context.Context, run *rundb.Run) (int64, error) {
	meta := run.Meta()
	end := meta.EndNS
	for _, m := range run.Marks() {
		if m.Name == metric.MarkEnd {
			return max(m.AtNS, meta.OriginNS), nil
		}
	}
	if end == 0 && len(run.Targets()) > 0 {
		for s, err := range run.Snapshots(ctx, 0) {
			if err != nil {
				return 0, fmt.Errorf("find end of run %q: %w", meta.ID, err)
			}
			end = max(end, s.AtNS())
		}
	}
	return max(end, meta.OriginNS), nil
}

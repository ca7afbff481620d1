package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/internal/atomicfile"
	"github.com/scrapestat/scrapestat/internal/parquetwriter"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/query"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/window"
)

// queryOptions is the command line of query.
type queryOptions struct {
	args                 []string
	metrics, stats, span []string
	by                   []string
	byGiven, list        bool
	table, format, out   string
	limit, offset        int
	csvRaw               bool
	window               windowFlags
	analysis             analysisFlags
}

const queryLong = `Prints statistics as one table, a row each: for a screen, a data frame or SQL. Its columns never
depend on what was measured, so that files of several runs unite. A percentile has the bounds between
which it provably is; what is missing has a status that says why, and is never 0.
`

const queryExample = `  scrapestat query run1 -m ttft --stat p50,p99 --by target --every 10s
  scrapestat query base=run1 pr=run2 -m ttft,e2e --format parquet -o stats.parquet
  scrapestat query run1 --list`

func queryFormats() []string { return append([]string{"text"}, export.RowFormats()...) }

func newQueryCmd(std stdio) *cobra.Command {
	var o queryOptions
	cmd := &cobra.Command{
		Use: "query [NAME=]RUN... [flags]", Short: "Print the statistics of runs as one table",
		Long: queryLong + selectorHelp, Example: queryExample, Args: atLeast(1, "RUN, a run directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.args, o.byGiven = args, cmd.Flags().Changed("by")
			if err := o.validate(); err != nil {
				return err
			}
			return o.query(cmd.Context(), std)
		},
	}
	f := cmd.Flags()
	f.StringSliceVarP(&o.metrics, "metric", "m", nil, "`names`: quantities (ttft), such with a statistic (ttft_p99), "+
		"families, or globs (default all)")
	f.StringSliceVar(&o.stats, "stat", nil, "`statistics`: p50, p99.9, avg, mean, rate, ... (default all that exist)")
	f.StringSliceVar(&o.by, "by", nil, "take series together that agree in these `labels`; target and series are among "+
		"them, '' takes all together")
	f.StringSliceVar(&o.span, "span", nil, "`spans`: window, slice, warmup (default window, and slice with --every)")
	f.StringVar(&o.table, "table", "stats", "`table`: stats; samples as they were recorded, or requests of clients "+
		"(as Parquet)")
	f.IntVar(&o.limit, "limit", 0, "print at most this `number` of rows (default all)")
	f.IntVar(&o.offset, "offset", 0, "skip this `number` of rows first")
	f.BoolVar(&o.list, "list", false, "print the names, kinds, units and statistics that the runs have")
	f.StringVar(&o.format, "format", "text", "`format`: "+strings.Join(queryFormats(), ", "))
	f.StringVarP(&o.out, "out", "o", "-", "write the table to this `file`, - is stdout")
	f.BoolVar(&o.csvRaw, "csv-raw", false, "write texts into the CSV exactly as they are")
	o.window.register(cmd)
	o.analysis.registerNumbers(cmd)
	f.DurationVar(&o.analysis.slice, "every", 0, "timeslices of this width (the same as --slice-duration)")
	return cmd
}

func (o *queryOptions) validate() error {
	if err := first(o.analysis.validate(), oneOf("format", "format", o.format, queryFormats()...),
		oneOf("table", "table", o.table, "stats", "samples", "requests")); err != nil {
		return err
	}
	for _, s := range o.span {
		if err := oneOf("span", "span", s, query.SpanWindow, query.SpanSlice, query.SpanWarmup); err != nil {
			return err
		}
	}
	if slices.Contains(o.span, query.SpanSlice) && o.analysis.slice == 0 {
		return usagef("--span slice needs --every")
	}
	for _, s := range o.stats {
		if !query.IsStat(s) {
			return usagef("--stat: unknown statistic %q (known: %s, p50, p99.9, ...)", s,
				strings.Join(query.StatNames(), ", "))
		}
	}
	for _, m := range o.metrics {
		if _, err := path.Match(m, ""); err != nil || m == "" {
			return usagef("--metric %q: want a name, or a pattern such as 'ttft*'", m)
		}
	}
	if o.limit < 0 || o.offset < 0 {
		return usagef("--limit and --offset: want numbers from 0 up")
	}
	if o.table != "stats" && o.format != "parquet" {
		return usagef("--table %s is written as --format parquet", o.table)
	}
	return nil
}

// queried is a run with its name.
type queried struct {
	arg  window.Arg
	name string
	run  *summary.Run
	rec  *rundb.Run
}

func (o *queryOptions) query(ctx context.Context, std stdio) error {
	runs, err := o.named()
	if err != nil {
		return err
	}
	say := newProgress(std.err, true)
	so := o.options()
	for i := range runs {
		q := &runs[i]
		own := so
		own.Window = q.arg.Ref
		analysis := o.analysis
		analysis.sliceFlag = nil // as it was to be sliced while it was recorded does not matter
		run, recs, closeAll, err := load(ctx, []string{q.arg.Run}, analysis, own, say)
		if err != nil {
			return fmt.Errorf("run %s: %w", q.arg.Run, err)
		}
		defer closeAll()
		q.run, q.rec = run, recs[0]
	}
	if err := first(o.unknown(runs), o.labels(runs)); err != nil {
		return err
	}
	if err := o.write(ctx, std.out, runs); err != nil {
		return err
	}
	var all []*summary.Run
	for i := range runs {
		all = append(all, runs[i].run)
	}
	return o.analysis.verdict(all...)
}

// named reads the arguments, in the order of their names, of which each is there once.
func (o *queryOptions) named() (out []queried, err error) {
	for _, text := range o.args {
		a, err := o.window.arg(text)
		if err != nil {
			return nil, err
		}
		name := cmp.Or(a.Name, filepath.Base(runDir(filepath.Clean(a.Run))))
		if a.Own && a.Name == "" && len(o.args) > 1 {
			name += "@" + a.Ref.String()
		}
		if slices.ContainsFunc(out, func(q queried) bool { return q.name == name }) {
			return nil, usagef("two runs are called %s: give them names, as in base=%s", name, a.Run)
		}
		out = append(out, queried{arg: a, name: name})
	}
	slices.SortFunc(out, func(a, b queried) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

// options are those of the analysis.
func (o *queryOptions) options() summary.Options {
	so := o.analysis.options()
	names := slices.Clone(o.stats)
	for _, m := range o.metrics {
		if i := strings.LastIndexAny(m, "_ "); i > 0 {
			names = append(names, m[i+1:])
		}
	}
	quantiles := slices.Clone(so.Quantiles)
	for _, s := range names {
		if q, ok := query.ParsePercentile(s); ok {
			quantiles = append(quantiles, q)
		}
	}
	if slices.Sort(quantiles); len(quantiles) > 0 {
		so.Quantiles = slices.Compact(quantiles)
	}
	if o.byGiven && !slices.Contains(o.by, "series") {
		so.By = append([]string{}, slices.DeleteFunc(slices.Clone(o.by), func(s string) bool { return s == "" })...)
	}
	return so
}

// unknown refuses a name of which no run has anything.
func (o *queryOptions) unknown(runs []queried) error {
	var trees []*summary.Run
	engines := map[string]bool{}
	for i := range runs {
		trees = append(trees, runs[i].run)
		for _, e := range query.Engines(runs[i].run) {
			engines[e] = true
		}
	}
	for _, name := range o.metrics {
		if slices.ContainsFunc(trees, func(r *summary.Run) bool { return len(query.Unknown(r, []string{name})) == 0 }) {
			continue
		}
		text := fmt.Sprintf("no run has anything called %q", name)
		if near := query.Nearest(name, trees...); len(near) > 0 {
			text += "; did you mean " + strings.Join(near, ", ") + "?"
		}
		if len(engines) > 0 {
			text += " (engines seen: " + strings.Join(slices.Sorted(maps.Keys(engines)), ", ") + ")"
		}
		return &codeError{exitIncomplete, errors.New(text)}
	}
	return nil
}

// labels refuses a label of --by that nothing has.
func (o *queryOptions) labels(runs []queried) error {
	for _, name := range o.by {
		if name == "" || slices.Contains([]string{"series", summary.ByTarget, summary.ByEndpoint}, name) ||
			slices.ContainsFunc(runs, func(q queried) bool { return q.run.HasLabel(name) }) {
			continue
		}
		return usagef("--by %s: nothing in the runs has such a label", name)
	}
	return nil
}

// rows are those of all runs.
func (o *queryOptions) rows(ctx context.Context, runs []queried) iter.Seq[*query.Row] {
	spans := o.span
	if spans == nil {
		spans = []string{query.SpanWindow, query.SpanSlice}
	}
	return func(yield func(*query.Row) bool) {
		for i := range runs {
			for row := range query.Stats(runs[i].run, query.Options{Run: runs[i].name, Metrics: o.metrics, Stats: o.stats,
				Spans: spans}) {
				if ctx.Err() != nil || !yield(row) {
					return
				}
			}
		}
	}
}

// page is the part of the rows that is printed, and how many there are.
type page struct{ offset, limit, seen, printed int }

func (p *page) of(rows iter.Seq[*query.Row]) iter.Seq[*query.Row] {
	return func(yield func(*query.Row) bool) {
		for r := range rows {
			p.seen++
			if p.seen <= p.offset || p.limit > 0 && p.printed >= p.limit {
				continue
			}
			if p.printed++; !yield(r) {
				return
			}
		}
	}
}

// more reports whether rows follow those that were printed.
func (p *page) more() bool { return p.offset+p.printed < p.seen }

// write writes the table, which appears in a file whole or not at all.
func (o *queryOptions) write(ctx context.Context, stdout io.Writer, runs []queried) error {
	if o.out == "-" {
		w := bufio.NewWriter(stdout)
		return cmp.Or(o.writeTo(ctx, w, runs), w.Flush())
	}
	f, err := atomicfile.Create(filepath.Clean(o.out), atomicfile.DefaultPerm)
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := o.writeTo(ctx, f, runs); err != nil {
		return fmt.Errorf("write %s: %w", o.out, err)
	}
	return f.Commit()
}

func (o *queryOptions) writeTo(ctx context.Context, w io.Writer, runs []queried) (err error) {
	p := &page{offset: o.offset, limit: o.limit}
	rows := p.of(o.rows(ctx, runs))
	switch {
	case o.table == "samples":
		return o.samples(ctx, w, runs)
	case o.table == "requests":
		return o.requests(ctx, w, runs)
	case o.list && o.format == "json":
		err = texttab.WriteJSON(w, query.List(rows).Objects())
	case o.list:
		_, err = query.List(rows).WriteTo(w)
	case o.format != "text":
		all := export.Rows{Seq: rows, More: p.more, Raw: o.csvRaw}
		for i := range runs {
			all.Runs = append(all.Runs, runs[i].run)
		}
		err = export.WriteRows(ctx, w, o.format, all)
	default:
		if _, err = query.Table(rows).WriteTo(w); err == nil && p.more() {
			_, err = fmt.Fprintf(w, "%d of %d rows; --offset %d shows the next\n", p.printed, p.seen, p.offset+p.printed)
		}
	}
	return cmp.Or(err, context.Cause(ctx))
}

// samples writes what was recorded of a run.
func (o *queryOptions) samples(ctx context.Context, w io.Writer, runs []queried) error {
	if len(runs) != 1 {
		return usagef("--table samples is of one RUN")
	}
	eo := export.Options{}
	if o.metrics != nil {
		eo.Family = query.Families(runs[0].run, o.metrics)
	}
	return export.TidyParquet(ctx, w, runs[0].run, recordings([]*rundb.Run{runs[0].rec}), eo)
}

// requestRow is a request of a client. Times are nanoseconds since 1970, 0 where something did not happen; counts that
// are not known are -1.
type requestRow struct {
	Run        string `parquet:"run,dict"`
	ID         string `parquet:"id"`
	Phase      string `parquet:"phase,dict"`
	Status     string `parquet:"status,dict"`
	Error      string `parquet:"error,dict"`
	Model      string `parquet:"model,dict"`
	Endpoint   string `parquet:"endpoint,dict"`
	IssuedNS   int64  `parquet:"issued_ns"`
	FirstNS    int64  `parquet:"first_token_ns"`
	LastNS     int64  `parquet:"last_token_ns"`
	CompleteNS int64  `parquet:"complete_ns"`
	Input      int64  `parquet:"input_tokens"`
	Output     int64  `parquet:"output_tokens"`
	HTTPStatus int64  `parquet:"http_status"`
}

// requests writes what clients saw.
func (o *queryOptions) requests(ctx context.Context, w io.Writer, runs []queried) error {
	return parquetwriter.Rows(w, "requests", func(yield func(requestRow, error) bool) {
		for i := range runs {
			for r, err := range runs[i].rec.Requests(ctx) {
				if err != nil {
					yield(requestRow{}, err)
					return
				}
				if !yield(requestRow{runs[i].name, r.ID, r.Phase, r.Status, r.Error, r.Model, r.Endpoint, r.IssuedNS, r.FirstNS,
					r.LastNS, r.CompleteNS, int64(r.Input), int64(r.Output), int64(r.HTTPStatus)}, nil) {
					return
				}
			}
		}
	})
}

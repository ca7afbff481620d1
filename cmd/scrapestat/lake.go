package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/export/lake"
	"github.com/scrapestat/scrapestat/export/lake/sql"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
)

const lakeLong = `Keeps what the series of many runs gained as Parquet files, which DuckDB, ClickHouse and Spark
read, and writes the SQL that computes the statistics of export --estimator linear from them.
See docs/scale.md.
`

func newLakeCmd(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use: "lake COMMAND ...", Short: "Keep runs as Parquet for DuckDB, ClickHouse and Spark", Long: lakeLong,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newLakeAddCmd(std), newLakeLsCmd(std), newLakeVerifyCmd(std), newLakeSQLCmd(std))
	return cmd
}

// lakeAdd is the command line of lake add.
type lakeAdd struct {
	to, name string
	replace  bool
	analysis analysisFlags
	std      stdio
}

func newLakeAddCmd(std stdio) *cobra.Command {
	o := lakeAdd{std: std}
	cmd := &cobra.Command{
		Use: "add RUN... --to DIR [flags]", Short: "Add runs to a lake",
		Long: "Adds runs, each with its default window. A run that is there with the same content is left\n" +
			"alone, so add may be killed and repeated. Shards of one group are one run.\n",
		Example: "  scrapestat lake add run1 run2 --to lake\n" +
			"  scrapestat lake add run1 --to lake --name nightly-0142 --replace",
		Args: atLeast(1, "RUN, a run directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.to == "" {
				return usagef("missing --to DIR, the directory of the lake")
			}
			if strings.Contains(o.to, "://") {
				return usagef("--to %s: a directory; rclone copy or aws s3 sync take it further, runs/ last", o.to)
			}
			if err := first(o.analysis.memory.validate(), o.analysis.readCatalogs()); err != nil {
				return err
			}
			return o.run(cmd.Context(), args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.to, "to", "", "the `directory` of the lake")
	f.StringVar(&o.name, "name", "", "`name` of the run (default its directory's)")
	f.BoolVar(&o.replace, "replace", false, "replace a run of the name that has another content")
	f.StringArrayVar(&o.analysis.catalogs, "catalog", nil, "YAML `file` of families that the program does not know")
	o.analysis.stderr = cmd.ErrOrStderr
	o.analysis.runFlags.register(cmd)
	return cmd
}

// lakeRun is a run that is added.
type lakeRun struct {
	name string
	dirs []string
}

func (o *lakeAdd) run(ctx context.Context, args []string) error {
	groups, err := o.groups(args)
	if err != nil {
		return err
	}
	if o.name != "" && len(groups) > 1 {
		return usagef("--name is for one run: these are %d", len(groups))
	}
	names := map[string]string{}
	for i := range groups {
		g := &groups[i]
		g.name = cmp.Or(o.name, g.name)
		if err := lake.CheckName(g.name); err != nil {
			return usagef("%w", err)
		}
		if was, ok := names[g.name]; ok {
			return usagef("%s and %s are both called %s: add one with --name", was, g.dirs[0], g.name)
		}
		names[g.name] = g.dirs[0]
	}
	var all []*summary.Run
	for _, g := range groups {
		result, err := o.add(ctx, g.dirs, g.name)
		if err != nil {
			return err
		}
		all = append(all, result)
	}
	return o.analysis.verdict(all...)
}

// groups are the runs: each directory by itself, but for the shards of a group.
func (o *lakeAdd) groups(args []string) (out []lakeRun, err error) {
	at := map[string]int{}
	for _, dir := range args {
		runs, closeAll, err := openRuns([]string{dir}, o.analysis.memory)
		if err != nil {
			return nil, err
		}
		m := runs[0].Meta()
		closeAll()
		name := filepath.Base(runDir(filepath.Clean(dir)))
		if m.Shard != nil {
			if i, ok := at[m.Group]; ok {
				out[i].dirs = append(out[i].dirs, dir)
				continue
			}
			at[m.Group], name = len(out), m.Group
		}
		out = append(out, lakeRun{name, []string{dir}})
	}
	return out, nil
}

func (o *lakeAdd) add(ctx context.Context, dirs []string, name string) (*summary.Run, error) {
	say := newProgress(o.std.err, true)
	result, runs, closeAll, err := load(ctx, dirs, o.analysis, o.analysis.options(), say)
	if err != nil {
		return nil, err
	}
	defer closeAll()
	lo := lake.Options{Name: name, Replace: o.replace, Closed: true, Budget: int(min(o.analysis.memory.bytes/8, 256<<20))}
	var recs []lake.Recording
	for _, r := range runs {
		recs = append(recs, r)
		lo.Closed = lo.Closed && r.Meta().EndNS != 0
		lo.RunIDs = append(lo.RunIDs, r.Meta().ID)
		if s := r.Meta().Shard; s != nil {
			lo.Shards = fmt.Sprintf("%d of %d", len(runs), s.N)
		}
	}
	row, there, err := lake.Add(ctx, o.to, result, recs, lo)
	switch {
	case errors.Is(err, lake.ErrOther):
		return nil, &codeError{exitFailed, err}
	case err != nil:
		return nil, err
	case there:
		fmt.Fprintf(o.std.err, "%s is already there\n", name)
	default:
		fmt.Fprintf(o.std.err, "added %s to %s: %s rows in %s, %s\n", name, o.to, strconv.FormatInt(row.Rows, 10),
			texttab.Count(len(row.Files), "file"), texttab.Count(len(row.Targets), "target"))
	}
	return result, nil
}

func newLakeLsCmd(std stdio) *cobra.Command {
	return &cobra.Command{
		Use: "ls LAKE", Short: "List the runs of a lake", Args: exactly(1, "LAKE, a directory"),
		Example: "  scrapestat lake ls lake",
		RunE: func(_ *cobra.Command, args []string) error {
			names, err := lake.Names(args[0])
			if err != nil {
				return err
			}
			t := &texttab.Table{}
			t.Header("run", "started", "targets", "rows", "bytes", "content")
			t.Right(2, 3, 4)
			for _, name := range names {
				run, err := lake.ReadRun(args[0], name)
				if err != nil {
					return err
				}
				bytes := int64(0)
				for _, f := range run.Files {
					bytes += f.Bytes
				}
				note := run.Content
				if !run.Closed {
					note += " (not closed)"
				}
				t.Row(name, time.Unix(0, run.OriginNS).UTC().Format(time.RFC3339), strconv.Itoa(len(run.Targets)),
					strconv.FormatInt(run.Rows, 10), strconv.FormatInt(bytes, 10), note)
			}
			_, err = t.WriteTo(std.out)
			return err
		},
	}
}

func newLakeVerifyCmd(std stdio) *cobra.Command {
	prune := false
	cmd := &cobra.Command{
		Use: "verify LAKE", Short: "Read all files of a lake and compare them with what was written",
		Args: exactly(1, "LAKE, a directory"), Example: "  scrapestat lake verify lake --prune",
		RunE: func(_ *cobra.Command, args []string) error {
			var before time.Time
			if prune {
				before = time.Now().Add(-24 * time.Hour)
			}
			found, err := lake.Verify(args[0], before)
			if err != nil {
				return err
			}
			w := bufio.NewWriter(std.out)
			for _, text := range found.Bad {
				fmt.Fprintln(w, text)
			}
			for _, path := range found.Orphans {
				fmt.Fprintf(w, "%s is of no run\n", path)
			}
			fmt.Fprintf(w, "%s, %s, %s bytes; %d bad, %s (%d deleted)\n", texttab.Count(found.Runs, "run"),
				texttab.Count(found.Files, "file"), strconv.FormatInt(found.Bytes, 10), len(found.Bad),
				texttab.Count(len(found.Orphans), "orphan"), found.Pruned)
			if err := w.Flush(); err != nil {
				return err
			}
			if len(found.Bad) > 0 {
				return &codeError{exitBad, nil}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&prune, "prune", false, "delete files of no run that are older than a day")
	return cmd
}

// lakeSQL is the command line of lake sql.
type lakeSQL struct {
	q        sql.Query
	phase    string
	from, to time.Duration
	slice    time.Duration
}

func newLakeSQLCmd(std stdio) *cobra.Command {
	var o lakeSQL
	cmd := &cobra.Command{
		Use: "sql --dialect NAME --statistic NAME [flags]", Short: "Print the SQL of a statistic; nothing is executed",
		Long: "Prints one statement. It computes what export --estimator linear does. Not in SQL: the estimators\n" +
			"polynomial and refined, bounds of percentiles, means over time and derived quantities: export has\n" +
			"them of a run.\n",
		Example: "  scrapestat lake sql --dialect duckdb --statistic totals --lake lake | duckdb\n" +
			"  scrapestat lake sql --dialect clickhouse --statistic quantiles --lake /data/lake --by model_name",
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.q.Span = cmd.Flags().Changed("from") || cmd.Flags().Changed("to")
			if cmd.Flags().Changed("by") {
				o.q.By = append([]string{}, slices.DeleteFunc(o.q.By, func(s string) bool { return s == "" })...)
			} else {
				o.q.By = nil
			}
			text, err := o.statement()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(std.out, text+";")
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.q.Dialect, "dialect", "duckdb", "`name` of the dialect: "+strings.Join(sql.Dialects(), ", "))
	f.StringVar(&o.q.Statistic, "statistic", "totals", "`name` of the statistic: "+strings.Join(sql.Statistics(), ", "))
	f.StringVar(&o.q.Lake, "lake", "lake", "`path` of the lake, as the engine sees it")
	f.StringVar(&o.q.Run, "run", "", "runs whose whole name matches this regular `expression` (default all)")
	f.StringVar(&o.q.Metric, "metric", "", "one `family`, as the server names it without _total (default all)")
	f.StringVar(&o.phase, "phase", "", "`NAME` or NAME/N of a phase in place of the window of each run")
	f.DurationVar(&o.from, "from", 0, "begin of the window, since the start of each run")
	f.DurationVar(&o.to, "to", 0, "end of the window, since the start of each run (default that of its own window)")
	f.DurationVar(&o.slice, "slice-duration", 0, "timeslice width, of statistic slices")
	f.StringSliceVar(&o.q.By, "by", nil, "take series together that agree in these `labels`; target and endpoint are "+
		"among them, '' takes all of a family")
	f.Float64SliceVar(&o.q.Percentiles, "percentiles", nil, "percentiles, 0 to 100 (default AIPerf's nine)")
	return cmd
}

func (o *lakeSQL) statement() (string, error) {
	for _, p := range o.q.Percentiles {
		if !(p >= 0 && p <= 100) {
			return "", usagef("--percentiles %v: want numbers from 0 to 100", p)
		}
	}
	if o.q.Span && (o.phase != "" || o.from < 0 || o.to < 0 || o.to != 0 && o.to <= o.from) {
		return "", usagef("--from and --to: want a stretch of time that ends after it begins, or --phase")
	}
	o.q.FromNS, o.q.ToNS, o.q.SliceNS = int64(o.from), int64(o.to), int64(o.slice)
	name, number, numbered := strings.Cut(o.phase, "/")
	if o.q.Phase = name; numbered {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 {
			return "", usagef("--phase %s: want NAME or NAME/N", o.phase)
		}
		o.q.Instance = n
	}
	if err := o.knowsPhase(); err != nil {
		return "", err
	}
	text, err := sql.Statement(o.q)
	if err != nil {
		return "", usagef("%w", err)
	}
	return text, nil
}

// knowsPhase refuses a phase that no run of a lake that can be read here has, or one that occurs several times.
func (o *lakeSQL) knowsPhase() error {
	names, err := lake.Names(o.q.Lake)
	if o.phase == "" || err != nil {
		return nil
	}
	var known []string
	found := false
	for _, name := range names {
		run, err := lake.ReadRun(o.q.Lake, name)
		if err != nil {
			return err
		}
		times := 0
		for i := range run.Phases {
			p := &run.Phases[i]
			if known = append(known, p.Name); p.Name == o.q.Phase {
				times++
				found = found || o.q.Instance == 0 || int(p.Instance) == o.q.Instance
			}
		}
		if times > 1 && o.q.Instance == 0 {
			return usagef("--phase %s: run %s has %d of that name: write %[1]s/N", o.phase, name, times)
		}
	}
	if slices.Sort(known); !found {
		return usagef("--phase %s: no run of %s has it (there are: %s)", o.phase, o.q.Lake,
			strings.Join(slices.Compact(known), ", "))
	}
	return nil
}

var _ lake.Recording = (*rundb.Run)(nil)

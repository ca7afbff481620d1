package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/history"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/report"
	"github.com/scrapestat/scrapestat/report/html"
)

const historyLong = `Keeps the judged values and the settings of many runs in one file, history.db, and finds
the run and the commit at which a quantity changed. check RUN --history FILE holds a new run
against the last level. See docs/history.md.
`

func newHistoryCmd(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history COMMAND ...",
		Short: "Keep what matters of many runs, and find where it changed",
		Long:  historyLong,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newHistoryAddCmd(std), newHistoryListCmd(std), newHistoryShowCmd(std), newHistoryCheckCmd(std),
		newHistoryMarkCmd(std, history.Accepted), newHistoryMarkCmd(std, history.Dropped), newHistoryPruneCmd(std),
		newHistoryExportCmd())
	return cmd
}

// historyFlags are those of all commands of history.
type historyFlags struct {
	file, branch, order string
	tags                map[string]string
}

func (o *historyFlags) registerFile(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.file, "file", "f", history.FileName, "history `file`")
}

func (o *historyFlags) register(cmd *cobra.Command) {
	o.registerFile(cmd)
	f := cmd.Flags()
	f.StringVar(&o.branch, "branch", "", "series are of the runs of this `branch` (default the one of most runs)")
	f.StringVar(&o.order, "order", "time", "`order` of runs: time, or commit, that of git in the working directory")
	f.StringToStringVar(&o.tags, "tag", nil, "series are of the runs that have this tag `K=V` (repeatable)")
}

// registerHistory adds the flags of commands that look into a history.
func registerHistory(cmd *cobra.Command, path *string, keys *[]string, usage string) {
	cmd.Flags().StringVar(path, "history", "", usage)
	cmd.Flags().StringArrayVar(keys, "key", nil, "`tag` that tells configurations of --history apart (repeatable)")
}

// query is what the flags ask for.
func (o *historyFlags) query(ctx context.Context) (q history.Query, err error) {
	q = history.Query{Branch: o.branch, Tags: o.tags}
	if err := oneOf("order", "order", o.order, "time", "commit"); err != nil {
		return q, err
	}
	if o.order == "commit" {
		list, err := git(ctx, "rev-list", "--first-parent", "--reverse", orHead(o.branch), "--")
		if err != nil {
			return q, fmt.Errorf("--order commit: %w", err)
		}
		q.Commits = strings.Fields(list)
	}
	return q, nil
}

func orHead(branch string) string {
	if branch == "" || strings.HasPrefix(branch, "-") {
		return "HEAD"
	}
	return branch
}

// view reads the file as the flags say.
func (o *historyFlags) view(ctx context.Context, quantities []string) (v *history.View, err error) {
	q, err := o.query(ctx)
	if err != nil {
		return nil, err
	}
	q.Quantities = quantities
	err = withHistory(ctx, o.file, false, func(f *history.File) (err error) {
		v, err = f.View(ctx, q)
		return err
	})
	return v, err
}

// withHistory does something with a history that is there. Changing needs one too: what is not there is not made.
func withHistory(ctx context.Context, path string, write bool, do func(*history.File) error) error {
	if _, err := os.Stat(path); err != nil {
		write = false // Open then says what to do
	}
	f, err := history.Open(ctx, path, write)
	if err != nil {
		return err
	}
	return errors.Join(do(f), f.Close())
}

// parseAge reads a time span: 90d or what Go has.
func parseAge(flag, text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n float64
		n, err = strconv.ParseFloat(days, 64)
		d = time.Duration(n * float64(24*time.Hour))
	}
	if err != nil || d <= 0 || d > 100*365*24*time.Hour {
		return 0, usagef("--%s %s: want a time span such as 90d or 12h", flag, text)
	}
	return d, nil
}

const historyListExample = `  scrapestat history list
  scrapestat history list --branch main --tag gpu=h100
  scrapestat history list --why 9f3c21a7be04,17d0aa3be9c4`

func newHistoryListCmd(std stdio) *cobra.Command {
	var o historyFlags
	var why []string
	cmd := &cobra.Command{
		Use: "list [flags]", Short: "List the runs of a history", Example: historyListExample, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, err := o.query(cmd.Context())
			if err != nil {
				return err
			}
			return withHistory(cmd.Context(), o.file, false, func(f *history.File) error {
				if why != nil {
					return explainFingerprints(cmd.Context(), f, why, std.out)
				}
				runs, _, err := f.Runs(cmd.Context(), q)
				if err != nil {
					return err
				}
				return listRuns(std.out, runs, o)
			})
		},
	}
	o.register(cmd)
	cmd.Flags().StringSliceVar(&why, "why", nil, "tell in what two configurations differ, by their `fingerprints`, A,B")
	return cmd
}

// explainFingerprints prints in what two configurations differ.
func explainFingerprints(ctx context.Context, f *history.File, why []string, w io.Writer) error {
	configs, err := f.Configs(ctx)
	if err != nil {
		return err
	}
	if len(why) != 2 || configs[why[0]] == nil || configs[why[1]] == nil {
		return usagef("--why %s: want two fingerprints of history list", strings.Join(why, ","))
	}
	t := &texttab.Table{}
	t.Header("SETTING", why[0], why[1])
	for _, d := range history.Differ(configs[why[0]], configs[why[1]]) {
		t.Row(d.Name, d.From, d.To)
	}
	_, err = t.WriteTo(w)
	return err
}

// listRuns prints runs of a branch and with tags, in order.
func listRuns(w io.Writer, runs []*history.Run, o historyFlags) error {
	t := &texttab.Table{}
	t.Header("RUN", "TIME", "CONFIGURATION", "BRANCH", "COMMIT", "VERSION", "NOTE", "PATH")
	t.Right(0)
	for _, r := range runs {
		if o.branch != "" && r.Branch != o.branch || !r.Tagged(o.tags) {
			continue
		}
		number, note := "-", r.Note
		if r.Number > 0 {
			number = strconv.Itoa(r.Number)
		}
		if r.State != history.Normal {
			note = map[history.State]string{history.Dropped: "dropped: ", history.Accepted: "accepted: "}[r.State] + note
		}
		t.Row(number, time.Unix(0, r.AtNS).UTC().Format(time.DateTime), r.Fingerprint, r.Branch, report.ShortCommit(r.Commit),
			r.Version, note, r.Path)
	}
	_, err := t.WriteTo(w)
	return err
}

const historyShowExample = `  scrapestat history show
  scrapestat history show itl_mean ttft_p99 --since 30d
  scrapestat history show --format markdown >> $GITHUB_STEP_SUMMARY`

var historyFormats = []string{"text", "markdown", "json", "csv", "html"}

func newHistoryShowCmd(std stdio) *cobra.Command {
	var o historyFlags
	var since, format, out string
	cmd := &cobra.Command{
		Use: "show [QUANTITY...] [flags]", Short: "Show levels, trends and changes of a history", Example: historyShowExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			age, err := parseAge("since", since)
			if err := first(err, oneOf("format", "format", format, historyFormats...)); err != nil {
				return err
			}
			if len(args) == 0 {
				args = nil
			}
			v, err := o.view(cmd.Context(), args)
			if err != nil {
				return err
			}
			if err := hasQuantities(v, args); err != nil {
				return err
			}
			var b bytes.Buffer
			ho := report.HistoryOptions{SinceNS: v.Newest() - int64(age)}
			switch format {
			case "markdown":
				err = report.HistoryMarkdown(&b, v, ho)
			case "json":
				err = v.JSON(&b)
			case "csv":
				err = v.CSV(&b)
			case "html":
				err = html.WriteHistory(&b, v, html.HistoryOptions{SinceNS: ho.SinceNS, Link: reportLinks(out)})
			default:
				err = report.HistoryText(&b, v, ho)
			}
			if err != nil {
				return err
			}
			return writeOutput(out, "history", b.Bytes(), std.out)
		},
	}
	o.register(cmd)
	f := cmd.Flags()
	f.StringVar(&since, "since", "90d", "show changes of this `time` before the last run")
	f.StringVar(&format, "format", "text", "`format`: "+strings.Join(historyFormats, ", "))
	f.StringVarP(&out, "out", "o", "-", "write to this `file`, - is stdout")
	return cmd
}

// reportLinks finds the reports that lie beside runs, as seen from the file of a page.
func reportLinks(page string) func(*history.Run) string {
	known := map[string]string{}
	from := filepath.Dir(absolute(page))
	return func(r *history.Run) string {
		link, ok := known[r.Path]
		if ok || r.Path == "" {
			return link
		}
		path := filepath.Join(r.Path, "report.html")
		if _, err := os.Stat(path); err == nil {
			if rel, err := filepath.Rel(from, path); err == nil {
				link = "./" + filepath.ToSlash(rel)
			}
		}
		known[r.Path] = link
		return link
	}
}

// hasQuantities ends with 4 where a quantity was asked for that no run has.
func hasQuantities(v *history.View, names []string) error {
	for _, name := range names {
		if !slices.ContainsFunc(v.Series, func(s *history.Series) bool { return s.Quantity == name }) {
			return &codeError{exitIncomplete, fmt.Errorf("no run has %s", name)}
		}
	}
	return nil
}

const historyCheckLong = `Ends with 3 when a quantity of the headline changed for the worse at a run of the last days,
counted from the last run. A change is confirmed from its third run on. --fail-on worse is a step
beyond the margin, minor one below it, drift a slow change or what crept. With 4 when no
configuration has six runs to judge by.
`

const historyCheckExample = `  scrapestat history check
  scrapestat history check --since 3d --fail-on worse,drift`

func newHistoryCheckCmd(std stdio) *cobra.Command {
	var o historyFlags
	var since string
	var words []string
	cmd := &cobra.Command{
		Use: "check [flags]", Short: "Fail when something got worse lately", Long: historyCheckLong,
		Example: historyCheckExample, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			age, err := parseAge("since", since)
			for _, w := range words {
				err = first(err, oneOf("fail-on", "word", w, "worse", "minor", "drift"))
			}
			if err != nil {
				return err
			}
			v, err := o.view(cmd.Context(), nil)
			if err != nil {
				return err
			}
			return checkHistory(v, v.Newest()-int64(age), words, std.out)
		},
	}
	o.register(cmd)
	cmd.Flags().StringVar(&since, "since", "7d", "look at changes of this `time` before the last run")
	cmd.Flags().StringSliceVar(&words, "fail-on", []string{"worse"}, "`what` is bad: worse, minor, drift")
	return cmd
}

// checkHistory prints what is bad, and ends with 3 for it or with 4 for want of runs.
func checkHistory(v *history.View, since int64, words []string, w io.Writer) error {
	bad := 0
	for i := range v.Events {
		e := &v.Events[i]
		if e.When() < since || !slices.ContainsFunc(words, e.Is) {
			continue
		}
		bad++
		for _, line := range report.EventLines(e) {
			if _, err := fmt.Fprintln(w, texttab.Escape(line)); err != nil {
				return err
			}
		}
	}
	switch n := v.Judged(); {
	case bad > 0:
		return &codeError{exitBad, fmt.Errorf("history: %s (--fail-on %s)", texttab.Count(bad, "event"),
			strings.Join(words, ","))}
	case n < history.FewestRuns:
		return &codeError{exitIncomplete, fmt.Errorf("history: %s, %d are needed",
			texttab.Count(n, "comparable run"), history.FewestRuns)}
	}
	_, err := fmt.Fprintf(w, "%s: nothing bad\n", texttab.Escape(report.HistoryTitle(v)))
	return err
}

// newHistoryMarkCmd makes accept or drop.
func newHistoryMarkCmd(std stdio, to history.State) *cobra.Command {
	var o historyFlags
	var note string
	cmd := &cobra.Command{Use: "accept RUN [flags]", Short: "Make the level that begins with a run the base of checks",
		Example: "  scrapestat history accept runs/2026-11-03 --note 'batch size doubled'"}
	if to == history.Dropped {
		cmd = &cobra.Command{Use: "drop RUN [flags]", Short: "Leave a run out of all series; it stays in the file",
			Example: "  scrapestat history drop runs/2026-11-03 --note 'GPU throttled'"}
	}
	cmd.Args = exactly(1, "RUN, a run directory or id of the history")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if note == "" {
			return usagef("give --note TEXT: why")
		}
		return withHistory(cmd.Context(), o.file, true, func(f *history.File) error {
			for _, name := range []string{args[0], absolute(args[0])} {
				ok, err := f.Mark(cmd.Context(), name, to, note)
				if ok && err == nil {
					_, err = fmt.Fprintf(std.out, "%s %s\n", texttab.Escape(args[0]), map[history.State]string{
						history.Accepted: "begins the level that runs are held against",
						history.Dropped:  "is in no series; it stays in the file"}[to])
				}
				if ok || err != nil {
					return err
				}
			}
			return fmt.Errorf("%s has no run %s: history list shows them", o.file, args[0])
		})
	}
	o.registerFile(cmd)
	cmd.Flags().StringVar(&note, "note", "", "why, for who reads it later: `text`")
	return cmd
}

// absolute is the path of a run as the file has it.
func absolute(path string) string {
	abs, err := filepath.Abs(runDir(path))
	if err != nil {
		return path
	}
	return abs
}

package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/history"
	"github.com/scrapestat/scrapestat/internal/atomicfile"
	"github.com/scrapestat/scrapestat/internal/parquetwriter"
	"github.com/scrapestat/scrapestat/internal/texttab"
)

func newHistoryPruneCmd(std stdio) *cobra.Command {
	var o historyFlags
	var families string
	var keep int
	cmd := &cobra.Command{
		Use: "prune [flags]", Short: "Delete old values from a history", Args: cobra.NoArgs,
		Example: "  scrapestat history prune --keep-families 90d --keep 5000",
		RunE: func(cmd *cobra.Command, _ []string) error {
			before := int64(math.MinInt64)
			if families != "" {
				age, err := parseAge("keep-families", families)
				if err != nil {
					return err
				}
				before = time.Now().Add(-age).UnixNano()
			}
			if families == "" && keep == 0 || keep < 0 {
				return usagef("nothing to delete: give --keep-families AGE, --keep RUNS (1 and more), or both")
			}
			return withHistory(cmd.Context(), o.file, true, func(f *history.File) error {
				values, runs, err := f.Prune(cmd.Context(), before, keep)
				if err == nil {
					_, err = fmt.Fprintf(std.out, "deleted %s and %s of families\n", texttab.Count(runs, "run"),
						texttab.Count(values, "value"))
				}
				return err
			})
		},
	}
	o.registerFile(cmd)
	cmd.Flags().StringVar(&families, "keep-families", "", "keep values of families of runs of this `age`, such as 90d")
	cmd.Flags().IntVar(&keep, "keep", 0, "keep the last `runs` (default all)")
	return cmd
}

func newHistoryExportCmd() *cobra.Command {
	var o historyFlags
	var out string
	cmd := &cobra.Command{
		Use: "export [flags]", Short: "Write a history as one Parquet file, a row for each value", Args: cobra.NoArgs,
		Example: "  scrapestat history export -o history.parquet",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withHistory(cmd.Context(), o.file, false, func(f *history.File) error {
				w, err := atomicfile.Create(filepath.Clean(out), 0)
				if err != nil {
					return err
				}
				defer w.Abort()
				if err := parquetwriter.Rows(w, "history", f.Rows(cmd.Context())); err != nil {
					return err
				}
				return w.Commit()
			})
		},
	}
	o.registerFile(cmd)
	cmd.Flags().StringVarP(&out, "out", "o", "history.parquet", "`file` to write")
	return cmd
}

// gitTags adds the commit and the branch of the working directory to the tags of a run, where they are not given.
func gitTags(ctx context.Context, tags map[string]string) (map[string]string, error) {
	commit, err := git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return nil, usagef("--tag-git: %w", err)
	}
	branch, err := git(ctx, "rev-parse", "--abbrev-ref", "HEAD")
	if err != nil {
		return nil, usagef("--tag-git: %w", err)
	}
	out := map[string]string{"git.commit": commit}
	if branch != "HEAD" { // which is on none
		out["git.branch"] = branch
	}
	for k, v := range tags {
		out[k] = cmp.Or(v, out[k])
	}
	return out, nil
}

// commitTag is the value of a tag git.commit, which looks random and is no secret.
var commitTag = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

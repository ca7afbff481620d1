package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/timeline"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source/tachometer"
)

func newImportTachometerCmd(std stdio) *cobra.Command {
	var o importOptions
	var anchor string
	cmd := &cobra.Command{
		Use:   "tachometer FILE|FOLDER",
		Short: "Import Parquet files of srt-slurm's Tachometer",
		Long: `Imports the Parquet files of srt-slurm's Tachometer: one, or a FOLDER with
out-N.parquet and incomplete-N.parquet. They count seconds from a start that
--anchor names. Their values have 32 bits: integers above 16,777,216 are rounded,
which a warning tells. Types are those of the catalog, else suffixes decide.`,
		Example: "  scrapestat import tachometer metrics/ --anchor 2026-11-21T10:00:00Z -o run1",
		Args:    exactly(1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.kind, o.source, o.flags = "tachometer", args[0], givenFlags(cmd)
			if err := o.validate(); err != nil {
				return err
			}
			known, err := catalog.New()
			if err != nil {
				return err
			}
			to := tachometer.Options{Step: o.step, Limits: timeline.Limits{Memory: o.memory.bytes}, Type: typeIn(known)}
			to.Keep, to.Drop = o.filters()
			if anchor != "" {
				when, err := parseInstant(anchor, time.Now())
				if err != nil {
					return usagef("--anchor: %w", err)
				}
				to.AnchorNS = when.UnixNano()
			}
			files, closeFiles, err := openTachometer(args[0])
			if err != nil {
				return err
			}
			defer closeFiles()
			r, err := tachometer.Open(files, to)
			if err != nil {
				return usagef("import tachometer: %w", err)
			}
			return runImport(cmd.Context(), o, std, func(ctx context.Context, s *importSink) (imported, error) {
				return importTachometer(ctx, r, anchor == "", s)
			})
		},
	}
	o.register(cmd)
	cmd.Flags().StringVar(&anchor, "anchor", "", "`time` at which the recording counts 0 s (default 1970-01-01)")
	return cmd
}

// typeIn returns the types of families as a catalog has them.
func typeIn(c *catalog.Catalog) func(name string) metric.Type {
	return func(name string) metric.Type {
		f, ok := c.Family(name)
		if !ok {
			f, ok = c.Family(strings.TrimSuffix(name, "_total"))
		}
		if !ok {
			return metric.Unknown
		}
		return f.Type
	}
}

var tachometerFile = regexp.MustCompile(`^(out|incomplete)-(\d{1,9})\.parquet$`)

// openTachometer opens a file, or those of a folder in the order of their numbers; of a number that is there twice the
// complete one.
func openTachometer(path string) (files []tachometer.File, closeAll func(), err error) {
	var opened []*os.File
	closeAll = func() {
		for _, f := range opened {
			f.Close() // read only: there is nothing to lose
		}
	}
	paths, err := tachometerPaths(path)
	for _, p := range paths {
		f, err := os.Open(p)
		if err != nil {
			closeAll()
			return nil, nil, fmt.Errorf("import: %w", err)
		}
		opened = append(opened, f)
		info, err := f.Stat()
		if err != nil {
			closeAll()
			return nil, nil, fmt.Errorf("import: %w", err)
		}
		files = append(files, tachometer.File{Name: filepath.Base(p), ReaderAt: f, Size: info.Size()})
	}
	return files, closeAll, err
}

func tachometerPaths(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	byNumber := map[int]string{}
	for _, e := range entries {
		m := tachometerFile.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		n, _ := strconv.Atoi(m[2]) // of nine digits at most
		if byNumber[n] == "" || m[1] == "out" {
			byNumber[n] = filepath.Join(path, e.Name())
		}
	}
	var paths []string
	for _, n := range slices.Sorted(maps.Keys(byNumber)) {
		paths = append(paths, byNumber[n])
	}
	if len(paths) == 0 {
		return nil, usagef("folder %s has no out-N.parquet or incomplete-N.parquet (Arrow files are compacted first)", path)
	}
	return paths, nil
}

func importTachometer(ctx context.Context, r *tachometer.Reader, noClock bool, s *importSink) (got imported,
	err error) {
	st, err := r.Import(ctx, s)
	got.refused(st.Refused)
	got.addTimeline(st.Stats)
	if noClock {
		got.notes = append(got.notes, metric.Warning{Code: "no_clock", Text: "the times are seconds since the recording " +
			"began, shown as since 1970: --anchor says when that was"})
	}
	names := slices.SortedFunc(maps.Keys(st.Steps), func(a, b string) int {
		return cmp.Or(cmp.Compare(st.Steps[b], st.Steps[a]), cmp.Compare(a, b))
	})
	var steps []string
	for _, name := range names[:min(len(names), 5)] {
		steps = append(steps, fmt.Sprintf("%s in steps of up to %g", timeline.Clean(name, 100), st.Steps[name]))
	}
	got.note(int64(len(names)), "float32_source", "%d families have values above 16,777,216, which the source rounded to "+
		"32 bits: %s", strings.Join(steps, ", "))
	return got, err
}

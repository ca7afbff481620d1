package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/timeline"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source/aiperf"
	"github.com/scrapestat/scrapestat/source/openmetrics"
)

// openInput opens a file, or stdin for "-", decompressing it when it is gzip.
func openInput(path string, std stdio) (r io.Reader, closeInput func(), err error) {
	raw, closeInput := std.in, func() {}
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, nil, fmt.Errorf("read input: %w", err)
		}
		raw, closeInput = f, func() { f.Close() } // read only: there is nothing to lose
	}
	if raw == nil {
		return nil, nil, usagef("import -: there is no stdin")
	}
	in := bufio.NewReader(raw)
	if head, _ := in.Peek(2); len(head) < 2 || head[0] != 0x1f || head[1] != 0x8b {
		return in, closeInput, nil
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		closeInput()
		return nil, nil, fmt.Errorf("import %s: %w", path, err)
	}
	return z, closeInput, nil
}

// until returns in as a reader that ends with ctx, whether in has nothing to say or no
// end. Only the end of the process ends a read of stdin, so nothing waits for that.
func until(ctx context.Context, in io.Reader) io.Reader {
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, in)
		w.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { w.CloseWithError(context.Cause(ctx)) })
	return r
}

// fileTarget is the address of a target that a file does not name.
func fileTarget(path string) string {
	if path == "-" {
		return "file:stdin"
	}
	return "file:" + filepath.Base(path)
}

// labelFlags choose what identifies a target.
type labelFlags struct {
	target     []string
	maxSamples int
	maxSeries  int
}

func (l *labelFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&l.target, "target-labels", []string{"job", "instance"},
		"`labels` that identify a target; they leave the labels of its series")
	f.IntVar(&l.maxSamples, "max-samples", 50_000_000, "most samples held in memory at a time, 16 bytes each")
	f.IntVar(&l.maxSeries, "max-series", 1_000_000, "most series of a target; each bucket counts")
}

func (l *labelFlags) validate() error {
	if l.maxSamples < 1 || l.maxSeries < 1 {
		return usagef("--max-samples %d, --max-series %d: a limit must be positive", l.maxSamples, l.maxSeries)
	}
	return nil
}

// addTimeline takes over what a timeline brought, and what of it is doubtful.
func (got *imported) addTimeline(st timeline.Stats) {
	got.targets, got.polls, got.failed, got.stored = st.Targets, st.Polls, st.Failed, st.Stored
	got.firstNS, got.lastNS = st.FirstNS, st.LastNS
	got.lost += st.Dropped
	got.note(int64(st.Guessed), "types_guessed",
		"%d metric names have no declared type; the suffixes of their names or the packs decided, else they are unknown")
	got.note(st.Dropped, "samples_dropped", samplesDropped)
	got.note(st.OutOfOrder, "out_of_order", "%d samples came after a later one of their series and were sorted in")
	got.note(st.Repeated, "samples_repeated", "%d samples were given twice with the same value and count once")
}

// knownType is what a pack has as the type of a name.
func knownType(name string) (metric.Type, bool) {
	f, ok := catalog.Embedded().Family(name)
	if !ok {
		return metric.Unknown, false
	}
	return f.Type, true
}

const samplesDropped = "%d samples could not be stored; the targets say why"

func newImportOpenMetricsCmd(std stdio) *cobra.Command {
	var o importOptions
	var l labelFlags
	var at string
	cmd := &cobra.Command{
		Use:   "openmetrics FILE",
		Short: "Import OpenMetrics or Prometheus text with timestamps",
		Long: `Imports OpenMetrics or Prometheus text whose samples have timestamps, such as
promtool tsdb dump and dump-openmetrics write. FILE may be gzip; - is stdin.
Samples that share a time are one scrape of their target.`,
		Example: "  scrapestat import openmetrics dump.om.gz -o run1\n  promtool tsdb dump-openmetrics data | " +
			"scrapestat import openmetrics - -o run2",
		Args: exactly(1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.kind, o.source, o.flags = "openmetrics", args[0], givenFlags(cmd)
			if err := errors.Join(o.validate(), l.validate()); err != nil {
				return err
			}
			oo := openmetrics.Options{Address: fileTarget(args[0]), TypeOf: knownType, TargetLabels: l.target, Step: o.step,
				Limits: timeline.Limits{Samples: l.maxSamples, Series: l.maxSeries, Memory: o.memory.bytes}}
			oo.Keep, oo.Drop = o.filters()
			if at != "" {
				when, err := parseInstant(at, time.Now())
				if err != nil {
					return usagef("--at: %w", err)
				}
				oo.AtNS = when.UnixNano()
			}
			r, closeInput, err := openInput(args[0], std)
			if err != nil {
				return err
			}
			defer closeInput()
			return runImport(cmd.Context(), o, std, func(ctx context.Context, s *importSink) (got imported, err error) {
				oo.Progress = func(lines, held int64) { s.progress("%d lines read, %d samples held", lines, held) }
				st, err := openmetrics.Import(ctx, until(ctx, r), oo, s)
				got.refused(st.Refused)
				got.addTimeline(st.Stats)
				return got, err
			})
		},
	}
	o.register(cmd)
	l.register(cmd)
	cmd.Flags().StringVar(&at, "at", "", "`time` of samples that have no timestamp (default: they are refused)")
	return cmd
}

func newImportAIPerfCmd(std stdio) *cobra.Command {
	var o importOptions
	var types, counters string
	cmd := &cobra.Command{
		Use:   "aiperf-jsonl FILE",
		Short: "Import AIPerf's JSONL file of server metrics, or ours",
		Long: `Imports AIPerf's server_metrics_export.jsonl, or ours. FILE may be gzip; - is stdin.
The file has no types: they are those of the JSON export of the same run, FILE with
.json for .jsonl unless --types names another. The phases are those that the lines
are tagged with, else those of the JSON export. Families whose type nothing says are
unknown and get the statistics of a gauge.`,
		Example: "  scrapestat import aiperf-jsonl artifacts/server_metrics_export.jsonl -o run1\n  zcat old.jsonl.gz | " +
			"scrapestat import aiperf-jsonl - --counters 'tokens|requests' -o run2",
		Args: exactly(1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.kind, o.source, o.flags = "aiperf-jsonl", args[0], givenFlags(cmd)
			if err := o.validate(); err != nil {
				return err
			}
			ao := aiperf.Options{Step: o.step, Limits: aiperf.Limits{Memory: o.memory.bytes}}
			ao.Keep, ao.Drop = o.filters()
			if counters != "" {
				var err error
				if ao.Counters, err = regexp.Compile(counters); err != nil {
					return usagef("--counters: %w", err)
				}
			}
			var err error
			if ao.Types, err = readTypes(types, args[0]); err != nil {
				return err
			}
			r, closeInput, err := openInput(args[0], std)
			if err != nil {
				return err
			}
			defer closeInput()
			return runImport(cmd.Context(), o, std, func(ctx context.Context, s *importSink) (imported, error) {
				return importAIPerf(ctx, r, ao, s)
			})
		},
	}
	o.register(cmd)
	cmd.Flags().StringVar(&types, "types", "",
		"JSON export of the same run, for types and phases (`file`; default FILE with .json for .jsonl, if there)")
	cmd.Flags().StringVar(&counters, "counters", "",
		"families that are counters where no type is known: those whose name matches this `regexp`")
	return cmd
}

func importAIPerf(ctx context.Context, r io.Reader, o aiperf.Options, s *importSink) (imported, error) {
	o.Progress = func(polls, samples int64) { s.progress("%d scrapes, %d samples", polls, samples) }
	st, err := aiperf.Import(ctx, until(ctx, r), o, s)
	got := imported{targets: st.Targets, polls: st.Polls, stored: st.Stored, lost: st.Dropped, firstNS: st.FirstNS,
		lastNS: st.LastNS, marks: st.Marks}
	if len(got.marks) == 0 {
		got.marks = o.Types.Marks
	}
	got.refused(st.Refused)
	got.note(int64(st.Untyped), "types_unknown", "the type of %d families is not known, so they have the statistics of a "+
		"gauge; name the JSON export with --types, or --counters")
	got.note(st.Dropped, "samples_dropped", samplesDropped)
	return got, err
}

// readTypes reads the JSON export that belongs to a JSONL file. Without a flag it may be missing.
func readTypes(flag, jsonl string) (aiperf.Types, error) {
	path := flag
	if path == "" {
		base, ok := strings.CutSuffix(strings.TrimSuffix(jsonl, ".gz"), ".jsonl")
		if !ok {
			return aiperf.Types{}, nil
		}
		path = base + ".json"
	}
	f, err := os.Open(path)
	if flag == "" && errors.Is(err, fs.ErrNotExist) {
		return aiperf.Types{}, nil
	}
	if err != nil {
		return aiperf.Types{}, usagef("--types: %w", err)
	}
	defer f.Close()
	t, err := aiperf.ReadTypes(f)
	if err != nil {
		return aiperf.Types{}, usagef("--types %s: %w", path, err)
	}
	return t, nil
}

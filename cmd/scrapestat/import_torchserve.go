package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source/torchserve"
)

func newImportTorchServeCmd(std stdio) *cobra.Command {
	var o importOptions
	var t torchserve.Flags
	var maxSeries int
	cmd := &cobra.Command{
		Use:   "torchserve-log PATH...",
		Short: "Import the metric logs of TorchServe",
		Long: `Imports the metric logs of TorchServe: files, folders that hold ts_metrics.log and
model_metrics.log, or patterns. A name that ends in .gz is unpacked; - is stdin.
Each instant in which something was logged is one scrape. Every line keeps its
own value and request ids, so distributions are exact.`,
		Example: "  scrapestat import torchserve-log logs/ -o run1\n  docker logs ts | scrapestat import torchserve-log " +
			"- -o run2",
		Args: atLeast(1, "PATH, for example: scrapestat import torchserve-log logs/"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.kind, o.source, o.flags = "torchserve-log", "torchserve-log:"+args[0], givenFlags(cmd)
			if err := o.validate(); err != nil {
				return err
			}
			if err := t.Check(); err != nil {
				return usagef("%w", err)
			}
			to := t.Options()
			to.MaxSeries, to.Step, to.Keep = maxSeries, o.step, keeper(o.filters())
			return runImport(cmd.Context(), o, std, func(ctx context.Context, s *importSink) (imported, error) {
				return importTorchServe(ctx, args, to, std, s)
			})
		},
	}
	o.register(cmd)
	registerOpener(cmd, &t, false)
	cmd.Flags().IntVar(&maxSeries, "max-series", 100_000, "most series of a target")
	return cmd
}

func importTorchServe(ctx context.Context, paths []string, o torchserve.Options, std stdio, s *importSink) (imported,
	error) {
	got := imported{targets: 1}
	if slices.Contains(paths, "-") && std.in != nil {
		std.in = until(ctx, std.in)
	}
	read, err := torchserve.Import(ctx, paths, std.in, o, func(p *metric.Snapshot) error {
		if s.db == nil {
			if err := s.Begin(p.AtNS()); err != nil {
				return err
			}
			if _, err := s.AddTarget(metric.Target{URL: s.o.source, Source: "torchserve-log"}); err != nil {
				return err
			}
			got.firstNS = p.AtNS()
		}
		got.polls++
		got.lastNS = p.AtNS()
		s.progress("%d scrapes", got.polls)
		return s.Record(p)
	})
	if read == nil {
		return got, err
	}
	got.stored, got.lost = int64(read.OK), int64(read.Bad)
	// The first poll shows the sums as 0: it is the reference, not part of the run.
	got.startNS, got.endNS = read.StartNS, read.EndNS
	got.note(int64(read.Double), "double_feed", "%d lines stand in two of the files and were counted once "+
		"(--torchserve-keep-duplicates counts them again)")
	got.note(int64(read.Bad), "bad_lines", "%d lines could not be read, the first of them: %s",
		strings.Join(read.FirstBad, "; "))
	return got, err
}

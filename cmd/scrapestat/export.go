package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/summary"
)

const exportLong = `Writes the exports of a recorded run again, with any window, slices or estimator.
Works on a run whose collector was killed, and on one that is still recorded.
Several RUNs recorded by several collectors of one benchmark merge into one result.`

const exportExample = `  scrapestat export run1 --warmup 60s --slice-duration 10s
  scrapestat export run1 --phase concurrency-64 --percentiles 50,99,99.9 -o run1-c64
  scrapestat export run1 --by model_name --formats json -o - | jq .scrapestat.aggregates`

// exportOptions is the command line of export.
type exportOptions struct {
	runs     []string
	out      string
	window   windowFlags
	analysis analysisFlags
	quiet    bool
}

// windowFlags choose the part of the run that is analysed.
type windowFlags struct {
	phase            string
	from, to         string
	warmup, cooldown string
}

func (w *windowFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&w.phase, "phase", "", "analyse the phase of this `name` (default profiling)")
	f.StringVar(&w.from, "from", "", "analyse from this `offset` from the start of the run")
	f.StringVar(&w.to, "to", "", "analyse up to this `offset` from the start of the run")
	f.StringVar(&w.warmup, "warmup", "", "`duration` of the warm-up instead of the recorded one")
	f.StringVar(&w.cooldown, "cooldown", "", "`duration` of the cool-down instead of the recorded one")
}

// apply validates the flags and sets them in so.
func (w *windowFlags) apply(so *summary.Options) error {
	if w.phase != "" && (w.from != "" || w.to != "" || w.warmup != "" || w.cooldown != "") {
		return usagef("--phase cannot be combined with --from, --to, --warmup or --cooldown")
	}
	if (w.from != "" || w.to != "") && (w.warmup != "" || w.cooldown != "") {
		return usagef("--from and --to cannot be combined with --warmup or --cooldown")
	}
	so.Phase = w.phase
	for _, f := range []struct {
		name, value string
		set         func(time.Duration)
	}{
		{"from", w.from, func(d time.Duration) { so.From = d }},
		{"to", w.to, func(d time.Duration) { so.To = d }},
		{"warmup", w.warmup, func(d time.Duration) { so.Warmup = &d }},
		{"cooldown", w.cooldown, func(d time.Duration) { so.Cooldown = &d }},
	} {
		if f.value == "" {
			continue
		}
		d, err := parseOffset(f.name, f.value)
		if err != nil {
			return err
		}
		f.set(d)
	}
	if so.To > 0 && so.To <= so.From {
		return usagef("--to %v is not after --from %v", so.To, so.From)
	}
	return nil
}

func newExportCmd(std stdio) *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:     "export RUN... [flags]",
		Short:   "Write the exports of a recorded run, with any window",
		Long:    exportLong,
		Example: exportExample,
		Args:    atLeast(1, "RUN, a run directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.runs = args
			if err := o.analysis.validate(); err != nil {
				return err
			}
			return exportRuns(cmd.Context(), o, std)
		},
	}
	cmd.Flags().StringVarP(&o.out, "out", "o", "",
		"output `directory`, or - for stdout with one format (default the first RUN)")
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "no talk on stderr")
	o.window.register(cmd)
	o.analysis.register(cmd)
	o.analysis.registerBy(cmd)
	return cmd
}

func exportRuns(ctx context.Context, o exportOptions, std stdio) error {
	so := o.analysis.options()
	if err := o.window.apply(&so); err != nil {
		return err
	}
	if o.out == "-" {
		return exportStdout(ctx, o, so, std)
	}
	if o.out == "" {
		o.out = o.runs[0]
	} else if !slices.Contains(o.runs, o.out) {
		if err := makeExportDir(o.out); err != nil {
			return err
		}
	}
	say := newProgress(std.err, o.quiet)
	_, files, err := analyse(ctx, o.runs, o.analysis, so, o.out, say)
	if slices.Contains(o.runs, o.out) {
		err = errors.Join(err, refreshManifest(o.out, files))
	}
	for _, f := range files {
		say.logf("wrote %s (%d bytes)", f.Path, f.Size)
	}
	return err
}

func exportStdout(ctx context.Context, o exportOptions, so summary.Options, std stdio) error {
	if len(o.analysis.formats) != 1 {
		return usagef("-o - writes one format; choose it with --formats")
	}
	result, runs, closeAll, err := load(ctx, o.runs, o.analysis, so, newProgress(std.err, true))
	if err != nil {
		return err
	}
	defer closeAll()
	w := bufio.NewWriter(std.out)
	name, eo := o.analysis.formats[0], o.analysis.exportOptions()
	if err := export.Lookup(name, result, eo)[0].Write(ctx, w, result, recordings(runs), eo); err != nil {
		return fmt.Errorf("export %s to stdout: %w", name, err)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write stdout: %w", err)
	}
	return nil
}

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/discover"
	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/internal/suggest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

var (
	estimatorNames = []string{histest.Polynomial, histest.Refined, histest.Linear}
	rateNames      = []string{"aiperf", "window"}
	resetNames     = map[string]normalize.ResetMode{"adjust": normalize.ResetAdjust, "clamp": normalize.ResetClamp}
)

// analysisFlags are the flags that collect, export and show share: how a
// recording becomes a result and what is written of it.
type analysisFlags struct {
	slice      time.Duration
	formats    []string
	estimator  string
	resets     string
	percentile []string
	schema     string
	layout     string
	rates      string
	csvRaw     bool
	by         []string
	slicePct   bool
	catalogs   []string
	runFlags

	run       string           // what the run is called in tables
	into      *export.Report   // that a report goes into; nil for none
	quantiles []float64        // of percentile, set by validate
	sliceFlag *pflag.Flag      // tells 0 from not given
	byFlag    *pflag.Flag      // tells all together from not given; nil where there is no --by
	catalog   *catalog.Catalog // of catalogs, set by validate; nil is the embedded one
	stderr    func() io.Writer // of the command
}

func (a *analysisFlags) register(cmd *cobra.Command) {
	a.registerNumbers(cmd)
	f := cmd.Flags()
	f.StringSliceVar(&a.formats, "formats", a.formats, "exports to write, of "+strings.Join(export.Formats(), ", "))
	f.StringVar(&a.schema, "aiperf-schema", a.schema, "`version` of AIPerf's JSON schema to write: 1.0 or 1.1")
	f.StringVar(&a.rates, "aiperf-rates", rateNames[0], "`arithmetic` of rates, gauges and slices in AIPerf's part: "+
		"aiperf (its own, series by series) or window (of the seconds of the window, as ours)")
	f.BoolVar(&a.csvRaw, "csv-raw", false, "write texts into the CSV exactly as they are, also those that a "+
		"spreadsheet would take for a formula (default: a ' in front of them)")
	f.BoolVar(&a.slicePct, "slice-percentiles", false,
		"also estimate the percentiles of every timeslice of a histogram (JSON)")
	f.StringVar(&a.layout, "parquet-layout", a.layout, "`layout` of the Parquet file: aiperf or tidy")
}

// registerNumbers adds the flags that shape the numbers, not the files.
func (a *analysisFlags) registerNumbers(cmd *cobra.Command) {
	a.formats, a.schema, a.layout, a.rates = []string{"json", "csv", "parquet"}, "1.1", "aiperf", rateNames[0]
	a.stderr = cmd.ErrOrStderr
	a.runFlags.register(cmd)
	f := cmd.Flags()
	f.DurationVar(&a.slice, "slice-duration", 0, "timeslice width (default: no slices)")
	a.sliceFlag = f.Lookup("slice-duration")
	f.StringVar(&a.estimator, "estimator", "", "percentile `estimator`: "+strings.Join(estimatorNames, ", ")+
		" (default refined, in the files of export polynomial, as AIPerf's)")
	f.StringVar(&a.resets, "counter-resets", "adjust",
		"`mode`: adjust (sum of increases, a restart counts from zero) or clamp (AIPerf's arithmetic)")
	f.StringSliceVar(&a.percentile, "percentiles", nil,
		"percentiles to estimate, 0 to 100 (default AIPerf's 1,5,10,25,50,75,90,95,99)")
	f.StringArrayVar(&a.catalogs, "catalog", nil,
		"YAML `file` of families that the program does not know, and of peaks and SLOs (docs/derived.md); repeatable")
}

// registerBy adds the flag for aggregates.
func (a *analysisFlags) registerBy(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&a.by, "by", nil, "also take together what agrees in these `labels`, of series or targets, "+
		"endpoint and target among them; '' takes all of a family")
	a.byFlag = f.Lookup("by")
}

// knowsLabels refuses a label of --by that nothing in the runs has.
func (a *analysisFlags) knowsLabels(runs ...*summary.Run) error {
	if a.byFlag == nil || !a.byFlag.Changed {
		return nil
	}
	known := map[string]bool{summary.ByEndpoint: true, summary.ByTarget: true}
	see := func(l metric.Labels) {
		for name := range l.All() {
			known[name] = true
		}
	}
	for _, r := range runs {
		for i := range r.Endpoints {
			see(r.Endpoints[i].Labels)
		}
		for i := range r.Metrics {
			for j := range r.Metrics[i].Series {
				see(r.Metrics[i].Series[j].Labels)
			}
		}
		for i := range r.Aggregates {
			see(r.Aggregates[i].Labels)
		}
	}
	names := slices.Sorted(maps.Keys(known))
	for _, name := range a.by {
		if !known[name] {
			return usagef("--by %s: nothing in the run has this label%s (there are: %s)", name, suggest.Clause(name, names),
				strings.Join(names[:min(len(names), 20)], ", "))
		}
	}
	return nil
}

// verdict is what --strict says of what was read: nothing may have been lost.
func (a *runFlags) verdict(runs ...*summary.Run) error {
	for _, r := range runs {
		if !a.strict || r == nil {
			continue
		}
		if text := emptyWindow(r); text != "" {
			return &codeError{exitIncomplete, errors.New(text + " (--strict)")}
		}
		if text := r.Warned("no_traffic"); text != "" && slices.Contains(r.Command, "--") { // there was a COMMAND
			return &codeError{exitIncomplete, errors.New(text + " (--strict)")}
		}
		if text := r.Warned("shard_missing"); text != "" {
			return &codeError{exitIncomplete, errors.New(text + " (--strict)")}
		}
		lost := map[bool]int{}
		for i := range r.Endpoints {
			for _, x := range r.Endpoints[i].Ledger.Losses() {
				if x.Lines || x.What == summary.Unreadable || r.Endpoints[i].Lives == nil { // one that went failed before it did
					lost[x.Lines] += x.N
				}
			}
		}
		damaged := slices.ContainsFunc(r.Warnings, func(w metric.Warning) bool { return w.Code == "recording_damaged" })
		if damaged || len(lost) > 0 {
			return &codeError{exitIncomplete, fmt.Errorf("data incomplete: %d scrapes failed, were skipped or cannot be "+
				"read, %d lines dropped%s (--strict)", lost[false], lost[true],
				map[bool]string{true: ", the recording is damaged"}[damaged])}
		}
		if text := r.Uncertain(); text != "" {
			return &codeError{exitIncomplete, fmt.Errorf("data uncertain: %s (--strict)", text)}
		}
	}
	return nil
}

// validate checks the values and parses the percentiles.
func (a *analysisFlags) validate() error {
	if a.slice < 0 || (a.slice == 0 && a.sliceFlag != nil && a.sliceFlag.Changed) {
		return usagef("--slice-duration %v: slice_duration must be positive", a.slice)
	}
	if a.slicePct && a.slice == 0 {
		return usagef("--slice-percentiles needs --slice-duration")
	}
	for i, name := range a.by {
		if name == "" || slices.Contains(a.by[:i], name) {
			return usagef("--by %s: a label is empty or named twice", strings.Join(a.by, ","))
		}
	}
	for i, name := range a.formats {
		if name == "tidy" { // as others call it
			name, a.formats[i] = "stats", "stats"
		}
		if err := oneOf("formats", "format", name, export.Formats()...); err != nil {
			return err
		}
	}
	if err := first(a.memory.validate(), oneOf("estimator", "estimator", a.inFiles(), estimatorNames...),
		oneOf("counter-resets", "mode", a.resets, "adjust", "clamp"),
		oneOf("aiperf-schema", "version", a.schema, "1.0", "1.1"),
		oneOf("parquet-layout", "layout", a.layout, "aiperf", "tidy"),
		oneOf("aiperf-rates", "arithmetic", a.rates, rateNames...), a.readCatalogs()); err != nil {
		return err
	}
	a.quantiles = nil
	for _, p := range a.percentile {
		v, ok := histest.Percentile("p" + strings.TrimPrefix(p, "p"))
		if !ok {
			return usagef("--percentiles: %q is not a number from 0 to 100", p)
		}
		a.quantiles = append(a.quantiles, v/100)
	}
	slices.Sort(a.quantiles)
	a.quantiles = slices.Compact(a.quantiles)
	return nil
}

// readCatalogs reads the files of --catalog.
func (a *analysisFlags) readCatalogs() error {
	var files []io.Reader
	for _, path := range a.catalogs {
		f, err := os.Open(path)
		if err != nil {
			return usagef("--catalog: %w", err)
		}
		defer f.Close()
		warnWritable(a.stderr(), path)
		files = append(files, f)
	}
	var err error
	if a.catalog, err = catalog.New(files...); err != nil {
		return usagef("--catalog: %w", err)
	}
	return nil
}

// warnWritable warns of a file of settings that everybody may change.
func warnWritable(w io.Writer, path string) {
	for _, x := range discover.WarnWorldWritable(path) {
		fmt.Fprintln(w, "warning:", x.Text)
	}
}

// inFiles is the estimator of the percentiles in AIPerf's formats.
func (a *analysisFlags) inFiles() string { return cmp.Or(a.estimator, histest.Polynomial) }

// options is the part of the summary's options these flags set.
func (a *analysisFlags) options() summary.Options {
	so := summary.Options{Slice: a.slice, Resets: resetNames[a.resets], Estimator: cmp.Or(a.estimator, histest.Refined),
		Quantiles: a.quantiles, SliceQuantiles: a.slicePct, Catalog: a.catalog, WindowRates: a.rates == rateNames[1]}
	if a.byFlag != nil && a.byFlag.Changed {
		so.By = append([]string{}, a.by...)
	}
	return so
}

func (a *analysisFlags) exportOptions() export.Options {
	return export.Options{Run: a.run, AIPerfSchema: a.schema, ParquetLayout: a.layout, CSVRaw: a.csvRaw,
		Into: a.into}
}

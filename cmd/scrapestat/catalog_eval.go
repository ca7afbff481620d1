package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// evalPack is the pack of the one quantity that eval asks for.
const evalPack = "eval"

func newCatalogEvalCmd(std stdio) *cobra.Command {
	a := analysisFlags{stderr: func() io.Writer { return std.err }}
	var engine, by string
	cmd := &cobra.Command{
		Use:   "eval RUN EXPR [flags]",
		Short: "Evaluate a formula over a run, and show what it is made of",
		Long: `Evaluates a formula of the language of packs over a run: its value and status, what is divided
by what, and what each series of its families did. The way to find out why a quantity is as it is.`,
		Example: "  scrapestat catalog eval run1 'mean(e2e_request_latency_seconds)' --engine vllm",
		Args:    exactly(2, "RUN and EXPR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			words := oneOf("by", "result", by, "scope", "slice", "series")
			if err := first(words, a.memory.validate(), a.readCatalogs()); err != nil {
				return err
			}
			return evaluate(cmd.Context(), std, &a, args[0], args[1], engine, by)
		},
	}
	cmd.Flags().StringArrayVar(&a.catalogs, "catalog", nil, "YAML `file` of more packs; repeatable")
	a.runFlags.register(cmd)
	cmd.Flags().StringVar(&engine, "engine", "",
		"`pack` whose families the formula names (default: that of most families)")
	cmd.Flags().StringVar(&by, "by", "scope", "`results`: scope, slice of the run as it was recorded, or series")
	return cmd
}

func evaluate(ctx context.Context, std stdio, a *analysisFlags, dir, expr, engine, by string) error {
	run, err := loaded(ctx, std, a, dir)
	if err != nil {
		return err
	}
	if engine == "" {
		if engine = mostOf(run); engine == "" {
			return usagef("no pack knows the families of %s: say --engine", dir)
		}
	}
	known := a.catalog
	if a.catalog, err = known.With(strings.NewReader(evalText(known, expr, engine, nil))); err != nil {
		return usagef("%w", err)
	}
	if by == "series" {
		text := evalText(known, expr, engine, labelsOf(run, a.catalog))
		if a.catalog, err = known.With(strings.NewReader(text)); err != nil {
			return usagef("%w", err)
		}
	}
	if run, err = loaded(ctx, std, a, dir); err != nil {
		return err
	}
	n := 0
	for i := range run.Derived {
		if d := &run.Derived[i]; d.Pack == evalPack {
			n++
			printResult(std.out, run, d, by)
		}
	}
	if n == 0 {
		return &codeError{exitIncomplete, fmt.Errorf("nothing in %s has the families of %s", dir, expr)}
	}
	return a.verdict(run)
}

// loaded is the result of a run with the packs of the flags.
func loaded(ctx context.Context, std stdio, a *analysisFlags, dir string) (*summary.Run, error) {
	run, _, closeAll, err := load(ctx, []string{dir}, *a, summary.Options{Catalog: a.catalog}, newProgress(std.err, true))
	if err == nil {
		closeAll()
	}
	return run, err
}

// mostOf is the engine that has most of the families of a run.
func mostOf(run *summary.Run) (most string) {
	n := map[string]int{}
	for i := range run.Metrics {
		if f, ok := run.Options.Catalog.Family(run.Metrics[i].Name); ok && f.Engine != "generic" {
			if n[f.Engine]++; n[f.Engine] > n[most] {
				most = f.Engine
			}
		}
	}
	return most
}

// labelsOf are the labels of the series that the formula reads.
func labelsOf(run *summary.Run, c *catalog.Catalog) (out []string) {
	packs := c.Packs()
	at := slices.IndexFunc(packs, func(p catalog.Pack) bool { return p.Name == evalPack })
	families := packs[at].Rules[0].Families()
	for i := range run.Metrics {
		m := &run.Metrics[i]
		if f, ok := c.Family(m.Name); !ok || !slices.Contains(families, f.Name) {
			continue
		}
		for k := range m.Series {
			for name := range m.Series[k].Labels.All() {
				if !slices.Contains(out, name) {
					out = append(out, name)
				}
			}
		}
	}
	return out
}

// evalText is a pack of one quantity with the scopes of an engine, and one for each value of more labels.
func evalText(c *catalog.Catalog, expr, engine string, split []string) string {
	packs := c.Packs()
	if i := slices.IndexFunc(packs, func(p catalog.Pack) bool { return p.Name == engine }); i >= 0 {
		for _, name := range slices.Concat(packs[i].Scope, packs[i].Split) {
			if !slices.Contains(split, name) {
				split = append(split, name)
			}
		}
	}
	return fmt.Sprintf("pack: %s\nof: %q\nreads: ['']\nsplit: [%s]\n"+
		"quantities: {other: [{name: value, help: ., is: '%s'}]}\n",
		evalPack, engine, strings.Join(split, ", "), strings.ReplaceAll(expr, "'", "''"))
}

func printResult(w io.Writer, run *summary.Run, d *summary.Derived, by string) {
	value := func(s catalog.Status, v, num, den float64, parts bool) string {
		text := s.String()
		if s.Defined() {
			text = fmt.Sprintf("%v %s", v, s)
		}
		if parts {
			text += fmt.Sprintf(" = %v / %v", num, den)
		}
		return text
	}
	fmt.Fprintf(w, "%s%s  %s\n", run.Endpoints[max(0, d.Endpoint)].URL, texttab.Escape(d.Labels.String()),
		value(d.Status, d.Value, d.Numerator, d.Denominator, d.HasParts))
	for _, s := range d.Slices {
		if by == "slice" {
			fmt.Fprintf(w, "  slice at %d ns: %s\n", s.StartNS,
				value(s.Status, s.Value, s.Numerator, s.Denominator, d.HasParts))
		}
	}
	for i := range run.Metrics {
		m := &run.Metrics[i]
		f, ok := run.Options.Catalog.Family(m.Name)
		if !ok || !slices.Contains(d.Families, f.Name) {
			continue
		}
		for k := range m.Series {
			if s := &m.Series[k]; s.Endpoint == d.Endpoint && (by != "series" || within(s.Labels, d.Labels)) {
				fmt.Fprintf(w, "  %s%s  %s\n", m.Name, texttab.Escape(s.Labels.String()), did(s))
			}
		}
	}
}

// within reports whether labels contradict none of others.
func within(l, others metric.Labels) bool {
	for name, value := range others.All() {
		if v, ok := l.Get(name); ok && v != value {
			return false
		}
	}
	return true
}

// did is what a series did in the window.
func did(s *summary.Series) string {
	text := ""
	if gain, ok := s.Gained(); ok {
		text = fmt.Sprintf("+%v", gain)
	}
	switch {
	case s.Histogram != nil:
		text += fmt.Sprintf(", sum +%v", s.Histogram.Sum)
	case s.Summary != nil:
		text += fmt.Sprintf(", sum +%v", s.Summary.Sum)
	case s.Gauge != nil:
		text = fmt.Sprintf("mean %v, %v to %v, last %v", s.Gauge.TimeAvg, s.Gauge.Min, s.Gauge.Max, s.Gauge.Last)
	}
	return text
}

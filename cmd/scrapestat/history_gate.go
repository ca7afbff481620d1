package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/scrapestat/scrapestat/compare"
	"github.com/scrapestat/scrapestat/compare/judge"
	"github.com/scrapestat/scrapestat/headline"
	"github.com/scrapestat/scrapestat/history"
)

// againstHistory is what the last levels of a history say of the run and its repeats; nil without a history. none is
// why there is no answer.
func (o *checkOptions) againstHistory(ctx context.Context) (r *compare.Result, none string, err error) {
	if o.history == "" {
		return nil, "", nil
	}
	var entries []*history.Entry
	for _, text := range append([]string{o.run}, o.repeats...) {
		a, err := o.window.arg(text)
		if err != nil {
			return nil, "", err
		}
		e, run, err := o.analysis.entry(ctx, sideArg{path: a.Run, ref: a.Ref},
			&history.Reading{Catalog: o.analysis.catalog, Keys: o.keys})
		if err != nil {
			return nil, "", err
		}
		for _, before := range entries {
			if other := before.Same(e); other != "" {
				return nil, "", usagef("%s is no repeat of %s: %s", text, before.Path, other)
			}
		}
		entries = append(entries, e)
		o.incomplete = cmp.Or(o.incomplete, o.analysis.verdict(run))
	}
	err = withHistory(ctx, o.history, false, func(f *history.File) error {
		g, err := f.Gate(ctx, entries, history.Query{})
		if err == nil {
			r, none = gateResult(g, len(entries)), g.None
		}
		return err
	})
	return r, none, err
}

// gateResult is a gate as a comparison of the last levels with the run, for all that draws one.
func gateResult(g *history.Gate, runs int) *compare.Result {
	r := &compare.Result{Alpha: compare.DefaultAlpha, Sides: []compare.Side{{Name: "history",
		Runs: make([]compare.RunInfo, g.Runs)}, {Name: "run", Runs: make([]compare.RunInfo, runs)}}}
	places := map[[3]string]bool{}
	for i := range g.Lines {
		s := g.Lines[i].Series
		places[[3]string{s.Phase, s.Engine, s.Target}] = true
	}
	for i := range g.Lines {
		l := &g.Lines[i]
		line := compare.Line{Row: gateRow(l.Series), Phase: l.Series.Phase, Side: 1, From: l.From, To: toOf(l),
			Result: l.Result, Lacks: l.Lacks}
		if len(places) > 1 {
			line.Engine, line.Model = l.Series.Engine, l.Series.Target
		}
		r.Headline = append(r.Headline, line)
	}
	for i := range g.Load {
		l := &g.Load[i]
		r.LoadDiffers = append(r.LoadDiffers, compare.LoadChange{Beyond: true,
			Beside: compare.Beside{Row: gateRow(l.Series), Phase: l.Series.Phase, Side: 1, From: l.From, To: toOf(l)}})
	}
	return r
}

// toOf is the value of the run, NaN for none.
func toOf(l *history.GateLine) float64 {
	if len(l.Row.Other) == 1 {
		return l.Row.Other[0]
	}
	return l.Other
}

// gateRow is the row of the headline that a series is of.
func gateRow(s *history.Series) headline.Row {
	rows := headline.Rows()
	i := slices.IndexFunc(rows, func(r headline.Row) bool { return r.Name() == s.Quantity })
	if i >= 0 {
		return rows[i]
	}
	return headline.Row{ID: s.Quantity, Title: s.Quantity, Unit: s.Unit, Margin: s.Margin}
}

// verdictOfHistory ends with 3 for a headline row that is worse, and with 4 where nothing could be judged.
func verdictOfHistory(r *compare.Result, none string) error {
	if r == nil {
		return nil
	}
	bad, lacks := compare.Gate{Words: []string{"worse"}}.Judge(r)
	switch {
	case bad != "":
		return &codeError{exitBad, fmt.Errorf("check: %s (--history)", bad)}
	case none != "":
		return &codeError{exitIncomplete, fmt.Errorf("history: %s", none)}
	case lacks != "" && !slices.ContainsFunc(r.Headline, judgedByRuns):
		return &codeError{exitIncomplete, fmt.Errorf("history: %s", r.Headline[0].Reason)}
	case lacks != "":
		return &codeError{exitIncomplete, fmt.Errorf("history: %s", lacks)}
	}
	return nil
}

func judgedByRuns(l compare.Line) bool {
	return l.Verdict != judge.NotJudged && (l.Evidence == judge.Repeats || l.Evidence == judge.History)
}

// takeNoise has a comparison know how the runs of the base's configuration varied earlier.
func (o *compareOptions) takeNoise(ctx context.Context, inputs []compare.Input, co *compare.Options,
	w io.Writer) (err error) {
	if o.history == "" {
		return nil
	}
	reading := history.Reading{Catalog: co.Catalog, Keys: o.keys}
	var entries []*history.Entry
	for i := range inputs {
		e, err := historyEntry(&inputs[i], sideArg{path: inputs[i].Path}, &reading)
		if err != nil {
			return err
		}
		entries = append(entries, e)
	}
	return withHistory(ctx, o.history, false, func(f *history.File) error {
		noise, none, err := f.Noises(ctx, entries)
		if none != "" {
			fmt.Fprintln(w, "note: "+none)
		}
		co.Noise = noise
		return err
	})
}

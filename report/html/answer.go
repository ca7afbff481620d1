package html

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/explain"
	"github.com/scrapestat/scrapestat/headline"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/report"
	"github.com/scrapestat/scrapestat/summary"
)

// How much the first screen has.
const (
	mostAnswers  = 4 // engines and models
	mostVerdicts = 6 // lines
)

// answer is the headline of an engine and model in each run.
type answer struct {
	Title string
	Tiles []answerTile
}

// answerTile is a quantity of the headline.
type answerTile struct {
	Title, Word string
	Values      []answerValue
}

// answerValue is the quantity in one run: one number, or the percentiles of a latency.
type answerValue struct {
	Run, Text, Note, Change string
	Rows                    []answerRow
}

type answerRow struct{ Stat, Text, Bounds string }

// answerWords are the tiles in their order, those behind a bar in place of ones that are not there.
var answerWords = []string{"request_rate", "output_tok_s", "ttft|audio_ttfp", "itl|tpot|rtf", "e2e|queue",
	"error_ratio"}

// answerStats are the rows of a latency, the last one in large letters.
var answerStats = []string{"p50", "p90", "p99"}

// answers fills in the first screen: what to doubt, what limits, and six tiles of each engine and model.
func (p *page) answers() {
	var groups [][]headline.Group
	for i := range p.ins {
		r := p.ins[i].Run
		groups = append(groups, headline.Of(r, r.Options.Catalog, answerRows()...))
		p.verdicts(i)
	}
	for _, g := range groups[0][:min(len(groups[0]), mostAnswers)] {
		a := answer{}
		if len(groups[0]) > 1 {
			a.Title = clip(strings.TrimSpace(g.Engine+" "+g.Model), 120)
		}
		for _, words := range answerWords {
			if t, ok := p.answerTile(groups, &g, strings.Split(words, "|")); ok {
				a.Tiles = append(a.Tiles, t)
			}
		}
		p.Answers = append(p.Answers, a)
	}
	if left := len(groups[0]) - mostAnswers; left > 0 {
		p.Omitted = append(p.Omitted, fmt.Sprintf("%d more engines and models: scrapestat show --all lists them.", left))
	}
}

// answerRows are the rows of all tiles.
func answerRows() (out []headline.Row) {
	for _, words := range answerWords {
		for word := range strings.SplitSeq(words, "|") {
			if row, ok := headline.Named(word); ok {
				out = append(out, row)
			}
			for _, stat := range append([]string{"mean"}, answerStats...) {
				if row, ok := headline.Named(word + "_" + stat); ok {
					out = append(out, row)
				}
			}
		}
	}
	return out
}

// answerTile makes a tile of the first of some words that the engine has; an engine that has none gives none.
func (p *page) answerTile(groups [][]headline.Group, of *headline.Group, words []string) (answerTile, bool) {
	for _, word := range words {
		t := answerTile{Word: word}
		var base *headline.Value
		for run := range groups {
			i := slices.IndexFunc(groups[run], func(g headline.Group) bool {
				return g.Engine == of.Engine && g.Model == of.Model
			})
			if i < 0 && len(groups[run]) == 1 && len(groups[0]) == 1 {
				i = 0
			}
			if i < 0 {
				continue
			}
			v, last, ok := p.answerValue(run, groups[run][i].More, word)
			if !ok {
				continue
			}
			t.Title = cmp.Or(t.Title, last.Title)
			if base != nil && base.Value > 0 && last.Missing == "" && base.Missing == "" {
				v.Change = signed(last.Value/base.Value - 1)
			} else if base == nil {
				base = last
			}
			t.Values = append(t.Values, v)
		}
		if len(t.Values) > 0 {
			if w, _, ok := headline.Parse(word); ok {
				t.Title = w.Title
			}
			return t, true
		}
	}
	return answerTile{}, false
}

// answerValue reads a word of a run; last is what runs are held against each other by.
func (p *page) answerValue(run int, list []headline.Value, word string) (v answerValue, last *headline.Value, ok bool) {
	v.Run = p.runName(run)
	for i := range list {
		x := &list[i]
		_, percentile := x.Quantile()
		switch {
		case x.ID != word:
			continue
		case percentile:
			row := answerRow{Stat: x.Stat, Text: "–"}
			if x.Missing == "" {
				e := histest.Estimate{Value: x.Value, Low: x.Low, High: x.High, Flags: x.Flags}
				row.Text, row.Bounds, _ = strings.Cut(report.Percentile(e, x.Unit), " [")
				if row.Bounds != "" {
					row.Bounds = "[" + row.Bounds
				}
			}
			v.Rows, last = append(v.Rows, row), x
		case x.Stat == "mean" || x.Missing != "":
			if v.Text = "–"; x.Missing == "" {
				v.Text = unitText(x.Value, x.Unit)
			}
			last = cmp.Or(last, x)
		default:
			v.Text, last = unitText(x.Value, x.Unit), x
			v.Note = p.answerSpread(run, x)
		}
		v.Note = cmp.Or(v.Note, x.Missing, x.Unsure)
		ok = true
	}
	return v, last, ok
}

// answerSpread tells the lowest and the highest target of a number of a fleet.
func (p *page) answerSpread(run int, v *headline.Value) string {
	r := p.ins[run].Run
	low, high := math.Inf(1), math.Inf(-1)
	var at [2]int
	n := 0
	for i := range r.Derived {
		d := &r.Derived[i]
		if d.Canonical != v.ID || !d.Status.Defined() || !slices.Contains(v.Names, d.Name) || d.Endpoint < 0 {
			continue
		}
		n++
		if d.Shown < low {
			low, at[0] = d.Shown, d.Endpoint
		}
		if d.Shown > high {
			high, at[1] = d.Shown, d.Endpoint
		}
	}
	if n < 2 || low == high {
		return ""
	}
	return fmt.Sprintf("%s (%s) to %s (%s)", unitText(low, v.Unit), endpointLabel(r, at[0]), unitText(high, v.Unit),
		endpointLabel(r, at[1]))
}

// verdicts adds what a reader must know of a run first: what to doubt, and what limits it.
func (p *page) verdicts(run int) {
	in := &p.ins[run]
	add := func(kind, text string) {
		if p.Many {
			text = p.runName(run) + ": " + text
		}
		if len(p.Verdicts) < mostVerdicts {
			p.Verdicts = append(p.Verdicts, verdictLine{kind, clip(text, 300)})
		}
	}
	for _, text := range report.Doubts(in.Run) {
		add("bad", text)
	}
	rules := explain.DefaultRules()
	for i, r := range in.Causes {
		if i > 0 && r.Verdict == in.Causes[0].Verdict {
			continue
		}
		of := ""
		if len(in.Causes) > 1 {
			of = r.Engine + r.Of.String() + " "
		}
		add("", of+"limited by "+report.Limit(r, rules))
	}
}

// verdictLine is a sentence at the top.
type verdictLine struct{ Kind, Text string }

// runStripView is the strip of a run.
type runStripView struct {
	Run     string
	Picture template.HTML
}

// runStrip draws the run as one bar: what was recorded, the load, the window, and restarts.
func runStrip(r *summary.Run) template.HTML {
	w := r.Window.Resolved
	if w == nil || w.Command.EndNS <= w.Command.StartNS {
		return ""
	}
	var b strings.Builder
	all := float64(w.Command.EndNS - w.Command.StartNS)
	rect := func(class string, from, to int64, title string) {
		x := 1000 * max(0, float64(from-w.Command.StartNS)/all)
		width := min(1000, 1000*float64(to-w.Command.StartNS)/all) - x
		if width > 0 {
			fmt.Fprintf(&b, `<rect class="%s" x="%.1f" width="%.1f" height="14"><title>%s</title></rect>`, class, x, width,
				template.HTMLEscapeString(clip(title, 80)))
		}
	}
	rect("s-none", w.Command.StartNS, w.Command.EndNS, "no requests")
	for i, s := range w.Traffic.Segments {
		rect("s-load", s.Start.AtNS, s.End.AtNS, fmt.Sprintf("requests, stretch %d", i+1))
	}
	rect("s-window", r.Window.StartNS, r.Window.EndNS, "measured")
	for i := range r.Endpoints {
		for _, g := range r.Endpoints[i].Gaps {
			if g.StartNS > 0 && g.EndNS > 0 {
				rect("s-gap", g.StartNS, g.EndNS, "no answer from "+endpointLabel(r, i))
			}
		}
	}
	return template.HTML(`<svg class="strip runstrip" viewBox="0 0 1000 14" preserveAspectRatio="none" role="img" ` +
		`aria-label="` + template.HTMLEscapeString(clip(windowText(r), 200)) + `">` + b.String() + `</svg>`)
}

package html

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/headline"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/report"
	"github.com/scrapestat/scrapestat/summary"
)

// How much the first screen has.
const (
	mostAnswers  = 8 // engines and models
	mostVerdicts = 6 // lines
	mostLimits   = 2 // of a run
)

// answer is the headline of an engine and model in each run.
type answer struct {
	Title string
	Tiles []answerTile
}

// answerTile is a quantity of the headline: a row for each statistic, with a cell for each run.
type answerTile struct {
	Title, Word string
	Rows        []answerRow
	Notes       []string // on a run, or how it changed from the first
}

type answerRow struct {
	Stat  string // "" of a number
	Cells []answerCell
}

type answerCell struct{ Text, Unit, Bounds string }

// answerTable is the headline where there are more engines, models or runs than tiles can show.
type answerTable struct {
	Heads []answerTile // without rows
	Rows  []answer
}

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
		p.verdicts(i, groups[i])
	}
	shown := groups[0][:min(len(groups[0]), mostAnswers)]
	if left := len(groups[0]) - len(shown); left > 0 {
		p.Omitted = append(p.Omitted, fmt.Sprintf("%d more engines and models: scrapestat show --all lists them.", left))
	}
	if len(shown) > 2 || len(groups) > 2 {
		p.AnswerTable = p.answerTable(groups, shown)
		return
	}
	for i := range shown {
		a := answer{Title: groupTitle(&shown[i], len(groups[0]))}
		for _, words := range answerWords {
			a.Tiles = append(a.Tiles, p.answerTile(p.sameGroup(groups, &shown[i]), strings.Split(words, "|")))
		}
		p.Answers = append(p.Answers, a)
	}
	if len(shown) == 0 {
		p.busiest()
	}
}

// busiest tells what the targets of a run of no known server did most.
func (p *page) busiest() {
	p.Busiest = report.Busiest(p.ins[0].Run)
	if left := len(p.Busiest) - mostAnswers; left > 0 {
		p.Omitted = append(p.Omitted, fmt.Sprintf("%d more targets of no known server: see the table of families.", left))
		p.Busiest = p.Busiest[:mostAnswers]
	}
	for i := range p.Busiest {
		b := &p.Busiest[i]
		b.Title = clip(b.Title, 200)
		for k := range b.Rows {
			f := &b.Rows[k]
			f.Name, f.Rate, f.Mean = clip(f.Name, 120), clip(f.Rate, 40), clip(f.Mean, 40)
		}
	}
}

// groupTitle names one of n engines and models; the only one needs no name.
func groupTitle(g *headline.Group, n int) string {
	if n < 2 {
		return ""
	}
	return clip(strings.TrimSpace(g.Engine+" "+g.Model), 120)
}

// sameGroup finds an engine and model in each run; nil where a run has none.
func (p *page) sameGroup(groups [][]headline.Group, of *headline.Group) (out []*headline.Group) {
	for run := range groups {
		i := slices.IndexFunc(groups[run], func(g headline.Group) bool {
			return g.Engine == of.Engine && g.Model == of.Model
		})
		if i < 0 && len(groups[run]) == 1 && len(groups[0]) == 1 {
			i = 0
		}
		if out = append(out, nil); i >= 0 {
			out[run] = &groups[run][i]
		}
	}
	return out
}

// answerTable sets engines, models and runs below each other. A quantity that none of them has is named once.
func (p *page) answerTable(groups [][]headline.Group, shown []headline.Group) *answerTable {
	t := &answerTable{}
	has := make([]bool, len(answerWords))
	for i := range shown {
		for run, g := range p.sameGroup(groups, &shown[i]) {
			if g == nil {
				continue
			}
			row := answer{Title: strings.TrimSpace(p.runName(run) + " " + groupTitle(&shown[i], len(groups[0])))}
			of := make([]*headline.Group, len(groups))
			of[run] = g
			for k, words := range answerWords {
				tile := p.answerTile(of, strings.Split(words, "|"))
				tile.Rows = slices.Clone(tile.Rows)
				for j := range tile.Rows {
					tile.Rows[j].Cells = tile.Rows[j].Cells[run : run+1]
					has[k] = true
				}
				row.Tiles = append(row.Tiles, tile)
			}
			t.Rows = append(t.Rows, row)
		}
	}
	var none []string
	for k, tile := range t.Rows[0].Tiles {
		if !has[k] {
			none = append(none, tile.Title)
			continue
		}
		t.Heads = append(t.Heads, answerTile{Title: tile.Title, Word: tile.Word})
	}
	for i := range t.Rows {
		k := -1
		t.Rows[i].Tiles = slices.DeleteFunc(t.Rows[i].Tiles, func(answerTile) bool { k++; return !has[k] })
	}
	if len(none) > 0 {
		p.Notes = append(p.Notes, "No server here tells "+strings.Join(none, ", ")+".")
	}
	return t
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

// answerTile makes a tile of the first of some words that the groups, one of each run, have.
func (p *page) answerTile(groups []*headline.Group, words []string) answerTile {
	for _, word := range words {
		t := answerTile{Word: word}
		var base *headline.Value
		for run, g := range groups {
			last := p.answerCells(&t, run, g)
			switch {
			case last == nil || last.Missing != "":
			case base == nil:
				base = last
			case p.o.Compare == nil && base.Value > 0:
				t.Notes = append(t.Notes, signed(last.Value/base.Value-1))
			}
		}
		t.Notes = append(t.Notes, p.changes(word, groups[0])...)
		if w, _, _ := headline.Parse(word); len(t.Rows) > 0 {
			t.Title = w.Title
			return t
		}
	}
	w, _, _ := headline.Parse(words[0])
	t := answerTile{Title: w.Title, Word: words[0]}
	if w.Name == "error_ratio" {
		p.otherErrors(&t, groups)
	}
	if len(t.Rows) == 0 {
		t.Notes = []string{"the server does not tell it"}
	}
	return t
}

// otherErrors is what an engine without a share of errors tells of them, such as the share of successes.
func (p *page) otherErrors(t *answerTile, groups []*headline.Group) {
	for run, g := range groups {
		if g == nil || len(p.ins[run].Run.Combined) == 0 {
			continue
		}
		list := p.ins[run].Run.Combined[0].Derived
		i := slices.IndexFunc(list, func(d summary.Derived) bool {
			return d.Headline && d.Category == catalog.Errors && d.Pack == g.Engine && d.Status.Defined() && ofModel(&d, g.Model)
		})
		if i >= 0 && (t.Word == list[i].Name || len(t.Rows) == 0) {
			t.Word = list[i].Name
			cell := t.cell("", run, len(groups))
			cell.Text, cell.Unit, _ = strings.Cut(unitText(list[i].Shown, list[i].Unit), " ")
		}
	}
}

// changes are what the comparison of a page tells of a word: how much it changed, and the verdict.
func (p *page) changes(word string, g *headline.Group) (out []string) {
	if p.o.Compare == nil || g == nil || len(p.o.Compare.Sides) > 2 {
		return nil
	}
	for i := range p.o.Compare.Headline {
		l := &p.o.Compare.Headline[i]
		if l.ID == word && l.Phase == "" && (l.Engine == "" || l.Engine == g.Engine && l.Model == g.Model) {
			out = append(out, strings.TrimSpace(l.Stat+" "+report.ChangeText(l)))
		}
	}
	return out
}

// answerCells enters what a run has of the word of a tile, and returns what runs are held against each other by.
func (p *page) answerCells(t *answerTile, run int, g *headline.Group) (last *headline.Value) {
	if g == nil {
		return nil
	}
	percentiles := slices.ContainsFunc(g.More, func(v headline.Value) bool {
		_, ok := v.Quantile()
		return ok && v.ID == t.Word
	})
	for i := range g.More {
		v := &g.More[i]
		if v.ID != t.Word || percentiles && v.Stat == "mean" {
			continue
		}
		cell := t.cell(v.Stat, run, len(p.ins))
		if last = v; v.Missing != "" {
			cell.Text = "–"
		} else if _, ok := v.Quantile(); ok {
			e := histest.Estimate{Value: v.Value, Low: v.Low, High: v.High, Flags: v.Flags}
			cell.Text, cell.Bounds, _ = strings.Cut(report.Percentile(e, v.Unit), " [")
			if cell.Bounds != "" {
				cell.Bounds = "[" + cell.Bounds
			}
		} else {
			cell.Text, cell.Unit, _ = strings.Cut(unitText(v.Value, v.Unit), " ")
		}
		note := cmp.Or(v.Missing, v.Unsure, p.answerSpread(run, g.Model, v))
		if note = strings.ReplaceAll(note, "_", " "); note != "" && !slices.Contains(t.Notes, note) {
			t.Notes = append(t.Notes, note)
		}
	}
	return last
}

// cell is that of a statistic and a run; those of other runs are dashes until they are known.
func (t *answerTile) cell(stat string, run, runs int) *answerCell {
	i := slices.IndexFunc(t.Rows, func(r answerRow) bool { return r.Stat == stat })
	if i < 0 {
		i = len(t.Rows)
		row := answerRow{Stat: stat, Cells: make([]answerCell, runs)}
		for k := range row.Cells {
			row.Cells[k].Text = "–"
		}
		t.Rows = append(t.Rows, row)
	}
	return &t.Rows[i].Cells[run]
}

// answerSpread tells the lowest and the highest target of a number of a fleet.
func (p *page) answerSpread(run int, model string, v *headline.Value) string {
	r := p.ins[run].Run
	low, high := math.Inf(1), math.Inf(-1)
	var at [2]int
	for i := range r.Derived {
		d := &r.Derived[i]
		if d.Canonical != v.ID || !d.Status.Defined() || !slices.Contains(v.Names, d.Name) || d.Endpoint < 0 ||
			!ofModel(d, model) {
			continue
		}
		if d.Shown < low {
			low, at[0] = d.Shown, d.Endpoint
		}
		if d.Shown > high {
			high, at[1] = d.Shown, d.Endpoint
		}
	}
	if at[0] == at[1] || low >= high {
		return ""
	}
	return fmt.Sprintf("%s (%s) to %s (%s)", unitText(low, v.Unit), endpointLabel(r, at[0]), unitText(high, v.Unit),
		endpointLabel(r, at[1]))
}

// ofModel reports whether a quantity is of a model, or of none.
func ofModel(d *summary.Derived, model string) bool {
	for name, value := range d.Labels.All() {
		if model != "" && strings.HasPrefix(name, "model") && !strings.Contains(name, "version") && value != model {
			return false
		}
	}
	return true
}

// verdicts adds what a reader must know of a run first: what to doubt, and what limits it.
func (p *page) verdicts(run int, groups []headline.Group) {
	in := &p.ins[run]
	add := func(kind, label, text string) {
		if p.Many {
			label = strings.TrimSpace(p.runName(run) + " " + label)
		}
		if len(p.Verdicts) < mostVerdicts {
			p.Verdicts = append(p.Verdicts, verdictLine{kind, label, clip(text, 300)})
		}
	}
	for _, text := range report.Doubts(in.Run) {
		add("bad", "", text)
	}
	limits := report.Limits(in.Causes, func(engine string) bool {
		return slices.ContainsFunc(groups, func(g headline.Group) bool { return g.Engine == engine })
	})
	for i, text := range limits {
		if i == mostLimits {
			add("", "", fmt.Sprintf("%d more limits under Why", len(limits)-i))
			break
		}
		add("", "limit", text)
	}
}

// verdictLine is a sentence at the top.
type verdictLine struct{ Kind, Label, Text string }

// runStripView is the strip of a run.
type runStripView struct {
	Run     string
	Picture template.HTML
}

// stripKinds are what a strip shows, by the class it is painted with.
var stripKinds = []struct{ class, text string }{{"s-load", "requests"}, {"s-window", "measured"}, {"s-phase", "phase"},
	{"s-gap", "no answer"}, {"s-reset", "a counter restarted"}}

// stripKey explains a colour of the strips.
type stripKey struct{ Class, Text string }

// runStrips draws the runs as bars, and explains what they show.
func (p *page) runStrips() {
	seen := map[string]bool{}
	for i := range p.ins {
		if strip := runStrip(&p.ins[i], seen); strip != "" {
			p.RunStrips = append(p.RunStrips, runStripView{p.runName(i), strip})
		}
	}
	for _, k := range stripKinds {
		if seen[k.class] {
			p.StripKeys = append(p.StripKeys, stripKey{k.class + "-k", k.text})
		}
	}
}

// runStrip draws a run as one bar: the load, the window, phases, polls without an answer, and restarts.
func runStrip(in *Input, seen map[string]bool) template.HTML {
	r := in.Run
	w := r.Window.Resolved
	if w == nil || w.Command.EndNS <= w.Command.StartNS {
		return ""
	}
	var b strings.Builder
	all := float64(w.Command.EndNS - w.Command.StartNS)
	at := func(ns int64) float64 { return min(1000, 1000*max(0, float64(ns-w.Command.StartNS)/all)) }
	rect := func(class string, from, to int64, title string) {
		if at(to) > at(from) {
			seen[class] = true
			fmt.Fprintf(&b, `<rect class="%s" x="%.1f" width="%.1f" height="14"><title>%s</title></rect>`, class, at(from),
				at(to)-at(from), template.HTMLEscapeString(clip(title, 80)))
		}
	}
	line := func(class string, ns int64, title string) {
		seen[class] = true
		fmt.Fprintf(&b, `<path class="%s" d="M%.1f 0v14"><title>%s</title></path>`, class, at(ns),
			template.HTMLEscapeString(clip(title, 80)))
	}
	rect("s-none", w.Command.StartNS, w.Command.EndNS, "the whole run")
	for i, s := range w.Traffic.Segments {
		rect("s-load", s.Start.AtNS, s.End.AtNS, fmt.Sprintf("requests, stretch %d", i+1))
	}
	for i := range r.Endpoints {
		for _, g := range r.Endpoints[i].Gaps {
			if g.StartNS > 0 && g.EndNS > 0 {
				rect("s-gap", g.StartNS, g.EndNS, "no answer from "+endpointLabel(r, i))
			}
		}
	}
	if len(r.Phases) > 1 {
		for _, ph := range r.Phases[:min(len(r.Phases), 200)] {
			line("s-phase", ph.StartNS, "phase "+ph.Name)
		}
	}
	if in.Timeline != nil {
		for _, ns := range in.Timeline.resets() {
			line("s-reset", ns, "a counter restarted")
		}
	}
	rect("s-window", r.Window.StartNS, r.Window.EndNS, "measured")
	return template.HTML(`<svg class="strip runstrip" viewBox="0 0 1000 14" preserveAspectRatio="none" role="img" ` +
		`aria-label="` + template.HTMLEscapeString(clip(windowText(r), 200)) + `">` + b.String() + `</svg>`)
}

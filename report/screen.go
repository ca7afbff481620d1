package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/explain"
	"github.com/scrapestat/scrapestat/headline"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/units"
)

// The first screen: so wide without another width, and at most so many lines of a run unless more was asked for.
const (
	plainWidth  = 80
	screenLines = 40
)

// The order in which columns are left out where a line is too long.
const (
	spareHelp = 5 - iota
	spareCount
	spareSpread
	spareMean
)

func (t *pageBuilder) width() int { return cmp.Or(t.o.Width, plainWidth) }

// first reports whether nothing beyond the first screen was asked for.
func (o *Options) first() bool {
	return o.Metric == nil && !o.All && !o.Families && !o.Derived && !o.PACompat
}

// spare lets a column go where there is no room.
func spare(c column, rank int) column {
	c.Spare = rank
	return c
}

// screenTable is a table for people that fits the width of the screen.
func (t *pageBuilder) screenTable(columns ...column) *table {
	tab := newTable("", "", columns...)
	tab.Width = t.width()
	return tab
}

// isServer reports whether an engine answers requests, rather than describing a machine or a part of an engine.
func (t *pageBuilder) isServer(e *engine) bool {
	return slices.ContainsFunc(e.fleet, func(d summary.Derived) bool {
		return d.Headline && (d.Category == catalog.Throughput || d.Canonical == "running") && d.Status != catalog.Missing
	}) || slices.ContainsFunc(t.run.Latencies, func(l summary.Latency) bool { return l.Engine == e.id && !e.second })
}

// within reports whether an engine is a part of another one of the run: those of the stages of a pipeline are at its
// endpoints alone.
func (t *pageBuilder) within(e *engine, all []*engine) bool {
	return slices.ContainsFunc(all, func(x *engine) bool {
		return x != e && x.id != "" && e.id != "" && t.isServer(x) && strings.HasPrefix(x.id, e.id+"-") &&
			len(e.endpoints) > 0 && !slices.ContainsFunc(e.endpoints, func(i int) bool {
			return !slices.Contains(x.endpoints, i)
		})
	})
}

// word is what a quantity is called where people read it: its word, or the name of the pack where another quantity of
// the engine has the word.
func (e *engine) word(d *summary.Derived) string {
	w, stat, ok := headline.Parse(d.Canonical)
	if !ok || w.Kind != headline.Number && w.Kind != headline.Level || stat == "mean" && w.Kind == headline.Distribution {
		return d.Name
	}
	for i := range e.fleet {
		if x := &e.fleet[i]; x.Headline && x.Canonical == d.Canonical && x.Name != d.Name && x.Status != catalog.Missing {
			return d.Name
		}
	}
	return w.Name
}

// answer adds what the first screen tells of a server: load, latencies, errors and what limits it.
func (t *pageBuilder) answer(e *engine, latencies *table) {
	first := len(t.tables)
	t.add(t.load(e, catalog.Throughput, catalog.Saturation))
	speed := t.speed(e)
	speed.notes = slices.Concat(t.recordedLines(e), t.outcome(e), t.limitLines(e), t.cost(e))
	if len(speed.Rows) == 0 && len(t.tables) > first {
		t.tables[len(t.tables)-1].notes = speed.notes
	}
	t.add(speed)
	if len(t.tables) > first {
		t.tables[first].heading = t.heading(e)
	}
	for i := first + 1; i < len(t.tables); i++ {
		t.tables[i].close = true
	}
	if len(latencies.notes) > 1 {
		t.legend = append(t.legend, slices.DeleteFunc(slices.Clone(latencies.notes[1:]), func(line string) bool {
			return strings.HasPrefix(line, "d: ")
		})...)
	}
}

// load has quantities of some categories, each with the lowest and highest of single targets; of several models side
// by side.
func (t *pageBuilder) load(e *engine, of ...catalog.Category) *table {
	if len(e.scopes) > 1 {
		return t.pivot(e, of...)
	}
	tab := t.screenTable(face("QUANTITY"), number("", "VALUE"), spare(number("", "LOWEST"), spareSpread),
		spare(number("", "HIGHEST"), spareSpread), face("NOTE"), spare(face("WHAT IT IS"), spareHelp), face("OF"))
	for i := range tab.Columns[1:4] {
		tab.Columns[1+i].Right = true
	}
	for _, d := range e.headlines(of) {
		value := t.derivedCell(d)
		low, _, high, _ := t.spread(e, d)
		if _, unit, ok := strings.Cut(value.Text, " "); ok {
			for _, c := range []*cell{&low, &high} {
				c.Text = strings.Replace(c.Text, " "+unit+" (", " (", 1)
			}
		}
		help := d.Help
		if t.width() <= plainWidth {
			help = ""
		}
		tab.row(only(e.word(d)), value, low, high, only(derivedNote(d)), only(help), only(t.beyond(e, d)))
	}
	return tab
}

// headlines are the headline quantities of some categories that are there.
func (e *engine) headlines(of []catalog.Category) (out []*summary.Derived) {
	for _, q := range of {
		for i := range e.fleet {
			if d := &e.fleet[i]; d.Headline && d.Category == q && d.Status != catalog.Missing {
				out = append(out, d)
			}
		}
	}
	return out
}

// speedIDs are the times of the first screen, in its order; tpot_s stands in where there is no itl_s.
var speedIDs = []string{"ttft_s", "itl_s", "tpot_s", "e2e_s", "queue_s", "audio_ttfp_s", "rtf"}

// speed has the latencies: percentiles with the bounds that the true ones lie within, and the exact mean.
func (t *pageBuilder) speed(e *engine) *table {
	tab := t.screenTable(face("LATENCY"), spare(number("", "COUNT"), spareCount), spare(number("", "MEAN"), spareMean))
	for _, c := range t.histogramColumns()[2:] {
		if c.Head != "" {
			tab.Columns = append(tab.Columns, number("", c.Head))
		}
	}
	tab.Columns = append(tab.Columns, face("NOTE"), face("OF"))
	for _, id := range speedIDs {
		if id == "tpot_s" && slices.ContainsFunc(t.run.Latencies, func(l summary.Latency) bool {
			return l.ID == "itl_s" && l.Engine == e.id && l.Histogram != nil && l.Histogram.Count > 0
		}) && !t.o.All {
			continue
		}
		n := len(tab.Rows)
		for i := range t.run.Latencies {
			if l := &t.run.Latencies[i]; l.ID == id && l.Engine == e.id && !e.second && !t.idle(e, l.Labels) {
				t.speedRow(tab, e, l)
			}
		}
		if len(tab.Rows) == n {
			t.meanRow(tab, e, id)
		}
	}
	return tab
}

// speedRow adds a latency; one without an observation is told by its mean.
func (t *pageBuilder) speedRow(tab *table, e *engine, l *summary.Latency) {
	h, unit := l.Histogram, t.latencyUnit(&t.run.Metrics[l.Metric])
	w, _, _ := headline.Parse(l.ID)
	row := []cell{only(cmp.Or(w.Name, l.ID))}
	note := l.Refused
	switch {
	case h == nil:
		row = append(row, only("-"), only("-"))
	case h.Count == 0:
		return
	default:
		count := only(summary.ShownIncrease(tally(h.Count).Text, &l.Increase, digits))
		row = append(row, count, in(h.Avg, !h.NoSum, unit))
		if !l.Increase.Status.Certain() {
			note = cmp.Or(note, strings.ReplaceAll(l.Increase.Status.String(), "_", " "))
		}
	}
	for _, q := range t.shownQuantiles() {
		if h == nil || q >= len(h.Quantiles) || math.IsNaN(h.Quantiles[q].Value) {
			row = append(row, only("-"))
			continue
		}
		row = append(row, only(Percentile(h.Quantiles[q], unit)))
	}
	of := ""
	if len(e.scopes) > 1 || t.several(l) {
		of = ofText(l.Labels)
	}
	tab.row(append(row, only(note), only(of))...)
}

// meanRow adds a time that the server has no buckets of.
func (t *pageBuilder) meanRow(tab *table, e *engine, id string) {
	w, _, _ := headline.Parse(id)
	for i := range e.fleet {
		d := &e.fleet[i]
		if !d.Headline || d.Canonical != w.Derived() || w.Derived() == "" || d.Status == catalog.Missing ||
			t.idle(e, d.Labels) {
			continue
		}
		row := []cell{only(w.Name), {}, t.derivedCell(d)}
		for range t.shownQuantiles() {
			row = append(row, only("-"))
		}
		tab.row(append(row, only(derivedNote(d)), only(t.beyond(e, d)))...)
	}
}

// ofText is what a row is of: values of labels, with the names of those that are no model.
func ofText(labels metric.Labels) string {
	var parts []string
	for name, value := range labels.All() {
		if !strings.HasPrefix(name, "model") {
			value = name + " " + value
		}
		parts = append(parts, value)
	}
	return strings.Join(parts, " ")
}

// beyond is what a quantity is of that the heading does not tell.
func (t *pageBuilder) beyond(e *engine, d *summary.Derived) string {
	if len(e.scopes) < 2 {
		return ofText(d.Labels.Without(e.scopeNames()...))
	}
	return ofText(d.Labels)
}

// Percentile is a percentile with its bounds in the unit of the value: 23.5 ms [20, 33.6]. Times of minutes stay in
// seconds: three times as 1m 20s are wider than a screen.
func Percentile(e histest.Estimate, unit string) string {
	value, suffix, _ := strings.Cut(units.Format(e.Value, unit), " ")
	base, factor := units.Base(unit)
	if seconds := e.Value * factor; base == "seconds" && math.Abs(seconds) >= 60 {
		value, suffix = units.Format(seconds, ""), "s"
	}
	scale := map[string]float64{"ns": 1e9, "µs": 1e6, "ms": 1e3, "s": 1, "%": 100}[suffix]
	if scale == 0 {
		return estimate(e, unit)
	} else if suffix != "%" {
		scale *= factor
	}
	if e.Flags&histest.Recorded != 0 && e.Low == e.High {
		return value + " " + suffix
	}
	end := func(v float64) string {
		if math.IsNaN(v) {
			return "?"
		}
		return units.Format(v*scale, "")
	}
	text := value + " " + suffix + " [" + end(e.Low) + ", " + end(e.High) + "]"
	for i, name := range summary.FlagNames(e.Flags &^ histest.Degenerate) { // that the brackets are a bucket is seen
		if i == 0 {
			text += " "
		}
		text += name[:1]
	}
	return text
}

// outcome is the line of errors.
func (t *pageBuilder) outcome(e *engine) []string {
	var parts, of []string
	for _, d := range e.headlines([]catalog.Category{catalog.Errors}) {
		if t.idle(e, d.Labels) {
			continue
		}
		text := e.word(d) + " " + t.derivedCell(d).Text
		if note := derivedNote(d); note != "" {
			text += " (" + note + ")"
		}
		if low, _, high, _ := t.spread(e, d); high.Text != "" {
			text += ", from " + low.Text + " to " + high.Text
		}
		parts, of = append(parts, text), append(of, t.beyond(e, d))
	}
	if len(parts) == 0 {
		parts, of = []string{"no server shows them"}, []string{""}
	}
	return t.labelled("errors", strings.Join(together(parts, of), "; "))
}

// together sets each text behind what it is of, all that it is of before it.
func together(texts, of []string) (out []string) {
	var order []string
	names := map[string][]string{}
	for i, text := range texts {
		if names[text] == nil {
			order = append(order, text)
		}
		if names[text] = append(names[text], of[i]); of[i] == "" {
			names[text] = []string{""}
		}
	}
	for _, text := range order {
		if list := names[text]; list[0] != "" {
			text = strings.Join(list, ", ") + ": " + text
		}
		out = append(out, text)
	}
	return out
}

// limitLines are explain's first sentence on an engine; nothing where it was not asked.
func (t *pageBuilder) limitLines(e *engine) (out []string) {
	var texts, of []string
	for _, r := range t.o.Causes {
		if !slices.ContainsFunc(e.packs, func(p catalog.Pack) bool { return p.Name == r.Engine }) && r.Engine != e.id ||
			t.idle(e, r.Of) {
			continue
		}
		name := ""
		if len(e.scopes) > 1 || r.Of.Without(e.scopeNames()...).Len() > 0 {
			name = ofText(r.Of)
		}
		texts, of = append(texts, Limit(r, t.o.Rules)), append(of, name)
	}
	for i, line := range together(texts, of) {
		if i == 3 && !t.o.All {
			return append(out, t.labelled("", fmt.Sprintf("%d more: scrapestat explain", len(texts)-i))...)
		}
		out = append(out, t.labelled("limit", line)...)
	}
	return out
}

// Limits are what limits the engines of a run, one sentence each, with what it is of where there are several. Engines
// that no headline is of, such as those of the stages of a pipeline, tell theirs only where there is no other.
func Limits(causes []*explain.Result, headlined func(engine string) bool) []string {
	own := slices.DeleteFunc(slices.Clone(causes), func(r *explain.Result) bool { return !headlined(r.Engine) })
	if len(own) == 0 {
		own = causes
	}
	var texts, of []string
	rules := explain.DefaultRules()
	own = slices.SortedStableFunc(slices.Values(own), func(a, b *explain.Result) int {
		known := func(r *explain.Result) int { return map[bool]int{true: 1}[r.Verdict == "cannot_tell"] }
		return cmp.Compare(known(a), known(b))
	})
	for _, r := range own {
		name := ""
		if len(own) > 1 {
			name = ofText(r.Of)
		}
		texts, of = append(texts, Limit(r, rules)), append(of, cmp.Or(name, map[bool]string{true: r.Engine}[len(own) > 1]))
	}
	return together(texts, of)
}

// Limit is what limits an engine, in a sentence.
func Limit(r *explain.Result, rules *explain.Rules) string {
	if len(r.Findings) == 0 || r.Verdict == "cannot_tell" {
		return "cannot tell, not known: " + strings.Join(r.Missing, ", ")
	}
	f := r.Findings[0]
	text := r.Verdict + ": " + strings.ReplaceAll(rules.Of(f.ID).Says, "{share}", percent(f.Share))
	if f.ID == "service" {
		text += ", nothing was exhausted"
	}
	if f.Share <= 1 && !math.IsNaN(f.Seconds) { // parts of a pipeline overlap
		text += fmt.Sprintf(" (%s, %s of the mean time)", units.Format(f.Seconds, "seconds"), percent(f.Share))
	}
	return text
}

// rest has the headline quantities that the answer does not have.
func (t *pageBuilder) rest(e *engine, all bool) *table {
	of := []catalog.Category{catalog.TimeSpent, catalog.Cache, catalog.Efficiency, catalog.Check, catalog.Other}
	if all {
		of = questionOrder[:]
	}
	tab := t.load(e, of...)
	if tab.most = 6; t.o.All {
		tab.most = 0
	}
	tab.more = " (--derived shows them)"
	return tab
}

// polls is the line of what was asked of the targets.
func (t *pageBuilder) polls() []string {
	scheduled, lost, dropped := 0, 0, int64(0)
	for i := range t.run.Endpoints {
		l := &t.run.Endpoints[i].Ledger
		if t.run.Endpoints[i].Client() {
			continue
		}
		scheduled += l.Scheduled
		lost += l.Scheduled - l.StoredPolls()
		dropped += l.Lines - l.Stored
	}
	text := fmt.Sprintf("%d of %s, %d failed or skipped", scheduled, texttab.Count(t.run.Servers(), "target"), lost)
	if lost == 0 {
		text = fmt.Sprintf("%d of %s, none lost", scheduled, texttab.Count(t.run.Servers(), "target"))
	}
	if dropped > 0 {
		text += fmt.Sprintf(", %d lines dropped", dropped)
	}
	return t.labelled("polls", text)
}

// grouped are the warnings for people: a sentence for each code, with how often and where else it holds.
func (t *pageBuilder) grouped(all *table, counts map[string]int) *table {
	tab := newList("", "warnings", face("TEXT"))
	seen := map[string]bool{}
	for _, row := range all.Rows {
		code := row[1].Text
		if seen[code] {
			continue
		}
		seen[code] = true
		text := code + ": " + row[2].Text
		if where := row[0].Text; where != "" {
			text = where + ": " + text
		}
		if n := counts[code]; n > 1 {
			text += fmt.Sprintf(" (%d more)", n-1)
		}
		tab.row(only(text))
	}
	return tab
}

// colophon are the last lines: where the rest is, and what the run is, for who looks for it.
func (t *pageBuilder) colophon() {
	r := t.run
	tab := newTable("", "", face(""))
	line := func(label, text string) {
		if text != "" {
			tab.notes = append(tab.notes, texttab.Truncate(fmt.Sprintf("%-10s %s", label, texttab.Escape(text)), t.width()))
		}
	}
	var names []string
	for i := range r.Metrics {
		names = append(names, r.Metrics[i].Name)
	}
	known, unknown := r.Options.Catalog.Census(slices.Values(names))
	if r.Options.Catalog != nil && len(names) > 0 {
		text := strings.TrimPrefix(catalog.CensusText(known, unknown), "families: ")
		if len(unknown) > 0 {
			text += "; see catalog unknown RUN"
		}
		line("families", text)
	}
	line("estimator", estimatorText(r))
	line("command", strings.Join(r.Command, " "))
	line("recorded", utc(r.OriginNS)+" on "+cmp.Or(r.Host, "a host not known")+" by scrapestat "+r.Version)
	line("id", r.ID)
	if t.o.first() {
		line("more", "--derived every quantity, --families every family, --all, --metric, --by")
	}
	t.last = len(tab.notes)
	tab.row(cell{})
	t.add(tab)
}

// estimatorText names the estimator of the percentiles on the screen, and that of the files.
func estimatorText(r *summary.Run) string {
	name := cmp.Or(r.Options.Estimator, histest.Polynomial)
	if name == histest.Refined {
		return "refined, within the bounds in brackets (AIPerf's files: polynomial)"
	}
	return name
}

package html

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/compare"
	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/explain"
	"github.com/scrapestat/scrapestat/headline"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/report"
	"github.com/scrapestat/scrapestat/summary"
)

// The parts of every page.
var (
	//go:embed assets/uPlot.iife.min.js
	plotScript string
	//go:embed assets/uPlot.min.css
	plotStyle string
	//go:embed assets/uPlot.LICENSE
	plotLicence string
	//go:embed assets/page.js
	pageScript string
	//go:embed assets/page.css
	pageStyle string
	//go:embed assets/page.gohtml
	pageTemplate string
)

// defaultSeriesBytes is what the drawn series of a page may take.
const defaultSeriesBytes = 520_000

// Input is one run of a page.
type Input struct {
	// Name is what the user calls the run.
	Name string
	Run  *summary.Run
	// Timeline is what is drawn of the run; nil draws nothing. Write may join its stretches so that all runs of a page
	// have those of one length.
	Timeline *Timeline
	// Requests are those of the clients, if they were recorded.
	Requests []events.Request
	// Causes are what package explain tells of the engines of the run, by its default rules; nil shows none.
	Causes []*explain.Result
	// Open reports whether the recording was never closed: its collector was killed or is still at work.
	Open bool
}

// Options adjusts a page. The zero value is that of a file.
type Options struct {
	// Title is the headline; "" is the names of the runs.
	Title string
	// Generated is when the page was made, as it says itself; zero says nothing.
	Generated time.Time
	// Refresh is how often the page asks the server it came from for a newer one; 0 is never.
	Refresh time.Duration
	// Compare is the comparison of the runs, the first of which is its base; nil shows none.
	Compare *compare.Result
	// MaxSeriesBytes bounds the drawn series, 520,000 if 0.
	MaxSeriesBytes int
}

// Write writes the page of the runs, the first of which is the base of all comparison. It fails when there is none,
// and when w does.
func Write(w io.Writer, ins []Input, o Options) error {
	if len(ins) == 0 {
		return fmt.Errorf("write report: no run given")
	}
	o.MaxSeriesBytes = cmp.Or(max(o.MaxSeriesBytes, 0), defaultSeriesBytes)
	p, err := newPage(ins, o)
	if err != nil {
		return err
	}
	t, err := template.New("page").Parse(pageTemplate)
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	out := bufio.NewWriterSize(w, 1<<16)
	p.head(out)
	if err := t.Execute(out, p); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	p.foot(out)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// page is what the template shows. All its strings are plain text.
type page struct {
	Title     string
	Generated string
	Live      bool
	Many      bool // several runs
	Runs      []runView
	Chips     []chip
	Verdicts  []verdictLine
	Answers   []answer
	// AnswerTable stands for tiles where there are many, Busiest where no engine is known.
	AnswerTable *answerTable
	Busiest     []report.BusyTable
	RunStrips   []runStripView
	StripKeys   []stripKey
	Tiles       []tileGroup
	Notes       []string // on quantities that several engines have
	Whys        []why
	Pairs       []whyPair // where there are two runs
	Pipelines   []pipeline
	Strips      []strip
	Losses      []loss
	Warnings    []warning
	Compared    *comparison
	Families    []familyRow
	Omitted     []string // what is not in the page, in sentences
	Derived     []derivedRow
	Version     string

	ins    []Input
	o      Options
	data   pageData
	packed *payload
	tables tables
}

// FewTiles reports whether the quantities of each target are few enough to be seen at once.
func (p *page) FewTiles() bool {
	n := 0
	for _, g := range p.Tiles {
		n += len(g.Tiles)
	}
	return n <= 18 && !p.Many
}

// pageData is what the script of a page reads.
type pageData struct {
	Grids   []grid        `json:"grids"`
	Lens    []int         `json:"lens"`
	Charts  []chartJSON   `json:"charts"`
	Runs    []runJSON     `json:"runs"`
	Tables  []familyTable `json:"tables"`
	Refresh int64         `json:"refresh"` // milliseconds, 0 for never
}

// runJSON is what the script needs to know of a run. Times are seconds from the zero of the grid.
type runJSON struct {
	Name    string      `json:"name"`
	ZeroMS  float64     `json:"zero"` // the instant 0, milliseconds since 1970
	Phases  []phaseJSON `json:"phases"`
	From    float64     `json:"from"` // window
	To      float64     `json:"to"`
	Targets []string    `json:"targets"`
	Resets  []float64   `json:"resets"`
}

type phaseJSON struct {
	Name  string  `json:"name"`
	Start float64 `json:"start"`
	End   float64 `json:"end"`
}

func newPage(ins []Input, o Options) (*page, error) {
	p := &page{ins: ins, o: o, Many: len(ins) > 1, Live: o.Refresh > 0, Title: o.Title,
		Version: texttab.Escape(ins[0].Run.Version)}
	if p.Title == "" {
		var names []string
		for _, in := range ins {
			names = append(names, in.Name)
		}
		p.Title = strings.Join(names, " · ")
	}
	p.Title = clip(p.Title, 200)
	if !o.Generated.IsZero() {
		p.Generated = o.Generated.UTC().Format("2006-01-02 15:04:05 UTC")
	}
	for i := range ins {
		p.Runs = append(p.Runs, viewRun(&ins[i], i))
		p.losses(i)
		p.warnings(i)
	}
	p.Chips = p.chips()
	p.Compared = compared(o.Compare)
	p.answers()
	p.runStrips()
	p.tiles()
	for i := range ins {
		for _, note := range report.CrossNotes(ins[i].Run) {
			if note = clip(note, 400); !slices.Contains(p.Notes, note) {
				p.Notes = append(p.Notes, note)
			}
		}
	}
	p.why()
	p.pipelines()
	p.families()
	p.derived()
	if err := p.pictures(); err != nil {
		return nil, err
	}
	return p, nil
}

// pictures packs the series that are drawn, the most useful first, until the page is full.
func (p *page) pictures() error {
	g := &gallery{byKey: map[famKey]*chart{}}
	frame, shift := frameOf(p.ins)
	g.grids = []grid{frame}
	if frame.N > 0 {
		for i, in := range p.ins {
			if in.Timeline != nil {
				g.draw(i, in, shift[i])
			}
		}
	}
	g.choose()
	p.overview(g)
	p.health(g, shift)
	p.requests(g)
	p.rank(g)
	var err error
	if p.packed, err = newPayload(); err != nil {
		return err
	}
	full, first := 0, p.firstWords()
	for _, c := range g.charts {
		if c.group == groupFamily {
			p.named(c)
		}
		size, err := p.packed.size()
		if err != nil {
			return err
		}
		if size > p.o.MaxSeriesBytes {
			full++
			continue
		}
		j, err := p.packed.pack(c)
		if err != nil {
			return err
		}
		j.First = c.group == groupFamily && slices.Contains(first, c.word)
		if row, ok := p.tables.row[c.key]; ok && c.group == groupFamily {
			j.Family = row
		}
		p.data.Charts = append(p.data.Charts, j)
	}
	p.data.Grids, p.data.Lens = g.grids, p.packed.lens
	p.data.Refresh = p.o.Refresh.Milliseconds()
	for i := range p.ins {
		p.data.Runs = append(p.data.Runs, p.runData(i))
	}
	p.data.Tables = p.tables.all
	p.say(frame, g, full)
	return nil
}

// say tells what is drawn how, and what is not.
func (p *page) say(frame grid, g *gallery, full int) {
	add := func(format string, args ...any) { p.Omitted = append(p.Omitted, fmt.Sprintf(format, args...)) }
	if frame.N > 0 {
		add("Pictures are drawn from stretches of %s: rates over each, means of gauges with their lowest and highest "+
			"values, gains of buckets. Tables are exact and know nothing of that.",
			time.Duration(frame.Width*float64(time.Second)))
	}
	if g.still > 0 {
		add("%d series did not move and are not drawn.", g.still)
	}
	if g.left > 0 {
		add("%d slots (single values, such as a bucket) came after the limit of what is drawn; the tables have them.", g.left)
	}
	if full > 0 {
		add("%d families are not drawn, to keep this file small; the tables have them.", full)
	}
	if p.tables.cut > 0 {
		add("%d series and %d families are not in the tables of this page; the exports have them.", p.tables.cut,
			p.tables.cutFamilies)
	}
}

// The groups of charts.
const (
	groupOverview = "overview"
	groupClients  = "clients"
	groupHealth   = "health"
	groupFamily   = "family"
)

// rank sorts the charts: those of quantities, of clients and of health first, then families by what is known of them,
// then by name.
func (p *page) rank(g *gallery) {
	used := map[string]bool{}
	for _, in := range p.ins {
		for i := range in.Run.Derived {
			for _, f := range in.Run.Derived[i].Families {
				used[f] = used[f] || in.Run.Derived[i].Headline
			}
		}
	}
	order := map[string]int{groupOverview: 0, groupClients: 1, groupHealth: 2, groupFamily: 3}
	worth := map[*chart]int{}
	for _, c := range g.charts {
		if c.group == "" {
			c.group = groupFamily
			worth[c] = p.worth(c.key.name, used)
		}
	}
	slices.SortStableFunc(g.charts, func(a, b *chart) int {
		if c := cmp.Compare(order[a.group], order[b.group]); c != 0 || a.group != groupFamily {
			return c
		}
		return cmp.Or(cmp.Compare(worth[a], worth[b]),
			cmp.Compare(p.canonicalOrder(a.key.name), p.canonicalOrder(b.key.name)),
			cmp.Compare(a.key.name, b.key.name), cmp.Compare(a.key.typ, b.key.typ))
	})
}

// firstWords are those whose charts stand before all others: the first two latencies of the answer.
func (p *page) firstWords() (out []string) {
	heads := p.AnswerTable
	if heads == nil && len(p.Answers) > 0 {
		heads = &answerTable{Heads: p.Answers[0].Tiles}
	}
	if heads == nil {
		return nil
	}
	for _, t := range heads.Heads {
		if strings.Contains(answerWords[2]+"|"+answerWords[3], t.Word) {
			out = append(out, t.Word)
		}
	}
	return out
}

// named gives the chart of a family the words and the unit that the catalog has for it.
func (p *page) named(c *chart) {
	f, ok := p.ins[0].Run.Options.Catalog.Family(c.key.name)
	if !ok {
		return
	}
	c.help, c.unit = cmp.Or(f.Meaning, c.help), cmp.Or(f.Unit, c.unit)
	if w, _, ok := headline.Parse(f.Canonical); ok {
		c.title, c.word = w.Title, w.Name
	}
}

// canonicalOf is the id across engines of a family, "" for none.
func (p *page) canonicalOf(name string) string {
	return p.ins[0].Run.Options.Catalog.Canonical(name)
}

// canonicalOrder is the place of a family among the quantities that engines have in common.
func (p *page) canonicalOrder(name string) int {
	id := p.canonicalOf(name)
	return slices.IndexFunc(catalog.Canonicals(), func(c catalog.Canonical) bool { return c.ID == id })
}

// worth is how soon a family is drawn: one that engines have in common before one that a quantity at the top is made
// of, before others of an engine.
func (p *page) worth(name string, used map[string]bool) int {
	c := p.ins[0].Run.Options.Catalog
	f, known := c.Family(name)
	switch {
	case known && f.Canonical != "":
		return 0
	case used[name]:
		return 1
	case known && f.Engine != "generic":
		return 2
	}
	return 3
}

// runData is a run for the script.
func (p *page) runData(i int) runJSON {
	in := &p.ins[i]
	zero := zeroOf(*in)
	at := func(ns int64) float64 { return float64(ns-zero) / 1e9 }
	r := runJSON{Name: clip(in.Name, 80), ZeroMS: float64(zero) / 1e6, From: at(in.Run.Window.StartNS),
		To: at(in.Run.Window.EndNS)}
	for _, ph := range in.Run.Phases {
		if len(r.Phases) == 200 {
			break
		}
		r.Phases = append(r.Phases, phaseJSON{clip(ph.Name, 60), at(ph.StartNS), at(ph.EndNS)})
	}
	for e := range in.Run.Endpoints {
		r.Targets = append(r.Targets, endpointLabel(in.Run, e))
	}
	if in.Timeline != nil {
		for _, ns := range in.Timeline.resets() {
			r.Resets = append(r.Resets, at(ns))
		}
	}
	return r
}

// zeroOf is the instant that pictures of a run count their time from: the start of its window.
func zeroOf(in Input) int64 {
	if in.Run.Window.StartNS > 0 {
		return in.Run.Window.StartNS
	}
	return in.Run.OriginNS
}

// head writes the page up to its body's content.
func (p *page) head(w *bufio.Writer) {
	csp := "default-src 'none'; script-src '" + hash(plotScript) + "' '" + hash(pageScript) + "'; style-src '" +
		hash(plotStyle+pageStyle) + "'; img-src data:; base-uri 'none'; form-action 'none'"
	if p.Live {
		csp += "; connect-src 'self'"
	}
	fmt.Fprintf(w, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"+
		"<meta http-equiv=\"Content-Security-Policy\" content=\"%s\">\n"+
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"+
		"<meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"color-scheme\" content=\"light dark\">\n"+
		"<meta name=\"generator\" content=\"scrapestat\">\n<link rel=\"icon\" href=\"data:,\">\n<title>%s – "+
		"scrapestat</title>\n"+
		"<style>%s</style>\n</head>\n", csp, template.HTMLEscapeString(texttab.Escape(p.Title)), plotStyle+pageStyle)
}

// foot writes the data, the scripts and the end. Nothing in the data can end its element: it is base64.
func (p *page) foot(w *bufio.Writer) {
	meta, err := deflated(&p.data)
	if err == nil {
		var series string
		if series, err = p.packed.text(); err == nil {
			fmt.Fprintf(w, "<script type=\"application/octet-stream\" id=\"meta\">%s</script>\n"+
				"<script type=\"application/octet-stream\" id=\"series\">%s</script>\n", meta, series)
		}
	}
	fmt.Fprintf(w, "<!--\n%s\n-->\n<script>%s</script>\n<script>%s</script>\n</body>\n</html>\n", plotLicence, plotScript,
		pageScript)
}

// hash is a source of a Content-Security-Policy that allows one text.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// clip makes a text of anybody's plain and short.
func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		s = string(r[:n-1]) + "…"
	}
	return texttab.Escape(s)
}

// endpointLabel is the short name of a target.
func endpointLabel(r *summary.Run, i int) string {
	if i < 0 || i >= len(r.Endpoints) {
		return "target " + strconv.Itoa(i)
	}
	if e := &r.Endpoints[i]; e.Name != "" {
		return clip(e.Name, 60)
	}
	return clip(strings.TrimSuffix(strings.TrimPrefix(r.Endpoints[i].URL, "http://"), "/metrics"), 60)
}

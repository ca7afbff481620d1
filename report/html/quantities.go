package html

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/headline"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/units"
)

// The limits of what is shown of derived quantities.
const (
	maxTileGroups = 16
	maxTiles      = 48 // of a group
	maxDerived    = 2000
)

// tileGroup is the quantities of one target that people ask for first.
type tileGroup struct {
	Target, Engine string
	Tiles          []tile
}

// tile is one quantity, in each run.
type tile struct {
	Name, Help, Labels string
	Values             []tileValue
	Families           string
}

type tileValue struct {
	Run, Text, Note, Change string
	Spark                   template.HTML

	run int
	ys  []float64 // what is drawn
}

// quantity identifies a derived quantity of a target over runs.
type quantity struct{ target, pack, name, labels string }

func keyOf(r *summary.Run, d *summary.Derived) quantity {
	return quantity{endpointLabel(r, d.Endpoint), d.Pack, d.Name, d.Labels.String()}
}

// tiles fills in the quantities at the top of the page: by the targets of the first run, then those that only later
// runs have.
func (p *page) tiles() {
	type place struct{ group, tile int }
	places, bases := map[quantity]place{}, map[quantity]*summary.Derived{}
	groups := map[string]int{}
	for run, in := range p.ins {
		for i := range in.Run.Derived {
			d := &in.Run.Derived[i]
			if !isHeadline(d) {
				continue
			}
			k := keyOf(in.Run, d)
			at, ok := places[k]
			if !ok {
				group, known := groups[k.target]
				if !known {
					if len(p.Tiles) == maxTileGroups {
						continue
					}
					group = len(p.Tiles)
					groups[k.target] = group
					p.Tiles = append(p.Tiles, p.newTileGroup(run, d.Endpoint))
				}
				if len(p.Tiles[group].Tiles) == maxTiles {
					continue
				}
				at = place{group, len(p.Tiles[group].Tiles)}
				places[k] = at
				p.Tiles[group].Tiles = append(p.Tiles[group].Tiles, tile{Name: title(d), Help: helpOf(d),
					Labels: clip(labelText(d), 80), Families: clip(strings.Join(d.Families, ", "), 300)})
			}
			t := &p.Tiles[at.group].Tiles[at.tile]
			v := p.tileValue(run, d)
			if base := bases[k]; base != nil && d.Status.Defined() && base.Shown != 0 {
				v.Change = signed(d.Shown/base.Shown - 1)
			} else if run == 0 {
				bases[k] = d
			}
			t.Values = append(t.Values, v)
		}
	}
	for _, g := range p.Tiles {
		for i := range g.Tiles {
			sparks(g.Tiles[i].Values)
		}
	}
}

func (p *page) newTileGroup(run, endpoint int) tileGroup {
	in := &p.ins[run]
	g := tileGroup{Target: endpointLabel(in.Run, endpoint)}
	if in.Timeline != nil {
		g.Engine = clip(in.Timeline.engines(endpoint), 80)
	}
	return g
}

// tileValue is the quantity in one run, with how it changed from the base.
func (p *page) tileValue(run int, d *summary.Derived) tileValue {
	v := tileValue{Run: p.runName(run), Text: derivedText(d), Note: noteOf(d), run: run}
	for _, s := range d.Slices {
		if s.Partial {
			continue // too short to be compared with the others
		}
		y := math.NaN()
		if s.Status.Defined() {
			y = s.Shown
		}
		v.ys = append(v.ys, y)
	}
	return v
}

// labelText is what tells a quantity from others of its target.
func labelText(d *summary.Derived) string {
	var parts []string
	for name, val := range d.Labels.All() {
		if val != "" {
			parts = append(parts, name+"="+val)
		}
	}
	return strings.Join(parts, " ")
}

// title writes a name of the catalog for people, as screens do where it is a word of the vocabulary: "output_tok_s" is
// "output tokens".
func title(d *summary.Derived) string {
	if w, ok := wordOf(d); ok {
		return w.Title
	}
	name := d.Name
	if strings.HasSuffix(d.Unit, "/s") {
		name = strings.TrimSuffix(strings.TrimSuffix(name, "_s"), "_per")
	}
	return clip(strings.ReplaceAll(name, "_", " "), 80)
}

// wordOf is the word of a quantity that is what the word alone means; the mean of a latency is not.
func wordOf(d *summary.Derived) (headline.Word, bool) {
	w, _, ok := headline.Parse(d.Canonical)
	return w, ok && w.Kind != headline.Distribution
}

// derivedText is the value as people read it, a dash where there is none.
func derivedText(d *summary.Derived) string {
	if !d.Status.Defined() {
		return "–"
	}
	return unitText(d.Shown, d.Unit)
}

// unitText writes a value with the unit of a derived quantity.
func unitText(v float64, unit string) string {
	if strings.HasSuffix(unit, "/s") || unit == "count" {
		return strings.TrimSpace(plain(v) + " " + strings.TrimPrefix(unit, "count"))
	}
	return units.Format(v, unit)
}

// noteOf is the status where it is not plain, and the flags.
func noteOf(d *summary.Derived) string {
	var words []string
	if d.Status != catalog.OK {
		words = append(words, strings.ReplaceAll(d.Status.String(), "_", " "))
	}
	return clip(strings.Join(append(words, d.Flags...), ", "), 120)
}

// derivedRow is a derived quantity in the full table.
type derivedRow struct{ Run, Target, Pack, Name, Labels, Value, Parts, Note, Families string }

func (p *page) derived() {
	left := 0
	for run, in := range p.ins {
		for i := range in.Run.Derived {
			if len(p.Derived) == maxDerived {
				left++
				continue
			}
			d := &in.Run.Derived[i]
			row := derivedRow{p.runName(run), endpointLabel(in.Run, d.Endpoint), clip(d.Pack, 40), clip(d.Name, 80),
				clip(labelText(d), 160), derivedText(d), "", noteOf(d), clip(strings.Join(d.Families, ", "), 300)}
			if d.HasParts && d.Status.Defined() {
				row.Parts = plain(d.Numerator) + " / " + plain(d.Denominator)
			}
			p.Derived = append(p.Derived, row)
		}
	}
	if left > 0 {
		p.Omitted = append(p.Omitted, fmt.Sprintf("%d derived quantities are not in this page; the exports have them.", left))
	}
}

// overview draws the quantities at the top over their slices.
func (p *page) overview(g *gallery) {
	charts := map[string]*chart{}
	width := time.Duration(0) // of runs of about one length slices are about as wide: they are drawn together
	for _, in := range p.ins {
		width = max(width, in.Run.Options.Slice)
	}
	for run, in := range p.ins {
		if in.Run.Options.Slice <= 0 {
			continue
		}
		at := g.gridOf(grid{Start: float64(in.Run.Window.StartNS-zeroOf(in)) / 1e9, Width: width.Seconds(),
			N: p.mostSlices(width)})
		for i := range in.Run.Derived {
			d := &in.Run.Derived[i]
			if !isHeadline(d) || len(d.Slices) < 2 {
				continue
			}
			id := fmt.Sprint(at, d.Name)
			c := charts[id]
			if c == nil {
				w, _ := wordOf(d)
				c = &chart{key: famKey{name: title(d)}, word: w.Name, help: helpOf(d), unit: d.Unit, grid: at,
					group: groupOverview, order: overviewOrder(d)}
				charts[id] = c
				g.charts = append(g.charts, c)
			}
			c.lines = append(c.lines, sliceLine(run, in.Run, d, width, g.grids[at].N))
		}
	}
	for _, c := range charts {
		c.banded()
	}
	slices.SortStableFunc(g.charts, func(a, b *chart) int {
		if a.group != groupOverview || b.group != groupOverview {
			return 0
		}
		return cmp.Compare(a.order, b.order)
	})
}

// overviewOrder is that of the charts at the top.
func overviewOrder(d *summary.Derived) int {
	order := []string{"output_tok_s", "request_rate", "running", "waiting", "kv_usage", "error_ratio"}
	if i := slices.Index(order, d.Canonical); i >= 0 {
		return i
	}
	return len(order)
}

// mostSingles is how many targets of a run are drawn one by one.
const mostSingles = 5

// banded draws a fleet as a band: the median of its targets with what nine tenths of them are between, and the targets
// with the lowest and the highest mean.
func (c *chart) banded() {
	byRun := map[int][]line{}
	var runs []int
	for _, l := range c.lines {
		if byRun[l.run] == nil {
			runs = append(runs, l.run)
		}
		byRun[l.run] = append(byRun[l.run], l)
	}
	c.lines = nil
	for _, run := range runs {
		list := byRun[run]
		if len(list) <= mostSingles {
			c.lines = append(c.lines, list...)
			continue
		}
		for i := range list {
			list[i].size = meanKnown(list[i].avg)
		}
		slices.SortStableFunc(list, func(a, b line) int { return cmp.Compare(a.size, b.size) })
		n := len(list[0].avg)
		band := line{run: run, target: -1, avg: blank(n), lo: blank(n), hi: blank(n),
			label: fmt.Sprintf("median of %d, band of nine tenths", len(list))}
		for j := range n {
			var known []float32
			for i := range list {
				if v := list[i].avg[j]; v == v {
					known = append(known, v)
				}
			}
			if k := len(known); k > 0 {
				slices.Sort(known)
				band.lo[j], band.avg[j], band.hi[j] = known[k/20], known[k/2], known[k-1-k/20]
			}
		}
		c.bands = true
		c.lines = append(c.lines, band, list[0], list[len(list)-1])
		c.left += len(list) - 2
	}
	if over := len(c.lines) - maxLines; over > 0 {
		c.left += over
		c.lines = c.lines[:maxLines]
	}
}

// meanKnown is the mean of the values that are known.
func meanKnown(list []float32) float64 {
	sum, n := 0.0, 0
	for _, v := range list {
		if v == v {
			sum, n = sum+float64(v), n+1
		}
	}
	return sum / float64(max(n, 1))
}

// mostSlices is how many slices of a width the longest run has.
func (p *page) mostSlices(width time.Duration) int {
	n := 1
	for _, in := range p.ins {
		w := in.Run.Window
		n = max(n, int((w.EndNS-w.StartNS+int64(width)-1)/int64(width)))
	}
	return min(n, 5000)
}

func sliceLine(run int, r *summary.Run, d *summary.Derived, width time.Duration, n int) line {
	l := line{run: run, target: d.Endpoint, label: seriesLabel(endpointLabel(r, d.Endpoint), labelText(d)), avg: blank(n)}
	in := make([]int, n) // slices that begin in a column, which shows their mean
	for _, s := range d.Slices {
		if j := int((s.StartNS - r.Window.StartNS) / int64(width)); s.Status.Defined() && !s.Partial && j >= 0 && j < n {
			if in[j]++; in[j] == 1 {
				l.avg[j] = 0
			}
			l.avg[j] += (float32(s.Shown) - l.avg[j]) / float32(in[j])
		}
	}
	return l
}

// gridOf returns the number of a grid, adding it when it is new.
func (g *gallery) gridOf(want grid) int {
	for i := 1; i < len(g.grids); i++ {
		if have := &g.grids[i]; have.Start == want.Start && have.Width == want.Width && have.N == want.N {
			return i
		}
	}
	g.grids = append(g.grids, want)
	return len(g.grids) - 1
}

// health draws how long each target took to answer.
func (p *page) health(g *gallery, shift []int) {
	c := &chart{key: famKey{name: "scrape time"}, unit: "seconds", group: groupHealth,
		help: "How long a target took to answer a scrape, from the request to the last byte: mean, lowest and highest."}
	for run, in := range p.ins {
		if in.Timeline == nil || g.grids[0].N == 0 {
			continue
		}
		in.Timeline.mu.Lock()
		tracks := append([]*track(nil), in.Timeline.targets...)
		in.Timeline.mu.Unlock()
		for target, k := range tracks {
			if k == nil {
				continue
			}
			k.mu.Lock()
			at := painter{k: k, shift: shift[run], n: g.grids[0].N}
			if len(p.Strips) < maxStrips {
				p.Strips = append(p.Strips, p.strip(run, target, &at))
			}
			if k.took.n > 0 && len(c.lines) < maxLines {
				l := line{run: run, target: target, label: seriesLabel(p.runName(run), endpointLabel(in.Run, target))}
				l.avg, l.lo, l.hi = at.level(&k.took)
				c.lines, c.bands = append(c.lines, l), true
			} else if k.took.n > 0 {
				c.left++
			}
			k.mu.Unlock()
		}
	}
	if len(c.lines) > 0 {
		g.charts = append(g.charts, c)
	}
}

// rated reports whether the lines of a chart are rates of a counter.
func (c *chart) rated() bool { return c.group == groupFamily && c.key.typ.String() == "counter" }

// isHeadline reports whether a quantity is one that people ask for first, and is there. A check is shown when it found
// something.
func isHeadline(d *summary.Derived) bool {
	return d.Headline && d.Status.Defined() && (d.Category != catalog.Check || d.Shown != 0)
}

// helpOf is what the catalog says of a quantity, and how it is made.
func helpOf(d *summary.Derived) string { return clip(strings.TrimSpace(d.Help), 400) }

// better is the way a quantity gets better, in a word; "" when neither is.
func better(d catalog.Direction) string {
	switch d {
	case catalog.HigherBetter:
		return "higher is better"
	case catalog.LowerBetter:
		return "lower is better"
	}
	return ""
}

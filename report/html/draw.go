package html

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/units"
)

// How much of a family is drawn.
const (
	maxLines = 12 // of a chart, those of the largest values
	maxHeats = 8  // heat maps of single series in a chart, besides those of all together
)

// grid is the stretches of time that values are drawn for, in seconds from the start of the load.
type grid struct {
	Start float64 `json:"start"`
	Width float64 `json:"width"`
	N     int     `json:"n"`
}

// chart is what one family, or one derived quantity, looked like over time.
type chart struct {
	key   famKey
	title string // what people call a family
	word  string // of the vocabulary
	help  string
	unit  string
	heats []heat
	lines []line
	grid  int
	bands bool // the lines have extremes
	left  int  // series that moved and are not drawn
	group string
	order int // among those of the overview
}

// famKey says which family of all runs and targets a chart is of.
type famKey struct {
	name string
	typ  metric.Type
}

// line is one series: avg holds NaN where nothing is known.
type line struct {
	run, target int
	label       string
	avg, lo, hi []float32
	size        float64 // mean of its absolute values, to choose by
}

// heat is the gains of a histogram's buckets over time.
type heat struct {
	run, target int
	label       string
	bounds      []float64   // upper ones, ascending; the last may be +Inf
	counts      [][]float32 // by bucket, then stretch; NaN where nothing is known
	size        float64
}

// gallery is the charts of all runs.
type gallery struct {
	charts []*chart
	byKey  map[famKey]*chart
	grids  []grid
	still  int // series that did not move and are not drawn
	left   int // series beyond what a timeline follows
}

func (g *gallery) chart(k famKey, help string, gridN int) *chart {
	c := g.byKey[k]
	if c == nil {
		c = &chart{key: k, help: help, unit: unitOf(k.name, help), grid: gridN}
		g.byKey[k] = c
		g.charts = append(g.charts, c)
	}
	return c
}

// unitOf is the unit a family is shown in.
func unitOf(name, help string) string {
	if u := units.InferExtended(name, help, ""); u != "" {
		return u
	}
	return units.Infer(name, help)
}

// frameOf puts the timelines of all runs on one grid, each moved so that its load begins at 0, by whole stretches when
// there are several.
func frameOf(ins []Input) (grid, []int) {
	width, from, to := int64(0), 0, 0
	for _, in := range ins {
		if in.Timeline != nil {
			width = max(width, in.Timeline.widest())
		}
	}
	if width == 0 {
		return grid{}, nil
	}
	shift := make([]int, len(ins))
	start := 0.0
	for i, in := range ins {
		if in.Timeline == nil {
			continue
		}
		lo, hi := in.Timeline.widen(width)
		zero := float64(zeroOf(in)-in.Timeline.o.OriginNS) / float64(width)
		shift[i] = int(math.Round(zero))
		if len(ins) == 1 {
			start = (float64(shift[i]) - zero) * float64(width) / 1e9
		}
		from, to = min(from, lo-shift[i]), max(to, hi-shift[i])
	}
	for i := range shift {
		shift[i] += from
	}
	return grid{Start: start + float64(from)*float64(width)/1e9, Width: float64(width) / 1e9, N: to - from}, shift
}

// widest is the length of the stretches of the target that has the longest.
func (t *Timeline) widest() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.o.width()
	for _, k := range t.targets {
		if k != nil {
			k.mu.Lock()
			w = max(w, k.width)
			k.mu.Unlock()
		}
	}
	return w
}

// widen gives all targets stretches of one length and returns which are in use.
func (t *Timeline) widen(width int64) (from, to int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	from = maxBins
	for _, k := range t.targets {
		if k == nil {
			continue
		}
		k.mu.Lock()
		for k.width < width {
			k.join()
		}
		if k.n > 0 {
			from, to = min(from, k.at(k.first)), max(to, k.n)
		}
		k.mu.Unlock()
	}
	return min(from, to), to
}

// draw adds the families of a timeline to the gallery. shift is the stretch of the timeline that is the first of the
// grid.
func (g *gallery) draw(run int, in Input, shift int) {
	t := in.Timeline
	t.mu.Lock()
	tracks := slices.Clone(t.targets)
	t.mu.Unlock()
	for target, k := range tracks {
		if k == nil {
			continue
		}
		k.mu.Lock()
		k.settle()
		p := painter{g: g, k: k, run: run, target: target, shift: shift, n: g.grids[0].N, name: endpointLabel(in.Run, target)}
		for s := range k.dict.Series {
			p.series(s)
		}
		g.left += k.left
		k.mu.Unlock()
	}
}

// settle enters the levels up to the last poll.
func (k *track) settle() {
	for _, l := range k.lanes {
		if l != nil && l.level && l.here {
			l.stand(&k.bins, k.last)
		}
	}
	if k.took.here {
		k.took.stand(&k.bins, k.last)
	}
}

// painter draws the series of one target.
type painter struct {
	g                     *gallery
	k                     *track
	run, target, shift, n int
	name                  string
}

func (p *painter) series(s int) {
	f := p.k.dict.FamilyOf(s)
	labels := p.k.dict.Series[s].Labels
	switch f.Type {
	case metric.Histogram:
		p.histogram(f, s, labels)
	case metric.Counter, metric.Gauge, metric.Unknown, metric.Summary, metric.StateSet:
		for _, slot := range p.k.dict.SlotsOf(s) {
			l := p.k.lanes[slot]
			if l == nil || l.n == 0 || f.Type == metric.Summary && !l.level {
				continue
			}
			label := labels.String()
			if sl := p.k.dict.Slots[slot]; sl.Role == metric.RoleQuantile {
				label += " quantile " + sl.Text
			}
			p.line(f, l, label)
		}
	}
}

// line draws a counter or gauge that moved.
func (p *painter) line(f *metric.Family, l *lane, label string) {
	ln := line{run: p.run, target: p.target, label: seriesLabel(p.name, label)}
	if l.level {
		ln.avg, ln.lo, ln.hi = p.level(l)
	} else {
		ln.avg = p.rate(l, 1/(float64(p.k.width)/1e9))
	}
	moved, n := false, 0
	lo, hi := float32(math.Inf(1)), float32(math.Inf(-1))
	for i, v := range ln.avg {
		if v != v {
			continue
		}
		n++
		ln.size += math.Abs(float64(v))
		if l.level {
			lo, hi = min(lo, ln.lo[i]), max(hi, ln.hi[i])
		} else {
			moved = moved || v != 0
		}
	}
	if !moved && !(hi > lo) {
		p.g.still++
		return
	}
	ln.size /= float64(max(n, 1))
	c := p.g.chart(famKey{f.Name, f.Type}, f.Help, 0)
	for i := range ln.lo {
		c.bands = c.bands || ln.hi[i] > ln.lo[i]
	}
	c.lines = append(c.lines, ln)
}

// level draws a gauge.
func (p *painter) level(l *lane) (avg, lo, hi []float32) {
	avg, lo, hi = blank(p.n), blank(p.n), blank(p.n)
	for i := range avg {
		j := i + p.shift
		if j < 0 || j >= len(l.sum) || p.masked(j) || l.weight[j] <= 0 && l.lo[j] > l.hi[j] {
			continue
		}
		if avg[i] = l.lo[j]; l.weight[j] > 0 {
			avg[i] = l.sum[j] / l.weight[j]
		}
		lo[i], hi[i] = l.lo[j], l.hi[j]
	}
	return avg, lo, hi
}

// minKnown is the part of a stretch that must be known for its rate to be drawn.
const minKnown = 0.4

// rate draws what was gained, times factor, as if each stretch were whole.
func (p *painter) rate(l *lane, factor float64) []float32 {
	out := blank(p.n)
	for i := range out {
		j := i + p.shift
		if j < 0 || j >= p.k.n || p.masked(j) {
			continue
		}
		known := 1.0
		if l.from > p.k.origin+int64(j)*p.k.width || !l.here || len(l.holes) > 0 || j == p.k.n-1 {
			known = l.known(&p.k.bins, j, p.k.last)
		}
		if known < minKnown {
			continue
		}
		v := float32(0)
		if j < len(l.sum) {
			v = l.sum[j]
		}
		out[i] = float32(float64(v) * factor / known)
	}
	return out
}

// masked reports whether nothing was polled in a stretch.
func (p *painter) masked(j int) bool {
	s := span{p.k.origin + int64(j)*p.k.width, p.k.origin + int64(j+1)*p.k.width}
	return slices.ContainsFunc(p.k.gaps, func(g span) bool {
		return float64(overlap(s, g)) > (1-minKnown)*float64(p.k.width)
	})
}

// histogram draws the buckets of a series that gained something.
func (p *painter) histogram(f *metric.Family, s int, labels metric.Labels) {
	type bucket struct {
		upper float64
		lane  *lane
	}
	var bs []bucket
	for _, slot := range p.k.dict.SlotsOf(s) {
		if sl := &p.k.dict.Slots[slot]; sl.Role == metric.RoleBucket && p.k.lanes[slot] != nil && p.k.lanes[slot].n > 0 {
			bs = append(bs, bucket{sl.Bound, p.k.lanes[slot]})
		}
	}
	if len(bs) == 0 {
		return
	}
	slices.SortFunc(bs, func(a, b bucket) int { return cmp.Compare(a.upper, b.upper) })
	h := heat{run: p.run, target: p.target, label: seriesLabel(p.name, labels.String())}
	var below []float32
	for _, b := range bs {
		cum := p.rate(b.lane, 1)
		h.bounds = append(h.bounds, b.upper)
		own := slices.Clone(cum)
		for i := range own {
			if below != nil {
				own[i] -= below[i]
			}
			if own[i] < 0 || own[i] < 1e-4*cum[i] { // what spreading leaves of nothing
				own[i] = 0
			}
			if own[i] == own[i] {
				h.size += float64(own[i])
			}
		}
		h.counts, below = append(h.counts, own), cum
	}
	if h.size == 0 {
		p.g.still++
		return
	}
	c := p.g.chart(famKey{f.Name, f.Type}, f.Help, 0)
	c.heats = append(c.heats, h)
}

func blank(n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(math.NaN())
	}
	return out
}

func seriesLabel(endpoint, labels string) string {
	if labels == "" {
		return endpoint
	}
	return endpoint + " " + labels
}

// choose keeps what is drawn of each family, and adds to the histograms of several series what all of a run with the
// same bounds make together.
func (g *gallery) choose() {
	for _, c := range g.charts {
		if len(c.lines) > maxLines {
			slices.SortStableFunc(c.lines, func(a, b line) int { return cmp.Compare(b.size, a.size) })
			c.left += len(c.lines) - maxLines
			c.lines = c.lines[:maxLines]
		}
		if len(c.heats) < 2 {
			continue
		}
		slices.SortStableFunc(c.heats, func(a, b heat) int { return cmp.Compare(b.size, a.size) })
		together := pooled(c.heats)
		if len(c.heats) > maxHeats {
			c.left += len(c.heats) - maxHeats
			c.heats = c.heats[:maxHeats]
		}
		c.heats = append(together, c.heats...)
	}
}

// pooled adds up the histograms of each run that have the bounds of its largest.
func pooled(hs []heat) []heat {
	var out []heat
	for _, h := range hs {
		i := slices.IndexFunc(out, func(o heat) bool { return o.run == h.run })
		if i < 0 {
			all := h
			all.target, all.counts = -1, nil
			for _, c := range h.counts {
				all.counts = append(all.counts, slices.Clone(c))
			}
			all.label = "1"
			out = append(out, all)
			continue
		}
		if !slices.Equal(out[i].bounds, h.bounds) {
			continue
		}
		n, _ := strconv.Atoi(out[i].label)
		out[i].label = strconv.Itoa(n + 1)
		out[i].size += h.size
		for b, counts := range h.counts {
			for j, v := range counts {
				switch have := out[i].counts[b][j]; {
				case have != have:
					out[i].counts[b][j] = v
				case v == v:
					out[i].counts[b][j] = have + v
				}
			}
		}
	}
	out = slices.DeleteFunc(out, func(h heat) bool { return h.label == "1" })
	for i := range out {
		out[i].label = "all " + out[i].label + " series together"
	}
	return out
}

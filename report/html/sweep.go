package html

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"

	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/report"
	"github.com/scrapestat/scrapestat/sweep"
	"github.com/scrapestat/scrapestat/units"
)

//go:embed assets/sweep.gohtml
var sweepTemplate string

// WriteSweep writes sweeps as one page without a script: curves over the load, then the points of each. Everything from
// runs is escaped.
func WriteSweep(w io.Writer, sweeps []*sweep.Sweep) error {
	page := sweepPage{Title: "Load sweep"}
	for i, s := range sweeps {
		page.Keys = append(page.Keys, sweepText{sweepClass(i), texttab.Escape(report.SweepTitle(s))})
		part := sweepPart{Title: texttab.Escape(report.SweepTitle(s)), Lines: report.SweepLines(s)}
		for k := range part.Lines {
			part.Lines[k].Text = texttab.Escape(part.Lines[k].Text)
		}
		t := report.SweepTable(s)
		for _, c := range t.Columns {
			part.Heads = append(part.Heads, c.Head)
		}
		for _, row := range t.Rows {
			var cells []string
			for _, c := range row {
				cells = append(cells, texttab.Escape(c.Text))
			}
			part.Rows = append(part.Rows, cells)
		}
		page.Sweeps = append(page.Sweeps, part)
	}
	page.Charts = sweepCharts(sweeps)
	t, err := template.New("sweep").Parse(sweepTemplate)
	if err != nil {
		return fmt.Errorf("parse page: %w", err)
	}
	if err := t.Execute(w, page); err != nil {
		return fmt.Errorf("write sweep: %w", err)
	}
	return nil
}

type sweepPage struct {
	Title  string
	Keys   []sweepText
	Charts []*sweepChart
	Sweeps []sweepPart
}

type sweepText struct{ Class, Text string }

type sweepPart struct {
	Title string
	Heads []string
	Rows  [][]string
	Lines []report.SweepLine
}

func sweepClass(i int) string { return fmt.Sprintf("c%d", i%6) }

// The size of a picture, without its labels.
const sweepWidth, sweepHeight = 480.0, 210.0

// sweepChart is a picture of curves.
type sweepChart struct {
	Title, Load string
	Width       float64
	X, Y        []sweepTick
	Guides      []sweepGuide
	Lines       []*sweepCurve
	unit        string
	log         bool
	left, right float64 // of the axis of loads
	low, high   float64
}

type sweepTick struct {
	At   float64
	Text string
}

type sweepGuide struct {
	Path, Text string
	Y          float64
}

// sweepCurve is a line with its points; X and Y are where its name stands.
type sweepCurve struct {
	Class, Style, Path, Text string
	X, Y                     float64
	Points                   []sweepDot
	dots                     []sweepValue
}

type sweepDot struct {
	X, Y                float64
	Class, Title, Bound string
}

// sweepValue is a point before it has a place.
type sweepValue struct {
	x, y, low, high float64
	p               *sweep.Point
}

// sweepCharts are the pictures of sweeps of one unit of load, of the first one's unit.
func sweepCharts(sweeps []*sweep.Sweep) []*sweepChart {
	row := func(name string) func(*sweep.Sweep, *sweep.Point) sweep.Value {
		return func(_ *sweep.Sweep, p *sweep.Point) sweep.Value { return p.Value(name) }
	}
	number := func(get func(*sweep.Sweep, *sweep.Point) float64) func(*sweep.Sweep, *sweep.Point) sweep.Value {
		return func(s *sweep.Sweep, p *sweep.Point) sweep.Value {
			v := get(s, p)
			return sweep.Value{Value: v, Low: v, High: v}
		}
	}
	charts := []*sweepChart{{Title: "TTFT: mean, and p99 (dashed)", unit: "seconds", log: true},
		{Title: "ITL: mean, and p99 (dashed)", unit: "seconds"}, {Title: "requests ended per second"},
		{Title: "tokens of answers per second"}, {Title: "requests running, and waiting (dashed)"},
		{Title: "KV cache in use: mean, and peak (dashed)", unit: "ratio"},
		{Title: "tokens/s of a GPU by tokens/s of a user"}}
	for i, s := range sweeps {
		if s.Unit != sweeps[0].Unit {
			continue
		}
		for k, names := range [][2]string{{"ttft_mean", "ttft_p99"}, {"itl_mean", "itl_p99"}} {
			charts[k].add(s, i, "", row(names[0]))
			charts[k].add(s, i, "thin", row(names[1]))
		}
		charts[2].add(s, i, "", number(func(_ *sweep.Sweep, p *sweep.Point) float64 { return p.X }))
		charts[3].add(s, i, "", row("output_tok_s"))
		charts[4].add(s, i, "", number(func(_ *sweep.Sweep, p *sweep.Point) float64 { return p.MeanRunning }))
		charts[4].add(s, i, "thin", number(func(_ *sweep.Sweep, p *sweep.Point) float64 { return p.MeanWaiting }))
		charts[5].add(s, i, "", row("kv_usage"))
		charts[5].add(s, i, "thin", row("kv_peak"))
		charts[6].add(s, i, "", number(func(s *sweep.Sweep, p *sweep.Point) float64 { return s.PerGPU(p) }))
	}
	var out []*sweepChart
	for k, c := range charts {
		if c.scale(k == 6) {
			c.Load = "load, " + sweeps[0].Unit
			if k == 6 {
				c.Load = "tokens/s of a user"
			}
			if k == 2 && sweeps[0].Unit == sweep.PerSecond {
				c.line("all that was offered", func(x float64) float64 { return x })
			}
			c.limits(sweeps, []string{"ttft_", "itl_"}, k)
			out = append(out, c)
		}
	}
	return out
}

// add adds a curve of a sweep.
func (c *sweepChart) add(s *sweep.Sweep, i int, style string,
	get func(*sweep.Sweep, *sweep.Point) sweep.Value) {
	curve := &sweepCurve{Class: sweepClass(i), Style: style}
	if style == "" {
		curve.Text = texttab.Escape(s.Name)
	}
	for k := range s.Points {
		p := &s.Points[k]
		if v := get(s, p); v.Why == "" && !math.IsNaN(v.Value) && !math.IsInf(v.Value, 0) {
			curve.dots = append(curve.dots, sweepValue{p.Load, v.Value, v.Low, v.High, p})
		}
	}
	if len(curve.dots) > 0 {
		c.Lines = append(c.Lines, curve)
	}
}

// scale gives everything its place; byUser takes what a user gets for the axis. It reports whether there is anything.
func (c *sweepChart) scale(byUser bool) bool {
	c.Width = sweepWidth + 130
	c.left, c.low, c.high = 0, math.Inf(1), 0
	n := 0
	for _, curve := range c.Lines {
		for k := range curve.dots {
			d := &curve.dots[k]
			if byUser {
				d.x = d.p.PerUser()
			}
			if c.log && !(d.y > 0) || math.IsNaN(d.x) {
				continue
			}
			c.right, c.high, c.low, n = max(c.right, d.x), max(c.high, d.y), min(c.low, d.y), n+1
		}
	}
	if n == 0 || !(c.right > 0) {
		return false
	}
	c.right *= 1.05
	if c.log {
		c.low, c.high = math.Pow(10, math.Floor(math.Log10(c.low))), math.Pow(10, math.Ceil(math.Log10(c.high)))
		for v := c.low; v <= c.high*1.01; v *= 10 {
			c.Y = append(c.Y, sweepTick{c.y(v), units.Format(v, c.unit)})
		}
	} else {
		step := niceStep(c.high)
		c.low, c.high = 0, step*math.Ceil(c.high/step-1e-9)
		for v := 0.0; v <= c.high*1.0001; v += step {
			c.Y = append(c.Y, sweepTick{c.y(v), units.Format(v, c.unit)})
		}
	}
	for v, step := 0.0, niceStep(c.right); v <= c.right; v += step {
		c.X = append(c.X, sweepTick{c.x(v), units.Format(v, "")})
	}
	for _, curve := range c.Lines {
		c.place(curve)
	}
	return true
}

// niceStep is a step of ticks, of which a length has four or more.
func niceStep(length float64) float64 {
	if !(length > 0) {
		return 1
	}
	step := math.Pow(10, math.Floor(math.Log10(length/4)))
	for _, m := range []float64{5, 2} {
		if length/(step*m) >= 4 {
			return step * m
		}
	}
	return step
}

func (c *sweepChart) x(v float64) float64 { return tenth(sweepWidth * v / c.right) }

func (c *sweepChart) y(v float64) float64 {
	v = min(max(v, c.low), c.high)
	if c.log {
		return tenth(sweepHeight * (1 - math.Log(v/c.low)/math.Log(c.high/c.low)))
	}
	return tenth(sweepHeight * (1 - v/c.high))
}

// place draws a curve: what is not steady is hollow.
func (c *sweepChart) place(curve *sweepCurve) {
	var path strings.Builder
	for _, d := range curve.dots {
		if c.log && !(d.y > 0) || math.IsNaN(d.x) {
			continue
		}
		dot := sweepDot{X: c.x(d.x), Y: c.y(d.y), Title: fmt.Sprintf("%g: %s, %s", d.p.Load, units.Format(d.y, c.unit),
			d.p.State)}
		if d.p.State != sweep.Stable {
			dot.Class = "hollow"
		}
		if d.low < d.y || d.high > d.y {
			dot.Bound = fmt.Sprintf("M%g %gV%g", dot.X, c.y(d.low), c.y(d.high))
		}
		if d.p.State != sweep.Draining && d.p.State != sweep.Restart {
			verb := map[bool]string{true: "M", false: "L"}[path.Len() == 0]
			fmt.Fprintf(&path, "%s%g %g", verb, dot.X, dot.Y)
			curve.X, curve.Y = dot.X, dot.Y
		}
		curve.Points = append(curve.Points, dot)
	}
	curve.Path = path.String()
}

// line draws a function of the load as far as it is within the picture.
func (c *sweepChart) line(text string, f func(float64) float64) {
	end := c.right
	if f(end) > c.high {
		end = end * c.high / f(end)
	}
	at := c.y(f(end))
	c.Guides = append(c.Guides, sweepGuide{fmt.Sprintf("M0 %gL%g %g", c.y(f(0)), c.x(end), at), text, at})
}

// limits draws the limits of the picture's quantity.
func (c *sweepChart) limits(sweeps []*sweep.Sweep, words []string, k int) {
	if k >= len(words) {
		return
	}
	for i := range sweeps[0].SLO {
		if s := &sweeps[0].SLO[i]; strings.HasPrefix(s.Row, words[k]) && s.Limit <= c.high && s.Limit > c.low {
			c.Guides = append(c.Guides, sweepGuide{fmt.Sprintf("M0 %gH%g", c.y(s.Limit), sweepWidth),
				texttab.Escape(s.Text), c.y(s.Limit)})
		}
	}
}

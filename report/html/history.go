package html

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/history"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/report"
	"github.com/scrapestat/scrapestat/units"
)

//go:embed assets/history.gohtml
var historyTemplate string

// HistoryOptions adjusts a page of a history.
type HistoryOptions struct {
	SinceNS int64 // events before it are left out
	// Link returns the address of the report of a run, "" where there is none; nil for none.
	Link func(*history.Run) string
}

// WriteHistory writes the trends of a history as one page without a script: a chart for each series with its levels,
// changes and outliers, and what changed where, the latest first. Everything from runs is escaped.
func WriteHistory(w io.Writer, v *history.View, o HistoryOptions) error {
	page := historyPage{Title: texttab.Escape(report.HistoryTitle(v))}
	for i := range v.Events {
		if e := &v.Events[i]; e.When() >= o.SinceNS {
			lines := report.EventLines(e)
			for k := range lines {
				lines[k] = texttab.Escape(strings.TrimSpace(lines[k]))
			}
			page.Events = append(page.Events, historyEvent{e.Word(), lines})
		}
	}
	for _, s := range v.Series {
		page.Charts = append(page.Charts, newHistoryChart(s, o.Link))
	}
	t, err := template.New("history").Parse(historyTemplate)
	if err != nil {
		return fmt.Errorf("parse page: %w", err)
	}
	if err := t.Execute(w, page); err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

type historyPage struct {
	Title  string
	Events []historyEvent
	Charts []historyChart
}

type historyEvent struct {
	Class string
	Lines []string
}

// historyChart is a series in the units of its picture.
type historyChart struct {
	Title, Level, Low, High, Left string
	Width, Height                 float64
	Points                        []historyPoint
	Bands                         []historyBand
	Marks                         []historyMark
}

type historyPoint struct {
	X, Y               float64
	Class, Title, Link string
}

// historyBand is a level: its mean, or a drift from Y to YEnd, with 1.96 standard deviations to both sides.
type historyBand struct{ X, Width, Y, YEnd, Top, Height float64 }

// Rise is how far down a drift goes in the picture.
func (b historyBand) Rise() float64 { return tenth(b.YEnd - b.Y) }

// tenth is a length of a picture as exact as is seen.
func tenth(v float64) float64 { return math.Round(v*10) / 10 }

type historyMark struct {
	X           float64
	Class, Text string
}

// The size of a chart, and how many points it has at most.
const (
	historyWidth, historyHeight = 900.0, 150.0
	historyPoints               = 1000
)

func newHistoryChart(s *history.Series, link func(*history.Run) string) historyChart {
	name := strings.Join(strings.Fields(s.Engine+" "+s.Target+" "+s.Phase+" "+s.Quantity), " ")
	c := historyChart{Title: texttab.Escape(name + ", " + s.Fingerprint), Level: report.LevelText(s), Width: historyWidth,
		Height: historyHeight}
	first := max(0, len(s.Points)-historyPoints)
	if first > 0 {
		c.Left = fmt.Sprintf("the last %d of %d runs", historyPoints, len(s.Points))
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	for i := first; i < len(s.Points); i++ {
		if v := s.Points[i].Value; !math.IsNaN(v) {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	if pad := max(0.08*(hi-lo), 0.05*math.Abs(hi)); !math.IsInf(lo, 0) {
		lo, hi = lo-pad, hi+pad
	}
	if !(hi > lo) {
		lo, hi = 0, 1
	}
	c.Low, c.High = units.Format(lo, s.Unit), units.Format(hi, s.Unit)
	x := func(i int) float64 {
		return tenth(10 + (historyWidth-20)*float64(i-first)/float64(max(1, len(s.Points)-1-first)))
	}
	y := func(v float64) float64 { return tenth(historyHeight * (1 - (min(max(v, lo), hi)-lo)/(hi-lo))) }
	c.points(s, first, x, y, link)
	c.levels(s, first, x, y)
	for _, change := range s.Changes() {
		at := s.Line[change.Index]
		if at < first {
			continue
		}
		class := change.Word
		if change.Minor || change.Edge || change.Accepted {
			class = "minor"
		}
		c.Marks = append(c.Marks, historyMark{tenth((x(max(at-1, first)) + x(at)) / 2), class,
			texttab.Escape(report.RunName(change.At))})
	}
	return c
}

// points draws the runs: hollow ones are outliers or beside the line.
func (c *historyChart) points(s *history.Series, first int, x func(int) float64, y func(float64) float64,
	link func(*history.Run) string) {
	outlier := map[int]bool{}
	for _, i := range s.Found.Outliers {
		outlier[s.Line[i]] = true
	}
	for i := first; i < len(s.Points); i++ {
		p := &s.Points[i]
		if math.IsNaN(p.Value) {
			continue
		}
		why := p.Beside
		if outlier[i] {
			why = "outlier"
		}
		title := report.RunName(p.Run) + ": " + units.Format(p.Value, s.Unit)
		if why != "" {
			title += " (" + why + ")"
		}
		point := historyPoint{X: x(i), Y: y(p.Value), Title: texttab.Escape(title)}
		if why != "" {
			point.Class = "hollow"
		}
		if link != nil {
			point.Link = link(p.Run)
		}
		c.Points = append(c.Points, point)
	}
}

// levels draws the segments; a drift is sloped.
func (c *historyChart) levels(s *history.Series, first int, x func(int) float64, y func(float64) float64) {
	seg := s.Found.Segments
	for i := range seg[1:] {
		from, to := seg[i], seg[i+1]
		if to == from || s.Line[to-1] < first {
			continue
		}
		from = max(from, to-historyPoints)
		values := make([]float64, 0, to-from)
		for k := from; k < to; k++ {
			if !slices.Contains(s.Found.Outliers, k) {
				values = append(values, s.At(k).Value)
			}
		}
		m, d := meanSpread(values)
		b := historyBand{X: x(max(s.Line[from], first)), Y: y(m), YEnd: y(m), Top: y(m + 1.96*d)}
		b.Width, b.Height = tenth(x(s.Line[to-1])-b.X), tenth(y(m-1.96*d)-b.Top)
		for _, drift := range s.Found.Drifts {
			if n := min(5, len(values)); drift.Start == seg[i] && drift.End == to {
				start, _ := meanSpread(values[:n])
				end, _ := meanSpread(values[len(values)-n:])
				b.Y, b.YEnd, b.Height = y(start), y(end), 0
			}
		}
		c.Bands = append(c.Bands, b)
	}
}

// meanSpread is the mean of values and their standard deviation.
func meanSpread(values []float64) (m, d float64) {
	for _, v := range values {
		m += v / float64(len(values))
	}
	for _, v := range values {
		d += (v - m) * (v - m)
	}
	return m, math.Sqrt(d / float64(cmp.Or(max(0, len(values)-1), 1)))
}

package live

import (
	"math"
	"strings"

	lipgloss "charm.land/lipgloss/v2"

	"github.com/scrapestat/scrapestat/internal/texttab"
)

// styles are the few that are used. NO_COLOR leaves bold and reverse.
type styles struct {
	title, dim, good, bad, warn, chosen, trend, plain lipgloss.Style
}

func newStyles() styles {
	s := lipgloss.NewStyle()
	return styles{title: s.Bold(true), dim: s.Faint(true), good: s.Foreground(lipgloss.Color("2")),
		bad:  s.Foreground(lipgloss.Color("1")).Bold(true),
		warn: s.Foreground(lipgloss.Color("3")), chosen: s.Reverse(true), trend: s.Foreground(lipgloss.Color("6")), plain: s}
}

// column is how a column is laid out.
type column struct {
	head  string
	right bool
	least int // how narrow it may become; 0 is as wide as its content
	drop  int // where there is no room, the column of the highest goes; 0 stays
}

// cell is a text from anywhere, with its style. The texts of a table are escaped by it.
type cell struct {
	text  string
	style lipgloss.Style
}

// grid is a table of the view.
type grid struct {
	columns []column
	rows    [][]cell
	chosen  int // row in reverse, -1 for none
	titles  []heading
}

// heading is a line above a row.
type heading struct {
	row  int
	text string
}

// lines lays the grid out in width columns, head first if there is one.
func (g *grid) lines(width int, s *styles) []string {
	wide, kept := g.fit(width)
	var out []string
	line := func(style func(int) lipgloss.Style, text func(int) string, chosen bool) {
		var b, plain strings.Builder
		for n, i := range kept {
			gap := ""
			if n > 0 {
				gap = strings.Repeat(" ", gapColumns)
			}
			padded := pad(text(i), wide[i], g.columns[i].right)
			plain.WriteString(gap + padded)
			b.WriteString(gap + style(i).Render(padded))
		}
		if chosen {
			out = append(out, s.chosen.Render(pad(texttab.Truncate(plain.String(), width), width, false)))
			return
		}
		out = append(out, b.String())
	}
	if g.columns[0].head != "" {
		line(func(int) lipgloss.Style { return s.dim }, func(i int) string { return g.columns[i].head }, false)
	}
	for n, row := range g.rows {
		for _, t := range g.titles {
			if t.row == n {
				out = append(out, s.title.Render(texttab.Truncate(texttab.Escape(t.text), width)))
			}
		}
		line(func(i int) lipgloss.Style { return row[i].style }, func(i int) string { return row[i].text }, n == g.chosen)
	}
	return out
}

// fit escapes the texts, and finds the columns there is room for and their widths.
func (g *grid) fit(width int) (wide, kept []int) {
	wide = make([]int, len(g.columns))
	for i, c := range g.columns {
		wide[i] = texttab.Width(c.head)
		used := false
		for _, row := range g.rows {
			row[i].text = texttab.Escape(row[i].text)
			wide[i] = max(wide[i], texttab.Width(row[i].text))
			used = used || row[i].text != ""
		}
		if used || i == 0 {
			kept = append(kept, i)
		}
	}
	for {
		need, least, worst := -gapColumns, -gapColumns, -1
		for n, i := range kept {
			need += wide[i] + gapColumns
			least += min(wide[i], g.least(i)) + gapColumns
			if g.columns[i].drop > 0 && (worst < 0 || g.columns[i].drop > g.columns[kept[worst]].drop) {
				worst = n
			}
		}
		if least > width && worst >= 0 {
			kept = append(kept[:worst], kept[worst+1:]...)
			continue
		}
		g.shrink(wide, kept, need-width)
		return wide, kept
	}
}

func (g *grid) least(i int) int {
	if g.columns[i].least > 0 {
		return g.columns[i].least
	}
	return 1 << 20
}

// shrink takes columns from those that may become narrower, the widest first.
func (g *grid) shrink(wide, kept []int, over int) {
	for ; over > 0; over-- {
		widest := -1
		for _, i := range kept {
			if wide[i] > g.least(i) && (widest < 0 || wide[i] > wide[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			// Nothing gives way: the first column does, and the rest is cut at the edge.
			wide[kept[0]] = max(1, wide[kept[0]]-over)
			return
		}
		wide[widest]--
	}
}

// pad brings an escaped text to a width.
func pad(s string, width int, right bool) string {
	s = texttab.Truncate(s, width)
	space := strings.Repeat(" ", max(0, width-texttab.Width(s)))
	if right {
		return space + s
	}
	return s + space
}

// fitting joins as many of the texts as there is room for, the first in any case.
func fitting(width int, texts ...string) string {
	line := ""
	for i, t := range texts {
		t = texttab.Escape(t)
		switch {
		case t == "":
		case i == 0 || line == "":
			line = texttab.Truncate(t, width)
		case texttab.Width(line)+gapColumns+texttab.Width(t) <= width:
			line += strings.Repeat(" ", gapColumns) + t
		}
	}
	return line
}

var blocks = []rune("▁▂▃▄▅▆▇█")

// spark draws the last values in at most width characters, from 0 (or the lowest,
// if that is below) to the highest. NaN is a gap.
func spark(values []float64, width int) string {
	if len(values) > width {
		values = values[len(values)-max(width, 0):]
	}
	low, high := 0.0, math.Inf(-1)
	for _, v := range values {
		if !math.IsNaN(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	var b strings.Builder
	for _, v := range values {
		switch {
		case math.IsNaN(v):
			b.WriteByte(' ')
		case high <= low:
			b.WriteRune(blocks[0])
		default:
			b.WriteRune(blocks[min(int((v-low)/(high-low)*float64(len(blocks))), len(blocks)-1)])
		}
	}
	return b.String()
}

package html

import "github.com/scrapestat/scrapestat/summary"

// Drawn returns the means or rates of the series that a timeline would draw.
func Drawn(t *Timeline) [][]float32 {
	in := Input{Run: &summary.Run{OriginNS: t.o.OriginNS}, Timeline: t}
	g := &gallery{byKey: map[famKey]*chart{}}
	frame, shift := frameOf([]Input{in})
	g.grids = []grid{frame}
	g.draw(0, in, shift[0])
	var out [][]float32
	for _, c := range g.charts {
		for _, l := range c.lines {
			out = append(out, l.avg)
		}
	}
	return out
}

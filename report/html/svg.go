package html

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// sparks draws a quantity of several runs, each in the colour of its run, on the scale of all.
func sparks(values []tileValue) {
	lo, hi := math.Inf(1), math.Inf(-1)
	for i := range values {
		for _, y := range values[i].ys {
			if !math.IsNaN(y) && !math.IsInf(y, 0) {
				lo, hi = min(lo, y), max(hi, y)
			}
		}
	}
	for i := range values {
		values[i].Spark = spark(values[i].ys, lo, hi, values[i].run)
	}
}

// spark is a small picture of values over time, as tall as a line of text: "" for less than two. NaN is a gap.
func spark(ys []float64, lo, hi float64, run int) template.HTML {
	const w, h = 120.0, 28.0
	n := 0
	for _, y := range ys {
		if !math.IsNaN(y) && !math.IsInf(y, 0) {
			n++
		}
	}
	if n < 2 {
		return ""
	}
	if lo > 0 && lo < hi/2 || lo == hi {
		lo = min(lo, 0)
	}
	if hi == lo {
		hi = lo + 1
	}
	var path, area strings.Builder
	open := false
	var x0, x float64
	end := func() {
		if open {
			fmt.Fprintf(&area, "L%.1f %.1fL%.1f %.1fZ", x, h, x0, h)
			open = false
		}
	}
	for i, y := range ys {
		if math.IsNaN(y) || math.IsInf(y, 0) {
			end()
			continue
		}
		px := w * float64(i) / float64(max(len(ys)-1, 1))
		py := h - 2 - (h-4)*(y-lo)/(hi-lo)
		verb := "L"
		if !open {
			verb, x0 = "M", px
		}
		x = px
		fmt.Fprintf(&path, "%s%.1f %.1f", verb, px, py)
		fmt.Fprintf(&area, "%s%.1f %.1f", verb, px, py)
		open = true
	}
	end()
	return template.HTML(fmt.Sprintf(
		`<svg class="spark k%d" viewBox="0 0 %g %g" preserveAspectRatio="none" aria-hidden="true">`+
			`<path class="spark-area" d="%s"/><path class="spark-line" d="%s"/></svg>`,
		run%4, w, h, area.String(), path.String())) // numbers only
}

// strip is a target over the time of the run: when it answered.
type strip struct {
	Run, Target, Text string
	Picture           template.HTML
}

// maxStrips bounds how many targets have one.
const maxStrips = 200

// strip draws when a target answered, failed, and restarted. The track is locked.
func (p *page) strip(run, target int, at *painter) strip {
	k := at.k
	from := k.origin + int64(at.shift)*k.width
	whole := float64(int64(at.n) * k.width)
	x := func(ns int64) float64 { return min(max(1000*float64(ns-from)/whole, 0), 1000) }
	s := strip{Run: p.runName(run), Target: endpointLabel(p.ins[run].Run, target)}
	var b strings.Builder
	rect := func(class string, from, to int64, least float64) {
		w := max(x(to)-x(from), least)
		fmt.Fprintf(&b, `<rect class="%s" x="%.2f" y="0" width="%.2f" height="18"/>`, class, x(from), w)
	}
	if k.last > k.first {
		rect("s-up", k.first, k.last, 1)
	}
	for _, g := range k.gaps {
		rect("s-gap", g.start, g.end, 2)
	}
	for _, r := range k.resets {
		fmt.Fprintf(&b, `<path class="s-reset" d="M%.2f 0v18"/>`, x(r))
	}
	s.Text = fmt.Sprintf("%s without an answer, %s", count(len(k.gaps), "stretch"), count(len(k.resets), "counter reset"))
	if len(k.gaps) != 1 {
		s.Text = strings.Replace(s.Text, "stretchs", "stretches", 1)
	}
	// numbers only
	s.Picture = template.HTML(fmt.Sprintf(
		`<svg class="strip" viewBox="0 0 1000 18" preserveAspectRatio="none" aria-hidden="true">`+
			`<rect class="s-none" x="0" y="0" width="1000" height="18"/>%s</svg>`, b.String()))
	return s
}

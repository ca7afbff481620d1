package report

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/units"
	"github.com/scrapestat/scrapestat/window"
)

// head are the first lines of a page for people: the run, the window and what changes its meaning.
func (t *pageBuilder) head() []string {
	r := t.run
	var out []string
	for _, text := range Doubts(r) {
		out = append(out, wrap(strings.SplitSeq(text, " "), t.width())...)
	}
	out = append(out, "run "+t.o.Title)
	w := r.Window.Resolved
	if w == nil {
		return append(append(out, cmp.Or(r.Window.Phase, "window")+" "+seconds(r.Window.EndNS-r.Window.StartNS)+" from "+
			utc(r.Window.StartNS)), t.polls()...)
	}
	if w.Empty == "" {
		out = append(out, measured(r, w))
	}
	if w.Warmup != nil {
		from := "the start"
		if w.Rule == window.Traffic || w.Rule == window.Segments {
			from = "the first request"
		}
		out = append(out, t.labelled("warm-up", fmt.Sprintf("%-8s from %s, at %s", span(w.Warmup.Seconds()), from,
			offset(w, w.Warmup.StartNS)))...)
	}
	var names []string
	for _, p := range r.Phases {
		name := p.Name
		if p.Of > 1 {
			name = fmt.Sprintf("%s/%d", name, p.Instance)
		}
		names = append(names, texttab.Escape(name)+" "+span(float64(p.EndNS-p.StartNS)/1e9))
	}
	if len(names) > 1 {
		if more := len(names) - 6; more > 0 && !t.o.All {
			names = append(names[:6], fmt.Sprintf("%d more", more))
		}
		out = append(out, t.labelled("phases", strings.Join(names, ", "))...)
	}
	return append(out, t.polls()...)
}

func utc(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05.000Z") }

// remarks are what a reader should know of the window, and what letters on the screen mean.
func (t *pageBuilder) remarks() {
	tab := newList("", "notes", face("TEXT"))
	if w := t.run.Window.Resolved; w != nil && t.o.Metric == nil {
		for _, n := range t.windowNotes(w) {
			tab.row(only(n))
		}
	}
	slices.Sort(t.legend)
	for _, n := range slices.Compact(t.legend) {
		tab.row(only(n))
	}
	t.add(tab)
}

// Doubts are the first lines of a page whose numbers are not what they seem: the window is empty or had no requests,
// the recording is damaged, what a target counts is refused.
func Doubts(r *summary.Run) (out []string) {
	if text := r.Warned("empty_window"); text != "" {
		out = append(out, "error: nothing is left to measure: "+text)
	} else if text := r.Warned("no_traffic"); text != "" {
		out = append(out, "warning: "+text)
	}
	if text := r.Warned("recording_damaged"); text != "" {
		out = append(out, "warning: recording_damaged: "+text)
	}
	for i := range r.Endpoints {
		if e := &r.Endpoints[i]; e.Continuity.Status == continuity.Refused {
			return append(out, "warning: the counters of "+e.Shown()+" are refused: several processes answered")
		}
	}
	return out
}

// measured is the line of the window itself.
func measured(r *summary.Run, w *window.Window) string {
	s, low, high := w.Bounds()
	line := fmt.Sprintf("%-10s %-8s from %s to %s of the run", "measured", span(s), offset(w, w.Start.AtNS),
		offset(w, w.End.AtNS))
	if w.Rule == window.Phase {
		line += ", phase " + texttab.Escape(w.Phase)
	}
	if share := max(s/low, high/s) - 1; share > 0.0005 {
		about := "within"
		if w.Start.About {
			about = "about"
		}
		line += fmt.Sprintf("     rates %s %s %%", about, strconv.FormatFloat(math.Ceil(1000*share)/10, 'g', 3, 64))
	}
	return line
}

// span is a length for people.
func span(s float64) string { return strconv.FormatFloat(s, 'f', 1, 64) + " s" }

// offset is an instant from COMMAND's start on.
func offset(w *window.Window, at int64) string { return span(float64(at-w.Command.StartNS) / 1e9) }

// windowNotes are what a reader must know of the window.
func (t *pageBuilder) windowNotes(w *window.Window) (out []string) {
	start, ok := w.Traffic.Start()
	end, _ := w.Traffic.End()
	if !ok || w.Rule != window.Traffic && w.Rule != window.Segments {
		return nil
	}
	idle := func(ns int64) float64 { return max(0, float64(ns)/1e9) }
	before, after := idle(start.AtNS-w.Command.StartNS), idle(w.Command.EndNS-end.AtNS)
	if before >= 1 || after >= 1 {
		out = append(out, fmt.Sprintf("%s passed before the first request and %s after the last one: they are not counted "+
			"(--window command counts them)", span(before), span(after)))
	}
	segs := w.Traffic.Segments
	if len(segs) > 1 {
		gaps := 0.0
		for i := 1; i < len(segs); i++ {
			gaps += idle(segs[i].Start.AtNS - segs[i-1].End.AtNS)
		}
		text := fmt.Sprintf("%d segments with %s between them (%.0f %%): ", len(segs), span(gaps),
			100*gaps/idle(end.AtNS-start.AtNS))
		if w.Rule == window.Segments {
			text += "the time between them is left out"
		} else {
			text += fmt.Sprintf("rates of the whole are diluted. One at a time: show %s@segment/2; without the gaps: "+
				"--window segments", t.o.Title)
		}
		out = append(out, text)
	}
	for _, p := range w.Traffic.Probes {
		out = append(out, fmt.Sprintf("%.0f requests at %s are left out as a probe of the server", p.Requests,
			offset(w, p.Start.AtNS)))
	}
	if ramp, drain := w.Slopes(); ramp+drain > .05*idle(w.End.AtNS-w.Start.AtNS) {
		var slopes, remedies []string
		if ramp > 0 {
			slopes = append(slopes, "rises for "+span(ramp))
			remedies = append(remedies, fmt.Sprintf("--warmup %.0fs", math.Ceil(ramp)))
		}
		if drain > 0 {
			slopes = append(slopes, "falls for "+span(drain))
			remedies = append(remedies, fmt.Sprintf("--cooldown %.0fs", math.Ceil(drain)))
		}
		out = append(out, fmt.Sprintf("the load %s: rates of the whole are less than those of its middle (%s)",
			strings.Join(slopes, " and "), strings.Join(remedies, " ")))
	}
	if flying := t.run.InFlight(); flying > 0 {
		out = append(out, fmt.Sprintf("%.0f requests were in flight at the start: they count when they end", flying))
	}
	if w.Start.About {
		out = append(out, "nothing tells of a request before it ends: the start is dated back by how long requests took")
	}
	return out
}

// labelled sets a text beside its label, in lines of the screen.
func (t *pageBuilder) labelled(label, text string) (out []string) {
	for _, line := range wrap(strings.SplitSeq(text, " "), t.width()-11) {
		out = append(out, fmt.Sprintf("%-10s %s", label, line))
		label = ""
	}
	return out
}

// wrap joins words into lines of at most width bytes, but for longer words; there is one at least.
func wrap(words iter.Seq[string], width int) []string {
	out := []string{""}
	for word := range words {
		switch line := &out[len(out)-1]; {
		case *line == "":
			*line = word
		case len(*line)+1+len(word) > width:
			out = append(out, word)
		default:
			*line += " " + word
		}
	}
	return out
}

// segments lists traffic with gaps.
func (t *pageBuilder) segments() {
	w := t.run.Window.Resolved
	if w == nil || len(w.Traffic.Segments) < 2 || w.Rule != window.Traffic && w.Rule != window.Segments {
		return
	}
	tab := newTable("segments", "segments", number("segment", "SEGMENT"), number("from_seconds", "FROM"),
		number("to_seconds", "TO"), number("requests", "REQUESTS"), number("requests_per_second", "REQUESTS/S"))
	t.limit(tab, 12, "--all")
	for i, s := range w.Traffic.Segments {
		from, to := float64(s.Start.AtNS-w.Command.StartNS)/1e9, float64(s.End.AtNS-w.Command.StartNS)/1e9
		rate := s.Requests / (to - from)
		tab.row(tally(i+1), float(from, true, span(from)), float(to, true, span(to)),
			float(s.Requests, true, strconv.FormatFloat(s.Requests, 'f', 0, 64)), float(rate, to > from, digits(rate)))
	}
	t.add(tab)
}

// windowObject is the window for programs.
func windowObject(r *summary.Run) texttab.Object {
	w := r.Window.Resolved
	if w == nil {
		return texttab.NewObject("phase", r.Window.Phase, "start_ns", r.Window.StartNS, "end_ns", r.Window.EndNS)
	}
	s, low, high := w.Bounds()
	return texttab.NewObject("phase", r.Window.Phase, "start_ns", r.Window.StartNS, "end_ns", r.Window.EndNS,
		"rule", string(w.Rule), "seconds", s, "seconds_low", low, "seconds_high", high)
}

// derivedCell is the value as people read it; a rate over a time that is not known within 10 % has both ends.
func (t *pageBuilder) derivedCell(d *summary.Derived) cell {
	c := derivedCell(d)
	w := t.run.Window.Resolved
	if d == nil || w == nil || d.Status != catalog.OK || !strings.HasSuffix(d.Unit, "/s") {
		return c
	}
	s, low, high := w.Bounds()
	if low > 0 && high > 1.1*low && d.Denominator == s {
		c.Text = rateRange(d.Shown, s, low, high, d.Unit)
	}
	return c
}

// rateRange is a rate with what it is at the least and the most, as "16.2 (11.9 .. 25.5) requests/s".
func rateRange(v, seconds, low, high float64, unit string) string {
	number := func(v float64) string { return strings.TrimSuffix(units.Format(v, unit), " "+unit) }
	return number(v) + " (" + number(v*seconds/high) + " .. " + number(v*seconds/low) + ") " + unit
}

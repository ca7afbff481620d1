package html

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/explain"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/report"
)

// why is what explain tells of an engine of a run.
type why struct {
	Run, Title, Asked, Unknown string
	Findings                   []report.ExplainedFinding
	Also, Notes, Open          []string
	Parts                      []whyPart
	Strip                      template.HTML // of the classes of queue over the window; "" for none
	Classes                    []whyClass
}

// whyPart is a row of the waterfall, drawn from Left to Left + Width percent.
type whyPart struct {
	ID, Seconds, Percent string
	Left, Width          float64
	Class                string // of its colour
}

// whyClass is a key of a strip.
type whyClass struct{ Class, Name string }

// whyPair is what two runs differ in.
type whyPair struct {
	Title, Change string
	Heads         []string
	Rows          [][]string
}

// most explanations and findings of a page; the rest is what the command lists.
const mostWhys = 16

func (p *page) why() {
	rules := explain.DefaultRules()
	for i := range p.ins {
		in := &p.ins[i]
		list := in.Causes
		if left := len(list) - mostWhys; left > 0 {
			list = list[:mostWhys]
			p.Omitted = append(p.Omitted, fmt.Sprintf("%d more explanations of %s: scrapestat explain lists them.", left,
				texttab.Escape(in.Name)))
		}
		for _, r := range list {
			w := newWhy(report.NewExplained(r, rules))
			if p.Many {
				w.Run = in.Name
			}
			p.Whys = append(p.Whys, w)
		}
	}
	if len(p.ins) != 2 {
		return
	}
	pairs, _ := explain.Pairs(p.ins[0].Causes, p.ins[1].Causes)
	for _, pair := range pairs[:min(len(pairs), mostWhys)] {
		t := report.ExplainedPairTable(pair)
		if len(t.Rows) == 0 {
			continue
		}
		w := whyPair{Title: clip(pair.B.Engine+pair.B.Of.String(), 200), Change: clip(report.MainChange(pair, rules), 400),
			Heads: []string{"Part", clip(p.ins[0].Name, 60), clip(p.ins[1].Name, 60), "Change"}}
		for _, row := range t.Rows {
			var cells []string
			for _, c := range row {
				cells = append(cells, clip(c.Text, 60))
			}
			w.Rows = append(w.Rows, cells)
		}
		p.Pairs = append(p.Pairs, w)
	}
}

func newWhy(e *report.Explained) why {
	clean := func(list []string) (out []string) {
		for _, s := range list {
			out = append(out, clip(s, 400))
		}
		return out
	}
	w := why{Title: clip(e.Engine, 200), Asked: e.Asked, Unknown: clip(e.Unknown, 400), Also: clean(e.Also),
		Notes: clean(e.Notes), Open: clean(e.Open)}
	for _, f := range e.Findings {
		f.Mark = strings.TrimSpace(f.Mark)
		f.ID, f.Evidence, f.Says, f.Try = clip(f.ID, 80), clip(f.Evidence, 400), clip(f.Says, 400), clip(f.Try, 400)
		w.Findings = append(w.Findings, f)
	}
	left := 0.0
	for _, part := range e.Parts {
		width := 100 * min(1, math.Abs(part.Share))
		w.Parts = append(w.Parts, whyPart{clip(part.ID, 80), part.Seconds, part.Percent,
			math.Round(10*min(left, 100-width)) / 10, math.Round(10*width) / 10, whyColour(part.ID)})
		left += max(0, 100*part.Share)
	}
	w.strip(e.Classes)
	return w
}

// whyColours are the classes of the queue that a picture tells apart, and all else of a request.
var whyColours = []string{"queue_kv", "queue_slots", "queue_budget", "queue_imbalance", "queue_burst", "queue_unknown",
	"cold_start"}

func whyColour(id string) string {
	if i := slices.Index(whyColours, id); i >= 0 {
		return fmt.Sprintf("w%d", i)
	}
	if strings.HasPrefix(id, "queue_") || strings.HasPrefix(id, "stage_queue") {
		return "w1"
	}
	return "ws"
}

// strip draws which class of queue held most of those that waited, over the window.
func (w *why) strip(classes []string) {
	var b strings.Builder
	for i := 0; i < len(classes); {
		j := i + 1
		for j < len(classes) && classes[j] == classes[i] {
			j++
		}
		if id := classes[i]; id != "" {
			c := whyClass{whyColour(id), id}
			if !slices.Contains(w.Classes, c) {
				w.Classes = append(w.Classes, c)
			}
			fmt.Fprintf(&b, `<rect class="%s" x="%d" width="%d" height="10"/>`, c.Class, i, j-i)
		}
		i = j
	}
	if b.Len() > 0 {
		w.Strip = template.HTML(fmt.Sprintf(`<svg class="strip" viewBox="0 0 %d 10" preserveAspectRatio="none" `+
			`aria-hidden="true"><rect class="s-none" width="%d" height="10"/>%s</svg>`, len(classes), len(classes), b.String()))
	}
}

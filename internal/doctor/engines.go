package doctor

import (
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog/pack"
)

// hint tells the hints of a kind, and reports whether there were some: of servers that hide their metrics those of what
// may be there, with one remedy for all of one code. What was said stands in the place of the text, which then is the
// remedy.
func (e *exam) hint(kind string, status int, said string) bool {
	before := len(e.r.Finding)
	for _, p := range e.o.Catalog.Servers() {
		for _, h := range p.Hints {
			if h.Run != kind || h.Status != status || kind == pack.Hidden && !slices.Contains(e.suspects, p) {
				continue
			}
			if kind == pack.JSONList && !e.listed(h.Level) {
				continue
			}
			if said != "" {
				h.Text, h.Fix = said, h.Text
			}
			same := func(f Finding) bool { return f.Code == h.Code }
			if i := slices.IndexFunc(e.r.Finding[before:], same); i >= 0 {
				e.r.Finding[before+i].Remedy += "; " + h.Fix
			} else {
				e.r.add(Level(h.Level), h.Code, h.Text, h.Fix)
			}
		}
	}
	return len(e.r.Finding) > before
}

// listed reports whether a hint of that level is of the JSON list that came: an error where there are no metrics
// elsewhere, another where elements of it were taken.
func (e *exam) listed(level string) bool {
	if level == string(Error) {
		return e.body == nil
	}
	return e.body != nil || len(strings.TrimSpace(string(e.first.Body))) > len("[]")
}

// judgeEngines tells the hints of the packs of the engines in the body.
func (e *exam) judgeEngines() {
	for _, p := range e.o.Catalog.Servers() {
		for i := range p.Hints {
			if h := &p.Hints[i]; h.Run == "" && e.r.is(p.Name) && e.holds(h) {
				e.r.add(Level(h.Level), h.Code, h.Text, h.Fix)
			}
		}
	}
}

// holds reports whether all conditions of a hint do.
func (e *exam) holds(h *pack.Hint) bool {
	there := func(pattern string) bool {
		if start, any := strings.CutSuffix(pattern, "*"); any {
			return e.prefix(start)
		}
		return e.family(pattern)
	}
	if h.Zero != "" {
		zero, ok := e.values(h.Zero)
		if moving, _ := e.values(h.Moving); !ok || zero != 0 || moving <= 0 {
			return false
		}
	}
	return (h.If == nil || slices.ContainsFunc(h.If, there)) && !slices.ContainsFunc(h.Unless, there) &&
		(h.Label == "" || e.labelValues(h.Label) > 1) && (h.Bytes == 0 || e.r.BodyBytes > int64(h.Bytes))
}

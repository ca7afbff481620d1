package doctor

import (
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog/pack"
)

// judgeEngines tells the hints of the packs of the engines in the body.
func (e *exam) judgeEngines() {
	for _, p := range e.o.Catalog.Servers() {
		for i := range p.Hints {
			if h := &p.Hints[i]; h.Run == "" && e.r.is(p.Name) && e.holds(h) {
				e.r.add(map[string]Level{"note": Note, "warning": Warning, "error": Error}[h.Level], h.Code, h.Text, h.Fix)
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

package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/compare/judge"
)

// Gate is what a comparison must not show.
type Gate struct {
	// Words are those of --fail-on: worse, moved, unclear, any-row:VERDICT.
	Words []string
	// AllowLoad lets the gate judge sides whose load differed.
	AllowLoad bool
}

// Check refuses words that a gate does not know.
func (g Gate) Check() error {
	for _, w := range g.Words {
		name, row := strings.CutPrefix(w, "any-row:")
		_, known := ParseVerdict(name)
		if !(row && known) && !slices.Contains([]string{"worse", "moved", "unclear"}, w) {
			return fmt.Errorf("unknown word %q (known: worse, moved, unclear, any-row:worse, any-row:better, "+
				"any-row:changed, any-row:incomparable, any-row:needs-repeats)", w)
		}
	}
	return nil
}

// Judge tells what of a comparison is bad, and what is missing for an answer; "" for nothing.
func (g Gate) Judge(r *Result) (bad, lacks string) {
	found := map[string]bool{}
	for _, w := range g.Words {
		if name, ok := strings.CutPrefix(w, "any-row:"); ok {
			v, _ := ParseVerdict(name)
			if n := r.rowsOf(v); n > 0 {
				found[fmt.Sprintf("%d rows are %s", n, v)] = true
			}
			continue
		}
		lacks = cmp.Or(lacks, g.evidence(r, w))
		for i := range r.Headline {
			if l := &r.Headline[i]; l.is(w) {
				found[l.Name()+" "+string(l.Verdict)] = true
			}
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(found)), ", "), lacks
}

// is reports whether a line has the verdict that a word of a gate means.
func (l *Line) is(word string) bool {
	switch word {
	case "moved":
		return l.Verdict == judge.MovedUp && l.Better == catalog.LowerBetter ||
			l.Verdict == judge.MovedDown && l.Better == catalog.HigherBetter
	default:
		return string(l.Verdict) == word
	}
}

// evidence tells why a gate has no answer for want of evidence; "" when it has one.
func (g Gate) evidence(r *Result, word string) string {
	if len(r.Headline) == 0 {
		return "no headline: no quantity of these runs has a canonical id"
	}
	within := func(l Line) bool { return l.Verdict != judge.NotJudged }
	between := func(l Line) bool {
		return within(l) && (l.Evidence == judge.Repeats || l.Evidence == judge.History)
	}
	switch {
	case word == "worse" && !slices.ContainsFunc(r.Headline, between):
		return "--fail-on worse has nothing to judge by: one run a side; give 3 runs a side, --history FILE, or " +
			"--fail-on moved"
	case !slices.ContainsFunc(r.Headline, within):
		return "--fail-on " + word + " has nothing to judge by: " + r.Headline[0].Reason
	}
	for i := range r.Headline {
		if l := &r.Headline[i]; l.Lacks {
			return fmt.Sprintf("%s is not judged: %s", l.Name(), l.Reason)
		}
	}
	for i := range r.LoadDiffers {
		if l := &r.LoadDiffers[i]; l.Beyond && !g.AllowLoad {
			return "the load differed in " + l.Title + " beyond chance: give --allow-load-change to judge all the same"
		}
	}
	return ""
}

// rowsOf counts the rows of a verdict.
func (r *Result) rowsOf(v Verdict) (n int) {
	for i := range r.Rows {
		for side := 1; side < len(r.Sides); side++ {
			if r.Rows[i].Against[side].Verdict == v {
				n++
			}
		}
	}
	return n
}

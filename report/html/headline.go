package html

import (
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/summary"
)

// headline reports whether a quantity is one that people ask for first, and is there. A check is shown when it found
// something.
func headline(d *summary.Derived) bool {
	return d.Headline && d.Status.Defined() && (d.Category != catalog.Check || d.Shown != 0)
}

// helpOf is what the catalog says of a quantity, and how it is made.
func helpOf(d *summary.Derived) string { return clip(strings.TrimSpace(d.Help), 400) }

// better is the way a quantity gets better, in a word; "" when neither is.
func better(d catalog.Direction) string {
	switch d {
	case catalog.HigherBetter:
		return "higher is better"
	case catalog.LowerBetter:
		return "lower is better"
	}
	return ""
}

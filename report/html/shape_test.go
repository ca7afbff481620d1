package html_test

import (
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/report/html"
)

// TestTextKeepsShape puts texts of a target into every place of a page that has
// one: the page has the same elements as with a harmless text, and ends its
// scripts where it did. It is no fuzz target: a page takes too long for one.
func TestTextKeepsShape(t *testing.T) {
	shape := func(text string) (elements, ends int, raw bool) {
		page := pageOf(t, html.Options{Title: text}, served(3, text))
		body, _, _ := strings.Cut(page, `<script type="application/octet-stream"`)
		return strings.Count(body, "<"), strings.Count(strings.ToLower(page), "</script"), strings.ContainsAny(body, "\x00\x1b\u202e")
	}
	elements, ends, _ := shape("harmless")
	for _, text := range []string{hostile, "", "<", "</script>", "</ScRiPt >", "<!--<script>", "-->", "]]>", "\" onload=\"x", "' x='", "&lt;", "`${x}`",
		"{{.}}", "\u2028", "\x00", "\xff<", "javascript:x"} {
		gotElements, gotEnds, raw := shape("x" + text)
		if gotElements != elements || gotEnds != ends || raw {
			t.Errorf("%q: %d elements and %d ends of scripts, want %d and %d; control characters %v", text, gotElements, gotEnds, elements, ends, raw)
		}
	}
}

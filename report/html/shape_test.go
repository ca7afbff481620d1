package html_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/report/html"
)

// shapeOf is the skeleton of a page with a text in every place that has one.
func shapeOf(t *testing.T, text string) (tags []string, ends int, raw bool) {
	t.Helper()
	page := pageOf(t, html.Options{Title: text}, served(3, text))
	body, _, _ := strings.Cut(page, `<script type="application/octet-stream"`)
	tags = regexp.MustCompile(`<\S[^\s>]*`).FindAllString(body, -1)
	return tags, strings.Count(strings.ToLower(page), "</script"), strings.ContainsAny(body, "\x00\x1b\u202e")
}

// TestTextKeepsShape puts texts of a target into every place of a page that has
// one: the page has the same elements as with a harmless text, and ends its
// scripts where it did.
func TestTextKeepsShape(t *testing.T) {
	tags, ends, _ := shapeOf(t, "harmless")
	for _, text := range []string{hostile, "", "<", "</script>", "</ScRiPt >", "<!--<script>", "-->", "]]>",
		"\" onload=\"x", "' x='", "&lt;", "`${x}`",
		"{{.}}", "\u2028", "\x00", "\xff<", "javascript:x"} {
		gotTags, gotEnds, raw := shapeOf(t, "x"+text)
		if len(gotTags) != len(tags) || gotEnds != ends || raw {
			t.Errorf("%q: %d elements and %d ends of scripts, want %d and %d; control characters %v", text, len(gotTags),
				gotEnds, len(tags), ends, raw)
		}
	}
}

// FuzzText does the same with texts of at most 64 bytes, as a page takes some
// milliseconds: no element comes in that a harmless page does not have. How many
// there are may differ, as a name says what a metric is.
func FuzzText(f *testing.F) {
	for _, s := range []string{hostile, "</script>", "<!--", "]]>", "\" onload=\"x", "\u2028\xff", "_bytes_total",
		"vllm:"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 64 {
			return
		}
		known, ends, _ := shapeOf(t, "harmless_seconds")
		tags, gotEnds, raw := shapeOf(t, text)
		for _, tag := range tags {
			if !slices.Contains(known, tag) {
				t.Errorf("%q: the page has %q", text, tag)
			}
		}
		if gotEnds != ends || raw {
			t.Errorf("%q: %d ends of scripts, want %d; control characters %v", text, gotEnds, ends, raw)
		}
	})
}

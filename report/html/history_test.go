package html_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/history"
	"github.com/scrapestat/scrapestat/report"
	"github.com/scrapestat/scrapestat/report/html"
)

// historyOf is a history of hostile texts: 24 runs with a step at the 13th, and an outlier.
func historyOf(t *testing.T) *history.View {
	t.Helper()
	f, err := history.Open(t.Context(), filepath.Join(t.TempDir(), "h.db"), true)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const evil = "<script>alert(1)</script>|\n\u202e[x](javascript:y)"
	var b strings.Builder
	fmt.Fprintf(&b, "time,run,commit,branch,tag:%s,\"%s\"\n", "a", evil)
	for i := range 24 {
		value := 1 + 0.001*float64(i%3)
		switch {
		case i == 6:
			value = 2
		case i >= 12:
			value *= 1.1
		}
		tag := ""
		if i >= 12 {
			tag = evil
		}
		fmt.Fprintf(&b, "%d,\"%s%d\",\"%s%d\",\"%s\",\"%s\",%v\n", 1_750_000_000+i*86400, evil, i, evil, i, evil, tag, value)
	}
	err = history.ReadCSV(strings.NewReader(b.String()), history.CSVOptions{}, func(e *history.Entry) error {
		_, err := f.Add(t.Context(), e, false)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	v, err := f.View(t.Context(), history.Query{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestHistory is row 14 of the acceptance table: hostile texts of a history stay texts, in HTML, Markdown and text; and
// the picture has what it should.
func TestHistory(t *testing.T) {
	t.Parallel()
	v := historyOf(t)
	var page, markdown, text bytes.Buffer
	link := func(*history.Run) string { return "javascript:alert(1)" }
	if err := html.WriteHistory(&page, v, html.HistoryOptions{Link: link}); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script", "\u202e", "javascript:alert", "http://", "https://"} {
		if strings.Contains(page.String(), bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for want, n := range map[string]int{"<svg": 1, "<circle": 24, `class="hollow"`: 1, `class="band"`: 2,
		`<path class="changed"`: 1, "(outlier)": 1, "<a href": 24} {
		if got := strings.Count(page.String(), want); got != n {
			t.Errorf("%d times %q, want %d", got, want, n)
		}
	}
	if err := report.HistoryMarkdown(&markdown, v, report.HistoryOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(markdown.String(), "\n"); n > 40 {
		t.Errorf("%d lines of Markdown", n)
	}
	if err := report.HistoryText(&text, v, report.HistoryOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(markdown.String()+text.String(), "\n") {
		if strings.Contains(line, "\u202e") || strings.HasPrefix(line, "[x]") {
			t.Errorf("hostile text is as it was: %q", line)
		}
		outside := line
		for strings.Count(outside, "`") >= 2 { // what is code is no markup
			a := strings.IndexByte(outside, '`')
			b := a + 1 + strings.IndexByte(outside[a+1:], '`')
			outside = outside[:a] + outside[b+1:]
		}
		if strings.Contains(markdown.String(), line) && strings.Contains(outside, "<script") {
			t.Errorf("markup outside of code: %q", line)
		}
	}
	if !strings.Contains(text.String(), "settings that changed there: tag a none -> <script>") {
		t.Errorf("no settings in %s", text.String())
	}
}

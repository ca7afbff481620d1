package live

import (
	"regexp"
	"strings"
)

// Wait stands among the keys of RenderText for a new look at the run.
const Wait = "wait"

var styling = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// RenderText returns what the view shows, as plain text of at most height lines, after it took a first look and
// these keys were pressed: the names that package bubbletea gives them, such as "q", "tab" and "ctrl+c", or
// [Wait]. It needs no terminal.
func RenderText(o Options, width, height int, keys ...string) string {
	m := newModel(o)
	m.width, m.height = width, height
	look := func() {
		m.refresh()
		m.askAt = m.now()
		if ask := m.ask(); ask != nil {
			m.Update(ask())
		}
	}
	look()
	for _, k := range keys {
		if k == Wait {
			look()
			continue
		}
		m.key(k)
	}
	var out strings.Builder
	for _, line := range m.screen() {
		out.WriteString(strings.TrimRight(styling.ReplaceAllString(line, ""), " ") + "\n")
	}
	return out.String()
}

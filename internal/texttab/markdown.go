package texttab

import "strings"

// Markdown returns a text that GitHub shows as it is, in a line or in a cell
// of a table: what could begin markup, a link, a mention or an issue is made code.
func Markdown(s string) string {
	s = Escape(s)
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= 0x80, strings.IndexByte(" .,%/()+-?;='\"", c) >= 0:
			b.WriteByte(c)
		case c == '[' || c == ']' || c == '_':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == ':' && (i+1 == len(s) || s[i+1] == ' '): // no emoji, no address
			b.WriteByte(c)
		default:
			return markdownCode(s)
		}
	}
	if strings.Contains(strings.ToLower(s), "www.") {
		return markdownCode(s)
	}
	return b.String()
}

// markdownCode makes a text code, between more backticks than it has in a row.
func markdownCode(s string) string {
	fence, run := 0, 0
	for i := range len(s) {
		if s[i] != '`' {
			run = 0
			continue
		}
		run++
		fence = max(fence, run)
	}
	ticks := strings.Repeat("`", fence+1)
	if s != "" && (s[0] == '`' || s[len(s)-1] == '`' || s[0] == ' ') {
		s = " " + s + " "
	}
	return ticks + strings.ReplaceAll(s, "|", `\|`) + ticks
}

package summary

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/scrapestat/scrapestat/metric"
)

// PythonLabels returns labels as Python's str() prints a dict of them, sorted by name: {'engine': '0', 'model_name':
// "it's"}. It is "" for the empty set. AIPerf sorts series by this text. Bytes that are not UTF-8 count as U+FFFD.
func PythonLabels(l metric.Labels) string {
	var b []byte
	for name, value := range l.All() {
		if b == nil {
			b = append(b, '{')
		} else {
			b = append(b, ", "...)
		}
		b = appendPython(b, name)
		b = append(b, ": "...)
		b = appendPython(b, value)
	}
	if b == nil {
		return ""
	}
	return string(append(b, '}'))
}

// appendPython appends a string as Python's repr() prints it: single quotes
// unless only those occur in it, and everything that is not printable escaped.
func appendPython(b []byte, s string) []byte {
	quote := byte('\'')
	if strings.IndexByte(s, '\'') >= 0 && strings.IndexByte(s, '"') < 0 {
		quote = '"'
	}
	b = append(b, quote)
	for _, r := range s {
		switch {
		case r == rune(quote) || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case unicode.IsPrint(r):
			b = utf8.AppendRune(b, r)
		case r < 0x100:
			b = appendHex(append(b, `\x`...), r, 2)
		case r < 0x10000:
			b = appendHex(append(b, `\u`...), r, 4)
		default:
			b = appendHex(append(b, `\U`...), r, 8)
		}
	}
	return append(b, quote)
}

func appendHex(b []byte, r rune, digits int) []byte {
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		b = append(b, "0123456789abcdef"[r>>shift&15])
	}
	return b
}

package texttab

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape returns s with everything that a terminal does not simply print replaced by Go's escapes: control characters
// (\x1b, \n), invisible and direction-changing ones (\u202e), bytes that are no UTF-8 (\xff). A backslash stays as it
// is: the result is for eyes, not for parsing.
func Escape(s string) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch broken := r == utf8.RuneError && n == 1; {
		case !broken && unicode.IsPrint(r):
			b.WriteString(s[i : i+n])
		default:
			q := strconv.Quote(s[i : i+n])
			b.WriteString(q[1 : len(q)-1])
		}
		i += n
	}
	return b.String()
}

func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// Count is "1 run" or "3 runs".
func Count[N int | int64](n N, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.FormatInt(int64(n), 10) + " " + what
}

// Width returns how many terminal columns an escaped text takes, by the rule of the package comment.
func Width(s string) int {
	if isPlain(s) {
		return len(s)
	}
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

// wide holds the blocks whose characters terminals show in two columns, after the Wide and Fullwidth values of
// Unicode's EastAsianWidth.txt, by whole blocks.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x1100, 0x115f, 1}, // Hangul Jamo, leading consonants
		{0x2e80, 0x303e, 1}, // CJK radicals, punctuation
		{0x3041, 0xa4cf, 1}, // Kana, CJK ideographs, Yi
		{0xa960, 0xa97f, 1}, // Hangul Jamo Extended-A
		{0xac00, 0xd7a3, 1}, // Hangul syllables
		{0xf900, 0xfaff, 1}, // CJK compatibility ideographs
		{0xfe30, 0xfe6f, 1}, // CJK compatibility forms
		{0xff01, 0xff60, 1}, // fullwidth forms
		{0xffe0, 0xffe6, 1}, // fullwidth signs
	},
	R32: []unicode.Range32{
		{0x17000, 0x18cff, 1}, // Tangut
		{0x1f300, 0x1f64f, 1}, // pictographs, emoticons
		{0x1f680, 0x1f6ff, 1}, // transport
		{0x1f900, 0x1f9ff, 1}, // supplemental pictographs
		{0x20000, 0x3fffd, 1}, // CJK extensions
	},
}

// Truncate returns s when it takes at most width columns, else its beginning with "…" at the end, together at most
// width columns; "" when width is 0 or less.
func Truncate(s string, width int) string {
	if Width(s) <= width {
		return s
	}
	if width <= 0 {
		return ""
	}
	used := 0
	for i, r := range s {
		if used += runeWidth(r); used > width-1 {
			return s[:i] + ellipsis
		}
	}
	return s
}

package export

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// appendString appends s as a JSON string. Control characters are escaped, bytes that are not UTF-8 become U+FFFD, and
// the characters that could end a script element when the document lies in HTML are escaped too.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if plain[c] {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			b = append(b, s[start:i]...)
			b = appendEscape(b, c)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b = append(append(b, s[start:i]...), "\ufffd"...)
			start = i + size
		case r == '\u2028' || r == '\u2029':
			b = append(append(b, s[start:i]...), `\u202`...)
			b = append(b, hexDigits[r&15])
			start = i + size
		}
		i += size
	}
	return append(append(b, s[start:]...), '"')
}

const hexDigits = "0123456789abcdef"

// plain are the ASCII characters that stand for themselves in a JSON string.
var plain = func() (plain [256]bool) {
	for c := byte(' '); c < 0x7f; c++ {
		plain[c] = c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
	}
	return plain
}()

func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// appendFloat appends a finite float as Python's repr() prints it: the shortest text that reads back as the same
// number, always with a decimal point or an exponent, which appears below 1e-4 and from 1e16 on.
func appendFloat(b []byte, v float64) []byte {
	a := math.Abs(v)
	if a < 1<<53 && v == math.Trunc(v) && (v != 0 || !math.Signbit(v)) {
		return append(strconv.AppendInt(b, int64(v), 10), '.', '0')
	}
	if a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.AppendFloat(b, v, 'e', -1, 64)
	}
	n := len(b)
	b = strconv.AppendFloat(b, v, 'f', -1, 64)
	for _, c := range b[n:] {
		if c == '.' {
			return b
		}
	}
	return append(b, '.', '0')
}

package scrape

import (
	"math"
	"strconv"
)

// pow10 holds the powers of ten that a float64 represents exactly.
var pow10 = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// tokenEnd returns the end of the token at i: the next blank or control byte.
func tokenEnd(b []byte, i int) int {
	for i < len(b) && b[i] > ' ' {
		i++
	}
	return i
}

// parseValue parses the number that begins at i and ends before the next byte up to blank, or at the end of b.
// Its result equals that of strconv bit for bit: a mantissa below 2^53 times or over a power of ten up to 22 is
// one correctly rounded operation on two exact operands (Clinger 1990); everything else goes to strconv. ok is
// false for whatever is not plainly a number of the exposition formats; the caller then leaves the decision to
// the parser of lines.
func parseValue(b []byte, i int) (bits uint64, end int, ok bool) {
	start := i
	var sign uint64
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		if b[i] == '-' {
			sign = 1 << 63
		}
		i++
	}
	var mantissa uint64
	first := i
	for i < len(b) && b[i]-'0' <= 9 {
		mantissa = mantissa*10 + uint64(b[i]-'0')
		i++
	}
	digits, exp := i-first, 0
	if i < len(b) && b[i] == '.' {
		i++
		point := i
		if i < len(b) && b[i] == '0' && (i+1 == len(b) || b[i+1] <= ' ') {
			i++ // "42.0", as Python writes integers; the digit changes nothing
		} else {
			for i < len(b) && b[i]-'0' <= 9 {
				mantissa = mantissa*10 + uint64(b[i]-'0')
				i++
			}
			exp = point - i
		}
		digits += i - point
	}
	if i < len(b) && b[i] > ' ' || digits == 0 || digits > 19 || mantissa > 1<<53 || exp < -22 {
		return parseSlow(b, start)
	}
	v := float64(mantissa)
	if exp < 0 {
		v /= pow10[-exp]
	}
	return math.Float64bits(v) | sign, i, true
}

// parseSlow leaves the number at start to strconv, after a look at its bytes:
// strconv takes spellings that no exposition format knows ("0x10", "1_0").
func parseSlow(b []byte, start int) (bits uint64, end int, ok bool) {
	end = tokenEnd(b, start)
	token := b[start:end]
	switch string(token) {
	case "NaN":
		return math.Float64bits(math.NaN()), end, true
	case "+Inf":
		return math.Float64bits(math.Inf(1)), end, true
	case "-Inf":
		return math.Float64bits(math.Inf(-1)), end, true
	}
	for _, c := range token {
		if c-'0' > 9 && c != '.' && c != 'e' && c != 'E' && c != '-' && c != '+' {
			return 0, end, false
		}
	}
	v, err := strconv.ParseFloat(string(token), 64)
	return math.Float64bits(v), end, err == nil
}

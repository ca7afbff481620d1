package scrape

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/scrapestat/scrapestat/metric"
)

// reason is why a sample line was not stored. The zero value is a stored line.
type reason uint8

const (
	stored reason = iota
	badLine
	badUTF8
	truncatedLine
	afterEOF
	duplicateLabel
	duplicateSeries
	badBound
	sampleLimit
	seriesLimit
	labelLimit
	nameLimit
	valueLimit
	bucketLimit
	filtered
	reasons
)

// reasonWords are the stable words of metric.Drop; reasonTexts say it to a person.
var (
	reasonWords = [reasons]string{"", "parse", "invalid_utf8", "truncated", "after_eof", "duplicate_label",
		"duplicate_series", "bad_bound", "sample_limit", "series_limit", "label_limit", "name_limit", "value_limit",
		"bucket_limit", metric.DropFiltered}
	reasonTexts = [reasons]string{"", "no exposition line", "invalid UTF-8", "cut off without a line feed",
		"comes after # EOF", "a label occurs twice", "series occurs again later, the last one counts",
		"le or quantile is no number", "too many samples, see --max-samples", "too many series, see --max-series",
		"too many labels, see --max-labels", "name is too long, see --max-name-length",
		"label value is too long, see --max-value-length", "too many buckets, see --max-buckets",
		"not kept by --keep or --drop"}
)

// tally counts the dropped lines of one body.
type tally struct {
	drops [reasons]metric.Drop
}

// add counts a line and keeps the first of each reason as an example.
func (t *tally) add(r reason, number int32, text []byte) {
	d := &t.drops[r]
	if d.Lines++; d.Lines == 1 && r != filtered {
		excerpt := clean(string(text[:min(len(text), 160)]), 110)
		d.First = clean("line "+itoa(number)+": "+excerpt+": "+reasonTexts[r], 200)
	}
}

// list appends what was counted to dst, in the order of the reasons.
func (t *tally) list(dst []metric.Drop) []metric.Drop {
	for r := range t.drops {
		if t.drops[r].Lines > 0 {
			d := t.drops[r]
			d.Reason = reasonWords[r]
			dst = append(dst, d)
		}
	}
	return dst
}

// repair rewrites a line that textparse refuses, for the spellings that are in
// use: NaN as C runtimes print it, exemplars in classic text, timestamps that
// are negative or have a fraction. ok is false when it is none of these.
func repair(dst, text []byte) (fixed []byte, stamped, ok bool) {
	n := seriesEnd(text)
	if n <= 0 {
		return dst, false, false
	}
	rest := trimBlanks(text[n:])
	end := tokenEnd(rest, 0)
	value, tail := rest[:end], trimBlanks(rest[end:])
	changed := false
	if isNaN(value) {
		value, changed = []byte("NaN"), true
	}
	if len(tail) > 0 {
		stamp := tail[:tokenEnd(tail, 0)]
		if _, err := strconv.ParseFloat(string(stamp), 64); err == nil {
			stamped, tail = true, trimBlanks(tail[len(stamp):])
		}
		if len(tail) > 0 && !bytes.HasPrefix(tail, []byte("# {")) {
			return dst, false, false
		}
		changed = true
	}
	if !changed {
		return dst, false, false
	}
	dst = append(append(append(dst, text[:n]...), ' '), value...)
	return append(dst, '\n'), stamped, true
}

// isNaN knows nan, -nan, nan(ind), -nan(snan) and the like, in any case.
func isNaN(value []byte) bool {
	s := strings.ToLower(strings.TrimLeft(string(value[:min(len(value), 32)]), "+-"))
	s, ok := strings.CutPrefix(s, "nan")
	return ok && (s == "" || s[0] == '(' && s[len(s)-1] == ')')
}

// clean makes text from a server fit for messages: at most n bytes, valid UTF-8,
// and nothing that a terminal would act upon.
func clean(s string, n int) string {
	if len(s) > 4*n {
		s = s[:4*n]
	}
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) <= n {
		return s
	}
	cut := n - len("…")
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

func quote(s string, n int) string { return `"` + clean(s, n) + `"` }

func itoa(n int32) string { return strconv.Itoa(int(n)) }

package scrape

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

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
	familyLimit
	seriesLimit
	labelLimit
	nameLimit
	valueLimit
	bucketLimit
	nativeLimit
	memoryLimit
	filtered
	reasons
)

// reasonWords are the stable words of metric.Drop; reasonTexts say it to a person.
var (
	reasonWords = [reasons]string{"", "parse", "invalid_utf8", "truncated", "after_eof", "duplicate_label",
		"duplicate_series", "bad_bound", "sample_limit", "family_limit", "series_limit", "label_limit", "name_limit",
		"value_limit", "bucket_limit", "native_bucket_limit", "memory_limit", metric.DropFiltered}
	reasonTexts = [reasons]string{"", "no exposition line", "invalid UTF-8", "cut off without a line feed",
		"comes after # EOF", "a label occurs twice", "series occurs again later, the last one counts",
		"le or quantile is no number", "too many samples, see --max-samples", "too many families, see --max-families",
		"too many series, see --max-series",
		"too many labels, see --max-labels", "name is too long, see --max-name-length",
		"label value is too long, see --max-value-length", "too many buckets, see --max-buckets",
		"too many buckets of a native histogram, see --max-native-buckets",
		"no memory for more series, see --max-memory",
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
		excerpt := metric.Clean(string(text[:min(len(text), 160)]), 110)
		d.First = metric.Clean("line "+itoa(number)+": "+excerpt+": "+reasonTexts[r], 200)
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

// repair rewrites a line that textparse refuses, for the spellings that are in use: NaN as C runtimes print it,
// exemplars in classic text, timestamps that are negative or have a fraction. own is the timestamp as a number.
// ok is false when it is none of these.
func repair(dst, text []byte) (fixed []byte, own ownTime, ok bool) {
	n := seriesEnd(text)
	if n <= 0 {
		return dst, own, false
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
		if v, err := strconv.ParseFloat(string(stamp), 64); err == nil || errors.Is(err, strconv.ErrRange) {
			own, tail = ownTime{true, v}, trimBlanks(tail[len(stamp):])
		}
		if len(tail) > 0 && !bytes.HasPrefix(tail, []byte("# {")) {
			return dst, own, false
		}
		changed = true
	}
	if !changed {
		return dst, own, false
	}
	dst = append(append(append(dst, text[:n]...), ' '), value...)
	return append(dst, '\n'), own, true
}

// isNaN knows nan, -nan, nan(ind), -nan(snan) and the like, in any case.
func isNaN(value []byte) bool {
	s := strings.ToLower(strings.TrimLeft(string(value[:min(len(value), 32)]), "+-"))
	s, ok := strings.CutPrefix(s, "nan")
	return ok && (s == "" || s[0] == '(' && s[len(s)-1] == ')')
}

func quote(s string, n int) string { return `"` + metric.Clean(s, n) + `"` }

func itoa(n int32) string { return strconv.Itoa(int(n)) }

package scrape

import "bytes"

// sibling is the bucket line that was looked up last, cut around its bound. A line that differs from it in the bound
// only is a bucket of the same series: that saves taking labels apart for all buckets of a histogram but the first.
type sibling struct {
	source       owner
	series       int32
	before, from []byte // the text up to the bound, and from its closing quote on
}

var boundLabel = []byte(`le="`)

// set takes a line whose bound, as the parser understood it, is text.
func (b *sibling) set(raw []byte, src owner, series int32, text string) {
	b.before = b.before[:0]
	at := bytes.LastIndex(raw, boundLabel) + len(boundLabel)
	if at < len(boundLabel)+1 || raw[at-len(boundLabel)-1] != '{' && raw[at-len(boundLabel)-1] != ',' {
		return
	}
	// The parser found the same text: this really is the label, not some letters within the value of another one.
	end := at + len(text)
	if text == "" || end >= len(raw) || string(raw[at:end]) != text || raw[end] != '"' {
		return
	}
	b.source, b.series = src, series
	b.before, b.from = append(b.before, raw[:at]...), append(b.from[:0], raw[end:]...)
}

// match returns the bound of a line of the same series.
func (b *sibling) match(raw []byte, src owner) (text []byte, ok bool) {
	if len(b.before) == 0 || b.source != src || !bytes.HasPrefix(raw, b.before) || !bytes.HasSuffix(raw, b.from) {
		return nil, false
	}
	end := len(raw) - len(b.from)
	if end <= len(b.before) || end-len(b.before) > 64 {
		return nil, false
	}
	mid := raw[len(b.before):end]
	if bytes.ContainsAny(mid, "\"\\") {
		return nil, false
	}
	return mid, true
}

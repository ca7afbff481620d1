package scrape

import "github.com/scrapestat/scrapestat/metric"

// Forget makes the next body take the slow way, without the memory of the last
// one, for comparison with replay.
func (d *Decoder) Forget() { d.layout = layout{} }

// Replays reports whether the layout fits the last body without a new look.
func (d *Decoder) Replays(body []byte) bool {
	return d.layout.ok && d.any && d.replay(body)
}

// ParseValue is the number parser of replay.
func ParseValue(b []byte, i int) (uint64, int, bool) { return parseValue(b, i) }

// SetRelabel is what a collector does with the hook of a target.
func (d *Decoder) SetRelabel(f func(string, metric.Labels) (string, metric.Labels, bool)) {
	d.relabel = f
}

// PanicInWarn makes the next warning of a kind that was not given panic, when all
// of the body has been taken over; the function that is returned mends that.
func (d *Decoder) PanicInWarn() (mend func()) {
	said := d.said
	d.said = nil
	return func() { d.said = said }
}

// PanicInParser lets both parsers of Prometheus panic: they have no body yet.
func (d *Decoder) PanicInParser() (ok bool) {
	_, _, _, _, ok = d.learn.parser.next()
	_, _, sound := d.learn.parser.labels(nil)
	_, exemplar := d.learn.parser.exemplar()
	entry := d.proto.parser.next(nil, 1)
	_, _, protoSound := d.proto.parser.labels(nil)
	return ok || sound || exemplar || protoSound || entry.kind != entryBad
}

package scrape

// Forget makes the next body take the slow way, for comparison with replay.
func (d *Decoder) Forget() { d.layout.ok = false }

// Replays says whether the layout fits the last body without a new look.
func (d *Decoder) Replays(body []byte) bool {
	return d.layout.ok && d.any && d.replay(body)
}

// ParseValue is the number parser of replay.
func ParseValue(b []byte, i int) (uint64, int, bool) { return parseValue(b, i) }

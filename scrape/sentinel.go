package scrape

import "math"

// unblank returns the bits of a value, those of NaN for one that means there is none: the raw number would spoil every
// average.
func (d *Decoder) unblank(slot int32, bits uint64) uint64 {
	if d.sentinels == nil {
		return bits
	}
	if blank := d.sentinels[slot]; blank != nil && blank(math.Float64frombits(bits)) {
		d.blanks++
		return math.Float64bits(math.NaN())
	}
	return bits
}

// watch notes which values of a slot mean that there is none, if any do. Each family is asked of once: a body may have
// 100,000 slots of one.
func (d *Decoder) watch(slot int32) {
	if d.sentinel == nil {
		return
	}
	family := int(d.dict.series[d.dict.slots[slot].series].Family)
	for n := len(d.blankOf); n <= family; n++ {
		d.blankOf = append(d.blankOf, d.sentinel(d.dict.families[n].Name))
	}
	blank := d.blankOf[family]
	if blank == nil {
		return
	}
	if d.sentinels == nil {
		d.sentinels = map[int32]func(float64) bool{}
	}
	d.sentinels[slot] = blank
}

// inexact reports whether a number, stored as bits, is a whole one that a float64 does not hold.
func inexact(token []byte, bits uint64) bool {
	if len(token) < 16 || bits == math.Float64bits(math.NaN()) { // a sentinel
		return false
	}
	var n uint64
	for _, c := range token {
		if c-'0' > 9 {
			return false
		}
		if n > (math.MaxUint64-9)/10 {
			return true // twenty digits
		}
		n = n*10 + uint64(c-'0')
	}
	return n > 1<<53 && (n >= 1<<63 || uint64(float64(n)) != n)
}

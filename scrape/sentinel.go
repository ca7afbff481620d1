package scrape

import (
	"math"
	"strings"
)

// sentinelRule is the sentinel values of a family: those that mean "no data".
type sentinelRule uint8

const (
	noSentinel sentinelRule = iota
	// dcgmBlank: DCGM's blanks of 64-bit and 32-bit integers (from 0x7ffffffffffffff0 and 0x7ffffff0 on) and of floats.
	dcgmBlank
	// minusOne: a hit rate of vLLM that was never computed.
	minusOne
)

// sentinelOf returns the rule of a family.
func sentinelOf(name string) sentinelRule {
	switch {
	case strings.HasPrefix(name, "DCGM_"):
		return dcgmBlank
	case strings.Contains(name, "vllm") && strings.HasSuffix(name, "_cache_hit_rate"):
		return minusOne
	}
	return noSentinel
}

// blank reports whether v is no measurement.
func (r sentinelRule) blank(v float64) bool {
	switch r {
	case dcgmBlank:
		return v >= 0x1p63 && v < 0x1.00001p63 || v >= 2147483632 && v <= 2147483647 || v == 140737488355328
	case minusOne:
		return v < 0 && v == math.Trunc(v) && v > -2
	}
	return false
}

// unblank returns the bits of a value, those of NaN for a sentinel. The raw number
// means nothing, and would spoil every average.
func (d *Decoder) unblank(slot int32, bits uint64) uint64 {
	if d.sentinels == nil {
		return bits
	}
	if rule := d.sentinels[slot]; rule != noSentinel && rule.blank(math.Float64frombits(bits)) {
		d.blanks++
		return math.Float64bits(math.NaN())
	}
	return bits
}

// watch notes the rule of a slot of a family that has one.
func (d *Decoder) watch(slot int32) {
	f := &d.dict.families[d.dict.series[d.dict.slots[slot].series].Family]
	rule := sentinelOf(f.Name)
	if rule == noSentinel {
		return
	}
	if d.sentinels == nil {
		d.sentinels = map[int32]sentinelRule{}
	}
	d.sentinels[slot] = rule
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

package metric

import "math"

// Created is the creation time that a server states of a series, in seconds since
// 1970. The zero value is one not stated yet.
type Created struct {
	known bool
	at    float64
}

// Set takes the time as of one poll and reports whether it is another than before. One that is not finite is ignored.
func (c *Created) Set(at float64) bool {
	if at-at != 0 || c.known && at == c.at {
		return false
	}
	moved := c.known
	c.at, c.known = at, true
	return moved
}

// NS returns the time in nanoseconds, to a microsecond; 0 when it is unknown or cannot be a time since 1970.
func (c *Created) NS() int64 {
	if c.at <= 0 || c.at >= 9e9 {
		return 0
	}
	return int64(math.Round(c.at*1e6)) * 1000
}

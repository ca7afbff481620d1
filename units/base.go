package units

// Base returns the unit in which values of unit, times factor, are to be compared with those of other units of the same
// kind: "seconds" and 0.001 for milliseconds. A unit that has no others of its kind is its own, with the factor 1.
func Base(unit string) (base string, factor float64) {
	m := measureOf(unit)
	switch m.base {
	case duration:
		return "seconds", m.factor
	case binary, decimal:
		return "bytes", m.factor
	case binaryPS, decimalPS:
		return "bytes/s", m.factor
	case share:
		return "ratio", m.factor / 100
	case watts:
		return "watt", m.factor
	case joules:
		return "joule", m.factor
	case hertz:
		return "hertz", m.factor
	}
	return unit, 1
}

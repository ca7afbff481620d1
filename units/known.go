package units

import (
	"slices"
	"strings"
)

// counted are the things that are counted rather than measured.
var counted = []string{"batches", "blocks", "calls", "chunks", "cores", "errors", "executions", "frames", "images",
	"inferences", "instances", "iterations",
	"operations", "packets", "passes", "pixels", "megapixels", "reads", "replicas", "requests", "responses",
	"sessions", "slots", "steps", "streams", "tflops", "threads", "tokens"}

// Known reports whether this package names, measures or counts a unit; "" is one of them. A count of things may
// be by the second, "tokens/s", or by another unit, "tokens/joule".
func Known(unit string) bool {
	if measureOf(unit).base != plain || slices.Contains(counted, unit) {
		return true
	}
	if top, per, ok := strings.Cut(unit, "/"); ok {
		return top != "" && per != "" && (top == "1" || top == "flop" || Known(top)) &&
			(per == "s" || per == "B" || Known(per))
	}
	switch unit {
	case "", "count", Number, "celsius", "fahrenheit", "kelvin", "volts", "amperes":
		return true
	}
	return false
}

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

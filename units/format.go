package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// measure is how values of a unit are written: as value*factor in base, with the prefixes that base allows.
type measure struct {
	factor float64
	base   base
}

type base uint8

const (
	plain    base = iota // a number and the unit itself
	duration             // seconds
	binary               // bytes, 1024
	binaryPS             // bytes per second
	decimal              // bytes, 1000
	decimalPS
	share // per cent
	watts
	joules
	hertz
)

// measures are how values of units are written; any other unit is plain.
var measures = map[string]measure{
	"seconds": {1, duration}, "milliseconds": {1e-3, duration}, "microseconds": {1e-6, duration},
	"nanoseconds": {1e-9, duration}, "minutes": {60, duration}, "hours": {3600, duration},
	"days": {86400, duration}, "ratio": {100, share}, "percent": {1, share}, "watt": {1, watts},
	"milliwatt": {1e-3, watts}, "joule": {1, joules}, "millijoule": {1e-3, joules},
	"megajoule": {1e6, joules}, "hertz": {1, hertz}, "megahertz": {1e6, hertz},
	"gigahertz": {1e9, hertz}, "bytes": {1, binary}, "kibibytes": {1 << 10, binary},
	"mebibytes": {1 << 20, binary}, "gibibytes": {1 << 30, binary}, "tebibytes": {1 << 40, binary},
	"bytes/s": {1, binaryPS}, "kilobytes": {1e3, decimal}, "megabytes": {1e6, decimal},
	"gigabytes": {1e9, decimal}, "terabytes": {1e12, decimal}, "mb/s": {1e6, decimalPS},
	"gb/s": {1e9, decimalPS},
}

func measureOf(unit string) measure {
	if m, ok := measures[unit]; ok {
		return m
	}
	return measure{1, plain}
}

// Format writes a value of a unit, as [Infer] and [InferExtended] name them, for people: three significant
// digits, a prefix that suits the size (1024 for bytes), and thousands separated.
//
//	Format(0.0123, "seconds")    12.3 ms        Format(1536, "bytes")     1.5 KiB
//	Format(754, "seconds")       12m 34s        Format(0.871, "ratio")    87.1 %
//	Format(1234567, "tokens")    1,234,567 tokens
//	Format(54.6, "")             54.6
//
// Values that are not finite give NaN, +Inf or -Inf without a unit. A unit that
// is not known is written after the number as it is.
func Format(value float64, unit string) string {
	m := measureOf(unit)
	v := value * m.factor
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	switch m.base {
	case duration:
		return formatDuration(v)
	case binary:
		return prefixed(v, 1024, "", "B", "KiB", "MiB", "GiB", "TiB", "PiB")
	case binaryPS:
		return prefixed(v, 1024, "/s", "B", "KiB", "MiB", "GiB", "TiB", "PiB")
	case decimal:
		return prefixed(v, 1000, "", "B", "kB", "MB", "GB", "TB", "PB")
	case decimalPS:
		return prefixed(v, 1000, "/s", "B", "kB", "MB", "GB", "TB", "PB")
	case share:
		return digits(v) + " %"
	case watts:
		return prefixed(v*1e3, 1000, "", "mW", "W", "kW", "MW")
	case joules:
		return prefixed(v*1e3, 1000, "", "mJ", "J", "kJ", "MJ", "GJ")
	case hertz:
		return prefixed(v, 1000, "", "Hz", "kHz", "MHz", "GHz")
	}
	switch unit {
	case "", "count", Number:
		return digits(v)
	case "celsius":
		return digits(v) + " °C"
	case "fahrenheit":
		return digits(v) + " °F"
	case "kelvin":
		return digits(v) + " K"
	}
	return digits(v) + " " + unit
}

// formatDuration writes seconds: below a minute with a prefix, above in two
// whole parts, from a million days on as days.
func formatDuration(s float64) string {
	if v := significant(s); v == 0 {
		return "0 s"
	} else if math.Abs(v) < 60 {
		return prefixed(s*1e9, 1000, "", "ns", "µs", "ms", "s")
	}
	sign := ""
	if s < 0 {
		sign, s = "-", -s
	}
	two := func(whole float64, big string, rest float64, small string) string {
		return sign + strconv.FormatFloat(whole, 'f', 0, 64) + big + fmt.Sprintf(" %02.0f", rest) + small
	}
	switch minutes := math.Round(s / 60); {
	case math.Round(s) < 3600:
		s = math.Round(s)
		return two(math.Floor(s/60), "m", math.Mod(s, 60), "s")
	case minutes < 48*60:
		return two(math.Floor(minutes/60), "h", math.Mod(minutes, 60), "m")
	case s >= 1e6*86400:
		return sign + digits(s/86400) + " d"
	default:
		hours := math.Round(s / 3600)
		return two(math.Floor(hours/24), "d", math.Mod(hours, 24), "h")
	}
}

// prefixed writes v with the largest name of which it is at least 1; each name is step times the one before.
func prefixed(v, step float64, per string, names ...string) string {
	i := 0
	for i+1 < len(names) && math.Abs(significant(v)) >= step {
		v /= step
		i++
	}
	return digits(v) + " " + names[i] + per
}

// significant rounds to three significant digits; larger numbers to whole ones.
func significant(v float64) float64 {
	if math.Abs(v) >= 1000 {
		return math.Round(v)
	}
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 2, 64), 64) // it reads what the other wrote
	return r
}

// digits writes a number with three significant digits, from 1,000 on as a whole number with thousands
// separated. Very small and very large numbers keep an exponent.
func digits(v float64) string {
	v = significant(v)
	switch a := math.Abs(v); {
	case a == 0:
		return "0"
	case a < 1e-4 || a >= 1e15:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case a >= 1000:
		return separate(strconv.FormatFloat(v, 'f', 0, 64))
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// separate puts commas between groups of three digits.
func separate(s string) string {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

package check

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// dimension is what a unit measures, and how many of the smallest unit of that dimension it is.
type dimension struct {
	of     string
	factor float64
}

// dimensions are the units that a limit may have, and those that package units gives to metrics.
var dimensions = map[string]dimension{
	"ns": {"time", 1e-9}, "us": {"time", 1e-6}, "µs": {"time", 1e-6}, "ms": {"time", 1e-3}, "s": {"time", 1},
	"min": {"time", 60}, "h": {"time", 3600},
	"nanoseconds": {"time", 1e-9}, "microseconds": {"time", 1e-6}, "milliseconds": {"time", 1e-3}, "seconds": {"time", 1},
	"minutes": {"time", 60}, "hours": {"time", 3600},
	"B": {"size", 1}, "KB": {"size", 1e3}, "MB": {"size", 1e6}, "GB": {"size", 1e9}, "TB": {"size", 1e12},
	"KiB": {"size", 1 << 10}, "MiB": {"size", 1 << 20}, "GiB": {"size", 1 << 30}, "TiB": {"size", 1 << 40},
	"bytes": {"size", 1}, "kilobytes": {"size", 1e3}, "megabytes": {"size", 1e6}, "gigabytes": {"size", 1e9},
	"kibibytes": {"size", 1 << 10}, "mebibytes": {"size", 1 << 20}, "gibibytes": {"size", 1 << 30},
	"%": {"share", 0.01}, "percent": {"share", 0.01}, "ratio": {"share", 1},
	"tok": {"tokens", 1}, "tokens": {"tokens", 1}, "token": {"tokens", 1},
	"req": {"requests", 1}, "requests": {"requests", 1}, "request": {"requests", 1},
	"J": {"energy", 1}, "mJ": {"energy", 1e-3}, "kJ": {"energy", 1e3}, "joules": {"energy", 1},
	"millijoules": {"energy", 1e-3},
	"W":           {"power", 1}, "kW": {"power", 1e3}, "watts": {"power", 1},
	"joule": {"energy", 1}, "millijoule": {"energy", 1e-3}, "megajoule": {"energy", 1e6},
	"watt": {"power", 1}, "milliwatt": {"power", 1e-3}, "terabytes": {"size", 1e12}, "tebibytes": {"size", 1 << 40},
	"gb/s": {"size/time", 1e9}, "mb/s": {"size/time", 1e6},
	"number": {"", 1}, "count": {"", 1}, "": {"", 1},
}

// dimensionOf is the dimension of a unit; one that is not known stands for itself. A unit may be a quotient: tokens/s.
func dimensionOf(unit string) dimension {
	if d, ok := dimensions[unit]; ok {
		return d
	}
	top, bottom, ok := strings.Cut(unit, "/")
	if !ok {
		return dimension{unit, 1}
	}
	t, b := dimensionOf(strings.TrimSpace(top)), dimensionOf(strings.TrimSpace(bottom))
	return dimension{t.of + "/" + b.of, t.factor / b.factor}
}

// convert turns a value of one unit into another. A value without a unit is in whatever is asked for; a metric without
// a unit takes counts of things.
func convert(v float64, from, to string) (float64, error) {
	if from == "" || from == to {
		return v, nil
	}
	f, t := dimensionOf(from), dimensionOf(to)
	if f.of == t.of {
		return v * (f.factor / t.factor), nil
	}
	switch {
	case t.of == "" && f.of == "share":
		return v * f.factor, nil // a share that no one called so
	case t.of == "" && f.factor == 1 && f.of != "time" && f.of != "size", t.of == "/time" &&
		strings.HasSuffix(f.of, "/time"):
		return v * f.factor / t.factor, nil // 100 req/s of a thing that has no unit
	}
	shown := cmp.Or(to, "no unit")
	return 0, fmt.Errorf("the limit is in %s, the metric in %s", from, shown)
}

// parseAmount reads a number with an optional unit: 450ms, 1.5 GiB, 90%, 1e3 tok/s.
func parseAmount(text string) (v float64, unit string, err error) {
	text = strings.TrimSpace(text)
	i := 0
	for i < len(text) && (strings.IndexByte("+-.0123456789_", text[i]) >= 0 || exponent(text, i)) {
		i++
	}
	v, err = strconv.ParseFloat(strings.ReplaceAll(text[:i], "_", ""), 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, "", fmt.Errorf("%q is no number with a unit, such as 450ms, 0.9 or 95%%", shorten(text))
	}
	unit = strings.TrimSpace(text[i:])
	if d := dimensionOf(unit); unit != "" && d.of == unit && dimensions[unit].factor == 0 {
		return 0, "", fmt.Errorf("%q has no known unit: %q (known: ns us ms s min h, B KB MB GB KiB MiB GiB, %%, tok, req, "+
			"J, W, and per second: tok/s)", shorten(text), shorten(unit))
	}
	return v, unit, nil
}

// ParseLimit reads a number with an optional unit, such as 450ms, 90% or 1e3 tok/s.
func ParseLimit(text string) (l Limit, err error) {
	l.Value, l.Unit, err = parseAmount(text)
	return l, err
}

// In returns the limit in a unit of package units.
func (l Limit) In(unit string) (float64, error) { return convert(l.Value, l.Unit, unit) }

// exponent reports whether text[i] is the e of a number: 1e3, 2E-4.
func exponent(text string, i int) bool {
	if i == 0 || text[i] != 'e' && text[i] != 'E' {
		return false
	}
	rest := strings.TrimLeft(text[i+1:], "+-")
	return rest != "" && rest[0] >= '0' && rest[0] <= '9'
}

// parseMargin reads a share or an amount: 10%, 5ms.
func parseMargin(text string) (Margin, error) {
	v, unit, err := parseAmount(text)
	if err != nil {
		return Margin{}, err
	}
	if v < 0 {
		return Margin{}, fmt.Errorf("%q: a margin is not negative", strings.TrimSpace(text))
	}
	if unit == "%" {
		return Margin{Value: v / 100, Percent: true}, nil
	}
	return Margin{Value: v, Unit: unit}, nil
}

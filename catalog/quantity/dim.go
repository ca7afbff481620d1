package quantity

import (
	"fmt"
	"strings"

	"github.com/scrapestat/scrapestat/units"
)

// dim is the dimension of a value: powers of seconds, bytes and joules, and what is counted. The zero value is not
// known, and agrees with everything.
type dim struct {
	s, b, j int8
	of      string // "1" for a bare number, "tokens"; "" is not known
}

// dimension returns that of a unit.
func dimension(unit string) dim {
	if base, _ := units.Base(unit); base != unit {
		return dimension(base)
	}
	top, per, ok := strings.Cut(unit, "/")
	d := simple(top)
	if !ok {
		return d
	}
	return d.times(simple(per), -1)
}

func simple(unit string) dim {
	if unit == "s" || unit == "B" {
		unit = map[string]string{"s": "seconds", "B": "bytes"}[unit]
	}
	base, _ := units.Base(unit)
	switch base {
	case "seconds":
		return dim{s: 1, of: "1"}
	case "bytes":
		return dim{b: 1, of: "1"}
	case "bytes/s":
		return dim{b: 1, s: -1, of: "1"}
	case "joule":
		return dim{j: 1, of: "1"}
	case "watt":
		return dim{j: 1, s: -1, of: "1"}
	case "hertz":
		return dim{s: -1, of: "1"}
	case "ratio", "1":
		return dim{of: "1"}
	case "", "count", "number", "requests": // a request is one of anything: of first tokens, say
		return dim{}
	}
	return dim{of: base}
}

// plus is the dimension of a sum; false when there is none.
func (d dim) plus(e dim) (dim, bool) {
	if d == (dim{}) || e == (dim{}) {
		return dim{}, true
	}
	if one := (dim{of: "1"}); d == one || e == one { // all but one of the things that are counted
		other := pick(d == one, e, d)
		return other, other.s == 0 && other.b == 0 && other.j == 0
	}
	return d, d == e
}

// times multiplies, or with -1 divides. What is counted by something that is not known is not known.
func (d dim) times(e dim, sign int8) dim {
	if d.of == "" || e.of == "" {
		return dim{}
	}
	out := dim{d.s + sign*e.s, d.b + sign*e.b, d.j + sign*e.j, d.of}
	switch {
	case e.of == "1":
	case d.of == e.of && sign < 0:
		out.of = "1"
	case d.of == "1" && sign > 0:
		out.of = e.of
	default:
		return dim{}
	}
	return out
}

// fits reports whether a value of the dimension may be shown in a unit. Things that are counted may be by Little's law,
// which makes requests of seconds by seconds.
func (d dim) fits(unit string) bool {
	e := dimension(unit)
	return d.of == "" || e.of == "" || d.s == e.s && d.b == e.b && d.j == e.j
}

func (d dim) String() string {
	var out []string
	for _, x := range []struct {
		n    int8
		word string
	}{{d.s, "seconds"}, {d.b, "bytes"}, {d.j, "joule"}} {
		switch {
		case x.n == 1:
			out = append(out, x.word)
		case x.n != 0:
			out = append(out, fmt.Sprintf("%s^%d", x.word, x.n))
		}
	}
	if d.of != "1" || out == nil {
		out = append([]string{pick(d.of == "1", "a number", d.of)}, out...)
	}
	return strings.Join(out, " ")
}

// Fits returns an error when the values of the formula cannot be of that unit.
func (e *Expr) Fits(unit string) error {
	if d := e.root.dim; !d.fits(unit) {
		return fmt.Errorf("the formula gives %s, which is not %s", d, pick(unit == "", "a number", unit))
	}
	return nil
}

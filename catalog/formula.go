package catalog

import (
	"slices"
	"strconv"
	"strings"
)

// Text returns how the quantity is made, for people: names of counters stand for what they gained, name_sum and
// name_count for what the parts of a histogram gained, and time for the seconds.
func (r *Rule) Text() string {
	text := r.Formula
	if text == "" && r.Num != nil {
		text = quotientText(r.Num, r.Den)
	}
	for _, way := range r.Else {
		text += ", or else " + quotientText(way.Num, way.Den)
	}
	return text
}

func quotientText(num, den []Term) string {
	if den == nil {
		if len(num) == 1 && num[0].Part == Integral {
			mean := slices.Clone(num)
			mean[0].Part = Mean
			return formulaOf(mean)
		}
		return bracket(num) + " / time"
	}
	return bracket(num) + " / " + bracket(den)
}

func bracket(terms []Term) string {
	if len(terms) > 1 {
		return "(" + formulaOf(terms) + ")"
	}
	return formulaOf(terms)
}

// formulaOf writes a sum.
func formulaOf(terms []Term) string {
	var b strings.Builder
	for i, t := range terms {
		factor := t.Factor
		switch {
		case factor < 0 && i > 0:
			b.WriteString(" - ")
			factor = -factor
		case i > 0:
			b.WriteString(" + ")
		}
		if factor != 0 && factor != 1 {
			b.WriteString(strconv.FormatFloat(factor, 'g', -1, 64) + " * ")
		}
		b.WriteString(t.text())
	}
	return b.String()
}

func (t *Term) text() string {
	var labels []string
	for _, l := range t.Where {
		labels = append(labels, l.Name+"="+l.Value)
	}
	for _, l := range t.Except {
		labels = append(labels, l.Name+"!="+l.Value)
	}
	name := t.Family
	switch t.Part {
	case Sum:
		name += "_sum"
	case Count:
		name += "_count"
	}
	if labels != nil {
		name += "{" + strings.Join(labels, ",") + "}"
	}
	switch t.Part {
	case Integral:
		return "integral of " + name
	case Mean:
		return "mean of " + name
	case Max:
		return "max of " + name
	case Min:
		return "min of " + name
	}
	return name
}

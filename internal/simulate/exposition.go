package simulate

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// The content types of Python's prometheus_client.
const (
	contentTypeText = "text/plain; version=0.0.4; charset=utf-8"
	contentTypeOpen = "application/openmetrics-text; version=1.0.0; charset=utf-8"
)

// appendText appends the body in the classic text format as the library of each family writes it. In that of Python's
// prometheus_client, counters stand under their _total name, and the _created samples of a family are a gauge family of
// their own after it.
func (r *registry) appendText(b []byte) []byte {
	for _, f := range r.families {
		if f.d.bare && len(f.series) == 0 {
			continue
		}
		b = append(b, f.classic.samples...)
		for _, s := range f.series {
			b = s.appendSamples(b)
		}
		if f.d.blank {
			b = append(b, '\n')
		}
		if f.plain || len(f.series) == 0 {
			continue
		}
		b = append(b, f.classic.created...)
		for _, s := range f.series {
			b = append(b, s.created...)
		}
	}
	return b
}

// appendOpenMetrics appends the body in the OpenMetrics format, where a
// _created sample follows the samples of its own series.
func (r *registry) appendOpenMetrics(b []byte) []byte {
	for _, f := range r.families {
		b = append(b, f.open.samples...)
		for _, s := range f.series {
			b = s.appendSamples(b)
			if !f.plain {
				b = append(b, s.created...)
			}
		}
	}
	return append(b, "# EOF\n"...)
}

func (s *series) appendSamples(b []byte) []byte {
	d, last := s.family.d, len(s.prefix)
	switch s.family.typ {
	case metric.Histogram, metric.Summary:
	default:
		return s.appendLine(b, s.prefix[0], s.value)
	}
	for _, p := range d.order {
		switch p {
		case partInner:
			b = s.appendInner(b)
		case partCount:
			b = s.appendLine(b, s.prefix[last-2], float64(s.count))
		case partSum:
			b = s.appendLine(b, s.prefix[last-1], s.value)
		}
	}
	return b
}

// appendInner appends the buckets of a histogram, the quantiles of a summary.
func (s *series) appendInner(b []byte) []byte {
	if s.family.typ == metric.Summary {
		for i, v := range s.quantiles() {
			b = s.appendLine(b, s.prefix[i], v)
		}
		return b
	}
	var cumulative uint64
	for i, n := range s.buckets {
		cumulative += n
		b = s.appendLine(b, s.prefix[i], float64(cumulative))
	}
	return b
}

func (s *series) appendLine(b []byte, prefix string, v float64) []byte {
	return append(s.family.d.value(append(b, prefix...), v), '\n')
}

// writeText fixes all text of a series but its values. created is in seconds since 1970.
func (s *series) writeText(created float64) {
	f := s.family
	line := func(suffix string, extra ...metric.Label) string {
		pairs := make([]metric.Label, 0, len(f.labels)+1)
		for _, name := range f.labels {
			value, _ := s.labels.Get(name)
			pairs = append(pairs, metric.Label{Name: name, Value: value})
		}
		return string(f.d.appendSeries(nil, f.name+suffix, append(pairs, extra...)))
	}
	s.prefix = nil
	switch f.typ {
	case metric.Counter:
		s.prefix = []string{line(f.d.total)}
	case metric.Histogram:
		for _, bound := range f.bounds {
			s.prefix = append(s.prefix, line("_bucket", metric.Label{Name: "le", Value: string(f.d.bound(nil, bound))}))
		}
		s.prefix = append(s.prefix, line("_bucket", metric.Label{Name: "le", Value: "+Inf"}), line("_count"), line("_sum"))
	case metric.Summary:
		for _, q := range f.quantiles {
			s.prefix = append(s.prefix, line("", metric.Label{Name: "quantile", Value: string(f.d.bound(nil, q))}))
		}
		s.prefix = append(s.prefix, line("_count"), line("_sum"))
	default:
		s.prefix = []string{line("")}
	}
	if !f.plain {
		s.created = string(s.appendLine(nil, line("_created"), created))
	}
}

// appendSeries appends a series and the blank before its value.
func (d *dialect) appendSeries(b []byte, name string, labels []metric.Label) []byte {
	if !d.declared {
		slices.SortFunc(labels, func(x, y metric.Label) int { return strings.Compare(x.Name, y.Name) })
	}
	b = append(b, name...)
	for i, l := range labels {
		if i == 0 {
			b = append(b, '{')
		} else {
			b = append(b, ',')
		}
		b = append(append(b, l.Name...), `="`...)
		b = append(append(b, escapeValue(l.Value)...), '"')
	}
	if len(labels) > 0 {
		if d.comma {
			b = append(b, ',')
		}
		b = append(b, '}')
	}
	return append(b, ' ')
}

func (f *family) writeHeaders() {
	typ := f.typ.String()
	if f.typ == metric.Unknown {
		typ = "untyped"
	}
	name := f.name
	if f.typ == metric.Counter {
		name += f.d.total
	}
	f.classic.samples = "# HELP " + name + " " + escapeHelp(f.help) + "\n# TYPE " + name + " " + typ + "\n"
	f.classic.created = "# HELP " + f.name + "_created " + escapeHelp(f.help) + "\n# TYPE " + f.name + "_created gauge\n"
	f.open.samples = "# HELP " + f.name + " " + escapeValue(f.help) + "\n# TYPE " + f.name + " " + typ + "\n"
}

func escapeHelp(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), "\n", `\n`)
}

func escapeValue(s string) string { return strings.ReplaceAll(escapeHelp(s), `"`, `\"`) }

// appendFloat appends v as prometheus_client spells it: Python's repr (a whole
// number keeps its ".0"), but a positive number from 1e6 on has an exponent.
func appendFloat(b []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(b, "NaN"...)
	case math.IsInf(v, 1):
		return append(b, "+Inf"...)
	case math.IsInf(v, -1):
		return append(b, "-Inf"...)
	case v > -1e16 && v < 1e6 && v == math.Trunc(v):
		if v == 0 && math.Signbit(v) {
			b = append(b, '-')
		}
		return append(strconv.AppendInt(b, int64(v), 10), ".0"...)
	case v <= -1e16 || v < 0 && v > -1e-4:
		return strconv.AppendFloat(b, v, 'e', -1, 64)
	case v < 0:
		return strconv.AppendFloat(b, v, 'f', -1, 64)
	default:
		return strconv.AppendFloat(b, v, 'g', -1, 64)
	}
}

package timeline

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// part is the place of a name in its family.
type part struct {
	family string
	typ    metric.Type
	role   metric.Role
	meta   Meta
}

// suffixes are the parts of families that have several names.
var suffixes = []struct {
	text string
	role metric.Role
	of   []metric.Type
}{
	{"_bucket", metric.RoleBucket, []metric.Type{metric.Histogram, metric.GaugeHistogram}},
	{"_sum", metric.RoleSum, []metric.Type{metric.Histogram, metric.Summary}},
	{"_count", metric.RoleCount, []metric.Type{metric.Histogram, metric.Summary}},
	{"_gsum", metric.RoleSum, []metric.Type{metric.GaugeHistogram}},
	{"_gcount", metric.RoleCount, []metric.Type{metric.GaugeHistogram}},
	{"_total", metric.RoleValue, []metric.Type{metric.Counter}},
	{"_info", metric.RoleValue, []metric.Type{metric.Info}},
}

// resolve says which part of which family a series is.
func (t *Timeline) resolve(s *Series) part {
	if p, ok := t.created(s.name); ok {
		return p
	}
	if m, ok := t.meta[s.name]; ok {
		return t.declared(s, m)
	}
	for _, x := range suffixes {
		base, ok := strings.CutSuffix(s.name, x.text)
		if !ok || base == "" {
			continue
		}
		m, known := t.meta[base]
		for _, typ := range x.of {
			if known && m.Type == typ {
				return part{base, typ, x.role, m}
			}
		}
	}
	t.guessed[s.name] = true
	return t.guess(s)
}

// created finds the family whose start times a name holds.
func (t *Timeline) created(name string) (part, bool) {
	base, ok := strings.CutSuffix(name, "_created")
	if !ok || base == "" {
		return part{}, false
	}
	if own, ok := t.meta[name]; ok && own.Type != metric.Gauge && own.Type != metric.Unknown {
		return part{}, false
	}
	if m, ok := t.meta[base+"_total"]; ok && m.Type == metric.Counter {
		return part{t.counterName(base + "_total"), metric.Counter, metric.RoleCreated, m}, true
	}
	if m, ok := t.meta[base]; ok {
		switch m.Type {
		case metric.Counter, metric.Histogram, metric.Summary, metric.GaugeHistogram:
			return part{base, m.Type, metric.RoleCreated, m}, true
		}
		return part{}, false
	}
	switch {
	case t.names[base+"_bucket"] && t.names[base+"_count"]:
		return part{base, metric.Histogram, metric.RoleCreated, Meta{}}, true
	case t.names[base+"_total"]:
		return part{t.counterName(base + "_total"), metric.Counter, metric.RoleCreated, Meta{}}, true
	}
	return part{}, false
}

// declared is the place of a name that has a type of its own.
func (t *Timeline) declared(s *Series, m Meta) part {
	switch m.Type {
	case metric.Counter:
		return part{t.counterName(s.name), m.Type, metric.RoleValue, m}
	case metric.Histogram, metric.GaugeHistogram:
		// A sample with the bare name of a histogram is none of its parts.
		return part{s.name, metric.Unknown, metric.RoleValue, m}
	case metric.Summary:
		if s.has("quantile") {
			return part{s.name, m.Type, metric.RoleQuantile, m}
		}
		return part{s.name, metric.Unknown, metric.RoleValue, m}
	}
	return part{s.name, m.Type, metric.RoleValue, m}
}

// guess goes by the suffixes of the names there are.
func (t *Timeline) guess(s *Series) part {
	base := func(suffix string) (string, bool) {
		b, ok := strings.CutSuffix(s.name, suffix)
		return b, ok && b != ""
	}
	if b, ok := base("_bucket"); ok && s.has("le") {
		return part{b, metric.Histogram, metric.RoleBucket, Meta{}}
	}
	for _, x := range []struct {
		suffix, other string
		role          metric.Role
	}{{"_sum", "_count", metric.RoleSum}, {"_count", "_sum", metric.RoleCount}} {
		b, ok := base(x.suffix)
		switch {
		case ok && t.names[b+"_bucket"]:
			return part{b, metric.Histogram, x.role, Meta{}}
		case ok && t.names[b+x.other]:
			return part{b, metric.Summary, x.role, Meta{}}
		}
	}
	switch {
	case s.has("quantile") && t.names[s.name+"_sum"] && t.names[s.name+"_count"]:
		return part{s.name, metric.Summary, metric.RoleQuantile, Meta{}}
	case strings.HasSuffix(s.name, "_total") && s.name != "_total":
		return part{t.counterName(s.name), metric.Counter, metric.RoleValue, Meta{}}
	case s.name == "up" || strings.HasPrefix(s.name, "scrape_"):
		delete(t.guessed, s.name) // Prometheus makes these itself
		return part{s.name, metric.Gauge, metric.RoleValue, Meta{}}
	}
	if t.o.TypeOf != nil {
		if typ, ok := t.o.TypeOf(s.name); ok && (typ == metric.Counter || typ == metric.Gauge) {
			return part{s.name, typ, metric.RoleValue, Meta{}}
		}
	}
	return part{s.name, metric.Unknown, metric.RoleValue, Meta{}}
}

func (s *Series) has(label string) bool {
	return slices.ContainsFunc(s.labels, func(l metric.Label) bool { return l.Name == label })
}

// counterName strips _total, as package scrape does, unless there is another
// family of the shorter name. What was once decided stays.
func (t *Timeline) counterName(name string) string {
	if short, ok := t.short[name]; ok {
		return short
	}
	short, ok := strings.CutSuffix(name, "_total")
	if _, other := t.meta[short]; !ok || short == "" || other || t.names[short] {
		short = name
	}
	t.short[name] = short
	return short
}

// place gives the series its slot in the dictionary of its target.
func (t *Timeline) place(s *Series) {
	p := t.resolve(s)
	match := func(re *regexp.Regexp) bool { return re.MatchString(p.family) || re.MatchString(s.name) }
	if t.o.Keep != nil && !match(t.o.Keep) || t.o.Drop != nil && match(t.o.Drop) {
		s.reason = metric.DropFiltered
	}
	slot := metric.SampleID{Role: p.role}
	cut := ""
	switch p.role {
	case metric.RoleBucket:
		cut, slot.Text = "le", "+Inf"
	case metric.RoleQuantile:
		cut = "quantile"
	}
	labels := make([]metric.Label, 0, len(s.labels))
	for _, l := range s.labels {
		if cut != "" && l.Name == cut {
			slot.Text = l.Value
			continue
		}
		labels = append(labels, l)
	}
	if cut != "" {
		bound, ok := ParseBound(slot.Text)
		if slot.Bound = bound; !ok {
			s.reason = "bad_bound"
		}
	}
	switch s.name {
	case "up":
		s.special = isUp
	case "scrape_duration_seconds":
		s.special = isDuration
	}
	if s.reason != "" {
		s.slot = 0
		return
	}
	g := &s.target.gatherer
	f := g.AddFamily(metric.Family{Name: p.family, Type: p.typ, Help: p.meta.Help, Unit: p.meta.Unit,
		Suffix: t.suffix(s, p)})
	s.slot = g.Slot(g.Series(f, metric.NewLabels(labels...)), slot)
	for len(s.target.setIn) <= s.slot {
		s.target.setIn = append(s.target.setIn, 0)
	}
}

// suffix is what the name of a value has behind that of its family.
func (t *Timeline) suffix(s *Series, p part) string {
	switch {
	case p.role == metric.RoleValue:
		return strings.TrimPrefix(s.name, p.family)
	case p.role == metric.RoleCreated && p.typ == metric.Counter && t.short[p.family+"_total"] == p.family:
		return "_total"
	}
	return ""
}

// ParseBound reads a bucket bound or quantile; 1, 1.0 and 1e0 are one bound.
func ParseBound(text string) (float64, bool) {
	if strings.ContainsAny(text, "xXpP_") {
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) {
		return 0, false
	}
	return v + 0, true // + 0 turns -0 into 0
}

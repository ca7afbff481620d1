package scrape

import (
	"bytes"
	"math"
	"regexp"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// kind says what a sample is within its family.
type kind uint8

const (
	kindValue kind = iota
	kindBucket
	kindSum
	kindCount
	kindQuantile
	kindCreated
)

// source is where the samples of one name belong in one body.
type source struct {
	family *family
	kind   kind
}

// family is a family of the dictionary, or one that is filtered out.
type family struct {
	index    int // into Decoder.families; meaningless when filtered
	filtered bool
}

type familyKey struct {
	name string
	typ  metric.Type
}

// assembler decides which family a sample belongs to: by the declared types of
// the body it stands in, never by the suffix alone.
type assembler struct {
	dict       *dictionary
	keep, drop *regexp.Regexp

	byKey        map[familyKey]*family
	counterNames map[string]string // declared name to family name, kept for the run

	page *page
}

func newAssembler(dict *dictionary, keep, drop *regexp.Regexp) *assembler {
	return &assembler{dict: dict, keep: keep, drop: drop, byKey: map[familyKey]*family{},
		counterNames: map[string]string{}}
}

// begin takes a new body.
func (a *assembler) begin(p *page, body []byte) {
	a.page = p
	last := []byte(nil)
	for _, l := range p.lines {
		name := body[l.start:l.end]
		name = name[:nameEnd(name)]
		if bytes.Equal(name, last) {
			continue
		}
		if _, ok := p.first[string(name)]; !ok {
			p.first[string(name)] = l.number
		}
		last = name
	}
	for _, d := range p.order {
		if d.typed && a.sampledBefore(d) {
			p.note("type_late", "line "+itoa(d.line)+": type of "+quote(d.name, 100)+" comes after its samples; the family is stored as unknown")
			d.typ = metric.Unknown
		}
	}
	for _, d := range p.order {
		if d.typed && a.parentOf(d) == nil {
			a.ofDecl(d)
		}
	}
}

// memberSuffixes are the suffixes that a family of a type puts on its samples.
func memberSuffixes(t metric.Type, f format) []string {
	switch t {
	case metric.Histogram:
		return []string{"_bucket", "_sum", "_count"}
	case metric.GaugeHistogram:
		return []string{"_bucket", "_gsum", "_gcount"}
	case metric.Summary:
		return []string{"", "_sum", "_count"}
	case metric.Counter:
		if f == formatOpenMetrics {
			return []string{"", "_total"}
		}
	case metric.Info:
		return []string{"", "_info"}
	}
	return []string{""}
}

func (a *assembler) sampledBefore(d *decl) bool {
	for _, suffix := range memberSuffixes(d.typ, a.page.format) {
		if n, ok := a.page.first[d.name+suffix]; ok && n < d.line {
			return true
		}
	}
	return false
}

// source returns where samples called name belong.
func (a *assembler) source(name []byte) source {
	s, ok := a.page.names[string(name)]
	if !ok {
		s = a.resolve(string(name))
		a.page.names[string(name)] = s
	}
	return s
}

func (a *assembler) resolve(name string) source {
	own := a.page.decls[name]
	if own == nil {
		own = &decl{name: name}
	}
	if parent := a.parentOf(own); parent != nil {
		return source{a.ofDecl(parent), kindCreated}
	}
	if !own.typed {
		if s, ok := a.member(name); ok {
			return s
		}
	}
	switch own.typ {
	case metric.Histogram, metric.GaugeHistogram:
		// A sample with the bare name of a histogram is none of its parts.
		return source{a.family(name, name, &decl{help: own.help}), kindValue}
	case metric.Summary:
		return source{a.ofDecl(own), kindQuantile}
	}
	return source{a.ofDecl(own), kindValue}
}

// parentOf returns the declaration whose start times d holds: x_created of a
// counter x_total or x, or of a histogram or summary x. nil when d is no such.
func (a *assembler) parentOf(d *decl) *decl {
	base, ok := strings.CutSuffix(d.name, "_created")
	if !ok || d.typed && d.typ != metric.Gauge && d.typ != metric.Unknown {
		return nil
	}
	if p := a.page.decls[base+"_total"]; p != nil && p.typed && p.typ == metric.Counter {
		return p
	}
	if p := a.page.decls[base]; p != nil && p.typed {
		switch p.typ {
		case metric.Counter, metric.Histogram, metric.Summary, metric.GaugeHistogram:
			return p
		}
	}
	return nil
}

// member finds the declared family that a suffixed name is a part of.
func (a *assembler) member(name string) (source, bool) {
	at := strings.LastIndexByte(name, '_')
	if at <= 0 {
		return source{}, false
	}
	d := a.page.decls[name[:at]]
	if d == nil || !d.typed {
		return source{}, false
	}
	k := kindValue
	switch suffix := name[at:]; {
	case d.typ == metric.Histogram || d.typ == metric.GaugeHistogram:
		plain := d.typ == metric.Histogram
		switch {
		case suffix == "_bucket":
			k = kindBucket
		case suffix == "_sum" && plain, suffix == "_gsum" && !plain:
			k = kindSum
		case suffix == "_count" && plain, suffix == "_gcount" && !plain:
			k = kindCount
		default:
			return source{}, false
		}
	case d.typ == metric.Summary && suffix == "_sum":
		k = kindSum
	case d.typ == metric.Summary && suffix == "_count":
		k = kindCount
	case d.typ == metric.Counter && suffix == "_total" && a.page.format == formatOpenMetrics:
	case d.typ == metric.Info && suffix == "_info":
	default:
		return source{}, false
	}
	return source{a.ofDecl(d), k}, true
}

// ofDecl returns the family of a declaration.
func (a *assembler) ofDecl(d *decl) *family {
	name := d.name
	if d.typ == metric.Counter {
		name = a.counterName(name)
	}
	return a.family(name, d.name, d)
}

// counterName strips _total, as AIPerf does, unless the body has another family
// of the shorter name. What was once decided stays.
func (a *assembler) counterName(declared string) string {
	if name, ok := a.counterNames[declared]; ok {
		return name
	}
	name, ok := strings.CutSuffix(declared, "_total")
	if !ok || name == "" {
		return declared
	}
	if _, sampled := a.page.first[name]; sampled || a.page.decls[name] != nil {
		name = declared
	}
	a.counterNames[declared] = name
	return name
}

func (a *assembler) family(name, declared string, d *decl) *family {
	key := familyKey{name, d.typ}
	if f, ok := a.byKey[key]; ok {
		return f
	}
	f := &family{filtered: !a.wanted(name, declared)}
	if !f.filtered {
		f.index = a.dict.addFamily(metric.Family{Name: name, Type: d.typ, Help: d.help, Unit: d.unit})
	}
	a.byKey[key] = f
	return f
}

func (a *assembler) wanted(name, declared string) bool {
	match := func(re *regexp.Regexp) bool { return re.MatchString(name) || re.MatchString(declared) }
	return (a.keep == nil || match(a.keep)) && (a.drop == nil || !match(a.drop))
}

// slot returns the slot of a sample with these labels, or why it has none.
// pairs is changed.
func (a *assembler) slot(s source, name string, pairs []metric.Label) (int32, reason) {
	role, at, text := metric.RoleValue, bound{}, ""
	switch s.kind {
	case kindBucket:
		role = metric.RoleBucket
		pairs, text = cutLabel(pairs, "le", "+Inf") // without le, as AIPerf has it
	case kindQuantile:
		if pairs, text = cutLabel(pairs, "quantile", ""); text == "" {
			s.family = a.family(name, name, &decl{})
			if s.family.filtered {
				return noSlot, filtered
			}
			break
		}
		role = metric.RoleQuantile
	case kindSum:
		role = metric.RoleSum
	case kindCount:
		role = metric.RoleCount
	case kindCreated:
		role = metric.RoleCreated
	}
	if role == metric.RoleBucket || role == metric.RoleQuantile {
		if at = a.dict.bound([]byte(text)); !at.ok {
			return noSlot, badBound
		}
	}
	return a.dict.slot(s.family.index, pairs, metric.Slot{Role: role, Bound: at.value, Text: at.text})
}

// cutLabel takes a label out of pairs; without it text is returned as it is.
func cutLabel(pairs []metric.Label, name, text string) ([]metric.Label, string) {
	for i := range pairs {
		if pairs[i].Name == name {
			text = pairs[i].Value
			return append(pairs[:i], pairs[i+1:]...), text
		}
	}
	return pairs, text
}

// parseBound reads the text of a bucket bound or quantile; 1, 1.0 and 1e0 are
// one bound.
func parseBound(text string) (float64, bool) {
	switch strings.ToLower(text) {
	case "+inf", "inf", "+infinity", "infinity":
		return math.Inf(1), true
	case "-inf", "-infinity":
		return math.Inf(-1), true
	case "", "nan":
		return 0, false
	}
	bits, end, ok := parseValue([]byte(text), 0)
	v := math.Float64frombits(bits)
	if !ok || end != len(text) || math.IsNaN(v) {
		return 0, false
	}
	return v + 0, true // + 0 turns -0 into 0
}

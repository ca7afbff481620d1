package scrape

import (
	"bytes"
	"math"
	"regexp"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// kind is what a sample is within its family.
type kind uint8

const (
	kindValue kind = iota
	kindBucket
	kindSum
	kindCount
	kindQuantile
	kindCreated
)

// owner is where the samples of one name belong in one body.
type owner struct {
	family *family
	kind   kind
}

// family is a family of the dictionary, or one that is left out.
type family struct {
	index int    // into dictionary.families; meaningless when left out
	why   reason // it is left out; stored when it is not
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
	surplus      family            // stands for those beyond the limit
	refused      bool              // there were such

	page *page
	name []byte // scratch
}

func newAssembler(dict *dictionary, keep, drop *regexp.Regexp) *assembler {
	return &assembler{dict: dict, keep: keep, drop: drop, byKey: map[familyKey]*family{},
		counterNames: map[string]string{}, surplus: family{why: familyLimit}}
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
		if x := p.words.add(name); x.first == 0 {
			x.first = l.number
			a.checkOrder(x)
		}
		last = name
	}
	for _, d := range p.order {
		if d.typed && a.parentOf(d) == nil {
			a.ofWord(d)
		}
	}
}

// checkOrder makes the family of a sample unknown when its type comes later.
func (a *assembler) checkOrder(sample *word) {
	late := func(d *word) {
		if d != nil && sample.first < d.line {
			a.page.note("type_late", "line "+itoa(d.line)+": type of "+quote(d.name,
				100)+" comes after its samples; the family is stored as unknown")
			d.typ = metric.Unknown
		}
	}
	if sample.typed && sample.typ != metric.Histogram && sample.typ != metric.GaugeHistogram {
		late(sample)
	}
	if d, _, ok := a.owner(sample.name); ok {
		late(d)
	}
}

// source returns where samples called name belong.
func (a *assembler) source(name []byte) owner {
	x := a.page.words.add(name)
	if !x.resolved {
		x.source, x.resolved = a.resolve(x), true
	}
	return x.source
}

func (a *assembler) resolve(x *word) owner {
	if parent := a.parentOf(x); parent != nil {
		return owner{a.ofWord(parent), kindCreated}
	}
	if !x.typed {
		if d, k, ok := a.owner(x.name); ok {
			return owner{a.ofWord(d), k}
		}
	}
	switch x.typ {
	case metric.Histogram, metric.GaugeHistogram:
		// A sample with the bare name of a histogram is none of its parts.
		return owner{a.family(x.name, x.name, metric.Unknown, x), kindValue}
	case metric.Summary:
		return owner{a.ofWord(x), kindQuantile}
	}
	return owner{a.ofWord(x), kindValue}
}

// parentOf returns the declaration whose start times x holds: x_created of a
// counter x_total or x, or of a histogram or summary x. nil when x is no such.
func (a *assembler) parentOf(x *word) *word {
	base, ok := strings.CutSuffix(x.name, "_created")
	if !ok || x.typed && x.typ != metric.Gauge && x.typ != metric.Unknown {
		return nil
	}
	a.name = append(append(a.name[:0], base...), "_total"...)
	if p := a.page.words.typed(a.name); p != nil && p.typ == metric.Counter {
		return p
	}
	if p := a.page.words.typed(a.name[:len(base)]); p != nil {
		switch p.typ {
		case metric.Counter, metric.Histogram, metric.Summary, metric.GaugeHistogram:
			return p
		}
	}
	return nil
}

// owner finds the declared family that a suffixed name is a part of.
func (a *assembler) owner(name string) (*word, kind, bool) {
	at := strings.LastIndexByte(name, '_')
	if at <= 0 {
		return nil, 0, false
	}
	a.name = append(a.name[:0], name...)
	d := a.page.words.typed(a.name[:at])
	if d == nil {
		return nil, 0, false
	}
	k, ok := partOf(d.typ, name[at:], a.page.format)
	return d, k, ok
}

// partOf returns the part of a family that a suffix means.
func partOf(t metric.Type, suffix string, f format) (kind, bool) {
	switch {
	case suffix == "_bucket":
		return kindBucket, t == metric.Histogram || t == metric.GaugeHistogram
	case suffix == "_sum":
		return kindSum, t == metric.Histogram || t == metric.Summary || t == metric.GaugeHistogram && f == formatProtobuf
	case suffix == "_count":
		return kindCount, t == metric.Histogram || t == metric.Summary || t == metric.GaugeHistogram && f == formatProtobuf
	case suffix == "_gsum":
		return kindSum, t == metric.GaugeHistogram
	case suffix == "_gcount":
		return kindCount, t == metric.GaugeHistogram
	case suffix == "_total":
		return kindValue, t == metric.Counter && f == formatOpenMetrics
	case suffix == "_info":
		return kindValue, t == metric.Info
	}
	return 0, false
}

// ofWord returns the family of a name, as it is declared or not.
func (a *assembler) ofWord(x *word) *family {
	name := x.name
	if x.typ == metric.Counter {
		name = a.counterName(name)
	}
	return a.family(name, x.name, x.typ, x)
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
	if a.page.words.find([]byte(name)) != nil {
		name = declared
	}
	if len(a.counterNames) < 2*a.dict.limits.Families {
		a.counterNames[declared] = name
	}
	return name
}

// family returns the family of that name and type; meta describes a new one.
func (a *assembler) family(name, declared string, typ metric.Type, meta *word) *family {
	key := familyKey{name, typ}
	if f, ok := a.byKey[key]; ok {
		return f
	}
	f := &family{}
	switch most := a.dict.limits.Families; {
	case !a.wanted(name, declared):
		f.why = filtered
		if len(a.byKey) > 2*most {
			return f
		}
	case len(a.dict.families) >= most:
		a.refused = true
		return &a.surplus
	default:
		f.index = a.dict.addFamily(metric.Family{Name: strings.Clone(name), Type: typ,
			Help: unescapeHelp(meta.help, a.page.format), Unit: metric.Clean(string(meta.unit), 128),
			Suffix: a.suffix(name, declared, typ)})
	}
	a.byKey[key] = f
	return f
}

// suffix is what the names of the samples of a new family have behind name.
func (a *assembler) suffix(name, declared string, typ metric.Type) string {
	end := ""
	switch {
	case len(declared) > len(name):
		return declared[len(name):]
	case typ == metric.Info:
		end = "_info"
	case typ == metric.Counter && a.page.format == formatOpenMetrics:
		end = "_total"
	}
	if x := a.page.words.find([]byte(name)); x != nil && x.first > 0 || strings.HasSuffix(name, end) {
		return ""
	}
	return end
}

func (a *assembler) wanted(name, declared string) bool {
	match := func(re *regexp.Regexp) bool { return re.MatchString(name) || re.MatchString(declared) }
	return (a.keep == nil || match(a.keep)) && (a.drop == nil || !match(a.drop))
}

// slot returns the slot of a sample with these labels, or why it has none. pairs is changed.
func (a *assembler) slot(s owner, name string, pairs []metric.Label) (int32, reason) {
	role, at, text := metric.RoleValue, bound{}, ""
	switch s.kind {
	case kindBucket:
		role = metric.RoleBucket
		pairs, text = cutLabel(pairs, "le", "+Inf") // without le, as AIPerf has it
	case kindQuantile:
		if pairs, text = cutLabel(pairs, "quantile", ""); text == "" {
			s.family = a.family(name, name, metric.Unknown, &word{})
			if why := s.family.why; why != stored {
				return noSlot, why
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
	return a.dict.slot(s.family.index, pairs, metric.SampleID{Role: role, Bound: at.value, Text: at.text})
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

// parseBound reads the text of a bucket bound or quantile; 1, 1.0 and 1e0 are one bound.
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

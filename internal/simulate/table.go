package simulate

import (
	"cmp"
	_ "embed" // the table of families
	"slices"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// familyTable lists the families of all engines; its first lines are its format.
//
//go:embed families.txt
var familyTable string

// table holds the families of one section of familyTable, registered.
type table struct {
	w        *world
	lines    []declaration
	families map[string]*family // nil for one that this process does not have
}

// declaration is one line of familyTable.
type declaration struct {
	typ        metric.Type
	name, help string
	group      string            // of the common labels
	labels     []string          // after the common ones
	known      [][]string        // their values that are known beforehand
	words      map[string]string // key=value
}

// variant is what the families of a section depend on.
type variant struct {
	labels  map[string][]string  // the common labels by group
	with    []string             // the conditions that hold
	layouts map[string][]float64 // bounds that depend on the options
	// name returns the name of a family, "" for one that is not there, and the
	// scale of its values; nil puts the prefix of the section in front.
	name func(d *declaration) (name string, scale float64)
}

// table registers the families of a section in its order.
func (w *world) table(section string, v variant) *table {
	prefix, lines := readSection(section)
	t := &table{w: w, families: map[string]*family{}}
	for _, d := range lines {
		name, scale := prefix+d.name, 0.0
		if v.name != nil {
			name, scale = v.name(&d)
		}
		if t.families[d.name] == nil {
			t.families[d.name] = nil // known, but perhaps absent
		}
		if need := d.words["if"]; name == "" || need != "" && !slices.Contains(v.with, need) {
			continue
		}
		f := &family{name: name, help: d.describe(name), typ: d.typ, scale: scale, group: d.group}
		f.labels = slices.Concat(v.labels[d.group], d.labels)
		f.plain = d.typ == metric.Gauge || d.words["plain"] != ""
		f.bounds = v.layouts[d.words["bounds"]]
		if f.bounds == nil {
			f.bounds = readNumbers(d.words["bounds"])
		}
		if scale == 1000 {
			f.help = strings.Replace(f.help, "in seconds", "in milliseconds", 1)
		}
		for i := range f.bounds {
			f.bounds[i] *= max(scale, 1)
		}
		f.quantiles = readNumbers(d.words["quantiles"])
		t.families[d.name] = w.reg.add(f)
		t.lines = append(t.lines, d)
	}
	return t
}

// describe returns the help text of a family of that name.
func (d *declaration) describe(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == ':' })
	return strings.Replace(cmp.Or(d.help, "*"), "*", d.typ.String()+" "+strings.Join(words, " "), 1)
}

// panel is the series of a table with the same values of the common labels of a
// group. A nil panel drops what it is told.
type panel struct {
	t      *table
	group  string
	values []string
	at     map[place]*series
}

// place is a series in a panel: its family, and the values of its own labels.
type place struct{ name, first, rest string }

// panel makes the series of a group whose labels are known: those that are
// there from the start, and others, which appear with their first event.
func (t *table) panel(group string, values ...string) *panel {
	p := &panel{t: t, group: group, values: values, at: map[place]*series{}}
	for _, rank := range []string{"", "1", "2"} {
		for _, d := range t.lines {
			if d.group != group || d.words["rank"] != rank {
				continue
			}
			for _, more := range d.known {
				s := p.of(d.name, more...)
				if d.typ == metric.Gauge && d.words["late"] == "" || d.words["now"] != "" {
					s.family.show(s, t.w.now)
				}
			}
		}
	}
	return p
}

// of returns a series by the name of its family in the table and the values of its own labels, nil when this process
// has none. It appears with its first event.
func (p *panel) of(name string, more ...string) *series {
	if p == nil {
		return nil
	}
	key := place{name: name}
	if len(more) > 0 {
		key.first, key.rest = more[0], strings.Join(more[1:], "\xff")
	}
	s, ok := p.at[key]
	if !ok {
		f, known := p.t.families[name]
		if !known || f != nil && f.group != p.group {
			panic("simulate: families.txt has no " + name + " in this section and group")
		}
		s = f.lazy(slices.Concat(p.values, more)...)
		p.at[key] = s
	}
	return s
}

// record notes that a counter grows by v now, or that a histogram or summary observes it.
func (p *panel) record(name string, v float64, more ...string) {
	if s := p.of(name, more...); s != nil {
		p.t.w.reg.record(p.t.w.now, s, v, 1)
	}
}

// grow is record for a counter that a growth of nothing does not touch.
func (p *panel) grow(name string, n int, more ...string) {
	if n > 0 {
		p.record(name, float64(n), more...)
	}
}

// set sets a gauge, or a counter that the process reads from elsewhere.
func (p *panel) set(name string, v float64, more ...string) { p.of(name, more...).set(v) }

// show lets a series appear now and sets it.
func (p *panel) show(name string, v float64, more ...string) {
	if s := p.of(name, more...); s != nil {
		s.family.show(s, p.t.w.now)
		s.set(v)
	}
}

// drop ends the exposition of all series of the panel.
func (p *panel) drop() {
	for _, s := range p.at {
		if s != nil {
			s.family.drop(s)
		}
	}
}

// readSection returns the families of a section, and the prefix of their names.
func readSection(section string) (prefix string, lines []declaration) {
	_, text, _ := strings.Cut(familyTable, "\n["+section+" ")
	text, _, _ = strings.Cut(text, "\n[")
	head, text, _ := strings.Cut(text, "\n")
	prefix, words, _ := strings.Cut(head, "]")
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\n"); line != "" {
			lines = append(lines, readDeclaration(line, words))
		}
	}
	return prefix, lines
}

func readDeclaration(line, words string) declaration {
	text, help, _ := strings.Cut(line, " | ")
	fields := strings.Fields(text + words)
	d := declaration{name: fields[1], help: help, known: [][]string{nil}, words: map[string]string{}}
	d.typ = map[string]metric.Type{"counter": metric.Counter, "gauge": metric.Gauge, "histogram": metric.Histogram,
		"summary": metric.Summary}[fields[0]]
	for _, f := range fields[2:] {
		key, value, has := strings.Cut(f, "=")
		switch {
		case key[0] == '@':
			d.group = key[1:]
		case key[0] == '+':
			d.labels = append(d.labels, key[1:])
			var known [][]string
			for _, before := range d.known {
				for v := range strings.SplitSeq(value, ",") {
					if has {
						known = append(known, append(slices.Clip(before), v))
					}
				}
			}
			d.known = known
		case has:
			d.words[key] = value
		default:
			d.words[key] = "yes"
		}
	}
	return d
}

// readNumbers reads a list of numbers, or the layout of that name.
func readNumbers(list string) (numbers []float64) {
	if _, layout, ok := strings.Cut(familyTable, "\nlayout "+list+" "); ok {
		list, _, _ = strings.Cut(layout, "\n")
	}
	for text := range strings.SplitSeq(list, ",") {
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			numbers = append(numbers, v)
		}
	}
	return numbers
}

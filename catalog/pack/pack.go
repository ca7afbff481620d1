package pack

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/scrapestat/scrapestat/catalog/quantity"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/units"
)

// Limits on a file, which may be a user's.
const (
	maxBytes      = 1 << 20
	maxFamilies   = 5000 // of a file, and ten times as many names of all
	maxQuantities = 1000
)

// Pack is what is known of one server, or of one side of it.
type Pack struct {
	Name  string // a stable word: "vllm"
	Title string // as its makers write it
	Part  string // tells apart the sides of a server that have the same name and other scopes; "" is the first
	// Of is the pack that has the families, where this one has none.
	Of string
	// Rank is its place among packs, the lower the earlier.
	Rank int
	// Prefixes are what names of families begin with, the newest first; a family is found under each of them. None is the
	// names as they are.
	Prefixes []string
	// Relabel renames labels of older generations.
	Relabel map[string]string
	// Volatile and Identity are labels of all families.
	Volatile, Identity []string
	// Reads are prefixes of the families that its quantities see. Their series make the scopes.
	Reads []string
	// Scope are labels whose values keep results apart, Split those that do where series have them: a series without one
	// of them belongs to each result that agrees with the others.
	Scope, Split []string
	// Quiet are families, listed here or not, that tell nothing of requests, whatever their names contain.
	Quiet     []string
	Sentinels []Sentinel
	// Requires is a prefix of families without which the pack tells nothing; "" is none.
	Requires string
	// Implausible is how many times as long as its stretch a mean time may be; 0 is any.
	Implausible float64
	Inputs      Inputs
	Families    []*Family
	Patterns    []Pattern
	Quantities  []*Quantity
	Server

	file  string
	lines []position // of Families
	edges map[string]text
}

// Inputs are what a server cannot tell, for the quantities that need it.
type Inputs struct {
	// PeakTFLOPS and PeakGBs are what one GPU can do: 10^12 operations and 10^9 bytes of its memory a second. 0 is not
	// known.
	PeakTFLOPS float64 `yaml:"peak_tflops"`
	PeakGBs    float64 `yaml:"peak_gb_s"`
	// SLO are the longest times that are good, in seconds, by canonical id: ttft_s, itl_s, tpot_s, e2e_s, queue_s.
	SLO map[string]float64 `yaml:"slo"`
}

// Input returns one by its name in formulas; 0 is not known.
func (in *Inputs) Input(name string) float64 {
	switch name {
	case "peak_tflops":
		return in.PeakTFLOPS
	case "peak_gb_s":
		return in.PeakGBs
	}
	return in.SLO[name]
}

// SLOIDs are the canonical ids that may have a longest good time.
func SLOIDs() []string { return []string{"ttft_s", "itl_s", "tpot_s", "e2e_s", "queue_s"} }

// Quantity is what is derived from families.
type Quantity struct {
	Name, Unit, Help string
	By               []string // labels beyond the scope: one result for each combination of their values
	Category         Category
	Better           Direction
	Headline         bool // one of the dozen that explain a run
	Canonical        string
	Status           quantity.Status // what a value of it is at best
	WindowOnly       bool            // slices have no such quantity
	Optional         bool            // nobody misses it
	Native           string          // the algorithm that makes it; then Formula.Is may be its argument
	Formula          quantity.Formula
	At               []float64 // values that a native is asked for
	Text             string    // how it is made, for people
	// Tolerance is how far a check may be from 0, and Edges by how much more; unset for what is no check.
	Tolerance float64
	Edges     *quantity.Formula

	is, when, enabled, left, right, edges text
	at                                    position
}

// position is where something is in a file.
type position struct{ Line, Column int }

// text is a value with its place.
type text struct {
	position
	Value string
	Quote string // that it stands in
}

// UnmarshalYAML notes the place.
func (t *text) UnmarshalYAML(n *yaml.Node) error {
	*t = text{position{n.Line, n.Column}, n.Value, ""}
	switch {
	case n.Style&yaml.SingleQuotedStyle != 0:
		t.Quote = "'"
	case n.Style&yaml.DoubleQuotedStyle != 0:
		t.Quote = `"`
	}
	return nil
}

// Problem is what is wrong with a file.
type Problem struct {
	File         string
	Line, Column int // 0 is not known
	Text         string
}

// Error tells the place and what is wrong.
func (p Problem) Error() string {
	place := p.File
	for _, n := range []int{p.Line, p.Column} {
		if n > 0 {
			place += fmt.Sprintf(":%d", n)
		}
	}
	return place + ": " + p.Text
}

// file is a pack as a document spells it.
type file struct {
	Pack        string            `yaml:"pack"`
	Title       string            `yaml:"title"`
	Part        string            `yaml:"part"`
	Of          string            `yaml:"of"`
	Rank        int               `yaml:"rank"`
	Prefixes    []string          `yaml:"prefixes"`
	Relabel     map[string]string `yaml:"relabel"`
	Volatile    []string          `yaml:"volatile"`
	Identity    []string          `yaml:"identity"`
	Reads       []string          `yaml:"reads"`
	Scope       []string          `yaml:"scope"`
	Split       []string          `yaml:"split"`
	Requires    string            `yaml:"requires"`
	Quiet       []string          `yaml:"quiet"`
	Sentinels   []yaml.Node       `yaml:"sentinels"`
	Implausible float64           `yaml:"implausible"`
	Families    []yaml.Node       `yaml:"families"`
	Quantities  yaml.Node         `yaml:"quantities"`
	Checks      []yaml.Node       `yaml:"checks"`
	Edges       map[string]text   `yaml:"edges"`
	Inputs      Inputs            `yaml:"inputs"`
	Recognise   yaml.Node         `yaml:"recognise"`
	Clients     yaml.Node         `yaml:"clients"`
	Needs       []yaml.Node       `yaml:"needs"`
	Hints       []yaml.Node       `yaml:"hints"`
	Says        map[string]string `yaml:"says"`
	Notes       []yaml.Node       `yaml:"notes"`
	Labels      yaml.Node         `yaml:"labels"`
}

// quantityIn is a quantity as a file spells it.
type quantityIn struct {
	Name       string    `yaml:"name"`
	Is         text      `yaml:"is"`
	Unit       string    `yaml:"unit"`
	Better     string    `yaml:"better"`
	Canonical  string    `yaml:"canonical"`
	Headline   int       `yaml:"headline"`
	Help       string    `yaml:"help"`
	By         []string  `yaml:"by"`
	When       text      `yaml:"when"`
	Enabled    text      `yaml:"enabled"`
	Status     string    `yaml:"status"`
	WindowOnly bool      `yaml:"window_only"`
	Optional   bool      `yaml:"optional"`
	Native     string    `yaml:"native"`
	At         []float64 `yaml:"at"`
	Formula    string    `yaml:"formula"`
}

// checkIn is a check as a file spells it: two amounts that are the same.
type checkIn struct {
	Name      string  `yaml:"name"`
	Left      text    `yaml:"left"`
	Right     text    `yaml:"right"`
	Tolerance float64 `yaml:"tolerance"`
	Edges     text    `yaml:"edges"`
	Help      string  `yaml:"help"`
}

// reader reads one file, and goes on after a problem.
type reader struct {
	name     string
	problems []Problem
	pack     *Pack
	keys     map[reflect.Type][]string // of structs of files
}

// Read reads the packs of a file, one for each document of it. What is wrong with them alone is told at once.
func Read(name string, r io.Reader) ([]*Pack, []Problem) {
	rd := &reader{name: name, keys: map[reflect.Type][]string{}}
	data, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		rd.fail(position{}, "%v", err)
		return nil, rd.problems
	}
	if len(data) > maxBytes {
		rd.fail(position{}, "larger than %d bytes", maxBytes)
		return nil, rd.problems
	}
	var out []*Pack
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		if err := dec.Decode(&n); errors.Is(err, io.EOF) {
			return out, rd.problems
		} else if err != nil {
			rd.fail(position{}, "%v", err)
			return nil, rd.problems
		}
		if len(n.Content) > 0 {
			out = append(out, rd.document(n.Content[0]))
		}
	}
}

func (rd *reader) fail(at position, format string, args ...any) {
	text := strings.TrimPrefix(fmt.Sprintf(format, args...), "yaml: ")
	rd.problems = append(rd.problems, Problem{rd.name, at.Line, at.Column, text})
}

// decode reads a mapping into a struct and tells keys that it has not.
func (rd *reader) decode(n *yaml.Node, into any, what string) bool {
	keys := rd.keysOf(reflect.TypeOf(into).Elem())
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if key := n.Content[i]; !slices.Contains(keys, key.Value) {
			rd.fail(position{key.Line, key.Column}, "unknown key %q of %s (known: %s)", key.Value, what,
				strings.Join(keys, ", "))
		}
	}
	if err := n.Decode(into); err != nil {
		rd.fail(position{n.Line, n.Column}, "%s: %v", what, err)
		return false
	}
	return true
}

func (rd *reader) keysOf(t reflect.Type) []string {
	if rd.keys[t] == nil {
		var keys []string
		for i := range t.NumField() {
			keys = append(keys, t.Field(i).Tag.Get("yaml"))
		}
		rd.keys[t] = keys
	}
	return rd.keys[t]
}

func (rd *reader) document(n *yaml.Node) *Pack {
	var f file
	rd.decode(n, &f, "a pack")
	p := &Pack{Name: f.Pack, Title: f.Title, Part: f.Part, Of: f.Of, Rank: f.Rank, Prefixes: f.Prefixes,
		Relabel: f.Relabel, Volatile: f.Volatile, Identity: f.Identity, Reads: f.Reads, Scope: f.Scope,
		Split: f.Split, Requires: f.Requires, Quiet: f.Quiet,
		Sentinels:   rd.sentinels(f.Sentinels),
		Implausible: f.Implausible, Inputs: f.Inputs, file: rd.name, edges: f.Edges}
	if p.Name == "" && len(f.Families)+len(f.Quantities.Content)+len(f.Checks) > 0 {
		rd.fail(position{n.Line, n.Column}, "needs a pack: the name of the engine")
	}
	if p.Reads == nil && len(p.Prefixes) > 0 {
		p.Reads = p.Prefixes[:1]
	}
	rd.pack = p
	rd.inputs(n, f.Inputs)
	p.Server = rd.server(n, &f)
	if len(f.Families) > maxFamilies {
		rd.fail(position{n.Line, n.Column}, "more than %d families", maxFamilies)
		return p
	}
	for i := range f.Families {
		rd.family(&f.Families[i])
	}
	for i := 0; i+1 < len(f.Quantities.Content); i += 2 {
		rd.section(f.Quantities.Content[i], f.Quantities.Content[i+1])
	}
	for i := range f.Checks {
		rd.check(&f.Checks[i])
	}
	if len(p.Quantities) > maxQuantities {
		rd.fail(position{n.Line, n.Column}, "more than %d quantities", maxQuantities)
	}
	return p
}

func (rd *reader) inputs(n *yaml.Node, in Inputs) {
	at := position{n.Line, n.Column}
	for _, v := range []float64{in.PeakTFLOPS, in.PeakGBs} {
		if !metric.Finite(v) || v < 0 {
			rd.fail(at, "inputs: a peak of %v", v)
		}
	}
	for id, v := range in.SLO {
		if !slices.Contains(SLOIDs(), id) || !metric.Finite(v) || v <= 0 {
			rd.fail(at, "inputs: slo %s of %v is none (positive seconds of %s)", id, v, strings.Join(SLOIDs(), ", "))
		}
	}
}

func (rd *reader) family(n *yaml.Node) {
	var in familyIn
	if !rd.decode(n, &in, "a family") {
		return
	}
	if end := len(in.Name) - 1; end > 1 && in.Name[0] == '/' && in.Name[end] == '/' {
		if err := in.pattern(rd.pack); err != nil {
			rd.fail(position{n.Line, n.Column}, "family %q: %v", in.Name, err)
		}
		return
	}
	f, err := in.family(rd.pack)
	if err != nil {
		rd.fail(position{n.Line, n.Column}, "family %q: %v", in.Name, err)
		return
	}
	rd.pack.Families = append(rd.pack.Families, f)
	rd.pack.lines = append(rd.pack.lines, position{n.Line, n.Column})
}

// section is the quantities that answer one question.
func (rd *reader) section(key, list *yaml.Node) {
	question := slices.Index(questionNames[:], key.Value)
	if question < 0 {
		rd.fail(position{key.Line, key.Column}, "quantities: %q must be one of %s", key.Value,
			strings.Join(questionNames[:], ", "))
		return
	}
	for _, n := range list.Content {
		var in quantityIn
		if !rd.decode(n, &in, "a quantity") {
			continue
		}
		q := &Quantity{Name: in.Name, Unit: in.Unit, Help: in.Help, By: in.By, Category: Category(question),
			Headline: in.Headline > 0, Canonical: in.Canonical, WindowOnly: in.WindowOnly, Native: in.Native, At: in.At,
			Optional: in.Optional || in.Native != "", Text: in.Formula, is: in.Is, when: in.When, enabled: in.Enabled,
			at: position{n.Line, n.Column}}
		rd.quantity(q, &in)
	}
}

func (rd *reader) quantity(q *Quantity, in *quantityIn) {
	fail := func(format string, args ...any) {
		rd.fail(q.at, "quantity "+cmp.Or(q.Name, q.Native)+": "+format, args...)
	}
	var err error
	if q.Better, err = direction(in.Better); err != nil {
		fail("%v", err)
	}
	status, ok := quantity.ParseStatus(cmp.Or(in.Status, "ok"))
	if q.Status = status; !ok || !status.Defined() {
		fail("status: %q is none of a value", in.Status)
	}
	switch {
	case q.Name == "" && q.Native == "":
		fail("needs a name")
	case q.is.Value == "" && q.Native == "":
		fail("needs is: a formula")
	case q.Native == "" && in.Formula != "":
		fail("formula: is written from what it is; leave it out")
	case !units.Known(q.Unit):
		fail("unknown unit %q", q.Unit)
	case q.Canonical != "" && !slices.Contains(canonicalIDs(), q.Canonical):
		fail("canonical: unknown id %q (known: %s)", q.Canonical, strings.Join(canonicalIDs(), ", "))
	}
	rd.pack.Quantities = append(rd.pack.Quantities, q)
}

func (rd *reader) check(n *yaml.Node) {
	var in checkIn
	if !rd.decode(n, &in, "a check") {
		return
	}
	q := &Quantity{Name: in.Name, Unit: "ratio", Help: in.Help, Category: Check, WindowOnly: true,
		Tolerance: in.Tolerance, left: in.Left, right: in.Right, edges: in.Edges, at: position{n.Line, n.Column}}
	if in.Name == "" || in.Left.Value == "" || in.Right.Value == "" || in.Tolerance <= 0 {
		rd.fail(q.at, "check %s: needs a name, left, right and a tolerance above 0", in.Name)
		return
	}
	rd.pack.Quantities = append(rd.pack.Quantities, q)
}

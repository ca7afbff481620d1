package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/scrapestat/scrapestat/metric"
)

// Limits on a table, which may be a user's file.
const (
	maxTableBytes = 4 << 20
	maxFamilies   = 20000 // of a table, aliases included
)

// table is a file of families.
type table struct {
	Engine string `yaml:"engine"`
	// Prefixes are what names of families begin with, the newest first; a family is found under each of them. None is the
	// names as they are.
	Prefixes []string `yaml:"prefixes"`
	// Relabel renames labels of older generations.
	Relabel map[string]string `yaml:"relabel"`
	// Volatile and Identity are labels of all families of the table.
	Volatile []string   `yaml:"volatile"`
	Identity []string   `yaml:"identity"`
	Families []familyIn `yaml:"families"`
	Inputs   Inputs     `yaml:"inputs"`
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

// familyIn is a family as a table spells it.
type familyIn struct {
	Name      string                       `yaml:"name"`
	Type      string                       `yaml:"type"`
	Aliases   []string                     `yaml:"aliases"`
	Scales    map[string]float64           `yaml:"scales"`
	Implied   map[string]map[string]string `yaml:"implied"`
	Meaning   string                       `yaml:"meaning"`
	Unit      string                       `yaml:"unit"`
	Better    string                       `yaml:"better"`
	Moves     string                       `yaml:"moves"`
	Staleness string                       `yaml:"staleness"`
	Aggregate string                       `yaml:"aggregate"`
	Traffic   string                       `yaml:"traffic"`
	Only      map[string]string            `yaml:"only"`
	Identity  []string                     `yaml:"identity"`
	Volatile  []string                     `yaml:"volatile"`
	Canonical string                       `yaml:"canonical"`
	Above     []float64                    `yaml:"above"`
	line      int
}

// UnmarshalYAML notes the line of a family. Decoding below a node forgets that keys must be known, so they are checked
// here.
func (f *familyIn) UnmarshalYAML(n *yaml.Node) error {
	type plain familyIn
	var p plain
	if err := n.Decode(&p); err != nil {
		return err
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := n.Content[i]; !slices.Contains(familyKeys, key.Value) {
			return fmt.Errorf("line %d: unknown key %q of a family (known: %s)", key.Line, key.Value,
				strings.Join(familyKeys, ", "))
		}
	}
	*f = familyIn(p)
	f.line = n.Line
	return nil
}

var (
	familyKeys = []string{"name", "type", "aliases", "scales", "implied", "meaning", "unit", "better", "moves",
		"staleness", "aggregate", "traffic",
		"only", "identity", "volatile", "canonical", "above"}
	moves      = []string{"", "arrival", "step", "token", "finish", "poll", "start"}
	familyName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:.]*$`)
)

// readTable reads one table; name is for errors.
func readTable(name string, r io.Reader) (*table, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxTableBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read catalog %s: %w", name, err)
	}
	if len(data) > maxTableBytes {
		return nil, fmt.Errorf("read catalog %s: larger than %d bytes", name, maxTableBytes)
	}
	var t table
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&t); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read catalog %s: %w", name, err)
	}
	if err := dec.Decode(new(yaml.Node)); err == nil {
		return nil, fmt.Errorf("read catalog %s: more than one YAML document", name)
	}
	for _, v := range []float64{t.Inputs.PeakTFLOPS, t.Inputs.PeakGBs} {
		if !finite(v) || v < 0 {
			return nil, fmt.Errorf("read catalog %s: inputs: a peak of %v", name, v)
		}
	}
	for id, v := range t.Inputs.SLO {
		if !slices.Contains(sloIDs(), id) || !finite(v) || v <= 0 {
			return nil, fmt.Errorf("read catalog %s: inputs: slo %s of %v is none (positive seconds of %s)", name, id, v,
				strings.Join(sloIDs(), ", "))
		}
	}
	return &t, nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// sloIDs are the canonical ids that may have a longest good time.
func sloIDs() []string { return []string{"ttft_s", "itl_s", "tpot_s", "e2e_s", "queue_s"} }

// add enters the families of a table. One of a user replaces ours of its name.
func (c *Catalog) add(name string, t *table, own bool) error {
	if len(t.Relabel) > 0 {
		renames := slices.Clone(c.relabel[t.Engine])
		for _, from := range slices.Sorted(maps.Keys(t.Relabel)) {
			renames = append(renames, [2]string{from, t.Relabel[from]})
		}
		c.relabel[t.Engine] = renames
	}
	for i := range t.Families {
		in := &t.Families[i]
		fail := func(err error) error {
			return fmt.Errorf("read catalog %s: line %d: family %q: %w", name, in.line, in.Name, err)
		}
		f, err := in.family(t)
		if err != nil {
			return fail(err)
		}
		if old := c.byName[f.Name]; old != nil {
			if own || old.Name != f.Name {
				return fail(fmt.Errorf("is listed already, as %s of %s", old.Name, old.Engine))
			}
			c.drop(old)
		}
		if err := c.enter(f); err != nil {
			return fail(err)
		}
	}
	return nil
}

// enter makes a family known under all its names.
func (c *Catalog) enter(f *Family) error {
	for _, n := range append([]string{f.Name}, f.Aliases...) {
		if old := c.byName[n]; old != nil {
			return fmt.Errorf("name %s belongs to %s of %s", n, old.Name, old.Engine)
		}
		if c.byName[n] = f; len(c.byName) > maxFamilies {
			return fmt.Errorf("more than %d names", maxFamilies)
		}
	}
	c.families = append(c.families, f)
	return nil
}

func (c *Catalog) drop(f *Family) {
	for _, n := range append([]string{f.Name}, f.Aliases...) {
		delete(c.byName, n)
	}
	c.families = slices.DeleteFunc(c.families, func(g *Family) bool { return g == f })
}

// family checks an entry and makes a family of it.
func (in *familyIn) family(t *table) (*Family, error) {
	f := &Family{Engine: t.Engine, Meaning: in.Meaning, Unit: in.Unit, Canonical: in.Canonical, Above: in.Above,
		Identity: union(t.Identity, in.Identity), Volatile: union(t.Volatile, in.Volatile), Moves: in.Moves,
		Traffic: in.Traffic}
	if in.Name == "" || in.Meaning == "" || t.Engine == "" {
		return nil, errors.New("needs a name, a meaning and, above the families, an engine")
	}
	var ok bool
	if f.Type, ok = metric.ParseType(in.Type); !ok && in.Type != "" {
		return nil, fmt.Errorf("unknown type %q", in.Type)
	}
	better, aggregate := slices.Index(directionNames[:], in.Better), slices.Index(aggregateNames[:], in.Aggregate)
	if in.Better == "" {
		better = 0
	}
	if better < 0 || aggregate < 0 {
		return nil, fmt.Errorf("better: %q must be higher, lower or neutral, aggregate: %q one of%s", in.Better,
			in.Aggregate, strings.Join(aggregateNames[:], " "))
	}
	f.Better, f.Aggregate = Direction(better), Aggregate(aggregate)
	if !slices.Contains(moves, in.Moves) {
		return nil, fmt.Errorf("moves: %q must be one of%s", in.Moves, strings.Join(moves, " "))
	}
	if !slices.Contains([]string{"", "yes", "no"}, in.Traffic) {
		return nil, fmt.Errorf("traffic: %q must be yes or no", in.Traffic)
	}
	if in.Staleness != "" {
		d, err := time.ParseDuration(in.Staleness)
		if err != nil || d <= 0 {
			return nil, fmt.Errorf("staleness: %q is no duration such as 2s", in.Staleness)
		}
		f.Staleness = d
	}
	if f.Canonical != "" && !slices.Contains(canonicalIDs(), f.Canonical) {
		return nil, fmt.Errorf("canonical: unknown id %q (known: %s)", f.Canonical, strings.Join(canonicalIDs(), ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(in.Only)) {
		f.Only = append(f.Only, metric.Label{Name: name, Value: in.Only[name]})
	}
	return f, in.names(t, f)
}

// names gives a family its name and aliases under all prefixes of the table.
func (in *familyIn) names(t *table, f *Family) error {
	prefixes := t.Prefixes
	if len(prefixes) == 0 {
		prefixes = []string{""}
	}
	for alias, scale := range in.Scales {
		if !slices.Contains(in.Aliases, alias) || !finite(scale) || scale <= 0 {
			return fmt.Errorf("scales: %v of %q, which must be a positive factor of an alias", scale, alias)
		}
	}
	for alias := range in.Implied {
		if !slices.Contains(in.Aliases, alias) {
			return fmt.Errorf("implied: %q is no alias", alias)
		}
	}
	for _, stem := range append([]string{in.Name}, in.Aliases...) {
		for _, p := range prefixes {
			name := p + stem
			if !familyName.MatchString(name) {
				return fmt.Errorf("%q is no name of a family", name)
			}
			if f.Name == "" {
				f.Name = name
				continue
			}
			f.Aliases = append(f.Aliases, name)
			if scale, ok := in.Scales[stem]; ok {
				if f.Scales == nil {
					f.Scales = map[string]float64{}
				}
				f.Scales[name] = scale
			}
			if labels := in.Implied[stem]; len(labels) > 0 {
				if f.Implied == nil {
					f.Implied = map[string][]metric.Label{}
				}
				f.Implied[name] = pairs(metric.LabelsFromMap(labels))
			}
		}
	}
	return nil
}

func union(a, b []string) []string {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}

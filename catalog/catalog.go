package catalog

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/scrapestat/scrapestat/metric"
)

// tables are the families of each engine.
//
//go:embed families/*.yaml
var tables embed.FS

// Catalog is what is known of families. It is immutable and safe for concurrent use; a nil Catalog knows nothing.
type Catalog struct {
	families []*Family // sorted by engine, then name
	byName   map[string]*Family
	relabel  map[string][][2]string // by engine
	inputs   Inputs
	packs    []Pack
}

// embedded is the catalog of our own tables. They are a constant that takes some 40 ms to read, so they are read once,
// by the first who asks.
var embedded = sync.OnceValues(func() (*Catalog, error) {
	c := &Catalog{byName: map[string]*Family{}, relabel: map[string][][2]string{}, packs: Packs()}
	names, err := fs.Glob(tables, "families/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list catalogs: %w", err)
	}
	for _, name := range names {
		data, err := tables.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read catalog %s: %w", name, err)
		}
		if _, err := c.read(name, bytes.NewReader(data), true); err != nil {
			return nil, err
		}
	}
	c.sort()
	return c, nil
})

// New returns the catalog of the embedded tables and of extra ones, in the same form (docs/derived.md), whose families
// replace ours of the same name. Errors name the line; a reader with a method Name, such as a file, is named too.
func New(extra ...io.Reader) (*Catalog, error) {
	ours, err := embedded()
	if err != nil || len(extra) == 0 {
		return ours, err
	}
	c := &Catalog{families: slices.Clone(ours.families), byName: maps.Clone(ours.byName),
		relabel: maps.Clone(ours.relabel), packs: ours.packs}
	for i, r := range extra {
		name := strconv.Itoa(i + 1)
		if f, ok := r.(interface{ Name() string }); ok {
			name = f.Name()
		}
		t, err := c.read(name, r, false)
		if err != nil {
			return nil, err
		}
		c.inputs.merge(&t.Inputs)
	}
	c.sort()
	return c, nil
}

// read enters the families of a table of ours or of a user.
func (c *Catalog) read(name string, r io.Reader, own bool) (*table, error) {
	t, err := readTable(name, r)
	if err != nil {
		return nil, err
	}
	return t, c.add(name, t, own)
}

func (c *Catalog) sort() {
	slices.SortFunc(c.families, func(a, b *Family) int {
		return cmp.Or(strings.Compare(a.Engine, b.Engine), strings.Compare(a.Name, b.Name))
	})
}

// merge takes what a later table says.
func (in *Inputs) merge(later *Inputs) {
	if later.PeakTFLOPS > 0 {
		in.PeakTFLOPS = later.PeakTFLOPS
	}
	if later.PeakGBs > 0 {
		in.PeakGBs = later.PeakGBs
	}
	if in.SLO == nil {
		in.SLO = map[string]float64{}
	}
	maps.Copy(in.SLO, later.SLO)
}

// Inputs returns what the user told, the zero value when nothing. Its map is only to be read.
func (c *Catalog) Inputs() Inputs {
	if c == nil {
		return Inputs{}
	}
	return c.inputs
}

// rules returns the packs.
func (c *Catalog) rules() []Pack {
	if c == nil {
		return Packs()
	}
	return c.packs
}

// Family returns the family of a name or alias, with or without "_total". The result is only to be read.
func (c *Catalog) Family(name string) (*Family, bool) {
	if c == nil {
		return nil, false
	}
	if f := c.byName[name]; f != nil {
		return f, true
	}
	if short, ok := strings.CutSuffix(name, "_total"); ok {
		if f := c.byName[short]; f != nil {
			return f, true
		}
	}
	return nil, false
}

// Levels returns Family.Above of the family of that name, nil when it has none.
func (c *Catalog) Levels(family string) []float64 {
	f, ok := c.Family(family)
	if !ok || len(f.Above) == 0 || f.Scales[family] != 0 {
		return nil
	}
	return f.Above
}

// Families returns all families, sorted by engine and name. They are only to be read.
func (c *Catalog) Families() []*Family {
	if c == nil {
		return nil
	}
	return c.families
}

// Labels returns the labels of a series of a family with the names that the newest generation has.
func (c *Catalog) Labels(f *Family, l metric.Labels) metric.Labels {
	if c == nil || f == nil {
		return l
	}
	for _, r := range c.relabel[f.Engine] {
		value, old := l.Get(r[0])
		if _, is := l.Get(r[1]); old && !is {
			l = metric.NewLabels(append(pairs(l.Without(r[0])), metric.Label{Name: r[1], Value: value})...)
		}
	}
	return l
}

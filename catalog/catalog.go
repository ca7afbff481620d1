package catalog

import (
	"bytes"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// tables are the families of each engine.
//
//go:embed families/*.yaml
var tables embed.FS

// Catalog is what is known of families. It is immutable and safe for concurrent
// use; a nil Catalog knows nothing.
type Catalog struct {
	families []*Family // sorted by engine, then name
	byName   map[string]*Family
	relabel  map[string][][2]string // by engine
	inputs   Inputs
}

// New returns the catalog of the embedded tables and of extra ones, in the same
// form (docs/derived.md), whose families replace ours of the same name. Errors
// name the line; a reader with a method Name, such as a file, is named too.
func New(extra ...io.Reader) (*Catalog, error) {
	c := &Catalog{byName: map[string]*Family{}, relabel: map[string][][2]string{}}
	names, err := fs.Glob(tables, "families/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list catalogs: %w", err)
	}
	for _, name := range names {
		data, err := tables.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read catalog %s: %w", name, err)
		}
		t, err := readTable(name, bytes.NewReader(data))
		if err == nil {
			err = c.add(name, t, true)
		}
		if err != nil {
			return nil, err
		}
	}
	for i, r := range extra {
		name := fmt.Sprintf("%d", i+1)
		if f, ok := r.(interface{ Name() string }); ok {
			name = f.Name()
		}
		t, err := readTable(name, r)
		if err == nil {
			err = c.add(name, t, false)
		}
		if err != nil {
			return nil, err
		}
		c.inputs.merge(&t.Inputs)
	}
	slices.SortFunc(c.families, func(a, b *Family) int {
		if x := strings.Compare(a.Engine, b.Engine); x != 0 {
			return x
		}
		return strings.Compare(a.Name, b.Name)
	})
	return c, nil
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

// Inputs returns what the user told, the zero value when nothing. Its map is only
// to be read.
func (c *Catalog) Inputs() Inputs {
	if c == nil {
		return Inputs{}
	}
	return c.inputs
}

// Family returns the family of a name or alias, with or without "_total". The
// result is only to be read.
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

// Families returns all families, sorted by engine and name. They are only to be
// read.
func (c *Catalog) Families() []*Family {
	if c == nil {
		return nil
	}
	return c.families
}

// Labels returns the labels of a series of a family with the names that the
// newest generation has.
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

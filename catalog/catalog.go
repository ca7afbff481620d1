package catalog

import (
	"cmp"
	_ "embed" // for saved
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/scrapestat/scrapestat/catalog/pack"
	"github.com/scrapestat/scrapestat/metric"
)

// saved are the packs of each engine, packs/*.yaml, which takes several times as long to read ("make golden" makes it).
//
//go:embed packs.json
var saved []byte

// Catalog is what is known of families. It is immutable and safe for concurrent use; a nil Catalog knows no families.
type Catalog struct {
	set     *pack.Set
	own     []*pack.Pack // of which it was made
	packs   []Pack
	servers []*pack.Pack // see Servers
	labels  pack.Labels
}

// embedded is the catalog of our own packs: a constant, read once, by the first who asks.
var embedded = sync.OnceValues(func() (*Catalog, error) {
	packs, err := pack.Load(saved)
	if err != nil {
		return nil, fmt.Errorf("load packs: %w", err)
	}
	return newCatalog(packs)
})

// New returns the catalog of the embedded packs and of those in extra files, in the same form (docs/derived.md), whose
// families and quantities replace ours of the same name. Errors tell file, line and column; a reader with a method
// Name, such as a file, is named so.
func New(extra ...io.Reader) (*Catalog, error) {
	ours, err := embedded()
	if err != nil {
		return nil, err
	}
	return ours.With(extra...)
}

// With returns the catalog with more packs, as New does.
func (c *Catalog) With(extra ...io.Reader) (*Catalog, error) {
	if len(extra) == 0 {
		return c, nil
	}
	packs := slices.Clone(c.own)
	for i, r := range extra {
		name := strconv.Itoa(i + 1)
		if f, ok := r.(interface{ Name() string }); ok {
			name = f.Name()
		}
		more, problems := pack.Read(name, r)
		if len(problems) > 0 {
			return nil, refused(problems)
		}
		packs = append(packs, more...)
	}
	return newCatalog(packs)
}

func refused(problems []pack.Problem) error {
	var all []error
	for _, p := range problems {
		all = append(all, p)
	}
	return fmt.Errorf("read catalog %w", errors.Join(all...))
}

func newCatalog(own []*pack.Pack) (*Catalog, error) {
	set, problems := pack.Join(own...)
	if len(problems) > 0 {
		return nil, refused(problems)
	}
	c := &Catalog{set: set, own: own, servers: serversOf(set), labels: labelsOf(set.Packs())}
	algorithms := natives()
	for _, p := range set.Packs() {
		if len(p.Quantities) == 0 {
			continue
		}
		made, err := newPack(p, algorithms)
		if err != nil {
			return nil, fmt.Errorf("read catalog %s: %w", p.Name, err)
		}
		c.packs = append(c.packs, made)
	}
	return c, nil
}

// Embedded returns the catalog of the embedded packs.
func Embedded() *Catalog { return ours() }

// ours returns the embedded catalog.
func ours() *Catalog {
	c, err := embedded()
	if err != nil {
		panic(err) // tests read the embedded files
	}
	return c
}

// Packs returns all packs of the embedded catalog, in the order in which Derive applies them.
func Packs() []Pack { return ours().packs }

// Packs returns all packs, in the order in which Derive applies them.
func (c *Catalog) Packs() []Pack {
	if c == nil {
		return Packs()
	}
	return c.packs
}

// Inputs returns what the user told, the zero value when nothing. Its map is only to be read.
func (c *Catalog) Inputs() Inputs { return c.joined().Inputs() }

// joined returns the packs together; nil of a nil catalog.
func (c *Catalog) joined() *pack.Set {
	if c == nil {
		return nil
	}
	return c.set
}

// Family returns the family of a name or alias, with or without "_total". The result is only to be read.
func (c *Catalog) Family(name string) (*Family, bool) { return c.joined().Family(name) }

// Canonical returns the id of the canonical quantity of a family, "" for none.
func (c *Catalog) Canonical(family string) string {
	if f, ok := c.Family(family); ok {
		return f.Canonical
	}
	return ""
}

// Known reports whether a pack has a family of that name, or a pattern of names that need no meaning.
func (c *Catalog) Known(name string) bool { return c.joined().Known(name) }

// Census counts the names that packs know, and lists the others once.
func (c *Catalog) Census(names iter.Seq[string]) (known int, unknown []string) {
	listed := map[string]bool{}
	for name := range names {
		if c.Known(name) {
			known++
		} else if !listed[name] {
			listed[name] = true
			unknown = append(unknown, name)
		}
	}
	return known, unknown
}

// CensusText tells how many families packs know, and what the names of the others begin with, the most first.
func CensusText(known int, unknown []string) string {
	text := fmt.Sprintf("families: %d known, %d unknown", known, len(unknown))
	starts := map[string]int{}
	for _, name := range unknown {
		starts[name[:max(strings.IndexAny(name, ":_")+1, 0)]]++
	}
	order := slices.SortedFunc(maps.Keys(starts), func(a, b string) int {
		return cmp.Or(starts[b]-starts[a], strings.Compare(a, b))
	})
	var parts []string
	other := 0
	for i, start := range order {
		if start == "" || i >= 3 {
			other += starts[start]
		} else {
			parts = append(parts, fmt.Sprintf("%s%d", strings.TrimRight(start, ":_")+":", starts[start]))
		}
	}
	if other > 0 {
		parts = append(parts, fmt.Sprintf("other:%d", other))
	}
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, " ") + ")"
	}
	return text
}

// Families returns all families, sorted by engine and name. They are only to be read.
func (c *Catalog) Families() []*Family { return c.joined().Families() }

// Labels returns the labels of a series of a family with the names that the newest generation has.
func (c *Catalog) Labels(f *Family, l metric.Labels) metric.Labels { return c.joined().Labels(f, l) }

// Levels returns Family.Above of the family of that name, nil when it has none.
func (c *Catalog) Levels(family string) []float64 {
	f, ok := c.Family(family)
	if !ok || len(f.Above) == 0 || f.Scales[f.As(family)] != 0 {
		return nil
	}
	return f.Above
}

// CheckFile reads a file of packs beside the embedded ones, and returns its packs with all mistakes of it. The error is
// of the embedded packs.
func CheckFile(name string, r io.Reader) ([]*pack.Pack, []pack.Problem, error) {
	c, err := embedded()
	if err != nil {
		return nil, nil, err
	}
	packs, problems := pack.Read(name, r)
	if len(problems) == 0 {
		_, problems = pack.Join(append(slices.Clone(c.own), packs...)...)
	}
	return packs, problems, nil
}

package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
)

// WantsRequests reports whether demands are about what clients saw.
func (g *Gate) WantsRequests() bool {
	return slices.ContainsFunc(g.Demands, func(d Assertion) bool { return d.From == FromRequests })
}

// WantsExplain reports whether demands are about causes.
func (g *Gate) WantsExplain() bool {
	return slices.ContainsFunc(g.Demands, func(d Assertion) bool { return d.From == FromExplain })
}

// WantsJoin reports whether a ready check holds clients beside servers.
func (g *Gate) WantsJoin() bool {
	return slices.ContainsFunc(g.Ready, func(r Ready) bool { return r.kind.name == "counts" })
}

// Validate finds what is wrong with a gate whatever the run: a statistic that the type of a known family does not
// have, a limit in a unit that it cannot have, a label that the grouping has dropped, a baseline that is not given.
// All such errors are told at once.
func (g *Gate) Validate(c *catalog.Catalog, hasBaseline bool) error {
	var errs []error
	for i := range g.Demands {
		d := &g.Demands[i]
		if err := d.validateWith(c); err != nil {
			errs = append(errs, fmt.Errorf("check %q: %w", d.Text, err))
		}
		if d.Want.Baseline && !hasBaseline {
			errs = append(errs, fmt.Errorf("check %q: the limit is of a baseline: give --baseline RUN", d.Text))
		}
	}
	return errors.Join(errs...)
}

func (d *Assertion) validateWith(c *catalog.Catalog) error {
	for _, m := range d.Match {
		if d.Grouped && d.From == FromFamily && !slices.Contains(d.By, m.Label) {
			return fmt.Errorf(
				"by (%s) takes series together whatever their label %s, so it cannot select by it: add it to by (...)",
				GroupKey(d.By), m.Label)
		}
	}
	f, ok := c.Family(strings.TrimSuffix(d.Metric, "_total"))
	if d.From != FromFamily || !ok {
		return nil
	}
	if word := f.Type.String(); statForms[word] != nil && d.Stat.Name != "series" && !statIn(word, d.Stat) {
		return fmt.Errorf("%s is a %s, which has no statistic %s (known: %s)", d.Metric, word, d.Stat,
			strings.Join(statForms[word], ", "))
	}
	if d.Want.Baseline {
		return nil
	}
	unit := f.Unit
	switch d.Stat.Name {
	case "resets", "samples", "series", "count":
		unit = ""
	case "share":
		unit = "ratio"
		if _, err := convert(d.Stat.Arg, d.Stat.Unit, f.Unit); err != nil {
			return fmt.Errorf("%s: %w", d.Stat, err)
		}
	case "rate":
		if unit = perSecond(unit); f.Type != metric.Counter {
			unit = "/s"
		}
	}
	_, err := convert(d.Want.Value, d.Want.Unit, unit)
	return err
}

func statIn(word string, s Stat) bool {
	switch s.Name {
	case "p":
		return slices.Contains(statForms[word], "pNN")
	case "share":
		return word == "histogram"
	case "samples":
		return true
	}
	return slices.Contains(statForms[word], s.Name)
}

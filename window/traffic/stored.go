package traffic

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"

	"github.com/scrapestat/scrapestat/catalog"
)

// version is that of the rules of this package: what another version of them found is found anew.
const version = 4

// stored is a Traffic as a recording keeps it.
type stored struct {
	Version int    `json:"version"`
	Catalog uint32 `json:"catalog"` // what it says of traffic, as a number
	Traffic
}

// Encode returns t, which detectors with the catalog c found, as text for [Decode].
func Encode(t Traffic, c *catalog.Catalog) (string, error) {
	b, err := json.Marshal(stored{version, rulesOf(c), t})
	if err != nil {
		return "", fmt.Errorf("encode traffic: %w", err)
	}
	return string(b), nil
}

// Decode reads what Encode wrote; false where that is not what detectors with the catalog c would find now.
func Decode(text string, c *catalog.Catalog) (Traffic, bool) {
	var s stored
	if text == "" || json.Unmarshal([]byte(text), &s) != nil || s.Version != version || s.Catalog != rulesOf(c) {
		return Traffic{}, false
	}
	at := int64(0)
	for _, x := range slices.SortedFunc(slices.Values(slices.Concat(s.Segments, s.Probes)), bySegment) {
		for _, e := range []Edge{x.Start, x.End} {
			if e.AtNS < at || e.LowNS > e.AtNS || e.HighNS < e.AtNS {
				return Traffic{}, false
			}
			at = e.AtNS
		}
	}
	return s.Traffic, true
}

func bySegment(a, b Segment) int { return int(min(max(a.Start.AtNS-b.Start.AtNS, -1), 1)) }

// rulesOf is a number that stands for all that the evidence depends on in a catalog.
func rulesOf(c *catalog.Catalog) uint32 {
	sum := crc32.NewIEEE()
	for _, f := range c.Families() {
		fmt.Fprintln(sum, f.Name, f.Aliases, f.Engine, f.Type, f.Unit, f.Moves, f.Canonical, f.Traffic, f.Aggregate, f.Only)
		for _, name := range slices.Sorted(maps.Keys(f.Scales)) {
			fmt.Fprintln(sum, name, f.Scales[name])
		}
	}
	return sum.Sum32()
}

package histest

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/scrapestat/scrapestat/internal/testkit"
)

// TestInnerVectors compares the steps before the placement with the reference:
// groups, reference means and variances, and final means. These values are not exported,
// hence the internal test.
func TestInnerVectors(t *testing.T) {
	var file struct{ Cases []innerCase }
	if err := json.Unmarshal(testkit.Data(t, "vectors/refined.json"), &file); err != nil {
		t.Fatal(err)
	}
	for _, c := range file.Cases {
		all := newRows()
		for i, counts := range c.Counts {
			all.append(counts, c.Sums[i])
		}
		integer := wholeNumbers(c.Les, &all)
		l := newLayout(c.Les, integer)
		merged, _ := mergeTorn(all, &l)
		c.check(t, fitPieces(l, merged, integer))
	}
}

type innerCase struct {
	Name   string
	Les    []float64
	Counts [][]float64
	Sums   []float64
	Inner  struct {
		Kind       string
		Groups     int
		PieceGroup []int     `json:"piece_group"`
		RefMean    []float64 `json:"ref_mean"`
		RefVar     []float64 `json:"ref_var"`
		Mean       []float64
	}
}

func (c *innerCase) check(t *testing.T, f *fit) {
	t.Helper()
	kind := map[groupKind]string{noGroups: "none", timeGroups: "time", levelGroups: "level"}[f.kind]
	if kind != c.Inner.Kind || f.groups != c.Inner.Groups || len(f.pieces) != len(c.Inner.PieceGroup) {
		t.Errorf("%s: got %d %s groups and %d pieces, want %d %s and %d", c.Name, f.groups, kind, len(f.pieces),
			c.Inner.Groups, c.Inner.Kind, len(c.Inner.PieceGroup))
		return
	}
	compare := func(what string, i int, got, want, tolerance float64) {
		t.Helper()
		if math.Abs(got-want) > tolerance*math.Abs(want)+1e-30 {
			t.Errorf("%s: piece %d: %s is %v, want %v", c.Name, i, what, got, want)
		}
	}
	for i := range f.pieces {
		p := &f.pieces[i]
		compare("reference mean", i, p.mean0, c.Inner.RefMean[i], 1e-6)
		compare("reference variance", i, p.var0, c.Inner.RefVar[i], 1e-6)
		// The reference tilts on where no solution exists, at the edge of a bucket.
		compare("mean", i, p.mean, c.Inner.Mean[i], 0.02)
	}
}

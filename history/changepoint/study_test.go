package changepoint_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/scrapestat/scrapestat/history/changepoint"
)

// kind is a kind of series of the study: runs of a normal noise with steps of a size, or of noise that hangs together.
type kind struct {
	Name     string
	n        int
	sd, step float64
	Truth    []int
	ar       float64 // correlation of neighbours
	Series   [][]float64
	// What must be kept to, of Found: precision, recall, and series with a false change of 100.
	precision, recall float64
	false             int
}

// studied are the kinds of the design document's table, without outliers and drifts, which the vectors have.
func studied() []kind {
	const number = 100
	return []kind{
		{Name: "none, 40 at 3 %", n: 40, sd: 0.03, false: 2}, {Name: "none, 100 at 3 %", n: 100, sd: 0.03, false: 2},
		{Name: "none, 100, AR(1) 0.5", n: 100, sd: 0.03, ar: 0.5, false: 10},
		{Name: "20 at 1 %, 5 %", n: 20, sd: 0.01, step: 0.05, Truth: []int{10}, precision: 0.97, recall: 0.96, false: number},
		{Name: "40 at 2 %, 5 %", n: 40, sd: 0.02, step: 0.05, Truth: []int{20}, precision: 0.93, recall: 0.93,
			false: number},
		{Name: "40 at 5 %, 10 %", n: 40, sd: 0.05, step: 0.1, Truth: []int{20}, precision: 0.85, recall: 0.85,
			false: number},
		{Name: "100 at 3 %, 5 %", n: 100, sd: 0.03, step: 0.05, Truth: []int{50}, precision: 0.75, recall: 0.75,
			false: number},
		{Name: "100 at 2 %, up 5 %, down", n: 100, sd: 0.02, step: 0.05, Truth: []int{33, 66}, precision: 0.9,
			recall: 0.9, false: number},
	}
}

// draw makes a series of a kind.
func (k *kind) draw(r *rand.Rand) []float64 {
	out, noise := make([]float64, k.n), 0.0
	level, next := 100.0, 0
	for i := range out {
		for next < len(k.Truth) && k.Truth[next] == i {
			if level *= 1 + k.step; next%2 == 1 {
				level = 100
			}
			next++
		}
		noise = k.ar*noise + r.NormFloat64()
		out[i] = level * (1 + k.sd*noise)
	}
	return out
}

// TestDetection is rows 5 and 6 of the acceptance table on series of fresh seeds: a hit is within two runs. With
// SCRAPESTAT_STUDY set to a file the series are written there, to be given to another detector.
func TestDetection(t *testing.T) {
	list := studied()
	for i := range list {
		k := &list[i]
		r := rand.New(rand.NewPCG(2026, uint64(i)))
		hits, found, wrong := 0, 0, 0
		for range 100 {
			v := k.draw(r)
			k.Series = append(k.Series, v)
			near, off := 0, false
			for _, c := range changepoint.Detect(v, 0.02).Changes {
				if c.Minor {
					continue
				}
				found++
				hit := false
				for _, at := range k.Truth {
					hit = hit || c.Index >= at-2 && c.Index <= at+2
				}
				if hit {
					near++
				}
				off = off || !hit
			}
			if hits += near; off {
				wrong++
			}
		}
		precision, recall := float64(hits)/float64(max(1, found)), float64(hits)/float64(max(1, 100*len(k.Truth)))
		t.Logf("%-26s precision %.2f, recall %.2f, %d %% with a false change", k.Name, precision, recall, wrong)
		if wrong > k.false || k.Truth != nil && (precision < k.precision || recall < k.recall) {
			t.Errorf("%s: precision %.2f, recall %.2f, %d false", k.Name, precision, recall, wrong)
		}
	}
	if path := os.Getenv("SCRAPESTAT_STUDY"); path != "" {
		b, err := json.Marshal(list)
		if err == nil {
			err = os.WriteFile(path, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

package histest_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/scrapestat/scrapestat/histest"
)

var (
	updateSuite = flag.Bool("update", false, "write testdata/suite.json anew")
	suiteWrite  = flag.String("suite.write", "", "`file` to write cases of the suite to, one JSON object per line (see "+
		"-suite.cases)")
	suiteWanted = flag.Int("suite.cases", 100, "`n` cases to write, in random order; 30000 is all, a gigabyte")
)

const suiteFile = "testdata/suite.json"

// suiteData is the accuracy suite as data, for programs in any language;
// docs/percentiles.md explains it.
type suiteData struct {
	Format        int            `json:"format"`
	Note          string         `json:"note"`
	Interval      float64        `json:"interval_seconds"`
	Quantiles     []float64      `json:"quantiles"`
	Places        []float64      `json:"places"`
	Rates         []float64      `json:"rates"`
	Intervals     []int          `json:"intervals"`
	TinySizes     []int          `json:"tiny_observations"`
	TinyIntervals []int          `json:"tiny_intervals"`
	Seeds         map[string]int `json:"seeds"`
	Layouts       []layoutData   `json:"layouts"`
	Families      []familyData   `json:"families"`
	Cases         []caseData     `json:"cases"`
}

type layoutData struct {
	Name   string    `json:"name"`
	Split  string    `json:"split"`
	Tokens bool      `json:"tokens"`
	Bounds []float64 `json:"bounds"`
}

type familyData struct {
	Name   string `json:"name"`
	Split  string `json:"split"`
	Tokens bool   `json:"tokens"`
	Tiny   bool   `json:"tiny"`
	Law    string `json:"law"`
}

// caseData is a simulated run: what the server shows, the truth that it hides,
// and what each estimator makes of the former.
type caseData struct {
	Layout    string  `json:"layout"`
	Family    string  `json:"family"`
	Split     string  `json:"split"`
	Place     float64 `json:"place"`
	Rate      float64 `json:"rate"`
	Size      int     `json:"observations"`
	Intervals int     `json:"intervals"`
	Seed      uint64  `json:"seed"`
	Scale     float64 `json:"m"`
	// Counts holds for each interval the pairs bucket, observations of its filled
	// buckets; buckets count from 0, the last is +Inf.
	Counts    [][]int              `json:"counts"`
	Sums      []float64            `json:"sums"`
	Truth     []float64            `json:"truth"`
	Estimates map[string][]float64 `json:"estimates"`
}

const suiteNote = "A case has as many intervals as it says, each with Poisson(rate) observations, or that many " +
	"observations dealt to the intervals at random " +
	"where rate is 0; at least one in all. Observations follow the law of the family with scale m, where m lies at " +
	"place*(k-1) + even(-0.5, 0.5) on the " +
	"logarithms of the k positive bounds, and fall into the first bucket whose bound they do not exceed. truth: linear " +
	"interpolation between the order statistics at " +
	"(n-1)q. The error of an estimate is |estimate - truth| / max(|truth|, 0.01 sum/n). Constants were tuned on cases " +
	"whose layout and family both say " +
	"tuning; all others test. Design families served to find weaknesses and are in no table."

func splitName(tuning, design bool) string {
	switch {
	case design:
		return "design"
	case tuning:
		return "tuning"
	}
	return "test"
}

// newSuiteData describes the suite, without cases.
func newSuiteData() *suiteData {
	d := &suiteData{Format: 1, Note: suiteNote, Interval: 0.333, Quantiles: nine, Places: suitePlaces,
		Rates: suiteRates, Intervals: suiteIntervals, TinySizes: tinySizes, TinyIntervals: tinyIntervals,
		Seeds: map[string]int{"short form": 5, "tables": 21, "cases of this file": 1}}
	for _, l := range layouts {
		d.Layouts = append(d.Layouts, layoutData{l.name, splitName(l.tuning, false), l.tokens, l.bounds})
	}
	for _, f := range families {
		d.Families = append(d.Families, familyData{f.name, splitName(f.tuning, f.design), f.tokens, f.tiny, f.law})
	}
	return d
}

// sampleCases are two cases of each family, on all layouts in turn.
func sampleCases() []suiteCase {
	var out []suiteCase
	next := map[bool]int{}
	for n := range 2 {
		for f := range families {
			family := &families[f]
			if family.design {
				continue
			}
			c := suiteCase{family: family, place: suitePlaces[(f+n)%len(suitePlaces)], intervals: 90, seed: 1}
			for c.layout == nil || c.layout.tokens != family.tokens {
				c.layout = &layouts[next[family.tokens]%len(layouts)]
				next[family.tokens]++
			}
			if family.tiny {
				c.size = tinySizes[n]
			} else {
				c.rate = suiteRates[(f+n)%3]
			}
			out = append(out, c)
		}
	}
	return out
}

// data simulates the case.
func (c *suiteCase) data(t testing.TB) caseData {
	s := c.simulate()
	d := caseData{Layout: c.layout.name, Family: c.family.name, Split: c.split(), Place: c.place, Rate: c.rate,
		Size: c.size, Intervals: c.intervals, Seed: c.seed, Scale: s.scale, Estimates: map[string][]float64{}}
	for _, iv := range s.intervals {
		row, before := []int{}, 0.0
		for b := range len(iv.Cum) + 1 {
			upTo := iv.Inf
			if b < len(iv.Cum) {
				upTo = iv.Cum[b]
			}
			if n := upTo - before; n > 0 {
				row = append(row, b, int(n))
			}
			before = upTo
		}
		d.Counts, d.Sums = append(d.Counts, row), append(d.Sums, iv.Sum)
	}
	for _, q := range nine {
		d.Truth = append(d.Truth, histest.Quantile(s.sorted, q))
	}
	for _, name := range compared {
		got, _ := estimate(t, name, s.intervals, s.total, nine)
		d.Estimates[name] = values(got)
	}
	return d
}

// deltas makes the intervals of the data and their total, as a reader would.
func (d *caseData) deltas(bounds []float64) (intervals []*histest.Delta, total *histest.Delta) {
	total = emptyDelta(bounds)
	for i, row := range d.Counts {
		iv := emptyDelta(bounds)
		for k := 0; k < len(row); k += 2 {
			for b := row[k]; b < len(bounds); b++ {
				iv.Cum[b] += float64(row[k+1])
			}
			iv.Inf += float64(row[k+1])
		}
		iv.Count, iv.Sum = iv.Inf, d.Sums[i]
		addDelta(total, iv)
		intervals = append(intervals, iv)
	}
	return intervals, total
}

// write writes the suite with one case per line.
func (d *suiteData) write(w io.Writer) error {
	head := *d
	head.Cases = nil
	text, err := json.MarshalIndent(&head, "", " ")
	if err != nil {
		return err
	}
	text = bytes.TrimSuffix(text, []byte("null\n}"))
	if _, err := fmt.Fprintf(w, "%s[\n", text); err != nil {
		return err
	}
	for i := range d.Cases {
		line, err := json.Marshal(&d.Cases[i])
		if err != nil {
			return err
		}
		end := ",\n"
		if i == len(d.Cases)-1 {
			end = "\n]}\n"
		}
		if _, err := fmt.Fprintf(w, "%s%s", line, end); err != nil {
			return err
		}
	}
	return nil
}

// TestSuiteData checks that testdata/suite.json is the suite: definitions as they
// are, cases as they are simulated. With -update it is written anew.
func TestSuiteData(t *testing.T) {
	want := newSuiteData()
	for _, c := range sampleCases() {
		want.Cases = append(want.Cases, c.data(t))
	}
	if *updateSuite {
		var b bytes.Buffer
		if err := want.write(&b); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(suiteFile, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := readSuite(t)
	if len(got.Cases) != len(want.Cases) {
		t.Fatalf("%s has %d cases, want %d: run with -update", suiteFile, len(got.Cases), len(want.Cases))
	}
	cases := want.Cases
	for i := range cases {
		sameCase(t, &got.Cases[i], &cases[i])
	}
	got.Cases, want.Cases = nil, nil
	a, errA := json.Marshal(got)
	b, errB := json.Marshal(want)
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Errorf("the definitions in %s are not those of the code: run with -update", suiteFile)
	}
}

func readSuite(t *testing.T) *suiteData {
	t.Helper()
	text, err := os.ReadFile(suiteFile)
	if err != nil {
		t.Fatal(err)
	}
	d := new(suiteData)
	if err := json.Unmarshal(text, d); err != nil {
		t.Fatalf("decode %s: %v", suiteFile, err)
	}
	return d
}

// sameCase compares a case as it is read with the one simulated. Exponentials
// differ in the last bit from one kind of processor to another.
func sameCase(t *testing.T, got, want *caseData) {
	t.Helper()
	name := got.Layout + " " + got.Family
	near := func(a, b []float64, tolerance float64) bool {
		return slices.EqualFunc(a, b, func(x, y float64) bool { return near(x, y, tolerance) })
	}
	if name != want.Layout+" "+want.Family || got.Place != want.Place || got.Rate != want.Rate ||
		got.Size != want.Size || got.Seed != want.Seed {
		t.Errorf("%s is another case than %s %s", name, want.Layout, want.Family)
	}
	if !slices.EqualFunc(got.Counts, want.Counts, slices.Equal) || !near(got.Sums, want.Sums, 1e-12) ||
		!near(got.Truth, want.Truth, 1e-12) {
		t.Errorf("%s: simulated anew, counts, sums or truth differ", name)
	}
	for _, estimator := range compared {
		if !near(got.Estimates[estimator], want.Estimates[estimator], 1e-6) {
			t.Errorf("%s: %s is %v, in the file %v", name, estimator, want.Estimates[estimator], got.Estimates[estimator])
		}
	}
}

// TestSuiteFromData reads the suite as a stranger would: what the server shows is
// enough to repeat the estimates, and the bounds hold the truth.
func TestSuiteFromData(t *testing.T) {
	d := readSuite(t)
	seen := map[string]bool{}
	for i := range d.Cases {
		c := &d.Cases[i]
		at := slices.IndexFunc(d.Layouts, func(l layoutData) bool { return l.Name == c.Layout })
		family := slices.IndexFunc(d.Families, func(f familyData) bool { return f.Name == c.Family })
		if at < 0 || family < 0 || len(c.Counts) != c.Intervals || len(c.Sums) != c.Intervals {
			t.Fatalf("case %d (%s %s): incomplete", i, c.Layout, c.Family)
		}
		seen[c.Layout], seen[c.Family] = true, true
		tuning := d.Layouts[at].Split == "tuning" && d.Families[family].Split == "tuning"
		if (c.Split == "tuning") != tuning {
			t.Errorf("case %d (%s %s) is a %s case", i, c.Layout, c.Family, c.Split)
		}
		intervals, total := c.deltas(d.Layouts[at].Bounds)
		for _, name := range compared {
			got, ok := estimate(t, name, intervals, total, d.Quantiles)
			for k, g := range got {
				truth := c.Truth[k]
				if !ok || !near(g.Value, c.Estimates[name][k], 1e-6) {
					t.Errorf("case %d (%s %s): %s %v is %v, in the file %v", i, c.Layout, c.Family, name, d.Quantiles[k], g.Value,
						c.Estimates[name][k])
				}
				if margin := 1e-7 * math.Abs(truth); truth < g.Low-margin || truth > g.High+margin {
					t.Errorf("case %d (%s %s): %s: truth %v outside [%v, %v]", i, c.Layout, c.Family, name, truth, g.Low, g.High)
				}
			}
		}
	}
	for _, l := range d.Layouts {
		if !seen[l.Name] {
			t.Errorf("layout %s has no case", l.Name)
		}
	}
	for _, f := range d.Families {
		if seen[f.Name] == (f.Split == "design") {
			t.Errorf("family %s of split %s: has a case: %v", f.Name, f.Split, seen[f.Name])
		}
	}
}

// TestSuiteWrite writes cases for a program that wants more than the file has:
//
//	go test ./histest -run TestSuiteWrite -suite.write /tmp/cases.jsonl -suite.cases 1000
func TestSuiteWrite(t *testing.T) {
	path, n := *suiteWrite, *suiteWanted
	if path == "" { // a few, to see that it works
		path, n = t.TempDir()+"/cases.jsonl", 3
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := json.NewEncoder(f)
	cases := suiteSample(*accuracySeed, n, func(c *suiteCase) bool { return *suiteWrite != "" || c.expected() < 1000 })
	for i := range cases {
		d := cases[i].data(t)
		if err := w.Encode(&d); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() < int64(100*n) {
		t.Errorf("%s: %v %v, want %d cases", path, info, err, n)
	}
}

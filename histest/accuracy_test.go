package histest_test

import (
	"flag"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/scrapestat/scrapestat/histest"
)

var (
	accuracyCases = flag.Int("accuracy.cases", 0, "print the accuracy tables over `n` cases; 30000 is all of them")
	accuracySeed  = flag.Uint64("accuracy.seed", 21, "`seed` of the accuracy tables")
	accuracySplit = flag.String("accuracy.split", "all", "`cases` to take: tuning, test or all")
)

// result holds the relative errors of the nine quantiles by estimator, in the
// order of estimators.
type result struct {
	c       *suiteCase
	errors  [3][9]float64
	outside int // quantiles whose truth lies outside the bounds
	width   [9]float64
}

// run simulates the case and compares the estimators with the truth. An error is
// relative to the truth, or to 1 % of the mean where that is more.
func (c *suiteCase) run(t testing.TB) result {
	s := c.simulate()
	out := result{c: c}
	floor := 0.01 * s.total.Sum / s.total.Count
	for k, name := range []string{"linear", "polynomial", "refined"} {
		got, ok := estimate(t, name, s.intervals, s.total, nine)
		for i, q := range nine {
			truth := histest.Quantile(s.sorted, q)
			scale := max(math.Abs(truth), floor)
			if !ok {
				out.errors[k][i] = 1
				continue
			}
			out.errors[k][i] = math.Abs(got[i].Value-truth) / scale
			if margin := 1e-7*math.Abs(truth) + 1e-12; truth < got[i].Low-margin || truth > got[i].High+margin {
				out.outside++
			}
			out.width[i] = (got[i].High - got[i].Low) / scale
		}
	}
	return out
}

// runAll runs cases on all cores.
func runAll(t testing.TB, cases []suiteCase) []result {
	out := make([]result, len(cases))
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(cases); i += workers {
				out[i] = cases[i].run(t)
			}
		})
	}
	wg.Wait()
	return out
}

// errorsOf returns the errors of an estimator at the given quantiles, ascending.
func errorsOf(results []result, estimator int, quantiles ...int) []float64 {
	var out []float64
	for i := range results {
		for _, q := range quantiles {
			out = append(out, results[i].errors[estimator][q])
		}
	}
	slices.Sort(out)
	return out
}

func meanOf(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += x
	}
	return s / float64(len(v))
}

// TestAccuracy holds the refined estimator to its promise on a sample of cases
// that were not used for tuning.
func TestAccuracy(t *testing.T) {
	results := runAll(t, suiteSample(5, 400, func(c *suiteCase) bool { return !c.tuning() && c.rate < 100 }))
	poly, refined := errorsOf(results, 1, 4, 6, 7, 8), errorsOf(results, 2, 4, 6, 7, 8)
	if a, e := meanOf(poly), meanOf(refined); e > a/4 {
		t.Errorf("mean error %.4f, polynomial %.4f: want at most a quarter", e, a)
	}
	if a, e := histest.Quantile(poly, 0.5), histest.Quantile(refined, 0.5); e > a/7 {
		t.Errorf("median error %.5f, polynomial %.5f: want at most a seventh", e, a)
	}
	worse := 0
	for i := range results {
		r := &results[i]
		if r.outside > 0 {
			t.Errorf("%v: the truth is outside the bounds", r.c)
		}
		if meanOf(r.errors[2][:]) > meanOf(r.errors[0][:])+0.02 {
			worse++
		}
	}
	if worse > len(results)/100 {
		t.Errorf("%d of %d cases are worse than linear by more than 2 points", worse, len(results))
	}
}

// TestAccuracyTables prints the tables of docs/percentiles.md:
//
//	go test ./histest -run TestAccuracyTables -accuracy.cases 30000 -timeout 2h -v
func TestAccuracyTables(t *testing.T) {
	if *accuracyCases == 0 {
		t.Skip("the tables take minutes: ask with -accuracy.cases")
	}
	keep := map[string]func(*suiteCase) bool{
		"tuning": func(c *suiteCase) bool { return c.tuning() },
		"test":   func(c *suiteCase) bool { return !c.tuning() },
		"all":    func(*suiteCase) bool { return true },
	}[*accuracySplit]
	if keep == nil {
		t.Fatalf("unknown -accuracy.split %q", *accuracySplit)
	}
	results := runAll(t, suiteSample(*accuracySeed, *accuracyCases, keep))
	split := func(c *suiteCase) string {
		if c.tuning() {
			return "tuning"
		}
		return "test"
	}
	printTable("split", results, split)
	test := slices.DeleteFunc(slices.Clone(results), func(r result) bool { return r.c.tuning() })
	printGoals(test)
	printTable("layout", results, func(c *suiteCase) string { return c.layout.name })
	printTable("family", results, func(c *suiteCase) string { return c.family.name })
	printTable("rate", results, func(c *suiteCase) string {
		if c.family.tiny {
			return fmt.Sprintf("n = %d in all", c.size)
		}
		return fmt.Sprintf("%v per interval", c.rate)
	})
	printTable("intervals", results, func(c *suiteCase) string { return fmt.Sprint(c.intervals) })
}

// printTable prints mean, median and 95th percentile of the errors in percent:
// linear / polynomial / refined.
func printTable(by string, results []result, key func(*suiteCase) string) {
	groups := map[string][]result{}
	for _, r := range results {
		groups[key(r.c)] = append(groups[key(r.c)], r)
	}
	var names []string
	for name := range groups {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Printf("\n| %s | cases | p50 mean | p90 mean | p95 mean | p99 mean | p50 median | p90 median | p95 median | p99 median | p99 95th |\n|%s\n", by, strings.Repeat("---|", 11))
	for _, name := range names {
		printRow(name, groups[name])
	}
	printRow("**all**", results)
}

func printRow(name string, results []result) {
	cell := func(q int, stat func([]float64) float64) string {
		var v [3]string
		for k := range v {
			v[k] = fmt.Sprintf("%.3g", 100*stat(errorsOf(results, k, q)))
		}
		return strings.Join(v[:], " / ")
	}
	median := func(v []float64) float64 { return histest.Quantile(v, 0.5) }
	fmt.Printf("| %s | %d |", name, len(results))
	for _, q := range []int{4, 6, 7, 8} {
		fmt.Printf(" %s |", cell(q, meanOf))
	}
	for _, q := range []int{4, 6, 7, 8} {
		fmt.Printf(" %s |", cell(q, median))
	}
	fmt.Printf(" %s |\n", cell(8, func(v []float64) float64 { return histest.Quantile(v, 0.95) }))
}

// printGoals prints the ratios that the goals limit.
func printGoals(results []result) {
	if len(results) == 0 {
		return
	}
	all := []int{0, 1, 2, 3, 4, 5, 6, 7, 8}
	ratio := func(name string, quantiles ...int) {
		a, e := errorsOf(results, 1, quantiles...), errorsOf(results, 2, quantiles...)
		fmt.Printf("%s: refined/polynomial of means %.3f, of medians %.3f\n", name, meanOf(e)/meanOf(a),
			histest.Quantile(e, 0.5)/histest.Quantile(a, 0.5))
	}
	fmt.Printf("\ntest split, %d cases\n", len(results))
	ratio("p50 p90 p95 p99", 4, 6, 7, 8)
	ratio("p99", 8)
	ratio("all nine", all...)
	two, five, cells, outside := 0, 0, 0, 0
	for i := range results {
		r := &results[i]
		d := meanOf(r.errors[2][:]) - meanOf(r.errors[0][:])
		if d > 0.02 {
			two++
		}
		if d > 0.05 {
			five++
		}
		for q := range r.errors[2] {
			if r.errors[2][q] > r.errors[0][q]+0.2 {
				cells++
			}
		}
		outside += r.outside
	}
	n := float64(len(results))
	fmt.Printf("worse than linear: by 2 points in %.2f %% of cases, by 5 in %.2f %%; by 20 in %.2f %% of quantiles\n",
		100*float64(two)/n, 100*float64(five)/n, 100*float64(cells)/(9*n))
	fmt.Printf("truth outside the bounds: %d of %d\n", outside, 27*len(results))
}

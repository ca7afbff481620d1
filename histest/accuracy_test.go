package histest_test

import (
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/histest"
)

var (
	accuracyCases = flag.Int("accuracy.cases", 0, "make the accuracy tables of `n` cases; 30000 is all of them")
	accuracySeed  = flag.Uint64("accuracy.seed", 21, "`seed` of the accuracy tables")
	accuracySplit = flag.String("accuracy.split", "all", "`cases` to take: tuning, test or all")
	accuracyWrite = flag.String("accuracy.write", "", "`file` to write the accuracy tables to instead of printing them")
)

// compared are the estimators in the order of the tables.
var compared = []string{"linear", "polynomial", "refined"}

// The estimators of compared and the positions of quantiles in nine.
const (
	asLinear = iota
	asPolynomial
	asRefined

	atP50 = 4
	atP90 = 6
	atP95 = 7
	atP99 = 8
)

// result holds the relative errors of the nine quantiles by estimator, in the
// order of compared.
type result struct {
	c       *suiteCase
	errors  [3][9]float64
	outside int // quantiles whose truth lies outside the bounds
}

// run simulates the case and compares the estimators with the truth.
func (c *suiteCase) run(t testing.TB) result {
	s := c.simulate()
	out := result{c: c}
	for k, name := range compared {
		got, ok := estimate(t, name, s.intervals, s.total, nine)
		out.errors[k], out.outside = s.judge(got, ok, out.outside)
	}
	return out
}

// judge returns the errors of estimates, relative to the truth, or to 1 % of the
// mean where that is more, and how many truths lie outside their bounds.
func (s *simulated) judge(got []histest.Estimate, ok bool, before int) (errors [9]float64, outside int) {
	floor := 0.01 * s.total.Sum / s.total.Count
	outside = before
	for i, q := range nine {
		truth := histest.Quantile(s.sorted, q)
		if !ok {
			errors[i] = 1
			continue
		}
		errors[i] = math.Abs(got[i].Value-truth) / max(math.Abs(truth), floor)
		if margin := 1e-7*math.Abs(truth) + 1e-12; truth < got[i].Low-margin || truth > got[i].High+margin {
			outside++
		}
	}
	return errors, outside
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

// goal is a promise about the test cases: got is at most limit.
type goal struct {
	what       string
	got, limit float64
}

// goals measures what docs/percentiles.md promises of the refined estimator.
func goals(results []result) []goal {
	var out []goal
	against := func(what string, mean, median float64, quantiles ...int) {
		a, e := errorsOf(results, asPolynomial, quantiles...), errorsOf(results, asRefined, quantiles...)
		out = append(out, goal{what + ": mean error, share of polynomial's", meanOf(e) / meanOf(a), mean},
			goal{what + ": median error, share of polynomial's", histest.Quantile(e, 0.5) / histest.Quantile(a, 0.5), median})
	}
	against("p50, p90, p95 and p99", 1.0/4, 1.0/7, atP50, atP90, atP95, atP99)
	against("p99", 0.30, 0.15, atP99)
	against("all nine", 0.35, 0.20, 0, 1, 2, 3, 4, 5, 6, 7, 8)
	var two, five, cells, outside float64
	for i := range results {
		r := &results[i]
		d := meanOf(r.errors[asRefined][:]) - meanOf(r.errors[asLinear][:])
		if d > 0.02 {
			two++
		}
		if d > 0.05 {
			five++
		}
		for q := range r.errors[asRefined] {
			if r.errors[asRefined][q] > r.errors[asLinear][q]+0.2 {
				cells++
			}
		}
		outside += float64(r.outside)
	}
	n := float64(len(results))
	return append(out, goal{"share of cases worse than linear by more than 2 points", two / n, 0.01},
		goal{"share of cases worse than linear by more than 5 points", five / n, 0.005},
		goal{"share of single quantiles worse than linear by more than 20 points", cells / (9 * n), 0.005},
		goal{"truths outside the bounds of any estimator", outside, 0})
}

// TestAccuracyTables holds the refined estimator to its promises on a sample of cases
// that were not used for tuning. With -accuracy.cases it makes the tables of
// docs/data/accuracy.md, which takes minutes:
//
//	go test ./histest -run TestAccuracyTables -accuracy.cases 30000 -timeout 3h -v
func TestAccuracyTables(t *testing.T) {
	var w io.Writer = io.Discard
	var results []result
	if *accuracyCases == 0 {
		results = runAll(t, suiteSample(5, 400, func(c *suiteCase) bool { return !c.tuning() && c.expected() <= 12000 }))
	} else {
		results, w = wholeSuite(t)
	}
	for _, g := range writeTables(w, results) {
		t.Logf("%s: %.4f, goal %.4f", g.what, g.got, g.limit)
		if !(g.got <= g.limit) {
			t.Errorf("%s: %.4f, want at most %.4f", g.what, g.got, g.limit)
		}
	}
}

// wholeSuite runs the cases that the flags ask for, and returns where their tables go.
func wholeSuite(t *testing.T) ([]result, io.Writer) {
	t.Helper()
	keep := map[string]func(*suiteCase) bool{
		"tuning": func(c *suiteCase) bool { return c.tuning() },
		"test":   func(c *suiteCase) bool { return !c.tuning() },
		"all":    func(*suiteCase) bool { return true },
	}[*accuracySplit]
	if keep == nil {
		t.Fatalf("unknown -accuracy.split %q", *accuracySplit)
	}
	results := runAll(t, suiteSample(*accuracySeed, *accuracyCases, keep))
	if *accuracyWrite == "" {
		return results, os.Stdout
	}
	f, err := os.Create(*accuracyWrite)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return results, f
}

// writeTables writes all tables and returns the goals of the test split.
func writeTables(w io.Writer, results []result) []goal {
	fmt.Fprintf(w, "# The accuracy suite: all tables\n\nMade by `go test ./histest -run TestAccuracyTables "+
		"-accuracy.cases %d -accuracy.seed %d -timeout 3h -v`, which also\n"+
		"checks the goals; [percentiles.md](../percentiles.md) explains the suite. %d cases. All errors in percent: "+
		"**linear / polynomial / refined**.\n",
		*accuracyCases, *accuracySeed, len(results))
	test := slices.DeleteFunc(slices.Clone(results), func(r result) bool { return r.c.tuning() })
	var met []goal
	if len(test) > 0 {
		met = goals(test)
		fmt.Fprintf(w, "\n## Goals, on the %d test cases\n| | measured | at most |\n|---|---|---|\n", len(test))
		for _, g := range met {
			fmt.Fprintf(w, "| %s | %.4g | %.4g |\n", g.what, g.got, g.limit)
		}
	}
	writeTable(w, "split", results, (*suiteCase).split)
	writeTable(w, "layout", results, func(c *suiteCase) string { return c.layout.name + marked(c.layout.tuning) })
	writeTable(w, "family", results, func(c *suiteCase) string { return c.family.name + marked(c.family.tuning) })
	writeTable(w, "rate", results, func(c *suiteCase) string {
		if c.family.tiny {
			return fmt.Sprintf("n = %d in all", c.size)
		}
		return fmt.Sprintf("%v per interval", c.rate)
	})
	writeTable(w, "intervals", results, func(c *suiteCase) string { return fmt.Sprint(c.intervals) })
	writeTable(w, "place among the bounds", results, func(c *suiteCase) string { return fmt.Sprint(c.place) })
	return met
}

func marked(tuning bool) string {
	if tuning {
		return " (tuning)"
	}
	return ""
}

// writeTable writes mean, median and 95th percentile of the errors of p50, p90,
// p95 and p99 for each group of cases.
func writeTable(w io.Writer, by string, results []result, key func(*suiteCase) string) {
	groups := map[string][]result{}
	for _, r := range results {
		groups[key(r.c)] = append(groups[key(r.c)], r)
	}
	var names []string
	for name := range groups {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Fprintf(w, "\n## By %s\n", by)
	for _, s := range []struct {
		name string
		of   func([]float64) float64
	}{{"mean", meanOf}, {"median", quantileOf(0.5)}, {"95th percentile", quantileOf(0.95)}} {
		fmt.Fprintf(w, "\n| %s, %s | cases | p50 | p90 | p95 | p99 |\n|%s\n", by, s.name, strings.Repeat("---|", 6))
		for _, name := range names {
			writeRow(w, name, groups[name], s.of)
		}
		writeRow(w, "**all**", results, s.of)
	}
}

func quantileOf(q float64) func([]float64) float64 {
	return func(v []float64) float64 { return histest.Quantile(v, q) }
}

func writeRow(w io.Writer, name string, results []result, stat func([]float64) float64) {
	fmt.Fprintf(w, "| %s | %d |", name, len(results))
	for _, q := range []int{atP50, atP90, atP95, atP99} {
		var v [3]string
		for k := range v {
			v[k] = fmt.Sprintf("%.3g", 100*stat(errorsOf(results, k, q)))
		}
		fmt.Fprintf(w, " %s |", strings.Join(v[:], " / "))
	}
	fmt.Fprintln(w)
}

// BenchmarkAccuracy runs each estimator over test cases of the suite, one for
// each iteration, and reports its errors beside its cost:
//
//	go test ./histest -run '^$' -bench Accuracy -benchtime 4000x
func BenchmarkAccuracy(b *testing.B) {
	for k, name := range compared {
		b.Run(name, func(b *testing.B) {
			cases := suiteSample(*accuracySeed, b.N, func(c *suiteCase) bool { return !c.tuning() })
			var results []result
			var took time.Duration
			for n := range b.N {
				c := &cases[n%len(cases)]
				s := c.simulate()
				start := time.Now()
				got, ok := estimate(b, name, s.intervals, s.total, nine)
				took += time.Since(start)
				r := result{c: c}
				r.errors[k], _ = s.judge(got, ok, 0)
				results = append(results, r)
			}
			all := errorsOf(results, k, atP50, atP90, atP95, atP99)
			b.ReportMetric(float64(took.Nanoseconds())/float64(b.N), "ns/op") // without the simulation
			b.ReportMetric(100*meanOf(all), "%-mean")
			b.ReportMetric(100*histest.Quantile(all, 0.5), "%-median")
			b.ReportMetric(100*histest.Quantile(all, 0.95), "%-p95")
		})
	}
}

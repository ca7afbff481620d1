package main

import (
	"flag"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/compare/judge"
	"github.com/scrapestat/scrapestat/headline"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
)

// spread makes TestRunSpread the one of docs/data/compare.md, over recordings of one configuration.
var spread = flag.String("spread", "", "pattern of run directories, repeats of one configuration of a real server")

// TestRunSpread holds how much equal runs differ beside what judge takes for the noise within each: of simulated runs,
// which vary in nothing else, both are alike. Of real ones, whose table is in docs/data/compare.md:
//
//	go test ./cmd/scrapestat -run TestRunSpread -v -spread 'runs/A-*'
func TestRunSpread(t *testing.T) {
	t.Parallel()
	var runs []*summary.Run
	if *spread == "" {
		runs = studied(t, "vllm", 8, 300, 0, 40*time.Second)
	}
	dirs, err := filepath.Glob(*spread)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		db, err := rundb.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		r, err := summary.Build(t.Context(), []summary.Recording{db},
			summary.Options{Estimator: histest.Refined, Slice: summary.NoiseSlices})
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, r)
	}
	rows := spreadOf(t, runs)
	t.Logf("%d runs: spread between them (s.d. of logarithms), noise within one, their ratio", len(runs))
	for _, row := range headline.Rows() {
		if s, ok := rows[row.Name()]; ok {
			t.Logf("| `%s` | %.4g | %.2f %% | %.2f %% | %.2f |", row.Name(), s.value, 100*s.between, 100*s.within,
				s.between/s.within)
		}
	}
	for _, name := range []string{"request_rate", "itl_mean", "e2e_mean"} {
		s, ok := rows[name]
		if ratio := s.between / s.within; !ok || *spread == "" && !(ratio > 0.3 && ratio < 3) {
			t.Errorf("%s of equal simulated runs: %+v", name, s)
		}
	}
}

// varied is how a quantity varies: the standard deviation of the logarithms of its values between runs, and the root of
// the mean square of the errors within runs; NaN where fewer than two runs have one.
type varied struct{ value, between, within float64 }

func spreadOf(t *testing.T, runs []*summary.Run) map[string]varied {
	t.Helper()
	c, err := catalog.New()
	if err != nil {
		t.Fatal(err)
	}
	values, errors := map[string][]float64{}, map[string][]float64{}
	for _, r := range runs {
		groups := headline.Of(r, c)
		if len(groups) != 1 {
			t.Fatalf("%d headlines in run %s, want 1", len(groups), r.ID)
		}
		for i := range groups[0].Values {
			v := &groups[0].Values[i]
			e := judge.Ratio(v.Num, v.Den)
			if q, ok := v.Row.Quantile(); ok {
				e = judge.Quantile(v.Value, q, histogramsOf(v))
			}
			if v.Missing == "" && v.Value > 0 && e.DF > 0 {
				values[v.Name()] = append(values[v.Name()], math.Log(v.Value))
				errors[v.Name()] = append(errors[v.Name()], e.Err)
			}
		}
	}
	out := map[string]varied{}
	for name, list := range values {
		mean, squares, within := 0.0, 0.0, 0.0
		for i, x := range list {
			mean += x / float64(len(list))
			within += errors[name][i] * errors[name][i] / float64(len(list))
		}
		for _, x := range list {
			squares += (x - mean) * (x - mean)
		}
		out[name] = varied{math.Exp(mean), math.Sqrt(squares / float64(len(list)-1)), math.Sqrt(within)}
	}
	return out
}

func histogramsOf(v *headline.Value) []judge.Histogram {
	var out []judge.Histogram
	for _, cum := range v.Cum {
		out = append(out, judge.Histogram{Bounds: v.Bounds, Cum: cum})
	}
	return out
}

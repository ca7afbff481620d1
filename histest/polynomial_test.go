package histest_test

import (
	"math"
	"testing"

	"github.com/scrapestat/scrapestat/histest"
)

// hist is a short form of a delta: cumulative counts, those of +Inf last.
func hist(bounds []float64, sum float64, cum ...float64) *histest.Delta {
	last := len(cum) - 1
	return &histest.Delta{Bounds: bounds, Cum: cum[:last], Inf: cum[last], HasInf: true, Sum: sum, Count: cum[last]}
}

func values(estimates []histest.Estimate) []float64 {
	v := make([]float64, len(estimates))
	for i, e := range estimates {
		v[i] = e.Value
	}
	return v
}

// checkPolynomial compares the nine quantiles after learning from intervals; no
// want means no answer.
func checkPolynomial(t *testing.T, total *histest.Delta, intervals []*histest.Delta, want ...float64) {
	t.Helper()
	e := newEstimator(t, "polynomial", total.Bounds)
	for _, d := range intervals {
		e.Interval(d)
	}
	got, ok := e.Quantiles(nil, total, nine)
	if ok != (want != nil) {
		t.Errorf("%+v: answer %v, want %v", total, ok, want != nil)
		return
	}
	for i, w := range want {
		if !near(got[i].Value, w, 1e-9) {
			t.Errorf("%+v: %s is %v, want %v", total, nineKeys[i], got[i].Value, w)
		}
	}
}

// repeat returns an interval n times.
func repeat(d *histest.Delta, n int) []*histest.Delta {
	all := make([]*histest.Delta, n)
	for i := range all {
		all[i] = d
	}
	return all
}

func all(x float64) []float64 { return []float64{x, x, x, x, x, x, x, x, x} }

// The numbers of the cases are those of the compatibility specification.
func TestPolynomialCases(t *testing.T) {
	one, two := []float64{1}, []float64{1, 2}
	t.Run("40 no answer", func(t *testing.T) {
		checkPolynomial(t, hist(one, 0, 0, 0), nil)
		checkPolynomial(t, &histest.Delta{Sum: 5, Count: 5}, nil)
		checkPolynomial(t, hist(nil, 500, 100), nil)
		checkPolynomial(t, hist(one, math.NaN(), 100, 100), nil)
		checkPolynomial(t, hist(one, math.Inf(1), 100, 100), nil)
		checkPolynomial(t, hist(one, math.Inf(-1), 100, 100), nil)
		checkPolynomial(t, hist(one, -100, 100, 100), nil)
	})
	t.Run("41 zero sum", func(t *testing.T) {
		checkPolynomial(t, hist(one, 0, 100, 100), nil, all(0)...)
	})
	t.Run("42 midpoints and overflow", func(t *testing.T) {
		checkPolynomial(t, hist([]float64{0.1, 0.5, 1}, 500, 100, 500, 900, 1000), nil,
			0.001666470588235295, 0.041626470588235306, 0.0990676470588236, 0.19730882352941176, 0.4732794117647059,
			0.6798345588235295, 0.8803198529411795, 1.4954545454545451, 1.8990909090909092)
	})
	t.Run("43 all beyond the last bound", func(t *testing.T) {
		checkPolynomial(t, hist(one, 500, 0, 100), nil, 1.08, 1.4, 1.8, 3, 5, 7, 8.2, 8.6, 8.92)
	})
	t.Run("44 learned mean", func(t *testing.T) {
		checkPolynomial(t, hist(two, 110, 60, 100, 100), []*histest.Delta{hist(two, 9, 10, 10, 10)},
			0.4308406593406594, 0.49684065934065935, 0.5793406593406593, 0.8268406593406593, 1,
			1.3797390109890109, 1.7509890109890112, 1.874739010989011, 1.973739010989011)
	})
	t.Run("45 scaled down", func(t *testing.T) {
		checkPolynomial(t, hist(one, 5e6, 1e7, 1e7), nil, 0.0100049, 0.0500045, 0.100004, 0.2500025, 0.5,
			0.7499975, 0.899996, 0.9499955, 0.9899951)
	})
	t.Run("46 one observation", func(t *testing.T) {
		checkPolynomial(t, hist([]float64{0.1, 1}, 0.3, 0, 1, 1), nil, all(0.3)...)
	})
	t.Run("47 variance", func(t *testing.T) {
		// Two means give no variance, five equal ones a variance of 0: a uniform
		// spread around the mean either way. Dust of a variance makes two points.
		total, at := hist(two, 5, 0, 4, 4), hist(two, 5, 0, 4, 4)
		checkPolynomial(t, total, repeat(at, 2), adjusted(5, 1, 1.125, 1.375, 1.625)...)
		checkPolynomial(t, total, repeat(at, 5), adjusted(5, 1, 1.125, 1.375, 1.625)...)
		checkPolynomial(t, total, append(repeat(at, 4), hist(two, 5.0001, 0, 4, 4)),
			adjusted(5, 1.250005, 1.250005, 1.250005, 1.250005)...)
	})
	t.Run("48 per bucket", func(t *testing.T) {
		// With bounds below 0 the first bucket reaches from 0 down to -10: all of
		// its values become -10.
		e := newEstimator(t, "polynomial", []float64{-10, -1, 0, 10})
		got, ok := e.Quantiles(nil, hist([]float64{-10, -1, 0, 10}, 1, 10, 50, 80, 100, 100), []float64{0, 0.05})
		if !ok || got[0].Value != -10 || got[1].Value != -10 {
			t.Errorf("negative bounds: got %v %v, want -10 -10", values(got), ok)
		}
	})
	t.Run("49 mean on the bound", func(t *testing.T) {
		half := []float64{0.5, 1}
		checkPolynomial(t, hist(half, 5, 10, 20, 20), []*histest.Delta{hist(half, 5, 10, 10, 10)},
			polynomialOf(t, hist(half, 5, 10, 20, 20))...)
	})
}

// adjusted returns the nine quantiles of values of the bucket (1, 2] after the
// adjustment to their sum.
func adjusted(sum float64, v ...float64) []float64 {
	have := 0.0
	for _, x := range v {
		have += x
	}
	if math.Abs(sum-have)/sum >= 0.001 {
		shift := min(max((sum-have)/float64(len(v)), -0.4), 0.4)
		for i := range v {
			v[i] = min(max(v[i]+shift, 1), 2)
		}
	}
	out := make([]float64, len(nine))
	for i, q := range nine {
		out[i] = histest.Quantile(v, q)
	}
	return out
}

func polynomialOf(t *testing.T, total *histest.Delta) []float64 {
	t.Helper()
	got, ok := newEstimator(t, "polynomial", total.Bounds).Quantiles(nil, total, nine)
	if !ok {
		t.Fatalf("%+v: no answer", total)
	}
	return values(got)
}

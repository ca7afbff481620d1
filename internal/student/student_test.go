package student_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/internal/student"
)

// TestStudent compares with gonum's distributions.
func TestStudent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		df := rapid.Float64Range(0.5, 1e4).Draw(t, "df")
		x := rapid.Float64Range(-50, 50).Draw(t, "t")
		p := rapid.Float64Range(0.5001, 0.99999).Draw(t, "p")
		for _, d := range []struct {
			df float64
			of interface {
				Survival(float64) float64
				Quantile(float64) float64
			}
		}{{df, distuv.StudentsT{Sigma: 1, Nu: df}}, {math.Inf(1), distuv.UnitNormal}} {
			if got, want := student.TwoSided(x, d.df), 2*d.of.Survival(math.Abs(x)); !near(got, want) {
				t.Errorf("TwoSided(%v, %v): got %v, want %v", x, d.df, got, want)
			}
			if got, want := student.Quantile(p, d.df), d.of.Quantile(p); !near(got, want) {
				t.Errorf("Quantile(%v, %v): got %v, want %v", p, d.df, got, want)
			}
		}
	})
}

// near allows for the cancellation in the survival of a far value of the normal distribution.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Abs(b)+1e-15 }

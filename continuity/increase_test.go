package continuity_test

import (
	"math"
	"testing"

	"github.com/scrapestat/scrapestat/continuity"
)

// The statuses are ordered as in the contract: the worst of the inputs wins.
func TestStatusWords(t *testing.T) {
	for s := continuity.OK; s <= continuity.Refused; s++ {
		if got, ok := continuity.ParseStatus(s.String()); got != s || !ok {
			t.Errorf("%v reads back as %v %v", s, got, ok)
		}
		if s.Certain() != (s <= continuity.Born) || s.Defined() != (s < continuity.Refused) {
			t.Errorf("%v: certain %v, defined %v", s, s.Certain(), s.Defined())
		}
	}
	if _, ok := continuity.ParseStatus("fine"); ok {
		t.Error("an unknown word is a status")
	}
	if got := continuity.Status(99).String(); got != "refused" {
		t.Errorf("an unknown status is %q", got)
	}
}

func TestVerdictIncrease(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name           string
		v              continuity.Verdict
		gain           float64
		status         continuity.Status
		low, val, high float64
	}{
		{"nothing", continuity.Verdict{}, 10, continuity.OK, 10, 10, 10},
		{"restart", continuity.Verdict{Status: continuity.Corrected, Restarts: 2}, 10,
			continuity.Corrected, 10, 10, 10},
		{"within 1 %", continuity.Verdict{Low: -1, High: 10}, 1000, continuity.OK, 1000, 1000, 1000},
		{"high", continuity.Verdict{High: 40}, 22, continuity.Ambiguous, 22, 22, 62},
		{"low", continuity.Verdict{Status: continuity.Corrected, Low: -40}, 62, continuity.Ambiguous, 22,
			62, 62},
		{"lower bound", continuity.Verdict{Status: continuity.LowerBound}, 42, continuity.LowerBound, 42,
			42, inf},
		{"lower bound with less", continuity.Verdict{Status: continuity.LowerBound, Low: -2}, 42,
			continuity.LowerBound, 40, 40, inf},
	} {
		i := c.v.Increase(c.gain)

		if i.Status != c.status || i.Low != c.low || i.Value != c.val || i.High != c.high || i.Restarts != c.v.Restarts {
			t.Errorf("%s: %+v", c.name, i)
		}
	}
	refused := continuity.Verdict{Status: continuity.Refused}
	if i := refused.Increase(3); i.Status != continuity.Refused || !math.IsNaN(i.Value) {
		t.Errorf("refused: %+v", i)
	}
}

// Arithmetic keeps the worst status, and an interval that holds every value of its inputs.
func TestIncreaseArithmetic(t *testing.T) {
	inf := math.Inf(1)
	lower := continuity.Increase{Value: 8, Low: 8, High: inf, Status: continuity.LowerBound}
	wide := continuity.Increase{Value: 4, Low: 2, High: 5, Status: continuity.Ambiguous}
	refused := continuity.Verdict{Status: continuity.Refused}.Increase(1)
	for _, c := range []struct {
		name           string
		i              continuity.Increase
		status         continuity.Status
		low, val, high float64
	}{
		{"sum", continuity.Certain(1).Add(wide), continuity.Ambiguous, 3, 5, 6},
		{"sum of bounds", lower.Add(continuity.Certain(1)), continuity.LowerBound, 9, 9, inf},
		{"difference", continuity.Certain(10).Sub(wide), continuity.Ambiguous, 5, 6, 8},
		{"below a bound", continuity.Certain(10).Sub(lower), continuity.Ambiguous, math.Inf(-1), 2, 2},
		{"rate", lower.Times(0.5), continuity.LowerBound, 4, 4, inf},
		{"rate over no time", lower.Times(0), continuity.LowerBound, 0, 0, inf},
		{"ratio", must(wide.Over(continuity.Certain(2))), continuity.Ambiguous, 1, 2, 2.5},
		{"bound over", must(lower.Over(continuity.Certain(2))), continuity.LowerBound, 4, 4, inf},
		{"over a bound", must(continuity.Certain(16).Over(lower)), continuity.Ambiguous, 0, 2, 2},
		{"bound over bound", must(lower.Over(lower)), continuity.Ambiguous, 0, 1, inf},
	} {
		if i := c.i; i.Status != c.status || i.Low != c.low || i.Value != c.val || i.High != c.high {
			t.Errorf("%s: %+v, want %v %v..%v..%v", c.name, i, c.status, c.low, c.val, c.high)
		}
	}
	for _, i := range []continuity.Increase{refused.Add(lower), lower.Sub(refused), refused.Times(2),
		must(wide.Over(refused))} {
		if i.Status != continuity.Refused || !math.IsNaN(i.Value) {
			t.Errorf("of a refused one: %+v", i)
		}
	}
	if _, ok := wide.Over(continuity.Certain(0)); ok {
		t.Error("a quotient by zero")
	}
	if i := (continuity.Increase{Exact: 1<<63 + 1, HasExact: true}).Add(continuity.Increase{Exact: 2,
		HasExact: true}); i.Exact != 1<<63+3 {
		t.Errorf("exact sum %d", i.Exact)
	}
}

func must(i continuity.Increase, ok bool) continuity.Increase {
	if !ok {
		panic("no quotient")
	}
	return i
}

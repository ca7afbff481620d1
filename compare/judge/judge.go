// Package judge compares a quantity of two sides of runs, with numbers alone: the
// noise within a run by batch means, the noise between runs by a pooled t of
// transformed values, Holm's correction over the rows of one comparison, and how
// many runs would show a change of the size that matters.
//
// Nothing here is random: swapping the sides mirrors a result, and equal input
// gives equal bits. Functions start no goroutines and keep nothing of their
// arguments.
package judge

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/scrapestat/scrapestat/internal/student"
)

// Direction is the way in which a quantity improves.
type Direction int

// The directions. Neutral has none: a change of it is just a change.
const (
	Neutral Direction = iota
	Lower
	Higher
)

// Evidence is what a row is judged by.
type Evidence string

// The kinds of evidence, weakest first.
const (
	None      Evidence = "none"
	WithinRun Evidence = "within-run" // one run a side: it cannot know how runs vary
	History   Evidence = "history"    // one run a side and the stored noise of earlier runs
	Repeats   Evidence = "repeats"    // two degrees of freedom and more from runs
)

// Verdict is what may be said of a row.
type Verdict string

// The verdicts. Moved ones are those of a single run a side.
const (
	Worse       Verdict = "worse"
	Better      Verdict = "better"
	Changed     Verdict = "changed"
	Same        Verdict = "same"
	Unclear     Verdict = "unclear"
	MovedUp     Verdict = "moved up"
	MovedDown   Verdict = "moved down"
	WithinNoise Verdict = "within noise"
	NotJudged   Verdict = "not judged"
)

// Noise is what is known of how runs of one configuration vary: the standard
// deviation of the transformed value, and its degrees of freedom; 0 is nothing.
type Noise struct{ S, DF float64 }

// Row is a quantity of both sides, one value for each run.
type Row struct {
	Base, Other []float64
	// Share makes the quantity a share from 0 to 1: differences are absolute and
	// judged on arcsine of the square root. Else they are relative, on logarithms.
	Share  bool
	Better Direction
	// Margin is the least change worth a verdict: relative, of a Share the difference.
	Margin float64
	// Floor is the least absolute difference worth a verdict.
	Floor   float64
	History Noise
	// Within is the estimate of the one run of each side by Ratio or Quantile; DF 0 is none.
	Within [2]Estimate
	// Events and Trials are the counts behind a Share of one run a side; with no
	// event on one side Fisher's exact test takes the place of Within.
	Events, Trials [2]float64
	// Reason is why the row must not be judged; "" lets it be judged.
	Reason string
}

// Result is what is said of a Row. Numbers are NaN where there are none.
type Result struct {
	Base, Other float64 // the means on the row's scale: of logarithms the geometric mean
	// Change is Other to Base less 1, of a Share the difference. Low and High hold it
	// with the confidence of the comparison, over all of its rows at once.
	Change, Low, High float64
	S, Err, DF        float64 // standard deviation of a run, standard error of the change, both on the row's scale
	P, PHolm          float64
	Evidence          Evidence
	Verdict           Verdict
	RunsNeeded        int    // runs a side that show a change of Margin in four of five comparisons; 0: over 1,000
	Reason            string // of NotJudged
}

// work is a row while it is judged: the difference on its scale with its error.
type work struct {
	scale
	delta, from float64
	judged      bool
}

// Judge judges the rows of one comparison at the share alpha of comparisons that
// may have a false finding. Results are in the order of rows. The formulas are
// those of docs/compare.md: the pooled t test (Student 1908) on transformed
// values, Welch's for single runs, two one-sided tests for equivalence
// (Schuirmann 1987), Holm's correction (1979).
func Judge(rows []Row, alpha float64) []Result {
	out, works := make([]Result, len(rows)), make([]work, len(rows))
	for i := range rows {
		out[i], works[i] = weigh(&rows[i])
	}
	m := holm(out, works)
	for i := range rows {
		if works[i].judged {
			decide(&rows[i], &out[i], &works[i], alpha, m)
		}
	}
	return out
}

// weigh computes what a row shows by itself.
func weigh(r *Row) (Result, work) {
	nan := math.NaN()
	out := Result{Base: nan, Other: nan, Change: nan, Low: nan, High: nan, S: nan, Err: nan, P: nan, PHolm: nan,
		Evidence: None, Verdict: NotJudged, Reason: r.Reason}
	w := work{scale: scaleOf(r)}
	if len(r.Base) == 0 || len(r.Other) == 0 || !w.fits(r.Base) || !w.fits(r.Other) {
		out.Reason = cmp.Or(out.Reason, "a value is zero or missing")
		return out, w
	}
	a, ssA := w.moments(r.Base)
	b, ssB := w.moments(r.Other)
	out.Base, out.Other = w.center(r.Base, a), w.center(r.Other, b)
	if w.from, w.delta = a, b-a; allEqual(r) {
		w.delta = 0
	}
	out.Change = w.change(w.from, w.delta)
	if out.Reason != "" {
		return out, w
	}
	w.judged = true
	nA, nB := float64(len(r.Base)), float64(len(r.Other))
	out.DF = nA + nB - 2 + r.History.DF
	out.S = math.Sqrt((ssA + ssB + r.History.DF*r.History.S*r.History.S) / out.DF)
	out.Err = out.S * math.Sqrt(1/nA+1/nB)
	single := len(r.Base) == 1 && len(r.Other) == 1
	switch {
	case !single && out.DF >= 2:
		out.Evidence, out.P = Repeats, twoSided(w.delta, out.Err, out.DF)
	case single:
		w.single(r, &out)
	default:
		out.Reason, w.judged = "too few runs: give 2 a side and more", false
	}
	return out, w
}

// single judges one run a side: by what varies within the runs, and if the noise of
// earlier runs is known, by both: the larger p counts.
func (w *work) single(r *Row, out *Result) {
	between, se, df := math.NaN(), out.Err, out.DF
	if r.History.DF >= 5 {
		between = twoSided(w.delta, se, df)
	}
	delta := w.delta
	if !w.welch(r, out) {
		out.Reason, w.judged = "fewer than 12 slices in a run: no noise to judge by", false
		return
	}
	if out.Evidence = WithinRun; math.IsNaN(between) {
		out.S = math.NaN()
	} else {
		out.Evidence = History
		if !(out.P > between) {
			w.scale, w.from = scaleOf(r), scaleOf(r).to(out.Base)
			w.delta, out.P, out.Err, out.DF = delta, between, se, df
		}
	}
}

// welch judges single runs by the estimates within them. Of a share the quotient
// itself is held against the other, since its logarithm or root may not exist.
func (w *work) welch(r *Row, out *Result) bool {
	a, b := r.Within[0], r.Within[1]
	if r.Share {
		w.scale, w.from, w.delta = linear(), out.Base, out.Other-out.Base
		if min(r.Events[0], r.Events[1]) == 0 && min(r.Trials[0], r.Trials[1]) > 0 {
			out.P, out.DF = fisher(r.Events, r.Trials), math.Inf(1)
			out.Err = math.Sqrt(binomial(r, 0) + binomial(r, 1))
			return true
		}
		a.Err, b.Err = a.Err*a.Value, b.Err*b.Value
	}
	if !(a.DF > 0 && b.DF > 0) {
		return false
	}
	va, vb := a.Err*a.Err, b.Err*b.Err
	out.Err = math.Sqrt(va + vb)
	out.DF = (va + vb) * (va + vb) / (va*va/a.DF + vb*vb/b.DF)
	if va+vb == 0 {
		out.DF = min(a.DF, b.DF)
	}
	out.P = twoSided(w.delta, out.Err, out.DF)
	return true
}

// binomial is the variance of a side's share, at least that of half an event.
func binomial(r *Row, side int) float64 {
	p := max(r.Events[side], 0.5) / r.Trials[side]
	return p * (1 - min(1, p)) / r.Trials[side]
}

// holm corrects the p-values of all judged rows, and returns how many there are.
func holm(out []Result, works []work) int {
	var order []int
	for i := range out {
		if works[i].judged {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(out[a].P, out[b].P) })
	worst := 0.0
	for k, i := range order {
		worst = max(worst, min(1, float64(len(order)-k)*out[i].P))
		out[i].PHolm = worst
	}
	return len(order)
}

// decide gives a judged row its interval, its verdict and the runs that it needs.
func decide(r *Row, out *Result, w *work, alpha float64, m int) {
	half := student.Quantile(1-alpha/2/float64(m), out.DF) * out.Err
	out.Low, out.High = w.change(w.from, w.delta-half), w.change(w.from, w.delta+half)
	difference := math.Abs(out.Other - out.Base)
	switch e := student.Quantile(1-alpha, out.DF) * out.Err; {
	case allEqual(r):
		out.Verdict = Same
	case out.PHolm <= alpha && w.beyond(r.Margin) && difference >= r.Floor:
		out.Verdict = r.found(w.delta, out.Evidence)
	case w.within(r.Margin, e), difference+max(out.Base, out.Other)*w.width(e) <= r.Floor:
		out.Verdict = Same
	case out.Evidence == WithinRun:
		out.Verdict = WithinNoise
	default:
		out.Verdict = Unclear
	}
	if out.Evidence == Repeats || out.Evidence == History {
		out.RunsNeeded = w.runsNeeded(r, out.S, alpha/2/float64(m))
	}
}

// found is the verdict of a change that is one.
func (r *Row) found(delta float64, e Evidence) Verdict {
	switch {
	case e == WithinRun && delta > 0:
		return MovedUp
	case e == WithinRun:
		return MovedDown
	case r.Better == Neutral:
		return Changed
	case (r.Better == Higher) == (delta > 0):
		return Better
	}
	return Worse
}

// runsNeeded is the least number of runs a side that shows a change of the margin
// in four of five comparisons, when tail is what may lie beyond the bound; 0: over 1,000.
func (w *work) runsNeeded(r *Row, s, tail float64) int {
	const most = 1000
	n := 2 + sort.Search(most-1, func(i int) bool {
		n := float64(i + 2)
		df := 2*(n-1) + r.History.DF
		return s*math.Sqrt(2/n)*(student.Quantile(1-tail, df)+student.Quantile(0.8, df)) <= w.marginOn(r.Margin)
	})
	if n > most {
		return 0
	}
	return n
}

// allEqual reports whether all values of both sides are the same number.
func allEqual(r *Row) bool {
	other := func(v float64) bool { return v != r.Base[0] }
	return !slices.ContainsFunc(r.Base, other) && !slices.ContainsFunc(r.Other, other)
}

// twoSided is the p-value of a difference with its standard error.
func twoSided(delta, se, df float64) float64 {
	switch {
	case delta == 0:
		return 1
	case se == 0:
		return 0
	}
	return student.TwoSided(delta/se, df)
}

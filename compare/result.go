package compare

import (
	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
)

// Verdict is the answer for one row and side.
type Verdict uint8

// The verdicts. Changed is a change of a quantity of which more is neither good nor bad; NeedsRepeats is a difference
// beyond the minimum effect that so few runs cannot tell from noise; Incomparable comes with a reason.
const (
	Same Verdict = iota
	Better
	Worse
	Changed
	NeedsRepeats
	Incomparable
)

// Verdicts is how many verdicts there are.
const Verdicts = int(Incomparable) + 1

// verdictNames are the verdicts as outputs spell them.
var verdictNames = [Verdicts]string{"same", "better", "worse", "changed", "needs repeats", "incomparable"}

// String returns the name of the verdict as outputs spell it.
func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return "unknown"
}

// ParseVerdict returns the verdict of that name; spaces may be hyphens.
func ParseVerdict(name string) (Verdict, bool) {
	for v, n := range verdictNames {
		if n == name || n == "needs repeats" && name == "needs-repeats" {
			return Verdict(v), true
		}
	}
	return 0, false
}

// Evidence says what a verdict rests on.
type Evidence uint8

// The kinds of evidence. None is a bare difference, Exact is that all values are equal.
const (
	None Evidence = iota
	Exact
	WithinRun
	Repeats
)

// String returns the name of the evidence as outputs spell it.
func (e Evidence) String() string {
	switch e {
	case Exact:
		return "exact"
	case WithinRun:
		return "within-run"
	case Repeats:
		return "repeats"
	}
	return "none"
}

// Kind is what a row is about.
type Kind uint8

// The kinds: a quantity of one family, one that package catalog derives, or a family or series as a whole, which
// cannot be compared.
const (
	FamilyRow Kind = iota
	DerivedRow
)

// String returns the name of the kind as outputs spell it.
func (k Kind) String() string {
	if k == DerivedRow {
		return "derived"
	}
	return "family"
}

// Result is a comparison. It is immutable once made.
type Result struct {
	Alpha, MinEffect float64
	By               []string // nil when series were not taken together
	Profile          string
	Sides            []Side // the first is the base
	// LoadDiffers is what servers were asked for differently, Headline the judged values by phase, engine and side,
	// Context what is printed beside them, Causes what explains them.
	LoadDiffers []LoadChange
	Headline    []Line
	Context     []Beside
	Causes      []Cause
	PhasesLeft  []string // phases that not all runs have
	// Differences are what is to be known before the rows are read: configuration, versions, windows, in the order of
	// their kinds.
	Differences []Difference
	Rows        []Row // worst first
	Tested      int   // rows and sides that Benjamini-Hochberg's correction ran over
	Left        int   // rows that Options.Profile or Options.Metric left out
	Warnings    []metric.Warning
	Caveats     []catalog.Caveat // that Notes of rows name, by letter
}

// Side is one or several runs under one name.
type Side struct {
	Name string    `json:"name"`
	Runs []RunInfo `json:"runs"`
}

// RunInfo is what a run of a side is.
type RunInfo struct {
	Path     string  `json:"path"` // as the user named it
	ID       string  `json:"run_id"`
	Version  string  `json:"version"`          // of the tool that recorded it
	Format   string  `json:"format"`           // run, scrapestat-json, aiperf-json, csv
	Seconds  float64 `json:"window_seconds"`   // length of the window
	Interval float64 `json:"interval_seconds"` // seconds between polls, 0 when not known
	Targets  int     `json:"targets"`
}

// Difference is something that differs between the sides besides what was measured. Values is parallel to
// Result.Sides; "" is a side without one.
type Difference struct {
	Kind   string   `json:"kind"` // config, info, model, version, window, interval, targets, ...
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// Word is the verdict as it is told: single runs cannot know how runs vary, so what changed between them has moved.
func (a *Comparison) Word() string {
	switch {
	case a.Evidence != WithinRun || a.Verdict > Changed || a.Verdict == Same:
		return a.Verdict.String()
	case a.Difference > 0:
		return "moved up"
	}
	return "moved down"
}

// Row is one quantity of all sides.
type Row struct {
	Kind   Kind
	Family string // or name of the derived quantity, as the base has it, else the first side that has it
	Names  []string
	Type   metric.Type
	// Stat is what of the family: rate, avg, mean, share, value, or a percentile such as p99; "" for a family or series
	// as a whole.
	Stat   string
	Labels metric.Labels
	Target string // alias or URL; "" when there is only one, or all are taken together
	Series int    // the largest number of series of a run that were taken together
	Unit   string // as package units names it
	Better catalog.Direction
	// Headline reports whether the catalog holds the quantity for one of those to look at first.
	Headline bool
	Question string // that it answers: throughput, latency, ...; "" for none
	Meaning  string
	Cells    []Cell       // parallel to Result.Sides
	Against  []Comparison // parallel to Result.Sides; that of the base is the zero value
	Notes    []string
}

// Verdict returns the verdict of the row: of several sides the worst.
func (r *Row) Verdict() Verdict {
	best := Same
	for i := 1; i < len(r.Against); i++ {
		if v := r.Against[i].Verdict; severity(v) < severity(best) {
			best = v
		}
	}
	return best
}

// Word is Verdict as it is told, see [Comparison.Word].
func (r *Row) Word() string {
	for i := 1; i < len(r.Against); i++ {
		if r.Against[i].Verdict == r.Verdict() {
			return r.Against[i].Word()
		}
	}
	return r.Verdict().String()
}

// Cell is what a side has of a row.
type Cell struct {
	Values []float64 // of its runs, in their order; runs without a value are left out
	// Value is the value of a single run, else the median.
	Value float64
	// Low and High hold the true median with the confidence of 1 - Options.Alpha; NaN with less than six runs or so.
	Low, High float64
	// BoundLow and BoundHigh provably hold the percentile of a single run; NaN for other quantities.
	BoundLow, BoundHigh float64
	Missing             string // why there is no value; "" when there is one
}

// Comparison is a side against the base.
type Comparison struct {
	Verdict  Verdict
	Evidence Evidence
	// Change is the new value by the old one, less 1; NaN where that makes no sense (an old value of 0, or different
	// signs). Difference is new less old.
	Change, Difference float64
	// Low and High hold Difference with the confidence of 1 - Options.Alpha by what varies within the runs; NaN unless
	// Evidence is WithinRun.
	Low, High float64
	// P is Mann-Whitney's, Q the same corrected for the number of rows tested; NaN unless Evidence is Repeats.
	P, Q float64
	// Effect is the probability that a run of this side is above one of the base, less that of the reverse (Cliff's
	// delta), -1 to 1; NaN with single runs.
	Effect   float64
	Reason   string // of Incomparable and NeedsRepeats
	Distance *DistributionShift
}

// DistributionShift tells two distributions apart at the bounds that both histograms have; all numbers are exact.
type DistributionShift struct {
	// Max is the largest difference of the shares of observations at or below a common bound (Kolmogorov and Smirnov's
	// distance on these bounds), At that bound.
	Max float64 `json:"max"`
	At  float64 `json:"at"`
	// Moved is the area between both shares from the first to the last common bound: by how much observations moved on
	// average, in the unit of the row, as far as these bounds show.
	Moved  float64 `json:"moved"`
	Shares []Share `json:"shares"` // at each common bound, ascending
}

// Share is the part of the observations at or below a bound: an attainment.
type Share struct {
	Bound float64 `json:"bound"`
	Base  float64 `json:"base"`
	Other float64 `json:"other"`
}

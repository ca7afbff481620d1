package continuity

import "math"

// Increase is what a series gained, or what was computed of such gains. Low and High bound the truth: both equal
// Value where the status is certain, and High is +Inf where nothing bounds it. Refused has no value: NaN.
type Increase struct {
	Value, Low, High float64
	Exact            uint64 // of a counter of 64-bit integers, when HasExact
	HasExact         bool
	Status           Status
	Restarts         int // of processes and of the unit itself
}

// Certain returns an increase without doubt.
func Certain(v float64) Increase { return Increase{Value: v, Low: v, High: v} }

// Verdict is what is known of a series over a window. The zero value is an increase without doubt.
type Verdict struct {
	Status Status
	// Low and High are what the two ends of the truth differ from the adjusted gain: Low is 0 or less, High 0 or more.
	Low, High float64
	Restarts  int
	Births    int
	Dips      int
	// Unseen is what at most was done between the last body of a process and its end, and is in no number.
	Unseen float64

	short, anew float64 // a unit that is held at the end: what it is below its mark, and its value
}

// tolerance is how much two readings of a gain may differ and still be one.
func tolerance(gain float64) float64 { return 0.01*math.Abs(gain) + 0.5 }

// Increase returns the increase for the adjusted gain of the key value of the series in the window: the value at its
// end less that of its reference. For a sum or a bucket the verdict's status holds, but its Low and High do not.
func (v Verdict) Increase(gain float64) Increase {
	if v.short > tolerance(gain) {
		v.Low, v.High = v.Low-v.short, v.High+v.anew
	}
	i := Increase{Value: gain, Low: gain, High: gain, Status: v.Status, Restarts: v.Restarts}
	switch {
	case v.Status == Refused:
		i.Value, i.Low, i.High = math.NaN(), 0, math.Inf(1)
	case v.Status == LowerBound:
		i.Low, i.High = max(0, gain+v.Low), math.Inf(1)
		i.Value = i.Low
	case v.Status == Ambiguous, max(v.High, -v.Low) > tolerance(gain):
		i.Low, i.High, i.Status = max(0, gain+v.Low), gain+v.High, Ambiguous
	}
	return i
}

// Add returns the sum of two increases.
func (i Increase) Add(j Increase) Increase {
	return Increase{Value: i.Value + j.Value, Low: i.Low + j.Low, High: i.High + j.High, Exact: i.Exact + j.Exact,
		HasExact: i.HasExact && j.HasExact, Status: max(i.Status, j.Status), Restarts: i.Restarts + j.Restarts}.settled()
}

// Sub returns the difference of two increases. A lower bound that is subtracted leaves no bound below.
func (i Increase) Sub(j Increase) Increase {
	return Increase{Value: i.Value - j.Value, Low: i.Low - j.High, High: i.High - j.Low,
		Status: max(i.Status, j.Status), Restarts: max(i.Restarts, j.Restarts)}.settled()
}

// Times returns the increase in another unit, such as a rate; by is not negative.
func (i Increase) Times(by float64) Increase {
	high := math.Inf(1)
	if !math.IsInf(i.High, 1) {
		high = i.High * by
	}
	return Increase{Value: i.Value * by, Low: i.Low * by, High: high, Status: i.Status, Restarts: i.Restarts}
}

// Over returns the quotient of two increases that are not negative. ok is false when the divisor is 0 for certain.
func (i Increase) Over(j Increase) (q Increase, ok bool) {
	if j.Value == 0 && j.Status.Defined() {
		return Increase{}, false
	}
	q = Increase{Value: i.Value / j.Value, Status: max(i.Status, j.Status), Restarts: max(i.Restarts, j.Restarts)}
	if q.Low = i.Low / j.High; math.IsNaN(q.Low) {
		q.Low = 0 // the divisor has no upper bound
	}
	if q.High = i.High / j.Low; math.IsNaN(q.High) {
		q.High = math.Inf(1)
	}
	return q.settled(), true
}

// settled makes the status fit the interval: a lower bound is one only where it is the lowest value, as it is not
// behind a difference or a quotient; there the two ends are readings.
func (i Increase) settled() Increase {
	switch {
	case i.Status == Refused:
		i.Value, i.Low, i.High = math.NaN(), math.Inf(-1), math.Inf(1)
	case i.Status == LowerBound && i.Low != i.Value, math.IsNaN(i.Value):
		i.Status = Ambiguous
	}
	return i
}

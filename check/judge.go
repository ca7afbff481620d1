package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Verdict is how a run stands to a demand.
type Verdict string

// The verdicts, the worst first.
const (
	Fail   Verdict = "FAIL"
	NoData Verdict = "NO DATA"
	Pass   Verdict = "PASS"
)

func worse(a, b Verdict) Verdict {
	if a == Fail || b == Fail {
		return Fail
	}
	if a == NoData || b == NoData {
		return NoData
	}
	return Pass
}

// Outcome is one number held against its limit.
type Outcome struct {
	Measurement
	Verdict Verdict
	// Limit is in the unit of the reading, and Margin how far the number may still go, as a share of the limit: negative
	// for a failure. They are unset without a number, and Margin also for a limit of 0 and for != .
	Limit, Margin float64
	HasMargin     bool
	// Base is what the baseline has, where the limit was made of it.
	Base    float64
	HasBase bool
}

// Check is what became of a demand: the worst of its outcomes.
type Check struct {
	Assertion
	Verdict  Verdict
	Outcomes []Outcome // the worst first
}

// Result is the verdict on all demands, the worst of theirs. No demands give NO DATA: a gate without checks must not
// pass.
type Result struct {
	Verdict Verdict
	Answers []Check // in the order of the demands
	// Headline is what the JSON form has of the comparison with the baseline; nil for none.
	Headline any
}

// Gate is all that is demanded of a run.
type Gate struct {
	Demands []Assertion
	Ready   []Ready
}

// Judge holds evidence against a gate. It fails when a limit is in a unit that its metric cannot have, or is out of
// the range of shares: such a gate is wrong, whatever the run.
func (g *Gate) Judge(e *Evidence) (Result, error) {
	out := Result{Verdict: NoData}
	if len(g.Demands)+len(g.Ready) > 0 {
		out.Verdict = Pass
	}
	for i := range g.Demands {
		a, err := answer(&g.Demands[i], e)
		if err != nil {
			return Result{}, fmt.Errorf("check %q: %w", g.Demands[i].Text, err)
		}
		out.Answers = append(out.Answers, a)
	}
	for _, r := range g.Ready {
		a, err := r.answer(e)
		if err != nil {
			return Result{}, fmt.Errorf("check %s: %w", r, err)
		}
		out.Answers = append(out.Answers, a)
	}
	for i := range out.Answers {
		out.Verdict = worse(out.Verdict, out.Answers[i].Verdict)
	}
	return out, nil
}

func answer(d *Assertion, e *Evidence) (Check, error) {
	a := Check{Assertion: *d, Verdict: Pass}
	var base []Measurement
	if d.Want.Baseline && e.Baseline != nil {
		base = e.Baseline.read(d)
	}
	for _, r := range e.read(d) {
		o := Outcome{Measurement: r, Verdict: NoData}
		if r.Word != "" {
			o = d.word(r)
		} else if r.Why == "" {
			var err error
			if o, err = hold(d, e, r, base); err != nil {
				return a, err
			}
		}
		a.Outcomes = append(a.Outcomes, o)
		a.Verdict = worse(a.Verdict, o.Verdict)
	}
	slices.SortStableFunc(a.Outcomes, byVerdict)
	return a, nil
}

// byVerdict sorts the worst first.
func byVerdict(x, y Outcome) int {
	if x.Verdict != y.Verdict {
		if worse(x.Verdict, y.Verdict) == x.Verdict {
			return -1
		}
		return 1
	}
	return cmp.Compare(x.Margin, y.Margin)
}

// hold holds one number against its limit.
func hold(d *Assertion, e *Evidence, r Measurement, base []Measurement) (Outcome, error) {
	o := Outcome{Measurement: r, Verdict: NoData}
	if d.Want.Baseline {
		b := sameReading(r, base)
		if e.Baseline == nil {
			b = missing("the limit is of a baseline and there is none (--baseline)")
		}
		if b.Why != "" {
			o.Why = "baseline: " + b.Why
			return o, nil
		}
		v, err := convert(b.Value, b.Unit, r.Unit)
		if err != nil {
			o.Why = "baseline: " + err.Error()
			return o, nil
		}
		shift, err := d.Want.Shift.of(v, r.Unit)
		if err != nil {
			return o, err
		}
		o.Base, o.HasBase, o.Limit = v, true, v+shift
	} else {
		var err error
		if o.Limit, err = convert(d.Want.Value, d.Want.Unit, r.Unit); err != nil {
			return o, err
		}
		added := d.Stat.Name == "sum" || d.Stat.Name == "total" // of shares, which may be large
		if d.From == FromFamily && r.Unit == "ratio" && !added && impossible(d.Op, o.Limit) {
			return o, fmt.Errorf("a share is between 0 and 1 (100 %%): %s %s cannot be met or missed", d.Op, number(o.Limit))
		}
	}
	tolerance, err := d.tolerance(r, o.Limit)
	if err != nil {
		return o, err
	}
	value := r.Value
	if e.Provable {
		value = r.edge(d.Op)
	}
	o.Verdict = Fail
	if keeps(d.Op, value, o.Limit, tolerance) {
		o.Verdict = Pass
	}
	if r.Unsure && !d.decided(r, o.Limit, tolerance) {
		o.Verdict, o.Why = NoData, fmt.Sprintf("%s: between %s and %s, and the limit is between them", r.Note, number(r.Low),
			number(r.High))
		return o, nil
	}
	if o.Limit > r.Low && o.Limit < r.High && r.Low != r.High && o.Note == "" {
		o.Note = "the limit lies within the bounds of the estimate"
	}
	o.margin(d.Op, value, tolerance)
	return o, nil
}

// decided reports whether both ends of what the number may be are on the same side of the limit.
func (d *Assertion) decided(r Measurement, limit, tolerance float64) bool {
	switch d.Op {
	case Below, AtMost, Above, AtLeast:
		return keeps(d.Op, r.Low, limit, 0) == keeps(d.Op, r.High, limit, 0)
	}
	return limit+tolerance < r.Low || limit-tolerance > r.High
}

// tolerance is how far the number may be from the limit.
func (d *Assertion) tolerance(r Measurement, limit float64) (float64, error) {
	switch d.Op {
	case Equals:
		return d.Tolerance.of(math.Max(math.Abs(limit), math.Abs(r.Value)), r.Unit)
	case Near:
		return d.Tolerance.of(limit, r.Unit)
	}
	return 0, nil
}

// edge is the end of the bounds that is the hardest for the operator.
func (r *Measurement) edge(op string) float64 {
	switch op {
	case Below, AtMost:
		return r.High
	case Above, AtLeast:
		return r.Low
	}
	return r.Value
}

// impossible reports whether no share, or every one, keeps the limit. A derived ratio may be above 1.
func impossible(op string, limit float64) bool {
	switch op {
	case Above:
		return limit >= 1 || limit < 0
	case AtLeast, Same, Near:
		return limit > 1 || limit < 0
	case Below:
		return limit <= 0 || limit > 1
	case AtMost:
		return limit < 0 || limit > 1
	}
	return false
}

func keeps(op string, v, limit, tolerance float64) bool {
	switch op {
	case Below:
		return v < limit
	case AtMost:
		return v <= limit
	case Above:
		return v > limit
	case AtLeast:
		return v >= limit
	case Same:
		return v == limit
	case Differs:
		return v != limit
	}
	return math.Abs(v-limit) <= tolerance
}

// margin tells how far the number may still go.
func (o *Outcome) margin(op string, v, tolerance float64) {
	var room float64
	switch op {
	case Below, AtMost:
		room = o.Limit - v
	case Above, AtLeast:
		room = v - o.Limit
	case Near, Equals:
		room = tolerance - math.Abs(v-o.Limit)
	case Same:
		room = 0 - math.Abs(v-o.Limit)
	default:
		return
	}
	if o.Limit != 0 && !math.IsInf(room, 0) && !math.IsNaN(room) {
		o.Margin, o.HasMargin = room/math.Abs(o.Limit), true
	}
}

// sameReading finds in a baseline what a reading is to be compared with: the one of the same target and labels, else
// of the same labels, else the only one.
func sameReading(r Measurement, base []Measurement) Measurement {
	labels := func(b Measurement) bool { return b.Labels == r.Labels }
	for _, same := range []func(Measurement) bool{func(b Measurement) bool { return labels(b) && b.Target == r.Target },
		labels, func(Measurement) bool { return len(base) == 1 }} {
		var found []Measurement
		for _, b := range base {
			if same(b) {
				found = append(found, b)
			}
		}
		if len(found) == 1 {
			return found[0]
		}
		if len(found) > 1 {
			return missing("several series of it have these labels; name the targets, or take them together with by ()")
		}
	}
	if len(base) > 0 && base[0].Why != "" {
		return base[0]
	}
	return missing("it has no series of these labels")
}

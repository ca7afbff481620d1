package catalog

import (
	"cmp"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// What follows lets the packs of the engines write their rules as a line each.

// labelled makes labels of names and values in turn.
func labelled(where []string) []metric.Label {
	var out []metric.Label
	for i := 0; i+1 < len(where); i += 2 {
		out = append(out, metric.Label{Name: where[i], Value: where[i+1]})
	}
	return out
}

func one(p Part, family string, where []string) []Term {
	return []Term{{Family: family, Part: p, Where: labelled(where)}}
}

// increase is what a counter gained, of series with the labels, which are names and values in turn.
func increase(family string, where ...string) []Term { return one(Value, family, where) }

// sumOf and countOf are what the sum and the count of a histogram or summary gained, and over is a gauge over time:
// divided by the time its mean.
func sumOf(family string, where ...string) []Term    { return one(Sum, family, where) }
func countOf(family string, where ...string) []Term  { return one(Count, family, where) }
func integral(family string, where ...string) []Term { return one(Integral, family, where) }

// meanOver and lastOf are the mean and the last value of a gauge, where the other part of the quotient is none of the
// time.
func meanOver(family string, where ...string) []Term { return one(Mean, family, where) }
func lastOf(family string, where ...string) []Term   { return one(Value, family, where) }

// times multiplies terms.
func times(factor float64, terms []Term) []Term {
	out := slices.Clone(terms)
	for i := range out {
		out[i].Factor = cmp.Or(out[i].Factor, 1)
		out[i].Factor *= factor
	}
	return out
}

// plus and minus add up terms; what may be is no fault to be missing.
func plus(terms ...[]Term) []Term     { return slices.Concat(terms...) }
func minus(a []Term, b []Term) []Term { return plus(a, times(-1, b)) }
func maybe(terms []Term) []Term {
	out := slices.Clone(terms)
	for i := range out {
		out[i].Optional = true
	}
	return out
}

// peak is the largest value of a gauge.
func peak(name, u, help, family string) Rule {
	return Rule{Name: name, Unit: u, Help: help, Category: Saturation, Formula: "max of " + family,
		Make: func(v *View) []Derived { return largest(v, family) }}
}

// largest is the largest value of a gauge: of the sum of several series only a bound, as they need not have had it at
// the same time.
func largest(v *View, family string) []Derived {
	a := v.Amount(Term{Family: family, Part: Max})
	if a.Series == 0 {
		return nil
	}
	d := Derived{Value: a.Value, Shown: a.Value, Families: []string{family}}
	if a.Bound {
		d.Status = Bound
	}
	return []Derived{d}
}

// rate is a sum by the seconds, ratio a share of 1, average the mean of a histogram.
func rate(name, u, help string, num []Term) Rule {
	return Rule{Name: name, Unit: u, Help: help, Category: Throughput, Better: HigherBetter, Num: num}
}

func ratio(name, help string, num, den []Term) Rule {
	return Rule{Name: name, Unit: "ratio", Help: help, Num: num, Den: den}
}

func meanOf(name, u, help, family string) Rule {
	return Rule{Name: name, Unit: u, Help: help, Num: sumOf(family), Den: countOf(family)}
}

// latency is the mean of a histogram of times.
func latency(name, help, family string) Rule {
	return meanOf(name, "seconds", help, family).category(Latency, LowerBetter)
}

// level is the mean of a gauge over time.
func level(name, u, help, family string, where ...string) Rule {
	return Rule{Name: name, Unit: u, Help: help, Category: Saturation, Num: integral(family, where...)}
}

func (r Rule) category(q Category, b Direction) Rule { r.Category, r.Better = q, b; return r }

// headline makes a rule one of the dozen that explain a run, as its canonical id.
func (r Rule) headline(canonical string) Rule { r.Headline, r.Canonical = true, canonical; return r }

// canonical gives a rule its canonical id.
func (r Rule) canonical(canonical string) Rule { r.Canonical = canonical; return r }

func (r Rule) by(names ...string) Rule { r.By = names; return r }

func (r Rule) atMost(s Status) Rule { r.Status = s; return r }

func (r Rule) or(num, den []Term, s Status) Rule {
	r.Else = append(slices.Clone(r.Else), Fallback{Num: num, Den: den, Status: s})
	return r
}

// shares makes a rule that is one result for each combination of values of the labels among the series of num: what
// num has there by what den has in all.
func (r Rule) shares(names ...string) Rule {
	num, den := r.Num[0], r.Den
	r.Formula = num.Family + " by " + strings.Join(names, ", ")
	r.Make = func(v *View) []Derived {
		all := v.part(metric.Labels{})
		all.byName[""] = v.Series(num.Family, num.Where...)
		var out []Derived
		for _, g := range all.split(names) {
			mine := num
			mine.Where = append(slices.Clone(num.Where), pairs(g.Scope)...)
			if d, some := v.divide([]Term{mine}, den); some {
				out = append(out, label([]Derived{d}, g.Scope)...)
			}
		}
		slices.SortStableFunc(out, func(a, b Derived) int { return compareLabels(a.Labels, b.Labels) })
		return out
	}
	return r
}

// busy is a counter of seconds by the time, for each of the processes that count them: 1 when all of them did nothing
// else.
func busy(name, help, family string, names ...string) Rule {
	r := Rule{Name: name, Unit: "ratio", Help: help, Category: TimeSpent, Formula: family + " / (time x processes)"}
	r.Make = func(v *View) []Derived {
		all := v.part(metric.Labels{})
		all.byName[""] = v.Series(family)
		var out []Derived
		for _, g := range all.split(names) {
			a := v.Amount(Term{Family: family, Where: pairs(g.Scope)})
			if a.Series == 0 {
				continue
			}
			d := divided(a.Value, v.Seconds*float64(a.Series), family).after(a)
			out = append(out, label([]Derived{d}, g.Scope)...)
		}
		return out
	}
	return r
}

// divided makes a quotient of two numbers.
func divided(num, den float64, families ...string) Derived {
	d := Derived{Numerator: num, Denominator: den, HasParts: true, Families: families}
	if den == 0 {
		d.Status = ZeroDenominator
		return d
	}
	d.Value = num / den
	d.Shown = d.Value
	return d
}

// after says what happened to the counters of a quantity.
func (d Derived) after(counters Amount) Derived {
	if counters.Resets > 0 {
		d.atBest(ResetCorrected)
	}
	if counters.Born {
		d.atBest(BornInWindow)
	}
	return d
}

// note takes over what happened to other counters.
func (a *Amount) note(resets int, born bool) {
	a.Resets += resets
	a.Born = a.Born || born
}

// overflow is the share of the observations above the largest finite bound: above 1-q of it the quantile q cannot be
// known.
func overflow(name, family string) Rule {
	return Rule{Name: name, Unit: "ratio", Category: Check, Better: LowerBetter,
		Formula: "1 - largest finite bucket / count of " + family,
		Help:    "Share above the largest bound; the quantiles within it cannot be known.",
		Make: func(v *View) []Derived {
			var above, all float64
			var counters Amount
			for _, g := range v.Series(family) {
				n := len(g.Buckets)
				if n < 2 {
					return nil
				}
				above += g.Count - g.Buckets[n-2].Count
				all += g.Count
				counters.note(g.Resets, g.Born)
			}
			if len(v.Series(family)) == 0 {
				return nil
			}
			return []Derived{divided(above, all, family).after(counters)}
		}}
}

// identity checks that two sums are the same: their difference by the first.
func identity(name, help string, a, b []Term) Rule {
	return Rule{Name: name, Unit: "ratio", Help: help, Category: Check, Better: LowerBetter, Num: minus(a, b), Den: a}
}

// skew is the largest of the sums by a label by their mean: 1 is an even load. A single value has none.
func skew(name, help, label string, p Part, family string) Rule {
	return Rule{Name: name, Help: help, Category: Saturation, Better: LowerBetter, Formula: "largest / mean of " +
		family + " by " + label,
		Make: func(v *View) []Derived {
			all := v.part(metric.Labels{})
			all.byName[family] = v.Series(family)
			groups := all.split([]string{label})
			most, total, counters := 0.0, 0.0, Amount{}
			for _, g := range groups {
				a := g.Amount(Term{Family: family, Part: p})
				most, total = max(most, a.Value), total+a.Value
				counters.note(a.Resets, a.Born)
			}
			if len(groups) < 2 {
				return nil
			}
			return []Derived{divided(most, total/float64(len(groups)), family).after(counters)}
		}}
}

// perGPU is a speed that a server estimates of one GPU, of several the mean. When it is zero while tokens come out the
// estimate is not switched on.
func perGPU(name, u, help string, factor float64, tokens []Term, families ...string) Rule {
	return Rule{Name: name, Unit: u, Help: help, Category: Efficiency, Better: HigherBetter,
		Formula: strings.Join(families, " + ") + " / time",
		Make: func(v *View) []Derived {
			sum, series, counters := 0.0, 0, Amount{}
			for _, f := range families {
				a := v.Amount(Term{Family: f})
				if a.Series == 0 {
					return nil
				}
				counters.note(a.Resets, a.Born)
				if sum, series = sum+a.Value, a.Series; v.rule(f) == AggregateMean {
					series = 1
				}
			}
			d := divided(sum*factor, v.Seconds*float64(series), families...).after(counters)
			if sum == 0 && v.sum(tokens).sum > 0 {
				d = Derived{Status: Missing, Families: families, Flags: []string{"not_enabled"}}
			}
			return []Derived{d}
		}}
}

// notZero is the last value of a gauge for which 0 means that there is none.
func notZero(v *View, gauge string) []Derived {
	a := v.Amount(Term{Family: gauge})
	if a.Series == 0 || a.Value == 0 {
		return nil
	}
	return []Derived{{Value: a.Value, Shown: a.Value, Status: Estimate, Families: []string{gauge}}}
}

// addMeans adds up quotients; one that is missing makes the sum missing.
func addMeans(v *View, means [][2][]Term) []Derived {
	var out Derived
	any := false
	for _, m := range means {
		d, some := v.divide(m[0], m[1])
		any = any || some
		out.Value += d.Value
		out.Status = max(out.Status, d.Status)
		out.Families = append(out.Families, d.Families...)
	}
	if !any {
		return nil
	}
	out.Shown = out.Value
	return []Derived{out}
}

// remainder is a quotient that makes no sense below zero. It gives nothing unless all of its input is there.
func remainder(v *View, num, den []Term) []Derived {
	d, _ := v.divide(num, den)
	if d.Status == Missing {
		return nil
	}
	if d.Shown = max(0, d.Value); d.Value < 0 {
		d.Flag("negative")
	}
	return []Derived{d}
}

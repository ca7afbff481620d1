package events

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/histest"
)

// Target is one demand on a report.
type Target struct {
	Text   string  // as it was written
	Metric string  // qps, qps_all, tps, goodput, ttft, tpot, latency, isl, osl
	Stat   string  // mean, min, max, median, or a percentile "99"; "" for rates
	Op     string  // "=", "<=" or ">="
	Value  float64 // per second, tokens, or nanoseconds
}

// DefaultTolerance is that of "=": MLPerf's 10 %.
const DefaultTolerance = 0.1

var (
	rateMetrics  = []string{"qps", "qps_all", "tps", "goodput"}
	timeMetrics  = []string{"ttft", "tpot", "latency", "latency_all"}
	countMetrics = []string{"isl", "osl"}
	plainStats   = []string{"mean", "min", "max", "median"}
)

const targetForms = "want METRIC[_STATISTIC][_ms|_s] OP VALUE, such as qps=100, latency_ms=2000 or ttft_p99_ms<=450"

// ParseTargets reads targets:
//
//	qps=100               within the tolerance, either way (MLPerf's Throughput)
//	latency_ms=2000       mean latency, the same (MLPerf's QueryLatency)
//	latency_from_qps=4    the same with 1000/4 ms
//	ttft_p99_ms<=450      one-sided; a unit after the value is fine, ttft_p99<=450ms
//
// Times are in ms unless a unit says otherwise, and mean where no statistic is named. Percentiles are those of Grid;
// p999 is p99.9.
func ParseTargets(texts []string) ([]Target, error) {
	var out []Target
	for _, s := range texts {
		t, err := parseTarget(s)
		if err != nil {
			return nil, fmt.Errorf("parse target %q: %w", s, err)
		}
		out = append(out, t)
	}
	return out, nil
}

func parseTarget(s string) (Target, error) {
	t := Target{Text: s}
	i := strings.IndexAny(s, "<>=")
	if i < 1 {
		return t, fmt.Errorf("no comparison; %s", targetForms)
	}
	name := strings.ToLower(strings.ReplaceAll(strings.TrimSpace(s[:i]), " ", "_"))
	rest := s[i:]
	for _, op := range []string{"<=", ">=", "="} {
		if v, ok := strings.CutPrefix(rest, op); ok {
			t.Op, rest = op, strings.TrimSpace(v)
			break
		}
	}
	if t.Op == "" {
		return t, fmt.Errorf("want =, <= or >=; %s", targetForms)
	}
	if name == "latency_from_qps" {
		return t.latencyFromQPS(rest)
	}
	name, unit := cutUnit(name)
	if err := t.setName(name); err != nil {
		return t, err
	}
	return t, t.setValue(rest, unit)
}

// cutUnit takes a unit from the end of a name.
func cutUnit(name string) (rest, unit string) {
	for _, u := range []string{"ns", "us", "ms", "s"} {
		if r, ok := strings.CutSuffix(name, "_"+u); ok {
			return r, u
		}
	}
	return name, ""
}

func (t Target) latencyFromQPS(rest string) (Target, error) {
	qps, err := strconv.ParseFloat(rest, 64)
	if err != nil || !(qps > 0) || math.IsInf(qps, 0) {
		return t, fmt.Errorf("the rate is no positive number")
	}
	t.Metric, t.Stat, t.Value = "latency", "mean", 1000/qps*1e6
	return t, nil
}

func (t *Target) setName(name string) error {
	all := slices.Concat([]string{"qps_all", "latency_all"}, rateMetrics, timeMetrics, countMetrics)
	for _, m := range all {
		stat, ok := strings.CutPrefix(name, m)
		if !ok || stat != "" && stat[0] != '_' {
			continue
		}
		t.Metric, t.Stat = m, strings.TrimPrefix(stat, "_")
		if slices.Contains(rateMetrics, m) {
			if t.Stat != "" {
				return fmt.Errorf("%s has no statistics; %s", m, targetForms)
			}
			return nil
		}
		return t.setStat()
	}
	return fmt.Errorf("unknown metric %q (known: %s); %s", name, strings.Join(all[2:], ", "), targetForms)
}

func (t *Target) setStat() error {
	if t.Stat == "" || t.Stat == "avg" {
		t.Stat = "mean"
	}
	if slices.Contains(plainStats, t.Stat) {
		return nil
	}
	v, ok := histest.Percentile("p" + strings.TrimPrefix(t.Stat, "p"))
	if !ok || !slices.Contains(Grid, v) {
		return fmt.Errorf("unknown statistic %q (known: mean, min, max, median, p50, p99, p999 and the other percentiles "+
			"of the report)", t.Stat)
	}
	t.Stat = key(v, false)
	return nil
}

func (t *Target) setValue(s, unit string) error {
	isTime := slices.Contains(timeMetrics, t.Metric)
	if isTime && unit == "" {
		unit = "ms"
		for _, u := range []string{"ns", "us", "ms", "s"} {
			if v, ok := strings.CutSuffix(s, u); ok {
				s, unit = strings.TrimSpace(v), u
				break
			}
		}
	} else if !isTime && unit != "" {
		return fmt.Errorf("%s is no time and has no unit %s", t.Metric, unit)
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return fmt.Errorf("%q is no number from 0 on; %s", s, targetForms)
	}
	t.Value = v * map[string]float64{"": 1, "ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]
	return nil
}

// IsTime reports whether the value is in nanoseconds.
func (t *Target) IsTime() bool { return slices.Contains(timeMetrics, t.Metric) }

// perRequest reports whether the target also limits single requests.
func (t *Target) perRequest() bool {
	return t.Op == "<=" && (t.Metric == "ttft" || t.Metric == "tpot" || t.Metric == "latency")
}

// of is the value of a request that the target limits.
func (t *Target) of(q *Request, denominator string) (v float64, ok bool) {
	switch t.Metric {
	case "ttft":
		return q.TTFT()
	case "latency":
		return q.Latency()
	}
	v, _, ok = q.TPOT(denominator)
	return v, ok
}

// Verdict is how a report stands to a target.
type Verdict string

// The verdicts.
const (
	Pass   Verdict = "PASS"
	Fail   Verdict = "FAIL"
	NoData Verdict = "NO DATA"
)

// Outcome is the verdict on one target.
type Outcome struct {
	Target   Target
	Verdict  Verdict
	Measured Value
	// Margin is how far the measured value is inside the target, as a share of it; negative outside. Of "=" it is what is
	// left of the tolerance.
	Margin Value
}

// Validation is the verdict on all targets.
type Validation struct {
	Verdict  Verdict // the worst: FAIL before NO DATA before PASS
	Outcomes []Outcome
}

// Validate holds a report against targets. "=" allows for tolerance either way:
// |m-t| <= tolerance * max(|m|, |t|), Python's isclose, as MLPerf does; 0 is
// exact and a negative one is DefaultTolerance.
func Validate(r *Report, targets []Target, tolerance float64) Validation {
	if tolerance < 0 {
		tolerance = DefaultTolerance
	}
	v := Validation{Verdict: Pass}
	if len(targets) == 0 {
		v.Verdict = NoData
	}
	for _, t := range targets {
		o := Outcome{Target: t, Measured: r.measure(t)}
		o.judge(tolerance)
		v.Outcomes = append(v.Outcomes, o)
		if o.Verdict == Fail || o.Verdict == NoData && v.Verdict == Pass {
			v.Verdict = o.Verdict
		}
	}
	return v
}

func (o *Outcome) judge(tolerance float64) {
	if !o.Measured.Known {
		o.Verdict, o.Margin = NoData, Value{Reason: o.Measured.Reason}
		return
	}
	m, t := o.Measured.V, o.Target.Value
	var room float64 // how far inside, in the unit of the value
	switch o.Target.Op {
	case "<=":
		room = t - m
	case ">=":
		room = m - t
	default:
		room = tolerance*math.Max(math.Abs(m), math.Abs(t)) - math.Abs(m-t)
	}
	o.Verdict = Fail
	if room >= 0 {
		o.Verdict = Pass
	}
	if o.Margin = unknown("a target of 0 has no share"); t != 0 {
		o.Margin = known(room / t)
	}
}

// Rate is a rate of the report by its name in targets; ok is false for another name.
func (r *Report) Rate(name string) (v Value, ok bool) {
	v, ok = map[string]Value{"qps": r.QPS, "qps_all": r.QPSAll, "tps": r.TPS, "goodput": r.Goodput}[name]
	return v, ok
}

// Distribution is a distribution of the report by its name in targets; nil for another name.
func (r *Report) Distribution(name string) *Distribution {
	return map[string]*Distribution{"ttft": &r.TTFT, "tpot": &r.TPOT, "latency": &r.Latency,
		"latency_all": &r.LatencyAll, "isl": &r.ISL, "osl": &r.OSL}[name]
}

// measure is the value of a report that a target is about.
func (r *Report) measure(t Target) Value {
	if v, ok := r.Rate(t.Metric); ok {
		return v
	}
	d := r.Distribution(t.Metric)
	switch {
	case d == nil || d.N == 0 && d.Reason == "":
		return unknown("no value")
	case d.N == 0:
		return unknown("%s", d.Reason)
	}
	if v, ok := map[string]float64{"mean": d.Mean, "min": d.Min, "max": d.Max}[t.Stat]; ok {
		return known(v)
	}
	if t.Stat == "median" {
		return d.at("50")
	}
	return d.at(t.Stat)
}

// at is a percentile by its name.
func (d *Distribution) at(name string) Value {
	p, err := strconv.ParseFloat(name, 64)
	q, ok := d.Quantile(p)
	if err != nil || !ok || q.Missing {
		return unknown("no percentile %q", name)
	}
	return known(q.Value)
}

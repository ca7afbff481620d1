package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// Measurement is one number that a demand is about, or the reason why there is none.
type Measurement struct {
	Target string // the name of the endpoint, or its URL; "" for what is of several
	Labels metric.Labels
	Value  float64
	Word   string // instead of a number
	Unit   string // as package units names it, "/s" behind it for rates
	Why    string // there is no number; "" when there is one
	// Low and High are the bounds between which the number provably is; both are Value where it is exact.
	Low, High float64
	// Unsure is set where the truth is somewhere between Low and High and no end is likelier than the other for a gate:
	// a limit between them is neither kept nor missed.
	Unsure bool
	Note   string
}

func exact(v float64, unit string) Measurement {
	return Measurement{Value: v, Unit: unit, Low: v, High: v}
}

func missing(format string, args ...any) Measurement {
	return Measurement{Why: fmt.Sprintf(format, args...)}
}

// known turns a number that is none into a reason.
func (r Measurement) known() Measurement {
	if r.Why == "" && (math.IsNaN(r.Value) || math.IsInf(r.Value, 0)) {
		r.Why = "the value is " + strconv.FormatFloat(r.Value, 'g', -1, 64)
	}
	return r
}

// perSecond is the unit of a rate.
func perSecond(unit string) string { return unit + "/s" }

// ofSeries reads a statistic of a series.
func ofSeries(s *normalize.Series, st Stat, unit string, quantiles []float64) Measurement {
	switch st.Name {
	case "samples":
		return exact(float64(s.Samples), "")
	case "resets":
		if s.Counter != nil || s.Histogram != nil || s.Summary != nil {
			return exact(float64(s.Resets), "")
		}
	}
	i := &s.Increase
	switch {
	case i.Status == continuity.Refused:
		return refused()
	case s.Counter != nil:
		return ofCounter(s.Counter, st, unit).doubted(i, st)
	case s.Histogram != nil:
		return ofHistogram(s.Histogram, st, unit, quantiles).doubted(i, st)
	case s.Summary != nil:
		return ofSummary(s.Summary, st, unit).doubted(i, st)
	case s.Gauge != nil:
		return ofGauge(s.Gauge, st, unit, quantiles)
	}
	return missing("series of this type have no numbers")
}

func refused() Measurement {
	return missing("refused: several processes answered, which nothing tells apart; name each replica")
}

// doubted widens a number to what is known of the increase that it is made of.
func (r Measurement) doubted(i *continuity.Increase, st Stat) Measurement {
	if i.Status.Certain() || r.Why != "" {
		return r
	}
	r.Unsure, r.Note, r.Low, r.High = true, i.Status.String(), math.Inf(-1), math.Inf(1)
	switch {
	case st.Name == "total" || st.Name == "count":
		r.Low, r.High = i.Low, i.High
	case st.Name == "rate" && i.Value > 0:
		r.Low, r.High = r.Value*i.Low/i.Value, r.Value*i.High/i.Value
	}
	return r
}

func noStat(of string, st Stat) Measurement {
	return missing("a %s has no statistic %s (known: %s)", of, st, strings.Join(statForms[of], ", "))
}

func ofCounter(c *normalize.Counter, st Stat, unit string) Measurement {
	switch {
	case st.Name != "total" && st.Name != "rate":
		return noStat("counter", st)
	case !c.Defined:
		return missing("a single sample: there is no difference to take")
	case st.Name == "rate":
		return exact(c.Rate, perSecond(unit))
	}
	return exact(c.Total, unit)
}

func ofGauge(g *normalize.Gauge, st Stat, unit string, quantiles []float64) Measurement {
	if g.N == 0 {
		return missing("no finite sample in the window")
	}
	if v, ok := map[string]float64{"avg": g.Avg, "time_avg": g.TimeAvg, "min": g.Min, "max": g.Max, "std": g.Std,
		"first": g.First, "last": g.Last}[st.Name]; ok {
		return exact(v, unit)
	}
	if st.Name == "p" {
		if i := slices.Index(quantiles, st.quantile()); i >= 0 && i < len(g.Quantiles) {
			return exact(g.Quantiles[i], unit)
		}
		return missing("%s was not computed", st)
	}
	return noStat("gauge", st)
}

func ofSummary(s *normalize.Summary, st Stat, unit string) Measurement {
	if !s.Defined {
		return missing("a single sample: there is no difference to take")
	}
	switch {
	case st.Name == "count" && !s.NoCount:
		return exact(float64(s.Count), "")
	case st.Name == "rate" && s.HasRates:
		return exact(s.CountRate, "/s")
	case st.Name == "sum" && !s.NoSum:
		return exact(s.Sum, unit)
	case st.Name == "avg" && !s.NoSum && !s.NoCount && s.Count > 0:
		return exact(s.Avg, unit)
	case slices.Contains([]string{"count", "rate", "sum", "avg"}, st.Name):
		return missing("the server sends too little for %s, or nothing was observed", st)
	}
	return noStat("summary", st)
}

func ofHistogram(h *normalize.Histogram, st Stat, unit string, quantiles []float64) Measurement {
	switch st.Name {
	case "count":
		return exact(float64(h.Count), "")
	case "rate":
		if !h.HasRates {
			return missing("no time passed in the window")
		}
		return exact(h.CountRate, "/s")
	case "sum", "avg":
		if h.NoSum {
			return missing("the server sends no sum")
		}
		if st.Name == "sum" {
			return exact(h.Sum, unit)
		}
	}
	if h.Count <= 0 {
		return missing("nothing was observed in the window")
	}
	switch st.Name {
	case "avg":
		return exact(h.Avg, unit)
	case "p":
		i := slices.Index(quantiles, st.quantile())
		if i < 0 || i >= len(h.Quantiles) {
			return missing("the buckets give no %s", st)
		}
		e := h.Quantiles[i]
		r := Measurement{Value: e.Value, Unit: unit, Low: e.Low, High: e.High,
			Note: strings.Join(summary.FlagNames(e.Flags), " ")}
		if math.IsNaN(e.Low) || math.IsNaN(e.High) {
			r.Low, r.High = math.Inf(-1), math.Inf(1)
		}
		return r
	case "share":
		x, err := convert(st.Arg, st.Unit, unit)
		if err != nil {
			return missing("%s: %v", st, err)
		}
		return shareAt(h.Buckets, x)
	}
	return noStat("histogram", st)
}

// shareAt is the share of observations that are at most x: exact where x is a bucket bound, else between those of the
// bounds around it.
func shareAt(buckets []normalize.Bucket, x float64) Measurement {
	if len(buckets) == 0 || buckets[len(buckets)-1].Count <= 0 {
		return missing("the buckets are not usable")
	}
	all := float64(buckets[len(buckets)-1].Count)
	i, found := slices.BinarySearchFunc(buckets, x,
		func(b normalize.Bucket, x float64) int { return cmp.Compare(b.Upper, x) })
	if found {
		return exact(float64(buckets[i].Count)/all, "ratio")
	}
	r := Measurement{Unit: "ratio", High: 1}
	lower, upper := "-Inf", "+Inf"
	if i > 0 {
		r.Low, lower = float64(buckets[i-1].Count)/all, number(buckets[i-1].Upper)
	}
	if i < len(buckets) {
		r.High, upper = float64(buckets[i].Count)/all, number(buckets[i].Upper)
	}
	r.Value = r.Low
	r.Note = fmt.Sprintf("no bucket bound is there: it lies in (%s, %s]", lower, upper)
	return r
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

package export

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

func (rd *reader) histogram(out *summary.Series, s *jsonSeries, note *jsonNote) bool {
	n, ok := whole(s.Stats["count"])
	if _, has := s.Stats["count"]; !has || !ok {
		return false
	}
	h := &normalize.Histogram{Count: n, Segments: 1}
	sum, hasSum := s.Stats["sum"]
	h.Sum, h.NoSum = sum, !hasSum && n != 0
	if n != 0 && hasSum {
		h.Avg = sum / float64(n)
	}
	h.CountRate, h.HasRates = s.Stats["count_rate"]
	h.SumRate = s.Stats["sum_rate"]
	if note != nil && note.Native {
		h.Native = &normalize.Native{}
	}
	buckets, ok := readBuckets(s.Buckets)
	if !ok {
		rd.left++
	}
	if len(buckets) > 0 {
		h.Buckets = buckets
		h.Bounds = slices.Clone(buckets)
		for i := range h.Bounds {
			h.Bounds[i].Count = 0
		}
	}
	h.Quantiles = rd.estimates(s, note)
	for i := range s.Slices {
		rd.histogramSlice(h, &s.Slices[i])
	}
	out.Histogram = h
	return true
}

// readBuckets returns cumulative buckets in ascending order; false when they are
// none: a bound or count that is no number, counts that fall.
func readBuckets(m map[string]float64) ([]normalize.Bucket, bool) {
	var out []normalize.Bucket
	for text, count := range m {
		upper, err := strconv.ParseFloat(text, 64)
		n, ok := whole(count)
		if err != nil || !ok || math.IsNaN(upper) || math.IsInf(upper, -1) {
			return nil, false
		}
		out = append(out, normalize.Bucket{Text: text, Upper: upper, Count: n})
	}
	slices.SortFunc(out, func(a, b normalize.Bucket) int { return cmp.Compare(a.Upper, b.Upper) })
	for i := 1; i < len(out); i++ {
		if out[i].Count < out[i-1].Count || out[i].Upper == out[i-1].Upper {
			return nil, false
		}
	}
	if len(out) > 0 && (!math.IsInf(out[len(out)-1].Upper, 1) || out[0].Count < 0) {
		return nil, false
	}
	return out, true
}

// whole is a count as an integer; false when it is none.
func whole(v float64) (int64, bool) {
	if !(math.Abs(v) < 1<<62) {
		return 0, false
	}
	return int64(v), math.Trunc(v) == v
}

// estimates are the percentiles with their bounds, which only our files have; nil
// when the series has none.
func (rd *reader) estimates(s *jsonSeries, note *jsonNote) []histest.Estimate {
	nan, found := math.NaN(), false
	out := make([]histest.Estimate, len(rd.run.Options.Quantiles))
	for i, q := range rd.run.Options.Quantiles {
		name := percentileName(q)
		out[i] = histest.Estimate{Value: nan, Low: nan, High: nan}
		if v, ok := s.Stats[name+"_estimate"]; ok {
			out[i].Value, found = v, true
		}
		if note == nil {
			continue
		}
		if e, ok := note.Percentiles[name]; ok && e.Value != nil {
			out[i], found = histest.Estimate{Value: *e.Value, Low: orNaN(e.Low), High: orNaN(e.High)}, true
		}
	}
	if !found {
		return nil
	}
	return out
}

func orNaN(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

func (rd *reader) histogramSlice(h *normalize.Histogram, t *jsonSlice) {
	n, ok := whole(t.Count)
	buckets, usable := readBuckets(t.Buckets)
	if !ok || !usable {
		rd.left++
		return
	}
	s := normalize.HistogramSlice{Slice: t.slice(), Count: n, Sum: t.Sum, Avg: t.Avg}
	if len(buckets) == len(h.Buckets) {
		for i := range buckets {
			if buckets[i].Upper != h.Buckets[i].Upper {
				s.Counts = nil
				break
			}
			s.Counts = append(s.Counts, buckets[i].Count)
		}
	}
	h.Slices = append(h.Slices, s)
}

// other adds a metric of a type that AIPerf does not know.
func (rd *reader) other(m jsonOther) {
	typ, _ := metric.ParseType(m.Type)
	out := summary.Metric{Name: m.Name, Type: typ, Help: m.Help, Unit: m.Unit}
	for i := range m.Series {
		s := &m.Series[i]
		series := summary.Series{Endpoint: rd.endpoint(s.URL), Labels: metric.LabelsFromMap(s.Labels)}
		series.Samples = s.Samples
		switch typ {
		case metric.Info:
			series.Info = &normalize.Info{}
		case metric.Summary:
			series.Summary = readSummary(s.Stats, s.Quantiles, s.Slices)
		case metric.StateSet:
			series.State = readState(s.Stats, s.Slices)
		default: // a gauge histogram shows one instant; the file is kept for it
			rd.left++
			continue
		}
		out.Series = append(out.Series, series)
	}
	if len(out.Series) > 0 {
		rd.run.Metrics = append(rd.run.Metrics, out)
	}
}

// numberOf is a number among statistics of several kinds.
func numberOf(stats map[string]any, name string) (float64, bool) {
	v, ok := stats[name].(float64)
	return v, ok
}

func readSummary(stats map[string]any, quantiles map[string]*float64, slicesOf []jsonSlice) *normalize.Summary {
	out := &normalize.Summary{}
	count, hasCount := numberOf(stats, "count")
	n, ok := whole(count)
	sum, hasSum := numberOf(stats, "sum")
	out.Defined, out.NoCount, out.NoSum = hasCount || hasSum, !hasCount || !ok, !hasSum
	out.Count, out.Sum = n, sum
	if n != 0 && hasSum {
		out.Avg = sum / float64(n)
	}
	out.CountRate, out.HasRates = numberOf(stats, "count_rate")
	for text, v := range quantiles {
		if q, err := strconv.ParseFloat(text, 64); err == nil {
			out.Quantiles = append(out.Quantiles, normalize.SummaryQuantile{Q: q, Text: text, Value: orNaN(v)})
		}
	}
	slices.SortFunc(out.Quantiles, func(a, b normalize.SummaryQuantile) int { return cmp.Compare(a.Q, b.Q) })
	for _, t := range slicesOf {
		if n, ok := whole(t.Count); ok {
			out.Slices = append(out.Slices, normalize.SummarySlice{Slice: t.slice(), Count: n, Sum: t.Sum, Avg: t.Avg})
		}
	}
	return out
}

func readState(stats map[string]any, slicesOf []jsonSlice) *normalize.State {
	out := &normalize.State{}
	out.Share, _ = numberOf(stats, "active_share")
	out.Last, _ = stats["active_last"].(bool)
	changes, _ := numberOf(stats, "changes")
	if n, ok := whole(changes); ok {
		out.Changes = int(n)
	}
	for _, t := range slicesOf {
		out.Slices = append(out.Slices, normalize.StateSlice{Slice: t.slice(), Share: t.Share})
	}
	return out
}

// derived adds the derived quantities, with what the catalog says of them where it
// still has them.
func (rd *reader) derived() {
	for _, d := range rd.doc.Extras.Derived {
		status, known := parseStatus(d.Status)
		if !known || status.Defined() && d.Value == nil {
			rd.left++
			continue
		}
		out := summary.Derived{Endpoint: d.Endpoint, Derived: catalog.Derived{Pack: d.Pack, Name: d.Name, Unit: d.Unit,
			Labels: metric.LabelsFromMap(d.Labels), Status: status, Families: d.Families, Flags: d.Flags}}
		if status.Defined() {
			out.Value, out.Shown = *d.Value, *d.Value
			if d.Shown != nil {
				out.Shown = *d.Shown
			}
		}
		if d.Numerator != nil && d.Denominator != nil {
			out.Numerator, out.Denominator, out.HasParts = *d.Numerator, *d.Denominator, true
		}
		for i := range d.Slices {
			t := &d.Slices[i]
			status, _ := parseStatus(t.Status)
			v := summary.DerivedSlice{Slice: t.slice(), Status: status}
			if t.Value != nil {
				v.Value, v.Shown = *t.Value, *t.Value
			}
			out.Slices = append(out.Slices, v)
		}
		describeDerived(&out.Derived)
		rd.run.Derived = append(rd.run.Derived, out)
	}
}

// parseStatus is the inverse of Status.String.
func parseStatus(name string) (catalog.Status, bool) {
	for s := catalog.OK; s <= catalog.Missing; s++ {
		if s.String() == name {
			return s, true
		}
	}
	return catalog.Missing, false
}

// describeDerived adds what the rule of a derived quantity says of it.
func describeDerived(d *catalog.Derived) {
	for _, p := range catalog.Packs() {
		if p.Name != d.Pack {
			continue
		}
		for i := range p.Rules {
			if r := &p.Rules[i]; r.Name == d.Name {
				d.Help, d.Better, d.Category, d.Headline, d.Canonical = r.Help, r.Better, r.Category, r.Headline, r.Canonical
				return
			}
		}
	}
}

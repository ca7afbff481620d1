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
	count, sum, rate := s.Stats.get("count"), s.Stats.get("sum"), s.Stats.get("count_rate")
	n, ok := count.whole()
	if !count.given() || !ok {
		return false
	}
	h := &normalize.Histogram{Count: n, Segments: 1, Sum: sum.float(), NoSum: !sum.given() && n != 0,
		CountRate: rate.float(), HasRates: rate.given(), SumRate: s.Stats.get("sum_rate").float()}
	if n != 0 && sum.given() {
		h.Avg = h.Sum / float64(n)
	}
	if note != nil && note.Native {
		h.Native = &normalize.Native{}
	}
	if s.Buckets.broken {
		rd.left++
	}
	if len(s.Buckets.read) > 0 {
		h.Buckets = s.Buckets.read
		h.Bounds = boundsOf(h.Buckets)
	}
	h.Quantiles = rd.estimates(s, note)
	for t := range s.Slices.all() {
		rd.histogramSlice(h, &t)
	}
	out.Histogram = h
	return true
}

func boundsOf(b []normalize.Bucket) []normalize.Bucket {
	out := slices.Clone(b)
	for i := range out {
		out[i].Count = 0
	}
	return out
}

// estimates are the percentiles with their bounds, which only our files have; nil when the series has none.
func (rd *reader) estimates(s *jsonSeries, note *jsonNote) []histest.Estimate {
	nan, found := math.NaN(), false
	out := make([]histest.Estimate, len(rd.run.Options.Quantiles))
	for i, q := range rd.run.Options.Quantiles {
		name := histest.PercentileName(q)
		v := s.Stats.get(name + "_estimate")
		out[i] = histest.Estimate{Value: v.or(nan), Low: nan, High: nan}
		found = found || v.given()
		if note == nil {
			continue
		}
		if e, _ := note.Percentiles.get(name); e.Value.given() {
			out[i], found = histest.Estimate{Value: e.Value.float(), Low: e.Low.or(nan), High: e.High.or(nan)}, true
		}
	}
	if !found {
		return nil
	}
	return out
}

func (rd *reader) histogramSlice(h *normalize.Histogram, t *jsonSlice) {
	n, ok := t.Count.whole()
	if !ok || t.Buckets.broken {
		rd.left++
		return
	}
	s := normalize.HistogramSlice{Slice: t.slice(), Count: n, Sum: t.Sum.float(), Avg: t.Avg.float()}
	if slices.EqualFunc(t.Buckets.read, h.Buckets, func(a, b normalize.Bucket) bool { return a.Upper == b.Upper }) {
		for i := range t.Buckets.read {
			s.Counts = append(s.Counts, t.Buckets.read[i].Count)
		}
	}
	h.Slices = append(h.Slices, s)
}

// other adds a metric of a type that AIPerf does not know.
func (rd *reader) other(m *jsonMetric) {
	typ, _ := metric.ParseType(m.Type)
	out := summary.Metric{Name: m.Name, Type: typ, Help: m.Help, Unit: m.Unit}
	for s := range m.Series.all() {
		series := summary.Series{Endpoint: rd.endpoint(s.URL), Labels: s.Labels.Labels}
		samples, _ := s.Samples.whole()
		series.Samples = int(samples)
		switch typ {
		case metric.Info:
			series.Info = &normalize.Info{}
		case metric.Summary:
			series.Summary = readSummary(&s)
			rd.increase(&series, rd.notes[noteKey(m.Name+" as "+m.Type, series.Endpoint, s.Labels)])
		case metric.StateSet:
			series.State = readState(&s)
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

func readSummary(s *jsonSeries) *normalize.Summary {
	count, sum, rate := s.Stats.get("count"), s.Stats.get("sum"), s.Stats.get("count_rate")
	n, ok := count.whole()
	out := &normalize.Summary{Defined: count.given() || sum.given(), NoCount: !count.given() || !ok, NoSum: !sum.given(),
		Count: n, Sum: sum.float(), CountRate: rate.float(), HasRates: rate.given()}
	if n != 0 && sum.given() {
		out.Avg = out.Sum / float64(n)
	}
	for text, v := range s.Quantiles.all() {
		if q, err := strconv.ParseFloat(text, 64); err == nil {
			out.Quantiles = append(out.Quantiles, normalize.SummaryQuantile{Q: q, Text: text, Value: v.or(math.NaN())})
		}
	}
	slices.SortFunc(out.Quantiles, func(a, b normalize.SummaryQuantile) int { return cmp.Compare(a.Q, b.Q) })
	for t := range s.Slices.all() {
		if n, ok := t.Count.whole(); ok {
			out.Slices = append(out.Slices, normalize.SummarySlice{Slice: t.slice(), Count: n, Sum: t.Sum.float(),
				Avg: t.Avg.float()})
		}
	}
	return out
}

func readState(s *jsonSeries) *normalize.State {
	out := &normalize.State{Share: s.Stats.get(stateShare).float(), Last: s.Stats.get("active_last") == boolean(true)}
	if n, ok := s.Stats.get("changes").whole(); ok {
		out.Changes = int(n)
	}
	for t := range s.Slices.all() {
		out.Slices = append(out.Slices, normalize.StateSlice{Slice: t.slice(), Share: t.Share.float()})
	}
	return out
}

// derived adds the derived quantities, with what the catalog says of them where it still has them.
func (rd *reader) derived() {
	for d := range rd.doc.Extras.Derived.all() {
		status, known := parseStatus(d.Status)
		if !known || status.Defined() && !d.Value.given() {
			rd.left++
			continue
		}
		endpoint, _ := d.Endpoint.whole()
		out := summary.Derived{Endpoint: int(endpoint), Derived: catalog.Derived{Pack: d.Pack, Name: d.Name, Unit: d.Unit,
			Labels: d.Labels.Labels, Status: status, Families: d.Families, Flags: d.Flags}}
		if status.Defined() {
			out.Value = d.Value.float()
			out.Shown = d.Shown.or(out.Value)
			out.Low, out.High = d.Low.or(math.Inf(-1)), d.High.or(math.Inf(1))
		}
		if d.Numerator.given() && d.Denominator.given() {
			out.Numerator, out.Denominator, out.HasParts = d.Numerator.float(), d.Denominator.float(), true
		}
		for t := range d.Slices.all() {
			status, _ := parseStatus(t.Status)
			v := t.Value.float()
			out.Slices = append(out.Slices, summary.DerivedSlice{Slice: t.slice(), Status: status, Value: v, Shown: v})
		}
		(*catalog.Catalog)(nil).Describe(&out.Derived)
		rd.run.Derived = append(rd.run.Derived, out)
	}
}

// parseStatus is the inverse of Status.String.
func parseStatus(name string) (catalog.Status, bool) {
	for s := catalog.OK; s <= catalog.Refused; s++ {
		if s.String() == name {
			return s, true
		}
	}
	return catalog.Missing, false
}

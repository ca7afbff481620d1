package export

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// The statistics columns of the sections that AIPerf's files do not have. They
// come after all others.
var (
	summaryColumns = []string{"count", "count_rate", "sum", "sum_rate", "avg"}
	stateColumns   = []string{"active_share", "active_last", "changes"}
	currentColumns = append([]string{"count_last", "sum_last", "avg_last"}, nineEstimates[:]...)
)

// otherSections writes the types that AIPerf does not know. The last column of
// summaries is what the server computed itself.
func (s *sheet) otherSections() {
	for _, typ := range []metric.Type{metric.Summary, metric.StateSet, metric.GaugeHistogram} {
		var rows []row
		for i := range s.run.Metrics {
			m := &s.run.Metrics[i]
			if m.Type != typ {
				continue
			}
			for j := range m.Series {
				x := &m.Series[j]
				if x.Summary != nil || x.State != nil || x.GaugeHistogram != nil {
					rows = append(rows, row{metric: m, series: x, endpoint: displayName(s.run.Endpoints[x.Endpoint].URL)})
				}
			}
		}
		s.otherSection(typ, rows)
	}
}

func (s *sheet) otherSection(typ metric.Type, rows []row) {
	if len(rows) == 0 {
		return
	}
	s.begin()
	columns := labelColumns(rows)
	for i := range rows {
		rows[i].arrange(columns)
	}
	slices.SortStableFunc(rows, compareRows)
	s.texts("Endpoint", "Type", "Metric", "Unit")
	last := ""
	switch typ {
	case metric.Summary:
		s.texts(summaryColumns...)
		last = "server_quantiles"
	case metric.StateSet:
		s.texts(stateColumns...)
	default:
		s.texts(currentColumns...)
		last = "buckets"
	}
	s.texts(columns...)
	s.text("Description")
	if last != "" {
		s.text(last)
	}
	s.endRow()
	for i := range rows {
		r := &rows[i]
		s.texts(r.endpoint, typ.String(), r.metric.Name, cmp.Or(r.metric.OwnUnit, r.metric.Unit))
		end := s.otherCells(r.series)
		for _, c := range columns {
			value, _ := r.series.Labels.Get(c)
			s.text(value)
		}
		s.text(r.metric.Help)
		if last != "" {
			s.text(end)
		}
		s.endRow()
	}
}

// compareRows orders the rows of a section as AIPerf does.
func compareRows(a, b row) int {
	return cmp.Or(cmp.Compare(a.fill, b.fill), cmp.Compare(a.metric.Name, b.metric.Name),
		cmp.Compare(a.endpoint, b.endpoint), cmp.Compare(a.labels, b.labels))
}

// otherCells writes the statistics of a series and returns its last cell.
func (s *sheet) otherCells(x *summary.Series) (last string) {
	switch {
	case x.Summary != nil:
		return s.summaryCells(x.Summary)
	case x.State != nil:
		s.number(x.State.Share)
		s.texts(strconv.FormatBool(x.State.Last), strconv.Itoa(x.State.Changes))
		return ""
	}
	h := x.GaugeHistogram
	s.text(strconv.FormatInt(h.Count, 10))
	s.numberIf(!h.NoSum, h.Sum)
	s.numberIf(!h.NoSum && h.Count != 0, h.Avg)
	for _, at := range s.nine {
		if at >= 0 && at < len(h.Quantiles) {
			s.number(h.Quantiles[at].Value)
		} else {
			s.text("")
		}
	}
	return bucketList(h.Buckets)
}

func (s *sheet) summaryCells(x *normalize.Summary) (last string) {
	if s.text(""); x.Defined && !x.NoCount {
		s.buf = strconv.AppendInt(s.buf, x.Count, 10)
	}
	s.numberIf(x.HasRates, x.CountRate)
	s.numberIf(x.Defined && !x.NoSum, x.Sum)
	s.numberIf(x.HasRates && !x.NoSum, x.SumRate)
	s.numberIf(x.Count != 0 && !x.NoSum, x.Avg)
	var b []byte
	for i := range x.Quantiles {
		q := &x.Quantiles[i]
		if i > 0 {
			b = append(b, ';')
		}
		b = append(append(b, quantileText(q)...), '=')
		if isFinite(q.Value) {
			b = appendFloat(b, q.Value)
		}
	}
	return string(b)
}

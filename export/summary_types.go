package export

import (
	"cmp"
	"math"
	"strconv"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// quantileNote qualifies the quantiles of summaries in every JSON.
const quantileNote = "server_quantiles are the server's own at the end of the window, over all it has seen or a time of its choice, not over the window; null is no data"

// others writes the metrics whose type AIPerf does not know: summaries, infos,
// state sets and gauge histograms. Nothing when there are none.
func (d *document) others(name string, metrics []summary.Metric) {
	opened := false
	for i := range metrics {
		m := &metrics[i]
		if exportedType(m.Type) {
			continue
		}
		if !opened {
			d.key(name)
			d.open('[')
			opened = true
		}
		d.elem()
		d.open('{')
		d.strField("name", m.Name)
		d.strField("type", m.Type.String())
		d.strField("description", m.Help)
		if u := m.ShownUnit(); u != "" {
			d.strField("unit", u)
		}
		if m.Type == metric.Summary {
			d.strField("note", quantileNote)
		}
		d.key("series")
		d.open('[')
		for j := range m.Series {
			d.elem()
			d.other(&m.Series[j])
		}
		d.close(']')
		d.close('}')
	}
	if opened {
		d.close(']')
	}
}

func (d *document) other(s *summary.Series) {
	d.open('{')
	d.strField("endpoint_url", d.run.Endpoints[s.Endpoint].URL)
	d.labels(s.Labels)
	d.intField("samples", int64(s.Samples))
	switch {
	case s.Summary != nil:
		d.summaryOf(s.Summary)
	case s.Info != nil:
		d.sliceList(len(s.Info.Slices), func(i int) {
			d.slice(&s.Info.Slices[i].Slice)
			d.intField("samples", int64(s.Info.Slices[i].N))
		})
	case s.State != nil:
		d.state(s.State)
	case s.GaugeHistogram != nil:
		d.gaugeHistogram(s.GaugeHistogram)
	}
	d.close('}')
}

// sliceList writes timeslices; one opens its object, which is closed here.
func (d *document) sliceList(n int, one func(i int)) {
	if n == 0 {
		return
	}
	d.key("timeslices")
	d.open('[')
	for i := range n {
		one(i)
		d.close('}')
	}
	d.close(']')
}

func (d *document) summaryOf(s *normalize.Summary) {
	d.key("stats")
	d.open('{')
	if s.Defined && !s.NoCount {
		d.intField("count", s.Count)
	}
	if s.Defined && !s.NoSum {
		d.floatField("sum", s.Sum)
	}
	if s.Count != 0 && !s.NoSum {
		d.floatField("avg", s.Avg)
	}
	if s.HasRates {
		d.floatField("count_rate", s.CountRate)
	}
	if s.HasRates && !s.NoSum {
		d.floatField("sum_rate", s.SumRate)
	}
	d.close('}')
	if len(s.Quantiles) > 0 {
		d.key("server_quantiles")
		d.openInline('{')
		for _, q := range s.Quantiles {
			d.key(quantileText(&q))
			if isFinite(q.Value) {
				d.buf = appendFloat(d.buf, q.Value)
			} else {
				d.buf = append(d.buf, "null"...)
			}
		}
		d.close('}')
	}
	d.sliceList(len(s.Slices), func(i int) {
		sl := &s.Slices[i]
		d.slice(&sl.Slice)
		d.intField("count", sl.Count)
		if !s.NoSum {
			d.floatField("sum", sl.Sum)
			d.floatField("avg", sl.Avg)
		}
	})
}

func quantileText(q *normalize.SummaryQuantile) string {
	return cmp.Or(q.Text, string(appendFloat(nil, q.Q)))
}

func (d *document) state(s *normalize.State) {
	d.key("stats")
	d.openInline('{')
	d.floatField("active_share", s.Share)
	d.key("active_last")
	d.bool(s.Last)
	d.intField("changes", int64(s.Changes))
	d.close('}')
	d.sliceList(len(s.Slices), func(i int) {
		d.slice(&s.Slices[i].Slice)
		d.floatField("active_share", s.Slices[i].Share)
	})
}

func (d *document) gaugeHistogram(h *normalize.GaugeHistogram) {
	if h.Native {
		d.key("native")
		d.bool(true)
	}
	d.key("stats_of_last_sample")
	d.open('{')
	d.intField("count", h.Count)
	if !h.NoSum {
		d.floatField("sum", h.Sum)
	}
	if !h.NoSum && h.Count != 0 {
		d.floatField("avg", h.Avg)
	}
	d.close('}')
	if h.Buckets != nil {
		d.counts(bucketKeys(h.Buckets), func(i int) int64 { return h.Buckets[i].Count })
	}
	if len(h.Quantiles) > 0 {
		d.key("percentiles")
		d.open('{')
		for i, e := range h.Quantiles {
			d.estimate(i, e.Value, e.Low, e.High, summary.FlagNames(e.Flags))
		}
		d.close('}')
	}
	keys := bucketKeys(h.Bounds)
	d.sliceList(len(h.Slices), func(i int) {
		d.histogramSlice(&h.Slices[i], h.NoSum, keys)
	})
}

// exemplars writes the exemplars of a series, with the bucket each is of.
func (d *document) exemplars(list []summary.Exemplar) {
	if len(list) == 0 {
		return
	}
	d.key("exemplars")
	d.open('[')
	for i := range list {
		x := &list[i]
		d.elem()
		d.openInline('{')
		switch x.Role {
		case metric.RoleBucket:
			d.strField("le", boundText(&normalize.Bucket{Text: x.Text, Upper: x.Upper}))
		case metric.RoleNative:
			d.boundField("above", x.Lower)
			d.boundField("le", x.Upper)
		}
		d.labels(x.Labels)
		d.floatField("value", x.Value)
		if x.AtNS != 0 {
			d.intField("at_ns", x.AtNS)
		}
		d.intField("seen_ns", x.SeenNS)
		d.close('}')
	}
	d.close(']')
}

// boundField writes a bound as a text, as infinities have no number.
func (d *document) boundField(name string, v float64) {
	text := strconv.FormatFloat(v, 'g', -1, 64)
	if math.IsInf(v, 1) {
		text = "+Inf"
	}
	d.strField(name, text)
}

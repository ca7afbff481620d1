package promstore

import (
	"math"
	"strings"

	writev2 "github.com/prometheus/client_golang/exp/api/remote/genproto/v2"
	"github.com/prometheus/prometheus/prompb"

	"github.com/scrapestat/scrapestat/internal/timeline"
	"github.com/scrapestat/scrapestat/metric"
)

// writeTarget knows the values a target shows and what its series are called outside.
type writeTarget struct {
	metric.Replay
	labels []metric.Label // of every series
	out    []*outSeries   // by slot; nil for what is not sent
	layout *layout
	sets   int // Replay.Sets that layout is of
	lastMS int64
}

// outSeries is a series as the receiver sees it.
type outSeries struct {
	slot   int
	labels []prompb.Label // sorted
	family metric.Family
	number bool // the bits are an integer
}

// layout is the series of consecutive polls, and those that ended with the first of them.
type layout struct {
	series []*outSeries
	ended  []*outSeries // their staleness markers follow the samples of one poll
}

// newWriteTarget makes the labels of a target, those the user asked for among them.
func newWriteTarget(t metric.Target, labels map[string]string, used map[string]bool) *writeTarget {
	return &writeTarget{lastMS: -1 << 62, labels: t.PromLabels(labels, used)}
}

// poll applies a snapshot and returns the samples to send, nil when there are
// none. native and dropped count samples that are not sent.
func (w *writeTarget) poll(s *metric.Snapshot) (p *polled, native, dropped int) {
	if w.Step(s) != nil { // the recording refuses such a poll, too
		return nil, 0, 0
	}
	w.grow()
	if !s.Outcome.Stored() {
		return nil, 0, 0
	}
	var ended []*outSeries
	if w.sets != w.Sets || w.layout == nil {
		ended = w.arrange()
	}
	for slot, here := range w.Present {
		if here && w.out[slot] == nil && w.Slots[slot].Role == metric.RoleNative {
			native++
		}
	}
	atMS := s.AtNS() / 1e6
	if atMS == w.lastMS {
		// A receiver refuses a second sample of a millisecond. The last poll of a
		// run often shares that of a scheduled one, and holds the final values.
		atMS++
	}
	if atMS <= w.lastMS {
		return nil, native, len(w.layout.series)
	}
	w.lastMS = atMS
	l := w.layout
	if len(ended) > 0 {
		l = &layout{series: l.series, ended: ended}
	}
	p = &polled{atMS: atMS, layout: l, bits: make([]uint64, 0, len(l.series)+len(ended))}
	for _, x := range l.series {
		p.bits = append(p.bits, x.float(w.Bits[x.slot]))
	}
	for range ended {
		p.bits = append(p.bits, floatBits(timeline.StaleNaN()))
	}
	if len(p.bits) == 0 {
		return nil, native, 0
	}
	return p, native, 0
}

// arrange makes the layout of what is present and returns what has ended.
func (w *writeTarget) arrange() (ended []*outSeries) {
	if w.layout != nil {
		for _, x := range w.layout.series {
			if !w.Present[x.slot] {
				ended = append(ended, x)
			}
		}
	}
	w.layout, w.sets = &layout{}, w.Sets
	for slot, here := range w.Present {
		if here && w.out[slot] != nil {
			w.layout.series = append(w.layout.series, w.out[slot])
		}
	}
	return ended
}

// grow names what is new in the dictionary.
func (w *writeTarget) grow() {
	for i := len(w.out); i < len(w.Slots); i++ {
		w.out = append(w.out, w.outOf(i))
	}
}

// outOf is the series of a slot as the receiver sees it; nil for what is not sent.
func (w *writeTarget) outOf(slot int) *outSeries {
	sl := &w.Slots[slot]
	s := &w.Series[sl.Series]
	f := &w.Families[s.Family]
	if sl.Role.Metadata() || sl.Role == metric.RoleNative {
		return nil
	}
	out := &outSeries{slot: slot, family: *f, number: sl.Integer}
	for name, value := range sl.PromSeries(f, s.Labels, w.labels).All() {
		out.labels = append(out.labels,
			prompb.Label{Name: strings.ToValidUTF8(name, "\uFFFD"), Value: strings.ToValidUTF8(value, "\uFFFD")})
	}
	return out
}

func (x *outSeries) float(bits uint64) uint64 {
	if x.number {
		return floatBits(float64(bits))
	}
	return bits
}

// at returns the series of a sample of a poll.
func (l *layout) at(i int) *outSeries {
	if i < len(l.series) {
		return l.series[i]
	}
	return l.ended[i-len(l.series)]
}

// requestV1 is a batch as remote write 1.0 has it.
func requestV1(batch []piece) *prompb.WriteRequest {
	req := &prompb.WriteRequest{}
	for _, p := range batch {
		samples := make([]prompb.Sample, p.to-p.from)
		for i := p.from; i < p.to; i++ {
			samples[i-p.from] = prompb.Sample{Timestamp: p.atMS, Value: bitsFloat(p.bits[i])}
			req.Timeseries = append(req.Timeseries,
				prompb.TimeSeries{Labels: p.layout.at(i).labels, Samples: samples[i-p.from : i-p.from+1]})
		}
	}
	return req
}

// typesV2 are the types of remote write 2.0.
var typesV2 = map[metric.Type]writev2.Metadata_MetricType{
	metric.Counter:        writev2.Metadata_METRIC_TYPE_COUNTER,
	metric.Gauge:          writev2.Metadata_METRIC_TYPE_GAUGE,
	metric.Histogram:      writev2.Metadata_METRIC_TYPE_HISTOGRAM,
	metric.GaugeHistogram: writev2.Metadata_METRIC_TYPE_GAUGEHISTOGRAM,
	metric.Summary:        writev2.Metadata_METRIC_TYPE_SUMMARY,
	metric.Info:           writev2.Metadata_METRIC_TYPE_INFO,
	metric.StateSet:       writev2.Metadata_METRIC_TYPE_STATESET,
}

// requestV2 is a batch as remote write 2.0 has it, with types and help texts.
func requestV2(batch []piece) *writev2.Request {
	req := &writev2.Request{}
	symbols := writev2.NewSymbolTable()
	for _, p := range batch {
		for i := p.from; i < p.to; i++ {
			x := p.layout.at(i)
			ts := &writev2.TimeSeries{
				Samples: []*writev2.Sample{{Timestamp: p.atMS, Value: bitsFloat(p.bits[i])}},
				Metadata: &writev2.Metadata{Type: typesV2[x.family.Type],
					HelpRef: symbols.Symbolize(strings.ToValidUTF8(x.family.Help, "\uFFFD")),
					UnitRef: symbols.Symbolize(x.family.Unit)},
			}
			for _, l := range x.labels {
				ts.LabelsRefs = append(ts.LabelsRefs, symbols.Symbolize(l.Name), symbols.Symbolize(l.Value))
			}
			req.Timeseries = append(req.Timeseries, ts)
		}
	}
	req.Symbols = symbols.Symbols()
	return req
}

func floatBits(v float64) uint64    { return math.Float64bits(v) }
func bitsFloat(bits uint64) float64 { return math.Float64frombits(bits) }

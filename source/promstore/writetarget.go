package promstore

import (
	"bytes"
	"cmp"
	"math"
	"net/url"
	"slices"
	"strconv"
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
	names  []string       // by family: as exposed, without the suffix of a part
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

// newWriteTarget makes the labels of a target: job, instance, its name, and those the user asked for, which come first.
func newWriteTarget(t metric.Target, labels map[string]string, used map[string]bool) *writeTarget {
	own := map[string]string{"job": "scrapestat", "instance": instanceOf(t.URL, used)}
	if t.Name != "" {
		own["target"] = t.Name
	}
	for name, value := range labels {
		own[name] = value
	}
	w := &writeTarget{lastMS: -1 << 62}
	for name, value := range own {
		w.labels = append(w.labels, metric.Label{Name: name, Value: value})
	}
	return w
}

// instanceOf is host and port of an address, and all of it where another target has the same.
func instanceOf(address string, used map[string]bool) string {
	instance := address
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		instance = u.Host
	}
	if used[instance] {
		instance = address
	}
	used[instance] = true
	return instance
}

// poll applies a snapshot and returns the samples to send, nil when there are
// none. native and dropped count samples that are not sent.
func (w *writeTarget) poll(s *metric.Snapshot) (p *polled, native, dropped int) {
	if w.Step(s) != nil { // the recording refuses such a poll, too
		return nil, 0, 0
	}
	w.grow(s.Body)
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
func (w *writeTarget) grow(body []byte) {
	for i := len(w.names); i < len(w.Families); i++ {
		w.names = append(w.names, exposedName(&w.Families[i], body))
	}
	for i := len(w.out); i < len(w.Slots); i++ {
		w.out = append(w.out, w.outOf(i))
	}
}

// exposedName is what the server calls the samples of a family: a counter has lost its _total on the way in, an info
// family its _info. The body tells whether it had one.
func exposedName(f *metric.Family, body []byte) string {
	suffix := map[metric.Type]string{metric.Counter: "_total", metric.Info: "_info"}[f.Type]
	if suffix == "" || !mentions(body, f.Name+suffix) {
		return f.Name
	}
	return f.Name + suffix
}

// mentions reports whether a body has a name as a whole word.
func mentions(body []byte, name string) bool {
	part := func(i int) bool {
		if i < 0 || i >= len(body) {
			return false
		}
		c := body[i]
		return c == '_' || c == ':' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
	}
	for at := 0; ; {
		n := bytes.Index(body[at:], []byte(name))
		if n < 0 {
			return false
		}
		if at += n; !part(at-1) && !part(at+len(name)) {
			return true
		}
		at += len(name)
	}
}

// outOf is the series of a slot as the receiver sees it; nil for what is not sent.
func (w *writeTarget) outOf(slot int) *outSeries {
	sl := &w.Slots[slot]
	s := &w.Series[sl.Series]
	f := &w.Families[s.Family]
	name, cut := w.names[s.Family], metric.Label{}
	sum, count := "_sum", "_count"
	if f.Type == metric.GaugeHistogram {
		sum, count = "_gsum", "_gcount"
	}
	switch sl.Role {
	case metric.RoleBucket:
		name, cut = name+"_bucket", metric.Label{Name: "le", Value: boundText(sl)}
	case metric.RoleQuantile:
		cut = metric.Label{Name: "quantile", Value: boundText(sl)}
	case metric.RoleSum:
		name += sum
	case metric.RoleCount:
		name += count
	case metric.RoleCreated, metric.RoleSampleTime, metric.RoleNative:
		return nil
	}
	labels := map[string]string{}
	for n, v := range s.Labels.All() {
		for slices.ContainsFunc(w.labels, func(l metric.Label) bool { return l.Name == n }) {
			n = "exported_" + n // as Prometheus does it
		}
		labels[n] = v
	}
	for _, l := range w.labels {
		labels[l.Name] = l.Value
	}
	if cut.Name != "" {
		labels[cut.Name] = cut.Value
	}
	labels["__name__"] = name
	out := &outSeries{slot: slot, family: *f, number: sl.Integer}
	for n, v := range labels {
		if v != "" { // an empty value is an absent label there
			out.labels = append(out.labels,
				prompb.Label{Name: strings.ToValidUTF8(n, "\uFFFD"), Value: strings.ToValidUTF8(v, "\uFFFD")})
		}
	}
	slices.SortFunc(out.labels, func(a, b prompb.Label) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func boundText(s *metric.SampleID) string {
	if s.Text != "" {
		return s.Text
	}
	return strconv.FormatFloat(s.Bound, 'g', -1, 64)
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

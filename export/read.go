package export

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// Document says what ReadJSON has read.
type Document struct {
	Schema string // version of AIPerf's schema
	Tool   string // that wrote it, with its version
	Ours   bool   // it has our own part, too
}

// maxDocument bounds a JSON export that is read.
const maxDocument = 1 << 30

// ReadJSON reads a JSON export back: AIPerf's of schema 1.0 or 1.1, that of one of its phases, or ours, which has
// percentiles with their bounds, derived quantities, further types, aliases of targets and how it was analysed beside
// that. What the file does not say is missing in the result: of AIPerf's file everything under "scrapestat", of both
// the ledgers, and how many samples a statistic was made of.
//
// The file is of any origin: it is refused when it is larger than 1 GiB or not such
// an export, and whatever in it contradicts itself is left out with a warning.
func ReadJSON(r io.Reader) (*summary.Run, Document, error) {
	limited := &io.LimitedReader{R: r, N: maxDocument}
	var read anyJSON
	d := jsontext.NewDecoder(limited, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err := json.UnmarshalDecode(d, &read); err != nil {
		if limited.N <= 0 {
			err = fmt.Errorf("larger than %d bytes", int64(maxDocument))
		}
		return nil, Document{}, fmt.Errorf("read JSON export: %w", err)
	}
	doc, err := read.document()
	if err != nil {
		return nil, Document{}, fmt.Errorf("read JSON export: %w", err)
	}
	if doc.Summary == nil || doc.Metrics == nil {
		return nil, Document{}, errors.New("read JSON export: it has no summary or no metrics, so it is no " +
			"server_metrics_export.json")
	}
	if doc.Schema != "" && doc.Schema != "1" && !strings.HasPrefix(doc.Schema, "1.") {
		return nil, Document{}, fmt.Errorf("read JSON export: its schema is %q, this program reads 1.0 and 1.1", doc.Schema)
	}
	if e := doc.Extras; e != nil && e.Schema > extrasVersion {
		return nil, Document{}, fmt.Errorf("read JSON export: written by a newer scrapestat (schema %d, this program "+
			"reads up to %d): update scrapestat", e.Schema, extrasVersion)
	}
	rd := &reader{doc: doc, run: &summary.Run{}, endpoints: map[string]int{}}
	rd.read()
	return rd.run, Document{Schema: cmp.Or(doc.Schema, Schema10), Tool: doc.Tool, Ours: doc.Extras != nil}, nil
}

// reader turns a document into a result.
type reader struct {
	doc       *jsonExport
	run       *summary.Run
	endpoints map[string]int // by URL
	notes     map[string]*jsonNote
	left      int // series and values left out
}

func (rd *reader) read() {
	r, d := rd.run, rd.doc
	r.ID, r.Version = d.ID, d.Tool
	rd.window()
	rd.options()
	rd.readEndpoints()
	rd.readNotes()
	for name, m := range d.Metrics.all() {
		rd.metric(name, &m, false)
	}
	if e := d.Extras; e != nil {
		r.Version = cmp.Or(e.Version, r.Version)
		r.Tags, r.Command, r.Host, r.OriginNS, r.Limits = e.Tags, e.Command, e.Host, e.OriginNS, e.Limits
		for c := range e.Conflicts.all() {
			rd.metric(c.Name, &c.Metric, true)
		}
		for m := range e.Others.all() {
			rd.other(&m)
		}
		rd.refused()
		rd.derived()
	}
	slices.SortStableFunc(r.Metrics, func(a, b summary.Metric) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Type, b.Type))
	})
	if rd.left > 0 {
		r.Warnings = append(r.Warnings, metric.Warning{Code: "export_damaged",
			Text: fmt.Sprintf("%d series or values of the JSON export contradict themselves and are left out", rd.left)})
	}
}

func (rd *reader) window() {
	r, d := rd.run, rd.doc
	phases := cmp.Or(d.Summary.Phases, &jsonPhases{})
	r.Window = rd.localWindow()
	if p := phases.Profiling; p != (jsonPeriod{}) {
		r.Window = p.window(cmp.Or(d.Phase, metric.PhaseProfiling))
	}
	if p := phases.Warmup; p != (jsonPeriod{}) {
		w := p.window(metric.PhaseWarmup)
		r.WarmupWindow = &w
	}
	if e := d.Extras; e != nil && e.Window != nil {
		r.Window = e.Window.window(e.Window.Phase)
		r.Window.PhaseEndNS, _ = e.Window.PhaseEndNS.whole()
	}
}

func (p *jsonPeriod) window(phase string) summary.Window {
	return summary.Window{Phase: phase, StartNS: p.StartNS, EndNS: p.EndNS, PhaseEndNS: p.EndNS}
}

// localWindow is that of schema 1.0, in local time without a zone: its length is right, its place may be hours off.
func (rd *reader) localWindow() summary.Window {
	const layout = "2006-01-02T15:04:05.999999"
	start, err1 := time.Parse(layout, rd.doc.Summary.Start)
	end, err2 := time.Parse(layout, rd.doc.Summary.End)
	if err1 != nil || err2 != nil {
		return summary.Window{Phase: metric.PhaseProfiling}
	}
	return summary.Window{Phase: metric.PhaseProfiling, StartNS: start.UnixNano(), EndNS: end.UnixNano(),
		PhaseEndNS: end.UnixNano()}
}

func (rd *reader) options() {
	o := &rd.run.Options
	o.Estimator = "polynomial" // AIPerf has no other
	o.Resets = normalize.ResetClamp
	o.Quantiles = normalize.AIPerfQuantiles()
	e := rd.doc.Extras
	if e == nil || e.Options == nil {
		return
	}
	o.Estimator, o.Slice = e.Options.Estimator, time.Duration(e.Options.SliceNS)
	if e.Options.Resets != "clamp" {
		o.Resets = normalize.ResetAdjust
	}
	if len(e.Options.Quantiles) > 0 {
		o.Quantiles = e.Options.Quantiles
	}
}

// readEndpoints lists the endpoints: ours in their order, AIPerf's as they first answered.
func (rd *reader) readEndpoints() {
	if e := rd.doc.Extras; e != nil {
		for x := range e.Endpoints.all() {
			i := len(rd.run.Endpoints)
			rd.run.Endpoints = append(rd.run.Endpoints, summary.Endpoint{
				Target: metric.Target{Name: x.Name, URL: x.URL, Source: x.Source, Labels: x.Labels.Labels}, Declared: x.Declared,
				Continuity: x.Continuity.read(), SameAs: x.Continuity.sameAs(i)})
			if _, have := rd.endpoints[x.URL]; !have {
				rd.endpoints[x.URL] = i
			}
		}
	}
	for _, url := range rd.doc.Summary.Configured {
		rd.endpoint(url)
	}
	for url, f := range rd.doc.Summary.Info.all() {
		rd.run.Endpoints[rd.endpoint(url)].Fetches = summary.FetchStats{Total: f.Total, FirstNS: f.First, LastNS: f.Last,
			AvgLatencyMS: f.Latency.float(), Unique: f.Unique, FirstUpdateNS: f.FirstUpdate, LastUpdateNS: f.LastUpdate,
			AvgUpdateIntervalMS: f.AvgInterval.float(), MedianUpdateIntervalMS: f.MedianInterval.float(),
			HasMedian: f.MedianInterval.given()}
	}
}

// endpoint returns the index of an endpoint, adding it when it is new.
func (rd *reader) endpoint(url string) int {
	i, ok := rd.endpoints[url]
	if !ok {
		i = len(rd.run.Endpoints)
		rd.endpoints[url] = i
		rd.run.Endpoints = append(rd.run.Endpoints, summary.Endpoint{Target: metric.Target{URL: url, Source: "prometheus"}})
	}
	return i
}

// noteKey finds the note of a series.
func noteKey(name string, endpoint int, l labels) string {
	return fmt.Sprintf("%s\x00%d\x00%s", name, endpoint, l)
}

func (rd *reader) readNotes() {
	rd.notes = map[string]*jsonNote{}
	if rd.doc.Extras == nil {
		return
	}
	for n := range rd.doc.Extras.Series.all() {
		key := n.Metric
		if n.Type != "" {
			key += " as " + n.Type
		}
		rd.notes[noteKey(key, n.Endpoint, n.Labels)] = &n
	}
}

// metric adds a metric of one of AIPerf's types.
func (rd *reader) metric(name string, m *jsonMetric, conflict bool) {
	typ, _ := metric.ParseType(m.Type)
	out := summary.Metric{Name: name, Type: typ, Help: m.Help, Unit: m.Unit, Conflict: conflict}
	if e := rd.doc.Extras; e != nil {
		out.OwnUnit = e.Units[name]
	}
	for s := range m.Series.all() {
		series := summary.Series{Endpoint: rd.endpoint(s.URL), Labels: s.Labels.Labels}
		key := name
		if conflict {
			key += " as " + m.Type
		}
		note := rd.notes[noteKey(key, series.Endpoint, s.Labels)]
		if note != nil {
			series.Samples, series.Resets, series.Gaps, series.NonFinite = note.Samples, note.Resets, note.Gaps, note.NonFinite
		}
		if rd.statistics(&series, typ, &s, note) {
			rd.increase(&series, note)
			out.Series = append(out.Series, series)
		} else {
			rd.left++
		}
	}
	if len(out.Series) > 0 {
		rd.run.Metrics = append(rd.run.Metrics, out)
	}
}

// statistics fills in those of the type; false when they are not there.
func (rd *reader) statistics(out *summary.Series, typ metric.Type, s *jsonSeries, note *jsonNote) bool {
	switch typ {
	case metric.Counter:
		return rd.counter(out, s, note)
	case metric.Histogram:
		return rd.histogram(out, s, note)
	}
	return rd.gauge(out, s)
}

func (rd *reader) counter(out *summary.Series, s *jsonSeries, note *jsonNote) bool {
	total := s.Stats.get("total")
	if !total.given() {
		return false
	}
	c := &normalize.Counter{Defined: note == nil || !note.Single, Total: total.float(),
		Rate: s.Stats.get("rate").float(), Sliced: s.Slices != nil}
	for t := range s.Slices.all() {
		c.Slices = append(c.Slices, normalize.CounterSlice{Slice: t.slice(), Total: t.Total.float(), Rate: t.Rate.float()})
	}
	if s.Stats.get("rate_avg").given() {
		c.SliceRates = s.Stats.spread("rate_")
	}
	out.Counter = c
	return true
}

// spread reads four statistics whose names begin with a prefix.
func (s stats) spread(prefix string) *normalize.Spread {
	return &normalize.Spread{Avg: s.get(prefix + "avg").float(), Min: s.get(prefix + "min").float(),
		Max: s.get(prefix + "max").float(), Std: s.get(prefix + "std").float()}
}

func (rd *reader) gauge(out *summary.Series, s *jsonSeries) bool {
	avg := s.Stats.get("avg")
	if !avg.given() {
		if len(s.Stats) == 0 { // a series of labels only
			out.Gauge = &normalize.Gauge{}
			return true
		}
		return false
	}
	g := &normalize.Gauge{N: max(1, out.Samples), Spread: *s.Stats.spread(""), TimeAvg: avg.float()}
	for _, q := range rd.run.Options.Quantiles {
		g.Quantiles = append(g.Quantiles, s.Stats.get(histest.PercentileName(q)).or(math.NaN()))
	}
	for t := range s.Slices.all() {
		g.Slices = append(g.Slices, normalize.GaugeSlice{Slice: t.slice(), Avg: t.Avg.float(), Min: t.Min.float(),
			Max: t.Max.float()})
	}
	out.Gauge = g
	return true
}

func (t *jsonSlice) slice() normalize.Slice {
	return normalize.Slice{StartNS: t.StartNS, EndNS: t.EndNS, Partial: t.Complete != nil && !*t.Complete}
}

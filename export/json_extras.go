package export

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/window"
	"github.com/scrapestat/scrapestat/window/traffic"
)

// extrasVersion is the version of what is under "scrapestat": fields are added, never renamed.
const extrasVersion = 1

// extras is what AIPerf has no place for.
func (d *document) extras() *jsonExtras {
	r := d.run
	x := &jsonExtras{Schema: extrasVersion, Version: r.Version, RunID: r.ID, Tags: r.Tags, Command: r.Command,
		Host: r.Host, OriginNS: r.OriginNS,
		Window: d.window(), Late: list[jsonLate](d.late).orNone(), WarmupWindow: windowOf(r.WarmupWindow), Limits: r.Limits,
		Warnings: warnings(r.Warnings), Units: map[string]string{},
		Phases: listOf(r.Phases, func(p *summary.Phase) jsonPeriod {
			return jsonPeriod{Name: p.Name, Kind: p.Kind, StartNS: p.StartNS, EndNS: p.EndNS}
		}),
		Options: &jsonOptions{Resets: "adjust", Estimator: cmp.Or(r.Options.FileEstimator, r.Options.Estimator),
			SliceNS: int64(r.Options.Slice), Quantiles: r.Options.Quantiles},
		Endpoints: listOf(r.Endpoints, endpoint), Series: d.notes, Derived: quantities(r.Derived).orNone(),
		Latencies: listOf(r.Latencies, func(l *summary.Latency) jsonLatency {
			return jsonLatency{l.ID, l.Engine,
				d.aggregate(&l.Aggregate)}
		}).orNone(),
		Others: d.others(r.Metrics), OthersWarmup: d.others(r.Warmup), Conflicts: d.conflicts(r.Metrics),
		ConflictsWarmup: d.conflicts(r.Warmup)}
	if r.Options.Resets == normalize.ResetClamp {
		x.Options.Resets = "clamp"
	}
	for i := range r.Metrics {
		if m := &r.Metrics[i]; m.OwnUnit != "" && x.Units[m.Name] == "" {
			x.Units[m.Name] = m.OwnUnit
		}
	}
	if r.Options.Catalog != nil {
		_, x.UnknownFamilies = r.Options.Catalog.Census(iter.Seq[string](listOf(r.Metrics,
			func(m *summary.Metric) string { return m.Name })))
	}
	if r.Options.By != nil {
		x.Aggregates = &jsonAggregates{r.Options.By, listOf(r.Aggregates, d.aggregate)}
	}
	if hasFleet(r) {
		x.Fleet = listOf(r.Combined, func(t *summary.FleetResult) jsonFleet {
			return jsonFleet{labels{t.Labels}, t.Endpoints, quantities(t.Derived)}
		})
	}
	return x
}

// hasFleet reports whether the fleet tells more than its one endpoint does.
func hasFleet(r *summary.Run) bool {
	return len(r.Combined) > 1 || len(r.Combined) == 1 && len(r.Combined[0].Endpoints) > 1
}

func windowOf(w *summary.Window) *jsonPeriod {
	if w == nil {
		return nil
	}
	return &jsonPeriod{Phase: w.Phase, StartNS: w.StartNS, EndNS: w.EndNS, PhaseEndNS: integer(w.PhaseEndNS)}
}

// window is the window of the run with how it was found.
func (d *document) window() *jsonWindow {
	x := &jsonWindow{jsonPeriod: *windowOf(&d.run.Window)}
	w := d.run.Window.Resolved
	if w == nil {
		return x
	}
	seconds, low, high := w.Bounds()
	x.Rule, x.Seconds, x.Low, x.High = string(w.Rule), float(seconds), float(low), float(high)
	x.Parts = listOf(w.Parts, func(p *window.Stretch) jsonPeriod { return jsonPeriod{StartNS: p.StartNS, EndNS: p.EndNS} })
	x.Start, x.End = d.edge(&w.Start), d.edge(&w.End)
	x.Command = &jsonPeriod{StartNS: w.Command.StartNS, EndNS: w.Command.EndNS}
	x.Recording = &jsonPeriod{StartNS: w.Recording.StartNS, EndNS: w.Recording.EndNS}
	segment := func(s *traffic.Segment) jsonSegment {
		return jsonSegment{s.Start.AtNS, s.End.AtNS, float(s.Requests)}
	}
	x.Segments = listOf(w.Traffic.Segments, segment).orNone()
	x.Probes = listOf(w.Traffic.Probes, segment).orNone()
	ramp, drain := w.Slopes()
	whole := len(w.Traffic.Segments) == 1
	x.Ramp, x.Drain = float(ramp).when(whole), float(drain).when(whole)
	x.InFlight = float(d.run.InFlight()).when(len(w.Traffic.Segments) > 0)
	return x
}

func (d *document) edge(e *window.Edge) *jsonEdge {
	x := &jsonEdge{Kind: string(e.Kind), AtNS: e.AtNS, LowNS: e.LowNS, HighNS: e.HighNS, Family: e.Family}
	if e.Family != "" && e.Target >= 0 && e.Target < len(d.run.Endpoints) {
		x.Endpoint = cmp.Or(d.run.Endpoints[e.Target].Name, d.run.Endpoints[e.Target].URL)
	}
	return x
}

// late yields what may be published late, by endpoint and family.
func (d *document) late(yield func(jsonLate) bool) {
	for i := range d.run.Endpoints {
		for _, l := range d.run.Endpoints[i].Late {
			if !yield(jsonLate{i, l.Family, l.AtLeast, l.AtMost, l.Moved, l.CutNS, l.Exact}) {
				return
			}
		}
	}
}

func warnings(from []metric.Warning) list[jsonWarning] {
	return listOf(from, func(w *metric.Warning) jsonWarning { return jsonWarning{w.Code, w.Text} }).orNone()
}

func endpoint(e *summary.Endpoint) jsonEndpoint {
	l := &e.Ledger
	x := jsonEndpoint{URL: e.URL, Name: e.Name, Source: e.Source, Labels: labels{e.Labels},
		Lives:  listOf(e.Lives, life).orNone(),
		Window: jsonPeriod{StartNS: e.StartNS, EndNS: e.EndNS}, Scheduled: l.Scheduled, Unread: l.Unread,
		OK:       l.Outcomes[metric.OK],
		Outcomes: outcomes(&l.Outcomes), InWindow: outcomes(&l.InWindow), FirstError: pollError(&l.FirstError),
		LastError: pollError(&l.LastError),
		Lines:     l.Lines, Stored: l.Stored, LimitsHit: limitsHit(l).orNone(), Bytes: l.Bytes, Families: l.Families,
		SeriesN: l.SeriesN,
		Dropped: listOf(l.Dropped, func(x *metric.Drop) jsonDrop { return jsonDrop{x.Reason, x.Lines, x.First} }),
		Late: jsonLateness{float(float64(l.Late.Mean) / 1e6), float(float64(l.Late.P99) / 1e6),
			float(float64(l.Late.Max) / 1e6)},
		Continuity: continuityOf(e), Fetches: fetchesOf(e.InWindow), Warmup: fetchesOf(e.InWarmup),
		GapsN: e.GapsN, Warnings: warnings(e.Warnings)}
	if e.GapsN != 0 {
		x.Gaps = listOf(e.Gaps, func(g *summary.Gap) jsonGap { return jsonGap{g.StartNS, g.EndNS, g.Polls} })
	}
	if len(e.Declared) > 0 {
		x.Declared = e.Declared
	}
	return x
}

func life(l *metric.TargetEvent) jsonLife {
	if l.Gone {
		return jsonLife{l.AtNS, "went", l.Reason}
	}
	return jsonLife{l.AtNS, "came", l.Reason}
}

// outcomes tells how polls ended; outcomes that did not occur are left out.
func outcomes(counts *[metric.Outcomes]int) object[int] {
	return func(yield func(string, int) bool) {
		for o, n := range counts {
			if n != 0 && !yield(metric.Outcome(o).String(), n) {
				return
			}
		}
	}
}

func pollError(p *summary.PollError) *jsonPollError {
	if *p == (summary.PollError{}) {
		return nil
	}
	return &jsonPollError{p.AtNS, p.Outcome.String(), p.Text}
}

// limitsHit names the limits that cost polls or lines.
func limitsHit(l *summary.Ledger) object[int] {
	return func(yield func(string, int) bool) {
		if n := l.Outcomes[metric.TooLarge]; n != 0 && !yield("polls_too_large", n) {
			return
		}
		for _, x := range l.Dropped {
			if strings.HasSuffix(x.Reason, "_limit") && !yield(x.Reason+"_lines", x.Lines) {
				return
			}
		}
	}
}

// notes are those of the series that have one.
func (d *document) notes(yield func(jsonNote) bool) {
	for i := range d.run.Metrics {
		m := &d.run.Metrics[i]
		for j := range m.Series {
			if n, ok := d.note(m, &m.Series[j]); ok && !yield(n) {
				return
			}
		}
	}
}

// note is that of a series; false when there is nothing to be said.
func (d *document) note(m *summary.Metric, s *summary.Series) (n jsonNote, ok bool) {
	n = jsonNote{Metric: m.Name, Endpoint: s.Endpoint, Labels: labels{s.Labels}, Samples: s.Samples, Resets: s.Resets,
		Gaps:      s.Gaps,
		NonFinite: s.NonFinite, CreatedNS: s.CreatedNS, Percentiles: d.percentiles(s), Warnings: warnings(s.Warnings),
		Increase:  increaseOf(m, s),
		Exemplars: listOf(s.Exemplars, exemplar).orNone(), Distribution: distribution(s.Distribution)}
	if m.Conflict || !exportedType(m.Type) {
		n.Type = m.Type.String()
	}
	if c := s.Counter; c != nil {
		n.Single, n.Exact = !c.Defined, exactTotal(c)
	}
	if h := s.Histogram; h != nil {
		n.Native, n.Slices = h.Native != nil, d.slicePercentiles(h)
	}
	started := s.CreatedNS > d.run.OriginNS
	ok = n.Single || n.Increase != nil || n.Exact != 0 || n.Native || started || s.Resets+s.Gaps+s.NonFinite != 0 ||
		n.Exemplars != nil ||
		n.Percentiles != nil ||
		n.Warnings != nil || n.Distribution != nil
	return n, ok
}

// exactTotal is the total of a counter that a double does not hold, else 0.
func exactTotal(c *normalize.Counter) uint64 {
	if c.HasExact && c.Exact > 1<<53 {
		return c.Exact
	}
	return 0
}

// percentiles are all estimates of a histogram with their bounds, and those of a
// gauge that are not AIPerf's; nil without.
func (d *document) percentiles(s *summary.Series) object[jsonEstimate] {
	if s.Histogram != nil {
		return d.estimates(inFiles(d.run, s.Histogram.Quantiles, s.Histogram.FileQuantiles))
	}
	if s.Gauge == nil {
		return nil
	}
	return object[jsonEstimate](func(yield func(string, jsonEstimate) bool) {
		for i, v := range s.Gauge.Quantiles[:min(len(s.Gauge.Quantiles), len(d.run.Options.Quantiles))] {
			if !slices.Contains(d.nine[:], i) && !yield(histest.PercentileName(d.run.Options.Quantiles[i]),
				jsonEstimate{Value: float(v)}) {
				return
			}
		}
	}).orNone()
}

// slicePercentiles are the estimates of the slices that have some.
func (d *document) slicePercentiles(h *normalize.Histogram) list[jsonPercentiles] {
	return list[jsonPercentiles](func(yield func(jsonPercentiles) bool) {
		for i := range h.Slices {
			s := &h.Slices[i]
			if len(s.Quantiles) > 0 && !yield(jsonPercentiles{s.StartNS, s.EndNS, d.estimates(s.Quantiles)}) {
				return
			}
		}
	}).orNone()
}

// exemplar has the bucket it is of.
func exemplar(x *summary.Exemplar) jsonExemplar {
	out := jsonExemplar{Labels: labels{x.Labels}, Value: float(x.Value), AtNS: x.AtNS, SeenNS: x.SeenNS}
	switch x.Role {
	case metric.RoleBucket:
		out.LE = boundText(&normalize.Bucket{Text: x.Text, Upper: x.Upper})
	case metric.RoleNative:
		out.Above, out.LE = edgeText(x.Lower), edgeText(x.Upper)
	}
	return out
}

// edgeText is a bound as a text, as infinities have no number.
func edgeText(v float64) string {
	if math.IsInf(v, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func distribution(x *normalize.Distribution) *jsonDistribution {
	if x == nil {
		return nil
	}
	out := &jsonDistribution{Lines: exact(&x.Lines)}
	if x.Requests != nil {
		requests := exact(x.Requests)
		out.Requests = &requests
	}
	return out
}

func exact(e *normalize.Exact) jsonExact {
	return jsonExact{e.N, float(e.Sum), float(e.Avg), float(e.Min), float(e.Max), float(e.P50), float(e.P90),
		float(e.P95), float(e.P99), float(e.P999)}
}

func (d *document) aggregate(a *summary.Aggregate) jsonAggregate {
	m := &d.run.Metrics[a.Metric]
	x := jsonAggregate{Metric: m.Name, Type: m.Type.String(), Labels: labels{a.Labels}, Series: a.Series,
		LeftOut: a.LeftOut, Resets: a.Resets,
		Refused: a.Refused, Warnings: warnings(a.Warnings)}
	if c := a.Counter; c != nil && c.Defined {
		x.Total, x.Rate, x.Exact = float(c.Total), float(c.Rate), exactTotal(c)
	}
	if g := a.Gauge; g != nil {
		x.Rule, x.TimeAvg, x.Min, x.Max = g.Rule, float(g.TimeAvg), float(g.Min), float(g.Max)
	}
	if a.Summary != nil {
		x.Stats, x.Quantiles, x.Slices = summaryStats(a.Summary)
	}
	if h := a.Histogram; h != nil {
		x.Count, x.Sum, x.Avg = integer(h.Count), float(h.Sum).when(!h.NoSum), float(h.Avg).when(!h.NoSum && h.Count != 0)
		x.CountRate, x.SumRate = float(h.CountRate).when(h.HasRates), float(h.SumRate).when(h.HasRates && !h.NoSum)
		x.Buckets, x.Percentiles = bucketsOf(h.Buckets), d.estimates(inFiles(d.run, h.Quantiles, h.FileQuantiles))
	}
	if s := a.Skew; s != nil {
		x.Skew = &jsonSkew{s.Replicas, float(s.Ratio), s.Endpoint, labels{s.Labels}}
	}
	return x
}

func quantities(from []summary.Derived) list[jsonDerived] { return listOf(from, quantity) }

func quantity(q *summary.Derived) jsonDerived {
	x := jsonDerived{Pack: q.Pack, Name: q.Name, Unit: q.Unit, Canonical: q.Canonical, Headline: q.Headline,
		Endpoint: integer(q.Endpoint).when(q.Endpoint >= 0), Labels: labels{q.Labels}, Status: q.Status.String(),
		Numerator: float(q.Numerator).when(q.HasParts), Denominator: float(q.Denominator).when(q.HasParts),
		Families: q.Families,
		Slices: listOf(q.Slices, func(s *summary.DerivedSlice) jsonSlice {
			out := sliceOf(&s.Slice)
			out.Status = s.Status.String()
			out.Value, out.Shown = derivedValue(s.Status, s.Value, s.Shown)
			return out
		}).orNone()}
	x.Value, x.Shown = derivedValue(q.Status, q.Value, q.Shown)
	low, high := summary.BoundsOfStatus(q.Status, q.Low, q.High)
	x.Low, x.High = float(low), float(high)
	if q.Category != catalog.Other {
		x.Category = q.Category.String()
	}
	if q.Better != catalog.Neutral {
		x.Better = q.Better.String()
	}
	if len(q.Flags) > 0 {
		x.Flags = q.Flags
	}
	return x
}

// derivedValue is a value, and what is shown for it where that differs.
func derivedValue(s catalog.Status, value, shown float64) (scalar, scalar) {
	return float(value).when(s.Defined()), float(shown).when(s.Defined() && shown != value)
}

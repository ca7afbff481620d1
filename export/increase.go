package export

import (
	"math"

	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// asAIPerf is the series as AIPerf's part of a file has it. With the rates of the window it is ours where only the
// polls that are counted from and up to are others.
func asAIPerf(r *summary.Run, s *summary.Series) *summary.Series {
	if r.Endpoints[s.Endpoint].Client() {
		return &summary.Series{} // AIPerf's readers take every endpoint for a server
	}
	ours := r.Options.WindowRates && r.Options.Resets == normalize.ResetAdjust && s.Increase.Status == continuity.OK
	if s.AIPerf == nil || ours {
		return s
	}
	out := *s
	out.Series = *s.AIPerf
	return &out
}

// rate is a rate of a series in AIPerf's part: of the time from its reference sample to its last one, or of the seconds
// of the window.
func rate(r *summary.Run, s *summary.Series, gain, ours, window float64) float64 {
	seconds := float64(s.LastNS-s.RefNS) / 1e9
	switch {
	case r.Options.WindowRates:
		seconds = window
	case s.RefNS == 0:
		return ours
	}
	if seconds <= 0 {
		return 0
	}
	return min(max(gain/seconds, -math.MaxFloat64), math.MaxFloat64)
}

// gaugeOf is a gauge in AIPerf's part: of its samples, or weighted by the time of the window.
func gaugeOf(r *summary.Run, g *normalize.Gauge) (normalize.Spread, []float64) {
	if c := g.Clipped; c != nil && r.Options.WindowRates {
		return c.Spread, c.Quantiles
	}
	return g.Spread, g.Quantiles
}

// inFiles are the estimates that files show, of those of screens and of files.
func inFiles(r *summary.Run, ours, files []histest.Estimate) []histest.Estimate {
	if r.Options.FileEstimator == "" {
		return ours
	}
	return files
}

// increaseOf is nil where the series is certain and AIPerf's part has the same numbers.
func increaseOf(m *summary.Metric, s *summary.Series) *jsonIncrease {
	i := &s.Increase
	if i.Status == continuity.OK && s.AIPerf == nil || s.Gauge != nil {
		return nil
	}
	x := &jsonIncrease{Status: i.Status.String(), Restarts: i.Restarts}
	if i.Status == continuity.Refused {
		x.Type = m.Type.String()
		return x
	}
	x.Value, x.Low, x.High = float(i.Value), float(i.Low), float(i.High)
	if h := s.Histogram; h != nil {
		x.Sum, x.Buckets = float(h.Sum).when(!h.NoSum), bucketsOf(h.Buckets)
	}
	return x
}

// continuityOf is nil where nothing happened.
func continuityOf(e *summary.Endpoint) *jsonContinuity {
	c := &e.Continuity
	if c.Status == continuity.OK && len(c.Events)+c.Lost+e.SameAs == 0 {
		return nil
	}
	out := &jsonContinuity{Status: c.Status.String(), Processes: c.Processes, Restarts: c.Restarts, Held: c.HeldBodies,
		Dips: c.Dips, Lost: c.Lost, Events: listOf(c.Events, func(e *continuity.Event) jsonEvent {
			return jsonEvent{e.AtNS, e.Kind.String(), int(e.Process), e.Text}
		})}
	if e.SameAs > 0 {
		first := e.SameAs - 1
		out.SameAs = &first
	}
	return out
}

// sameAs is the field of [summary.Endpoint], where it is one of the endpoints before.
func (c *jsonContinuity) sameAs(endpoint int) int {
	if c == nil || c.SameAs == nil || *c.SameAs < 0 || *c.SameAs >= endpoint {
		return 0
	}
	return *c.SameAs + 1
}

func (c *jsonContinuity) read() (out continuity.Summary) {
	if c == nil {
		return continuity.Summary{Processes: 1}
	}
	status, ok := continuity.ParseStatus(c.Status)
	if !ok {
		status = continuity.Refused
	}
	return continuity.Summary{Status: status, Processes: c.Processes, Restarts: c.Restarts, HeldBodies: c.Held,
		Dips: c.Dips}
}

// increase gives a series of an export its increase; the statistics read so far are AIPerf's then.
func (rd *reader) increase(s *summary.Series, note *jsonNote) {
	gained, ok := s.Gained()
	if !ok {
		return
	}
	s.Increase = continuity.Certain(gained)
	if note == nil || note.Increase == nil {
		return
	}
	x := note.Increase
	s.Increase = x.read()
	if s.Increase.Value == gained || !s.Increase.Status.Defined() {
		return
	}
	aiperf := s.Series
	s.AIPerf = &aiperf
	span := float64(rd.run.Window.EndNS-rd.run.Window.StartNS) / 1e9
	if c := s.Counter; c != nil {
		ours := *c
		ours.Defined, ours.Total, ours.Rate = true, s.Increase.Value, s.Increase.Value/span
		s.Counter = &ours
	}
	if h := s.Histogram; h != nil {
		ours := *h
		ours.Count, ours.CountRate = int64(s.Increase.Value), s.Increase.Value/span
		if x.Sum.given() {
			ours.Sum = x.Sum.float()
			ours.SumRate, ours.Avg = ours.Sum/span, ours.Sum/s.Increase.Value
		}
		if len(x.Buckets.read) > 0 {
			ours.Buckets = x.Buckets.read
			ours.Bounds = boundsOf(ours.Buckets)
		}
		s.Histogram = &ours
	}
}

// read is refused where the status is of a newer program.
func (x *jsonIncrease) read() continuity.Increase {
	status, ok := continuity.ParseStatus(x.Status)
	if !ok {
		status = continuity.Refused
	}
	return continuity.Increase{Value: x.Value.or(math.NaN()), Low: x.Low.or(0), High: x.High.or(math.Inf(1)),
		Status:   status,
		Restarts: x.Restarts}
}

// refused adds the series that AIPerf's part leaves out.
func (rd *reader) refused() {
	if rd.doc.Extras == nil {
		return
	}
	for n := range rd.doc.Extras.Series.all() {
		if n.Increase == nil || n.Increase.Status != continuity.Refused.String() {
			continue
		}
		typ, _ := metric.ParseType(n.Increase.Type)
		s := summary.Series{Endpoint: n.Endpoint, Labels: n.Labels.Labels,
			Series: normalize.Series{Samples: n.Samples, Increase: n.Increase.read()}}
		rd.add(n.Metric, typ, s)
	}
}

// add adds a series to its metric, made where there is none.
func (rd *reader) add(name string, typ metric.Type, s summary.Series) {
	for i := range rd.run.Metrics {
		if m := &rd.run.Metrics[i]; m.Name == name && m.Type == typ {
			m.Series = append(m.Series, s)
			return
		}
	}
	rd.run.Metrics = append(rd.run.Metrics, summary.Metric{Name: name, Type: typ, Series: []summary.Series{s}})
}

package summary

import (
	"cmp"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/window"
)

// Run is the result of one analysed run: what every export, report and
// comparison is made of. It is immutable once built.
type Run struct {
	ID      string // of the recording; AIPerf's benchmark_id
	Version string // of the tool that recorded it
	Tags    map[string]string
	Command []string // redacted command line of the recording

	OriginNS int64            // when the recording began
	Host     string           // that recorded
	Limits   map[string]int64 // that were in force while recording, by name

	Window       Window
	WarmupWindow *Window // nil when there was no warm-up
	Phases       []Phase // all phases of the recording, in time order
	Options      Options // how this result was made, with the defaults filled in

	Endpoints []Endpoint
	Metrics   []Metric // sorted by name, then type
	Warmup    []Metric // the same over the warm-up; nil when there was none
	// Aggregates are those that Options.By asks for, in the order of Metrics, then
	// by labels; of gauges only those of which the catalog knows how.
	Aggregates []Aggregate
	// Latencies are the times that the catalog knows across engines, taken together
	// per engine, in the order of a request; always there.
	Latencies []Latency
	// Recorded is Latencies as records of single requests have them; see UseRecorded.
	Recorded []Recorded
	// Derived are the quantities that package catalog derives, by endpoint, then in the order of the catalog.
	Derived []Derived
	// Combined has the same of all endpoints of an engine together, first, then of the
	// groups that Options.By asks for; nil where nothing is derived.
	Combined []FleetResult
	Warnings []metric.Warning
}

// Window is the part of the run the statistics cover, inclusive at both ends.
type Window struct {
	Phase          string // the phase it was made from; "" when given by times
	StartNS, EndNS int64
	// PhaseEndNS is where the window itself ends. EndNS is later when polls after it, such as the final scrape,
	// brought observations that belong to it.
	PhaseEndNS int64
	// Resolved is how the stretch was found and how sure its edges are; nil of a warm-up and of an export.
	Resolved *window.Window
}

// Phase is a named stretch of the run. Warm-up, profiling and cool-down follow
// each other; phases of other names lie within, from their mark to the next.
type Phase struct {
	Name           string
	StartNS, EndNS int64
	Instance, Of   int    // phases of one name are numbered from 1
	Kind           string // of its mark
}

// Metric is one family over all endpoints that have it.
type Metric struct {
	Name string
	Type metric.Type
	Help string // of the first endpoint that has the family
	// Unit is AIPerf's inference, "" when there is none; OwnUnit is ours where it
	// knows more or other (microseconds), else "".
	Unit, OwnUnit string
	// Conflict is set when a metric of the same name and another type exists, which
	// an earlier endpoint has, or which this endpoint showed first.
	Conflict bool
	Series   []Series // sorted by endpoint URL, then labels as Python prints them
}

// ShownUnit is the unit for people: OwnUnit, or else Unit.
func (m *Metric) ShownUnit() string { return cmp.Or(m.OwnUnit, m.Unit) }

// Series is one label set of a metric at one endpoint.
type Series struct {
	Endpoint int // into Run.Endpoints
	Labels   metric.Labels
	normalize.Series
	// Superseded is the newer name under which the endpoint shows the same: this series is no part of sums. "" is none.
	Superseded string
	// Exemplars are the last ones of the run that each bucket, or the counter, showed; none for the warm-up.
	Exemplars []Exemplar
}

// Endpoint is a target with what happened at it.
type Endpoint struct {
	metric.Target
	Ledger   Ledger
	Fetches  FetchStats  // over the whole run, as AIPerf counts
	InWindow *FetchStats // of the profiling window; nil when nothing was fetched in it
	InWarmup *FetchStats // of the warm-up; nil when nothing was fetched in it
	// StartNS and EndNS are the window the statistics of this endpoint cover: that
	// of the run, up to the last update of this endpoint.
	StartNS, EndNS int64
	// Seconds is what the rates of this endpoint divide by: the length of the window; at edges at which nobody polled,
	// from the nearest poll.
	Seconds float64
	// SlicePolls is how many polls each slice of the window has; nil without slices.
	SlicePolls []int32
	// Late is what may be published late, by family: nothing goes before the window, or all is exact, where it is empty.
	Late []Late
	// InFlight is how many requests were there when a window began that something goes before, 0 where nothing tells.
	InFlight float64
	Warnings []metric.Warning // bounded; the last one counts those beyond
	// Declared lists families that were announced but never had a sample.
	Declared []string
	// NonFinite counts, by family, the samples in the window of series that were never a finite number.
	NonFinite map[string]int
	Gaps      []Gap // stretches without a stored poll, the first maxGaps of them
	GapsN     int   // how many there were
	// Continuity is what happened to the processes that answered in the window.
	Continuity continuity.Summary
	// Eventful is set when something happened to them, in the window or not.
	Eventful bool
	// SameAs is the endpoint that is the same server under another address, from 1; 0 for none. Where endpoints are
	// taken together that one counts and this one does not.
	SameAs int
	// Lives is when the target came and went during the run, nil for one that was there all the time.
	Lives []metric.TargetEvent
}

// Warned returns the text of the first warning of the run itself with a code, "" without one.
func (r *Run) Warned(code string) string {
	for _, w := range r.Warnings {
		if w.Code == code {
			return w.Text
		}
	}
	return ""
}

// Servers is how many endpoints are servers: the load generator, which collect may record beside them, is none.
func (r *Run) Servers() (n int) {
	for i := range r.Endpoints {
		if !r.Endpoints[i].Client() {
			n++
		}
	}
	return n
}

// InFlight is how many requests were there when the window began, where something goes before it; 0 where nothing
// tells.
func (r *Run) InFlight() (n float64) {
	for i := range r.Endpoints {
		if r.Endpoints[i].SameAs == 0 {
			n += r.Endpoints[i].InFlight
		}
	}
	return n
}

// Gap is a stretch in which every poll of an endpoint failed.
type Gap struct {
	// StartNS is the time of the last stored poll before it, 0 when there was
	// none; EndNS that of the first one after it, 0 when there was none.
	StartNS, EndNS int64
	Polls          int // that failed
}

// Ledger accounts for every scheduled poll of a target and every line it sent.
type Ledger struct {
	Scheduled  int                  // polls that were due: the sum of Outcomes
	Unread     int                  // polls that were recorded and cannot be read, in none of the counts
	Outcomes   [metric.Outcomes]int // by metric.Outcome
	FirstError PollError            // zero when there was none
	LastError  PollError
	FirstOf    [metric.Outcomes]PollError // the first of each outcome, also of partial polls
	Lines      int64                      // sample lines received: those stored and those dropped
	Stored     int64                      // lines stored
	Dropped    []metric.Drop              // by reason, First is the first case of the run
	Bytes      int64                      // body bytes
	Late       ScheduleDelay
	Families   int // distinct families shown over the run
	SeriesN    int // distinct series shown over the run
	// InWindow is the part of Outcomes that falls into the window.
	InWindow [metric.Outcomes]int
}

// StoredPolls is the number of polls that delivered samples, whole or in part.
func (l *Ledger) StoredPolls() int { return l.Outcomes[metric.OK] + l.Outcomes[metric.Partial] }

// Loss is what did not arrive: polls of an outcome, or lines dropped for a reason.
type Loss struct {
	Lines bool // not polls
	N     int
	What  string // the outcome or reason
	First string // the first case
}

// Unreadable is what the loss of polls is called that a damaged recording had.
const Unreadable = "unreadable"

// Losses returns polls that cannot be read, those that were not OK by outcome, then lines dropped by reason but for
// those filtered as asked.
func (l *Ledger) Losses() (out []Loss) {
	if l.Unread > 0 {
		out = append(out, Loss{N: l.Unread, What: Unreadable, First: "the recording is damaged"})
	}
	for o, n := range l.Outcomes {
		if n > 0 && metric.Outcome(o) != metric.OK {
			out = append(out, Loss{N: n, What: metric.Outcome(o).String(), First: l.FirstOf[o].Text})
		}
	}
	for _, d := range l.Dropped {
		if d.Reason != metric.DropFiltered {
			out = append(out, Loss{Lines: true, N: d.Lines, What: d.Reason, First: d.First})
		}
	}
	return out
}

// PollError is a failed poll.
type PollError struct {
	AtNS    int64
	Outcome metric.Outcome
	Text    string
}

// ScheduleDelay is how far behind schedule requests were sent.
type ScheduleDelay struct{ Mean, P99, Max time.Duration }

// FetchStats is AIPerf's endpoint_info (design document aiperf.md, section 1.9): it counts stored polls that
// showed at least one sample AIPerf would keep. An update is a fetch whose body differs from the one before.
type FetchStats struct {
	Total                       int
	FirstNS, LastNS             int64
	AvgLatency                  time.Duration
	AvgLatencyMS                float64
	Unique                      int
	FirstUpdateNS, LastUpdateNS int64
	AvgUpdateIntervalMS         float64
	MedianUpdateIntervalMS      float64
	HasMedian                   bool
}

// Options configures how a result is made of a recording.
type Options struct {
	Window window.Ref // the part of the run; the zero value is what package window finds
	// Windows are those of the recordings, where they are not all Window; nil otherwise.
	Windows   []window.Ref
	Slice     time.Duration // 0: no slices; or NoiseSlices, CauseSlices, PointSlices
	Resets    normalize.ResetMode
	Estimator string // "" is polynomial
	// FileEstimator is that of normalize.Histogram.FileQuantiles, "" for Estimator.
	FileEstimator  string
	Quantiles      []float64 // nil: AIPerf's nine
	SliceQuantiles bool
	// AIPerf gives a recorded run's series normalize.Series.AIPerf also where the window snaps or pauses, for exports.
	AIPerf bool
	// WindowRates gives AIPerf's part of exports the rates, gauges and slices of exactly the window, as ours are.
	WindowRates bool
	// By asks for aggregates: names of the labels by which series are kept apart, [ByEndpoint] among them for
	// the endpoint. Empty takes all series of a metric together, nil makes no aggregates.
	By []string
	// Catalog is what is known of families; nil is that of this program. A result has the one it was made with.
	Catalog *catalog.Catalog
}

// FlagNames returns the names of the flags of an estimate, in a fixed order.
func FlagNames(f histest.Flags) []string {
	var out []string
	for _, n := range [...]struct {
		flag histest.Flags
		name string
	}{{histest.Degenerate, "degenerate"}, {histest.Overflow, "overflow"}, {histest.Few, "few"}} {
		if f&n.flag != 0 {
			out = append(out, n.name)
		}
	}
	return out
}

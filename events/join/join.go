// Package join puts what clients saw of their requests beside what servers say of the same requests.
//
//	r, err := join.Join(session, run, join.Options{Clocks: clocks})
//
// The clients' requests of a quantity are those that reached it between the two polls that the server's gain lies
// between: a time to first token counts when the token came, a latency when the request ended. Both sides then have
// the same requests, but for those that were on their way at an edge, and a difference of means is exact:
//
//	overhead = mean of the clients - gain of the sum / gain of the count
//
// It is the time in the network and proxies, and in the client. A difference of percentiles is no percentile of
// anything, and is shown as such.
//
// Where servers tell of single requests (Records), each is joined with its client by an id, never by time or content:
// what is outside of the server, in its front end, queue and prefill is then of the same requests and adds up, and the
// percentiles of the records stand for the server where they are proven to be all (ExactTimes).
package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
)

// ErrNoClock is why requests without an anchor in real time are not joined.
var ErrNoClock = errors.New("the request events have no clock anchor: their times cannot be put beside those of " +
	"the server; record them into the run, or import them with an anchor")

// ErrNoServer is why there is nothing to join with.
var ErrNoServer = errors.New("no family is known that has the latency of requests")

// ErrNoRequests is why there is nothing to join.
var ErrNoRequests = errors.New("the run has no requests of clients (collect --requests or --proxy, or requests import)")

// Options say how to join.
type Options struct {
	// Clocks are the anchors of the recording's events. Without one Join fails with ErrNoClock.
	Clocks []rundb.Clock
	// Engine chooses the server by its name in Engines; "" is the first of Engines that has families in the run.
	Engine string
	// Catalog knows the families; nil is the one of the program.
	Catalog *catalog.Catalog
	// Tolerance is the share by which counts may differ; 0 is 0.01.
	Tolerance float64
	// Recording is what the result was made of: its counters are held against the clients' times, and requests that it
	// logs by name are joined. nil does neither.
	Recording summary.Recording
	// Records are what servers tell of single requests; nil is nothing.
	Records Records
	ClockOptions
}

// Result is clients against servers over one window. A number that is not known is nil.
type Result struct {
	FromNS   int64      `json:"from_ns"`
	ToNS     int64      `json:"to_ns"`
	Clocks   []string   `json:"clocks"` // sources of the anchors
	Engine   string     `json:"engine"`
	Others   []string   `json:"other_engines,omitempty"` // that have families too, and were not used
	Families []string   `json:"families"`                // that matched
	InFlight [2]Edge    `json:"in_flight"`               // at the start and at the end
	TTFT     Quantity   `json:"ttft"`
	E2E      Quantity   `json:"e2e"`
	Queue    ServerSide `json:"queue"`   // in the server
	Prefill  ServerSide `json:"prefill"` // in the server
	Slices   []Slice    `json:"slices"`
	// Matched are the joins of single requests, by family; see Observe.
	Matched []Matched `json:"by_id,omitempty"`
	// Anchor bounds the clients' clock by the server's counters; nil where those do not tell.
	Anchor   *Anchor            `json:"anchor,omitempty"`
	Requests *Requests          `json:"requests,omitempty"` // joined one by one; nil without records
	Exact    []summary.Recorded `json:"exact,omitempty"`    // what the records say of the server alone
	Failed   int                `json:"failed"`             // requests of the clients that failed in the window
	Warnings []metric.Warning   `json:"warnings"`
}

// Edge is how many requests were under way at an instant.
type Edge struct {
	AtNS   int64    `json:"at_ns"`
	Client int      `json:"client"`
	Server *float64 `json:"server"` // running and waiting, as the poll next to it shows
}

// ServerSide is what servers say of a quantity.
type ServerSide struct {
	Family string   `json:"family,omitempty"` // "" when none matched
	Count  float64  `json:"count"`
	Mean   *float64 `json:"mean_s"`

	sum float64 // of a slice
	p   [len(percentiles)]*float64
}

// Quantity is a time as both sides have it, in seconds.
type Quantity struct {
	FromNS int64 `json:"from_ns"` // of the polls that the gain lies between
	ToNS   int64 `json:"to_ns"`
	Client struct {
		Count int      `json:"count"`
		Mean  *float64 `json:"mean_s"`
	} `json:"client"`
	Server ServerSide `json:"server"`
	// Overhead is the difference of the means: exact when the counts agree.
	Overhead *float64 `json:"overhead_s"`
	// Agree reports whether the counts differ by no more than Options.Tolerance.
	Agree       bool         `json:"counts_agree"`
	Percentiles []Percentile `json:"percentiles"`
}

// Percentile is a percentile on both sides. The server's is estimated from its buckets, and Difference is not
// additive: it is no percentile of an overhead.
type Percentile struct {
	Q          float64  `json:"q"`
	Client     *float64 `json:"client_s"`
	Server     *float64 `json:"server_s"`
	Difference *float64 `json:"difference_s_not_additive"`
}

// Slice is one timeslice. The polls of a server lie anywhere in it, so that its counts differ from those of the
// clients by requests near its edges.
type Slice struct {
	StartNS int64    `json:"start_ns"`
	EndNS   int64    `json:"end_ns"`
	TTFT    Quantity `json:"ttft"`
	E2E     Quantity `json:"e2e"`
}

var percentiles = [...]float64{0.5, 0.9, 0.99}

// BuildOptions are the options of summary.Build that Join needs beside those of the window.
func BuildOptions(o summary.Options) summary.Options {
	o.By, o.Quantiles = []string{}, percentiles[:]
	return o
}

// Join joins the requests of a session with the result of a run, which was built with BuildOptions. It fails without
// requests, without a clock anchor, with clients whose times the server's counters exclude (ErrShifted), and where
// neither a known server nor a record or log of single requests is there.
func Join(ctx context.Context, s *events.Session, run *summary.Run, o Options) (*Result, error) {
	if err := o.check(s); err != nil {
		return nil, fmt.Errorf("join requests: %w", err)
	}
	j := &joiner{s: s, run: run, o: o, r: &Result{FromNS: run.Window.StartNS, ToNS: run.Window.EndNS,
		Warnings: []metric.Warning{}}}
	for _, c := range o.Clocks {
		if !slices.Contains(j.r.Clocks, c.Source) {
			j.r.Clocks = append(j.r.Clocks, c.Source)
		}
	}
	unknown := j.choose()
	if err := j.single(ctx); err != nil {
		return nil, fmt.Errorf("join requests: %w", err)
	}
	if unknown != nil && len(j.r.Matched) == 0 && j.r.Requests == nil {
		return nil, fmt.Errorf("join requests: %w", unknown)
	}
	if unknown == nil {
		j.whole()
		j.edges()
		j.slices()
	}
	j.warnings()
	return j.r, nil
}

// unixFrom tells Unix times from those of a monotonic clock: 2001, or 31 years after a boot.
const unixFrom = int64(1e18)

// check fills in the defaults and refuses what cannot be joined. An anchor alone is not enough: events of another
// source may have come without one.
func (o *Options) check(s *events.Session) (err error) {
	if len(s.Requests) == 0 {
		return ErrNoRequests
	}
	if len(o.Clocks) == 0 {
		return ErrNoClock
	}
	bad := 0
	for i := range s.Requests {
		if s.Requests[i].IssuedNS < unixFrom {
			bad++
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d requests: %w", bad, len(s.Requests), ErrNoClock)
	}
	o.Tolerance = cmp.Or(o.Tolerance, 0.01)
	if o.Catalog == nil {
		o.Catalog, err = catalog.New()
	}
	return err
}

// joiner is a join in the making.
type joiner struct {
	s   *events.Session
	run *summary.Run
	o   Options
	e   engine
	r   *Result
}

// choose finds the engine whose families the run has.
func (j *joiner) choose() error {
	var found []engine
	for _, e := range j.engines() {
		if len(e.e2e.families)+len(e.ttft.families) > 0 && (j.o.Engine == "" || j.o.Engine == e.name) {
			found = append(found, e)
		}
	}
	if len(found) == 0 {
		return fmt.Errorf("%w (known servers: %v)", ErrNoServer, names(j.o.Catalog))
	}
	j.e, j.r.Engine = found[0], found[0].name
	for _, e := range found[1:] {
		j.r.Others = append(j.r.Others, e.name)
	}
	return nil
}

// metric is the index of a family that gains, or -1.
func (j *joiner) metric(family string) int {
	return slices.IndexFunc(j.run.Metrics, func(m summary.Metric) bool { return m.Name == family })
}

func (j *joiner) series(families ...string) []summary.Series {
	var out []summary.Series
	for _, family := range families {
		if i := j.metric(family); i >= 0 {
			for _, s := range j.run.Metrics[i].Series {
				if !j.run.Repeats(&s) {
					out = append(out, s)
				}
			}
		}
	}
	return out
}

// whole fills in what is said of the whole window.
func (j *joiner) whole() {
	j.r.TTFT = j.quantity(j.e.ttft, firstToken)
	j.r.E2E = j.quantity(j.e.e2e, completion)
	j.r.Queue, _, _ = j.server(j.e.queue)
	j.r.Prefill, _, _ = j.server(j.e.prefill)
	for _, s := range []ServerSide{j.r.TTFT.Server, j.r.E2E.Server, j.r.Queue, j.r.Prefill} {
		if s.Family != "" {
			j.r.Families = append(j.r.Families, s.Family)
		}
	}
	for _, q := range j.s.Requests {
		if q.Status == events.Failed && q.CompleteNS >= j.r.FromNS && q.CompleteNS <= j.r.ToNS {
			j.r.Failed++
		}
	}
}

// reach is when a request reached a quantity, and the time it had taken.
type reach func(q *events.Request) (atNS int64, seconds float64, ok bool)

func firstToken(q *events.Request) (int64, float64, bool) {
	ns, ok := q.TTFT()
	return q.FirstNS, ns / 1e9, ok
}

func completion(q *events.Request) (int64, float64, bool) {
	return q.CompleteNS, float64(q.CompleteNS-q.IssuedNS) / 1e9, q.Status == events.Succeeded && q.CompleteNS >= q.IssuedNS
}

// quantity joins a quantity over the whole window.
func (j *joiner) quantity(src source, when reach) Quantity {
	side, from, to := j.server(src)
	if side.Family == "" {
		from, to = j.r.FromNS-1, j.r.ToNS // only what lies between polls leaves the first instant out
	}
	q := Quantity{FromNS: from, ToNS: to, Server: side}
	values := j.clients(&q, when)
	j.compare(&q)
	for i, p := range percentiles {
		c := quantile(values, p)
		q.Percentiles = append(q.Percentiles, Percentile{Q: p, Client: c, Server: side.p[i], Difference: minus(c, side.p[i])})
	}
	return q
}

// clients sums up the clients over (FromNS, ToNS] and returns the values in order.
func (j *joiner) clients(q *Quantity, when reach) []float64 {
	var values []float64
	for i := range j.s.Requests {
		if at, v, ok := when(&j.s.Requests[i]); ok && at > q.FromNS && at <= q.ToNS {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	q.Client.Count = len(values)
	q.Client.Mean = quotient(sum, float64(len(values)))
	return values
}

// compare sets what follows from both sides.
func (j *joiner) compare(q *Quantity) {
	q.Overhead = minus(q.Client.Mean, q.Server.Mean)
	c := float64(q.Client.Count)
	q.Agree = q.Server.Family != "" && math.Abs(c-q.Server.Count) <= j.o.Tolerance*max(c, q.Server.Count)
}

// edges counts the requests under way.
func (j *joiner) edges() {
	for i, at := range []int64{j.r.E2E.FromNS, j.r.E2E.ToNS} {
		e := Edge{AtNS: at}
		for k := range j.s.Requests {
			if q := &j.s.Requests[k]; q.IssuedNS <= at && (q.CompleteNS == 0 || q.CompleteNS > at) {
				e.Client++
			}
		}
		e.Server = j.underWay(i == 0)
		j.r.InFlight[i] = e
	}
}

// underWay adds up the gauges at the first or the last poll of the window.
func (j *joiner) underWay(first bool) *float64 {
	sum, any := 0.0, false
	for _, family := range j.e.underWay {
		for _, s := range j.series(family) {
			if s.Gauge == nil {
				continue
			}
			any = true
			if first {
				sum += s.Gauge.First
			} else {
				sum += s.Gauge.Last
			}
		}
	}
	if !any {
		return nil
	}
	return &sum
}

// slices joins each timeslice of the run.
func (j *joiner) slices() {
	j.r.Slices = []Slice{}
	at := map[int64]int{}
	add := func(s normalize.Slice) *Slice {
		i, ok := at[s.StartNS]
		if !ok {
			i = len(j.r.Slices)
			at[s.StartNS] = i
			j.r.Slices = append(j.r.Slices, Slice{StartNS: s.StartNS, EndNS: s.EndNS})
		}
		j.r.Slices[i].EndNS = max(j.r.Slices[i].EndNS, s.EndNS)
		return &j.r.Slices[i]
	}
	for _, q := range []struct {
		src source
		of  func(*Slice) *Quantity
	}{{j.e.ttft, func(s *Slice) *Quantity { return &s.TTFT }}, {j.e.e2e, func(s *Slice) *Quantity { return &s.E2E }}} {
		j.eachSlice(q.src, func(s normalize.Slice, sum, count float64) {
			to := &q.of(add(s)).Server
			to.Family = strings.Join(q.src.families, " + ")
			to.Count += count
			to.sum += sum
			to.Mean = quotient(to.sum, to.Count)
		})
	}
	slices.SortFunc(j.r.Slices, func(a, b Slice) int { return int(min(max(a.StartNS-b.StartNS, -1), 1)) })
	for i := range j.r.Slices {
		s := &j.r.Slices[i]
		for q, when := range map[*Quantity]reach{&s.TTFT: firstToken, &s.E2E: completion} {
			q.FromNS, q.ToNS = s.StartNS-1, s.EndNS-1 // [start, end)
			j.clients(q, when)
			j.compare(q)
		}
	}
}

// warnings say what to be careful about.
func (j *joiner) warnings() {
	warn := func(code, format string, args ...any) {
		j.r.Warnings = append(j.r.Warnings, metric.Warning{Code: code, Text: fmt.Sprintf(format, args...)})
	}
	if j.r.Requests != nil {
		j.r.Warnings = append(j.r.Warnings, j.r.Requests.notes(cmp.Or(j.r.Engine, "the server"))...)
	}
	for _, q := range []struct {
		name string
		*Quantity
	}{{"time to first token", &j.r.TTFT}, {"end-to-end latency", &j.r.E2E}} {
		switch {
		case j.r.Engine == "":
		case q.Server.Family == "":
			warn("no_family", "%s has no family for the %s", j.r.Engine, q.name)
		case !q.Agree:
			warn("counts_differ", "%s: the clients saw %d requests and the server %v: other clients, failed or unfinished "+
				"requests; the overhead is not exact", q.name, q.Client.Count, q.Server.Count)
		case q.Overhead != nil && *q.Overhead < 0:
			warn("negative_overhead", "%s: the clients are faster than the server by %.6f s: the clocks of the machines "+
				"differ, or the counts hide other requests", q.name, -*q.Overhead)
		}
	}
	if len(j.r.Others) > 0 {
		warn("other_engines", "families of %v were left out; --engine chooses", j.r.Others)
	}
	if n := len(j.run.Endpoints); n > 1 {
		warn("several_endpoints", "%d endpoints are taken together; the polls at the edges of the window are those of the "+
			"outermost", n)
	}
}

// quotient is a/b, nil when b is 0.
func quotient(a, b float64) *float64 {
	if v := a / b; b != 0 && !math.IsNaN(v) && !math.IsInf(v, 0) {
		return &v
	}
	return nil
}

func minus(a, b *float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	d := *a - *b
	return &d
}

// quantile interpolates linearly between order statistics, as numpy does; nil without values, which are sorted.
func quantile(sorted []float64, q float64) *float64 {
	if len(sorted) == 0 {
		return nil
	}
	at := q * float64(len(sorted)-1)
	i := int(at)
	v := sorted[i]
	if i+1 < len(sorted) {
		v += (at - float64(i)) * (sorted[i+1] - v)
	}
	return &v
}

package join

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/metric"
)

// Requests is clients and the records of servers, request by request.
type Requests struct {
	Coverage
	JoinedBy       map[string]int  `json:"joined_by"` // clients by the key that found their record
	Tokens         Tokens          `json:"output_tokens"`
	TTFT           Breakdown       `json:"ttft"`
	OutsideTTFT    Outside         `json:"outside_ttft"`
	E2E            EndToEnd        `json:"e2e"`
	OutsideE2E     Outside         `json:"outside_e2e"`
	Contradictory  int             `json:"contradictory"`
	Contradictions []Contradiction `json:"contradictions,omitempty"` // the first of them
	Clocks         []*Clock        `json:"clocks"`
	Tail           *Tail           `json:"tail"`

	m *matches
}

// single checks the anchor of the clients, and joins requests one by one.
func (j *joiner) single(ctx context.Context) (err error) {
	if j.o.Recording != nil {
		if err := j.anchored(ctx); err != nil {
			return err
		}
		if err := j.r.Observe(ctx, j.s, j.o.Recording); err != nil {
			return err
		}
	}
	if j.o.Records == nil {
		return nil
	}
	sources, err := j.o.Records.ServerSources(ctx)
	if err != nil || len(sources) == 0 {
		return err
	}
	j.r.Requests, err = byRequest(ctx, j.s, j.o.Records, j.r.FromNS, j.r.ToNS, j.o.ClockOptions)
	if err != nil {
		return err
	}
	j.r.Requests.Gained = j.gained()
	j.r.Exact, err = ExactTimes(ctx, j.run, j.o.Records, percentiles[:], j.r.Requests.placed)
	return err
}

// anchored holds the clients' times against the counters of servers.
func (j *joiner) anchored(ctx context.Context) (err error) {
	if j.r.Anchor, err = CounterAnchor(ctx, j.s, j.o.Recording, j.o.Catalog); err != nil {
		return err
	}
	w, err := j.r.Anchor.check()
	if w != nil {
		j.r.Warnings = append(j.r.Warnings, *w)
	}
	return err
}

// gained is what the engine's counter of successful requests gained in the window; nil where there is none.
func (j *joiner) gained() *float64 {
	sum, some := 0.0, false
	for i := range j.run.Metrics {
		m := &j.run.Metrics[i]
		f, ok := j.o.Catalog.Family(m.Name)
		if !ok || f.Canonical != "success" || f.Engine != j.e.name || m.Type != metric.Counter {
			continue
		}
		for k := range m.Series {
			if s := &m.Series[k]; s.Counter != nil && s.Counter.Defined && !j.run.Repeats(s) {
				sum, some = sum+s.Counter.Total, true
			}
		}
	}
	if !some {
		return nil
	}
	return &sum
}

// byRequest joins the clients of the window with records of servers.
func byRequest(ctx context.Context, s *events.Session, rec Records, fromNS, toNS int64, o ClockOptions) (*Requests,
	error) {
	m, err := match(ctx, s.Requests, rec, func(q *events.Request) bool {
		return q.IssuedNS >= fromNS && q.IssuedNS <= toNS
	})
	if err != nil {
		return nil, err
	}
	r := &Requests{Coverage: m.Coverage, JoinedBy: map[string]int{}, m: m}
	for i := range m.of {
		if m.of[i].parts > 0 {
			r.JoinedBy[m.bys[m.of[i].by]]++
		}
	}
	m.breakdown(r)
	if r.Clocks, err = m.clocks(o); err != nil {
		return nil, err
	}
	r.Tail = m.tail()
	return r, nil
}

// Refused is why the clock of the most requests is not brought together with that of the clients; "" when it is.
func (r *Requests) Refused() string {
	for _, c := range r.Clocks {
		if c.Refused != nil {
			return c.Refused.Text
		}
	}
	return ""
}

// placed tells when something was observed, on the clock of the clients.
func (r *Requests) placed(q *metric.ServerRequest, ns int64) (int64, bool) {
	c := r.m.clockOf[q.Source]
	if c == nil || c.How == "" {
		return ns, c != nil && c.Kind == metric.ServerUnix
	}
	if c.How != "facts" {
		return ns + c.exact, true
	}
	theta, _ := c.solved.Middle()
	lo, hi, _ := c.At(ns + theta)
	return ns + lo + (hi-lo)/2, true
}

// Row is a request of a client with what servers tell of it, or a record without a client. Times are in seconds, NaN
// where they are not known; instants are nanoseconds, 0 where they are not known.
type Row struct {
	Client *events.Request // nil of a record alone
	// JoinedBy is the key that found the records, Parts how many were folded.
	JoinedBy string
	Parts    int
	// ClientTTFT = Outside + Front + Queue + Prefill, ClientE2E = OutsideE2E + ServerE2E.
	ClientTTFT, Outside, Front, Queue, Prefill float64
	Decode, ServerTTFT                         float64
	ClientE2E, OutsideE2E, ServerE2E           float64
	Prompt, Cached, Output, Preempted          int // of the server, -1 where they are not known
	Place                                      metric.ServerPlace
	ServerArrival, ServerFirst, ServerFinish   int64   // on the server's clock
	OffsetLo, OffsetHi                         float64 // client - server when it was issued
	Contradictory                              bool
}

// Slowest returns the n rows of the longest time to the first token, those without one by latency behind them.
func (r *Requests) Slowest(n int) (out []*Row) {
	var all []int32
	for i := range r.m.of {
		if r.m.of[i].parts > 0 {
			all = append(all, int32(i))
		}
	}
	took := func(i int32) (first, end int64) {
		q := &r.m.clients[i]
		return q.FirstNS - q.IssuedNS, q.CompleteNS - q.IssuedNS
	}
	slices.SortStableFunc(all, func(a, b int32) int {
		f, e := took(a)
		g, h := took(b)
		return cmp.Or(cmp.Compare(max(g, 0), max(f, 0)), cmp.Compare(h, e))
	})
	for _, i := range all[:min(n, len(all))] {
		out = append(out, r.m.row(int(i)))
	}
	return out
}

func (m *matches) row(i int) *Row {
	s, q := &m.of[i], &m.clients[i]
	out := &Row{Client: q, Prompt: -1, Cached: -1, Output: -1, Preempted: -1}
	out.unknown()
	set := func(to *float64, ns int64) {
		if ns != unknownNS {
			*to = float64(ns) / 1e9
		}
	}
	if ns, ok := q.TTFT(); ok {
		out.ClientTTFT = ns / 1e9
	}
	if _, v, ok := completion(q); ok {
		out.ClientE2E = v
	}
	if s.parts == 0 {
		return out
	}
	out.JoinedBy, out.Parts, out.Place = m.bys[s.by], int(s.parts), m.places[s.place]
	p := m.ttft(i)
	_, end := m.e2e(i)
	set(&out.Outside, p.outside)
	set(&out.Front, p.front)
	set(&out.OutsideE2E, end)
	out.durations(s)
	out.Prompt, out.Cached, out.Output, out.Preempted = int(s.prompt), int(s.cached), int(s.output), int(s.preempted)
	out.ServerArrival, out.ServerFirst, out.ServerFinish = s.arrival, s.first, s.finish
	if lo, hi, ok := m.clockOf[int(s.source)].At(q.IssuedNS); ok {
		out.OffsetLo, out.OffsetHi = float64(lo)/1e9, float64(hi)/1e9
	}
	out.Contradictory = m.contradicts(i)
	return out
}

// unknown makes all times unknown.
func (x *Row) unknown() {
	for _, to := range []*float64{&x.ClientTTFT, &x.Outside, &x.Front, &x.Queue, &x.Prefill, &x.Decode, &x.ServerTTFT,
		&x.ClientE2E, &x.OutsideE2E, &x.ServerE2E, &x.OffsetLo, &x.OffsetHi} {
		*to = math.NaN()
	}
}

// durations sets what records tell.
func (x *Row) durations(s *served) {
	for to, ns := range map[*float64]int64{&x.Queue: s.queue, &x.Prefill: s.prefill, &x.Decode: s.decode,
		&x.ServerTTFT: s.ttft, &x.ServerE2E: s.e2e} {
		if ns >= 0 {
			*to = float64(ns) / 1e9
		}
	}
}

// notes are what to be careful about.
func (r *Requests) notes(engine string) (out []metric.Warning) {
	warn := func(code, format string, args ...any) { out = append(out, metric.Warnf(code, format, args...)) }
	if t := &r.Tokens; t.Differ*100 >= max(t.Requests, 1) {
		warn("tokens_differ", "output tokens differ in %d of %d requests: the clients counted %d, the server %d; the "+
			"client's may be retokenized text", t.Differ, t.Requests, t.Client, t.Server)
	}
	if r.Contradictory > 0 {
		warn("contradictory", "%d pairs cannot be: the server took longer than the client waited, as for %s (%s, %.3f ms); "+
			"they are in no mean. Is an id used twice, or the wrong file imported?", r.Contradictory, r.Contradictions[0].ID,
			r.Contradictions[0].What, r.Contradictions[0].Outside*1e3)
	}
	if r.Ambiguous > 0 {
		warn("ambiguous_ids", "%d records have an id that several clients have: joined with none", r.Ambiguous)
	}
	for _, c := range r.Clocks {
		switch {
		case c.Refused != nil:
			warn("clocks_refused", "no common time axis: %s", c.Refused.Text)
		case len(c.Dropped) > 0:
			warn("conflicting_dropped", "%d requests contradict the others and were left out of the clocks: %s", len(c.Dropped),
				strings.Join(c.Dropped[:min(len(c.Dropped), 5)], ", "))
		}
	}
	return append(out, r.coverage(engine)...)
}

// coverage warns of records that are missing.
func (r *Requests) coverage(engine string) (out []metric.Warning) {
	causes := "aborted requests have no record, the exporter's queue overflowed (set OTEL_BSP_MAX_QUEUE_SIZE=65536 " +
		"above 200 requests/s), sampling, or a file that was not read to its end"
	if g := r.Gained; g != nil && *g > 0 && float64(r.Records-r.Elsewhere) < 0.99**g {
		out = append(out, metric.Warnf("records_missing", "%d records of %.0f requests that %s counted: %s",
			r.Records-r.Elsewhere, *g, engine, causes))
	} else if r.Clients > 0 && float64(r.Joined) < 0.99*float64(r.Clients) {
		out = append(out, metric.Warnf("clients_unmatched", "%d of %d clients have no record: %s", r.WithoutRecord, r.Clients,
			causes))
	}
	if r.WithoutClient*100 > r.Records {
		out = append(out, metric.Warnf("records_unmatched", "%d of %d records are of no client of this run: other clients, "+
			"or ids that it did not record (requests join --help)", r.WithoutClient, r.Records))
	}
	return out
}

// Share is how many of the clients were joined.
func (r *Requests) Share() float64 {
	if r.Clients == 0 {
		return 0
	}
	return float64(r.Joined) / float64(r.Clients)
}

// String is the coverage in a line.
func (c *Coverage) String() string {
	text := fmt.Sprintf("%d of %d clients, %d of %d server records", c.Joined, c.Clients, c.JoinedRecords, c.Records)
	if c.Gained != nil {
		text += fmt.Sprintf(", counter gained %.0f", *c.Gained)
	}
	return text
}

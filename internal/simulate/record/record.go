// Package record records runs of simulated servers by a clock of its own, which does
// not wait: the same options give the same samples.
package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/scrape"
)

// latency is how long a simulated scrape takes.
const latency = 3 * time.Millisecond

// Options is a run to record.
type Options struct {
	Dir      string // exists
	Servers  []Server
	Start    time.Time
	Warmup   time.Duration
	Duration time.Duration // of profiling
	Interval time.Duration // between two scrapes of a server
	Marks    []metric.Mark // besides those of the warm-up and of profiling
	Requests bool          // also record the requests, as their clients would
	Tags     map[string]string
	Version  string   // of the program
	Command  []string // redacted command line
	// Sentinel is that of scrape.Options.
	Sentinel func(family string) func(v float64) bool
}

// Server is a simulated server.
type Server struct {
	Name, Profile    string
	Options          simulate.Options
	DownFrom, DownTo time.Duration // no process answers from DownFrom until DownTo
}

// Run is a run of simulated servers. Its clock is now.
type Run struct {
	o       Options
	now     time.Time
	db      *rundb.Writer
	servers []*server
	samples int64
}

// server is a server of a run and what polls it.
type server struct {
	spec    Server
	url     string
	server  *simulate.Server
	decoder *scrape.Decoder
	seq     uint64
	down    bool

	stored      int
	first, last time.Time // stored polls
}

// New starts the servers.
func New(o Options) (*Run, error) {
	r := &Run{o: o, now: o.Start}
	return r, r.build()
}

// Record records the run and returns how many samples it has.
func (r *Run) Record(ctx context.Context) (samples int64, err error) {
	manifest, err := r.create()
	if err != nil {
		return 0, err
	}
	err = r.poll(ctx)
	for _, m := range r.marks() {
		err = errors.Join(err, r.db.Mark(m))
	}
	for i, s := range r.servers {
		t := &manifest.Targets[i]
		t.Polls, t.Stored, t.First, t.Last = int(s.seq), s.stored, s.first, s.last
	}
	err = errors.Join(err, r.db.Close(ctx))
	if err == nil && r.o.Requests {
		err = r.recordRequests(ctx)
	}
	return r.samples, errors.Join(err, rundb.WriteManifest(r.o.Dir, manifest))
}

func (r *Run) build() error {
	for _, spec := range r.o.Servers {
		sim := spec.Options
		sim.Now, sim.KeepTruth = func() time.Time { return r.now }, r.o.Requests
		sv, err := simulate.New(spec.Profile, sim)
		if err != nil {
			return err
		}
		d, err := scrape.NewDecoder(scrape.Options{Sentinel: r.o.Sentinel})
		if err != nil {
			return err
		}
		if r.o.Requests && spec.DownTo > 0 {
			return fmt.Errorf("%s: --requests does not go with down=, which loses requests that nobody tells of", spec.Name)
		}
		r.servers = append(r.servers, &server{spec: spec, url: "http://" + spec.Name + ":8000" + sv.Path(),
			server: sv, decoder: d})
	}
	return nil
}

// marks are the phases of the run, before those of the caller.
func (r *Run) marks() []metric.Mark {
	at := func(offset time.Duration) int64 { return r.o.Start.Add(offset).UnixNano() }
	var out []metric.Mark
	if r.o.Warmup > 0 {
		out = append(out, metric.Mark{Name: metric.PhaseWarmup, AtNS: at(0), Kind: metric.MarkOwn})
	}
	out = append(out, metric.Mark{Name: metric.PhaseProfiling, AtNS: at(r.o.Warmup), Kind: metric.MarkOwn},
		metric.Mark{Name: metric.MarkEnd, AtNS: at(r.o.Warmup + r.o.Duration), Kind: metric.MarkOwn})
	return append(out, r.o.Marks...)
}

// create makes the recording and says what its manifest is to be.
func (r *Run) create() (rundb.Manifest, error) {
	m := rundb.Meta{ID: rundb.NewID(), Version: r.o.Version, Command: r.o.Command, Tags: r.o.Tags,
		OriginNS: r.o.Start.UnixNano(),
		Interval: r.o.Interval, Warmup: r.o.Warmup, Host: rundb.ThisHost().Hostname}
	out := rundb.Manifest{Version: m.Version, RunID: m.ID, Command: m.Command, Tags: m.Tags, Started: r.o.Start.UTC(),
		Ended: r.o.Start.Add(r.o.Warmup + r.o.Duration).UTC(),
		Host:  rundb.ThisHost(), Options: map[string]any{"simulated": true, "interval": r.o.Interval.String(),
			"duration": r.o.Duration.String(), "warmup": r.o.Warmup.String()}}
	db, err := rundb.Create(r.o.Dir, m, rundb.WriterOptions{})
	if err != nil {
		return out, err
	}
	r.db = db
	for _, s := range r.servers {
		t := metric.Target{Name: s.spec.Name, URL: s.url, Source: "prometheus"}
		out.Targets = append(out.Targets, rundb.NewManifestTarget(t))
		if _, err := db.AddTarget(t); err != nil {
			return out, errors.Join(err, db.Close(context.Background()))
		}
	}
	return out, nil
}

// poll polls all servers until the end of the run.
func (r *Run) poll(ctx context.Context) error {
	length := r.o.Warmup + r.o.Duration
	for at := time.Duration(0); ; at = min(at+r.o.Interval, length) {
		r.now = r.o.Start.Add(at)
		for i, s := range r.servers {
			if ctx.Err() != nil {
				return fmt.Errorf("record simulated run: %w after %v of it, which are kept in %s", ctx.Err(), at, r.o.Dir)
			}
			snapshot := s.scrape(at, r.now.UnixNano())
			snapshot.Target = i
			if snapshot.Outcome.Stored() {
				if s.stored++; s.stored == 1 {
					s.first = r.now.UTC()
				}
				s.last = r.now.UTC()
			}
			r.samples += int64(snapshot.Lines)
			if err := r.db.Record(snapshot); err != nil {
				return err
			}
		}
		if at == length {
			return nil
		}
	}
}

// scrape polls the server, or finds it down; one that was down is a new process.
func (s *server) scrape(at time.Duration, ns int64) *metric.Snapshot {
	out := &metric.Snapshot{Seq: s.seq, DueNS: ns, SentNS: ns, Duration: latency}
	s.seq++
	if s.spec.DownFrom <= at && at < s.spec.DownTo {
		s.down = true
		out.Outcome, out.Err = metric.ConnectError, "connection refused (simulated)"
		return out
	}
	if s.down {
		s.down = false
		s.server.Restart()
	}
	answer := httptest.NewRecorder()
	s.server.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, s.server.Path(), nil))
	out.FirstByteNS, out.Status, out.Body, out.BodyBytes = ns, answer.Code, answer.Body.Bytes(), int64(answer.Body.Len())
	if answer.Code != http.StatusOK {
		out.Outcome, out.Err = metric.HTTPError, http.StatusText(answer.Code)
		return out
	}
	s.decoder.Decode(out, scrape.Body{Bytes: out.Body, ContentType: answer.Header().Get("Content-Type")})
	return out
}

// drain is how long requests may go on that are under way at the end of a simulated run.
const drain = time.Hour

// recordRequests adds the requests of the run, as clients without a network between would have seen them: also the end
// of those that were under way when it ended.
func (r *Run) recordRequests(ctx context.Context) error {
	for _, s := range r.servers {
		s.server.SetRate(0)
	}
	r.now = r.now.Add(drain)
	var all []events.Request
	for _, s := range r.servers {
		all = append(all, s.requests()...)
	}
	slices.SortStableFunc(all, func(a, b events.Request) int { return cmp.Compare(a.IssuedNS, b.IssuedNS) })
	w, err := rundb.OpenEvents(ctx, r.o.Dir, rundb.EventWriterOptions{Source: "simulate"})
	if err != nil {
		return err
	}
	var list []metric.Event
	for i := range all {
		list = append(list, all[i].Events()...)
	}
	first := r.o.Start.UnixNano()
	err = errors.Join(w.Write(ctx, list, rundb.EventStats{Recorded: int64(len(list))}),
		w.Anchor(ctx, rundb.Clock{Source: "simulate", MonoNS: first, UnixNS: first}), w.Close(ctx))
	if err == nil {
		_, err = events.Rebuild(ctx, r.o.Dir, events.Rules{Lenient: true})
	}
	return err
}

// requests are those that the server has answered, or not.
func (s *server) requests() []events.Request {
	truth := s.server.Truth()
	var out []events.Request
	for i := range truth.Requests {
		q := &truth.Requests[i]
		at := func(d time.Duration) int64 { return truth.Origin.Add(d).UnixNano() }
		e := events.Request{ID: fmt.Sprintf("%s-%d", s.spec.Name, q.ID), IssuedNS: at(q.Arrival), CompleteNS: at(q.Last),
			Endpoint: s.url,
			Finish:   q.Reason, Status: events.Succeeded, Input: q.PromptTokens, Output: q.OutputTokens, AfterFirst: -1,
			Source: "usage"}
		if q.OutputTokens > 0 {
			e.FirstNS, e.LastNS = at(q.First), at(q.Last)
		}
		if q.Reason == "abort" || q.Reason == "error" {
			e.Status, e.Error = events.Failed, q.Reason
		}
		out = append(out, e)
	}
	return out
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/scrape"
)

// recordFlags are the flags of simulate that record a run of the servers by a
// clock of its own, instead of serving them.
type recordFlags struct {
	dir              string
	force            bool
	duration, warmup time.Duration
	interval         time.Duration
	start            string
	marks            []string
	tags             map[string]string
	requests         bool

	flags []string // as given, for the manifest
}

// simulatedLatency is how long a simulated scrape takes.
const simulatedLatency = 3 * time.Millisecond

// maxSimulatedPolls bounds what --record does: each poll costs as much as a real one.
const maxSimulatedPolls = 1_000_000

func (o *recordFlags) register(f *pflag.FlagSet) {
	f.StringVar(&o.dir, "record", "", "do not serve: record a run of the servers into this `directory`, by a clock "+
		"that does not wait")
	f.BoolVar(&o.force, "force", false, "with --record, replace the run in an existing directory")
	f.DurationVar(&o.duration, "duration", time.Minute, "with --record, profiling time")
	f.DurationVar(&o.warmup, "warmup", 0, "with --record, warm-up before it")
	f.DurationVar(&o.interval, "interval", time.Second, "with --record, time between two scrapes of a server")
	f.StringVar(&o.start, "start", "2026-01-01T00:00:00Z", "with --record, `time` at which the run begins")
	f.StringArrayVar(&o.marks, "mark", nil,
		"with --record, start a phase: `NAME=TIME`, an offset such as +90s from the start of the run, warm-up included "+
			"(repeatable)")
	f.StringToStringVar(&o.tags, "tag", nil, "with --record, run tag `K=V` (repeatable)")
	f.BoolVar(&o.requests, "requests", false, "with --record, also record the requests, as their clients would")
}

func (o *recordFlags) validate() (start time.Time, err error) {
	start, err = parseInstant(o.start, time.Now())
	switch {
	case err != nil:
		return start, usagef("--start: %w", err)
	case o.duration <= 0 || o.warmup < 0 || o.interval < time.Millisecond:
		return start, usagef("--duration %v, --warmup %v, --interval %v: want a duration above 0, a warm-up that is not "+
			"negative, an interval of at least 1ms", o.duration, o.warmup, o.interval)
	case (o.duration+o.warmup)/o.interval > maxSimulatedPolls:
		return start, usagef("--duration %v and --interval %v: that is more than %d scrapes", o.duration, o.interval,
			maxSimulatedPolls)
	}
	return start, nil
}

// simulatedRun records simulated servers. Its clock is now.
type simulatedRun struct {
	o       recordFlags
	start   time.Time
	now     time.Time
	db      *rundb.Writer
	servers []*simulatedServer
	stored  int64
}

// simulatedServer is a server of a simulated run and what polls it.
type simulatedServer struct {
	spec    simulateSpec
	url     string
	server  *simulate.Server
	decoder *scrape.Decoder
	seq     uint64
	down    bool

	stored      int
	first, last time.Time // stored polls
}

// recordServers records a run of the servers: the same options give the same
// samples.
func recordServers(ctx context.Context, o recordFlags, specs []simulateSpec, std stdio) error {
	start, err := o.validate()
	if err != nil {
		return err
	}
	r := &simulatedRun{o: o, start: start, now: start}
	if err := r.build(specs); err != nil {
		return err
	}
	marks, err := r.marks()
	if err != nil {
		return err
	}
	unlock, err := makeRunDir(o.dir, o.force)
	if err != nil {
		return err
	}
	defer unlock()
	manifest, err := r.create()
	if err != nil {
		return err
	}
	err = r.poll(ctx)
	for _, m := range marks {
		err = errors.Join(err, r.db.Mark(m))
	}
	for i, s := range r.servers {
		t := &manifest.Targets[i]
		t.Polls, t.Stored, t.First, t.Last = int(s.seq), s.stored, s.first, s.last
	}
	err = errors.Join(err, r.db.Close())
	if err == nil && o.requests {
		err = r.recordRequests(ctx)
	}
	if err = errors.Join(err, rundb.WriteManifest(o.dir, manifest)); err != nil {
		return err
	}
	fmt.Fprintf(std.err, "recorded %v of %d simulated servers, %d samples, into %s\nnext: scrapestat show %s\n",
		o.warmup+o.duration, len(specs), r.stored, o.dir, o.dir)
	return nil
}

// build starts the servers.
func (r *simulatedRun) build(specs []simulateSpec) error {
	for _, spec := range specs {
		sim := spec.sim
		sim.Now, sim.KeepTruth = func() time.Time { return r.now }, r.o.requests
		server, err := simulate.New(spec.profile, sim)
		if err != nil {
			return usagef("%w", err)
		}
		d, err := scrape.NewDecoder(scrape.Options{})
		if err != nil {
			return err
		}
		if r.o.requests && spec.downTo > 0 {
			return usagef("%s: --requests does not go with down=, which loses requests that nobody tells of", spec.name)
		}
		r.servers = append(r.servers, &simulatedServer{spec: spec, url: "http://" + spec.name + ":8000" + server.Path(),
			server: server, decoder: d})
	}
	return nil
}

// marks are the phases of the run.
func (r *simulatedRun) marks() ([]metric.Mark, error) {
	at := func(offset time.Duration) int64 { return r.start.Add(offset).UnixNano() }
	var out []metric.Mark
	if r.o.warmup > 0 {
		out = append(out, metric.Mark{Name: metric.PhaseWarmup, AtNS: at(0)})
	}
	out = append(out, metric.Mark{Name: metric.PhaseProfiling, AtNS: at(r.o.warmup)},
		metric.Mark{Name: metric.MarkEnd, AtNS: at(r.o.warmup + r.o.duration)})
	own, err := (&importOptions{marks: r.o.marks}).parseMarks(at(0))
	return append(out, own...), err
}

// create makes the recording and says what its manifest is to be.
func (r *simulatedRun) create() (rundb.Manifest, error) {
	command := redactArgs(append([]string{"scrapestat", "simulate"}, r.o.flags...))
	for _, s := range r.servers {
		command = append(command, s.spec.text)
	}
	m := rundb.Meta{ID: rundb.NewID(), Version: toolVersion(), Command: command, Tags: r.o.tags,
		OriginNS: r.start.UnixNano(),
		Interval: r.o.interval, Warmup: r.o.warmup, Host: rundb.ThisHost().Hostname}
	out := rundb.Manifest{Version: m.Version, RunID: m.ID, Command: m.Command, Tags: m.Tags, Started: r.start.UTC(),
		Ended: r.start.Add(r.o.warmup + r.o.duration).UTC(),
		Host:  rundb.ThisHost(), Options: map[string]any{"simulated": true, "interval": r.o.interval.String(),
			"duration": r.o.duration.String(), "warmup": r.o.warmup.String()}}
	db, err := rundb.Create(r.o.dir, m, rundb.WriterOptions{})
	if err != nil {
		return out, err
	}
	r.db = db
	for _, s := range r.servers {
		t := metric.Target{Name: s.spec.name, URL: s.url, Source: "prometheus"}
		out.Targets = append(out.Targets, rundb.NewManifestTarget(t))
		if _, err := db.AddTarget(t); err != nil {
			return out, errors.Join(err, db.Close())
		}
	}
	return out, nil
}

// poll polls all servers until the end of the run.
func (r *simulatedRun) poll(ctx context.Context) error {
	length := r.o.warmup + r.o.duration
	for at := time.Duration(0); ; at = min(at+r.o.interval, length) {
		r.now = r.start.Add(at)
		for i, s := range r.servers {
			if ctx.Err() != nil {
				return fmt.Errorf("record simulated run: %w after %v of it, which are kept in %s", ctx.Err(), at, r.o.dir)
			}
			snapshot := s.scrape(at, r.now.UnixNano())
			snapshot.Target = i
			if snapshot.Outcome.Stored() {
				if s.stored++; s.stored == 1 {
					s.first = r.now.UTC()
				}
				s.last = r.now.UTC()
			}
			r.stored += int64(snapshot.Lines)
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
func (s *simulatedServer) scrape(at time.Duration, ns int64) *metric.Snapshot {
	out := &metric.Snapshot{Seq: s.seq, DueNS: ns, SentNS: ns, Duration: simulatedLatency}
	s.seq++
	if s.spec.downFrom <= at && at < s.spec.downTo {
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

// drainSimulated is how long requests may go on that are under way at the end of
// a simulated run.
const drainSimulated = time.Hour

// recordRequests adds the requests of the run, as clients without a network
// between would have seen them: also the end of those that were under way when it
// ended.
func (r *simulatedRun) recordRequests(ctx context.Context) error {
	for _, s := range r.servers {
		s.server.SetRate(0)
	}
	r.now = r.now.Add(drainSimulated)
	var all []events.Request
	for _, s := range r.servers {
		all = append(all, s.requests()...)
	}
	slices.SortStableFunc(all, func(a, b events.Request) int { return cmp.Compare(a.IssuedNS, b.IssuedNS) })
	w, err := rundb.OpenEvents(ctx, r.o.dir, rundb.EventWriterOptions{Source: "simulate"})
	if err != nil {
		return err
	}
	var list []metric.Event
	for i := range all {
		list = append(list, all[i].Events()...)
	}
	first := r.start.UnixNano()
	err = errors.Join(w.Write(ctx, list, rundb.EventStats{Recorded: int64(len(list))}),
		w.Anchor(ctx, rundb.Clock{Source: "simulate", MonoNS: first, UnixNS: first}), w.Close(ctx))
	if err == nil {
		_, err = events.Rebuild(ctx, r.o.dir, events.Rules{Lenient: true})
	}
	return err
}

// requests are those that the server has answered, or not.
func (s *simulatedServer) requests() []events.Request {
	truth := s.server.Truth()
	var out []events.Request
	for i := range truth.Requests {
		q := &truth.Requests[i]
		at := func(d time.Duration) int64 { return truth.Origin.Add(d).UnixNano() }
		e := events.Request{ID: fmt.Sprintf("%s-%d", s.spec.name, q.ID), IssuedNS: at(q.Arrival), CompleteNS: at(q.Last),
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

// recordOnly and serveOnly are the flags of simulate that have a meaning on one
// side only.
func recordOnly() []string {
	return []string{"force", "duration", "warmup", "interval", "start", "mark", "tag", "requests"}
}

func serveOnly() []string {
	return []string{"listen", "grpc-listen", "metric-logs", "rotate-bytes", "redirect"}
}

// givenOf is the first of the flags that was given, or "".
func givenOf(cmd *cobra.Command, names []string) string {
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			return name
		}
	}
	return ""
}

// recordRun is simulate with --record.
func (o *simulateOptions) recordRun(cmd *cobra.Command, args []string, std stdio) error {
	if flag := givenOf(cmd, serveOnly()); flag != "" {
		return usagef("--%s is for a server: --record serves nothing", flag)
	}
	specs, err := parseSpecs(args, o.sim)
	if err != nil {
		return err
	}
	for i := range specs {
		if err := o.omni.apply(specs[i].profile, &specs[i].sim); err != nil {
			return err
		}
	}
	o.record.flags = givenFlags(cmd)
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return recordServers(ctx, o.record, specs, std)
}

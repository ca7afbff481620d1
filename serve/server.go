package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// Run is a run directory and the value of the label run of its series.
type Run struct{ Name, Dir string }

// The ways to lay runs over each other.
const (
	AlignNone      = "none"
	AlignStart     = "start"
	AlignProfiling = "profiling"
	AlignNow       = "now"
	AlignMark      = "mark:" // and the name of one
)

// Options says what is served. Runs and Window are needed.
type Options struct {
	Runs   []Run
	Labels map[string]string // of every series, in place of those of targets
	// Window returns the part of a run that a selector names, "" being its default; phase/N, and warmup its warm-up.
	Window func(ctx context.Context, r *rundb.Run, what string) (fromNS, toNS int64, err error)
	Align  string           // "" is none of one run, profiling of several
	Now    func() time.Time // nil is time.Now

	MaxSamples    int           // in memory of a query; 0 is 50,000,000
	Timeout       time.Duration // of a query; 0 is 60 s
	MaxConcurrent int           // queries at once, of which four times as many wait; 0 is 4
	MaxMemory     int64         // of columns, in bytes; 0 is 512 MiB
	Lookback      time.Duration // 0 is ten intervals of the runs, at least 5 s and at most 5 min
}

func (o *Options) defaults() {
	o.MaxSamples = cmp.Or(o.MaxSamples, 50_000_000)
	o.Timeout = cmp.Or(o.Timeout, time.Minute)
	o.MaxConcurrent = cmp.Or(o.MaxConcurrent, 4)
	o.MaxMemory = cmp.Or(o.MaxMemory, 512<<20)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Align == "" {
		o.Align = AlignNone
		if len(o.Runs) > 1 {
			o.Align = AlignProfiling
		}
	}
}

// UsageError is a request that has to be written differently: wrong PromQL, an unknown phase, two equal names.
type UsageError struct{ error }

// Unwrap returns what is wrong.
func (e *UsageError) Unwrap() error { return e.error }

func usage(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// Server answers queries over runs. It is safe for concurrent use. The caller must Close it.
type Server struct {
	o       Options
	store   *store
	engine  *promql.Engine
	parser  parser.Parser
	running chan struct{}
	waiting atomic.Int64
	windows struct { // of the first run
		sync.Mutex
		state fileState
		found map[string][2]int64
	}
}

// New opens the runs and aligns them. It reads no samples, but of a run of which the window has to be found.
func New(ctx context.Context, o Options) (*Server, error) {
	o.defaults()
	names := map[string]bool{}
	for _, r := range o.Runs {
		if names[r.Name] {
			return nil, usage("two runs are called %q: give one a name of its own with NAME=RUN", r.Name)
		}
		names[r.Name] = true
	}
	st, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	s := &Server{o: o, store: st, running: make(chan struct{}, o.MaxConcurrent),
		parser: parser.NewParser(parser.Options{EnableExtendedRangeSelectors: true})}
	if err := s.align(ctx); err != nil {
		st.close()
		return nil, err
	}
	s.engine = promql.NewEngine(promql.EngineOpts{MaxSamples: o.MaxSamples, Timeout: o.Timeout, Parser: s.parser,
		LookbackDelta: s.lookback(), EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() }})
	return s, nil
}

// Close ends serving. Queries must have ended.
func (s *Server) Close() error {
	s.store.close()
	return s.engine.Close()
}

func (s *Server) lookback() time.Duration {
	if s.o.Lookback > 0 {
		return s.o.Lookback
	}
	longest := time.Duration(0)
	for _, r := range s.store.runs {
		every := r.rec.Meta().Interval
		if every <= 0 {
			every = time.Minute // of an import nobody knows it
		}
		longest = max(longest, every)
	}
	return min(max(10*longest, 5*time.Second), 5*time.Minute)
}

// align shifts the runs.
func (s *Server) align(ctx context.Context) error {
	var first int64
	if s.o.Align == AlignNone {
		return nil
	}
	for i, r := range s.store.runs {
		at, err := s.instant(ctx, r)
		if err != nil {
			return err
		}
		if i == 0 {
			first = at
		}
		r.shiftMS = (first - at) / 1e6
	}
	if s.o.Align == AlignNow {
		last := int64(math.MinInt64)
		for _, r := range s.store.runs {
			_, to := r.span()
			last = max(last, to)
		}
		for _, r := range s.store.runs {
			r.shiftMS += s.o.Now().Truncate(time.Second).UnixMilli() - last
		}
	}
	return nil
}

// instant is that of a run which falls on those of the others.
func (s *Server) instant(ctx context.Context, r *run) (ns int64, err error) {
	switch name, mark := strings.CutPrefix(s.o.Align, AlignMark); {
	case mark:
		var known []string
		for _, m := range r.rec.Marks() {
			if m.Name == name {
				return m.AtNS, nil
			}
			known = append(known, m.Name)
		}
		return 0, usage("run %s has no mark %q; it has %q", r.Name, name, known)
	case s.o.Align == AlignStart:
		return r.rec.Meta().OriginNS, nil
	case s.o.Align == AlignProfiling || s.o.Align == AlignNow:
		ns, _, err = s.o.Window(ctx, r.rec, "")
		return ns, err
	}
	return 0, usage("unknown alignment %q (known: none, profiling, start, now, mark:NAME)", s.o.Align)
}

// Request is a query. Times are milliseconds since 1970 as served.
type Request struct {
	Expr string
	// AtMS is when an instant query is evaluated; nil is the end of the first run, or of the part that a variable names.
	AtMS *int64
	// Range asks for a value at each Step from Start to End.
	Range                bool
	StartMS, EndMS       int64
	Step                 time.Duration
	Timeout              time.Duration // 0 is that of the server
	Lookback             time.Duration
	expanded, usesWindow bool
}

// variable is $window, $warmup, $phase:NAME or $phase:NAME/2 in an expression.
var variable = regexp.MustCompile(`\$(window|warmup|phase:[^\]\s\[)(]+)`)

// expand replaces variables by ranges of the first run. It sets the time of an instant query that has none.
func (s *Server) expand(ctx context.Context, q *Request) error {
	found := variable.FindAllString(q.Expr, -1)
	if q.expanded = true; len(found) == 0 {
		return nil
	}
	r := s.store.runs[0]
	for _, name := range slices.Compact(slices.Sorted(slices.Values(found))) {
		what := map[string]string{"$window": "", "$warmup": "warmup"}[name]
		if phase, ok := strings.CutPrefix(name, "$phase:"); ok {
			what = "phase=" + phase
		}
		from, to, err := s.window(ctx, r, what)
		if err != nil {
			return &UsageError{fmt.Errorf("%s: %w", name, err)}
		}
		from, to = from/1e6, to/1e6
		q.usesWindow = true
		q.Expr = strings.ReplaceAll(q.Expr, name, strconv.FormatInt(to-from+1, 10)+"ms")
		if at := to + r.shiftMS; q.AtMS == nil {
			q.AtMS = &at
		} else if !q.Range && *q.AtMS != at && len(found) > 1 && !slices.Contains(found[:1], name) {
			continue // the first one decides
		}
	}
	return nil
}

// window finds a part of a run, once for each state of it.
func (s *Server) window(ctx context.Context, r *run, what string) (fromNS, toNS int64, err error) {
	s.windows.Lock()
	defer s.windows.Unlock()
	if s.windows.state != r.state || s.windows.found == nil {
		s.windows.state, s.windows.found = r.state, map[string][2]int64{}
	}
	w, ok := s.windows.found[what]
	if !ok {
		if w[0], w[1], err = s.o.Window(ctx, r.rec, what); err != nil {
			return 0, 0, err
		}
		if len(s.windows.found) < maxMatchers {
			s.windows.found[what] = w
		}
	}
	return w[0], w[1], nil
}

// Result is the answer to a query. It belongs to the caller.
type Result struct {
	value    parser.Value
	Warnings []string
	Infos    []string
}

// Empty reports whether there is no value.
func (r *Result) Empty() bool {
	switch v := r.value.(type) {
	case promql.Vector:
		return len(v) == 0
	case promql.Matrix:
		return len(v) == 0
	}
	return false
}

// maxExpr is the longest expression in bytes.
const maxExpr = 64 << 10

// maxPoints is how many points a series of an answer may have.
const maxPoints = 11_000

// errBusy is why a query was not tried.
var errBusy = errors.New("too many queries at once: try again, or raise --max-concurrent")

// Query evaluates an expression. Its error is a *UsageError, one of the engine, or of reading.
func (s *Server) Query(ctx context.Context, q Request) (*Result, error) {
	if len(q.Expr) > maxExpr {
		return nil, usage("the expression has %d bytes, at most %d are read", len(q.Expr), maxExpr)
	}
	if q.Range && q.Step <= 0 {
		return nil, usage("zero or negative query resolution step widths are not accepted: give a positive step")
	}
	if q.Range && (q.EndMS-q.StartMS)/max(q.Step.Milliseconds(), 1) > maxPoints {
		return nil, usage("exceeded maximum resolution of %d points per timeseries: use a longer step", maxPoints)
	}
	if q.Range && q.EndMS < q.StartMS {
		return nil, usage("end timestamp must not be before start time")
	}
	if err := s.expand(ctx, &q); err != nil {
		return nil, err
	}
	expr, err := s.parser.ParseExpr(q.Expr)
	if err != nil {
		return nil, &UsageError{err}
	}
	if q.Timeout > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, q.Timeout)
		defer cancel()
	}
	var out *Result
	err = s.reading(ctx, parser.ExtractSelectors(expr), func() (err error) {
		out, err = s.evaluate(ctx, &q)
		return err
	})
	return out, err
}

// reading waits for its turn and calls do with what the selectors need, and one state of all runs.
func (s *Server) reading(ctx context.Context, selectors [][]*labels.Matcher, do func() error) error {
	if s.waiting.Add(1) > int64(5*s.o.MaxConcurrent) {
		s.waiting.Add(-1)
		return errBusy
	}
	defer s.waiting.Add(-1)
	select {
	case s.running <- struct{}{}:
		defer func() { <-s.running }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := s.store.refresh(ctx, s.o.Now()); err != nil {
		return err
	}
	release, err := s.store.need(ctx, s.needed(selectors))
	defer release()
	if err != nil {
		return err
	}
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	return do()
}

// needed are the series of selectors.
func (s *Server) needed(selectors [][]*labels.Matcher) (out []*series) {
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	for _, m := range selectors {
		out = append(out, s.store.match(m)...)
	}
	return out
}

func (s *Server) evaluate(ctx context.Context, q *Request) (*Result, error) {
	opts := promql.NewPrometheusQueryOpts(false, q.Lookback)
	var query promql.Query
	var err error
	if q.Range {
		query, err = s.engine.NewRangeQuery(ctx, querier{s.store}, opts, q.Expr, time.UnixMilli(q.StartMS),
			time.UnixMilli(q.EndMS), q.Step)
	} else {
		at := q.AtMS
		if at == nil {
			_, end := s.store.runs[0].span()
			at = &end
		}
		query, err = s.engine.NewInstantQuery(ctx, querier{s.store}, opts, q.Expr, time.UnixMilli(*at))
	}
	if err != nil {
		return nil, &UsageError{err}
	}
	res := query.Exec(ctx)
	if res.Err != nil {
		query.Close()
		return nil, res.Err
	}
	out := &Result{value: res.Value} // not closed: its points would be used again
	out.Warnings, out.Infos = res.Warnings.AsStrings(q.Expr, 10, 10)
	for _, w := range s.store.notes() {
		out.Warnings = append(out.Warnings, w.Code+": "+w.Text)
	}
	if q.usesWindow {
		out.Warnings = append(out.Warnings, s.store.unseen(q)...)
	}
	return out, nil
}

// notes are what is doubtful of the names and the recordings, as far as they were read.
func (s *store) notes() []metric.Warning {
	out := slices.Clone(s.warnings)
	for _, r := range s.runs {
		for _, w := range r.rec.Warnings() {
			if w.Code == "recording_damaged" {
				out = append(out, w)
			}
		}
	}
	return out
}

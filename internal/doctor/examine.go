package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/catalog/pack"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// Options configures an examination. The zero value is the one of the command.
type Options struct {
	// MaxShare is the part of its time, in percent, that a target may spend on answering scrapes; 0 is 2.
	MaxShare float64
	// Interval is what a run would scrape at when nothing speaks against it; 0 is 333 ms.
	Interval time.Duration
	// Scrapes is how many scrapes the cost is taken from, and Pause the time between two; 0 is 5 and 200 ms.
	Scrapes int
	Pause   time.Duration
	// Catalog knows the engines; nil is the embedded one.
	Catalog *catalog.Catalog
}

func (o Options) withDefaults() Options {
	o.MaxShare = cmp.Or(o.MaxShare, 2)
	o.Interval = cmp.Or(o.Interval, 333*time.Millisecond)
	o.Scrapes = cmp.Or(o.Scrapes, 5)
	o.Pause = cmp.Or(o.Pause, 200*time.Millisecond)
	o.Catalog = cmp.Or(o.Catalog, catalog.Embedded())
	return o
}

// exam is an examination under way.
type exam struct {
	p       *scrape.Prober
	o       Options
	r       *Report
	first   *scrape.ProbeResult // the answer to the first question
	body    *scrape.ProbeResult // the first that brought samples, else nil
	path    string              // where that was; "" is the path of the target
	dict    metric.Schema       // of body
	engines []catalog.Engine
	// suspects are the servers one of which answers without metrics.
	suspects []*pack.Pack
	offset   []float64 // readings of the server's clock less ours, in ms
}

// Examine examines one target by its prober. t is how reports name it. It never fails: what went wrong is in the
// report. When ctx is done it ends soon, with what it has.
func Examine(ctx context.Context, t metric.Target, p *scrape.Prober, o Options) *Report {
	e := &exam{p: p, o: o.withDefaults(), r: &Report{Name: t.Name, URL: t.URL}}
	e.first = e.ask(ctx, "text", scrape.ProbeRequest{})
	e.r.Outcome, e.r.Status, e.r.Error = e.first.Outcome.String(), e.first.Status, e.text(e.first.Err)
	e.found(e.first, "")
	if e.body == nil {
		e.otherPath(ctx, t.URL)
	}
	if e.body == nil {
		e.identify(ctx)
	} else {
		e.describe()
		e.formats(ctx)
		e.versions(ctx)
		e.cost(ctx)
		e.processes(ctx)
	}
	e.skew()
	e.judge()
	return e.r
}

// ask asks one question and notes it.
func (e *exam) ask(ctx context.Context, what string, q scrape.ProbeRequest) *scrape.ProbeResult {
	reply := e.p.Ask(ctx, q)
	if !reply.Date.IsZero() {
		// The header has whole seconds: on average half a second was cut off.
		middle := reply.SentNS + int64(reply.Duration)/2
		e.offset = append(e.offset, float64(reply.Date.UnixNano()+5e8-middle)/1e6)
	}
	t := Attempt{What: what, URL: reply.URL, Outcome: reply.Outcome.String(), Status: reply.Status,
		ContentType: e.text(reply.ContentType),
		Format:      reply.Format, Encoding: e.text(reply.Encoding), WireBytes: reply.Wire, TookMS: millis(reply.Duration)}
	if reply.Outcome.Stored() && !q.Raw {
		t.Samples = reply.Lines
	}
	e.r.Tries = append(e.r.Tries, t)
	return reply
}

// found takes a reply as the body to judge, when it has samples or at least families.
func (e *exam) found(reply *scrape.ProbeResult, path string) {
	if !reply.Outcome.Stored() || len(reply.DictDelta.Families) == 0 {
		return
	}
	if e.dict.Extend(&reply.Snapshot) != nil {
		return // of our own decoder: never
	}
	e.body, e.path = reply, path
	e.r.Endpoint = reply.URL
	e.r.Collectable = reply.Lines > reply.Dropped()
}

const usualPath = "/metrics"

// otherPath tries the other known paths once each. A target of a path of its own has /metrics as the other.
func (e *exam) otherPath(ctx context.Context, address string) {
	if e.first.Status == 0 || e.first.Outcome == metric.Timeout {
		return // nobody answers
	}
	paths := e.paths()
	if !strings.HasSuffix(strings.TrimRight(before(address, "?"), "/"), usualPath) ||
		slices.ContainsFunc(paths, func(p string) bool { return strings.Contains(address, p) }) {
		paths = []string{usualPath}
	}
	for _, path := range paths {
		if e.found(e.ask(ctx, "path", scrape.ProbeRequest{Path: path}), path); e.body != nil {
			return
		}
	}
}

// paths are where servers have metrics beside the usual one.
func (e *exam) paths() (out []string) {
	for _, p := range e.o.Catalog.Servers() {
		out = append(out, p.Recognise.Paths...)
	}
	return out
}

func before(s, sep string) string {
	head, _, _ := strings.Cut(s, sep)
	return head
}

// describe fills in what the body says of itself.
func (e *exam) describe() {
	b := e.body
	e.r.ContentType, e.r.Format, e.r.BodyBytes, e.r.Samples = e.text(b.ContentType), b.Format, b.BodyBytes, b.Lines
	e.r.Families, e.r.Series, e.r.Models = len(e.dict.Families), len(e.dict.Series), modelsOf(&e.dict, e.text)
	seen := make([]bool, len(e.dict.Families))
	for i := range e.dict.Series {
		seen[e.dict.Series[i].Family] = true
	}
	for _, s := range seen {
		if !s {
			e.r.Empty++
		}
	}
	for _, d := range b.Drops {
		e.r.Dropped = append(e.r.Dropped, Drop{d.Reason, d.Lines, e.text(d.First)})
	}
	var names []string
	for i := range e.dict.Families {
		names = append(names, e.dict.Families[i].Name)
	}
	e.r.Known, e.r.Unknown = e.o.Catalog.Census(slices.Values(names))
	for i, name := range e.r.Unknown {
		e.r.Unknown[i] = e.text(name)
	}
	e.engines = e.o.Catalog.Engines(&e.dict)
	for _, g := range e.engines {
		e.r.Engines = append(e.r.Engines, Engine{g.ID, g.Name, e.text(g.Version), e.text(g.VersionFrom)})
	}
}

// formats asks once for each other format, and for compression.
func (e *exam) formats(ctx context.Context) {
	for _, what := range []string{"openmetrics", "protobuf"} {
		e.p.Close() // the next one connects anew, and shows how far the server is
		e.ask(ctx, what, scrape.ProbeRequest{Path: e.path, Protocols: []string{what}})
	}
	e.p.Close()
	e.ask(ctx, "gzip", scrape.ProbeRequest{Path: e.path, Compress: true})
}

// cost scrapes a few times in a row.
func (e *exam) cost(ctx context.Context) {
	var took []time.Duration
	last, changed, moved := e.body, 0, 0
	timer := time.NewTimer(e.o.Pause)
	defer timer.Stop()
	for range e.o.Scrapes {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(e.o.Pause)
		reply := e.p.Ask(ctx, scrape.ProbeRequest{Path: e.path})
		if !reply.Outcome.Stored() {
			e.r.add(Warning, "unsteady", "a scrape a moment later failed: "+e.text(reply.Err),
				"look again when the server is up; a run would count such scrapes as failed")
			return
		}
		// A connect can take longer than an answer on a busy machine.
		took = append(took, max(reply.Duration-reply.Distance, reply.Duration/2))
		if n := differing(last, reply); n > 0 {
			changed += n
			moved++
		}
		last = reply
	}
	slices.Sort(took)
	e.r.Cost = costOf(took[len(took)/2], float64(changed)/float64(len(took)), 2*moved < len(took), last.Lines, e.o,
		e.engines)
	e.r.Cost.Scrapes = len(took)
}

// differing is how many values of b are not those of a. Decoders that saw the same lines have the same slots; when
// they did not, what is longer counts too.
func differing(a, b *scrape.ProbeResult) int {
	x, y := a.Delta.Bits, b.Delta.Bits
	n := max(len(x), len(y)) - min(len(x), len(y))
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			n++
		}
	}
	return n
}

// skew is the middle of the readings of the other clock.
func (e *exam) skew() {
	if len(e.offset) == 0 {
		return
	}
	slices.Sort(e.offset)
	ms := math.Round(e.offset[len(e.offset)/2])
	e.r.SkewMS = &ms
}

// versions asks an engine for the version that its families do not tell. An engine inside another one is not asked: who
// would answer?
func (e *exam) versions(ctx context.Context) {
	if len(e.r.Engines) == 0 || e.r.Engines[0].Version != "" {
		return
	}
	g := &e.r.Engines[0]
	for _, p := range e.o.Catalog.Servers() {
		for _, q := range p.Recognise.Asks {
			if p.Name != g.ID || q.Version == "" || g.Version != "" {
				continue
			}
			reply := e.ask(ctx, "version", scrape.ProbeRequest{Path: q.Get, Raw: true})
			if v := str(jsonObject(reply.Said)[q.Version]); v != "" && reply.Status == 200 {
				g.Version, g.VersionFrom = e.text(v), q.Get
			}
		}
	}
}

// identify asks a server without metrics what it is, by paths that servers have, until one answers. Those that several
// have are asked last.
func (e *exam) identify(ctx context.Context) {
	if e.first.Status == 0 {
		return
	}
	of := map[string][]*pack.Pack{} // by path
	var paths []string
	for _, p := range e.o.Catalog.Servers() {
		for _, q := range p.Recognise.Asks {
			if q.Status != 0 && q.Status == e.first.Status && strings.Contains(string(e.first.Said), q.Says) {
				e.suspect(p)
				return
			}
			if q.JSON != "" && !slices.Contains(of[q.Get], p) {
				paths, of[q.Get] = append(paths, q.Get), append(of[q.Get], p)
			}
		}
	}
	slices.SortStableFunc(paths, func(a, b string) int { return len(of[a]) - len(of[b]) })
	for _, path := range slices.Compact(paths) {
		reply := e.ask(ctx, "identity", scrape.ProbeRequest{Path: path, Raw: true})
		if o := jsonObject(reply.Said); reply.Status == 200 && o != nil {
			if e.suspect(answering(of[path], path, o, e.isList())...); len(e.suspects) > 0 {
				g := &e.r.Engines[0]
				g.Version, g.VersionFrom = e.text(str(o["version"])), path
				return
			}
		}
	}
}

// answering are the servers that answer a path with such an object: those alone that have a JSON list in place of
// metrics where there is one.
func answering(packs []*pack.Pack, path string, o map[string]any, list bool) (out []*pack.Pack) {
	for _, wanted := range []bool{true, false} {
		for _, p := range packs {
			if len(out) == 0 || !slices.Contains(out, p) {
				if slices.ContainsFunc(p.Recognise.Asks, func(q pack.Ask) bool {
					return q.Get == path && q.JSON != "" && o[q.JSON] != nil && q.List == wanted && (list || !wanted)
				}) {
					out = append(out, p)
				}
			}
		}
		if wanted && len(out) > 0 {
			return out
		}
	}
	return out
}

// suspect takes servers for what is there, any one of them.
func (e *exam) suspect(packs ...*pack.Pack) {
	if len(packs) == 0 {
		return
	}
	var ids, names []string
	for _, p := range packs {
		ids, names = append(ids, p.Name), append(names, cmp.Or(p.Recognise.Name, p.Title))
	}
	e.suspects = packs
	e.r.Engines = []Engine{{ID: strings.Join(ids, "|"), Name: strings.Join(names, " or ")}}
}

// isList reports whether the first answer is a JSON list.
func (e *exam) isList() bool {
	return strings.HasPrefix(strings.TrimSpace(string(e.first.Body)), "[")
}

// jsonObject reads an object, or returns nil.
func jsonObject(b []byte) map[string]any {
	var o map[string]any
	if json.Unmarshal(b, &o) != nil {
		return nil
	}
	return o
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

// text makes one line of what a target sent, without its secrets.
func (e *exam) text(s string) string { return e.p.Text([]byte(s)) }

func millis(d time.Duration) float64 { return float64(d) / 1e6 }

// ExamineSource examines a target that is no exposition: it polls it once, and a few times more to see what that
// costs. It leaves the source open.
func ExamineSource(ctx context.Context, t metric.Target, src scrape.Source, o Options) *Report {
	o = o.withDefaults()
	r := &Report{Name: t.Name, URL: t.URL, Endpoint: t.URL, Format: t.Source, Finding: []Finding{}, Tries: []Attempt{}}
	var dict metric.Schema
	var took []time.Duration
	bits := map[uint32]uint64{}
	origin, changed := time.Now(), 0
	now := func() int64 { return origin.UnixNano() + int64(time.Since(origin)) }
	timer := time.NewTimer(o.Pause)
	defer timer.Stop()
	for i := range o.Scrapes + 1 {
		if i > 0 {
			timer.Reset(o.Pause)
			select {
			case <-ctx.Done():
				return r
			case <-timer.C:
			}
		}
		s := metric.Snapshot{}
		src.Poll(ctx, now, &s)
		if s.Outcome.Stored() && dict.Extend(&s) != nil {
			s.Outcome, s.Err = metric.NotPrometheus, "the source contradicts itself"
		}
		if i == 0 || !s.Outcome.Stored() {
			r.source(t.Source, &s)
		}
		if !s.Outcome.Stored() {
			return r
		}
		n := moved(bits, &s.Delta)
		if i > 0 {
			took = append(took, s.Duration)
			changed += n
		}
		r.Samples, r.Series, r.Families = max(r.Samples, s.Lines), len(dict.Series), len(dict.Families)
	}
	r.Models = modelsOf(&dict, texttab.Escape)
	for _, g := range o.Catalog.Engines(&dict) {
		r.Engines = append(r.Engines, Engine{g.ID, g.Name, g.Version, g.VersionFrom})
	}
	slices.Sort(took)
	r.Cost = costOf(took[len(took)/2], float64(changed)/float64(len(took)), false, r.Samples, o, nil)
	r.Cost.Scrapes = len(took)
	return r
}

// moved takes what a poll tells into the values by slot, and returns how many are other ones: some polls tell all.
func moved(bits map[uint32]uint64, d *metric.Delta) (n int) {
	for i, slot := range d.Slots {
		if before, ok := bits[slot]; !ok || before != d.Bits[i] {
			bits[slot] = d.Bits[i]
			n++
		}
	}
	return n
}

// source fills in how a poll of a source of that kind went.
func (r *Report) source(kind string, s *metric.Snapshot) {
	r.Outcome, r.Status, r.Error, r.BodyBytes = s.Outcome.String(), s.Status, s.Err, s.BodyBytes
	r.Collectable = s.Outcome.Stored()
	r.Tries = append(r.Tries, Attempt{What: kind, URL: r.URL, Outcome: r.Outcome, Status: s.Status,
		WireBytes: s.BodyBytes, Samples: s.Lines, TookMS: millis(s.Duration)})
	if !s.Outcome.Stored() {
		r.add(Error, r.Outcome, s.Err, "")
	}
	for _, w := range s.Warnings {
		r.add(Warning, w.Code, w.Text, "")
	}
}

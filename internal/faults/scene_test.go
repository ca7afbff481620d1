package faults_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/internal/badserver"
	"github.com/scrapestat/scrapestat/internal/faults"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/summary"
)

// scene is a run that was recorded of misbehaving targets, with everything that
// came of it. The six rules held.
type scene struct {
	t      *testing.T
	dir    string
	polls  [][]metric.Snapshot // by target; without samples
	run    *summary.Run
	server *badserver.Server // of play
}

// tee hands polls to a recording and keeps copies.
type tee struct {
	w     *rundb.Writer
	mu    sync.Mutex
	polls [][]metric.Snapshot
}

func (s *tee) Record(p *metric.Snapshot) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := *p
	kept.Body, kept.DictDelta, kept.Delta, kept.Exemplars = nil, metric.DictDelta{}, metric.Delta{}, nil
	kept.Drops, kept.Warnings = slices.Clone(p.Drops), slices.Clone(p.Warnings)
	s.polls[p.Target] = append(s.polls[p.Target], kept)
	return s.w.Record(p)
}

// secrets are in the header and the address of every target of a scene; rule 6 is
// that none is in anything written, whatever the server does with them.
var secrets = []string{"rule6-header-9f2c1e", "rule6-userinfo-77ab03"}

func withSecrets(targets []scrape.Target) []scrape.Target {
	targets = slices.Clone(targets)
	for i := range targets {
		h := targets[i].Header.Clone()
		if h == nil {
			h = http.Header{}
		}
		h.Set("X-Api-Token", secrets[0])
		targets[i].Header = h
	}
	return targets
}

// record polls each target n times: a baseline, boundaries and a final poll, as
// soon as one is done the next. between is called before each boundary; nil does
// nothing. Then it exports all formats and checks the rules.
func record(t *testing.T, targets []scrape.Target, n int, o scrape.Options, so summary.Options,
	between func(i int)) *scene {
	t.Helper()
	s := collect(t, targets, n, o, between)
	s.analyse(so)
	return s
}

// collect is record without what comes after it.
func collect(t *testing.T, targets []scrape.Target, n int, o scrape.Options, between func(i int)) *scene {
	t.Helper()
	s := &scene{t: t, dir: t.TempDir()}
	targets = withSecrets(targets)
	if o.Now == nil {
		o.Now = time.Now
	}
	origin := o.Now()
	w, err := rundb.Create(s.dir, metaAt(origin), rundb.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sink := &tee{w: w, polls: make([][]metric.Snapshot, len(targets))}
	for _, x := range targets {
		if _, err := w.AddTarget(x.Public()); err != nil {
			t.Fatal(err)
		}
	}
	o.Origin, o.Interval, o.MaxScrapeShare = origin, 1000*time.Hour, -1 // no tick but the boundaries
	c, err := scrape.New(targets, o, sink)
	if err != nil {
		t.Fatal(err)
	}
	stop, marked := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(stop)
		<-c.Ready()
		// Before the first poll, which is what is counted from: one behind it would have the next poll stand for its edge.
		marked <- w.Mark(metric.Mark{Name: metric.PhaseProfiling, AtNS: origin.UnixNano(), Kind: metric.MarkOwn})
		for i := 1; i < n-1; i++ {
			if between != nil {
				between(i)
			}
			c.Boundary(t.Context())
		}
	}()
	if err := c.Run(t.Context(), stop); err != nil {
		t.Fatal(err)
	}
	if err := <-marked; err != nil {
		t.Fatal(err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.polls = sink.polls
	return s
}

// analyse builds the result, writes all exports and checks the rules.
func (s *scene) analyse(so summary.Options) {
	s.t.Helper()
	r, err := rundb.Open(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Close()
	if s.run, err = summary.Build(s.t.Context(), []summary.Recording{r}, so); err != nil {
		s.t.Fatal(err)
	}
	if _, err := export.Write(s.t.Context(), s.dir, written(), s.run, []export.Recording{r},
		export.Options{}); err != nil {
		s.t.Fatal(err)
	}
	if err := faults.Check(s.t.Context(), faults.Evidence{Dir: s.dir, Formats: written(),
		Secrets: secrets}); err != nil {
		s.t.Error(err)
	}
}

// play polls a server with a script n times.
func play(t *testing.T, script badserver.Script, n int, o scrape.Options) *scene {
	t.Helper()
	srv, err := badserver.Start(badserver.Options{Script: script})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	s := record(t, []scrape.Target{{URL: "http://reader:" + secrets[1] + "@" + srv.Addr + "/metrics"}}, n, o,
		summary.Options{}, nil)
	s.server = srv
	return s
}

// playCase polls the server of a case of the catalogue.
func playCase(t *testing.T, id string, n int, o scrape.Options) *scene {
	t.Helper()
	script, err := badserver.Case(id)
	if err != nil {
		t.Fatal(err)
	}
	return play(t, script, n, o)
}

// playText polls a server that gives one body after the other.
func playText(t *testing.T, bodies ...string) *scene {
	t.Helper()
	var answers []badserver.Answer
	for _, b := range bodies {
		answers = append(answers, badserver.Answer{Type: "text/plain; version=0.0.4", Body: []byte(b)})
	}
	return play(t, badserver.Steps(false, answers...), len(bodies), scrape.Options{})
}

// outcomes checks how the polls of the first target ended, in order; text is in
// the error of the last one.
func (s *scene) outcomes(text string, want ...metric.Outcome) {
	s.t.Helper()
	var got []metric.Outcome
	for _, p := range s.polls[0] {
		got = append(got, p.Outcome)
	}
	last := s.polls[0][len(s.polls[0])-1]
	if !slices.Equal(got, want) || !strings.Contains(last.Err, text) || text == "" && last.Err != "" {
		s.t.Errorf("got %v, the last one %q; want %v, %q", got, last.Err, want, text)
	}
}

// all is n times an outcome.
func all(o metric.Outcome, n int) (out []metric.Outcome) {
	for range n {
		out = append(out, o)
	}
	return out
}

// warned checks that the first target has a warning of a code, once, that says
// text.
func (s *scene) warned(code, text string) {
	s.t.Helper()
	n := 0
	for _, w := range s.run.Endpoints[0].Warnings {
		if w.Code == code {
			n++
			if !strings.Contains(w.Text, text) {
				s.t.Errorf("warning %s says %q, want %q", code, w.Text, text)
			}
		}
	}
	if n != 1 {
		s.t.Errorf("%d warnings %s, want one; all: %v", n, code, s.run.Endpoints[0].Warnings)
	}
}

// dropped checks how many lines of the first target were dropped for a reason,
// and that the first one is named.
func (s *scene) dropped(reason string, lines int, text string) {
	s.t.Helper()
	for _, d := range s.run.Endpoints[0].Ledger.Dropped {
		if d.Reason == reason {
			if d.Lines != lines || !strings.Contains(d.First, text) {
				s.t.Errorf("dropped %+v, want %d lines, %q", d, lines, text)
			}
			return
		}
	}
	s.t.Errorf("nothing was dropped for %s, want %d lines; dropped: %v", reason, lines, s.run.Endpoints[0].Ledger.Dropped)
}

// metric returns a metric by name.
func (s *scene) metric(name string) *summary.Metric {
	s.t.Helper()
	for i := range s.run.Metrics {
		if s.run.Metrics[i].Name == name {
			return &s.run.Metrics[i]
		}
	}
	s.t.Fatalf("no metric %q in the result; have %v", name, s.names())
	return nil
}

func (s *scene) names() (out []string) {
	for _, m := range s.run.Metrics {
		out = append(out, m.Name)
	}
	return out
}

// total checks the increase of a counter of one series.
func (s *scene) total(name string, want float64, resets int) {
	s.t.Helper()
	m := s.metric(name)
	if len(m.Series) != 1 || m.Series[0].Counter == nil {
		s.t.Fatalf("%s has %d series of type %v, want one counter", name, len(m.Series), m.Type)
	}
	if c := m.Series[0].Counter; !c.Defined || c.Total != want || m.Series[0].Resets != resets {
		s.t.Errorf("%s: total %v (defined %v), %d resets; want %v, %d", name, c.Total, c.Defined, m.Series[0].Resets, want,
			resets)
	}
}

// lasts checks the last values of the gauges of a family, in the order of its series.
func (s *scene) lasts(name string, want ...float64) {
	s.t.Helper()
	var got []float64
	for _, x := range s.metric(name).Series {
		if x.Gauge == nil {
			s.t.Fatalf("%s is no gauge", name)
		}
		got = append(got, x.Gauge.Last)
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("%s: got %v, want %v", name, got, want)
	}
}

func metaAt(origin time.Time) rundb.Meta {
	return rundb.Meta{ID: "fault", Version: "test", OriginNS: origin.UnixNano(), Interval: time.Second}
}

// written are the formats that the rules know: AIPerf's, by whose names the files are found.
func written() []string { return []string{"json", "csv", "jsonl", "parquet"} }

package collect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/scrapestat/scrapestat/collect"
	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/events/proxy"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/source/promstore"
	"github.com/scrapestat/scrapestat/summary"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// target is a server whose gauge is 1.
func target(t *testing.T) scrape.Target {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "# TYPE up gauge\nup 1\n")
	}))
	t.Cleanup(srv.Close)
	out, err := scrape.ParseTarget("one=" + srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// options are those of a short run.
func options(t *testing.T) collect.Options {
	return collect.Options{Targets: []scrape.Target{target(t)}, Scrape: scrape.Options{Interval: 5 * time.Millisecond,
		MaxScrapeShare: -1}}
}

func open(t *testing.T, dir string, o collect.Options) *collect.Session {
	t.Helper()
	s, err := collect.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// told keeps what Events are told, as words.
type told struct {
	mu        sync.Mutex
	words     []string
	profiling chan struct{} // closed when that phase begins; nil tells nobody
	gone      chan bool     // of each target that goes or is back; nil tells nobody
}

func (e *told) add(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.words = append(e.words, fmt.Sprintf(format, args...))
}
func (e *told) TargetAdded(n int, t metric.Target) { e.add("added %d %s", n, t.Name) }
func (e *told) TargetGone(n int, gone bool) {
	e.add("gone %d %v", n, gone)
	if e.gone != nil {
		e.gone <- gone
	}
}
func (e *told) PhaseBegun(m metric.Mark) {
	e.add("phase %s", m.Name)
	if m.Name == metric.PhaseProfiling && e.profiling != nil {
		close(e.profiling)
	}
}
func (e *told) Warning(w metric.Warning)                { e.add("warning %s", w.Code) }
func (e *told) Message(text string)                     { e.add("message %s", text) }
func (e *told) Progress(phase string, _ collect.Totals) {}
func (e *told) Ended()                                  { e.add("ended") }

// A run has its phases, tells of them in order, and ends at the mark "end".
func TestPhases(t *testing.T) {
	dir, e := filepath.Join(t.TempDir(), "run"), &told{profiling: make(chan struct{})}
	o := options(t)
	o.Warmup, o.Events, o.Tags = 20*time.Millisecond, e, map[string]string{"k": "v"}
	o.Warnings = []metric.Warning{{Code: "odd", Text: "this is odd"}}
	o.CommandLine = func(targets []metric.Target) []string { return []string{"load", targets[0].Name} }
	s := open(t, dir, o)
	if err := s.Mark("bad\nname"); err == nil {
		t.Error("a mark with a control character was taken")
	}
	if err := s.MarkAt("late", s.Now()+int64(time.Hour)); err == nil ||
		!strings.Contains(err.Error(), "outside the recording") {
		t.Errorf("a mark in the future: %v", err)
	}
	go func() {
		<-s.Ready()
		<-e.profiling
		for _, name := range []string{"high", metric.MarkEnd} {
			if err := s.Mark(name); err != nil {
				t.Error(err)
			}
		}
	}()
	run, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"added 0 one", "phase warmup", "message this is odd", "phase profiling", "phase high", "phase end",
		"ended"}
	if got := without(e.words, "message this is odd"); !slices.Equal(got, without(want, "message this is odd")) ||
		!slices.Contains(e.words, want[2]) {
		t.Errorf("told %q, want %q", e.words, want)
	}
	if run.Totals.Stored < 2 || run.Totals.Dropped != 0 || run.Client != nil {
		t.Errorf("run %+v", run)
	}
	result, err := run.Analyse(t.Context(), summary.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := run.WriteManifest(result, nil); err != nil {
		t.Fatal(err)
	}
	m, err := rundb.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	if m.Targets[0].Stored != int(run.Totals.Stored) || m.Tags["k"] != "v" || m.Ended.IsZero() ||
		!slices.Equal(m.Command, []string{"load", "one"}) {
		t.Errorf("manifest %+v", m)
	}
	if !slices.ContainsFunc(m.Warnings, func(w metric.Warning) bool { return w.Code == "odd" }) {
		t.Errorf("warnings %v", m.Warnings)
	}
}

func without(words []string, word string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == word })
}

// A directory takes one recording at a time, and another run only where it may
// replace the first one.
func TestDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	open(t, dir, options(t))
	o := options(t)
	if _, err := collect.Open(t.Context(), dir, o); !errors.Is(err, rundb.ErrDirExists) {
		t.Errorf("a second run: %v", err)
	}
	o.Replace = []string{"export.json"}
	if _, err := collect.Open(t.Context(), dir, o); !errors.Is(err, rundb.ErrDirInUse) {
		t.Errorf("a second run that replaces: %v", err)
	}
}

// What cannot be recorded is refused, and leaves nothing open.
func TestRefused(t *testing.T) {
	for what, change := range map[string]func(*collect.Options){
		"interval": func(o *collect.Options) { o.Scrape.Interval = time.Nanosecond },
		"no stdin": func(o *collect.Options) { o.Client.Lines = "-" },
		"upstream": func(o *collect.Options) { o.Client.Proxy = &collect.ProxyOptions{Listen: "127.0.0.1:0"} },
		"listen": func(o *collect.Options) {
			o.Client.Proxy = &collect.ProxyOptions{Listen: "203.0.113.1:1",
				Options: proxy.Options{Upstream: "http://127.0.0.1:1"}}
		},
	} {
		o := options(t)
		o.Analysis = &summary.Options{}
		change(&o)
		var refused *collect.OptionError
		if _, err := collect.Open(t.Context(), filepath.Join(t.TempDir(), "run"), o); !errors.As(err, &refused) {
			t.Errorf("%s: %v, want an OptionError", what, err)
		}
	}
}

// The analysis beside the recording ends where the recorded one does.
func TestResult(t *testing.T) {
	o := options(t)
	polls := 0
	o.Analysis, o.OnPoll = &summary.Options{}, func(*metric.Snapshot) error { polls++; return nil }
	o.Duration = 50 * time.Millisecond
	s := open(t, filepath.Join(t.TempDir(), "run"), o)
	run, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	live, err := s.Result()
	if err != nil || s.Behind() {
		t.Fatal(err, s.Behind())
	}
	want, err := run.Analyse(t.Context(), summary.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := live.Metrics[0].Series[0].Samples, want.Metrics[0].Series[0].Samples; got != want ||
		int64(polls) != run.Totals.Polls {
		t.Errorf("%d samples and %d polls, want %d and %d", got, polls, want, run.Totals.Polls)
	}
}

// The run ends with its command, whose code it has; one that outlives the run is
// stopped, and one that cannot be found is refused with the code of a shell.
func TestCommand(t *testing.T) {
	if _, err := collect.NewCommand([]string{"/no/such/program"}, collect.CommandOptions{}); !isCode(err, 127) {
		t.Errorf("no such program: %v", err)
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := collect.NewCommand([]string{text}, collect.CommandOptions{}); !isCode(err, 126) {
		t.Errorf("a file that is no program: %v", err)
	}
	for _, c := range []struct {
		script   string
		duration time.Duration
		code     int
		stopped  bool
	}{{"exit 7", 0, 7, false}, {"kill -9 $$", 0, 137, false}, {"sleep 1000", 30 * time.Millisecond, 143, true}} {
		command, err := collect.NewCommand([]string{"sh", "-c", c.script},
			collect.CommandOptions{Out: io.Discard, Err: io.Discard})
		if err != nil {
			t.Fatal(err)
		}
		o := options(t)
		o.Command, o.Duration, o.Settle = command, c.duration, time.Millisecond
		if _, err := open(t, filepath.Join(t.TempDir(), "run"), o).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if command.Code != c.code || command.Stopped != c.stopped || command.Failure != nil {
			t.Errorf("%s: code %d, stopped %v, %v", c.script, command.Code, command.Stopped, command.Failure)
		}
	}
}

// All targets are polled when COMMAND ends, however far the next poll is: a window that ends there has all that came.
func TestPolledAtTheEnd(t *testing.T) {
	for _, settle := range []time.Duration{0, time.Hour} {
		var s *collect.Session
		asked := 0
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "# TYPE up gauge\nup 1\n")
			if asked++; asked == 2 && settle > 0 {
				s.Stop()
			}
		}))
		defer srv.Close()
		command, err := collect.NewCommand([]string{"sh", "-c", ":"}, collect.CommandOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s = open(t, filepath.Join(t.TempDir(), "run"), collect.Options{Command: command, Settle: settle,
			Targets: []scrape.Target{{URL: srv.URL + "/metrics"}}, Scrape: scrape.Options{Interval: time.Hour}})
		run, err := s.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		db, err := rundb.Open(run.Dir)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		var kinds []metric.Kind
		for p, err := range db.Snapshots(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, p.Kind)
		}
		want := []metric.Kind{metric.Baseline, metric.Boundary, metric.Final}
		if settle == 0 {
			want = slices.Delete(want, 1, 2)
		}
		if !slices.Equal(kinds, want) {
			t.Errorf("settle %v: polls %v, want %v", settle, kinds, want)
		}
	}
}

func isCode(err error, code int) bool {
	var refused *collect.CommandError
	return errors.As(err, &refused) && refused.Code == code
}

// A cancelled run ends at once and keeps what it has.
func TestAbort(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	dir := filepath.Join(t.TempDir(), "run")
	s := open(t, dir, options(t))
	go func() {
		<-s.Ready()
		cancel()
	}()
	if _, err := s.Run(ctx); !errors.Is(err, collect.ErrAborted) {
		t.Errorf("got %v, want ErrAborted", err)
	}
	r, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Meta().EndNS == 0 {
		t.Error("the recording was not closed")
	}
}

// A caller tells the run of its requests.
func TestClient(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "run"), options(t))
	c, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-s.Ready()
		c.Record(metric.Event{Sample: "a", Type: events.SampleIssued, AtNS: c.Now()})
		c.Record(metric.Event{Sample: "a", Type: events.SampleComplete, AtNS: c.Now()})
		c.Record(metric.Event{Sample: "b", Type: events.SampleIssued, AtNS: c.Now()})
		s.Stop()
	}()
	run, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := run.Client.String(), "requests: 2 (0 failed, 1 in flight), 3 events of the caller, 0 lines bad, "+
		"0 events lost"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := run.Client.Counts()["requests"]; n != 2 || run.Client.Lost() != 0 {
		t.Errorf("%d requests, %d lost", n, run.Client.Lost())
	}
}

// A receiver that refuses everything costs samples there, not in the run.
func TestRemoteWrite(t *testing.T) {
	receiver := httptest.NewServer(http.NotFoundHandler())
	defer receiver.Close()
	w, err := promstore.NewWriter(promstore.WriterOptions{URL: receiver.URL + "/write?token=secret", Retries: 1})
	if err != nil {
		t.Fatal(err)
	}
	o, e := options(t), &told{}
	o.RemoteWriter, o.Events, o.Duration = w, e, 50*time.Millisecond
	s := open(t, filepath.Join(t.TempDir(), "run"), o)
	s.AtEnd(func(context.Context) []metric.Warning { return []metric.Warning{{Code: "page_lost", Text: "x"}} })
	run, err := s.Run(t.Context())
	if err != nil || run.Totals.Stored == 0 {
		t.Fatal(err, run)
	}
	for _, code := range []string{"remote_write_lost", "page_lost"} {
		if !slices.Contains(e.words, "warning "+code) {
			t.Errorf("told %q, want %s among it", e.words, code)
		}
	}
}

// TestBlanks holds what a Go program records to what the catalog tells of values that mean there is none.
func TestBlanks(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "# TYPE DCGM_FI_DEV_MEMORY_TEMP gauge\nDCGM_FI_DEV_MEMORY_TEMP{gpu=\"0\"} 9223372036854775794\n")
	}))
	t.Cleanup(srv.Close)
	blank, err := scrape.ParseTarget(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	o := options(t)
	o.Targets, o.Duration, o.Analysis = []scrape.Target{blank}, 50*time.Millisecond, &summary.Options{}
	s := open(t, filepath.Join(t.TempDir(), "run"), o)
	if _, err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := s.Result()
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Metrics) > 0 || r.Endpoints[0].NonFinite["DCGM_FI_DEV_MEMORY_TEMP"] == 0 {
		t.Errorf("%d metrics, not finite %v", len(r.Metrics), r.Endpoints[0].NonFinite)
	}
}

package live_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/live"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

var update = flag.Bool("update", false, "rewrite the golden screens")

const hostile = "evil\x1b]52;c;cm0=\x07\x1b[2J\r\u202e"

// known is read once: the tests draw many screens.
var known = sync.OnceValues(func() (*catalog.Catalog, error) { return catalog.New() })

// fake is a run of two targets that grows by the same at each look.
type fake struct {
	looks, quits int
	err          error
	board        *live.Board
	none         bool // nothing is measured yet
}

func newFake() *fake {
	f := &fake{board: live.NewBoard([]metric.Target{{Name: "a", URL: "http://10.0.0.1:8000/metrics"},
		{URL: "http://10.0.0.2:8000/metrics"}, {Name: hostile, URL: "http://x"}})}
	for i := range 20 {
		at := int64(i) * 1e9
		f.board.Record(&metric.Snapshot{Target: 0, DueNS: at, SentNS: at + 2e6, FirstByteNS: at + 3e6,
			Duration: time.Duration(i+1) * time.Millisecond, Outcome: metric.OK, Lines: 1000})
		s := metric.Snapshot{Target: 1, DueNS: at, SentNS: at + 1e6, FirstByteNS: at + 2e6,
			Duration: 4 * time.Millisecond, Outcome: metric.Partial, Lines: 10,
			Drops: []metric.Drop{{Reason: "bad_syntax", Lines: 1}}}
		if i >= 17 {
			s = metric.Snapshot{Target: 1, DueNS: at, SentNS: at, Outcome: metric.ConnectError,
				Err: "connection refused " + hostile}
		}
		f.board.Record(&s)
	}
	f.board.Record(&metric.Snapshot{Target: 2, DueNS: 1, Outcome: metric.SkippedOverlap, Err: "still running"})
	return f
}

func (f *fake) options() live.Options {
	return live.Options{
		Board: f.board, Result: f.result, Quit: func() { f.quits++ }, In: strings.NewReader(""), Out: &bytes.Buffer{},
		Now: func() time.Time { return time.Unix(1000, 0) },
		Status: func() live.Status {
			return live.Status{Run: "runs/one", Phase: "profiling", Elapsed: 63 * time.Second, Remaining: 4 * time.Minute,
				News: []string{"target b came: " + hostile}}
		},
	}
}

func (f *fake) result() (*summary.Run, error) {
	f.looks++
	n := float64(f.looks)
	cat, err := known()
	if err = errors.Join(err, f.err); err != nil {
		return nil, err
	}
	run := &summary.Run{Options: summary.Options{Catalog: cat, Quantiles: []float64{0.5, 0.9, 0.99}},
		Endpoints: []summary.Endpoint{{Target: metric.Target{Name: "a"}},
			{Target: metric.Target{URL: "http://10.0.0.2:8000/metrics"}}, {Target: metric.Target{Name: hostile}}}}
	if f.none {
		run.Warnings = []metric.Warning{{Code: "x", Text: "the window has not begun"}}
		return run, nil
	}
	labels := metric.NewLabels(metric.Label{Name: "model_name", Value: "m" + hostile})
	derived := func(endpoint int, pack, name, unit string, q catalog.Category, num, den float64,
		l metric.Labels) summary.Derived {
		return summary.Derived{Endpoint: endpoint, Derived: catalog.Derived{Pack: pack, Name: name, Unit: unit,
			Labels: l, Value: num / den, Shown: num / den, Numerator: num, Denominator: den,
			HasParts: true, Headline: true, Category: q, Families: []string{"vllm:generation_tokens"}}}
	}
	for endpoint := range 2 {
		run.Derived = append(run.Derived, derived(endpoint, catalog.VLLMPack, "output_tok_s", "tokens/s",
			catalog.Throughput, n*n*100, n, labels))
	}
	missing := derived(-1, catalog.VLLMPack, "goodput", "requests/s", catalog.Latency, 0, 1, labels)
	missing.Status = catalog.Missing
	empty := derived(-1, catalog.VLLMPack, "hit_ratio", "ratio", catalog.Cache, 0, 0, labels)
	empty.Status, empty.Value, empty.Shown = catalog.ZeroDenominator, 0, 0
	run.Combined = []summary.FleetResult{{Derived: []summary.Derived{
		derived(-1, catalog.VLLMPack, "output_tok_s", "tokens/s", catalog.Throughput, n*n*200, n, labels), missing, empty,
		derived(-1, "sglang", "request_rate", "requests/s", catalog.Throughput, n*3, n, metric.Labels{}),
	}}}
	series := func(endpoint int, last float64) summary.Series {
		return summary.Series{Endpoint: endpoint, Labels: labels,
			Series: normalize.Series{Gauge: &normalize.Gauge{N: 1, Last: last}, LastNS: int64(n * 1e9)}}
	}
	run.Metrics = []summary.Metric{
		{Name: "e2e", Type: metric.Histogram, Unit: "seconds",
			Series: []summary.Series{{Series: normalize.Series{Histogram: &normalize.Histogram{Count: int64(n * 10),
				Sum: n * n}}}}},
		{Name: "jobs", Type: metric.Counter, Help: "Jobs" + hostile,
			Series: []summary.Series{{Labels: labels, Series: normalize.Series{Counter: &normalize.Counter{Defined: true,
				Total: n * 7}, LastNS: int64(n * 1e9)}}}},
		{Name: "vllm:num_requests_running", Type: metric.Gauge, Series: []summary.Series{series(0, n), series(1, 2*n)}},
	}
	run.Latencies = []summary.Latency{{ID: "ttft_s", Engine: "vllm",
		Aggregate: summary.Aggregate{Metric: 0, Labels: labels,
			Histogram: &normalize.Histogram{Count: int64(n * 10), Sum: n * n, Avg: n / 10}}}}
	return run, nil
}

// TestScreens holds the screens to golden files, and every line of them to the
// width, at sizes that people have and at some that nobody should.
func TestScreens(t *testing.T) {
	check := func(name string, width, height int, keys ...string) {
		t.Helper()
		got := live.RenderText(newFake().options(), width, height, keys...)
		path := filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
	const w = live.Wait
	check("engine-120x40", 120, 40, w, w, w)
	check("engine-80x24", 80, 24, w, w, w)
	check("engine-20x10", 20, 10, w, w, w)
	check("second-engine-80x24", 80, 24, w, w, "e")
	check("targets-120x40", 120, 40, "2")
	check("targets-80x24", 80, 24, "2", "down")
	check("targets-20x10", 20, 10, "2")
	check("families-120x40", 120, 40, w, w, "3", "down", "enter")
	check("families-80x24", 80, 24, w, w, "3")
	check("families-20x10", 20, 10, w, w, "3")
	check("help-80x24", 80, 24, "?")
	check("help-20x10", 20, 10, "?")

	for width := 1; width <= 140; width += 17 {
		for height := 1; height <= 50; height += 12 {
			for _, keys := range [][]string{{w}, {w, "2"}, {w, "3", "enter"}, {"?"}} {
				screen := live.RenderText(newFake().options(), width, height, keys...)
				lines := strings.Split(strings.TrimSuffix(screen, "\n"), "\n")
				if len(lines) > height {
					t.Fatalf("%dx%d %q: %d lines", width, height, keys, len(lines))
				}
				for _, line := range lines {
					if strings.ContainsAny(line, "\x1b\x07\r\u202e") {
						t.Fatalf("%dx%d %q: not escaped: %q", width, height, keys, line)
					}
					if width >= 20 && texttab.Width(line) > width {
						t.Fatalf("%dx%d %q: %d columns: %q", width, height, keys, texttab.Width(line), line)
					}
				}
			}
		}
	}
}

// TestKeys presses each key and looks for what it changes.
func TestKeys(t *testing.T) {
	check := func(want string, keys ...string) {
		t.Helper()
		if got := live.RenderText(newFake().options(), 100, 19,
			append([]string{live.Wait}, keys...)...); !strings.Contains(got, want) {
			t.Errorf("%q: want %q in\n%s", keys, want, got)
		}
	}
	const engine, second, targets, families, help = "vLLM (1 of 2)", "SGLang (2 of 2)", "SKIP", "FAMILY", "final scrapes"
	check(engine)
	check(targets, "2")
	check(families, "3")
	check(engine, "3", "1")
	check(targets, "tab")
	check(targets, "right")
	check(engine, "tab", "tab", "tab")
	check(families, "shift+tab")
	check(families, "left")
	check(second, "e")
	check(second, "E")
	check(engine, "e", "e")
	check("target a", "t")
	check("target evil", "T")
	check("target all 3", "t", "T")
	check("target http://10.0.0.2:8000/metrics", "t", "t")
	check("output_tok_s", "t") // of one target, from the same result
	check(help, "?")
	check(help, "h")
	check(engine, "?", "esc")
	check(engine, "?", "?")
	check("target all 3", "t", "esc")
	check(families, "f")
	check("jobs  counter", "f", "enter")
	check("jobs  counter", "3", "down", "enter")
	check("jobs  counter", "3", "j", "enter")
	check("e2e  histogram", "3", "j", "k", "enter")
	check("e2e  histogram", "3", "end", "up", "up", "enter")
	check("running  gauge", "3", "G", "enter")
	check("running  gauge", "3", "pgdown", "enter")
	check("e2e  histogram", "3", "end", "home", "enter")
	check("e2e  histogram", "3", "end", "g", "enter")
	check("e2e  histogram", "3", "end", "pgup", "enter")
	check("running  gauge", "F", "enter")
	check("SO FAR", "f", "enter", "esc")
	check("target http://10.0.0.2:8000/metrics", "2", "enter") // the failing one is first
	check("q abort", "q")
	check(engine, "x", "ctrl+z", "")

	f := newFake()
	live.RenderText(f.options(), 80, 24, "q", "ctrl+c")
	if f.quits != 2 {
		t.Errorf("q and ctrl+c: quit was called %d times", f.quits)
	}
}

// TestTrends: what is now is what was gained since the last look, and a trend is
// drawn of it.
func TestTrends(t *testing.T) {
	screen := live.RenderText(newFake().options(), 100, 30, live.Wait, live.Wait)
	// Tokens are 200 n² in n seconds: in the third one 200 (9 - 4).
	for _, want := range []string{"output_tok_s  600 tokens/s  1,000 tokens/s  ▅█",
		"running                                  9  ▃▆█"} {
		if !strings.Contains(screen, want) {
			t.Errorf("want %q in\n%s", want, screen)
		}
	}
}

// TestTrouble checks that trouble is named where numbers would be.
func TestTrouble(t *testing.T) {
	check := func(want string, change func(*fake, *live.Options)) {
		t.Helper()
		f := newFake()
		o := f.options()
		change(f, &o)
		if got := live.RenderText(o, 100, 30, live.Wait); !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
	check("the analysis has ended: broken", func(f *fake, _ *live.Options) { f.err = errors.New("broken") })
	check("the window has not begun", func(f *fake, _ *live.Options) { f.none = true })
	check("when the warm-up has ended", func(f *fake, o *live.Options) {
		f.none, o.Status = true, func() live.Status { return live.Status{Phase: metric.PhaseWarmup} }
	})
	check("no analysis; press 2", func(_ *fake, o *live.Options) { o.Result = nil })
	check("no keys: stdin is no terminal", func(_ *fake, o *live.Options) { o.In = nil })
	check("could not follow", func(_ *fake, o *live.Options) {
		o.Status = func() live.Status { return live.Status{Behind: true} }
	})
	check("until the command ends", func(_ *fake, o *live.Options) {
		o.Status = func() live.Status { return live.Status{Remaining: -1, Until: "until the command ends"} }
	})
	check("profiling, ending", func(_ *fake, o *live.Options) {
		o.Status = func() live.Status { return live.Status{Phase: "profiling", Ending: true} }
	})
	check("gone", func(f *fake, _ *live.Options) { f.board.Gone(0, true) })
	check("waiting", func(f *fake, _ *live.Options) { f.board.AddTarget(metric.Target{Name: "late"}) })
}

// TestManyTargets scrolls through 500 targets of which one fails.
func TestManyTargets(t *testing.T) {
	f := newFake()
	f.board = live.NewBoard(nil)
	for i := range 500 {
		f.board.AddTarget(metric.Target{Name: fmt.Sprint("t", i)})
		f.board.Record(&metric.Snapshot{Target: i, SentNS: 1, Outcome: metric.OK})
	}
	f.board.Record(&metric.Snapshot{Target: 400, SentNS: 1, Outcome: metric.Timeout, Err: "too slow"})
	first := live.RenderText(f.options(), 100, 30, "2")
	last := live.RenderText(f.options(), 100, 30, "2", "end")
	if !strings.Contains(first, "FAILED  t400") || strings.Contains(first, "t499") ||
		!strings.Contains(last, "t499") || !strings.Contains(last, "all 500") {
		t.Errorf("first\n%slast\n%s", first, last)
	}
	if got := live.RenderText(f.options(), 100, 30); !strings.Contains(got, "more: press 2") {
		t.Errorf("no word on hidden targets in\n%s", got)
	}
}

// drawn is a terminal that stops the view when a text is on it.
type drawn struct {
	bytes.Buffer
	until string
	stop  context.CancelFunc
}

func (d *drawn) Write(p []byte) (int, error) {
	n, err := d.Buffer.Write(p)
	if strings.Contains(d.String(), d.until) {
		d.stop()
	}
	return n, err
}

// TestRun draws without a terminal: it enters the second screen, and leaves it
// when the context is done; after a panic too.
func TestRun(t *testing.T) {
	check := func(status func() live.Status, wantErr bool) string {
		t.Helper()
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		out := drawn{until: "output_tok_s", stop: stop}
		o := newFake().options()
		o.In, o.Out, o.Env, o.Width, o.Height = nil, &out, []string{"TERM=xterm-256color"}, 80, 24
		if status != nil {
			o.Status, out.until = status, "\x00"
		}
		if err := live.Run(ctx, o); (err != nil) != wantErr {
			t.Errorf("error: %v", err)
		}
		const enter, leave, cursor = "\x1b[?1049h", "\x1b[?1049l", "\x1b[?25h"
		if s := out.String(); strings.Count(s, enter) != 1 || strings.LastIndex(s, leave) < strings.Index(s, enter) ||
			strings.LastIndex(s, cursor) < strings.LastIndex(s, enter) {
			t.Errorf("the screen is not left: %q", s)
		}
		return out.String()
	}
	if s := check(nil, false); !strings.Contains(s, "output_tok_s") {
		t.Errorf("no quantity in %q", s)
	}
	n := 0
	check(func() live.Status {
		if n++; n > 1 {
			panic("broken view")
		}
		return live.Status{}
	}, true)
}

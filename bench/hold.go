package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/scrapestat/scrapestat/internal/faults"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// What follows measures the goals of docs/reliability.md that need a real load: H1
// the load held, H2 many slow targets, H3 the effect on what is observed, H4 the
// end of a run, H5 the size of its data; "go run . hold" all of them. Each leaves a
// line for that page.

// figures keeps lines for docs/reliability.md, as the long runs of the tests do.
type figures struct{ *report }

func (f figures) Logf(format string, args ...any)   { f.say(format, args...) }
func (f figures) Errorf(format string, args ...any) { f.say(format, args...) }
func (f figures) Failed() bool                      { return false }
func (f figures) Helper()                           {}

// keep leaves a line that ends in the verdict of the rows added since the first.
func (r *report) keep(c config, name, text string, first int) {
	verdict, judged := "met", false
	for _, w := range r.rows[first:] {
		if judged = judged || w.must != 0; w.must != 0 && !w.holds(w.must) {
			verdict = "NOT MET: " + w.what
		}
	}
	if text += "; load average of the machine " + loadAverage(); judged {
		text += ": " + verdict
	}
	faults.Figure(figures{r}, "load-"+name, text,
		fmt.Sprintf("(cd bench && go run . -rounds %d -seconds %d hold)", c.rounds, c.seconds))
}

// keeping is how the polls of a run kept to their schedule. The first quarter of
// the run does not count for that, as in the other measurements: learning the
// first bodies is work that is done once. Nor do the last polls, which have no
// place in the schedule: all targets are asked at once when a run ends.
type keeping struct {
	scheduled, recorded int             // polls of the whole run; the same, or some have no outcome
	judged, starved     int             // polls that count, and those that do not as the host took the processors away
	starvedLate         int             // of the latter, those that started more than 20 ms late
	started             []time.Duration // those of them that were sent, after they were due, in ascending order
	failed              map[metric.Outcome]int
}

// within is the share of the polls that started by d after they were due.
func (k keeping) within(d time.Duration) float64 {
	n, _ := slices.BinarySearch(k.started, d+1)
	return float64(n) / float64(max(1, k.judged))
}

// unjudged says what does not count.
func (k keeping) unjudged() string {
	return fmt.Sprintf("%d more due while the host took the processors away, of which %d started more than 20 ms late", k.starved, k.starvedLate)
}

func (k keeping) quantile(q float64) time.Duration {
	if len(k.started) == 0 {
		return 0
	}
	return k.started[min(len(k.started)-1, int(q*float64(len(k.started))))]
}

// readKeeping reads the schedule of a recording of so long; only targets that take
// counts, and polls that were due while the machine was ours.
func readKeeping(ctx context.Context, dir string, length time.Duration, host *witness, counts func(target int) bool) (keeping, error) {
	k := keeping{failed: map[metric.Outcome]int{}}
	run, err := rundb.Open(dir)
	if err != nil {
		return k, err
	}
	defer run.Close()
	from := run.Meta().OriginNS
	for _, m := range run.Marks() {
		if m.Name == metric.PhaseProfiling {
			from = m.AtNS + int64(length/4)
		}
	}
	for i := range run.Targets() {
		if !counts(i) {
			continue
		}
		next := 0 // number of the poll to come
		for s, err := range run.Snapshots(ctx, i) {
			if err != nil {
				return k, err
			}
			next = int(s.Seq) + 1
			k.recorded++
			if s.DueNS < from || s.Kind != metric.Periodic {
				continue
			}
			if host.stole(s.DueNS) {
				k.starved++
				if s.SentNS-s.DueNS > int64(20*time.Millisecond) {
					k.starvedLate++
				}
				continue
			}
			k.judged++
			if s.Outcome != metric.OK {
				k.failed[s.Outcome]++
			}
			if s.SentNS > 0 {
				k.started = append(k.started, time.Duration(max(0, s.SentNS-s.DueNS)))
			}
		}
		k.scheduled += next
	}
	slices.Sort(k.started)
	return k, nil
}

// held is one run of our collector on its own.
type held struct {
	cost
	keeping
	dir  string
	host *witness
}

// hold runs collect on all processors, with the options given, and reads back what
// it recorded. The recording is the caller's to remove.
func hold(ctx context.Context, c config, urls []string, every time.Duration, counts func(target int) bool) (held, error) {
	bin, err := build(ctx, c)
	if err != nil {
		return held{}, err
	}
	dir, err := os.MkdirTemp(c.work, "hold-")
	if err != nil {
		return held{}, fmt.Errorf("make directory: %w", err)
	}
	name, args, err := oursFor(bin).command(dir, urls, every, time.Duration(c.seconds)*time.Second)
	if err != nil {
		return held{}, err
	}
	h := held{dir: filepath.Join(dir, "run"), host: watchHost()}
	p, err := start(ctx, c, -1, name, args...)
	if err == nil {
		h.cost, err = p.wait()
	}
	h.host.end()
	if err != nil {
		return h, err
	}
	h.keeping, err = readKeeping(ctx, h.dir, time.Duration(c.seconds)*time.Second, h.host, counts)
	return h, err
}

func everyTarget(int) bool { return true }

// holdLoad polls 100 targets of 1,380 samples three times a second: H1.
func holdLoad(ctx context.Context, c config, r *report) error {
	const targets = 100
	f, err := startFleet(ctx, c, targets, "-extra", "212")
	if err != nil {
		return err
	}
	defer f.process.kill()
	h, err := hold(ctx, c, f.urls(), interval, everyTarget)
	if err != nil {
		return err
	}
	defer os.RemoveAll(filepath.Dir(h.dir))
	first := len(r.rows)
	cores := h.cpu.Seconds() / h.wall.Seconds()
	share := 100 * h.within(20*time.Millisecond)
	r.add(row{goal: "H1", what: "polls without an outcome", ours: one(float64(h.scheduled - h.recorded)), value: float64(h.scheduled - h.recorded), must: 0.5})
	r.add(row{goal: "H1", what: "started within 20 ms of schedule", unit: "%", ours: one(share), value: share, must: 99.9, atLeast: true,
		note: fmt.Sprintf("p99 %v, worst %v, not ok: %v, %s, load average %s", h.quantile(0.99), h.quantile(1), h.failed, h.unjudged(), loadAverage())})
	r.add(row{goal: "H1", what: "peak memory", unit: "MiB", ours: one(float64(h.rss) / (1 << 20)), value: float64(h.rss) / (1 << 20), must: 512})
	r.add(row{goal: "H1", what: "processor", unit: "cores", ours: one(cores), value: cores, must: 1.4})
	r.keep(c, "held", fmt.Sprintf("%d targets of %d samples every %v for %d s: %d polls, %d without an outcome; after the first quarter %d of %d not ok, %.2f %% started within 20 ms of schedule (p99 %v), %s, peak %.0f MiB, %.2f cores",
		targets, f.samples, interval, c.seconds, h.scheduled, h.scheduled-h.recorded, total(h.failed), h.judged, share, h.quantile(0.99).Round(10*time.Microsecond), h.unjudged(), float64(h.rss)/(1<<20), cores), first)
	return nil
}

func total(counts map[metric.Outcome]int) (n int) {
	for _, v := range counts {
		n += v
	}
	return n
}

// holdSlow polls 1,000 targets every 5 s of which each tenth takes a connection and
// never answers: H2.
func holdSlow(ctx context.Context, c config, r *report) error {
	const targets, every = 1000, 5 * time.Second
	c.seconds = min(c.seconds, 60)
	f, err := startFleet(ctx, c, targets)
	if err != nil {
		return err
	}
	defer f.process.kill()
	holes, err := startSelf(ctx, c, c.other, "serve-holes")
	if err != nil {
		return err
	}
	defer holes.kill()
	address, err := holes.line()
	if err != nil {
		return fmt.Errorf("start black holes: %w", err)
	}
	isHole := func(target int) bool { return target%10 == 9 }
	urls := f.urls()
	for i := range urls {
		if isHole(i) {
			urls[i] = fmt.Sprintf("http://%s/t%d/metrics", address[:len(address)-1], i)
		}
	}
	h, err := hold(ctx, c, urls, every, func(target int) bool { return !isHole(target) })
	if err != nil {
		return err
	}
	defer os.RemoveAll(filepath.Dir(h.dir))
	black, err := readKeeping(ctx, h.dir, time.Duration(c.seconds)*time.Second, h.host, isHole)
	if err != nil {
		return err
	}
	first := len(r.rows)
	p99 := float64(h.quantile(0.99)) / float64(time.Millisecond)
	r.add(row{goal: "H2", what: "1,000 targets every 5 s, each tenth a black hole: the others start late by, p99", unit: "ms", ours: one(p99), value: p99, must: 50,
		note: fmt.Sprintf("worst %v; %d polls of them, not ok: %v, %s; %d of black holes: %v", h.quantile(1), h.judged, h.failed, h.unjudged(), black.judged, black.failed)})
	r.add(row{goal: "H2", what: "polls without an outcome", ours: one(float64(h.scheduled + black.scheduled - h.recorded - black.recorded)),
		value: float64(h.scheduled + black.scheduled - h.recorded - black.recorded), must: 0.5})
	r.keep(c, "slow", fmt.Sprintf("%d targets every %v for %d s, each tenth a black hole: after the first quarter the others started late by %.2f ms (p99), %v (worst), %d of their %d polls not ok, %s",
		targets, every, c.seconds, p99, h.quantile(1).Round(10*time.Microsecond), total(h.failed), h.judged, h.unjudged()), first)
	return nil
}

// serveHoles is the child process that takes connections and never answers.
func serveHoles(ctx context.Context, _ []string, out io.Writer) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	fmt.Fprintln(out, ln.Addr())
	var conns sync.WaitGroup
	defer conns.Wait()
	return accept(ln, &conns, func(c net.Conn) {
		_, _ = io.Copy(io.Discard, c) // until the other side gives up
	})
}

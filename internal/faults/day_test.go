package faults_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/internal/faults"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/summary"
)

var (
	dayHours    = flag.Int("day.hours", 24, "simulated `hours` of case D12")
	dayInterval = flag.Duration("day.interval", 2*time.Minute,
		"simulated `time` between polls in case D12; the goal is 333ms")
)

const (
	dayTargets = 10
	// Each server starts anew so often, not in the instant of a poll.
	dayRestart = 10*time.Minute + 137*time.Microsecond
	dayReading = 15*time.Minute + 137*time.Millisecond
	// What JSON and CSV have of a target: 41 kB, of that 100 gaps in full and 143 restarts, of 1,000 at most.
	dayExports = 48_000
)

// day records a simulated day of ten servers over real HTTP, in memory: some answers
// are faults, and every server restarts every ten minutes. After the first hour
// memory stays within 5 %, descriptors and goroutines stay; nothing is lost; and the
// exports have no list that grows with the run. go test polls every two minutes, and
// each third answer is a fault; the long form polls three times a second, and each
// tenth is. The soak in real time is TestSoak.
func day(t *testing.T) {
	length := time.Duration(*dayHours) * time.Hour
	d := recordDay(t, length, *dayInterval)
	drift, err := faults.Steady(d.readings, int(time.Hour/dayReading)+1)
	if err != nil {
		t.Fatal(err)
	}
	if err := drift.Check(); err != nil {
		t.Error(err)
	}
	polls := d.judge(t)
	exports := d.exportSize(t)
	if exports > dayExports*dayTargets {
		t.Errorf("JSON and CSV have %d bytes, want at most %d of each target", exports, dayExports)
	}
	info, err := os.Stat(filepath.Join(d.dir, rundb.FileName))
	if err != nil {
		t.Fatal(err)
	}
	told := fmt.Sprintf("%v of simulated time, %d servers over HTTP every %v, %d polls, %d faults, %d restarts: %v; "+
		"run.db %.1f MB, JSON and CSV %d kB; totals equal to what was served",
		length, dayTargets, *dayInterval, polls, d.faults(), d.restarts, drift, float64(info.Size())/1e6, exports/1000)
	if *dayInterval > time.Second {
		t.Log(told)
		return
	}
	faults.Figure(t, "soak-day", told,
		fmt.Sprintf("go test ./internal/faults -run TestCatalogueFormats/D12 -day.interval %v -timeout 60m -v", *dayInterval))
}

// simulatedDay is a recording of servers in simulated time.
type simulatedDay struct {
	dir      string
	targets  []*dayTarget
	readings []faults.Reading
	restarts int
}

// recordDay records servers for so long.
func recordDay(t *testing.T, length, interval time.Duration) *simulatedDay {
	t.Helper()
	d := &simulatedDay{dir: t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		var lan pipes
		transport := &http.Transport{DialContext: lan.dial}
		var targets []scrape.Target
		for i := range dayTargets {
			x := &dayTarget{share: 3}
			if interval < time.Second {
				x.share = 10
			}
			x.host = lan.listen(fmt.Sprintf("t%d", i), x)
			d.targets = append(d.targets, x)
			targets = append(targets, scrape.Target{URL: fmt.Sprintf("http://t%d/metrics", i), RoundTripper: transport})
		}
		o := scrape.Options{Origin: time.Now(), Interval: interval, MaxScrapeShare: -1}
		// A block holds an hour at most, so that its buffers have grown by then.
		w, err := rundb.Create(d.dir, metaAt(o.Origin), rundb.WriterOptions{CommitEvery: interval,
			BlockPolls: min(512, int(time.Hour/interval))})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range targets {
			if _, err := w.AddTarget(x.Public()); err != nil {
				t.Fatal(err)
			}
		}
		began := metric.Mark{Name: metric.PhaseProfiling, AtNS: o.Origin.UnixNano(), Kind: metric.MarkOwn}
		if err := w.Mark(began); err != nil {
			t.Fatal(err)
		}
		c, err := scrape.New(targets, o, w)
		if err != nil {
			t.Fatal(err)
		}
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			d.disturb(length, transport)
			close(stop)
		}()
		if err := c.Run(t.Context(), stop); err != nil {
			t.Fatal(err)
		}
		<-ended
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		transport.CloseIdleConnections()
		lan.close()
	})
	return d
}

// disturb restarts servers and takes readings until the day is over. A connection
// that waits for the next poll does not count: there may be one at a reading, or not.
func (d *simulatedDay) disturb(length time.Duration, transport *http.Transport) {
	restart, read := time.NewTicker(dayRestart), time.NewTicker(dayReading)
	defer restart.Stop()
	defer read.Stop()
	for end := time.After(length); ; {
		select {
		case <-end:
			return
		case <-restart.C:
			for _, x := range d.targets {
				x.restart()
				d.restarts++
			}
		case <-read.C:
			transport.CloseIdleConnections()
			synctest.Wait()
			d.readings = append(d.readings, ownReading())
		}
	}
}

// ownReading is what this process holds: its heap after a collection.
func ownReading() faults.Reading {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	r := faults.Reading{Memory: int64(m.HeapAlloc), Goroutines: runtime.NumGoroutine()}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil { // elsewhere there is none
		r.Descriptors = len(open)
	}
	return r
}

func (d *simulatedDay) faults() (n int) {
	for _, x := range d.targets {
		n += x.bad
	}
	return n
}

// judge checks the rules, that each good answer became a good poll, and the totals.
func (d *simulatedDay) judge(t *testing.T) (polls int) {
	t.Helper()
	accounts, err := faults.Accounts(t.Context(), d.dir)
	if err != nil || len(accounts) != len(d.targets) {
		t.Fatalf("%d targets, want %d: %v", len(accounts), len(d.targets), err)
	}
	run := d.export(t)
	for i, x := range d.targets {
		a := accounts[i]
		if polls += a.Scheduled; a.Outcomes["ok"] != x.good {
			t.Errorf("target %d: %d good polls, %d good answers: %v", i, a.Outcomes["ok"], x.good, a.Outcomes)
		}
		for _, m := range run.Metrics {
			for _, s := range m.Series {
				if m.Name == "c" && s.Endpoint == i && (s.Increase.Value != float64(x.total) || !s.Increase.Status.Certain()) {
					t.Errorf("target %d: %+v, served %d", i, s.Increase, x.total)
				}
			}
		}
	}
	return polls
}

// export writes JSON and CSV beside the recording and checks the rules.
func (d *simulatedDay) export(t *testing.T) *summary.Run {
	t.Helper()
	r, err := rundb.Open(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	run, err := summary.Build(t.Context(), []summary.Recording{r}, summary.Options{})
	if err != nil {
		t.Fatal(err)
	}
	formats := []string{"json", "csv"}
	if _, err := export.Write(t.Context(), d.dir, formats, run, []export.Recording{r}, export.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := faults.Check(t.Context(), faults.Evidence{Dir: d.dir, Formats: formats}); err != nil {
		t.Error(err)
	}
	return run
}

func (d *simulatedDay) exportSize(t *testing.T) (bytes int64) {
	t.Helper()
	d.export(t)
	paths, err := filepath.Glob(filepath.Join(d.dir, "server_metrics_export.*"))
	if err != nil || len(paths) != 2 {
		t.Fatalf("%d exports: %v", len(paths), err)
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		bytes += info.Size()
	}
	return bytes
}

// dayTarget is a server that counts, and fails now and then.
type dayTarget struct {
	host  *pipeHost
	share int // one of so many answers is a fault

	mu               sync.Mutex
	n, value, seen   int
	good, bad, total int
	started, known   time.Time // of the server: now, and as the last good answer told
}

func (x *dayTarget) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x.mu.Lock()
	x.n++
	x.value += 3 + x.n%5
	body, n := x.body(), x.n
	fault := n%x.share == 0
	if fault {
		x.bad++
	} else {
		x.account()
	}
	x.mu.Unlock()
	h := w.Header()
	h.Set("Content-Type", "text/plain; version=0.0.4")
	if !fault {
		_, _ = w.Write(body) // the collector's ledger tells
		return
	}
	switch n / x.share % 5 {
	case 0:
		w.WriteHeader(http.StatusInternalServerError)
	case 1:
		<-r.Context().Done() // hangs until the collector gives up
	case 2:
		h.Set("Content-Length", fmt.Sprint(len(body)+100))
		_, _ = w.Write(body[:len(body)/2])
		panic(http.ErrAbortHandler) // breaks the connection off
	case 3:
		panic(http.ErrAbortHandler)
	case 4:
		h.Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html>sign in</html>"))
	}
}

// account adds a good answer to what the collector must have seen. The caller
// holds the lock.
func (x *dayTarget) account() {
	if x.good++; x.good > 1 {
		if x.total += x.value; x.started.Equal(x.known) {
			x.total -= x.seen
		}
	}
	x.seen, x.known = x.value, x.started
}

func (x *dayTarget) body() []byte {
	var b strings.Builder
	if x.started.IsZero() {
		x.started = time.Now()
	}
	fmt.Fprintf(&b, "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %.3f\n"+
		"# TYPE c_total counter\nc_total %d\n# TYPE g gauge\n", float64(x.started.UnixMilli())/1e3, x.value)
	for i := range 5 {
		fmt.Fprintf(&b, "g{i=\"%d\"} %d\n", i, (x.n+i)%7)
	}
	b.WriteString("# TYPE h histogram\n")
	for i, le := range []string{"0.1", "0.5", "1", "5", "+Inf"} {
		fmt.Fprintf(&b, "h_bucket{le=\"%s\"} %d\n", le, x.value*(i+1))
	}
	fmt.Fprintf(&b, "h_sum %d.5\nh_count %d\n", x.value, x.value*5)
	return []byte(b.String())
}

// restart ends the server and starts it anew; it has forgotten everything.
func (x *dayTarget) restart() {
	x.mu.Lock()
	x.value, x.started = 0, time.Now()
	x.mu.Unlock()
	x.host.down()
	x.host.up()
}

// pipes is a network in memory, whose waiting counts as waiting in a bubble of
// synthetic time.
type pipes struct {
	hosts map[string]*pipeHost
}

// pipeHost is a server in that network.
type pipeHost struct {
	handler http.Handler
	serving sync.WaitGroup

	mu  sync.Mutex
	srv *http.Server
	ln  *pipeListener
}

func (p *pipes) listen(name string, h http.Handler) *pipeHost {
	if p.hosts == nil {
		p.hosts = map[string]*pipeHost{}
	}
	host := &pipeHost{handler: h}
	p.hosts[name] = host
	host.up()
	return host
}

func (p *pipes) close() {
	for _, h := range p.hosts {
		h.down()
	}
}

func (p *pipes) dial(ctx context.Context, _, address string) (net.Conn, error) {
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	h := p.hosts[name]
	h.mu.Lock()
	ln := h.ln
	h.mu.Unlock()
	ours, theirs := net.Pipe()
	select {
	case ln.conns <- theirs:
		return ours, nil
	case <-ln.done:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (h *pipeHost) up() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.srv = &http.Server{Handler: h.handler}
	h.ln = &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
	srv, ln := h.srv, h.ln
	h.serving.Go(func() { _ = srv.Serve(ln) }) // it ends when it is closed
}

// down breaks all connections and waits until nobody serves.
func (h *pipeHost) down() {
	h.mu.Lock()
	srv := h.srv
	h.mu.Unlock()
	_ = srv.Close()
	h.serving.Wait()
}

type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/badserver"
	"github.com/scrapestat/scrapestat/internal/faults"
	"github.com/scrapestat/scrapestat/internal/simulate"
)

const (
	soakTargets  = 10
	soakInterval = 333 * time.Millisecond
)

// soakPlan is how long a soak lasts and what happens in it.
type soakPlan struct {
	length  time.Duration
	reading time.Duration // between two readings
	restart time.Duration // between two restarts of servers, one after the other
	down    time.Duration // how long a server is away
	share   int           // one of so many answers is a fault
	warm    int           // readings that are not judged
	judged  bool
}

// planSoak makes the short form that go test runs, or the long one of so much
// time: a reading every 10 s, a fault of each target and a restart of some server
// every minute, and a sixth of it to warm up. The short form has all of it but the
// verdict on memory, which takes time.
func planSoak(t *testing.T) soakPlan {
	t.Helper()
	text := os.Getenv("SCRAPESTAT_SOAK")
	if text == "" {
		return soakPlan{length: 3 * time.Second, reading: 100 * time.Millisecond, restart: 300 * time.Millisecond,
			down: 50 * time.Millisecond, share: 8}
	}
	length, err := time.ParseDuration(text)
	if err != nil || length < time.Minute {
		t.Fatalf("SCRAPESTAT_SOAK is %q, want a duration from 1m", text)
	}
	p := soakPlan{length: length, reading: 10 * time.Second, restart: time.Minute, down: 2 * time.Second, share: 180,
		judged: true}
	if length < 10*time.Minute {
		p.reading, p.restart = length/60, length/20
	}
	p.warm = int(length / 6 / p.reading)
	return p
}

// TestSoak has collect poll ten servers three times a second, which fail and
// restart meanwhile. SCRAPESTAT_SOAK is how long: the goal is 30m, and 24h. Then
// the memory of its process grows by no more than 5 % after a sixth of the time,
// its descriptors and goroutines not at all; and in any case nothing is lost.
func TestSoak(t *testing.T) {
	p := planSoak(t)
	if !p.judged {
		t.Parallel()
	}
	var targets []*soakTarget
	dir := filepath.Join(t.TempDir(), "run")
	args := []string{"collect", "-o", dir, "--quiet", "--interval", soakInterval.String(), "--timeout", "1s", "--duration",
		p.length.String(),
		"--settle", "0s", "--scrape-budget", "0", "--formats", "json,csv"}
	for i := range soakTargets {
		x := newSoakTarget(t, uint64(i+1), p.share)
		targets, args = append(targets, x), append(args, "http://"+x.srv.Addr+"/metrics")
	}
	s := &soak{plan: p, targets: targets, watched: startWatched(t, args)}
	s.run(t)
	if err := s.watched.cmd.Wait(); err != nil {
		t.Fatalf("collect: %v\n%s", err, s.watched.talk.String())
	}
	polls, lines := s.nothingLost(t, dir)
	d, err := faults.Steady(s.readings, p.warm)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(d)
	if !p.judged {
		return
	}
	if err := d.Check(); err != nil {
		t.Error(err)
	}
	faults.Figure(t, "soak", fmt.Sprintf("%v of collect at %d servers of vLLM's metrics, 3 Hz, %d polls, %d samples, "+
		"%d faults and %d restarts of servers on the way: %v; the rules held",
		p.length, soakTargets, polls, lines, s.faults(), s.restarts, d), "make soak SOAK="+p.length.String())
}

// soakTarget is a server that restarts and fails now and then.
type soakTarget struct {
	sim *simulate.Server
	srv *badserver.Server

	mu    sync.Mutex
	rng   *rand.Rand
	share int
	body  []byte
	bad   int

	restarts int // by the goroutine of the test
}

func newSoakTarget(t *testing.T, seed uint64, share int) *soakTarget {
	t.Helper()
	sim, err := simulate.New("vllm", simulate.Options{Rate: 10, Seed: seed, Engines: 3})
	if err != nil {
		t.Fatal(err)
	}
	x := &soakTarget{sim: sim, rng: rand.New(rand.NewPCG(seed, 11)), share: share}
	if x.srv, err = badserver.Start(badserver.Options{Script: x.next}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.srv.Close)
	return x
}

// next is the script of the server. It is called for one request at a time, and
// its body is sent before the next one comes.
func (x *soakTarget) next(int) badserver.Answer {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.body = x.sim.AppendBody(nil)
	a := badserver.Answer{Type: "text/plain; version=0.0.4; charset=utf-8", Body: x.body}
	if x.rng.IntN(x.share) > 0 {
		return a
	}
	x.bad++
	switch x.rng.IntN(8) {
	case 0:
		return badserver.Answer{Status: 503, Type: "text/plain", Body: []byte("overloaded")}
	case 1:
		return badserver.Answer{Kind: badserver.Reset}
	case 2:
		return badserver.Answer{Kind: badserver.Close}
	case 3:
		return badserver.Answer{Kind: badserver.Hang}
	case 4:
		a.Cut = 1 + x.rng.IntN(len(a.Body)-1)
	case 5:
		a.Body = append([]byte("not a sample at all\n"), a.Body...)
	case 6:
		a.Delay = 1500 * time.Millisecond
	case 7:
		return badserver.Answer{Type: "text/html", Body: []byte("<html>sign in</html>")}
	}
	return a
}

// watchedCommand is collect in a process of its own that tells how many
// goroutines it has.
type watchedCommand struct {
	cmd  *exec.Cmd
	in   io.Writer
	out  *bufio.Reader
	talk lockedBuffer
}

func startWatched(t *testing.T, args []string) *watchedCommand {
	t.Helper()
	w := &watchedCommand{cmd: exec.Command("scrapestat-watched", args...)}
	w.cmd.Stderr = &w.talk
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	w.out = bufio.NewReader(out)
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.cmd.Process.Kill() }) // it has ended, unless the test failed
	return w
}

// read takes a reading: memory and descriptors as the operating system counts
// them, goroutines as the process says.
func (w *watchedCommand) read() (r faults.Reading, err error) {
	if _, err := fmt.Fprintln(w.in); err != nil {
		return r, fmt.Errorf("ask collect: %w", err)
	}
	line, err := w.out.ReadString('\n')
	if err != nil {
		return r, fmt.Errorf("ask collect: %w", err)
	}
	if r.Goroutines, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		return r, err
	}
	proc := fmt.Sprintf("/proc/%d/", w.cmd.Process.Pid)
	open, err := os.ReadDir(proc + "fd")
	if err != nil {
		return r, err
	}
	r.Descriptors = len(open)
	status, err := os.ReadFile(proc + "status")
	if err != nil {
		return r, err
	}
	_, rest, ok := strings.Cut(string(status), "VmRSS:")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 2 || fields[1] != "kB" {
		return r, fmt.Errorf("%sstatus has no VmRSS", proc)
	}
	kb, err := strconv.ParseInt(fields[0], 10, 64)
	r.Memory = kb << 10
	return r, err
}

// soak is one run of TestSoak.
type soak struct {
	plan     soakPlan
	targets  []*soakTarget
	watched  *watchedCommand
	readings []faults.Reading
	restarts int
}

// run takes readings and restarts servers until shortly before the end.
func (s *soak) run(t *testing.T) {
	t.Helper()
	read, restart := time.NewTicker(s.plan.reading), time.NewTicker(s.plan.restart)
	defer read.Stop()
	defer restart.Stop()
	var up <-chan time.Time
	var away *soakTarget
	for end := time.After(s.plan.length - s.plan.length/20); ; {
		select {
		case <-end:
			if away != nil {
				s.up(away)
			}
			return
		case <-read.C:
			r, err := s.watched.read()
			if err != nil {
				t.Fatalf("reading %d: %v\n%s", len(s.readings), err, s.watched.talk.String())
			}
			if s.readings = append(s.readings, r); s.plan.judged {
				t.Logf("%s %+v", time.Now().UTC().Format(time.TimeOnly), r)
			}
		case <-restart.C:
			if away == nil {
				away = s.targets[s.restarts%len(s.targets)]
				away.srv.Down()
				up = time.After(s.plan.down)
			}
		case <-up:
			if s.up(away) {
				away = nil
			} else {
				up = time.After(s.plan.down)
			}
		}
	}
}

// up brings a server back that has forgotten everything. It is false when somebody
// else has its port for the moment.
func (s *soak) up(x *soakTarget) bool {
	x.sim.Restart()
	if x.srv.Up() != nil {
		return false
	}
	s.restarts++
	x.restarts++
	return true
}

func (s *soak) faults() (n int) {
	for _, x := range s.targets {
		x.mu.Lock()
		n += x.bad
		x.mu.Unlock()
	}
	return n
}

// nothingLost checks the rules and holds the recording against what the servers
// served.
func (s *soak) nothingLost(t *testing.T, dir string) (polls, lines int) {
	t.Helper()
	if err := faults.Check(t.Context(), faults.Evidence{Dir: dir, Formats: []string{"json", "csv"}}); err != nil {
		t.Error(err)
	}
	accounts, err := faults.Accounts(t.Context(), dir)
	if err != nil || len(accounts) != len(s.targets) {
		t.Fatalf("%d targets in the recording, want %d: %v", len(accounts), len(s.targets), err)
	}
	for i, a := range accounts {
		served, servedLines := s.targets[i].srv.Ledger().Good()
		if a.Outcomes["ok"] == 0 || a.Outcomes["ok"] > served || a.GoodLines > servedLines {
			t.Errorf("target %d: %d good polls with %d lines, the server gave %d good answers with %d", i, a.Outcomes["ok"],
				a.GoodLines, served, servedLines)
		}
		// A target that is away is polled less often, for up to as long again.
		away := s.targets[i].restarts * int(2*s.plan.down/soakInterval+3)
		if want := int(s.plan.length/soakInterval) - away; a.Scheduled < want {
			t.Errorf("target %d: %d polls were scheduled, want at least %d", i, a.Scheduled, want)
		}
		polls, lines = polls+a.Scheduled, lines+a.Lines
	}
	if s.restarts == 0 || s.faults() == 0 {
		t.Errorf("%d restarts and %d faults: nothing was tried", s.restarts, s.faults())
	}
	return polls, lines
}

//go:build unix

package process_test

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/sourcetest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source/process"
)

// clocked polls a source at instants that the test sets.
type clocked struct {
	*sourcetest.Recorder
	s      *process.Source
	target int
	seq    uint64
	nowNS  int64
}

func newClocked(t *testing.T, o process.Options) *clocked {
	t.Helper()
	c := &clocked{Recorder: sourcetest.New(t, sourcetest.Limits{Slots: 200}), s: process.New(o), nowNS: 1e18}
	var err error
	g := metric.Target{Name: process.Name, URL: process.Target, Source: metric.SourceProcess}
	if c.target, err = c.AddTarget(g); err != nil {
		t.Fatal(err)
	}
	return c
}

// poll polls after some time of the test's clock.
func (c *clocked) poll(t *testing.T, after time.Duration) {
	t.Helper()
	c.nowNS += after.Nanoseconds()
	s := metric.Snapshot{Target: c.target, Seq: c.seq}
	c.seq++
	c.s.Poll(context.Background(), func() int64 { return c.nowNS }, &s)
	if err := c.Record(&s); err != nil || s.Outcome != metric.OK {
		t.Fatalf("poll: %v, %v", s.Outcome, err)
	}
}

// value is a value of the last poll, not a number for none.
func (c *clocked) value(name string, kind metric.Type, labels string) float64 {
	if v, ok := c.Value(c.target, name, kind, labels, metric.RoleValue, 0); ok {
		return v
	}
	return math.NaN()
}

func (c *clocked) gauge(name string) float64 { return c.value("client_"+name, metric.Gauge, "") }
func (c *clocked) cpu() float64 {
	return c.value("client_process_cpu_seconds", metric.Counter, "")
}

// machine is a /proc of a test.
type machine struct {
	t   *testing.T
	dir string
}

func (m machine) write(text string, name ...string) {
	path := filepath.Join(append([]string{m.dir}, name...)...)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// process sets what a process shows: its parent, its group, when it began, its ticks, and those of whom it waited for.
func (m machine) process(pid, parent, group, start, ticks, waited int, threads ...int) {
	stat := func(ticks int) string {
		return fmt.Sprintf("%d (a) b ( \x1b[31m) S %d %d 0 0 -1 0 0 0 0 0 %d 0 %d 0 20 0 %d 0 %d 1000 7 0 0\n", pid,
			parent, group, ticks, waited, max(1, len(threads)), start)
	}
	id := strconv.Itoa(pid)
	m.write(stat(ticks), id, "stat")
	m.write("Name:\tx\nCpus_allowed_list:\t0-1,3\n", id, "status")
	m.write("0::/job/run\n", id, "cgroup")
	for i, ticks := range threads {
		m.write(stat(ticks), id, "task", strconv.Itoa(pid+i), "stat")
	}
	for _, fd := range []string{"0", "1", "2"} {
		m.write("", id, "fd", fd)
	}
}

func (m machine) end(pid int) {
	if err := os.RemoveAll(filepath.Join(m.dir, strconv.Itoa(pid))); err != nil {
		m.t.Fatal(err)
	}
}

// The tree keeps those whose parent ended, counts each tick once whoever has it in the end, and never falls.
func TestTree(t *testing.T) {
	m := machine{t, t.TempDir()}
	c := newClocked(t, process.Options{Proc: m.dir, Cgroup: filepath.Join(m.dir, "cgroup")})
	m.process(1, 0, 1, 1, 5000, 0)
	m.process(50, 100, 50, 9, 10, 0) // of a group of its own; listed before its parent
	m.process(100, 1, 100, 8, 20, 0)
	c.poll(t, 0)
	if !math.IsNaN(c.cpu()) {
		t.Errorf("before the command was started: %v s", c.cpu())
	}
	c.s.Follow(100)
	check := func(what string, seconds, processes float64) {
		t.Helper()
		c.poll(t, time.Second)
		if got := c.cpu(); math.Abs(got-seconds) > 1e-9 || c.gauge("processes") != processes {
			t.Errorf("%s: %v s of %v processes, want %v of %v", what, got, c.gauge("processes"), seconds, processes)
		}
	}
	m.process(101, 100, 100, 9, 0, 0)
	check("the command and its children", 0.30, 3)
	m.process(102, 101, 102, 12, 30, 0)
	m.process(103, 1, 100, 12, 7, 0) // its parent ended between two polls
	check("a grandchild, and an orphan of the group", 0.67, 5)
	m.end(102)
	m.process(101, 100, 100, 9, 0, 35) // who has waited for it, 5 ticks later
	check("a process that was waited for", 0.72, 4)
	m.end(101)
	m.process(102, 1, 102, 12, 99, 0) // the pid again
	m.process(100, 1, 100, 8, 20, 0)
	check("a process for whom nobody waited, and its pid again", 0.72, 3)
	m.end(100)
	m.process(103, 1, 100, 12, 17, 0)
	check("the command has ended, its child has not", 0.82, 2)
	m.end(103)
	m.end(50)
	check("all have ended", 0.82, 0)
	if !math.IsNaN(c.gauge("process_threads")) {
		t.Error("threads of nobody")
	}
}

// Shares are of the CPUs that the tree may use, and of one thread.
func TestShares(t *testing.T) {
	m := machine{t, t.TempDir()}
	o := process.Options{Proc: m.dir, Cgroup: filepath.Join(m.dir, "cgroup")}
	c := newClocked(t, o)
	c.s.Follow(100)
	m.process(100, 1, 100, 8, 0, 0, 0, 0)
	c.poll(t, 0)
	m.process(100, 1, 100, 8, 150, 0, 60, 90)
	c.poll(t, time.Second)
	want := func(what string, cores, cpu, thread float64) {
		t.Helper()
		got := [3]float64{c.gauge("process_cpu_limit"), c.gauge("process_cpu_utilization"),
			c.gauge("process_thread_utilization")}
		if got != [3]float64{cores, cpu, thread} {
			t.Errorf("%s: %v, want %v", what, got, [3]float64{cores, cpu, thread})
		}
	}
	want("three CPUs", 3, 0.5, 0.9)
	m.process(100, 1, 100, 8, 151, 0, 61, 90)
	c.poll(t, 10*time.Millisecond) // too short to tell: as before
	want("a poll right after", 3, 0.5, 0.9)
	if c.gauge("process_open_fds") < 3 || c.gauge("process_threads") != 2 ||
		c.gauge("process_resident_memory_bytes") != 7*float64(os.Getpagesize()) {
		t.Error("descriptors, threads, memory:", c.gauge("process_open_fds"), c.gauge("process_threads"),
			c.gauge("process_resident_memory_bytes"))
	}
	m.write("max 100000", "cgroup", "job", "run", "cpu.max")
	m.write("150000 100000", "cgroup", "job", "cpu.max")
	c = newClocked(t, o)
	c.s.Follow(100)
	c.poll(t, 0)
	m.process(100, 1, 100, 8, 301, 0, 61, 240)
	c.poll(t, time.Second)
	want("a group above it has one and a half", 1.5, 1, 1)
	m.write("1000000000 2000000000 9\n", "100", "task", "100", "schedstat")
	c.poll(t, time.Second)
	m.write("1100000000 2650000000 10\n", "100", "task", "100", "schedstat")
	c.poll(t, time.Second)
	want("it waited for a CPU for most of the time", 1.5, 0, 0.75)
}

// The machine's own numbers, and only those that are kept.
func TestHost(t *testing.T) {
	m := machine{t, t.TempDir()}
	m.write("cpu  100 1 2 300 4 5 6 7 8 9\ncpu0 1\n", "stat")
	m.write("MemTotal:  2000 kB\nMemFree: 1 kB\nMemAvailable:  500 kB\nHuge: 1\n", "meminfo")
	m.write("Inter-| x\n face |bytes\n  lo: 10 1 0 0 0 0 0 0 20 1\nifb0: 0 0 0 0 0 0 0 0 0 0\n", "net", "dev")
	c := newClocked(t, process.Options{Proc: m.dir, Keep: func(name string) bool {
		return name != "client_host_memory_total_bytes"
	}})
	c.poll(t, 0)
	for _, want := range []struct {
		name, labels string
		kind         metric.Type
		v            float64
	}{
		{"client_host_cpu_seconds", `{mode="idle"}`, metric.Counter, 3},
		{"client_host_cpu_seconds", `{mode="steal"}`, metric.Counter, 0.07},
		{"client_host_memory_available_bytes", "", metric.Gauge, 512000},
		{"client_host_memory_total_bytes", "", metric.Gauge, math.NaN()},
		{"client_host_network_receive_bytes", `{device="lo"}`, metric.Counter, 10},
		{"client_host_network_transmit_bytes", `{device="lo"}`, metric.Counter, 20},
		{"client_host_network_transmit_bytes", `{device="ifb0"}`, metric.Counter, math.NaN()},
	} {
		if got := c.value(want.name, want.kind, want.labels); !(got == want.v || math.IsNaN(got) && math.IsNaN(want.v)) {
			t.Errorf("%s%s: %v, want %v", want.name, want.labels, got, want.v)
		}
	}
}

// child starts a shell that says when it has done its work, and ends with its stdin.
func child(t *testing.T, script string) (cmd *exec.Cmd, end func()) {
	t.Helper()
	cmd = exec.Command("sh", "-c", script+"; echo done; read x")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "done\n" {
		t.Fatalf("child: %q, %v", line, err)
	}
	return cmd, func() {
		in.Close()
		if err := cmd.Wait(); err == nil {
			t.Log("read had a line")
		}
	}
}

// A real command that burns CPU, half of it in a child that it waited for, and one that idles: what is counted is what
// the operating system tells at their end.
func TestRealCommand(t *testing.T) {
	if !process.Available() {
		t.Skip("this operating system has no /proc")
	}
	const burn = `i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done`
	used := map[string]float64{}
	for name, script := range map[string]string{"burns": burn + "; (" + burn + ")", "idles": ":"} {
		c := newClocked(t, process.Options{})
		cmd, end := child(t, script)
		c.s.Follow(cmd.Process.Pid)
		c.poll(t, 0)
		used[name] = c.cpu()
		c.poll(t, time.Second)
		idle := c.gauge("process_cpu_utilization") // it waits for its stdin
		if c.gauge("processes") != 1 || c.gauge("process_open_fds") < 3 || idle > 0.1 || !(c.gauge("process_cpu_limit") > 0) {
			t.Errorf("%s: %v processes, %v descriptors, share %v of %v CPUs", name, c.gauge("processes"),
				c.gauge("process_open_fds"), idle, c.gauge("process_cpu_limit"))
		}
		end()
		truth := (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
		if math.Abs(used[name]-truth) > 0.05+0.1*truth {
			t.Errorf("%s: %.3f s of CPU, the system says %.3f", name, used[name], truth)
		}
	}
	if used["burns"] < 5*used["idles"] || used["burns"] == 0 {
		t.Errorf("a command that burns CPU used %v s, one that idles %v", used["burns"], used["idles"])
	}
}

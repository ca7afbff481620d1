package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a child whose cost is accounted by the operating system.
type process struct {
	name   string
	cmd    *exec.Cmd
	out    *bufio.Reader
	errors *os.File
	began  time.Time
	most   chan int64 // the peak memory, sent when the process has ended
	ended  chan struct{}
}

// cost is what a finished process took.
type cost struct {
	cpu, wall time.Duration
	rss       int64 // bytes, the peak
}

// start runs a command on one processor, or on all when cpu is negative.
func start(ctx context.Context, c config, cpu int, name string, args ...string) (*process, error) {
	if cpu >= 0 {
		args = append([]string{"-c", strconv.Itoa(cpu), name}, args...)
		name = "taskset"
	}
	p := &process{name: filepath.Base(name), cmd: exec.CommandContext(ctx, name, args...)}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	if p.errors, err = os.CreateTemp(c.work, "stderr-"); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p.cmd.Stderr = p.errors
	p.out = bufio.NewReader(out)
	p.began = time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p.most, p.ended = make(chan int64, 1), make(chan struct{})
	go p.watch()
	return p, nil
}

// watch follows the peak memory until the process has ended. What the operating
// system says of a finished process will not do: there the peak is never below what
// this process had when it started the other.
func (p *process) watch() {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	most := int64(0)
	for {
		select {
		case <-tick.C:
			if n, err := p.peak(); err == nil { // it fails in the moment of the end
				most = n
			}
		case <-p.ended:
			p.most <- most
			return
		}
	}
}

// startSelf runs this binary as one of its children.
func startSelf(ctx context.Context, c config, cpu int, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	return start(ctx, c, cpu, self, args...)
}

func (p *process) line() (string, error) { return p.out.ReadString('\n') }

// wait drains the output and returns what the process cost.
func (p *process) wait() (cost, error) {
	_, copyErr := io.Copy(io.Discard, p.out)
	err := p.cmd.Wait()
	wall := time.Since(p.began)
	close(p.ended)
	u, ok := p.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return cost{}, errors.New("no resource usage on this system")
	}
	c := cost{cpu: time.Duration(u.Utime.Nano() + u.Stime.Nano()), wall: wall, rss: <-p.most}
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", p.name, err, p.tail())
	}
	return c, errors.Join(err, copyErr)
}

// interrupt ends the process as a user would and returns its cost. That it ended
// by the signal is no error.
func (p *process) interrupt(s os.Signal) (cost, error) {
	if err := p.cmd.Process.Signal(s); err != nil {
		return cost{}, fmt.Errorf("end %s: %w: %s", p.name, err, p.tail())
	}
	c, err := p.wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && c.cpu > 0 {
		err = nil
	}
	return c, err
}

func (p *process) kill() error {
	if p.cmd.ProcessState != nil {
		return nil
	}
	err := p.cmd.Process.Kill()
	p.cmd.Wait() // it was killed: how it ended is known
	close(p.ended)
	<-p.most
	return err
}

// tail is the end of what the process said.
func (p *process) tail() string {
	b, err := os.ReadFile(p.errors.Name())
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-600):])
}

// busy is the processor time of a running process so far.
func (p *process) busy() (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("read times of %s: %w", p.name, err)
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	user, err1 := strconv.ParseInt(f[11], 10, 64)
	system, err2 := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond, errors.Join(err1, err2)
}

// peak is the peak memory of a running process so far, in bytes.
func (p *process) peak() (int64, error) { return p.memory("VmHWM:") }

// resident is what a running process has in memory now, in bytes.
func (p *process) resident() (int64, error) { return p.memory("VmRSS:") }

func (p *process) memory(field string) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("read memory of %s: %w", p.name, err)
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, field); ok {
			kb, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return kb * 1024, err
		}
	}
	return 0, fmt.Errorf("read memory of %s: no %s", p.name, field)
}

// hostTime is the time of the machine's processors since its beginning, and what
// of it the hypervisor gave to others; zero where the system does not tell.
type hostTime struct{ steal, all int64 }

// since is the share that others had since an earlier reading.
func (t hostTime) since(before hostTime) float64 {
	return float64(t.steal-before.steal) / float64(max(1, t.all-before.all))
}

func readHostTime() (t hostTime) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return hostTime{}
	}
	first, _, _ := strings.Cut(string(b), "\n")
	for i, text := range strings.Fields(first)[1:] {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return hostTime{}
		}
		if i == 7 {
			t.steal = n
		}
		if i < 8 {
			t.all += n
		}
	}
	return t
}

// pause waits, or returns early when ctx is done.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// build makes the scrapestat command, unless one was given.
func build(ctx context.Context, c config) (string, error) {
	if c.binary != "" {
		return c.binary, nil
	}
	bin := filepath.Join(c.work, "scrapestat")
	if _, err := os.Stat(bin); err == nil {
		return bin, nil
	}
	root := output("go", "list", "-m", "-f", "{{.Dir}}", "github.com/scrapestat/scrapestat")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, "./cmd/scrapestat")
	cmd.Dir = root                                  // with the versions of the main module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is released
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build scrapestat: %w: %s", err, out)
	}
	return bin, nil
}

package main

import (
	"bufio"
	"bytes"
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

// process is a child that answers lines and whose cost the system accounts.
type process struct {
	name   string
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	errors bytes.Buffer
}

// Where processes run: the measured one, the targets it scrapes, and all else.
const measuredCPU, targetsCPU, allProcessors = 0, 1, -1

// start runs a command on one processor, or on all. The caller waits for or kills it.
func start(ctx context.Context, cpu int, command ...string) (*process, error) {
	name := filepath.Base(command[0])
	if cpu != allProcessors {
		command = append([]string{"taskset", "-c", strconv.Itoa(cpu)}, command...)
	}
	p := &process{name: name, cmd: exec.CommandContext(ctx, command[0], command[1:]...)}
	p.cmd.Stderr = &p.errors
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		p.in, err = p.cmd.StdinPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p.out = bufio.NewReader(out)
	return p, nil
}

// startSelf runs this binary as one of its children and returns its first line.
func startSelf(ctx context.Context, cpu int, args ...string) (*process, string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", fmt.Errorf("find own program: %w", err)
	}
	p, err := start(ctx, cpu, append([]string{self}, args...)...)
	if err != nil {
		return nil, "", err
	}
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.kill()
		return nil, "", fmt.Errorf("start %s: %w: %s", args[0], err, p.tail())
	}
	return p, strings.TrimSpace(line), nil
}

// ask has a peer do n units, and returns the processor time and the number of things that it went through.
func (p *process) ask(n int) (time.Duration, int64, error) {
	if _, err := fmt.Fprintln(p.in, n); err != nil {
		return 0, 0, fmt.Errorf("ask %s: %w", p.name, err)
	}
	var ns, things int64
	if _, err := fmt.Fscanln(p.out, &ns, &things); err != nil || things == 0 {
		p.kill()
		return 0, 0, fmt.Errorf("read answer of %s: %d things, %w: %s", p.name, things, err, p.tail())
	}
	return time.Duration(ns), things, nil
}

// wait drains the output until the process ends. The peak memory is read while it runs: that of a finished process is
// never below what this one had when it started it.
func (p *process) wait() (cpu time.Duration, peak int64, err error) {
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, p.out)
		ended <- errors.Join(err, p.cmd.Wait())
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if n, err := p.memory("VmHWM:"); err == nil { // it fails at the moment of the end
				peak = n
			}
		case err := <-ended:
			if err != nil {
				return 0, 0, fmt.Errorf("run %s: %w: %s", p.name, err, p.tail())
			}
			return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime(), peak, nil
		}
	}
}

// kill ends the process, if it has not ended. How it ends is known.
func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		p.cmd.Process.Signal(syscall.SIGKILL)
		p.cmd.Wait()
	}
}

// tail is the end of what the ended process wrote as errors.
func (p *process) tail() string {
	b := p.errors.Bytes()
	return string(b[max(0, len(b)-600):])
}

// cpu is the processor time of a running process so far.
func (p *process) cpu() (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("read times of %s: %w", p.name, err)
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	user, err1 := strconv.ParseInt(f[11], 10, 64)
	system, err2 := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond, errors.Join(err1, err2)
}

// memory is a field of the status of a running process, in bytes.
func (p *process) memory(field string) (int64, error) {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	_, after, found := strings.Cut(string(b), field)
	if !found {
		return 0, fmt.Errorf("read memory of %s: no %s", p.name, field)
	}
	kb, err := strconv.ParseInt(strings.Fields(after)[0], 10, 64)
	return kb * 1024, err
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

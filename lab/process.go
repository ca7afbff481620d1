//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// process is a server of a recipe. It runs in a process group of its own, which ends with it.
type process struct {
	name string // of its log, and of the target when metrics is set
	args []string
	env  []string
	dir  string
	// ready answers with 200 when the server can be used, metrics is what is scraped ("" is not). Both are URLs.
	ready, metrics string
	follow         string // a further target, which is no body: logs, statistics
	port           int    // nothing may listen on it afterwards
	remains        string // pattern of files that it leaves when it is killed
	// again starts it anew each time that it is killed before its time.
	again bool

	pid  string        // file with its process id
	over chan struct{} // closed when the process has ended
	err  error         // why it did, after over
}

// freePort returns a port of loopback that nobody listens on. It is below those that the system gives to clients, and
// one that programs can read which store it in 16 bits with a sign.
func freePort() int {
	for {
		port := 15000 + rand.IntN(1<<14)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			l.Close()
			return port
		}
	}
}

func loopback(port int, path string) string { return fmt.Sprintf("http://127.0.0.1:%d%s", port, path) }

// launch runs the process until ctx ends.
func (p *process) launch(ctx context.Context, dir string) error {
	log, err := os.Create(filepath.Join(dir, p.name+".log"))
	if err != nil {
		return err
	}
	p.pid, p.over = filepath.Join(dir, p.name+".pid"), make(chan struct{})
	started := make(chan error, 1)
	go func() {
		defer close(p.over)
		defer log.Close()
		var exit *exec.ExitError
		for again := true; again; again = p.again && ctx.Err() == nil && errors.As(p.err, &exit) && !exit.Exited() {
			p.err = p.once(ctx, log, started)
		}
	}()
	return <-started
}

func (p *process) once(ctx context.Context, log io.Writer, started chan<- error) error {
	cmd := exec.Command(p.args[0], p.args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = p.dir, log, log, append(os.Environ(), p.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err := cmd.Start()
	if err == nil {
		err = os.WriteFile(p.pid, []byte(strconv.Itoa(cmd.Process.Pid)), 0o600)
	}
	select {
	case started <- err:
	default: // it was told the first time
	}
	if err != nil {
		return err
	}
	var ended sync.WaitGroup
	over, cancel := context.WithCancel(ctx)
	ended.Go(func() {
		<-over.Done()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended
	})
	err = cmd.Wait()
	cancel()
	ended.Wait()
	return err
}

// wait waits until the process answers or has ended, at most fifteen minutes.
func (p *process) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	err := answers(ctx, p.ready, p.over)
	select {
	case <-p.over:
		return fmt.Errorf("%s has ended: %w", p.name, p.err)
	default:
		return err
	}
}

// answers waits until a GET of url has the status 200, or until over.
func answers(ctx context.Context, url string, over <-chan struct{}) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w", url, context.Cause(ctx))
		case <-over:
			return nil
		case <-tick.C:
		}
	}
}

// serve starts the processes, calls f, and stops them; afterwards none of them runs or listens.
func serve(ctx context.Context, dir string, all []*process, f func() error) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		for _, p := range all {
			if p.over != nil {
				<-p.over
			}
			left, _ := filepath.Glob(p.remains) // of a pattern of ours
			for _, name := range left {
				err = errors.Join(err, os.Remove(name))
			}
			if p.listens() {
				err = errors.Join(err, fmt.Errorf("%s still listens on port %d", p.name, p.port))
			}
		}
	}()
	for _, p := range all {
		if err := p.launch(ctx, dir); err != nil {
			return fmt.Errorf("start %s: %w", p.name, err)
		}
	}
	for _, p := range all {
		if err := p.wait(ctx); err != nil {
			return fmt.Errorf("%w\n%s", err, tail(filepath.Join(dir, p.name+".log")))
		}
	}
	return f()
}

// listens reports whether the port is still taken some seconds after its process was killed: those that it started are
// killed with it, but nobody waits for them.
func (p *process) listens() bool {
	for range 100 {
		c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", p.port), time.Second)
		if err != nil {
			return false
		}
		c.Close()
		<-time.After(100 * time.Millisecond)
	}
	return true
}

// tail returns the end of a log.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}

// do runs a command to its end; what it prints is shown when it fails.
func (l *lab) do(ctx context.Context, log, name string, args ...string) error {
	path := filepath.Join(l.work, log)
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = f, f
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", name, args, err, tail(path))
	}
	return nil
}

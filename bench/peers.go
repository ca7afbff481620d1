package main

import (
	"bufio"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// scripts are the peers that are no Go modules, as this harness calls them.
//
//go:embed peers
var scripts embed.FS

// script writes the named peer into the work directory and returns its path.
func script(c config, name string) (string, error) {
	b, err := scripts.ReadFile("peers/" + name)
	if err != nil {
		return "", fmt.Errorf("find peer: %w", err)
	}
	path := filepath.Join(c.work, name)
	if err := os.WriteFile(path, b, 0o644); err != nil {
		return "", fmt.Errorf("write peer: %w", err)
	}
	return path, nil
}

// errNoPeer says that a peer is not on this machine.
var errNoPeer = errors.New("peer is not on this machine")

// pythonVersion asks the Python of the peers what it has.
func pythonVersion(c config) (string, error) {
	if c.python == "" {
		return "", fmt.Errorf("%w: set SCRAPESTAT_PYTHON to a Python that has aiperf", errNoPeer)
	}
	const ask = `import importlib.metadata as m, sys
print("python", sys.version.split()[0], *(f"{p} {m.version(p)}" for p in ("aiperf", "prometheus_client", "numpy", "pyarrow")))`
	out, err := exec.Command(c.python, "-c", ask).Output()
	if err != nil {
		return "", fmt.Errorf("%w: ask %s for its packages: %w", errNoPeer, c.python, err)
	}
	return string(out[:len(out)-1]), nil
}

// worker is a peer in a process of its own that parses on demand: it reads a
// number of units from stdin and answers with nanoseconds and samples.
type worker struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startWorker starts a worker with env besides our own environment.
func startWorker(ctx context.Context, env []string, name string, args ...string) (*worker, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return &worker{cmd, in, bufio.NewReader(out)}, nil
}

// run has the worker do n units.
func (w *worker) run(n int) (time.Duration, error) {
	took, _, err := w.ask(n)
	return took, err
}

// ask returns the time and the number of things that the worker went through.
func (w *worker) ask(n int) (time.Duration, int64, error) {
	if _, err := fmt.Fprintln(w.in, n); err != nil {
		return 0, 0, fmt.Errorf("ask peer: %w", err)
	}
	var ns, things int64
	if _, err := fmt.Fscanln(w.out, &ns, &things); err != nil {
		return 0, 0, fmt.Errorf("read answer of peer: %w", err)
	}
	if things == 0 {
		return 0, 0, errors.New("peer went through nothing")
	}
	return time.Duration(ns), things, nil
}

func (w *worker) close() error { return errors.Join(w.in.Close(), w.cmd.Wait()) }

// vmParser builds the program that times VictoriaMetrics' parser, in GOPATH mode
// against the sources that Debian's packages install.
func vmParser(ctx context.Context, c config, bodies string) (*worker, error) {
	lib := filepath.Join(c.gocode, "src/github.com/VictoriaMetrics/VictoriaMetrics/lib/protoparser/prometheus")
	if _, err := os.Stat(lib); err != nil {
		return nil, fmt.Errorf("%w: %s; Debian has it in golang-github-victoriametrics-victoriametrics-dev (-gocode)", errNoPeer, lib)
	}
	src, err := script(c, "vmparse.go")
	if err != nil {
		return nil, err
	}
	bin := filepath.Join(c.work, "vmparse")
	build := exec.CommandContext(ctx, "go", "build", "-o", bin, src)
	build.Env = append(os.Environ(), "GO111MODULE=off", "GOFLAGS=", "GOPATH="+c.gocode)
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build vmparse: %w: %s", err, out)
	}
	return startWorker(ctx, nil, bin, bodies)
}

func pythonParser(ctx context.Context, c config, bodies string) (*worker, error) {
	if _, err := pythonVersion(c); err != nil {
		return nil, err
	}
	src, err := script(c, "parse.py")
	if err != nil {
		return nil, err
	}
	return startWorker(ctx, nil, c.python, src, bodies)
}

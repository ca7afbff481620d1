package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// measured is a server whose processor time a request is charged to.
type measured struct {
	name    string
	must    float64 // 0 judges nothing
	program string
	args    []string
	env     []string

	worker *worker
	url    string
}

// runRequest measures what a request costs the server that is measured: P17.
func runRequest(ctx context.Context, c config, r *report) error {
	if _, err := pythonVersion(c); err != nil {
		r.missing("AIPerf", err.Error()) // the goal is against its request
		return nil
	}
	servers, err := libraryServers(c)
	if err != nil {
		return err
	}
	c.seconds = min(c.seconds, 4) // the rounds are many, as the host is faster in some minutes than in others
	for _, s := range servers {
		if err := s.measure(ctx, c, r); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// libraryServers returns the servers to measure. That of Python's library is
// judged on the interpreter of the distribution, which is compiled with profiles
// as those of the images that servers are shipped in; the peers' own may be
// compiled without, as pyenv does, and then renders a quarter slower.
func libraryServers(c config) ([]*measured, error) {
	src, err := script(c, "server.py")
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	packages, version, err := pythonPackages(c.python)
	if err != nil {
		return nil, err
	}
	own := &measured{name: "Python's client library, Python " + version + " of the peers", program: c.python, args: []string{src}}
	servers := []*measured{own, {name: "Go's client library", must: 0.75, program: self, args: []string{"serve-library"}}}
	if _, version, err := pythonPackages(c.server); err == nil {
		servers = slices.Insert(servers, 0, &measured{name: "Python's client library, Python " + version + " of " + c.server, must: 0.75,
			program: c.server, args: []string{src}, env: []string{"PYTHONPATH=" + packages}})
	} else {
		own.must = 0.75
	}
	return servers, nil
}

// pythonPackages returns the folder of a Python's packages and its version.
func pythonPackages(python string) (folder, version string, err error) {
	out, err := exec.Command(python, "-c", `import sys, sysconfig; print(sysconfig.get_path("purelib"), sys.version.split()[0])`).Output()
	if err != nil {
		return "", "", fmt.Errorf("ask %s for its packages: %w", python, err)
	}
	_, err = fmt.Sscan(string(out), &folder, &version)
	return folder, version, err
}

// start starts the server.
func (m *measured) start(ctx context.Context) error {
	w, err := startWorker(ctx, m.env, m.program, m.args...)
	if err != nil {
		return err
	}
	port, err := w.out.ReadString('\n')
	if err != nil {
		return errors.Join(fmt.Errorf("start server: %w", err), w.close())
	}
	m.worker, m.url = w, fmt.Sprintf("http://127.0.0.1:%s/metrics", strings.TrimSpace(port))
	return nil
}

// measure starts the server and adds the rows of its requests.
func (m *measured) measure(ctx context.Context, c config, r *report) error {
	if err := m.start(ctx); err != nil {
		return err
	}
	defer m.worker.close()
	bin, err := build(ctx, c)
	if err != nil {
		return err
	}
	collector, err := script(c, "collect.py")
	if err != nil {
		return err
	}
	var mine, theirs, identity, gzip, filtered stat
	for range c.rounds {
		for _, of := range []struct {
			to  *stat
			ask func() error
		}{
			{&mine, func() error { return m.scraped(ctx, c, oursFor(bin)) }},
			{&theirs, func() error { return m.scraped(ctx, c, scraper{command: aiperfCollect(c.python, collector)}) }},
			{&identity, func() error { return m.plain(ctx, c, "", "identity") }},
			{&gzip, func() error { return m.plain(ctx, c, "", "gzip") }},
			{&filtered, func() error { return m.plain(ctx, c, "?name[]=vllm:counter_1_total", "identity") }},
		} {
			ms, err := m.cost(of.ask)
			if err != nil {
				return err
			}
			of.to.values = append(of.to.values, ms)
		}
	}
	what := func(text string) string { return m.name + ": " + text }
	r.add(row{goal: "P17", what: what("CPU of the median request, ours / AIPerf's collector"), unit: "ms", ours: mine, peer: theirs, peerName: "AIPerf", value: mine.over(theirs).median(), must: m.must})
	r.add(row{goal: "P17", what: what("the least a request for everything can cost: a plain client, identity / gzip"), unit: "ms", ours: identity, peer: gzip, peerName: "gzip", value: identity.over(gzip).median(),
		note: "the share of rendering; no choice of headers gets below it"})
	r.add(row{goal: "P17", what: what("ours / that least"), unit: "ms", ours: mine, peer: identity, peerName: "identity", value: mine.over(identity).median()})
	r.add(row{goal: "P17", what: what("one family by name[] / all, a plain client"), unit: "ms", ours: filtered, peer: identity, peerName: "all families", value: filtered.over(identity).median(),
		note: "what --keep with whole names saves where the server honours it"})
	return nil
}

// requestEvery is the pace of all who ask the server: that of one who asks
// without a pause finds it warmer.
const requestEvery = 50 * time.Millisecond

// cost returns the milliseconds of processor time of the median request of those
// that ask sends. The mean would charge a request with what the host took away.
func (m *measured) cost(ask func() error) (float64, error) {
	if _, err := m.costs(); err != nil {
		return 0, err
	}
	if err := ask(); err != nil {
		return 0, err
	}
	requests, err := m.costs()
	if err == nil && len(requests.values) < 10 {
		err = fmt.Errorf("the server saw %d requests, want 10 or more", len(requests.values))
	}
	return requests.median(), err
}

// costs asks the server for the processor time of each request since it was last asked.
func (m *measured) costs() (stat, error) {
	var s stat
	if _, err := fmt.Fprintln(m.worker.in); err != nil {
		return s, fmt.Errorf("ask server: %w", err)
	}
	line, err := m.worker.out.ReadString('\n')
	if err != nil {
		return s, fmt.Errorf("read answer of server: %w", err)
	}
	for field := range strings.FieldsSeq(line) {
		ns, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return s, fmt.Errorf("read answer of server: %w", err)
		}
		s.values = append(s.values, float64(ns)/1e6)
	}
	return s, nil
}

// scraped has a scraper poll the server for a while.
func (m *measured) scraped(ctx context.Context, c config, s scraper) error {
	dir, err := os.MkdirTemp(c.work, "request-")
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	defer os.RemoveAll(dir)
	name, args, err := s.command(dir, []string{m.url}, requestEvery, time.Duration(c.seconds)*time.Second)
	if err != nil {
		return err
	}
	p, err := start(ctx, c, -1, name, args...)
	if err != nil {
		return err
	}
	_, err = p.wait()
	return err
}

// plain polls the server for a while with no more than a request needs.
func (m *measured) plain(ctx context.Context, c config, query, encoding string) error {
	tick := time.NewTicker(requestEvery)
	defer tick.Stop()
	for range time.Duration(c.seconds) * time.Second / requestEvery {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url+query, nil)
		if err != nil {
			return fmt.Errorf("ask server: %w", err)
		}
		req.Header.Set("Accept-Encoding", encoding)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return fmt.Errorf("ask server: %w", err)
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil {
			return fmt.Errorf("read answer of server: %w", err)
		}
		<-tick.C
	}
	return nil
}

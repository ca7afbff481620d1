package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
)

// runRequest measures what a request costs a Python server: P17.
func runRequest(ctx context.Context, c config, r *report) error {
	server, port, err := startServer(ctx, c)
	if errors.Is(err, errNoPeer) {
		r.missing("Python server", err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	defer server.cmd.Process.Kill()
	url := fmt.Sprintf("http://127.0.0.1:%s/metrics", port)
	bin, err := build(ctx, c)
	if err != nil {
		return err
	}
	src, err := script(c, "collect.py")
	if err != nil {
		return err
	}
	c.seconds = min(c.seconds, 10)
	const every = 50 * time.Millisecond
	var mine, theirs, identity, gzip, filtered stat
	for range c.rounds {
		for to, s := range map[*stat]scraper{&mine: oursFor(bin), &theirs: {name: "AIPerf", command: aiperfCollect(c.python, src)}} {
			ms, err := serverCost(ctx, c, server, s, url, every)
			if err != nil {
				return err
			}
			to.values = append(to.values, ms)
		}
		if err := plain(server, url, "identity", &identity); err != nil {
			return err
		}
		if err := plain(server, url, "gzip", &gzip); err != nil {
			return err
		}
		if err := plain(server, url+"?name[]=vllm:counter_1_total", "identity", &filtered); err != nil {
			return err
		}
	}
	r.say("server: prometheus_client on wsgiref, 2,280 lines of 3 engines; gzip and one family by name[] asked by a plain client")
	r.add(row{goal: "P17", what: "server CPU per request, ours / AIPerf's collector", unit: "ms", ours: mine, peer: theirs, peerName: "AIPerf", value: mine.over(theirs).median(), must: 0.75})
	r.add(row{goal: "P17", what: "ours / a plain client that asks for gzip", unit: "ms", ours: mine, peer: gzip, peerName: "gzip", value: mine.over(gzip).median()})
	r.add(row{goal: "P17", what: "the least a request for everything can cost: a plain client, identity / gzip", unit: "ms", ours: identity, peer: gzip, peerName: "gzip", value: identity.over(gzip).median(),
		note: "the share of rendering; no choice of headers gets below it"})
	r.add(row{goal: "P17", what: "ours / that least", unit: "ms", ours: mine, peer: identity, peerName: "identity", value: mine.over(identity).median()})
	r.add(row{goal: "P17", what: "one family by name[] / all, a plain client", unit: "ms", ours: filtered, peer: mine, peerName: "ours, all families", value: filtered.over(mine).median(),
		note: "what --keep with whole names saves where the server honours it"})
	return nil
}

func startServer(ctx context.Context, c config) (*worker, string, error) {
	if _, err := pythonVersion(c); err != nil {
		return nil, "", err
	}
	src, err := script(c, "server.py")
	if err != nil {
		return nil, "", err
	}
	w, err := startWorker(ctx, c.python, src)
	if err != nil {
		return nil, "", err
	}
	port, err := w.out.ReadString('\n')
	return w, strings.TrimSpace(port), err
}

// serverCost has a scraper poll the server for a while and returns the
// milliseconds of the server's processor time per request.
func serverCost(ctx context.Context, c config, server *worker, s scraper, url string, every time.Duration) (float64, error) {
	dir, err := os.MkdirTemp(c.work, "request-")
	if err != nil {
		return 0, fmt.Errorf("make directory: %w", err)
	}
	defer os.RemoveAll(dir)
	name, args, err := s.command(dir, []string{url}, every, time.Duration(c.seconds)*time.Second)
	if err != nil {
		return 0, err
	}
	before, served, err := server.askAny()
	if err != nil {
		return 0, err
	}
	p, err := start(ctx, c, -1, name, args...)
	if err != nil {
		return 0, err
	}
	if _, err := p.wait(); err != nil {
		return 0, err
	}
	after, total, err := server.askAny()
	if err == nil && total == served {
		err = fmt.Errorf("%s sent no request: %s", s.name, p.tail())
	}
	return float64(after-before) / 1e6 / float64(max(1, total-served)), err
}

// plain asks the server 100 times.
func plain(server *worker, url, encoding string, to *stat) error {
	before, served, err := server.askAny()
	if err != nil {
		return err
	}
	for range 100 {
		req, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			return fmt.Errorf("ask server: %w", err)
		}
		req.Header.Set("Accept-Encoding", encoding)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return fmt.Errorf("ask server: %w", err)
		}
		resp.Body.Close()
	}
	after, total, err := server.askAny()
	to.values = append(to.values, float64(after-before)/1e6/float64(max(1, total-served)))
	return err
}

// askAny returns the two numbers of an answer.
func (w *worker) askAny() (a, b int64, err error) {
	if _, err := fmt.Fprintln(w.in, 0); err != nil {
		return 0, 0, fmt.Errorf("ask peer: %w", err)
	}
	if _, err := fmt.Fscanln(w.out, &a, &b); err != nil {
		return 0, 0, fmt.Errorf("read answer of peer: %w", err)
	}
	return a, b, nil
}

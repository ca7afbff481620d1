//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// killed is the count of servers that were ended in the middle.
const killed = "n:killed"

// asked begins the names of counts that are each a quantity to ask for.
const asked = "n:ask "

// client sends a load and counts what it gets: the truth that the recording is judged by.
type client struct {
	base string        // URL of the server
	dir  string        // with the process ids
	rest time.Duration // before and after a server is killed

	mu    sync.Mutex
	truth map[string]float64
	first time.Time // request issued
	last  time.Time // answer complete
}

// runLoad is the COMMAND of collect: it sends the load of a scenario to base and writes the truth into dir.
func runLoad(ctx context.Context, recipeName, scenarioName, base, dir string) error {
	all := recipes()
	r := all[slices.IndexFunc(all, func(r recipe) bool { return r.name == recipeName })]
	s := r.scenarios[slices.IndexFunc(r.scenarios, func(s scenario) bool { return s.name == scenarioName })]
	c := &client{base: base, dir: dir, rest: 1500 * time.Millisecond, truth: map[string]float64{}}
	if err := pause(ctx, s.late); err != nil { // a load generator that imports
		return err
	}
	if err := s.load(ctx, c); err != nil {
		return err
	}
	c.truth["seconds"] = c.last.Sub(c.first).Seconds()
	for name, n := range maps.Clone(c.truth) {
		if strings.HasPrefix(name, "n:") || name == "seconds" {
			continue
		}
		c.truth[name+"/s"] = n / c.truth["seconds"]
	}
	text, err := json.Marshal(c.truth)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "truth.json"), text, 0o600)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

func (c *client) add(name string, n float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.truth[name] += n
}

// paced sends n requests, one each interval, whether those before have ended or not; random numbers are those of i.
func (c *client) paced(ctx context.Context, n int, every time.Duration, send func(rnd *rand.Rand) error) error {
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		all.Go(func() { errs[i] = send(rand.New(rand.NewPCG(1, uint64(i)))) })
		if err := pause(ctx, every); err != nil {
			all.Wait()
			return err
		}
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// post sends body as JSON and returns the status and the answer.
func (c *client) post(ctx context.Context, path string, body any) (status int, answer []byte, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	c.edge(&c.first, true)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	c.edge(&c.last, false)
	return res.StatusCode, answer, err
}

// edge puts the time into first or last.
func (c *client) edge(to *time.Time, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); !first || to.IsZero() {
		*to = now
	}
}

// kill ends servers as a crash does. What they counted has been scraped: two polls and more have passed.
func (c *client) kill(ctx context.Context, names ...string) error {
	c.add(killed, float64(len(names)))
	if err := pause(ctx, c.rest); err != nil {
		return err
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(c.dir, name+".pid"))
		if err != nil {
			return err
		}
		pid, err := strconv.Atoi(string(text))
		if err != nil {
			return err
		}
		if err := syscall.Kill(-pid, syscall.SIGKILL); err != nil {
			return fmt.Errorf("kill %s: %w", name, err)
		}
	}
	return pause(ctx, c.rest)
}

// acrossKill sends a load, ends the server as a crash does, and sends the load again when its successor answers at a
// path.
func acrossKill(name, path string, load func(context.Context, *client) error) func(context.Context, *client) error {
	return func(ctx context.Context, c *client) error {
		if err := load(ctx, c); err != nil {
			return err
		}
		if err := c.kill(ctx, name); err != nil {
			return err
		}
		if err := answers(ctx, c.base+path, nil); err != nil {
			return err
		}
		return load(ctx, c)
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// demoRequests runs a load generator through the proxy of a collection and joins both sides.
func demoRequests(ctx context.Context, out string, duration time.Duration, std stdio) error {
	server, err := simulate.New("vllm", simulate.Options{Load: []simulate.LoadStep{{}}, Seed: 1})
	if err != nil {
		return fmt.Errorf("simulate a server: %w", err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the simulated server: %w", err)
	}
	front, err := freeAddress()
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	var wg sync.WaitGroup
	serving, stop := context.WithCancel(ctx)
	defer wg.Wait()
	defer stop()
	var serveErr, loadErr error
	wg.Go(func() { serveErr = server.ServeListener(serving, ln) })
	load := simulate.Clients{URL: "http://" + front, Rate: 10, For: max(duration-3*time.Second, duration/2), Seed: 1}
	var sent simulate.LoadResult
	wg.Go(func() {
		// What comes before the first scrape is counted by the clients alone.
		if askUntil(serving, func() bool { return listening(front) && profiling(out) }) {
			sent, loadErr = load.Run(serving)
		}
	})
	fmt.Fprintf(std.err, "a simulated server, a proxy and a load generator; this takes %v\n", duration)
	unseen := stdio{in: std.in, out: io.Discard, err: std.err} // the join shows both sides
	code := run(ctx, []string{"collect", "--out", out, "--duration", duration.String(), "--proxy",
		front + "=http://" + ln.Addr().String(),
		"--slice-duration", "5s", "--quiet", "vllm=" + ln.Addr().String()}, unseen)
	stop()
	wg.Wait()
	if err := errors.Join(serveErr, loadErr); err != nil {
		return err
	}
	if code != exitDone {
		return &codeError{code, nil}
	}
	fmt.Fprintf(std.err, "%d requests sent, %d answered, %d failed\n", sent.Sent, sent.Done, sent.Failed)
	if code := run(ctx, []string{"requests", "join", out}, std); code != exitDone {
		return &codeError{code, nil}
	}
	return nil
}

// freeAddress is an address of loopback that nobody listens on now.
func freeAddress() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return ln.Addr().String(), ln.Close()
}

// profiling reports whether the run in dir has taken its first scrapes.
func profiling(dir string) bool {
	run, err := rundb.Open(dir)
	if err != nil {
		return false
	}
	defer run.Close()
	return slices.ContainsFunc(run.Marks(), func(m metric.Mark) bool { return m.Name == metric.PhaseProfiling })
}

// listening reports whether somebody listens on an address.
func listening(address string) bool {
	c, err := net.Dial("tcp", address)
	return err == nil && c.Close() == nil
}

// askUntil asks again and again; it is false when ctx ends before the answer is yes.
func askUntil(ctx context.Context, yes func() bool) bool {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !yes() {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

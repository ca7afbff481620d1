package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/scrapestat/scrapestat/internal/simulate"
)

const (
	mockClients = 8
	// mockWork is how long the mock server works on a request, by waiting: an
	// engine's requests take its GPU, not its processor.
	mockWork = 50 * time.Millisecond
	// maxSpread is by how many percent the p99 of the server left alone may vary
	// from round to round for an effect of 1 % to be told from it.
	maxSpread = 5
)

// serveMock is the child process that is observed: /work answers when its work is
// done, /metrics with the metrics of vLLM, which it renders each time.
func serveMock(ctx context.Context, _ []string, out io.Writer) error {
	sim, err := simulate.New("vllm", simulate.Options{Rate: busyRate, Seed: 1, Engines: 3})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", sim)
	mux.HandleFunc("/work", func(w http.ResponseWriter, r *http.Request) {
		if pause(r.Context(), mockWork) == nil {
			fmt.Fprintln(w, "done")
		}
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fmt.Fprintln(out, ln.Addr())
	srv := &http.Server{Handler: mux}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	return srv.Serve(ln)
}

// holdObserved compares the latency of a server while it is polled with that while
// it is left alone, in turn: H3.
func holdObserved(ctx context.Context, c config, r *report) error {
	mock, err := startSelf(ctx, c, -1, "serve-mock")
	if err != nil {
		return err
	}
	defer mock.kill()
	address, err := mock.line()
	if err != nil {
		return fmt.Errorf("start mock server: %w", err)
	}
	base := "http://" + address[:len(address)-1]
	bin, err := build(ctx, c)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(c.work, "observed-")
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	defer os.RemoveAll(dir)
	length := time.Duration(max(min(c.seconds, 60), 4*c.rounds)) * time.Second / time.Duration(2*c.rounds)
	if _, err := latencies(ctx, base, time.Second); err != nil { // warms up
		return err
	}
	var alone, polled stat
	var allAlone, allPolled []time.Duration
	for round := range c.rounds {
		quiet, err := latencies(ctx, base, length)
		if err != nil {
			return err
		}
		p, err := start(ctx, c, -1, bin, "collect", "--quiet", "--formats=", "--settle=0", "--interval", interval.String(), "--duration", (length + 2*time.Second).String(),
			"--out", dir+"/"+strconv.Itoa(round), base+"/metrics")
		if err != nil {
			return err
		}
		if err := pause(ctx, time.Second); err != nil { // its start is not the scraping
			return err
		}
		busy, err := latencies(ctx, base, length)
		if err != nil {
			return err
		}
		if _, err := p.wait(); err != nil {
			return err
		}
		alone.values, polled.values = append(alone.values, p99ms(quiet)), append(polled.values, p99ms(busy))
		allAlone, allPolled = append(allAlone, quiet...), append(allPolled, busy...)
	}
	first := len(r.rows)
	added := 100 * (p99ms(allPolled)/p99ms(allAlone) - 1)
	of := alone.sorted()
	spread := 100 * (of[len(of)-1]/of[0] - 1)
	w := row{goal: "H3", what: "p99 latency of a mock server, added by polling it 3 times a second", unit: "% of ms", ours: polled, peer: alone, peerName: "left alone",
		value: max(0, added), must: 1, stretch: 0.5, note: fmt.Sprintf("all rounds: %.3f and %.3f ms; load average %s", p99ms(allPolled), p99ms(allAlone), loadAverage())}
	text := fmt.Sprintf("mock server, %d clients, %d requests of %v: p99 %.2f ms while polled 3 times a second, %.2f ms alone (%+.2f %%)",
		mockClients, len(allAlone)+len(allPolled), mockWork, p99ms(allPolled), p99ms(allAlone), added)
	if spread > maxSpread {
		// What the machine adds by itself is many times the limit: no verdict.
		w.must, w.stretch = 0, 0
		w.note += fmt.Sprintf("; not judged: left alone it varied by %.0f %% from round to round", spread)
		text += fmt.Sprintf(", which varied by %.0f %% from round to round: not judged", spread)
	}
	r.add(w)
	r.keep(c, "observed", text, first)
	return nil
}

// latencies sends requests, from each client one after the other, and returns how
// long each took.
func latencies(ctx context.Context, base string, length time.Duration) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, length+10*time.Second)
	defer cancel()
	transport := &http.Transport{MaxIdleConnsPerHost: mockClients}
	defer transport.CloseIdleConnections()
	var mu sync.Mutex
	var all []time.Duration
	var failed error
	var clients sync.WaitGroup
	end := time.Now().Add(length)
	for range mockClients {
		clients.Go(func() {
			var mine []time.Duration
			var err error
			for err == nil && time.Now().Before(end) {
				var took time.Duration
				if took, err = workOnce(ctx, transport, base); err == nil {
					mine = append(mine, took)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, mine...)
			if err != nil {
				failed = err
			}
		})
	}
	clients.Wait()
	return all, failed
}

func workOnce(ctx context.Context, transport http.RoundTripper, base string) (time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/work", nil)
	if err != nil {
		return 0, fmt.Errorf("ask mock server: %w", err)
	}
	began := time.Now()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return 0, fmt.Errorf("ask mock server: %w", err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0, fmt.Errorf("ask mock server: %w", err)
	}
	return time.Since(began), nil
}

// p99ms is the 99th percentile in milliseconds.
func p99ms(all []time.Duration) float64 {
	if len(all) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(all))
	return float64(sorted[len(sorted)*99/100]) / float64(time.Millisecond)
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// serveLibrary is the child process that answers with Prometheus' Go library, as
// the DCGM exporter does, the families that peers/server.py answers with the Python one. It
// prints its port, and answers each line of its input with the nanoseconds of
// processor time from the beginning of each request since the last such line to the
// beginning of the next.
func serveLibrary(ctx context.Context, _ []string, out io.Writer) error {
	reg := prometheus.NewRegistry()
	if err := fillLibrary(reg); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	var mu sync.Mutex
	var began []time.Duration
	families := promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		began = append(began, processorTime())
		mu.Unlock()
		families.ServeHTTP(w, r)
	})}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ln) }()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		return fmt.Errorf("split address: %w", err)
	}
	fmt.Fprintln(out, port)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		mu.Lock()
		for i := range max(0, len(began)-1) {
			fmt.Fprintf(out, "%d ", began[i+1]-began[i])
		}
		began = nil
		mu.Unlock()
		fmt.Fprintln(out)
	}
	err = srv.Close()
	if serve := <-ended; !errors.Is(serve, http.ErrServerClosed) {
		err = errors.Join(err, serve)
	}
	return err
}

// fillLibrary registers 15 histograms, counters and gauges of three engines each,
// with values as uneven as a server's are.
func fillLibrary(reg *prometheus.Registry) error {
	rnd := rand.New(rand.NewPCG(1, 1))
	labels := []string{"model_name", "engine"}
	edges := []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30}
	for i := range 15 {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: fmt.Sprintf("vllm:histogram_%d_seconds", i), Help: "Histogram of what the engine did in seconds.", Buckets: edges}, labels)
		n := prometheus.NewCounterVec(prometheus.CounterOpts{Name: fmt.Sprintf("vllm:counter_%d_total", i), Help: "Number of things the engine did."}, labels)
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: fmt.Sprintf("vllm:gauge_%d", i), Help: "Number of things the engine has."}, labels)
		for engine := range 3 {
			of := []string{"meta-llama/Llama-3.1-8B", strconv.Itoa(engine)}
			for range 2000 {
				h.WithLabelValues(of...).Observe(rnd.ExpFloat64() * float64(i+1) / 4)
			}
			n.WithLabelValues(of...).Add(float64(rnd.IntN(1e7)))
			g.WithLabelValues(of...).Set(rnd.Float64())
		}
		if err := errors.Join(reg.Register(h), reg.Register(n), reg.Register(g)); err != nil {
			return fmt.Errorf("register: %w", err)
		}
	}
	return nil
}

//go:build unix

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// triton is Triton with two versions of a model that batches, and an ensemble of both; one request in five fails.
// Triton counts a request that its model answers with an error as a success, and that is what must be shown.
func triton() recipe {
	counts := []row{
		{Ask: `nv_inference_request_success{model="dyn"} total`, Truth: "dyn"},
		{Ask: `nv_inference_request_success{model="ens"} total`, Truth: "ens"},
		{Ask: `nv_inference_request_success{model="seqm"} total`, Truth: "seqm"},
		{Ask: `triton_stats_requests_total{stat="success",model="dyn"} total`, Truth: "dyn"},
		{Ask: `triton_stats_requests_total{stat="success",model="seqm"} total`, Truth: "seqm"},
		{Ask: "derived:triton_derived_invariant_violations", Truth: "none"},
	}
	load := func(ctx context.Context, c *client) error {
		c.add("none", 0)
		if err := c.paced(ctx, 200, 25*time.Millisecond, infer(ctx, c)); err != nil {
			return err
		}
		for i := range 40 { // eight sequences of five
			if err := sequence(ctx, c, 1+i/5, i%5); err != nil {
				return err
			}
		}
		return nil
	}
	return recipe{
		name:     "triton",
		versions: "Triton 2.51 (nvidia-pytriton 0.7.0)",
		setup: func(_ context.Context, l *lab) error {
			stub, err := os.ReadFile(l.server("python_backend_stubs", "3.11", "triton_python_backend_stub"))
			if err != nil {
				return err
			}
			if err := os.MkdirAll(l.file("repo/ens/1"), 0o755); err != nil { // an empty folder is its version
				return err
			}
			return os.WriteFile(l.server("backends", "python", "triton_python_backend_stub"), stub, 0o755)
		},
		start: tritonProcesses,
		scenarios: []scenario{
			{name: "late", late: 20 * time.Second, unkept: true, rows: counts, load: load},
			{name: "killed", unkept: true, rows: counts, load: acrossKill("triton", "/v2/health/ready", load)},
		},
	}
}

// server is a file of the server in the package that brings it.
func (l *lab) server(names ...string) string {
	all := []string{l.home(), "venv", "lib", "python3.11", "site-packages", "pytriton", "tritonserver"}
	return filepath.Join(append(all, names...)...)
}

func tritonProcesses(l *lab, s *scenario) []*process {
	port, metrics, packages := freePort(), freePort(), l.server("..", "..")
	shared := fmt.Sprintf("scrapestat_lab_%d_", port)
	return []*process{{name: "triton", port: port, again: true, ready: loopback(port, "/v2/health/ready"),
		metrics: loopback(metrics, "/metrics"), follow: "triton+" + loopback(port, ""), remains: "/dev/shm/" + shared + "*",
		env: []string{"PYTHONPATH=" + packages, "PATH=" + filepath.Dir(l.python("python")) + ":" + os.Getenv("PATH"),
			"LD_LIBRARY_PATH=" + l.server("lib") + ":" + filepath.Join(packages, "nvidia_pytriton.libs")},
		args: []string{l.server("bin", "tritonserver"), "--model-repository", l.file("repo"),
			"--backend-directory", l.server("backends"), "--backend-config", "python,shm-region-prefix-name=" + shared,
			"--allow-grpc=false", "--http-address=127.0.0.1", "--http-port=" + strconv.Itoa(port),
			"--metrics-address=127.0.0.1", "--metrics-port=" + strconv.Itoa(metrics), "--metrics-interval-ms=1000",
			"--metrics-config=summary_latencies=true", "--metrics-config=histogram_latencies=true"}}}
}

// infer sends a batch of one to four rows to the model, in either version, or to the ensemble.
func infer(ctx context.Context, c *client) func(*rand.Rand) error {
	return func(rnd *rand.Rand) error {
		rows := 1 + rnd.IntN(4)
		data := make([]float64, 4*rows)
		kind := rnd.IntN(5)
		path := fmt.Sprintf("/v2/models/dyn/versions/%d/infer", 1+kind%2)
		switch kind {
		case 0:
			data[0] = -1
		case 1:
			path = "/v2/models/ens/infer"
		}
		status, text, err := c.post(ctx, path, map[string]any{"inputs": []any{map[string]any{"name": "X",
			"shape": []int{rows, 4}, "datatype": "FP32", "data": data}}})
		switch {
		case err != nil || (status == http.StatusOK) != (kind > 0):
			return fmt.Errorf("infer: status %d, %s: %w", status, text, err)
		case kind == 0:
			c.add("dyn", 1)
		case kind == 1:
			c.add("ens", 1)
			c.add("dyn", 2)
		default:
			c.add("dyn", 1)
		}
		return nil
	}
}

// sequence sends one of the five requests of a sequence, whose batcher pads what it runs.
func sequence(ctx context.Context, c *client, id, at int) error {
	status, text, err := c.post(ctx, "/v2/models/seqm/infer", map[string]any{
		"parameters": map[string]any{"sequence_id": id, "sequence_start": at == 0, "sequence_end": at == 4},
		"inputs": []any{map[string]any{"name": "X", "shape": []int{1, 4}, "datatype": "FP32",
			"data": []float64{1, 1, 1, 1}}}})
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("infer of a sequence: status %d, %s: %w", status, text, err)
	}
	c.add("seqm", 1)
	return nil
}

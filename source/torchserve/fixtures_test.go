package torchserve_test

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scrapestat/scrapestat/internal/testkit"
	"github.com/scrapestat/scrapestat/source/torchserve"
)

// fixture returns the path of recorded output of TorchServe 0.12.0.
func fixture(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(testkit.Path(t, "fixtures/torchserve"), name)
}

func TestBatchLine(t *testing.T) { // T3; its percentiles are those of package normalize
	v, _ := importAll(t, torchserve.Options{}, fixture(t, "model_metrics.log"))
	events := v.events[`HandlerTime{Hostname="vm",Level="Model",ModelName="echo"}`]
	lines, sum, requests, weighted, batch := 0, 0.0, 0, 0.0, 0
	for _, o := range events {
		lines, requests = lines+1, requests+len(o.Requests)
		sum += o.Value
		weighted += o.Value * float64(len(o.Requests))
		if o.Value == 28.74 {
			batch = len(o.Requests)
		}
	}
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-4 }
	if lines != 6 || !near(sum, 10426.66) || !near(sum/6, 1737.7767) || requests != 9 || !near(weighted/9, 1168.0978) ||
		batch != 4 {
		t.Errorf("%d lines, sum %v; %d requests, mean %v; batch of %d", lines, sum, requests, weighted/9, batch)
	}
}

func TestMetricLogs(t *testing.T) { // T4
	v, read := importAll(t, torchserve.Options{}, fixture(t, "ts_metrics.log"))
	if read.OK != 238 || read.Bad != 0 {
		t.Errorf("read %+v", read)
	}
	const model = `{hostname="vm",model_name="echo",model_version="default"}`
	const host = `{Hostname="vm",Level="Host"}`
	check := func(key string, want float64) {
		t.Helper()
		if got := v.values[key]; math.Abs(got-want) > 1e-6 || v.first[key] != 0 {
			t.Errorf("%s is %v after %v, want %v after 0", key, got, v.first[key], want)
		}
	}
	check("Requests2XX"+host, 13)
	check("Requests4XX"+host, 1)
	check("Requests5XX"+host, 1)
	check("ts_inference_requests"+model, 10)
	check("ts_inference_latency_microseconds"+model, 11067867.662)
	check("ts_queue_latency_microseconds"+model, 363213.563)
	mean := func(key string) (n int, mean float64) {
		for _, o := range v.events[key] {
			n++
			mean += o.Value
		}
		return n, mean / float64(n)
	}
	if n, m := mean("ts_inference_latency_microseconds" + model); n != 9 || math.Abs(m-1229763.0736) > 1e-4 {
		t.Errorf("inference latency: n %d, mean %v", n, m)
	}
	if n, m := mean("QueueTime" + host); n != 9 || m != 40 {
		t.Errorf("queue time: n %d, mean %v", n, m)
	}
	if _, m := mean("WorkerThreadTime" + host); math.Abs(m-16.3333) > 1e-4 {
		t.Errorf("worker thread time: mean %v", m)
	}
}

func TestEchoedLogs(t *testing.T) { // T5
	both, read := importAll(t, torchserve.Options{}, fixture(t, "ts_metrics.log"), fixture(t, "model_metrics.log"))
	if read.OK != 274 {
		t.Errorf("the metric logs have %d lines, want 274", read.OK)
	}
	check := func(name string, ignored int) {
		t.Helper()
		v, read := importAll(t, torchserve.Options{}, fixture(t, name))
		if read.OK != 274 || read.Ignored != ignored || read.Bad != 0 {
			t.Errorf("%s: read %+v", name, read)
		}
		if diff := cmp.Diff(both.values, v.values); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	check("stdout_metrics_lines.log", 40)
	check("ts_log_metrics_lines.log", 80)
	// All four at once count each event once.
	v, _ := importAll(t, torchserve.Options{}, fixture(t, "*.log"))
	if diff := cmp.Diff(both.values, v.values); diff != "" {
		t.Errorf("all logs at once: %s", diff)
	}
}

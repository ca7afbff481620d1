package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/internal/testkit"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/source/torchserve"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/window"
)

// torchserveRun imports logs and analyses the recording; the whole of it is the
// window.
func torchserveRun(t *testing.T, o torchserve.Options, paths ...string) *summary.Run {
	t.Helper()
	dir := t.TempDir()
	var db *rundb.Writer
	_, err := torchserve.Import(t.Context(), paths, nil, o, func(s *metric.Snapshot) (err error) {
		if db == nil {
			if db, err = rundb.Create(dir, rundb.Meta{ID: "t", OriginNS: s.AtNS()}, rundb.WriterOptions{}); err != nil {
				return err
			}
			if _, err := db.AddTarget(metric.Target{URL: "torchserve-log:x", Source: "torchserve-log"}); err != nil {
				return err
			}
		}
		return db.Record(s)
	})
	if err == nil {
		err = db.Close(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	rec, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	r, err := summary.Build(t.Context(), []summary.Recording{rec},
		summary.Options{Window: window.Ref{What: window.Recording}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// distributionOf returns the exact statistics of the only series of a metric.
func distributionOf(t *testing.T, r *summary.Run, name string) *normalize.Distribution {
	t.Helper()
	for i := range r.Metrics {
		if m := &r.Metrics[i]; m.Name == name && len(m.Series) == 1 && m.Series[0].Distribution != nil {
			return m.Series[0].Distribution
		}
	}
	t.Fatalf("no distribution of %s", name)
	return nil
}

func wantNumber(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-4 {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// T3 and T4 of the TorchServe notes: exact percentiles of recorded logs.
func TestTorchServePercentiles(t *testing.T) {
	r := torchserveRun(t, torchserve.Options{}, testkit.Path(t, "fixtures/torchserve"))
	handler := distributionOf(t, r, "HandlerTime")
	wantNumber(t, "handler sum", handler.Lines.Sum, 10426.66)
	wantNumber(t, "handler mean", handler.Lines.Avg, 1737.7767)
	wantNumber(t, "handler p50", handler.Lines.P50, 26.705)
	wantNumber(t, "handler p90", handler.Lines.P90, 5166.535)
	wantNumber(t, "handler p99", handler.Lines.P99, 9786.7345)
	wantNumber(t, "handler requests", float64(handler.Requests.N), 9)
	wantNumber(t, "handler mean of requests", handler.Requests.Avg, 1168.0978)
	latency := distributionOf(t, r, "ts_inference_latency_microseconds").Lines
	wantNumber(t, "latency lines", float64(latency.N), 9)
	wantNumber(t, "latency sum", latency.Sum, 11067867.662)
	wantNumber(t, "latency mean", latency.Avg, 1229763.0736)
	wantNumber(t, "latency p50", latency.P50, 68120.223)
	queue := distributionOf(t, r, "QueueTime").Lines
	wantNumber(t, "queue lines", float64(queue.N), 9)
	wantNumber(t, "queue mean", queue.Avg, 40)
	wantNumber(t, "queue p50", queue.P50, 6)
	wantNumber(t, "queue p99", queue.P99, 278)
	wantNumber(t, "queue max", queue.Max, 300)
	wantNumber(t, "thread mean", distributionOf(t, r, "WorkerThreadTime").Lines.Avg, 16.3333)
}

// T8: a histogram keeps its raw values too.
func TestTorchServeHistogram(t *testing.T) {
	const line = "EchoHist.ratio:0.25|#ModelName:echo,Level:Model|#type:HISTOGRAM|#hostname:vm,timestamp:5\n"
	path := filepath.Join(t.TempDir(), "model_metrics.log")
	if err := os.WriteFile(path, []byte(strings.Repeat(line, 5)+strings.Replace(line, "0.25", "1.0", 1)),
		0o600); err != nil {
		t.Fatal(err)
	}
	echo := distributionOf(t, torchserveRun(t, torchserve.Options{}, path), "EchoHist").Lines
	wantNumber(t, "lines", float64(echo.N), 6)
	wantNumber(t, "p99", echo.P99, 0.9625)
}

package main

import (
	"cmp"
	"encoding/json"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// nativeServer is a Go server with native histograms of client_golang. Each scrape
// finds what was observed up to it.
type nativeServer struct {
	mu       sync.Mutex
	handler  http.Handler
	observe  func() // before each scrape
	observed map[string][]float64
	marks    map[string][]int // observations by each scrape
	scrapes  int
}

func (s *nativeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observe()
	s.scrapes++
	s.handler.ServeHTTP(w, r)
	for name, list := range s.observed {
		s.marks[name] = append(s.marks[name], len(list))
	}
}

func newNativeServer() *nativeServer {
	s := &nativeServer{observed: map[string][]float64{}, marks: map[string][]int{}}
	reg := prometheus.NewRegistry()
	rng := rand.New(rand.NewPCG(7, 11))
	var steps []func()
	add := func(name string, o prometheus.HistogramOpts, value func() float64) {
		o.Name, o.Help = name, "A native histogram in seconds."
		h := prometheus.NewHistogram(o)
		reg.MustRegister(h)
		s.observed[name] = nil
		steps = append(steps, func() {
			for range 40 {
				v := value()
				h.(prometheus.ExemplarObserver).ObserveWithExemplar(v,
					prometheus.Labels{"trace_id": strconv.Itoa(len(s.observed[name]))})
				s.observed[name] = append(s.observed[name], v)
			}
		})
	}
	lognormal := func() float64 { return math.Exp(rng.NormFloat64()) }
	add("fine_seconds", prometheus.HistogramOpts{NativeHistogramBucketFactor: 1.1}, lognormal)
	// So few buckets that the server merges them again and again.
	add("merged_seconds", prometheus.HistogramOpts{NativeHistogramBucketFactor: 1.01, NativeHistogramMaxBucketNumber: 20},
		func() float64 { return math.Exp(3 * rng.NormFloat64()) })
	add("zeros_seconds", prometheus.HistogramOpts{NativeHistogramBucketFactor: 1.5, NativeHistogramZeroThreshold: 0.001,
		NativeHistogramMaxBucketNumber: 12, NativeHistogramMaxZeroThreshold: 0.5}, func() float64 {
		if rng.IntN(3) == 0 {
			return 0
		}
		return lognormal() / 10
	})
	add("both_seconds", prometheus.HistogramOpts{NativeHistogramBucketFactor: 1.2, Buckets: prometheus.DefBuckets},
		lognormal)
	s.observe = func() {
		for _, step := range steps {
			step()
		}
	}
	s.handler = promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
	return s
}

// referenceScrape returns the number of the scrape, from 1, that the window of a run
// of one target counts from. It is the first, unless a busy machine was late to
// begin the window.
func referenceScrape(t *testing.T, dir string) int {
	t.Helper()
	var doc struct {
		Scrapestat struct {
			Endpoints []struct {
				Outcomes map[string]int
				InWindow map[string]int `json:"outcomes_in_window"`
			}
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "server_metrics_export.json"))
	if err == nil {
		err = json.Unmarshal(data, &doc)
	}
	if err != nil || len(doc.Scrapestat.Endpoints) != 1 {
		t.Fatal(len(doc.Scrapestat.Endpoints), err)
	}
	e := doc.Scrapestat.Endpoints[0]
	before := e.Outcomes["ok"] - e.InWindow["ok"]
	if before < 1 || e.InWindow["ok"] < 1 {
		t.Fatalf("polls %v, of them in the window %v", e.Outcomes, e.InWindow)
	}
	return before
}

// TestNativeHistograms measures a real client_golang server over protobuf, from
// the socket to the exports, and compares with what it observed.
func TestNativeHistograms(t *testing.T) {
	t.Parallel()
	for _, estimator := range []string{"polynomial", "refined", "linear"} {
		s := newNativeServer()
		server := httptest.NewServer(s)
		dir := t.TempDir()
		runOK(t, "collect", server.URL, "-o", dir, "--force", "--duration", "1s", "--interval", "80ms", "--settle", "0s",
			"--scrape-budget", "0",
			"--protocols", "protobuf,text", "--estimator", estimator, "--formats", "json,csv,jsonl,parquet", "--quiet")
		server.Close()
		data, err := os.ReadFile(filepath.Join(dir, "server_metrics_export.json"))
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Metrics    map[string]struct{ Series []nativeExport }
			Scrapestat struct {
				Series []struct {
					Metric      string
					Native      bool
					CreatedNS   int64 `json:"created_ns"`
					Resets      int
					Warnings    []any
					Percentiles map[string]struct{ Value, Low, High float64 }
					Exemplars   []struct {
						Labels map[string]string
						Value  float64
						LE     string
						Above  string
					}
				}
			}
		}
		if err := json.Unmarshal(data, &doc); err != nil {
			t.Fatal(err)
		}
		if s.scrapes < 5 {
			t.Fatalf("%d scrapes, want several", s.scrapes)
		}
		found, reference := 0, referenceScrape(t, dir)
		for _, note := range doc.Scrapestat.Series {
			values := slices.Clone(s.observed[note.Metric])
			if values == nil {
				continue
			}
			found++
			values = values[s.marks[note.Metric][reference-1]:]
			checkObserved(t, note.Metric, doc.Metrics[note.Metric].Series[0], values)
			if !note.Native || note.CreatedNS == 0 || note.Resets != 0 || len(note.Warnings) != 0 || len(note.Percentiles) != 9 {
				t.Errorf("%s: got note %+v", note.Metric, note)
			}
			for name, p := range note.Percentiles {
				q, _ := strconv.ParseFloat(name[1:], 64)
				v := quantileOf(values, q/100)
				// linear is PromQL's, whose rank is up to one further: of few values that
				// can be one of the next bucket.
				out := estimator != "linear" && (p.Value < p.Low-1e-9 || p.Value > p.High+1e-9)
				if out || p.Low > v+1e-9 || v > p.High+1e-9 {
					t.Errorf("%s, %s %s: %v is observed, got %v in [%v, %v]", estimator, note.Metric, name, v, p.Value, p.Low, p.High)
				}
			}
			for _, x := range note.Exemplars {
				i, err := strconv.Atoi(x.Labels["trace_id"])
				low, _ := strconv.ParseFloat(x.Above, 64)
				high, _ := strconv.ParseFloat(x.LE, 64)
				if err != nil || i >= len(s.observed[note.Metric]) || s.observed[note.Metric][i] != x.Value || x.Value < low ||
					x.Value > high {
					t.Errorf("%s: exemplar %+v was not observed", note.Metric, x)
				}
			}
			if len(note.Exemplars) == 0 {
				t.Errorf("%s: no exemplars", note.Metric)
			}
		}
		if found != len(s.observed) {
			t.Errorf("%d native histograms in the export, want %d", found, len(s.observed))
		}
	}
}

// nativeExport is a histogram as AIPerf's schema has it.
type nativeExport struct {
	Stats   map[string]float64
	Buckets map[string]int64
}

// checkObserved compares count, sum and every bucket with the observations.
func checkObserved(t *testing.T, name string, got nativeExport, values []float64) {
	t.Helper()
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	if got.Stats["count"] != float64(len(values)) || math.Abs(got.Stats["sum"]-sum) > 1e-9*sum {
		t.Errorf("%s: got count %v and sum %v, want %d and %v", name, got.Stats["count"], got.Stats["sum"], len(values), sum)
	}
	if len(got.Buckets) < 5 {
		t.Errorf("%s: only %d buckets", name, len(got.Buckets))
	}
	for le, n := range got.Buckets {
		bound := math.Inf(1)
		if le != "+Inf" {
			var err error
			if bound, err = strconv.ParseFloat(le, 64); err != nil {
				t.Fatal(err)
			}
		}
		if bound < 0 {
			continue // the lower end of the bucket of zero
		}
		want := int64(0)
		for _, v := range values {
			if v <= bound {
				want++
			}
		}
		if n != want {
			t.Errorf("%s: bucket %s has %d, %d were observed", name, le, n, want)
		}
	}
}

// quantileOf is the quantile of values as the export defines it, linear between
// order statistics.
func quantileOf(values []float64, q float64) float64 {
	sorted := slices.SortedFunc(slices.Values(values), cmp.Compare[float64])
	at := q * float64(len(sorted)-1)
	k := int(at)
	if k+1 == len(sorted) {
		return sorted[k]
	}
	return sorted[k] + (at-float64(k))*(sorted[k+1]-sorted[k])
}

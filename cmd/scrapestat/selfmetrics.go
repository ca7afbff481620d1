package main

import (
	"cmp"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source/promstore"
)

// selfMetrics is what the collector measures of itself. Its methods may be called concurrently, name before all others.
type selfMetrics struct {
	registry *prometheus.Registry
	mu       sync.RWMutex
	targets  []string // label by target

	polls    *prometheus.CounterVec
	bytes    *prometheus.CounterVec
	lines    *prometheus.CounterVec
	drops    *prometheus.CounterVec
	took     *prometheus.HistogramVec
	lateness *prometheus.HistogramVec
	commits  prometheus.Histogram
	failed   prometheus.Counter
}

func newSelfMetrics() *selfMetrics {
	seconds := prometheus.ExponentialBuckets(0.0005, 2, 14) // 0.5 ms to 4 s
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "scrapestat_" + name, Help: help}, labels)
	}
	histogram := func(name, help string) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{Name: "scrapestat_" + name, Help: help, Buckets: seconds}
	}
	m := &selfMetrics{
		registry: prometheus.NewRegistry(),
		polls:    counter("scrapes_total", "Scrapes by target and outcome.", "target", "outcome"),
		bytes:    counter("scrape_body_bytes_total", "Bytes of scrape bodies, decompressed.", "target"),
		lines:    counter("sample_lines_total", "Sample lines of stored scrapes, the dropped ones among them.", "target"),
		drops:    counter("sample_lines_dropped_total", "Sample lines that were not stored, by reason.", "target", "reason"),
		took: prometheus.NewHistogramVec(histogram("scrape_duration_seconds",
			"From sending a request until its body was read."), []string{"target"}),
		lateness: prometheus.NewHistogramVec(histogram("scrape_lateness_seconds",
			"How much later than due a request was sent."), []string{"target"}),
		commits: prometheus.NewHistogram(histogram("commit_duration_seconds", "Transactions of the recording.")),
		failed: prometheus.NewCounter(prometheus.CounterOpts{Name: "scrapestat_commits_failed_total",
			Help: "Transactions that failed; the run ends."}),
	}
	m.registry.MustRegister(m.polls, m.bytes, m.lines, m.drops, m.took, m.lateness, m.commits, m.failed)
	return m
}

// name sets the label of the next target: its name, or else its address.
func (m *selfMetrics) name(t metric.Target) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.targets = append(m.targets, cmp.Or(t.Name, t.URL))
}

// Record implements collect.Observer.
func (m *selfMetrics) Record(s *metric.Snapshot) {
	m.mu.RLock()
	t := m.targets[s.Target]
	m.mu.RUnlock()
	m.polls.WithLabelValues(t, s.Outcome.String()).Inc()
	m.bytes.WithLabelValues(t).Add(float64(s.BodyBytes))
	if s.SentNS > 0 {
		m.took.WithLabelValues(t).Observe(s.Duration.Seconds())
		m.lateness.WithLabelValues(t).Observe(max(0, time.Duration(s.SentNS-s.DueNS).Seconds()))
	}
	m.lines.WithLabelValues(t).Add(float64(s.Lines))
	for _, d := range s.Drops {
		m.drops.WithLabelValues(t, d.Reason).Add(float64(d.Lines))
	}
}

// commit is told of each transaction of the recording.
func (m *selfMetrics) commit(took time.Duration, err error) {
	m.commits.Observe(took.Seconds())
	if err != nil {
		m.failed.Inc()
	}
}

// mirror adds what remote write says of itself.
func (m *selfMetrics) mirror(w *promstore.RemoteWriter) {
	for _, x := range []struct {
		name, help string
		value      func(promstore.WriteStats) int64
	}{
		{"samples_sent_total", "Samples that the receiver of remote write accepted.",
			func(s promstore.WriteStats) int64 { return s.Sent }},
		{"samples_dropped_total", "Samples that were dropped as the receiver of remote write did not follow.",
			func(s promstore.WriteStats) int64 { return s.Dropped }},
		{"samples_failed_total", "Samples that the receiver of remote write refused.",
			func(s promstore.WriteStats) int64 { return s.Failed }},
		{"requests_total", "Requests to the receiver of remote write, without retries.",
			func(s promstore.WriteStats) int64 { return s.Requests }},
		{"retries_total", "Retries of requests to the receiver of remote write.",
			func(s promstore.WriteStats) int64 { return s.Retries }},
	} {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "scrapestat_remote_write_" + x.name,
			Help: x.help},
			func() float64 { return float64(x.value(w.Stats())) }))
	}
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "scrapestat_remote_write_queued_samples",
		Help: "Samples that wait to be sent."},
		func() float64 { return float64(w.Stats().Queued) }))
}

// handler serves the metrics as an exposition.
func (m *selfMetrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 5 * time.Second})
}

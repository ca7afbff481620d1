package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

const (
	contentType = "text/plain; version=0.0.4; charset=utf-8"
	interval    = 333 * time.Millisecond
	// busyRate makes about 68 % of the values change between two scrapes.
	busyRate = 28
)

// source is a simulated server on a clock of its own.
type source struct {
	now    time.Time
	server *simulate.Server
}

// newSource returns the load of the goals: a vLLM-like server with three
// engines, warm and busy.
func newSource(seed uint64, o simulate.Options) (*source, error) {
	s := &source{now: time.Unix(1_790_000_000, 0)}
	o.Now, o.Seed = func() time.Time { return s.now }, seed
	if o.Rate == 0 {
		o.Rate = busyRate
	}
	if o.Engines == 0 {
		o.Engines = 3
	}
	var err error
	if s.server, err = simulate.New("vllm", o); err != nil {
		return nil, fmt.Errorf("make load: %w", err)
	}
	s.step(nil, time.Minute)
	return s, nil
}

// step lets d pass and appends the body to b.
func (s *source) step(b []byte, d time.Duration) []byte {
	s.now = s.now.Add(d)
	return s.server.AppendBody(b)
}

// load is a series of bodies, an interval apart.
type load struct {
	bodies  [][]byte
	samples int     // of one body
	bytes   int     // of all
	changed float64 // share of values that change from one to the next
	lines   int     // in all
}

// record makes n bodies.
func record(seed uint64, n int, o simulate.Options) (*load, error) {
	s, err := newSource(seed, o)
	if err != nil {
		return nil, err
	}
	l := &load{}
	for range n {
		b := s.step(nil, interval)
		l.bodies = append(l.bodies, b)
		l.bytes += len(b)
	}
	l.samples = s.server.Samples()
	return l, l.measure()
}

// measure finds the share of changing values by decoding.
func (l *load) measure() error {
	d, err := scrape.NewDecoder(scrape.Options{})
	if err != nil {
		return err
	}
	changed, of := 0, 0
	for _, b := range l.bodies {
		var s metric.Snapshot
		d.Decode(&s, scrape.Body{Bytes: b, ContentType: contentType})
		if s.Outcome != metric.OK {
			return fmt.Errorf("decode load: %v %s %v", s.Outcome, s.Err, s.Drops)
		}
		l.lines += s.Lines
		if !s.Delta.Full {
			changed += len(s.Delta.Slots)
			of += s.Lines
		}
	}
	if of > 0 {
		l.changed = float64(changed) / float64(of)
	}
	return nil
}

func (l *load) String() string {
	return fmt.Sprintf("%d bodies of %.1f KB, %d samples each, %.1f %% of the values change between two", len(l.bodies),
		float64(l.bytes)/float64(len(l.bodies))/1e3, l.samples, 100*l.changed)
}

// save writes the bodies as files for peers.
func (l *load) save(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("save load: %w", err)
	}
	for i, b := range l.bodies {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%06d.prom", i)), b, 0o644); err != nil {
			return fmt.Errorf("save load: %w", err)
		}
	}
	return nil
}

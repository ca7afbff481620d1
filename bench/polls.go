package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/scrape"
)

const (
	contentType = "text/plain; version=0.0.4; charset=utf-8"
	interval    = 333 * time.Millisecond
	busyRate    = 28 // makes about 68 % of the values change between two scrapes
	runTargets  = 8  // of a recording, made of two servers
	runServers  = 2
)

// source is a simulated vLLM-like server with three engines, warm and busy, on a clock of its own.
type source struct {
	now    time.Time
	server *simulate.Server
}

func newSource(seed uint64, extra int) (*source, error) {
	s := &source{now: time.Unix(1_790_000_000, 0)}
	var err error
	if s.server, err = simulate.New("vllm", simulate.Options{Seed: seed, Rate: busyRate, Engines: 3, ExtraSeries: extra,
		Now: func() time.Time { return s.now }}); err != nil {
		return nil, fmt.Errorf("make load: %w", err)
	}
	s.body(time.Minute)
	return s, nil
}

// body lets d pass and returns the metrics.
func (s *source) body(d time.Duration) []byte {
	s.now = s.now.Add(d)
	return s.server.AppendBody(nil)
}

// polls is what a collector would hand to a recording, in memory.
type polls struct {
	of       [runServers][]*metric.Snapshot
	bodies   [][]byte // of the first server
	samples  int      // of those bodies
	checksum uint64   // of what reading a recording must give
}

// simulatePolls polls both servers n times and keeps that many bodies of the first.
func simulatePolls(n, bodies int) (*polls, error) {
	p := &polls{}
	for server := range runServers {
		src, err := newSource(uint64(server+1), 0)
		if err != nil {
			return nil, err
		}
		d, err := scrape.NewDecoder(scrape.Options{})
		if err != nil {
			return nil, err
		}
		for seq := range n {
			body := src.body(interval)
			at := src.now.UnixNano()
			s := metric.Snapshot{Kind: metric.Periodic, Seq: uint64(seq), Status: 200, Duration: 900 * time.Microsecond,
				DueNS: at - 500_000, SentNS: at - 400_000, FirstByteNS: at}
			if seq == 0 {
				s.Kind = metric.Baseline
			}
			if d.Decode(&s, scrape.Body{Bytes: body, ContentType: contentType}); s.Outcome != metric.OK {
				return nil, fmt.Errorf("decode load: %v %s", s.Outcome, s.Err)
			}
			p.of[server] = append(p.of[server], s.Clone())
			p.checksum += runTargets / runServers * checksum(&s)
			if server == 0 && seq < bodies {
				p.bodies, p.samples = append(p.bodies, body), p.samples+s.Lines
			}
		}
	}
	return p, nil
}

// checksum mixes where a value is with what it is.
func checksum(s *metric.Snapshot) uint64 {
	var sum uint64
	for i, slot := range s.Delta.Slots {
		sum += (uint64(slot) + 1) * (s.Delta.Bits[i]>>7 ^ s.Delta.Bits[i])
	}
	return sum
}

// record writes the polls into dir, with a commit each 100 ms of simulated time, and returns the number of samples. It
// leaves a copy of the files in killed, unless that is "", as a kill leaves them.
func (p *polls) record(dir, killed string) (samples int, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, fmt.Errorf("make run directory: %w", err)
	}
	meta := rundb.Meta{ID: "bench", Version: "bench", OriginNS: p.of[0][0].DueNS, Interval: interval}
	w, err := rundb.Create(dir, meta, rundb.WriterOptions{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, w.Close(context.Background())) }()
	for i := range runTargets {
		t := metric.Target{URL: fmt.Sprintf("http://127.0.0.1:%d/metrics", 8000+i), Source: "prometheus"}
		if _, err := w.AddTarget(t); err != nil {
			return 0, err
		}
	}
	endNS := int64(0)
	for i := range len(p.of[0]) * runTargets {
		s := *p.of[i%runServers][i/runTargets]
		s.Target = i % runTargets
		samples, endNS = samples+s.Lines, s.AtNS()+1
		err := w.Record(&s)
		if err == nil && i*5%12 < 5 { // eight targets in 333 ms: 100 ms hold 2.4 polls
			err = w.Flush(context.Background())
		}
		if err == nil && i == runTargets-1 {
			err = w.Mark(metric.Mark{Name: metric.PhaseProfiling, AtNS: endNS, Kind: metric.MarkOwn})
		}
		if err != nil {
			return 0, err
		}
	}
	if killed != "" {
		shared := filepath.Join(killed, rundb.FileName+"-shm") // memory, which goes with the process
		if err := errors.Join(w.Flush(context.Background()), os.CopyFS(killed, os.DirFS(dir)),
			os.RemoveAll(shared)); err != nil {
			return 0, err
		}
	}
	return samples, w.Mark(metric.Mark{Name: metric.MarkEnd, AtNS: endNS, Kind: metric.MarkOwn})
}

// sizeOf returns the bytes of the files in dir.
func sizeOf(dir string) (n float64, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		info, err2 := e.Info()
		if err = errors.Join(err, err2); err == nil {
			n += float64(info.Size())
		}
	}
	return n, err
}

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

// polls is what a collector would hand to the recording, kept in memory.
type polls struct {
	snapshots []*metric.Snapshot
	samples   int
}

// poller turns bodies of a source into snapshots, on the clock of the source.
type poller struct {
	source  *source
	decoder *scrape.Decoder
	target  int
	seq     uint64
	step    time.Duration
	spare   []byte
	s       metric.Snapshot
}

func newPoller(target int, seed uint64, step time.Duration, o simulate.Options) (*poller, error) {
	s, err := newSource(seed, o)
	if err != nil {
		return nil, err
	}
	d, err := scrape.NewDecoder(scrape.Options{})
	if err != nil {
		return nil, err
	}
	s.now = s.now.Add(step * time.Duration(target%8) / 8)
	return &poller{source: s, decoder: d, target: target, step: step}, nil
}

// next polls once; the snapshot is valid until the next call.
func (p *poller) next() (*metric.Snapshot, error) {
	body := p.source.step(p.spare[:0], p.step)
	p.spare = body
	at := p.source.now.UnixNano()
	p.s = metric.Snapshot{Target: p.target, Seq: p.seq, DueNS: at - 500_000, SentNS: at - 400_000, FirstByteNS: at,
		Duration: 900 * time.Microsecond, Status: 200}
	if p.seq > 0 {
		p.s.Kind = metric.Periodic
	} else {
		p.s.Kind = metric.Baseline
	}
	p.seq++
	p.decoder.Decode(&p.s, scrape.Body{Bytes: body, ContentType: contentType})
	if p.s.Outcome != metric.OK {
		return nil, fmt.Errorf("decode load: %v %s", p.s.Outcome, p.s.Err)
	}
	return &p.s, nil
}

// keep polls n times and keeps everything but the bodies.
func (p *poller) keep(n int) (*polls, error) {
	var out polls
	for range n {
		s, err := p.next()
		if err != nil {
			return nil, err
		}
		out.snapshots = append(out.snapshots, s.Clone())
		out.samples += s.Lines
	}
	return &out, nil
}

// newRecording makes dir and a recording of that many targets in it.
func newRecording(dir string, targets int, originNS int64) (*rundb.Writer, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make run directory: %w", err)
	}
	w, err := rundb.Create(dir, rundb.Meta{ID: "bench", Version: "bench", OriginNS: originNS, Interval: interval}, rundb.WriterOptions{})
	if err != nil {
		return nil, err
	}
	for i := range targets {
		t := metric.Target{URL: fmt.Sprintf("http://127.0.0.1:%d/metrics", 8000+i), Source: "prometheus"}
		if _, err := w.AddTarget(t); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	return w, nil
}

// recordFor records that many targets for a stretch of simulated time, marks
// included, and returns the number of samples.
func recordFor(ctx context.Context, dir string, targets int, length, step time.Duration, o simulate.Options) (samples int, err error) {
	var pollers []*poller
	for i := range targets {
		p, err := newPoller(i, uint64(i+1), step, o)
		if err != nil {
			return 0, err
		}
		pollers = append(pollers, p)
	}
	origin := pollers[0].source.now.UnixNano()
	w, err := newRecording(dir, targets, origin)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if samples, err = recordPolls(ctx, w, pollers, int(length/step)); err != nil {
		return 0, err
	}
	return samples, w.Mark(metric.Mark{Name: metric.MarkEnd, AtNS: pollers[targets-1].source.now.UnixNano() + 1})
}

// recordPolls records so many polls of each poller, and the mark behind the first
// of all, and returns the number of samples.
func recordPolls(ctx context.Context, w *rundb.Writer, pollers []*poller, polls int) (samples int, err error) {
	for i := range polls {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		for _, p := range pollers {
			s, err := p.next()
			if err != nil {
				return 0, err
			}
			samples += s.Lines
			if err := w.Record(s); err != nil {
				return 0, err
			}
		}
		if i == 0 {
			if err := w.Mark(metric.Mark{Name: metric.PhaseProfiling, AtNS: pollers[len(pollers)-1].source.now.UnixNano() + 1}); err != nil {
				return 0, err
			}
		}
	}
	return samples, nil
}

// sizeOf returns the bytes of all files below dir.
func sizeOf(dir string) (int64, error) {
	var n int64
	err := filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}

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
)

const (
	storeTargets = 8
	storePolls   = 1800 // ten minutes
)

// runStore measures recording: P9 and P10.
func runStore(ctx context.Context, c config, r *report) error {
	busy, err := storeLoad(simulate.Options{})
	if err != nil {
		return err
	}
	r.say("load: %d targets x 10 min, %d samples in all, commits every 100 ms of simulated time", storeTargets, busy.samples*storeTargets/len(busy.of))
	samples := float64(busy.samples * storeTargets / len(busy.of))
	var write, bulk, read, size, tsdbWrite, tsdbWAL, tsdbBlock stat
	for round := range c.rounds {
		dir := filepath.Join(c.work, fmt.Sprint("store", round))
		took, err := busy.record(dir, true)
		if err != nil {
			return err
		}
		write.values = append(write.values, took/samples)
		n, err := sizeOf(dir)
		if err != nil {
			return err
		}
		size.values = append(size.values, float64(n)/samples)
		if took, err = readBack(ctx, dir, busy.checksum); err != nil {
			return err
		}
		read.values = append(read.values, took/samples)
		if took, err = busy.record(dir+"bulk", false); err != nil {
			return err
		}
		bulk.values = append(bulk.values, took/samples)
		t, err := busy.tsdb(ctx, dir+"tsdb")
		if err != nil {
			return err
		}
		tsdbWrite.values = append(tsdbWrite.values, t.ns)
		tsdbWAL.values = append(tsdbWAL.values, t.wal)
		tsdbBlock.values = append(tsdbBlock.values, t.block)
		if err := errors.Join(os.RemoveAll(dir), os.RemoveAll(dir+"bulk"), os.RemoveAll(dir+"tsdb")); err != nil {
			return err
		}
	}
	const peer = "Prometheus TSDB"
	r.add(row{goal: "P9", what: "recording on disk, busy", unit: "B/sample", ours: size, value: size.median(), must: 0.55, stretch: 0.42})
	r.add(row{goal: "P9", what: "recording / block of the TSDB", unit: "B/sample", ours: size, peer: tsdbBlock, peerName: peer + ", block", value: size.over(tsdbBlock).median(), must: 1.0 / 3})
	r.add(row{goal: "P9", what: "recording / WAL of the TSDB", unit: "B/sample", ours: size, peer: tsdbWAL, peerName: peer + ", WAL", value: size.over(tsdbWAL).median()})
	r.add(row{speed: true, goal: "P10", what: "write, a commit every 100 ms", unit: "ns/sample", ours: write, peer: tsdbWrite, peerName: peer + ", append", value: write.median(), must: 30, stretch: 12})
	r.add(row{speed: true, goal: "P10", what: "write, as fast as it goes", unit: "ns/sample", ours: bulk, value: bulk.median(), must: 30, stretch: 12})
	r.add(row{speed: true, goal: "P10", what: "read back, every value compared by checksum", unit: "ns/sample", ours: read, value: read.median(), must: 30, stretch: 10})
	return idle(c, r)
}

// idle measures a recording of servers without load.
func idle(c config, r *report) error {
	l, err := storeLoad(simulate.Options{Load: []simulate.LoadStep{{}}})
	if err != nil {
		return err
	}
	var size [2]float64
	for i, polls := range []int{storePolls / 2, storePolls} {
		dir := filepath.Join(c.work, fmt.Sprint("idle", i))
		if _, err := l.recordPolls(dir, polls, true); err != nil {
			return err
		}
		n, err := sizeOf(dir)
		if err != nil {
			return err
		}
		size[i] = float64(n)
	}
	samples := float64(l.samples * storeTargets / len(l.of))
	grown := (size[1] - size[0]) / (samples / 2)
	r.add(row{goal: "P9", what: "idle: what the second five minutes add", unit: "B/sample", ours: one(grown), value: grown, must: 0.02})
	r.add(row{goal: "P9", what: "idle: all of ten minutes, the dictionaries included", unit: "B/sample", ours: one(size[1] / samples), value: size[1] / samples})
	return nil
}

// material is the polls of some targets, to be recorded again and again; each
// stands for several of the targets of a recording.
type material struct {
	of       []*polls
	samples  int
	checksum uint64 // of what reading storeTargets targets must give
}

func storeLoad(o simulate.Options) (*material, error) {
	m := &material{}
	for i := range 2 {
		p, err := newPoller(i, uint64(i+1), interval, o)
		if err != nil {
			return nil, err
		}
		kept, err := p.keep(storePolls)
		if err != nil {
			return nil, err
		}
		m.of = append(m.of, kept)
		m.samples += kept.samples
		for _, s := range kept.snapshots {
			m.checksum += storeTargets / 2 * checksum(s)
		}
	}
	return m, nil
}

// checksum mixes where a value is with what it is.
func checksum(s *metric.Snapshot) uint64 {
	var sum uint64
	for i, slot := range s.Delta.Slots {
		sum += (uint64(slot) + 1) * (s.Delta.Bits[i]>>7 ^ s.Delta.Bits[i])
	}
	return sum
}

// record records the material and returns the processor time in nanoseconds,
// the opening and closing of the recording included.
func (m *material) record(dir string, paced bool) (float64, error) {
	return m.recordPolls(dir, storePolls, paced)
}

func (m *material) recordPolls(dir string, polls int, paced bool) (float64, error) {
	start := processorTime()
	w, err := newRecording(dir, storeTargets, m.of[0].snapshots[0].SentNS)
	if err != nil {
		return 0, err
	}
	for i := range polls {
		for t := range storeTargets {
			s := *m.of[t%len(m.of)].snapshots[i]
			s.Target = t
			if err := w.Record(&s); err != nil {
				return 0, errors.Join(err, w.Close())
			}
			// Eight targets in 333 ms: a commit every 100 ms holds 2.4 polls.
			if paced && t%5%2 == 1 {
				if err := w.Flush(); err != nil {
					return 0, errors.Join(err, w.Close())
				}
			}
		}
	}
	if err := w.Close(); err != nil {
		return 0, err
	}
	return float64(processorTime() - start), nil
}

// readBack reads a recording and compares what it holds with what was written,
// slots that repeat in full frames included.
func readBack(ctx context.Context, dir string, want uint64) (float64, error) {
	start := processorTime()
	run, err := rundb.Open(dir)
	if err != nil {
		return 0, err
	}
	var sum uint64
	for t := range run.Targets() {
		for s, err := range run.Snapshots(ctx, t) {
			if err != nil {
				return 0, errors.Join(err, run.Close())
			}
			sum += checksum(s)
		}
	}
	if err := run.Close(); err != nil {
		return 0, err
	}
	took := processorTime() - start
	if sum != want {
		return 0, fmt.Errorf("read back %s: checksum %x, wrote %x", dir, sum, want)
	}
	return float64(took), nil
}

func millis(ns int64) int64 { return ns / int64(time.Millisecond) }

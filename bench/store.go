package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"github.com/scrapestat/scrapestat/rundb"
)

// stored is what a way to store took, per sample.
type stored struct{ write, read, size stat }

func (s *stored) add(samples int, write, read, size float64) {
	n := float64(samples)
	s.write, s.read, s.size = append(s.write, write/n), append(s.read, read/n), append(s.size, size/n)
}

// runStore measures recording against the same bodies in a zstd stream, which is what
// a recorder that knows nothing of their format would keep.
func runStore(ctx context.Context, b *bench) error {
	p, err := simulatePolls(b.polls, b.polls)
	if err != nil {
		return err
	}
	var ours, peer stored
	for range b.rounds {
		if err := errors.Join(p.store(ctx, filepath.Join(b.work, "store"), &ours), p.compress(&peer)); err != nil {
			return err
		}
	}
	const name = "zstd of the bodies"
	// Half of it is the kernel's, for pages of the file: a machine that takes unused memory back doubles that.
	b.add("write, ns/sample", ours.write, peer.write, name, 0.5)
	b.add("read and compare, ns/sample", ours.read, peer.read, name, 0.25)
	b.add("size, B/sample", ours.size, peer.size, name, 0.18)
	return nil
}

// store records and reads back.
func (p *polls) store(ctx context.Context, dir string, to *stored) error {
	start := processorTime()
	samples, err := p.record(dir, "")
	if err != nil {
		return err
	}
	written := processorTime()
	sum, err := readBack(ctx, dir)
	if err != nil {
		return err
	}
	read := processorTime()
	if sum != p.checksum {
		return fmt.Errorf("read back %s: checksum %x, wrote %x", dir, sum, p.checksum)
	}
	size, err := sizeOf(dir)
	to.add(samples, float64(written-start), float64(read-written), size)
	return errors.Join(err, os.RemoveAll(dir))
}

// readBack reads all values of a recording.
func readBack(ctx context.Context, dir string) (sum uint64, err error) {
	run, err := rundb.Open(dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	for t := range run.Targets() {
		for s, err := range run.Snapshots(ctx, t) {
			if err != nil {
				return 0, err
			}
			sum += checksum(s)
		}
	}
	return sum, nil
}

// compress compresses all bodies and reads them.
func (p *polls) compress(to *stored) error {
	all := bytes.Join(p.bodies, nil)
	w, err1 := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	r, err2 := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(8<<30))
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("compress bodies: %w", err)
	}
	defer r.Close()
	start := processorTime()
	file := w.EncodeAll(all, nil)
	written := processorTime()
	read, err := r.DecodeAll(file, make([]byte, 0, len(all)))
	to.add(p.samples, float64(written-start), float64(processorTime()-written), float64(len(file)))
	if !bytes.Equal(read, all) {
		return fmt.Errorf("read compressed bodies: they differ: %w", err)
	}
	return nil
}

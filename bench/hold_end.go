package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/rundb"
)

const (
	endTargets = 10
	endLength  = 10 * time.Minute
)

// holdEnd records ten targets for ten minutes of simulated time and exports that
// run after a clean stop and after a kill: H4, H5.
func holdEnd(ctx context.Context, c config, r *report) error {
	clean, killed := filepath.Join(c.work, "end-clean"), filepath.Join(c.work, "end-killed")
	samples, err := recordKilled(ctx, c, clean, killed)
	if err != nil {
		return err
	}
	journal, err := sizeOf(clean)
	if err != nil {
		return err
	}
	stopped, _, err := export(ctx, c, clean, "json,csv,parquet")
	if err != nil {
		return err
	}
	_, parquet, err := export(ctx, c, clean, "parquet")
	if err != nil {
		return err
	}
	after, _, err := export(ctx, c, killed, "json,csv,parquet")
	if err != nil {
		return err
	}
	first := len(r.rows)
	r.add(row{speed: true, goal: "H4", what: "JSON, CSV and Parquet of 10 targets x 10 min after the stop", unit: "s", ours: one(stopped.wall.Seconds()), value: stopped.wall.Seconds(), must: 3, stretch: 1})
	r.add(row{speed: true, goal: "H4", what: "the same after a kill", unit: "s", ours: one(after.wall.Seconds()), value: after.wall.Seconds(), must: 5})
	r.keep(c, "end", fmt.Sprintf("10 targets x 10 min, %d samples: JSON, CSV and Parquet %.1f s after the stop, %.1f s after a kill, as measured; judged at the speed of the goals' machine, %.1f times this one",
		samples, stopped.wall.Seconds(), after.wall.Seconds(), r.slow), first)
	first = len(r.rows)
	r.add(row{goal: "H5", what: "Parquet of it", unit: "MB", ours: one(float64(parquet) / 1e6), value: float64(parquet) / 1e6, must: 60, stretch: 25})
	r.add(row{goal: "H5", what: "recording of it", unit: "MB", ours: one(float64(journal) / 1e6), value: float64(journal) / 1e6, must: 150})
	r.keep(c, "size", fmt.Sprintf("10 targets x 10 min, %d samples: Parquet %.1f MB, recording %.1f MB", samples, float64(parquet)/1e6, float64(journal)/1e6), first)
	return nil
}

// recordKilled makes a recording that was closed, and one of the same polls as a
// kill leaves it: the files as they are when nobody has closed them.
func recordKilled(ctx context.Context, c config, clean, killed string) (samples int, err error) {
	p, err := startSelf(ctx, c, -1, "record-end", clean, killed)
	if err != nil {
		return 0, err
	}
	line, err := p.line()
	if err != nil {
		return 0, errors.Join(fmt.Errorf("record: %w: %s", err, p.tail()), p.kill())
	}
	if _, err := fmt.Sscan(line, &samples); err != nil {
		return 0, errors.Join(fmt.Errorf("read answer of recorder: %w", err), p.kill())
	}
	_, err = p.wait()
	return samples, err
}

// recordEnd is the child process that records the run, copies its files before it
// closes them, and prints the number of samples.
func recordEnd(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("usage: record-end CLEAN KILLED")
	}
	var pollers []*poller
	for i := range endTargets {
		p, err := newPoller(i, uint64(i+1), interval, simulate.Options{})
		if err != nil {
			return err
		}
		pollers = append(pollers, p)
	}
	w, err := newRecording(args[0], endTargets, pollers[0].source.now.UnixNano())
	if err != nil {
		return err
	}
	samples, err := recordPolls(ctx, w, pollers, int(endLength/interval))
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = copyFiles(args[0], args[1])
	}
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, samples)
	return err
}

// copyFiles copies the files of a recording but its shared memory, which goes with
// the processes.
func copyFiles(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return fmt.Errorf("copy recording: %w", err)
	}
	paths, err := filepath.Glob(filepath.Join(from, rundb.FileName+"*"))
	if err != nil {
		return fmt.Errorf("copy recording: %w", err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "-shm") {
			continue
		}
		if err := copyFile(path, filepath.Join(to, filepath.Base(path))); err != nil {
			return fmt.Errorf("copy recording: %w", err)
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, bufio.NewReader(in))
	return errors.Join(err, out.Close())
}

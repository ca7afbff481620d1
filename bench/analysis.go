package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// slice is the width of the timeslices of the analyses.
const slice = 10 * time.Second

// recorded is a recording in the work directory.
type recorded struct {
	dir, killed string // as it was closed, and as a kill leaves it
	samples     int
}

// recording records once for all parts.
func (b *bench) recording() (*recorded, error) {
	if b.recorded != nil {
		return b.recorded, nil
	}
	p, err := simulatePolls(b.polls, 0)
	if err != nil {
		return nil, err
	}
	rec := &recorded{dir: filepath.Join(b.work, "run"), killed: filepath.Join(b.work, "killed")}
	if rec.samples, err = p.record(rec.dir, rec.killed); err != nil {
		return nil, err
	}
	b.say("load: %d targets x %d polls, %d samples; slices of %v", runTargets, b.polls, rec.samples, slice)
	b.recorded = rec
	return rec, nil
}

// command makes a turn of a run of scrapestat, as a user would start it, that gives
// its processor time in seconds and leaves its peak memory in mb.
func (b *bench) command(ctx context.Context, mb *stat, args ...string) turn {
	return func() (float64, error) {
		bin, err := b.scrapestat(ctx)
		if err != nil {
			return 0, err
		}
		p, err := start(ctx, allProcessors, append([]string{bin}, args...)...)
		if err != nil {
			return 0, err
		}
		cpu, peak, err := p.wait()
		*mb = append(*mb, float64(peak)/1e6)
		return cpu.Seconds(), err
	}
}

// export makes a turn of an export, into a folder of the work directory.
func (b *bench) export(ctx context.Context, mb *stat, dir, formats string, width time.Duration, to string) turn {
	return b.command(ctx, mb, "export", dir, "--formats="+formats, "--slice-duration="+width.String(),
		"--out="+filepath.Join(b.work, to))
}

// peerTargets is how many of the targets AIPerf gets: all would take many minutes. Its cost is multiplied.
const peerTargets = 2

// aiperfAnalysis starts AIPerf's package on the same polls, which it loads from an export of ours before it is
// measured. It answers a slice width in seconds with the cost of its statistics, JSON and CSV, and 0 with that of its
// Parquet file. It is nil when there is none.
func (b *bench) aiperfAnalysis(ctx context.Context, rec *recorded) (*process, error) {
	var mb stat
	if _, err := b.export(ctx, &mb, rec.dir, "json,jsonl", slice, "polls")(); err != nil {
		return nil, err
	}
	command, err := b.aiperf("analyse.py", b.work+"/polls", fmt.Sprint(peerTargets), b.work+"/aiperf.parquet")
	if err != nil {
		b.missing("AIPerf", err)
		return nil, nil
	}
	return start(ctx, allProcessors, command...)
}

// runAnalysis measures statistics, JSON, CSV and HTML from a recording.
func runAnalysis(ctx context.Context, b *bench) error {
	rec, err := b.recording()
	if err != nil {
		return err
	}
	long, err := simulatePolls(6*b.polls, 0)
	if err != nil {
		return err
	}
	longer := filepath.Join(b.work, "longer")
	if _, err := long.record(longer, ""); err != nil {
		return err
	}
	var usualMB, longerMB, other stat
	turns := []turn{
		b.export(ctx, &usualMB, rec.dir, "json,csv", slice, "usual"),
		b.export(ctx, &other, rec.dir, "json,csv", slice/2, "finer"),
		b.export(ctx, &longerMB, longer, "json,csv", slice, "longer"),
		b.command(ctx, &other, "report", longer, "--quiet", "--out="+filepath.Join(b.work, "report.html")),
	}
	aiperf, err := b.aiperfAnalysis(ctx, rec)
	if err != nil {
		return err
	}
	if aiperf != nil {
		defer aiperf.kill()
		turns = append(turns, func() (float64, error) {
			took, _, err := aiperf.ask(int(slice.Seconds()))
			return took.Seconds() * runTargets / peerTargets, err
		})
	}
	of, err := b.turns(turns...)
	if err != nil {
		return err
	}
	const what = "statistics, JSON and CSV"
	if len(of) > 4 {
		b.add(what+", s CPU", of[0], of[4], "AIPerf, of 2 targets, times 4", 0.1)
	}
	b.add(what+", slices of 5 s, s CPU", of[1], of[0], "slices of 10 s", 2)
	b.add(what+", six times as long, s CPU", of[2], of[0], "once", 6.6)
	b.add(what+", six times as long, MB", longerMB, usualMB, "once", 4)
	b.add("HTML report, s CPU", of[3], of[2], what, 2)
	return os.RemoveAll(longer)
}

// runExports measures Parquet against AIPerf's exporter, which runs once, on the same samples.
func runExports(ctx context.Context, b *bench) error {
	rec, err := b.recording()
	if err != nil {
		return err
	}
	aiperf, err := b.aiperfAnalysis(ctx, rec)
	if aiperf == nil {
		return err
	}
	defer aiperf.kill()
	took, n, err := aiperf.ask(0)
	if err != nil {
		return err
	}
	info, err := os.Stat(filepath.Join(b.work, "aiperf.parquet"))
	if err != nil {
		return fmt.Errorf("read Parquet of peer: %w", err)
	}
	var less, mb stat
	of, err := b.turns(b.export(ctx, &mb, rec.dir, "", slice, "none"),
		b.export(ctx, &mb, rec.dir, "parquet", slice, "parquet"))
	if err != nil {
		return err
	}
	peerRows, rows := float64(n), float64(n)*runTargets/peerTargets
	for i := range of[1] {
		less = append(less, of[1][i]-of[0][i])
	}
	size, err := sizeOf(filepath.Join(b.work, "parquet"))
	const name = "AIPerf's exporter"
	b.add("Parquet less the statistics, ns CPU/row", less.times(1e9/rows), stat{float64(took) / peerRows}, name, 0.05)
	b.add("Parquet, B/row", stat{size / rows}, stat{float64(info.Size()) / peerRows}, name, 1/3.5)
	return err
}

// holdEnd exports a recording that was closed, and one of the same polls as a kill leaves it.
func holdEnd(ctx context.Context, b *bench) error {
	rec, err := b.recording()
	if err != nil {
		return err
	}
	var mb stat
	of, err := b.turns(b.export(ctx, &mb, rec.dir, "json,csv,parquet", slice, "stopped"),
		b.export(ctx, &mb, rec.killed, "json,csv,parquet", slice, "killed"))
	if err != nil {
		return err
	}
	recording, err := sizeOf(rec.dir)
	b.add("JSON, CSV and Parquet after a kill, s CPU", of[1], of[0], "after a stop", 1.5)
	b.add("recording, B/sample", stat{recording / float64(rec.samples)}, stat{0.55}, "limit", 1)
	return err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"time"

	"github.com/scrapestat/scrapestat/internal/simulate"
)

// byTargets scrapes growing numbers of targets from one core.
func byTargets(ctx context.Context, c config, r *report) error {
	bin, err := build(ctx, c)
	if err != nil {
		return err
	}
	var lines [][]string
	for _, targets := range []int{10, 30, 100, 300, 1000} {
		runs, err := fill(ctx, c, r, oursFor(bin), targets)
		if err != nil {
			return err
		}
		each := column(runs, func(s scrapeRun) float64 { return 1000 * s.megabytes() / float64(targets) })
		lines = append(lines, append(scraperLine(targets, "ours", runs), each.String()))
	}
	r.grid([]string{"targets", "scraper", "CPU ms/scrape", "polling only", "RSS MB", "with the end", "missed", "p99 off ms", "drift us", "stolen %", "RSS kB/target"}, lines)
	return nil
}

// bySeries decodes bodies of growing size.
func bySeries(ctx context.Context, c config, r *report) error {
	var lines [][]string
	for _, extra := range []int{0, 10_000, 100_000, 399_000} {
		l, steady, first, err := decodeCost(ctx, c, extra)
		if err != nil {
			return err
		}
		each := scale([]stat{steady, first}, 1e6/float64(l.samples))
		lines = append(lines, []string{fmt.Sprint(l.samples), fmt.Sprintf("%.2f", float64(len(l.bodies[0]))/1e6), fmt.Sprintf("%.0f", 100*l.changed), each[0].String(), each[1].String()})
	}
	r.grid([]string{"samples", "MB", "changed %", "ns/sample steady", "ns/sample first body"}, lines)
	return nil
}

// decodeCost returns the milliseconds that a body of a server with so many series
// more takes, each after the one before it and as the first.
func decodeCost(ctx context.Context, c config, extra int) (l *load, steady, first stat, err error) {
	if l, err = record(1, 3, simulate.Options{ExtraSeries: extra}); err != nil {
		return nil, steady, first, err
	}
	next, err := ours(l.bodies)
	if err != nil {
		return nil, steady, first, err
	}
	stats, err := inTurn(ctx, c.rounds, []candidate{timed("steady", next), timed("first", func() error {
		once, err := ours(l.bodies)
		if err != nil {
			return err
		}
		return once()
	})})
	if err != nil {
		return nil, steady, first, err
	}
	stats = scale(stats, 1e-6)
	return l, stats[0], stats[1], nil
}

// lengthStep is the interval of the runs in simulated time: long, so that a day
// takes a minute.
const lengthStep = 2 * time.Second

// byLength records runs of growing length in a process of their own and exports
// them. The memory of P8 is judged here.
func byLength(ctx context.Context, c config, r *report) error {
	var lines [][]string
	rss := map[time.Duration]float64{}
	for _, length := range []time.Duration{time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour} {
		dir := filepath.Join(c.work, "length-"+length.String())
		p, err := startSelf(ctx, c, -1, "record", dir, length.String())
		if err != nil {
			return err
		}
		line, err := p.line()
		if err != nil {
			return errors.Join(err, p.kill())
		}
		samples, err := strconv.ParseFloat(line[:len(line)-1], 64)
		if err != nil {
			return fmt.Errorf("read answer of recorder: %w", err)
		}
		recording, err := p.wait()
		if err != nil {
			return err
		}
		size, err := sizeOf(dir)
		if err != nil {
			return err
		}
		exported, _, err := export(ctx, c, dir, "json,csv")
		if err != nil {
			return err
		}
		rss[length] = float64(recording.rss) / 1e6
		lines = append(lines, []string{length.String(), fmt.Sprintf("%.0f", samples), short(float64(size) / samples), short(rss[length]),
			short(exported.cpu.Seconds()), short(exported.cpu.Seconds() * 1e9 / samples), short(float64(exported.rss) / 1e6)})
	}
	r.grid([]string{"run", "samples", "B/sample", "recording RSS MB", "export CPU s", "ns/sample", "export RSS MB"}, lines)
	ratio := rss[24*time.Hour] / rss[time.Hour]
	r.add(row{goal: "P8", what: "memory while collecting, 24 h by 1 h of simulated time", unit: "MB", ours: one(rss[24*time.Hour]), peer: one(rss[time.Hour]), peerName: "1 h", value: ratio, must: 1.1})
	return nil
}

// recordChild is the child process that records a run in simulated time.
func recordChild(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("usage: record DIR LENGTH")
	}
	length, err := time.ParseDuration(args[1])
	if err != nil {
		return fmt.Errorf("read length: %w", err)
	}
	samples, err := recordFor(ctx, args[0], 1, length, lengthStep, simulate.Options{})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, samples)
	return err
}

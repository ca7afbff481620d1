package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"
)

// runStartStop measures the first request and the exports at the end: P18.
func runStartStop(ctx context.Context, c config, r *report) error {
	bin, err := build(ctx, c)
	if err != nil {
		return err
	}
	f, err := startFleet(ctx, c, 8)
	if err != nil {
		return err
	}
	defer f.process.kill()
	short := c
	short.seconds = 2
	var first stat
	for range max(c.rounds, 5) {
		ms, err := firstRequest(ctx, short, oursFor(bin), f)
		if err != nil {
			return err
		}
		first.values = append(first.values, ms)
	}
	r.add(row{speed: true, goal: "P18", what: "first request after the start of the process", unit: "ms", ours: first, value: first.median(), must: 100, stretch: 30})
	rec, err := tenMinutes(c, r)
	if err != nil {
		return err
	}
	var tables, usual, all stat
	for range c.rounds {
		quick, _, err := export(ctx, c, rec.dir, "json,csv")
		if err != nil {
			return err
		}
		tables.values = append(tables.values, quick.wall.Seconds())
		got, _, err := export(ctx, c, rec.dir, "json,csv,parquet")
		if err != nil {
			return err
		}
		usual.values = append(usual.values, got.wall.Seconds())
		if got, _, err = export(ctx, c, rec.dir, "json,csv,jsonl,parquet"); err != nil {
			return err
		}
		all.values = append(all.values, got.wall.Seconds())
	}
	r.add(row{speed: true, goal: "P18", what: "JSON and CSV of 8 x 10 min as a process of their own", unit: "s", ours: tables, value: tables.median(), must: 1, stretch: 0.4})
	r.add(row{speed: true, goal: "P18", what: "complete exports of 8 x 10 min as a process of their own (JSON, CSV, Parquet)", unit: "s", ours: usual, value: usual.median(), must: 1, stretch: 0.4})
	r.add(row{goal: "P18", what: "the same with JSONL", unit: "s", ours: all, value: all.median()})
	return nil
}

// firstRequest returns the milliseconds from the start of the process until any
// target saw a request.
func firstRequest(ctx context.Context, c config, s scraper, f *fleet) (float64, error) {
	dir, err := os.MkdirTemp(c.work, "start-")
	if err != nil {
		return 0, fmt.Errorf("make directory: %w", err)
	}
	defer os.RemoveAll(dir)
	name, args, err := s.command(dir, f.urls(), interval, time.Second)
	if err != nil {
		return 0, err
	}
	if err := f.reset(); err != nil {
		return 0, err
	}
	p, err := start(ctx, c, -1, name, args...)
	if err != nil {
		return 0, err
	}
	if _, err := p.wait(); err != nil {
		return 0, err
	}
	came, err := f.arrivals()
	if err != nil {
		return 0, err
	}
	first := int64(0)
	for _, t := range came {
		if len(t) > 0 && (first == 0 || t[0] < first) {
			first = t[0]
		}
	}
	if first == 0 {
		return 0, fmt.Errorf("%s sent no request: %s", s.name, p.tail())
	}
	return float64(first-p.began.UnixNano()) / 1e6, nil
}

// runGiant decodes and scrapes one target of 400,000 series: P19.
func runGiant(ctx context.Context, c config, r *report) error {
	bin, err := build(ctx, c)
	if err != nil {
		return err
	}
	f, err := startFleet(ctx, c, 1, "-bodies", "16", "-extra", strconv.Itoa(399_000), "-step", "1s")
	if err != nil {
		return err
	}
	defer f.process.kill()
	r.say("load: one target of %d samples, %.1f MB, polled for %d s at each interval", f.samples, float64(f.bytes)/1e6, c.seconds)
	_, steady, first, err := decodeCost(ctx, c, 399_000)
	if err != nil {
		return err
	}
	r.add(row{speed: true, goal: "P19", what: "decoding a body of 400,000 series, the first", unit: "ms", ours: first, value: first.median(), must: 800})
	r.add(row{speed: true, goal: "P19", what: "decoding a body of 400,000 series, each after it", unit: "ms", ours: steady, value: steady.median(), must: 800})
	for _, every := range []time.Duration{time.Second, time.Second / 2} {
		var runs []scrapeRun
		for range c.rounds {
			run, err := scrapeWith(ctx, c, oursFor(bin), f, every)
			if err != nil {
				return err
			}
			runs = append(runs, run)
		}
		judgeGiant(r, every, runs)
	}
	return nil
}

func judgeGiant(r *report, every time.Duration, runs []scrapeRun) {
	lost := column(runs, missed)
	share := column(runs, func(s scrapeRun) float64 { return 100 * s.cpu.Seconds() / s.wall.Seconds() })
	rss := column(runs, scrapeRun.megabytes)
	held := row{goal: "P19", what: fmt.Sprintf("400,000 series every %v on one core: missed", every), ours: lost, value: lost.median(), must: 0.5}
	if every < time.Second {
		held.must, held.stretch = 0, 0.5
	}
	r.add(held)
	r.add(row{speed: true, goal: "P19", what: fmt.Sprintf("every %v: CPU per scrape", every), unit: "ms", ours: column(runs, scrapeRun.perScrape), value: column(runs, scrapeRun.perScrape).median()})
	r.add(row{goal: "P19", what: fmt.Sprintf("every %v: share of the core, start and end included", every), unit: "%", ours: share, value: share.median(), must: 100})
	r.add(row{goal: "P19", what: fmt.Sprintf("every %v: peak memory", every), unit: "MB", ours: rss, value: rss.median(), must: 1500})
}

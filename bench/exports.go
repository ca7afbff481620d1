package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// runExports measures Parquet and JSONL: P11, P12.
func runExports(ctx context.Context, c config, r *report) error {
	rec, err := tenMinutes(c, r)
	if err != nil {
		return err
	}
	var base, parquet, parquetWall, jsonl, tidy, rss, size, tidySize stat
	for range c.rounds {
		none, _, err := export(ctx, c, rec.dir, "")
		if err != nil {
			return err
		}
		base.values = append(base.values, none.cpu.Seconds())
		got, n, err := export(ctx, c, rec.dir, "parquet")
		if err != nil {
			return err
		}
		size.values, rss.values = append(size.values, float64(n)), append(rss.values, float64(got.rss)/1e6)
		parquet.values = append(parquet.values, (got.cpu - none.cpu).Seconds())
		parquetWall.values = append(parquetWall.values, (got.wall - none.wall).Seconds())
		if got, n, err = export(ctx, c, rec.dir, "parquet", "--parquet-layout=tidy"); err != nil {
			return err
		}
		tidy.values, tidySize.values = append(tidy.values, (got.cpu-none.cpu).Seconds()), append(tidySize.values, float64(n))
		if got, _, err = export(ctx, c, rec.dir, "jsonl"); err != nil {
			return err
		}
		jsonl.values = append(jsonl.values, (got.cpu-none.cpu).Seconds()*1e9/float64(rec.samples))
	}
	r.say("statistics alone, the whole process: %v s CPU; subtracted from the exports below", base)
	rows, err := peerParquet(ctx, c, r, rec, size)
	if err != nil {
		return err
	}
	rate, rateWall := perSecond(rows, parquet), perSecond(rows, parquetWall)
	r.add(row{speed: true, goal: "P11", what: fmt.Sprintf("Parquet, AIPerf's columns, %.0f rows, by CPU time", rows), unit: "M rows/s", ours: rate, value: rate.median(), must: 1.5, stretch: 3, atLeast: true})
	r.add(row{speed: true, goal: "P11", what: "the same by the clock, on both cores", unit: "M rows/s", ours: rateWall, value: rateWall.median(), must: 1.5, stretch: 3, atLeast: true})
	r.add(row{goal: "P11", what: "peak memory of the process", unit: "MB", ours: rss, value: rss.median(), must: 200})
	r.add(row{goal: "P11", what: "tidy layout", unit: "ns/sample CPU", ours: scale([]stat{tidy}, 1e9/float64(rec.samples))[0], value: tidy.median() * 1e9 / float64(rec.samples)})
	r.add(row{goal: "P11", what: "tidy layout, size", unit: "B/sample", ours: scale([]stat{tidySize}, 1/float64(rec.samples))[0], value: tidySize.median() / float64(rec.samples)})
	r.add(row{speed: true, goal: "P12", what: "JSONL", unit: "ns/sample", ours: jsonl, value: jsonl.median(), must: 120, stretch: 70})
	return nil
}

// peerParquet has AIPerf write the same samples and returns their number.
func peerParquet(ctx context.Context, c config, r *report, rec *recorded, ours stat) (float64, error) {
	aiperf, err := startAIPerf(ctx, c, rec, 1)
	if err != nil {
		r.missing("AIPerf's Parquet exporter", err.Error())
		// Rows of ours: every sample but creation times, sums and counts.
		return float64(rec.samples) * 0.75, nil
	}
	took, rows, err := aiperf.ask(0)
	if err != nil {
		return 0, err
	}
	info, err := os.Stat(filepath.Join(c.work, "aiperf.parquet"))
	if err != nil {
		return 0, fmt.Errorf("read Parquet of peer: %w", err)
	}
	const times = storeTargets // the peer gets one, or it would take many minutes
	theirs := one(float64(info.Size()) * times)
	r.say("AIPerf's exporter: %d rows in %v CPU, %.3f M rows/s, %d bytes", rows, took.Round(time.Millisecond), float64(rows)/1e6/took.Seconds(), info.Size())
	r.add(row{goal: "P11", what: fmt.Sprintf("Parquet file, AIPerf's columns; the peer's is that of one target times %d", times), unit: "B", ours: ours, peer: theirs, peerName: "AIPerf's exporter", value: ours.median() / theirs.median(), must: 1 / 3.5, stretch: 1 / 4.7})
	return float64(rows) * times, aiperf.close()
}

func perSecond(n float64, seconds stat) stat {
	var out stat
	for _, s := range seconds.values {
		out.values = append(out.values, n/s/1e6)
	}
	return out
}

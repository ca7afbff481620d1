package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// held is how runs kept to their schedule.
type held struct {
	lost, due stat // polls without an answer, and all
	late      stat // percent of the polls that started over 20 ms late
	mb        stat // peak memory
}

// keptTo adds a run and returns the 99th percentile of how late its polls started, in milliseconds.
func (h *held) keptTo(late []time.Duration) float64 {
	if len(late) == 0 {
		return math.NaN()
	}
	slices.Sort(late)
	n, _ := slices.BinarySearch(late, 20*time.Millisecond)
	h.late = append(h.late, 100*float64(len(late)-n)/float64(len(late)))
	return float64(late[len(late)*99/100]) / float64(time.Millisecond)
}

// read reads the schedule of some targets of a recording. The first quarter does not
// count for lateness: learning the first bodies is done once.
func (h *held) read(ctx context.Context, dir string, length time.Duration, of func(int) bool) (float64, error) {
	run, err := rundb.Open(dir)
	if err != nil {
		return 0, err
	}
	defer run.Close()
	var late []time.Duration
	from, lost, due := run.Meta().OriginNS+int64(length/4), 0, 0
	for i := range run.Targets() {
		if !of(i) {
			continue
		}
		next := uint64(0) // number of the poll to come
		for s, err := range run.Snapshots(ctx, i) {
			if err != nil {
				return 0, err
			}
			lost, next = lost+int(s.Seq-next), s.Seq+1
			if s.DueNS >= from && s.Kind == metric.Periodic && s.SentNS > 0 {
				late = append(late, time.Duration(max(0, s.SentNS-s.DueNS)))
			}
		}
		due += int(next)
	}
	h.lost, h.due = append(h.lost, float64(lost)), append(h.due, float64(due))
	return h.keptTo(late), nil
}

// collect makes a turn of a run on all processors that gives the 99th percentile of how late polls started.
func (b *bench) collect(ctx context.Context, h *held, urls []string, every time.Duration, of func(int) bool) turn {
	run := filepath.Join(b.work, "held")
	return func() (float64, error) {
		bin, err := b.scrapestat(ctx)
		if err != nil {
			return 0, err
		}
		p, err := start(ctx, allProcessors, append(collectArgs(bin, run, every, b.length), urls...)...)
		if err != nil {
			return 0, err
		}
		_, peak, err := p.wait()
		if err != nil {
			return 0, err
		}
		h.mb = append(h.mb, float64(peak)/1e6)
		p99, err := h.read(ctx, run, b.length, of)
		return p99, errors.Join(err, os.RemoveAll(run))
	}
}

// bareGet makes a turn of the bare GET.
func (b *bench) bareGet(ctx context.Context, h *held, urls []string) turn {
	return func() (float64, error) {
		p, _, err := startSelf(ctx, allProcessors, append([]string{"get", interval.String(), b.length.String()}, urls...)...)
		if err != nil {
			return 0, err
		}
		defer p.kill()
		line, err := p.out.ReadString('\n')
		var late []time.Duration
		for field := range strings.FieldsSeq(line) {
			ns, err2 := strconv.ParseInt(field, 10, 64)
			late, err = append(late, time.Duration(ns)), errors.Join(err, err2)
		}
		return h.keptTo(late), err
	}
}

// holdPolls polls 100 targets of 1,380 samples three times a second.
func holdPolls(ctx context.Context, b *bench) error {
	f, err := b.startFleet(ctx, 100, 212)
	if err != nil {
		return err
	}
	defer f.kill()
	var ours, bare held
	all := func(int) bool { return true }
	of, err := b.turns(b.collect(ctx, &ours, f.urls, interval, all), b.bareGet(ctx, &bare, f.urls))
	if err != nil {
		return err
	}
	for i := range bare.late {
		bare.late[i] += 0.1
	}
	b.add("polls without an outcome", ours.lost, ours.due, "due", 1e-6)
	b.add("started over 20 ms late, %", ours.late, bare.late, "bare GET + 0.1", 1)
	b.add("p99 late, ms", of[0], of[1], "bare GET", 2)
	b.add("peak memory, MB", ours.mb, stat{512}, "limit", 1)
	return nil
}

// holdSlow polls 1,000 targets every 5 s, of which each tenth takes a connection and
// never answers, against a run in which all answer.
func holdSlow(ctx context.Context, b *bench) error {
	const every = 5 * time.Second
	f, err := b.startFleet(ctx, 1000, 0)
	if err != nil {
		return err
	}
	defer f.kill()
	answers := func(target int) bool { return target%10 != 9 }
	urls := slices.Clone(f.urls)
	for i := range urls {
		if !answers(i) {
			urls[i] = fmt.Sprintf("http://%s/hole/%d", f.addr, i)
		}
	}
	var some, all held
	of, err := b.turns(b.collect(ctx, &some, urls, every, answers), b.collect(ctx, &all, f.urls, every, answers))
	if err != nil {
		return err
	}
	b.add("p99 late of those that answer, ms", of[0], of[1], "all answer", 2)
	b.add("polls of those that answer without an outcome", some.lost, some.due, "due", 1e-6)
	return nil
}

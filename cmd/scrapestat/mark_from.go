package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/sweep/phases"
)

// markFrom marks the phases that files of load generators tell, all or none. What lies between two is called cooldown.
// Marks that are there already are left alone.
func markFrom(ctx context.Context, dir string, files []string, zone string, std stdio) error {
	r, err := rundb.Open(dir)
	if err != nil {
		return err
	}
	meta, marked := r.Meta(), r.Marks()
	last, err := lastPoll(ctx, r) // the end of a simulated run is when it was made
	last += meta.Interval.Nanoseconds()
	if err := errors.Join(err, r.Close()); err != nil {
		return err
	}
	where, err := zoneOf(zone, meta.Host)
	if err != nil {
		return err
	}
	var list []phases.Phase
	for _, path := range files {
		more, err := readPhases(path, where, std.err)
		if errors.Is(err, phases.ErrZone) {
			return usagef("--from %s: %w, and the run was recorded on %s: say it with --zone", path, err, meta.Host)
		}
		if err != nil {
			return usagef("--from %s: %w", path, err)
		}
		list = append(list, more...)
	}
	slices.SortStableFunc(list, func(a, b phases.Phase) int { return cmp.Compare(a.StartNS, b.StartNS) })
	for i, p := range list {
		if p.StartNS < meta.OriginNS || p.EndNS > last {
			return usagef("phase %s, from %s to %s, is outside the recording, which lasts from %s to %s (--zone for times "+
				"without a zone)", p.Name, instant(p.StartNS), instant(p.EndNS), instant(meta.OriginNS), instant(last))
		}
		if i > 0 && p.StartNS < list[i-1].EndNS {
			return usagef("phases %s and %s overlap: mark the files of one load generator", list[i-1].Name, p.Name)
		}
	}
	for i, p := range list {
		kind := map[bool]string{true: metric.PhaseWarmup, false: metric.PhaseProfiling}[p.Warmup]
		marks := []metric.Mark{{Name: p.Name, AtNS: p.StartNS, Kind: kind}}
		if i+1 == len(list) || list[i+1].StartNS > p.EndNS {
			marks = append(marks, metric.Mark{Name: metric.PhaseCooldown, AtNS: p.EndNS, Kind: metric.PhaseWarmup})
		}
		for _, m := range marks {
			if slices.Contains(marked, m) {
				continue
			}
			if err := rundb.AddMark(dir, m); err != nil {
				return fmt.Errorf("mark %s in %s: %w", m.Name, dir, err)
			}
		}
		_, err := fmt.Fprintf(std.err, "phase %q from %s to %s\n", p.Name, instant(p.StartNS), instant(p.EndNS))
		if err != nil {
			return err
		}
	}
	return nil
}

// zoneOf is the zone of times that have none: the one that is given, else that of this machine where it is the one that
// recorded; nil is not known.
func zoneOf(text, host string) (*time.Location, error) {
	if text != "" {
		t, err := time.Parse("Z07:00", text)
		if err != nil {
			return nil, usagef("--zone %s: want an offset such as +02:00, or Z", text)
		}
		return t.Location(), nil
	}
	if here, err := os.Hostname(); err == nil && here == host {
		return time.Local, nil
	}
	return nil, nil
}

func readPhases(path string, zone *time.Location, talk io.Writer) ([]phases.Phase, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, phases.MaxBytes+1))
	if err != nil {
		return nil, err
	}
	list, left, err := phases.Read(data, zone)
	if left > 0 {
		fmt.Fprintf(talk, "%d phases of %s are left out: they have no start or no end\n", left, path)
	}
	return list, err
}

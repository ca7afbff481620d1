package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/metric"
)

const (
	// slice is the width of the timeslices of the analysis goals.
	slice = 10 * time.Second
	// peerTargets is how many of the storeTargets AIPerf gets: it would take many
	// minutes for all. Its cost is multiplied, ours is that of all.
	peerTargets = 2
)

// recordShared records storeTargets targets, made of two simulated servers, and
// returns the number of samples.
func recordShared(dir string, polls int, each func(target int, s *metric.Snapshot) error) (samples int, err error) {
	var of []*poller
	for i := range 2 {
		p, err := newPoller(i, uint64(i+1), interval, simulate.Options{})
		if err != nil {
			return 0, err
		}
		of = append(of, p)
	}
	w, err := newRecording(dir, storeTargets, of[0].source.now.UnixNano())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	for n := range polls {
		for i, p := range of {
			s, err := p.next()
			if err != nil {
				return 0, err
			}
			if each != nil {
				if err := each(i, s); err != nil {
					return 0, err
				}
			}
			for t := i; t < storeTargets; t += len(of) {
				s.Target = t
				samples += s.Lines
				if err := w.Record(s); err != nil {
					return 0, err
				}
			}
		}
		if n == 0 {
			if err := w.Mark(metric.Mark{Name: metric.PhaseProfiling, AtNS: of[1].source.now.UnixNano() + 1}); err != nil {
				return 0, err
			}
		}
	}
	return samples, w.Mark(metric.Mark{Name: metric.MarkEnd, AtNS: of[1].source.now.UnixNano() + 1})
}

// recorded is a recording in the work directory with the same polls in the form
// that the AIPerf peer loads.
type recorded struct {
	dir, peer string
	samples   int
	polls     int
}

// tenMinutes records eight targets for ten minutes, once for all goals.
func tenMinutes(c config, r *report) (*recorded, error) {
	out := &recorded{dir: filepath.Join(c.work, "ten-minutes"), peer: filepath.Join(c.work, "ten-minutes.jsonl"), polls: storePolls}
	note := filepath.Join(c.work, "ten-minutes.samples")
	if b, err := os.ReadFile(note); err == nil {
		_, err = fmt.Sscan(string(b), &out.samples)
		return out, err
	}
	f, err := os.Create(out.peer)
	if err != nil {
		return nil, fmt.Errorf("write polls for peer: %w", err)
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	peers := []*peerPolls{{}, {}}
	out.samples, err = recordShared(out.dir, out.polls, func(i int, s *metric.Snapshot) error { return peers[i].write(w, i, s) })
	if err = errors.Join(err, w.Flush()); err != nil {
		return nil, err
	}
	r.say("load: %d targets x %v at %v, %d samples; slices of %v", storeTargets, (time.Duration(out.polls) * interval).Round(time.Second), interval, out.samples, slice)
	return out, os.WriteFile(note, []byte(fmt.Sprint(out.samples)), 0o644)
}

// peerPolls writes polls in the shape of AIPerf's records.
type peerPolls struct{ metric.Replay }

type peerSample struct {
	Labels  map[string]string  `json:"l,omitempty"`
	Value   *float64           `json:"v,omitempty"`
	Buckets map[string]float64 `json:"b,omitempty"`
	Sum     *float64           `json:"s,omitempty"`
	Count   *float64           `json:"c,omitempty"`
}

type peerFamily struct {
	Type    string        `json:"type"`
	Help    string        `json:"help"`
	Samples []*peerSample `json:"samples"`
}

func (p *peerPolls) write(w *bufio.Writer, target int, s *metric.Snapshot) error {
	if err := p.Step(s); err != nil {
		return err
	}
	families := map[string]*peerFamily{}
	for i := range p.Series {
		f := p.FamilyOf(i)
		if f.Type == metric.Summary || f.Type == metric.Info || f.Type == metric.StateSet || strings.HasSuffix(f.Name, "_created") {
			continue
		}
		if families[f.Name] == nil {
			families[f.Name] = &peerFamily{Type: f.Type.String(), Help: f.Help}
		}
		families[f.Name].Samples = append(families[f.Name].Samples, p.sample(i))
	}
	b, err := json.Marshal(map[string]any{"target": target, "at": s.AtNS(), "sent": s.SentNS, "took": s.Duration.Nanoseconds(), "metrics": families})
	if err != nil {
		return fmt.Errorf("write polls for peer: %w", err)
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

func (p *peerPolls) sample(series int) *peerSample {
	out := &peerSample{Labels: p.Series[series].Labels.Map()}
	for _, slot := range p.SlotsOf(series) {
		if !p.Present[slot] {
			continue
		}
		d := p.Slots[slot]
		v := d.Float(p.Bits[slot])
		switch d.Role {
		case metric.RoleBucket:
			if out.Buckets == nil {
				out.Buckets = map[string]float64{}
			}
			out.Buckets[d.Text] = v
		case metric.RoleSum:
			out.Sum = &v
		case metric.RoleCount:
			out.Count = &v
		case metric.RoleValue:
			out.Value = &v
		}
	}
	return out
}

// export runs "scrapestat export" as a user would and returns its cost and the
// size of what it wrote.
func export(ctx context.Context, c config, dir, formats string, more ...string) (cost, int64, error) {
	bin, err := build(ctx, c)
	if err != nil {
		return cost{}, 0, err
	}
	out, err := os.MkdirTemp(c.work, "export-")
	if err != nil {
		return cost{}, 0, fmt.Errorf("make directory of exports: %w", err)
	}
	defer os.RemoveAll(out)
	args := append([]string{"export", dir, "--formats", formats, "--out", out}, more...)
	p, err := start(ctx, c, -1, bin, args...)
	if err != nil {
		return cost{}, 0, err
	}
	spent, err := p.wait()
	if err != nil {
		return cost{}, 0, err
	}
	n, err := sizeOf(out)
	return spent, n, err
}

// runAnalysis measures statistics, JSON and CSV from a recording: P13, P14.
func runAnalysis(ctx context.Context, c config, r *report) error {
	rec, err := tenMinutes(c, r)
	if err != nil {
		return err
	}
	width := "--slice-duration=" + slice.String()
	var cpu, rss, finer, peer stat
	aiperf, err := startAIPerf(ctx, c, rec, peerTargets)
	if err != nil {
		r.missing("AIPerf's analysis", err.Error())
	}
	for range c.rounds {
		got, _, err := export(ctx, c, rec.dir, "json,csv", width)
		if err != nil {
			return err
		}
		cpu.values, rss.values = append(cpu.values, got.cpu.Seconds()), append(rss.values, float64(got.rss)/1e6)
		if got, _, err = export(ctx, c, rec.dir, "json,csv", "--slice-duration="+(slice/2).String()); err != nil {
			return err
		}
		finer.values = append(finer.values, got.cpu.Seconds())
		if aiperf != nil {
			took, err := aiperf.run(int(slice.Seconds()))
			if err != nil {
				return err
			}
			peer.values = append(peer.values, took.Seconds()*storeTargets/peerTargets)
		}
	}
	r.add(row{speed: true, goal: "P13", what: "analysis, JSON and CSV, 8 targets x 10 min, the whole process", unit: "s CPU", ours: cpu, value: cpu.median(), must: 0.5, stretch: 0.35})
	r.add(row{goal: "P13", what: "peak memory of it", unit: "MB", ours: rss, value: rss.median()})
	r.add(row{goal: "P13", what: "slices half as wide", unit: "s CPU", ours: finer, peer: cpu, peerName: "ours with slices of " + slice.String(), value: finer.over(cpu).median(), must: 2})
	if aiperf != nil {
		r.add(row{goal: "P13", what: fmt.Sprintf("against AIPerf: statistics, JSON and CSV of %d of the targets, times %d, filling its storage not counted", peerTargets, storeTargets/peerTargets), unit: "s CPU", ours: cpu, peer: peer, peerName: "AIPerf", value: cpu.over(peer).median(), must: 0.1, stretch: 0.04})
		if err := aiperf.close(); err != nil {
			return err
		}
	}
	return oneHour(ctx, c, r, cpu.median())
}

func oneHour(ctx context.Context, c config, r *report, tenMinutes float64) error {
	dir := filepath.Join(c.work, "hour")
	samples, err := recordShared(dir, 6*storePolls, nil)
	if err != nil {
		return err
	}
	r.say("load: 1 h, %d samples", samples)
	var cpu, rss, page, pageRSS stat
	for range c.rounds {
		got, _, err := export(ctx, c, dir, "json,csv", "--slice-duration="+slice.String())
		if err != nil {
			return err
		}
		cpu.values, rss.values = append(cpu.values, got.cpu.Seconds()), append(rss.values, float64(got.rss)/1e6)
		if got, err = htmlReport(ctx, c, dir); err != nil {
			return err
		}
		page.values, pageRSS.values = append(page.values, got.cpu.Seconds()), append(pageRSS.values, float64(got.rss)/1e6)
	}
	r.add(row{speed: true, goal: "P14", what: "analysis, JSON and CSV, 8 targets x 1 h", unit: "s CPU", ours: cpu, value: cpu.median(), must: 3.5, stretch: 1.8})
	r.add(row{goal: "P14", what: "peak memory of it", unit: "MB", ours: rss, value: rss.median(), must: 250, stretch: 120})
	r.add(row{goal: "P14", what: "1 h by 10 min", unit: "", ours: one(cpu.median() / tenMinutes), value: cpu.median() / tenMinutes, note: "6 is linear"})
	r.add(row{speed: true, goal: "P14", what: "HTML report, 8 targets x 1 h", unit: "s CPU", ours: page, value: page.median(), must: 3.5, stretch: 1.8, note: fmt.Sprintf("%.2f of the analysis with JSON and CSV", page.over(cpu).median())})
	r.add(row{goal: "P14", what: "peak memory of it", unit: "MB", ours: pageRSS, value: pageRSS.median(), must: 250, stretch: 120})
	return os.RemoveAll(dir)
}

// htmlReport runs "scrapestat report" as a user would and returns its cost.
func htmlReport(ctx context.Context, c config, dir string) (cost, error) {
	bin, err := build(ctx, c)
	if err != nil {
		return cost{}, err
	}
	p, err := start(ctx, c, -1, bin, "report", dir, "-o", filepath.Join(c.work, "report.html"), "--quiet")
	if err != nil {
		return cost{}, err
	}
	return p.wait()
}

// startAIPerf starts AIPerf's package on the same polls; loading them is not
// measured. It answers a slice width in seconds with the processor time of its
// statistics, JSON and CSV, and 0 with that of its Parquet file.
func startAIPerf(ctx context.Context, c config, rec *recorded, targets int) (*worker, error) {
	if _, err := pythonVersion(c); err != nil {
		return nil, err
	}
	src, err := script(c, "analyse.py")
	if err != nil {
		return nil, err
	}
	return startWorker(ctx, nil, c.python, src, rec.peer, fmt.Sprint(targets), filepath.Join(c.work, "aiperf.parquet"))
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// scraper is a program that polls targets until it is killed.
type scraper struct {
	name    string
	command func(dir string) []string // that of a Prometheus configuration, config.yml, and empty else
	urls    bool                      // the targets follow the command instead
	most    int                       // targets it is run with: more would only show that it is saturated
	limit   float64                   // of our processor time by its
}

// forever is longer than any measurement.
const forever = time.Hour

func collectArgs(bin, out string, every, length time.Duration) []string {
	return []string{bin, "collect", "--quiet", "--formats=", "--settle=0", "--scrape-budget=0",
		"--interval", every.String(), "--duration", length.String(), "--out", out}
}

// scrapers returns those on this machine, ours first.
func (b *bench) scrapers(ctx context.Context) ([]scraper, error) {
	bin, err1 := b.scrapestat(ctx)
	self, err2 := os.Executable()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	all := []scraper{
		{name: "ours", urls: true, command: func(dir string) []string {
			return collectArgs(bin, filepath.Join(dir, "run"), interval, forever)
		}},
		{name: "bare GET", urls: true, limit: 1.5, command: func(string) []string {
			return []string{self, "get", interval.String(), forever.String()}
		}},
	}
	add := func(s scraper, err error) {
		if err != nil {
			b.missing(s.name, err)
			return
		}
		all = append(all, s)
	}
	agent, err := b.prometheusAgent(ctx)
	add(scraper{name: "Prometheus agent", limit: 0.25, command: func(dir string) []string {
		return []string{agent, "--agent", "--config.file=" + dir + "/config.yml", "--storage.agent.path=" + dir + "/data",
			"--web.listen-address=127.0.0.1:0", "--log.level=error"}
	}}, err)
	aiperf, err := b.aiperf("collect.py", fmt.Sprint(interval.Seconds()), fmt.Sprint(forever.Seconds()))
	add(scraper{name: "AIPerf", urls: true, most: 4, limit: 1.0 / 30,
		command: func(string) []string { return aiperf }}, err)
	return all, nil
}

// writeConfig writes a Prometheus configuration that sends what it scrapes to sink.
func writeConfig(dir string, urls []string, sink string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "global: {scrape_interval: %dms, scrape_timeout: %[1]dms}\n", interval.Milliseconds())
	fmt.Fprintf(&b, "remote_write: [{url: '%s'}]\nscrape_configs:\n- job_name: bench\n  static_configs:\n", sink)
	for i, u := range urls {
		addr, path, _ := strings.Cut(strings.TrimPrefix(u, "http://"), "/")
		fmt.Fprintf(&b, "  - {targets: ['%s'], labels: {__metrics_path__: '/%s', target: 't%d'}}\n", addr, path, i)
	}
	return os.WriteFile(filepath.Join(dir, "config.yml"), []byte(b.String()), 0o644)
}

// scrapes is what runs of a scraper gave: processor time of a scrape, memory, and the scrapes of the window.
type scrapes struct{ ms, mb, missed, due stat }

// runCollect measures whole scrapers, each on one processor, the targets on another.
func runCollect(ctx context.Context, b *bench) error {
	f, err := b.startFleet(ctx, b.targets, b.extra)
	if err != nil {
		return err
	}
	defer f.kill()
	all, err := b.scrapers(ctx)
	if err != nil {
		return err
	}
	runs := make([]scrapes, len(all))
	for round := range b.rounds {
		for i, s := range all {
			if err := b.scrape(ctx, s, f, &runs[i]); err != nil {
				return fmt.Errorf("run %s: %w", s.name, err)
			}
			r := runs[i]
			b.say("  round %d, %s: %.3f ms/scrape, %.0f MB, %.0f of %.0f missed, load %s", round+1, s.name,
				r.ms[round], r.mb[round], r.missed[round], r.due[round], loadAverage())
		}
	}
	ours := runs[0]
	for i, peer := range runs[1:] {
		b.add("collect, ms CPU/scrape", ours.ms, peer.ms, all[i+1].name, all[i+1].limit)
		b.add("collect, MB", ours.mb, peer.mb, all[i+1].name, 0)
	}
	b.add("missed scrapes", ours.missed, ours.due, "due", 0.005)
	return nil
}

// scrape runs s on the fleet. What counts is a window that begins a quarter of its
// length after each target was asked once.
func (b *bench) scrape(ctx context.Context, s scraper, f *fleet, to *scrapes) (err error) {
	dir, err := os.MkdirTemp(b.work, "scraper-")
	if err != nil {
		return fmt.Errorf("make directory of scraper: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	urls, command := f.urls, s.command(dir)
	if s.most > 0 {
		urls = urls[:min(s.most, len(urls))]
	}
	if s.urls {
		command = append(command[:len(command):len(command)], urls...)
	}
	before, err := f.count()
	if err := errors.Join(err, writeConfig(dir, urls, "http://"+f.addr+"/sink")); err != nil {
		return err
	}
	p, err := start(ctx, measuredCPU, command...)
	if err != nil {
		return err
	}
	defer p.kill()
	for n, tries := before, 0; n < before+len(urls); tries++ {
		if tries == 600 {
			p.kill()
			return fmt.Errorf("it does not ask all targets: %s", p.tail())
		}
		waited := pause(ctx, 100*time.Millisecond)
		if n, err = f.count(); errors.Join(waited, err) != nil {
			return errors.Join(waited, err)
		}
	}
	return b.window(ctx, p, f, len(urls), to)
}

func (b *bench) window(ctx context.Context, p *process, f *fleet, targets int, to *scrapes) error {
	var at [2]time.Time
	var cpu [2]time.Duration
	var count [2]int
	for i := range 2 {
		err := pause(ctx, b.length*time.Duration(1+3*i)/4)
		var err1, err2 error
		at[i] = time.Now()
		cpu[i], err1 = p.cpu()
		count[i], err2 = f.count()
		if err := errors.Join(err, err1, err2); err != nil {
			return err
		}
	}
	rss, err := p.memory("VmRSS:")
	asked, due := count[1]-count[0], int(at[1].Sub(at[0])*time.Duration(targets)/interval)
	to.ms = append(to.ms, (cpu[1]-cpu[0]).Seconds()*1e3/float64(asked))
	to.mb = append(to.mb, float64(rss)/1e6)
	to.missed, to.due = append(to.missed, float64(max(0, due-asked))), append(to.due, float64(due))
	return err
}

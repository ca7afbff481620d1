package main

import (
	"context"
	"fmt"
	"time"
)

// runCollect measures whole scrapers, each pinned to one processor, the targets on
// another: P5, P7, P8.
func runCollect(ctx context.Context, c config, r *report) error {
	var lines [][]string
	for _, targets := range []int{10, 100} {
		runs, names, err := compareScrapers(ctx, c, r, targets)
		if err != nil {
			return err
		}
		for _, name := range names {
			lines = append(lines, scraperLine(targets, name, runs[name]))
		}
		judgeScrapers(r, targets, runs, names)
	}
	r.grid([]string{"targets", "scraper", "CPU ms/scrape", "polling only", "RSS MB", "with the end", "missed", "p99 off ms", "drift us", "stolen %"}, lines)
	return nil
}

// compareScrapers runs them A B C A B C on a fleet of their own. A scraper that
// saturates early gets as many targets as it can take.
func compareScrapers(ctx context.Context, c config, r *report, targets int) (map[string][]scrapeRun, []string, error) {
	f, err := startFleet(ctx, c, targets)
	if err != nil {
		return nil, nil, err
	}
	defer f.process.kill()
	all, err := scrapers(ctx, c, r, f.addr)
	if err != nil {
		return nil, nil, err
	}
	r.say("load: %d targets of %d samples, %d bytes, each %v; scraper on processor %d, targets on %d", targets, f.samples, f.bytes, interval, c.cpu, c.other)
	runs, names := map[string][]scrapeRun{}, []string{}
	for round := range c.rounds {
		for _, s := range all {
			g := *f
			if s.most > 0 {
				g.targets = min(s.most, targets)
			}
			run, err := scrapeWith(ctx, c, s, &g, interval)
			if err != nil {
				r.missing(s.name, fmt.Sprintf("with %d targets: %v", g.targets, err))
				continue
			}
			if round == 0 {
				names = append(names, s.name)
			}
			runs[s.name] = append(runs[s.name], run)
			r.say("  round %d, %-16s %3d targets: %.3f ms/scrape, %.0f MB, %d of %d missed, p99 %v, drift %v, stolen %.1f %%, load %s", round+1, s.name, g.targets,
				run.perScrape(), run.megabytes(), run.window.missed, run.window.expected, run.window.p99, run.window.drift, 100*run.window.stolen, loadAverage())
		}
	}
	return runs, names, nil
}

// perScrape is milliseconds of processor time for each request, everything the
// process ever did included.
func (s scrapeRun) perScrape() float64 { return s.cpu.Seconds() * 1e3 / float64(s.requests) }

func (s scrapeRun) megabytes() float64 { return float64(s.peak) / 1e6 }

func (s scrapeRun) atEnd() float64 { return float64(s.rss) / 1e6 }

func (s scrapeRun) pollingOnly() float64 { return s.polling }

func column(runs []scrapeRun, f func(scrapeRun) float64) stat {
	var s stat
	for _, r := range runs {
		s.values = append(s.values, f(r))
	}
	return s
}

func missed(s scrapeRun) float64 { return float64(s.window.missed) }
func late(s scrapeRun) float64   { return float64(s.window.p99) / float64(time.Millisecond) }
func drifted(s scrapeRun) float64 {
	return max(float64(s.window.drift), -float64(s.window.drift)) / float64(time.Microsecond)
}

func scraperLine(targets int, name string, runs []scrapeRun) []string {
	return []string{fmt.Sprint(targets), name, column(runs, scrapeRun.perScrape).String(), column(runs, scrapeRun.pollingOnly).String(),
		column(runs, scrapeRun.megabytes).String(), column(runs, scrapeRun.atEnd).String(),
		column(runs, missed).String(), column(runs, late).String(), column(runs, drifted).String(),
		column(runs, func(s scrapeRun) float64 { return 100 * s.window.stolen }).String()}
}

func judgeScrapers(r *report, targets int, runs map[string][]scrapeRun, names []string) {
	ours := column(runs["ours"], scrapeRun.perScrape)
	limits := map[string][2]float64{"Prometheus agent": {1.0 / 3, 1 / 4.5}, "vmagent": {1.0 / 3, 1.0 / 4}, "AIPerf": {1.0 / 30, 1.0 / 70}}
	for _, name := range names {
		if limit, ok := limits[name]; ok {
			if targets != 100 {
				limit = [2]float64{} // the goal is for 100
			}
			peer := column(runs[name], scrapeRun.perScrape)
			r.add(row{goal: "P5", what: fmt.Sprintf("CPU per scrape, %d targets, ours / %s", targets, name), unit: "ms", ours: ours, peer: peer, peerName: name,
				value: ours.over(peer).median(), must: limit[0], stretch: limit[1]})
		}
	}
	worst := column(runs["ours"], func(s scrapeRun) float64 { return s.window.stolen })
	quiet := ""
	if v := worst.sorted(); len(v) > 0 && v[len(v)-1] > 0.01 {
		quiet = fmt.Sprintf("not a quiet machine: %.1f %% stolen", 100*v[len(v)-1])
	}
	lateness, drift := column(runs["ours"], late), column(runs["ours"], drifted)
	r.add(row{goal: "P7", what: fmt.Sprintf("p99 off the grid, %d targets", targets), unit: "ms", ours: lateness, value: lateness.median(), must: 2, stretch: 1, note: quiet})
	r.add(row{goal: "P7", what: fmt.Sprintf("drift per interval, %d targets", targets), unit: "us", ours: drift, value: drift.median(), must: 20, stretch: 2, note: quiet})
	if targets == 100 {
		now := column(runs["ours"], func(s scrapeRun) float64 { return float64(s.resident) / 1e6 })
		r.add(row{goal: "P8", what: "memory while collecting, 100 targets", unit: "MB", ours: now, value: now.median(), must: 80, stretch: 55})
		rss := column(runs["ours"], scrapeRun.megabytes)
		r.add(row{goal: "P8", what: "peak memory of it, the start included, 100 targets", unit: "MB", ours: rss, value: rss.median()})
		whole := column(runs["ours"], scrapeRun.atEnd)
		r.add(row{goal: "P8", what: "peak memory with the analysis at the end, 100 targets", unit: "MB", ours: whole, value: whole.median()})
	}
}

// runCapacity fills one core: P6.
func runCapacity(ctx context.Context, c config, r *report) error {
	bin, err := build(ctx, c)
	if err != nil {
		return err
	}
	var lines [][]string
	for _, targets := range []int{10, 100, 500, 1000} {
		runs, err := fill(ctx, c, r, oursFor(bin), targets)
		if err != nil {
			return err
		}
		share := column(runs, func(s scrapeRun) float64 { return 100 * s.cpu.Seconds() / s.wall.Seconds() })
		lines = append(lines, append(scraperLine(targets, "ours", runs), share.String()))
		lost := column(runs, missed)
		switch targets {
		case 500:
			r.add(row{goal: "P6", what: "500 targets: missed scrapes", ours: lost, value: lost.median(), must: 0.5})
			r.add(row{speed: true, goal: "P6", what: "500 targets: share of one core", unit: "%", ours: share, value: share.median(), must: 60})
		case 1000:
			r.add(row{goal: "P6", what: "1,000 targets: missed scrapes", ours: lost, value: lost.median(), stretch: 0.5})
			r.add(row{speed: true, goal: "P6", what: "1,000 targets: share of one core", unit: "%", ours: share, value: share.median(), stretch: 50})
			r.add(row{goal: "P6", what: "1,000 targets: p99 off the grid", unit: "ms", ours: column(runs, late), value: column(runs, late).median(), stretch: 1.5})
		}
	}
	r.grid([]string{"targets", "scraper", "CPU ms/scrape", "polling only", "RSS MB", "with the end", "missed", "p99 off ms", "drift us", "stolen %", "core %"}, lines)
	return nil
}

func fill(ctx context.Context, c config, r *report, s scraper, targets int) ([]scrapeRun, error) {
	f, err := startFleet(ctx, c, targets)
	if err != nil {
		return nil, err
	}
	defer f.process.kill()
	var runs []scrapeRun
	for round := range c.rounds {
		run, err := scrapeWith(ctx, c, s, f, interval)
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
		r.say("  round %d, %4d targets: %.3f ms/scrape, %.0f %% of the core, %.0f MB, %d of %d missed, load %s", round+1, targets, run.perScrape(),
			100*run.cpu.Seconds()/run.wall.Seconds(), run.megabytes(), run.window.missed, run.window.expected, loadAverage())
	}
	return runs, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// scraper is a program that polls the targets of a fleet.
type scraper struct {
	name    string
	version string
	// command makes its directory and returns what to run.
	command func(dir string, urls []string, every, duration time.Duration) (name string, args []string, err error)
	// ends says that it ends by itself after the duration, and tells that it first
	// prints what processor time it took without its start, in nanoseconds: AIPerf
	// takes seconds to load, which are not the cost of scraping.
	ends, tells bool
	most        int // targets it is run with: more would only show that it is saturated
}

// scrapers returns those on this machine, ours first.
func scrapers(ctx context.Context, c config, r *report, f string) ([]scraper, error) {
	bin, err := build(ctx, c)
	if err != nil {
		return nil, err
	}
	all := []scraper{oursFor(bin)}
	if path, err := exec.LookPath(c.prom); err != nil {
		r.missing("Prometheus agent", err.Error())
	} else {
		all = append(all, scraper{name: "Prometheus agent", version: output(path, "--version"), command: prometheusAgent(path, f)})
	}
	if path, err := exec.LookPath(c.vmagent); err != nil {
		r.missing("vmagent", err.Error()+"; Debian has it in victoria-metrics (-vmagent)")
	} else {
		all = append(all, scraper{name: "vmagent", version: vmagentVersion(path), command: vmagentCommand(path, f)})
	}
	if version, err := pythonVersion(c); err != nil {
		r.missing("AIPerf's collector", err.Error())
	} else {
		src, err := script(c, "collect.py")
		if err != nil {
			return nil, err
		}
		all = append(all, scraper{name: "AIPerf", version: version, ends: true, tells: true, most: 4, command: aiperfCollect(c.python, src)})
	}
	for _, s := range all {
		r.say("scraper   %s: %s", s.name, s.version)
	}
	return all, nil
}

func oursFor(bin string) scraper {
	return scraper{name: "ours", version: output(bin, "version"), ends: true, command: func(dir string, urls []string, every, d time.Duration) (string, []string, error) {
		args := []string{"collect", "--quiet", "--formats=", "--settle=0", "--max-scrape-share=0", "--interval", every.String(), "--duration", d.String(), "--out", filepath.Join(dir, "run")}
		return bin, append(args, urls...), nil
	}}
}

// staticConfig is a Prometheus configuration of targets that share an address.
func staticConfig(urls []string, every time.Duration, more string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "global: {scrape_interval: %dms, scrape_timeout: %dms}\n%sscrape_configs:\n- job_name: bench\n  static_configs:\n", every.Milliseconds(), every.Milliseconds(), more)
	for i, u := range urls {
		addr, path, _ := strings.Cut(strings.TrimPrefix(u, "http://"), "/")
		fmt.Fprintf(&b, "  - {targets: ['%s'], labels: {__metrics_path__: '/%s', target: 't%d'}}\n", addr, path, i)
	}
	return b.String()
}

func writeConfig(dir, text string) (string, error) {
	path := filepath.Join(dir, "config.yml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return "", fmt.Errorf("write configuration of peer: %w", err)
	}
	return path, nil
}

// prometheusAgent scrapes and writes to a sink that swallows.
func prometheusAgent(bin, addr string) func(string, []string, time.Duration, time.Duration) (string, []string, error) {
	return func(dir string, urls []string, every, _ time.Duration) (string, []string, error) {
		path, err := writeConfig(dir, staticConfig(urls, every, fmt.Sprintf("remote_write: [{url: 'http://%s/sink'}]\n", addr)))
		return bin, []string{"--enable-feature=agent", "--config.file=" + path, "--storage.agent.path=" + filepath.Join(dir, "data"),
			"--web.listen-address=127.0.0.1:0", "--log.level=error"}, err
	}
}

func vmagentCommand(bin, addr string) func(string, []string, time.Duration, time.Duration) (string, []string, error) {
	return func(dir string, urls []string, every, _ time.Duration) (string, []string, error) {
		path, err := writeConfig(dir, staticConfig(urls, every, ""))
		return bin, []string{"-promscrape.config=" + path, "-remoteWrite.url=http://" + addr + "/sink", "-httpListenAddr=127.0.0.1:0",
			"-remoteWrite.tmpDataPath=" + filepath.Join(dir, "data"), "-loggerLevel=ERROR"}, err
	}
}

// vmagentVersion: Debian's build does not know its own version.
func vmagentVersion(path string) string {
	if v := output(path, "-version"); v != "" && v != "vmagent-" {
		return v
	}
	return "says none; see docs/performance.md"
}

func aiperfCollect(python, src string) func(string, []string, time.Duration, time.Duration) (string, []string, error) {
	return func(dir string, urls []string, every, d time.Duration) (string, []string, error) {
		return python, append([]string{src, fmt.Sprint(every.Seconds()), fmt.Sprint(d.Seconds())}, urls...), nil
	}
}

// scrapeRun is what one run of a scraper gave.
type scrapeRun struct {
	cost
	requests int // in all
	window   punctuality
	// What follows is of a second before the end, without the analysis: the memory
	// then, the most so far, and milliseconds of processor time per request.
	checked  int64 // when that was
	soFar    time.Duration
	peak     int64
	resident int64
	polling  float64
}

// scrapeWith runs s on the fleet and takes its measure. The first seconds and the
// last do not count for punctuality, but all of it does for the cost.
func scrapeWith(ctx context.Context, c config, s scraper, f *fleet, every time.Duration) (scrapeRun, error) {
	dir, err := os.MkdirTemp(c.work, "scraper-")
	if err != nil {
		return scrapeRun{}, fmt.Errorf("make directory of scraper: %w", err)
	}
	defer os.RemoveAll(dir)
	length := time.Duration(c.seconds) * time.Second
	name, args, err := s.command(dir, f.urls(), every, length)
	if err != nil {
		return scrapeRun{}, err
	}
	if err := f.reset(); err != nil {
		return scrapeRun{}, err
	}
	before := readHostTime()
	p, err := start(ctx, c, c.cpu, name, args...)
	if err != nil {
		return scrapeRun{}, err
	}
	out, err := follow(ctx, s, p, length)
	if err != nil {
		return out, err
	}
	after := readHostTime()
	came, err := f.arrivals()
	if err != nil {
		return out, err
	}
	out.count(came[:f.targets], every)
	if out.requests == 0 {
		return out, fmt.Errorf("%s sent no request: %s", s.name, p.tail())
	}
	out.window.stolen = after.since(before)
	return out, nil
}

// follow looks at a running scraper a second before its end, and ends it.
func follow(ctx context.Context, s scraper, p *process, length time.Duration) (out scrapeRun, err error) {
	if err := pause(ctx, length-time.Second); err != nil {
		return out, errors.Join(err, p.kill())
	}
	out.checked = time.Now().UnixNano()
	if out.soFar, err = p.busy(); err == nil {
		out.peak, err = p.peak()
	}
	if err == nil {
		out.resident, err = p.resident()
	}
	if err != nil {
		return out, errors.Join(err, p.kill())
	}
	told := int64(0)
	if s.tells {
		if line, err := p.line(); err == nil {
			fmt.Sscan(line, &told) // without a number wait says why
		}
	}
	if s.ends {
		out.cost, err = p.wait()
	} else if err = pause(ctx, time.Second); err == nil {
		out.cost, err = p.interrupt(syscall.SIGTERM)
	}
	if told > 0 {
		out.cpu = time.Duration(told)
	}
	return out, err
}

// count finds what the targets saw. The first quarter of the run, at least three
// seconds, does not count for punctuality.
func (s *scrapeRun) count(came [][]int64, every time.Duration) {
	var first, last int64
	early := 0
	for _, t := range came {
		for _, at := range t {
			if at <= s.checked {
				early++
			}
		}
		if s.requests += len(t); len(t) > 0 {
			if first == 0 || t[0] < first {
				first = t[0]
			}
			last = max(last, t[len(t)-1])
		}
	}
	s.polling = s.soFar.Seconds() * 1e3 / float64(max(1, early))
	s.window = judge(came, first+max(3*int64(time.Second), (last-first)/4), last-int64(time.Second), every)
}

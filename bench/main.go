// Bench measures the goals of docs/performance.md: it runs ours and a peer in
// turn, A B A B, on the same work and prints medians, spread, their ratio and
// whether the goal is met.
//
//	go run . decode         one goal; "go run . list" names them all
//	go run . all            everything, about an hour
//
// Codecs, decoders and estimators run in this process; whole scrapers and
// analyses in processes of their own, with the processor time that the operating
// system accounted to them. Peers that are not Go modules are looked for on the
// machine (see peers.go); one that is missing is said in the output.
//
// It is a module of its own, so that what only peers need never enters the
// main go.mod.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"
)

// config is what the flags set.
type config struct {
	rounds  int
	seconds int
	python  string
	server  string // Python of the measured server
	gocode  string
	vmagent string
	binary  string
	prom    string
	cpu     int // of the measured scraper
	other   int // of the targets
	work    string
}

// goal is a subcommand.
type goal struct {
	name, covers, what string
	run                func(ctx context.Context, c config, r *report) error
}

func goals() []goal {
	return []goal{
		{"decode", "P1 P2 P3", "decoding one body after the other", runDecode},
		{"learn", "P4", "a first or changed body", runLearn},
		{"store", "P9 P10", "recording: bytes and time per sample", runStore},
		{"exports", "P11 P12", "Parquet and JSONL of a recording", runExports},
		{"analysis", "P13 P14", "statistics, JSON and CSV of a recording", runAnalysis},
		{"percentiles", "P15 P16", "estimating percentiles and learning", runPercentiles},
		{"request", "P17", "what a request costs the measured server", runRequest},
		{"startstop", "P18", "the first request and the last export", runStartStop},
		{"giant", "P19", "one target of 400,000 series", runGiant},
		{"targets", "size", "cost against the number of targets", byTargets},
		{"series", "size", "cost of decoding against series of a target", bySeries},
		{"lengths", "P8 size", "cost against the length of a run, in simulated time", byLength},
		{"collect", "P5 P7 P8", "whole scrapers on 10 and 100 targets", runCollect},
		{"capacity", "P6", "targets that one core holds", runCapacity},
		{"held", "H1 hold", "100 targets of 1,380 samples", holdLoad},
		{"slow", "H2 hold", "1,000 targets, each tenth a black hole", holdSlow},
		{"observed", "H3 hold", "latency of a server that is polled", holdObserved},
		{"ending", "H4 H5 hold", "exports after a stop and after a kill, and their size", holdEnd},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 {
		if child, ok := children()[args[0]]; ok {
			return child(ctx, args[1:], out)
		}
	}
	c, names, err := parse(args)
	if err != nil {
		return err
	}
	if c.work, err = os.MkdirTemp("", "scrapestat-bench-"); err != nil {
		return fmt.Errorf("make work directory: %w", err)
	}
	defer os.RemoveAll(c.work)
	r := newReport(out)
	r.header(c, names)
	for _, g := range goals() {
		if !chosen(g, names) {
			continue
		}
		if err := r.begin(g); err != nil {
			return err
		}
		start := time.Now()
		if err := g.run(ctx, c, r); err != nil {
			return fmt.Errorf("measure %s: %w", g.name, err)
		}
		r.end(time.Since(start))
	}
	r.table()
	return nil
}

// chosen says whether names ask for g, by its name or a goal it covers.
func chosen(g goal, names []string) bool {
	for _, n := range names {
		if n == "all" || n == g.name {
			return true
		}
		for _, p := range strings.Fields(g.covers) {
			if strings.EqualFold(n, p) {
				return true
			}
		}
	}
	return false
}

func parse(args []string) (config, []string, error) {
	var c config
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.IntVar(&c.rounds, "rounds", 5, "rounds A B A B")
	f.IntVar(&c.seconds, "seconds", 60, "length of a run of a whole scraper")
	f.StringVar(&c.python, "python", os.Getenv("SCRAPESTAT_PYTHON"), "Python with aiperf 0.13.0; \"\" goes without")
	f.StringVar(&c.server, "server-python", "/usr/bin/python3", "Python of the server that requests are measured on, compiled as distributions do")
	f.StringVar(&c.gocode, "gocode", "/usr/share/gocode", "GOPATH with VictoriaMetrics' packages, as Debian installs them")
	f.StringVar(&c.vmagent, "vmagent", "vmagent", "vmagent binary")
	f.StringVar(&c.binary, "scrapestat", "", "scrapestat binary; \"\" builds this checkout")
	f.StringVar(&c.prom, "prometheus", "prometheus", "Prometheus binary")
	f.IntVar(&c.cpu, "cpu", 0, "processor of the measured process")
	f.IntVar(&c.other, "target-cpu", 1, "processor of the targets it scrapes")
	f.Usage = func() { usage(f) }
	if err := f.Parse(args); err != nil {
		return c, nil, err
	}
	names := f.Args()
	if len(names) == 0 || names[0] == "list" {
		usage(f)
		return c, nil, flag.ErrHelp
	}
	for _, n := range names {
		if n != "all" && !known(n) {
			return c, nil, fmt.Errorf("unknown goal %q: go run . list", n)
		}
	}
	return c, names, nil
}

func known(name string) bool {
	for _, g := range goals() {
		if chosen(g, []string{name}) {
			return true
		}
	}
	return false
}

func usage(f *flag.FlagSet) {
	w := f.Output()
	fmt.Fprintln(w, "usage: go run . [flags] GOAL...\n\ngoals:")
	fmt.Fprintf(w, "  %-12s %s\n", "all", "every one of these")
	for _, g := range goals() {
		fmt.Fprintf(w, "  %-12s %s (%s)\n", g.name, g.what, g.covers)
	}
	fmt.Fprintln(w, "\nflags:")
	f.PrintDefaults()
}

// children are the programs that this binary also is, each in a process of its
// own so that its processor time and memory can be told apart.
func children() map[string]func(ctx context.Context, args []string, out io.Writer) error {
	return map[string]func(context.Context, []string, io.Writer) error{
		"serve-targets": serveTargets,
		"record":        recordChild,
		"record-end":    recordEnd,
		"serve-holes":   serveHoles,
		"serve-mock":    serveMock,
		"serve-library": serveLibrary,
	}
}

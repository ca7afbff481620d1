// Bench measures what scrapestat costs against a peer, or against the least that the same work can cost: both run in
// turn (A B A B) in one run, and what is judged is their ratio, which does not depend on the speed of the machine.
//
//	go run . decode         one part; "go run . list" names them
//	go run . all            all of them
//
// It prints a table and exits with 3 when a ratio is over its limit. A peer that is not on this machine is named in the
// output. It is a module of its own, so that what only peers need never enters the main go.mod.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"
)

// bench is what the flags set, and the report.
type bench struct {
	*report
	rounds     int
	length     time.Duration // of the measured window of a whole scraper
	polls      int           // of each target of a recording
	targets    int
	extra      int    // series of a target beside those of the simulated server
	python     string // with aiperf
	prometheus string
	binary     string
	work       string // folder of this run
	recorded   *recorded
}

// part is a subcommand.
type part struct {
	name, what string
	run        func(ctx context.Context, b *bench) error
}

func parts() []part {
	return []part{
		{"decode", "decoding one body after the other", runDecode},
		{"store", "recording and reading back: processor time and bytes", runStore},
		{"exports", "Parquet of a recording", runExports},
		{"analysis", "statistics, JSON, CSV and HTML of a recording", runAnalysis},
		{"hostile", "analysis and memory of what was made to cost much", runHostile},
		{"collect", "whole scrapers on many targets", runCollect},
		{"hold-polls", "100 targets of 1,380 samples: polls on schedule", holdPolls},
		{"hold-slow", "1,000 targets, each tenth a black hole", holdSlow},
		{"hold-end", "exports after a kill and after a stop, and their size", holdEnd},
	}
}

// children are the programs that this binary also is, each in a process of its
// own so that its processor time and memory can be told apart.
func children() map[string]func(ctx context.Context, args []string, out io.Writer) error {
	return map[string]func(context.Context, []string, io.Writer) error{
		"serve-targets": serveTargets,
		"get":           getTargets,
	}
}

var errOver = errors.New("a ratio is over its limit")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, errOver):
		os.Exit(3)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	if len(args) > 0 {
		if child, ok := children()[args[0]]; ok {
			return child(ctx, args[1:], out)
		}
	}
	b := &bench{report: &report{out: out}}
	chosen, err := b.parse(args)
	if err != nil {
		return err
	}
	if b.work, err = os.MkdirTemp("", "scrapestat-bench-"); err != nil {
		return fmt.Errorf("make work directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.work)) }()
	b.header(args)
	for _, p := range chosen {
		b.begin(p)
		if err := p.run(ctx, b); err != nil {
			return fmt.Errorf("measure %s: %w", p.name, err)
		}
	}
	b.table()
	if b.over() {
		return errOver
	}
	return nil
}

func (b *bench) parse(args []string) ([]part, error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.IntVar(&b.rounds, "rounds", 5, "rounds A B A B")
	f.Float64Var(&b.slack, "slack", 0, "`share` that a ratio may be over its limit, for a machine that others share")
	seconds := f.Int("seconds", 60, "measured `seconds` of a run of a whole scraper")
	f.IntVar(&b.polls, "polls", 1800, "polls of each target of a recording")
	f.IntVar(&b.targets, "targets", 100, "targets of collect")
	f.IntVar(&b.extra, "extra", 898, "series of a target of collect beside the 1,168 of three engines")
	f.StringVar(&b.python, "python", os.Getenv("SCRAPESTAT_PYTHON"), "Python with aiperf 0.13.0; \"\" goes without")
	f.StringVar(&b.prometheus, "prometheus", "", "Prometheus 3 binary; \"\" builds that of go.mod")
	f.StringVar(&b.binary, "scrapestat", "", "scrapestat binary; \"\" builds this checkout")
	f.Usage = func() {
		fmt.Fprintln(f.Output(), "usage: go run . [flags] PART...\n\nparts:")
		for _, p := range parts() {
			fmt.Fprintf(f.Output(), "  %-13s %s\n", p.name, p.what)
		}
		fmt.Fprintln(f.Output(), "\nflags:")
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	b.length = time.Duration(*seconds) * time.Second
	if f.NArg() == 0 || f.Arg(0) == "list" {
		f.Usage()
		return nil, flag.ErrHelp
	}
	return choose(f.Args())
}

// choose returns the parts whose names begin with one of names; "all" is all.
func choose(names []string) (out []part, err error) {
	for _, n := range names {
		before := len(out)
		for _, p := range parts() {
			if n == "all" || strings.HasPrefix(p.name, n) {
				out = append(out, p)
			}
		}
		if len(out) == before {
			err = fmt.Errorf("unknown part %q: go run . list", n)
		}
	}
	return out, err
}

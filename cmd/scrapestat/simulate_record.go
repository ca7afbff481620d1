package main

import (
	"context"
	"fmt"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/simulate/record"
)

// recordFlags are the flags of simulate that record a run of the servers by a
// clock of its own, instead of serving them.
type recordFlags struct {
	dir              string
	force            bool
	duration, warmup time.Duration
	interval         time.Duration
	start            string
	marks            []string
	tags             map[string]string
	requests         bool

	flags []string // as given, for the manifest
}

// maxSimulatedPolls bounds what --record does: each poll costs as much as a real one.
const maxSimulatedPolls = 1_000_000

func (o *recordFlags) register(f *pflag.FlagSet) {
	f.StringVar(&o.dir, "record", "", "do not serve: record a run of the servers into this `directory`, by a clock "+
		"that does not wait")
	f.BoolVar(&o.force, "force", false, "with --record, replace the run in an existing directory")
	f.DurationVar(&o.duration, "duration", time.Minute, "with --record, profiling time")
	f.DurationVar(&o.warmup, "warmup", 0, "with --record, warm-up before it")
	f.DurationVar(&o.interval, "interval", time.Second, "with --record, time between two scrapes of a server")
	f.StringVar(&o.start, "start", "2026-01-01T00:00:00Z", "with --record, `time` at which the run begins")
	f.StringArrayVar(&o.marks, "mark", nil,
		"with --record, start a phase: `NAME=TIME`, an offset such as +90s from the start of the run, warm-up included "+
			"(repeatable)")
	f.StringToStringVar(&o.tags, "tag", nil, "with --record, run tag `K=V` (repeatable)")
	f.BoolVar(&o.requests, "requests", false, "with --record, also record the requests, as their clients would")
}

func (o *recordFlags) validate() (start time.Time, err error) {
	start, err = parseInstant(o.start, time.Now())
	switch {
	case err != nil:
		return start, usagef("--start: %w", err)
	case o.duration <= 0 || o.warmup < 0 || o.interval < time.Millisecond:
		return start, usagef("--duration %v, --warmup %v, --interval %v: want a duration above 0, a warm-up that is not "+
			"negative, an interval of at least 1ms", o.duration, o.warmup, o.interval)
	case (o.duration+o.warmup)/o.interval > maxSimulatedPolls:
		return start, usagef("--duration %v and --interval %v: that is more than %d scrapes", o.duration, o.interval,
			maxSimulatedPolls)
	}
	return start, nil
}

// recordServers records a run of the servers, which args name.
func recordServers(ctx context.Context, o recordFlags, servers []record.Server, args []string, std stdio) error {
	start, err := o.validate()
	if err != nil {
		return err
	}
	marks, err := (&importOptions{marks: o.marks}).parseMarks(start.UnixNano())
	if err != nil {
		return err
	}
	command := redactArgs(append([]string{"scrapestat", "simulate"}, o.flags...))
	r, err := record.New(record.Options{Dir: o.dir, Servers: servers, Start: start, Warmup: o.warmup, Duration: o.duration,
		Interval: o.interval, Marks: marks, Requests: o.requests, Tags: redactedTags(storeRedacted, o.tags),
		Version: toolVersion(), Command: append(command, args...), Sentinel: catalog.Embedded().Sentinel})
	if err != nil {
		return usagef("%w", err)
	}
	unlock, err := makeRunDir(o.dir, o.force)
	if err != nil {
		return err
	}
	defer unlock()
	samples, err := r.Record(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(std.err, "recorded %v of %d simulated servers, %d samples, into %s\nnext: scrapestat show %s\n",
		o.warmup+o.duration, len(servers), samples, o.dir, o.dir)
	return nil
}

// recordOnly and serveOnly are the flags of simulate that have a meaning on one side only.
func recordOnly() []string {
	return []string{"force", "duration", "warmup", "interval", "start", "mark", "tag", "requests"}
}

func serveOnly() []string {
	return []string{"listen", "grpc-listen", "metric-logs", "rotate-bytes", "redirect"}
}

// givenOf is the first of the flags that was given, or "".
func givenOf(cmd *cobra.Command, names []string) string {
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			return name
		}
	}
	return ""
}

// recordRun is simulate with --record.
func (o *simulateOptions) recordRun(cmd *cobra.Command, args []string, std stdio) error {
	if flag := givenOf(cmd, serveOnly()); flag != "" {
		return usagef("--%s is for a server: --record serves nothing", flag)
	}
	specs, err := parseSpecs(args, o.sim)
	if err != nil {
		return err
	}
	for i := range specs {
		if err := o.omni.apply(specs[i].Profile, &specs[i].Options); err != nil {
			return err
		}
	}
	o.record.flags = givenFlags(cmd)
	ctx, stop := signal.NotifyContext(cmd.Context(), endSignals()...)
	defer stop()
	return recordServers(ctx, o.record, specs, args, std)
}

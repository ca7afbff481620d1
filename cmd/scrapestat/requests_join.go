package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/events/join"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/window"
)

const requestsJoinLong = `Puts the requests that clients saw beside what the server says of them, over the
same window: counts, requests under way at both edges, means and what was added
between, per timeslice too. Differences of means are exact when the counts agree;
those of percentiles are shown and are not additive.

Where servers told of single requests (collect --otlp, requests import), each is
joined with its client by an id: trace, the body's id, x-request-id, the client's
id. Where its time went needs no common clock. The clocks are bounded by what was
sent before it arrived; a contradiction is told and nothing is placed (exit code 4
under --strict). Requests that a server logs by name (TorchServe) are joined too.

The clients' times are held against the server's counter of requests: times that
are more than a second off end with exit code 1, no request at all with 5.`

// joinOptions is the command line of requests join.
type joinOptions struct {
	run    string
	ref    window.Ref
	engine string
	format string
	json   bool
	slice  time.Duration
	window windowFlags
	joinFlags
	runFlags
}

// joinFlags say how single requests are joined.
type joinFlags struct {
	byRequest           int
	maxDrift, minJoined string
	dropConflicting     bool
	sameHost            bool
	shift               time.Duration

	drift, joined float64 // of maxDrift and minJoined, set by validate
}

func (o *joinFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&o.byRequest, "by-request", 0, "list the `N` slowest requests, one on each line")
	f.StringVar(&o.maxDrift, "max-drift", "200ppm", "`rate` at which the clocks of clients and servers may drift apart")
	f.BoolVar(&o.dropConflicting, "drop-conflicting", false, "leave requests out of the clocks that contradict "+
		"the others, up to 1 % of all")
	f.BoolVar(&o.sameHost, "same-host", false, "clients and servers have one clock; it is checked")
	f.DurationVar(&o.shift, "shift", 0, "add a `time` to those of the clients")
	f.StringVar(&o.minJoined, "min-joined", "", "`share` of the clients that must be joined, such as 99% "+
		"(else exit code 4)")
}

// validate reads the rates.
func (o *joinFlags) validate() error {
	ppm, err := strconv.ParseFloat(strings.TrimSuffix(cmp.Or(o.maxDrift, "200ppm"), "ppm"), 64)
	if err != nil || !(ppm >= 0 && ppm <= 1e5) {
		return usagef("--max-drift %s: want parts per million, such as 200ppm", o.maxDrift)
	}
	o.drift = ppm * 1e-6
	if o.minJoined != "" {
		share, err := strconv.ParseFloat(strings.TrimSuffix(o.minJoined, "%"), 64)
		if err != nil || !(share >= 0 && share <= 100) || !strings.HasSuffix(o.minJoined, "%") {
			return usagef("--min-joined %s: want a share such as 99%%", o.minJoined)
		}
		o.joined = share / 100
	}
	if o.byRequest < 0 {
		return usagef("--by-request %d: want the number of requests", o.byRequest)
	}
	return nil
}

// verdict is how --min-joined and --strict end.
func (o *joinOptions) verdict(r *join.Result) error {
	share, refused := 0.0, ""
	if r.Requests != nil {
		share, refused = r.Requests.Share(), r.Requests.Refused()
	}
	switch {
	case o.minJoined != "" && share < o.joined:
		return &codeError{exitIncomplete, fmt.Errorf("%.1f %% of the clients were joined with a record, --min-joined %s",
			100*share, o.minJoined)}
	case o.strict && refused != "":
		return &codeError{exitIncomplete, fmt.Errorf("the clocks are refused: %s (--strict)", refused)}
	}
	return nil
}

func newRequestsJoinCmd(std stdio) *cobra.Command {
	var o joinOptions
	cmd := &cobra.Command{
		Use:     "join RUN",
		Short:   "Put the clients' requests beside the server's metrics",
		Long:    requestsJoinLong,
		Example: "  scrapestat requests join run1 --slice-duration 5s",
		Args:    exactly(1, "RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.run = args[0]
			return requestsJoin(cmd.Context(), o, std)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.engine, "engine", "", "`name` of the server whose families count, as \"scrapestat catalog list\" "+
		"has it (default the first that has any)")
	f.StringVar(&o.format, "format", "text", "`format`: text, json")
	f.BoolVar(&o.json, "json", false, "the same as --format json")
	f.DurationVar(&o.slice, "slice-duration", 0, "timeslice width (default that of the recording)")
	o.joinFlags.register(cmd)
	o.window.register(cmd)
	o.runFlags.register(cmd)
	return cmd
}

func requestsJoin(ctx context.Context, o joinOptions, std stdio) error {
	if o.slice < 0 {
		return usagef("--slice-duration wants no negative duration")
	}
	err := first(o.memory.validate(), o.joinFlags.validate(), oneOf("format", "format", o.format, "text", "json"))
	if err != nil {
		return err
	}
	a, err := o.window.arg(o.run)
	if err != nil {
		return err
	}
	o.run, o.ref = a.Run, a.Ref
	r, strict, err := joinRun(ctx, o, nil)
	if err != nil {
		return err
	}
	strict = cmp.Or(o.verdict(r), strict)
	if o.json || o.format == "json" {
		return cmp.Or(texttab.WriteJSON(std.out, r), strict)
	}
	err = r.Text(std.out)
	if o.byRequest > 0 && r.Requests != nil {
		err = cmp.Or(err, r.Requests.SlowestText(std.out, o.byRequest))
	}
	return cmp.Or(err, strict)
}

// joinRun reads the requests of a run and joins them with its metrics. strict is how --strict ends. use, where there is
// one, has the recording and its result while it is open.
func joinRun(ctx context.Context, o joinOptions, use func(*join.Result, *rundb.Run, *summary.Run) error) (
	r *join.Result, strict, err error) {
	o.memory.renew()
	runs, closeAll, err := openRuns([]string{o.run}, o.memory)
	if err != nil {
		return nil, nil, err
	}
	defer closeAll()
	db := runs[0]
	clocks, err := db.Clocks(ctx)
	if err != nil {
		return nil, nil, err
	}
	stats, err := db.EventStats(ctx)
	if err != nil {
		return nil, nil, err
	}
	s, err := events.Assemble(db.Events(ctx), events.Rules{Memory: o.memory.of})
	if err != nil {
		return nil, nil, fmt.Errorf("read requests of %s: %w", o.run, err)
	}
	o.slice = cmp.Or(o.slice, db.Meta().Slice)
	result, err := summary.Build(ctx, []summary.Recording{db},
		join.BuildOptions(summary.Options{Slice: o.slice, Window: o.ref, Estimator: histest.Refined}))
	if err != nil {
		return nil, nil, err
	}
	join.Shift(s, o.shift)
	meta := db.Meta()
	r, err = join.Join(ctx, s, result, join.Options{Clocks: clocks, Engine: o.engine, Recording: db, Records: db,
		ClockOptions: join.ClockOptions{Drift: o.drift, DropConflicting: o.dropConflicting, SameHost: o.sameHost,
			BootID: meta.BootID, BootedNS: meta.OriginNS - meta.BootNS}})
	if err != nil {
		err = fmt.Errorf("%s: %w", o.run, err)
		if errors.Is(err, join.ErrNoRequests) {
			err = &codeError{exitNothing, err}
		}
		return nil, nil, err
	}
	of := requestFlags{runFlags: o.runFlags, missing: missingOf(db, s, stats)}
	if use != nil {
		err = use(r, db, result)
	}
	return r, cmp.Or(of.complete(), o.runFlags.verdict(result)), err
}

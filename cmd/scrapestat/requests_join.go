package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/events/join"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/window"
)

const requestsJoinLong = `Puts the requests that clients saw beside what the server says of them, over the
same window: counts, requests under way at both edges, means and what was added
between, per timeslice too. Differences of means are exact when the counts agree;
those of percentiles are shown and are not additive. Requests that a server logs by
name (TorchServe) are joined one by one.`

// joinOptions is the command line of requests join.
type joinOptions struct {
	run    string
	ref    window.Ref
	engine string
	json   bool
	slice  time.Duration
	window windowFlags
	runFlags
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
	f.BoolVar(&o.json, "json", false, "write JSON")
	f.DurationVar(&o.slice, "slice-duration", 0, "timeslice width (default that of the recording)")
	o.window.register(cmd)
	o.runFlags.register(cmd)
	return cmd
}

func requestsJoin(ctx context.Context, o joinOptions, std stdio) error {
	if o.slice < 0 {
		return usagef("--slice-duration wants no negative duration")
	}
	if err := o.memory.validate(); err != nil {
		return err
	}
	a, err := o.window.arg(o.run)
	if err != nil {
		return err
	}
	o.run, o.ref = a.Run, a.Ref
	r, strict, err := joinRun(ctx, o)
	if err != nil {
		return err
	}
	if !o.json {
		return cmp.Or(r.Text(std.out), strict)
	}
	return cmp.Or(texttab.WriteJSON(std.out, r), strict)
}

// joinRun reads the requests of a run and joins them with its metrics. strict is how --strict ends.
func joinRun(ctx context.Context, o joinOptions) (r *join.Result, strict, err error) {
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
	r, err = join.Join(s, result, join.Options{Clocks: clocks, Engine: o.engine})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", o.run, err)
	}
	of := requestFlags{runFlags: o.runFlags, missing: missingOf(db, s, stats)}
	return r, cmp.Or(of.complete(), o.verdict(result)), r.Observe(ctx, s, db)
}

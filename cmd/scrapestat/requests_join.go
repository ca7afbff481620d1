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
	memory memoryFlag
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
	o.memory.register(cmd)
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
	r, err := joinRun(ctx, o)
	if err != nil {
		return err
	}
	if !o.json {
		return r.Text(std.out)
	}
	return writeJSON(std.out, r)
}

// joinRun reads the requests of a run and joins them with its metrics.
func joinRun(ctx context.Context, o joinOptions) (*join.Result, error) {
	runs, closeAll, err := openRuns([]string{o.run}, o.memory)
	if err != nil {
		return nil, err
	}
	defer closeAll()
	db := runs[0]
	clocks, err := db.Clocks(ctx)
	if err != nil {
		return nil, err
	}
	s, err := events.Assemble(db.Events(ctx), events.Rules{})
	if err != nil {
		return nil, fmt.Errorf("read requests of %s: %w", o.run, err)
	}
	o.slice = cmp.Or(o.slice, db.Meta().Slice)
	result, err := summary.Build(ctx, []summary.Recording{db},
		join.BuildOptions(summary.Options{Slice: o.slice, Window: o.ref, Estimator: histest.Refined}))
	if err != nil {
		return nil, err
	}
	r, err := join.Join(s, result, join.Options{Clocks: clocks, Engine: o.engine})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.run, err)
	}
	return r, r.Observe(ctx, s, db)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/collect"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

const requestsRecordLong = `Records lines about requests from FILE, which may be a FIFO, or from stdin (-, the
default), until they end or a signal arrives: into a new run, or with --run into
one that collect records at the same time or has recorded.

A line is an event of MLPerf's endpoints benchmark (event_type, timestamp_ns,
sample_uuid, ...) or a whole request: {"id", "issued_ns", "first_ns", "complete_ns",
"osl", "isl", "status", "error", "x_request_id", "model", "finish_reason"}. Times may
end in _ns, _us, _ms or _s. Bad lines are counted, never fatal.`

type requestsRecordOptions struct {
	out, run string
	source   string
	force    bool
	tags     map[string]string
	flags    []string
	quiet    bool
	runFlags
}

func newRequestsRecordCmd(std stdio) *cobra.Command {
	o := requestsRecordOptions{source: "-"}
	cmd := &cobra.Command{
		Use:   "record [FILE|-]",
		Short: "Record requests from JSON lines",
		Long:  requestsRecordLong,
		Example: `  my-load-generator --log /dev/stdout | scrapestat requests record -o run1
  scrapestat requests record --run run1 /tmp/requests.fifo`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("want one FILE or -, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.source = args[0]
			}
			if o.run != "" && (o.out != "" || o.force || len(o.tags) > 0) {
				return usagef("--run records into an existing run: --out, --force and --tag are for a new one")
			}
			o.flags = givenFlags(cmd)
			if err := o.memory.validate(); err != nil {
				return err
			}
			return recordRequests(cmd.Context(), o, std)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.out, "out", "o", "", "new run `directory`; refused when it exists unless --force (default "+
		"runs/<UTC time>)")
	f.StringVar(&o.run, "run", "", "existing run `directory` to record into")
	f.BoolVar(&o.force, "force", false, "replace the run in an existing directory")
	f.StringToStringVar(&o.tags, "tag", nil, "run tag `K=V`, kept in the manifest and the exports (repeatable)")
	o.runFlags.register(cmd)
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no talk on stderr")
	return cmd
}

// recordRequests records one feed into one run.
func recordRequests(ctx context.Context, o requestsRecordOptions, std stdio) error {
	defer limitGC(o.memory.bytes)()
	say := newProgress(std.err, o.quiet)
	dir, isNew := o.run, o.run == ""
	var run *requestsRun
	if isNew {
		if dir = o.out; dir == "" {
			dir = defaultRunDir(time.Now())
		}
		unlock, err := makeRunDir(dir, o.force)
		if err != nil {
			return err
		}
		defer unlock()
		if run, err = newRequestsRun(dir, o); err != nil {
			return err
		}
	}
	surviveReaders()
	first, stop := signal.NotifyContext(ctx, endSignals()...)
	defer stop()
	side, err := collect.StartClient(ctx, dir, collect.ClientOptions{Lines: o.source, In: std.in,
		Memory: o.memory.bytes})
	if err != nil {
		return errors.Join(err, run.discard())
	}
	say.logf("recording requests from %s into %s", o.source, dir)
	select {
	case <-side.LinesDone():
	case <-first.Done():
	}
	got, err := side.Stop(ctx, 0)
	if run != nil {
		err = errors.Join(err, run.close(&got))
	}
	for _, w := range got.Warnings() {
		say.logf("warning: %s", w.Text)
	}
	out := &talk{to: plain(std.out)}
	fmt.Fprintln(out, got.String())
	out.tell(say)
	switch {
	case err != nil:
		return err
	case got.Events.Recorded == 0:
		return &codeError{exitNothing, fmt.Errorf("no request was recorded from %s", o.source)}
	}
	return o.lost(got.Lost(), "%s", got.LossText())
}

// requestsRun is a new run that has the client's side alone.
type requestsRun struct {
	dir      string
	db       *rundb.Writer
	manifest rundb.Manifest
}

func newRequestsRun(dir string, o requestsRecordOptions) (*requestsRun, error) {
	m, manifest := describeRun(time.Now().UnixNano(), o.tags, []string{"scrapestat", "requests", "record"}, o.flags,
		[]string{o.source})
	db, err := rundb.Create(dir, m, rundb.WriterOptions{})
	if err != nil {
		return nil, err
	}
	manifest.Options, manifest.Targets = map[string]any{"requests": o.source}, []rundb.ManifestTarget{}
	r := &requestsRun{dir: dir, db: db, manifest: manifest}
	if err := rundb.WriteManifest(dir, r.manifest); err != nil {
		return nil, errors.Join(err, db.Close(context.Background()))
	}
	return r, nil
}

// discard closes a run into which nothing came; nil has none.
func (r *requestsRun) discard() error {
	if r == nil {
		return nil
	}
	return r.db.Close(context.Background())
}

// close sets the phase that the events span and ends the run.
func (r *requestsRun) close(got *collect.ClientStats) error {
	var err error
	if got.FirstNS != 0 {
		err = errors.Join(r.db.Mark(metric.Mark{Name: metric.PhaseProfiling, AtNS: got.FirstNS, Kind: metric.MarkOwn}),
			r.db.Mark(metric.Mark{Name: metric.MarkEnd, AtNS: got.LastNS, Kind: metric.MarkOwn}))
	}
	for _, w := range got.Warnings() {
		err = errors.Join(err, r.db.Warn(w))
	}
	r.manifest.Ended = time.Now()
	r.manifest.Warnings = got.Warnings()
	r.manifest.Options["request-counts"] = got.Counts()
	return errors.Join(err, r.db.Close(context.Background()), rundb.WriteManifest(r.dir, r.manifest))
}

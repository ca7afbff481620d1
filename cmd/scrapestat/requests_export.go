package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/events/join"
	"github.com/scrapestat/scrapestat/export/trace"
	"github.com/scrapestat/scrapestat/internal/atomicfile"
	"github.com/scrapestat/scrapestat/internal/parquetwriter"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
)

const requestsExportLong = `Writes the requests of clients with what servers told of each, as requests join
joins them: one row for each request, and for each record without a client (jsonl,
parquet), or a Chrome trace that Perfetto opens (trace), with the server's requests
and their phases beside the clients' and the counters of the run.

Without a common clock the two sides of a trace have axes of their own.`

// requestsExportOptions is the command line of requests export.
type requestsExportOptions struct {
	joinOptions
	out     string
	slowest int
}

func newRequestsExportCmd(std stdio) *cobra.Command {
	var o requestsExportOptions
	cmd := &cobra.Command{
		Use:     "export RUN --format FORMAT -o FILE",
		Short:   "Write requests with what servers told of each",
		Long:    requestsExportLong,
		Example: "  scrapestat requests export run1 --format trace --slowest 200 -o slow.json",
		Args:    exactly(1, "RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.run = args[0]
			return requestsExport(cmd.Context(), o, std)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.format, "format", "jsonl", "`format`: jsonl, parquet, trace")
	f.StringVarP(&o.out, "out", "o", "", "`file` to write; - is stdout (required)")
	f.IntVar(&o.slowest, "slowest", 0, "the `N` slowest requests alone")
	f.StringVar(&o.engine, "engine", "", "`name` of the server whose families count")
	o.joinFlags.register(cmd)
	o.window.register(cmd)
	o.runFlags.register(cmd)
	return cmd
}

func requestsExport(ctx context.Context, o requestsExportOptions, std stdio) error {
	if o.out == "" {
		return usagef("missing -o FILE")
	}
	if o.slowest < 0 {
		return usagef("--slowest %d: want the number of requests", o.slowest)
	}
	if err := first(o.memory.validate(), o.joinFlags.validate(),
		oneOf("format", "format", o.format, "jsonl", "parquet", "trace")); err != nil {
		return err
	}
	a, err := o.window.arg(o.run)
	if err != nil {
		return err
	}
	o.run, o.ref, o.slice = a.Run, a.Ref, summary.CauseSlices
	r, strict, err := joinRun(ctx, o.joinOptions, func(r *join.Result, db *rundb.Run, run *summary.Run) error {
		if r.Requests == nil {
			return &codeError{exitNothing, errors.New("no server told of single requests: there is nothing to export " +
				"(query --table requests has those of clients)")}
		}
		return o.save(std.out, func(w io.Writer) error { return o.write(ctx, w, r, db, run) })
	})
	if err != nil {
		return err
	}
	return cmp.Or(o.joinOptions.verdict(r), strict)
}

// save writes into the file, whole or not at all, or to stdout.
func (o *requestsExportOptions) save(stdout io.Writer, write func(io.Writer) error) error {
	if o.out == "-" {
		w := bufio.NewWriter(stdout)
		return cmp.Or(write(w), w.Flush())
	}
	f, err := atomicfile.Create(o.out, 0o600)
	if err != nil {
		return fmt.Errorf("export requests: %w", err)
	}
	defer f.Abort()
	if err := write(f); err != nil {
		return fmt.Errorf("export requests to %s: %w", o.out, err)
	}
	return f.Commit()
}

func (o *requestsExportOptions) write(ctx context.Context, w io.Writer, r *join.Result, db *rundb.Run,
	run *summary.Run) error {
	rows := func(yield func(join.Flat, error) bool) {
		if o.slowest == 0 {
			r.Requests.All(ctx, db)(yield)
			return
		}
		for _, x := range r.Requests.Slowest(o.slowest) {
			if !yield(x.Flat(), nil) {
				return
			}
		}
	}
	switch o.format {
	case "trace":
		return o.trace(w, rows, run)
	case "parquet":
		return parquetwriter.Rows(w, "server-requests", rows)
	}
	to := json.NewEncoder(w)
	for row, err := range rows {
		if err := cmp.Or(err, to.Encode(row)); err != nil {
			return err
		}
	}
	return nil
}

// trace places the requests of both sides on one axis, or on two where no clock is known.
func (o *requestsExportOptions) trace(w io.Writer, rows iter.Seq2[join.Flat, error], run *summary.Run) (err error) {
	clients, servers := trace.Track{Name: "clients"}, trace.Track{Name: "server"}
	origin, arrival, placed := int64(math.MaxInt64), int64(math.MaxInt64), true
	var list []join.Flat
	for row, rowErr := range rows {
		if err = rowErr; err != nil {
			return err
		}
		if list = append(list, row); row.IssuedNS != nil {
			origin = min(origin, *row.IssuedNS)
		}
		if row.ArrivalNS != nil {
			arrival = min(arrival, *row.ArrivalNS)
			placed = placed && (row.OffsetLo != nil || row.IssuedNS == nil)
		}
	}
	shift := origin - arrival
	if !placed {
		servers.Name = "server, on a clock of its own"
	}
	for i := range list {
		row := &list[i]
		if row.IssuedNS != nil && row.CompleteNS != nil {
			clients.Spans = append(clients.Spans, clientSpan(row))
		}
		if row.ArrivalNS == nil || row.FinishNS == nil {
			continue
		}
		by := shift
		if placed {
			if row.OffsetLo != nil {
				shift = int64(math.Round((*row.OffsetLo + *row.OffsetHi) / 2 * 1e9))
			}
			by = shift // of a record without a client: that of the request before it
		}
		servers.Spans = append(servers.Spans, serverSpan(row, by))
	}
	return trace.Write(w, origin, []trace.Track{clients, servers}, countersOf(run))
}

func clientSpan(row *join.Flat) trace.Span {
	s := trace.Span{Name: row.ID, From: *row.IssuedNS, To: *row.CompleteNS, Args: map[string]any{"status": row.Status}}
	if row.FirstNS != nil && *row.FirstNS <= s.To {
		s.Phases = []trace.Span{{Name: "to first token", From: s.From, To: *row.FirstNS},
			{Name: "tokens", From: *row.FirstNS, To: s.To}}
	}
	return s
}

// serverSpan is a request in the server. Where in the time to the first token it waited is told by few servers, so how
// long stands in the arguments.
func serverSpan(row *join.Flat, shift int64) trace.Span {
	s := trace.Span{Name: cmp.Or(row.ID, row.ServerID), From: *row.ArrivalNS + shift, To: *row.FinishNS + shift,
		Args: map[string]any{"joined_by": row.JoinedBy}}
	for name, v := range map[string]*float64{"outside_s": row.Outside, "front_s": row.Front, "queue_s": row.Queue,
		"prefill_s": row.Prefill, "decode_s": row.Decode, "offset_lo_s": row.OffsetLo, "offset_hi_s": row.OffsetHi} {
		if v != nil {
			s.Args[name] = *v
		}
	}
	if row.ServerFirstNS != nil && *row.ServerFirstNS+shift <= s.To {
		s.Phases = []trace.Span{{Name: "to first token", From: s.From, To: *row.ServerFirstNS + shift},
			{Name: "decode", From: *row.ServerFirstNS + shift, To: s.To}}
	}
	return s
}

// countersOf are the requests under way and the use of the KV cache, by timeslice.
func countersOf(run *summary.Run) (out []trace.Counter) {
	for _, id := range []string{"running", "waiting", "kv_usage"} {
		at := map[int64]float64{}
		for i := range run.Metrics {
			m := &run.Metrics[i]
			if run.Options.Catalog.Canonical(m.Name) != id {
				continue
			}
			for k := range m.Series {
				if g := m.Series[k].Gauge; g != nil && !run.Repeats(&m.Series[k]) {
					for _, s := range g.Slices {
						at[s.StartNS] += s.Avg
					}
				}
			}
		}
		c := trace.Counter{Name: id, AtNS: slices.Sorted(maps.Keys(at))}
		for _, ns := range c.AtNS {
			c.Values = append(c.Values, at[ns])
		}
		if len(at) > 0 {
			out = append(out, c)
		}
	}
	return out
}

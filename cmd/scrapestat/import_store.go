package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/internal/timeline"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source/promstore"
)

const importPrometheusLong = `Imports the raw samples of a time range from Prometheus or a store that speaks
like it (Thanos, Mimir, VictoriaMetrics): by remote read where it is offered, else
by range selectors of the query API. Nothing is resampled or extrapolated.

All samples of one scrape carry the same time, so each scrape becomes one poll of
its target again; a target is a job and instance. A scrape that failed is known
when the series up is among the selected ones. Every time is RFC 3339, seconds
since 1970, now, or an age such as -1h.`

// storeOptions is the command line of import prometheus, beyond what all kinds of import share.
type storeOptions struct {
	address    string
	match      []string
	start, end string
	via        string
	auth       authFlags
	labels     labelFlags
	timeout    time.Duration
}

func newImportPrometheusCmd(std stdio) *cobra.Command {
	var o importOptions
	var q storeOptions
	cmd := &cobra.Command{
		Use:   "prometheus URL",
		Short: "Import raw samples from Prometheus or a store that speaks like it",
		Long:  importPrometheusLong,
		Example: `  scrapestat import prometheus http://prometheus:9090 --match '{job="vllm"}' --start -1h --end now ` +
			`-o incident
  scrapestat import prometheus https://thanos.example --match '{job="engines",cluster="a"}' --match up \
      --start 2026-11-21T10:00:00Z --end 2026-11-21T10:30:00Z --bearer-token-file token --target-labels ` +
			`cluster,job,instance -o run2`,
		Args: exactly(1, "URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.kind, o.source, o.flags = "prometheus", promstore.Redact(args[0]), givenFlags(cmd)
			q.address = args[0]
			if err := errors.Join(o.validate(), q.labels.validate()); err != nil {
				return err
			}
			po, err := q.options(&o, time.Now())
			if err != nil {
				return err
			}
			header, client, unsafe, err := q.auth.open()
			if err != nil {
				return err
			}
			defer client.CloseIdleConnections()
			po.Header, po.Transport, po.Redact = header, client, client.Redact
			return runImport(cmd.Context(), o, std, func(ctx context.Context, s *importSink) (imported, error) {
				return importPrometheus(ctx, po, unsafe, s)
			})
		},
	}
	o.register(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&q.match, "match", nil, "series `selector` such as {job=\"vllm\"} (repeatable; default every series)")
	f.StringVar(&q.start, "start", "", "`time` of the first samples")
	f.StringVar(&q.end, "end", "now", "`time` of the last samples")
	f.StringVar(&q.via, "via", promstore.ViaAuto, "`way` to get samples: auto, remote-read or query")
	f.DurationVar(&q.timeout, "timeout", 2*time.Minute, "deadline of one request")
	q.auth.register(f, "", "the store")
	q.labels.register(cmd)
	return cmd
}

// options checks the command line.
func (q *storeOptions) options(o *importOptions, now time.Time) (promstore.ImportOptions, error) {
	bad := func(err error) (promstore.ImportOptions, error) { return promstore.ImportOptions{}, err }
	if q.start == "" {
		return bad(usagef("missing --start, for example --start -1h"))
	}
	start, err := parseInstant(q.start, now)
	if err != nil {
		return bad(usagef("--start: %w", err))
	}
	end, err := parseInstant(q.end, now)
	if err != nil {
		return bad(usagef("--end: %w", err))
	}
	if !end.After(start) {
		return bad(usagef("--end %s is not after --start %s", q.end, q.start))
	}
	for _, s := range q.match {
		if err := promstore.CheckSelector(s); err != nil {
			return bad(usagef("--match: %w", err))
		}
	}
	if err := oneOf("via", "way", q.via, promstore.ViaAuto, promstore.ViaRemoteRead, promstore.ViaQuery); err != nil {
		return bad(err)
	}
	if q.timeout <= 0 {
		return bad(usagef("--timeout %v is not positive", q.timeout))
	}
	po := promstore.ImportOptions{URL: q.address, Via: q.via, Match: q.match,
		StartNS: start.UnixNano(), EndNS: end.UnixNano(), TargetLabels: q.labels.target, Step: o.step, Timeout: q.timeout,
		TypeOf: knownType,
		Limits: timeline.Limits{Samples: q.labels.maxSamples, Series: q.labels.maxSeries, Memory: o.memory.bytes}}
	po.Keep, po.Drop = o.filters()
	return po, nil
}

func importPrometheus(ctx context.Context, o promstore.ImportOptions, unsafe []metric.Warning, s *importSink) (imported,
	error) {
	total := float64(o.EndNS - o.StartNS)
	o.Progress = func(doneNS, samples int64) {
		s.progress("%s of the time range, %d samples", meter(float64(doneNS-o.StartNS)/total), samples)
	}
	st, err := promstore.Import(ctx, o, s)
	got := imported{startNS: o.StartNS, endNS: o.EndNS, notes: slices.Concat(unsafe, st.Warnings)}
	got.addTimeline(st.Stats)
	got.note(st.Native, "native_histograms", "%d samples of native histograms were not imported")
	return got, err
}

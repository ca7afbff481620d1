package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/internal/timeline"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/source/promstore"
)

const importPrometheusLong = `Imports the raw samples of a time range from Prometheus or a store that speaks
like it (Thanos, Mimir, VictoriaMetrics): by remote read where it is offered, else
by range selectors of the query API. Nothing is resampled or extrapolated.

All samples of one scrape carry the same time, so each scrape becomes one poll of
its target again; a target is a job and instance. A scrape that failed is known
when the series up is among the selected ones. Every time is RFC 3339, seconds
since 1970, now, or an age such as -1h.`

// storeOptions is the command line of import prometheus, beyond what all kinds
// of import share.
type storeOptions struct {
	address    string
	match      []string
	start, end string
	via        string
	credential credentialFlags
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
		Example: `  scrapestat import prometheus http://prometheus:9090 --match '{job="vllm"}' --start -1h --end now -o incident
  scrapestat import prometheus https://thanos.example --match '{__name__=~"vllm:.*",cluster="a"}' --match up \
      --start 2026-11-21T10:00:00Z --end 2026-11-21T10:30:00Z --bearer-token-file token --target-labels cluster,job,instance -o run2`,
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
			return runImport(cmd.Context(), o, std, func(ctx context.Context, s *importSink) (imported, error) {
				return importPrometheus(ctx, po, s)
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
	q.credential.register(cmd, "", "the store")
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
	if q.via != promstore.ViaAuto && q.via != promstore.ViaQuery && q.via != promstore.ViaRemoteRead {
		return bad(usagef("--via: unknown way %q (known: auto, remote-read, query)", q.via))
	}
	if q.timeout <= 0 {
		return bad(usagef("--timeout %v is not positive", q.timeout))
	}
	header, transport, err := q.credential.open()
	if err != nil {
		return bad(err)
	}
	po := promstore.ImportOptions{URL: q.address, Header: header, Transport: transport, Via: q.via, Match: q.match,
		StartNS: start.UnixNano(), EndNS: end.UnixNano(), TargetLabels: q.labels.target, Step: o.step, Timeout: q.timeout,
		Limits: timeline.Limits{Samples: q.labels.maxSamples, Series: q.labels.maxSeries}}
	po.Keep, po.Drop = o.filters()
	return po, nil
}

func importPrometheus(ctx context.Context, o promstore.ImportOptions, s *importSink) (imported, error) {
	total := float64(o.EndNS - o.StartNS)
	o.Progress = func(doneNS, samples int64) {
		s.progress("%.0f %% of the time range, %d samples", 100*float64(doneNS-o.StartNS)/total, samples)
	}
	st, err := promstore.Import(ctx, o, s)
	got := fromTimeline(st.Stats)
	got.startNS, got.endNS = o.StartNS, o.EndNS
	got.notes = append(st.Warnings, got.notes...)
	if st.Native > 0 {
		got.notes = append(got.notes, metric.Warning{Code: "native_histograms", Text: fmt.Sprintf("%d samples of native histograms were not imported", st.Native)})
	}
	return got, err
}

// credentialFlags authenticate at a store. Their values are never shown.
type credentialFlags struct {
	headers           []string
	bearer, basic     string
	prefix, storeName string
}

// register adds the flags, each name beginning with prefix.
func (c *credentialFlags) register(cmd *cobra.Command, prefix, what string) {
	c.prefix, c.storeName = prefix, what
	f := cmd.Flags()
	f.StringArrayVar(&c.headers, prefix+"header", nil, "`'K: V'` sent to "+what+" with each request (repeatable)")
	f.StringVar(&c.bearer, prefix+"bearer-token-file", "", "`file` with the bearer token for "+what)
	f.StringVar(&c.basic, prefix+"basic-auth-file", "", "`file` with USER:PASSWORD for "+what)
}

// maxSecretFile bounds a file that holds a secret.
const maxSecretFile = 64 << 10

// open reads the secrets. Token files are read again for each request by the
// transport, as tokens are rotated.
func (c *credentialFlags) open() (http.Header, http.RoundTripper, error) {
	header := http.Header{}
	for _, h := range c.headers {
		name, value, ok := strings.Cut(h, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, nil, usagef("--%sheader: want 'K: V'", c.prefix)
		}
		header.Add(name, strings.TrimSpace(value))
	}
	if c.bearer != "" && c.basic != "" {
		return nil, nil, usagef("--%sbearer-token-file and --%sbasic-auth-file exclude each other", c.prefix, c.prefix)
	}
	if c.bearer == "" && c.basic == "" {
		return header, scrape.NewTransport(nil), nil
	}
	path, scheme := c.bearer, "bearer"
	if c.basic != "" {
		path, scheme = c.basic, "basic"
	}
	auth := &fileAuth{path: path, basic: scheme == "basic", next: scrape.NewTransport(nil)}
	if _, err := auth.secret(); err != nil {
		return nil, nil, usagef("--%s%s: %w", c.prefix, map[string]string{"bearer": "bearer-token-file", "basic": "basic-auth-file"}[scheme], err)
	}
	return header, auth, nil
}

// fileAuth authenticates requests with a secret in a file.
type fileAuth struct {
	path  string
	basic bool
	next  http.RoundTripper
}

func (a *fileAuth) secret() (string, error) {
	info, err := os.Stat(a.path)
	if err != nil {
		return "", err
	}
	if info.Size() > maxSecretFile {
		return "", fmt.Errorf("%s has more than %d bytes", a.path, maxSecretFile)
	}
	text, err := os.ReadFile(a.path)
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" || strings.ContainsAny(secret, "\r\n") || a.basic && !strings.Contains(secret, ":") {
		return "", fmt.Errorf("%s does not hold one line with the secret", a.path)
	}
	return secret, nil
}

// RoundTrip implements http.RoundTripper.
func (a *fileAuth) RoundTrip(r *http.Request) (*http.Response, error) {
	secret, err := a.secret()
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	if a.basic {
		user, password, _ := strings.Cut(secret, ":")
		r.SetBasicAuth(user, password)
	} else {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	return a.next.RoundTrip(r)
}

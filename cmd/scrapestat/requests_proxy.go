package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/scrapestat/scrapestat/collect"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/scrape"
)

const requestsProxyLong = `Passes requests on to a server of OpenAI's interface and records when each was
issued, sent on, answered with a first byte and a first token, and complete. Streams
pass unchanged and unbuffered. Neither text nor credentials are recorded. Ends at a
signal, and says what it has cost itself.`

// proxyFlags are the flags that requests proxy and collect share.
type proxyFlags struct {
	options collect.ProxyOptions
}

func (p *proxyFlags) register(f *pflag.FlagSet, prefix string) {
	f.BoolVar(&p.options.Chunks, prefix+"chunks", false, "also record each chunk with content after the first")
	f.BoolVar(&p.options.ForceUsage, prefix+"force-usage", false,
		"ask for usage in streaming requests that do not; the client gets one more chunk")
	f.Int64Var(&p.options.MaxRequest, prefix+"max-request", 64<<20, "largest request that passes, in `bytes`")
	f.IntVar(&p.options.MaxStreams, prefix+"max-streams", 4096,
		"most requests at the same time; more are answered with 503")
	f.IntVar(&p.options.Calibration, prefix+"calibration-requests", 100,
		"requests to a server that does nothing, with and without a proxy, by which it measures itself at the start; 0 "+
			"disables")
}

func (p *proxyFlags) validate() error {
	if p.options.MaxRequest < 1 || p.options.MaxStreams < 1 || p.options.Calibration < 0 ||
		p.options.Calibration > 100_000 {
		return usagef("--max-request and --max-streams want at least 1, --calibration-requests 0 to 100000")
	}
	return nil
}

// requestsProxyOptions is the command line of requests proxy.
type requestsProxyOptions struct {
	flags       proxyFlags
	listen, out string
	warmup      time.Duration
	runFlags
}

func newRequestsProxyCmd(std stdio) *cobra.Command {
	var o requestsProxyOptions
	cmd := &cobra.Command{
		Use:     "proxy --upstream URL",
		Short:   "Record the requests that pass through a proxy",
		Long:    requestsProxyLong,
		Example: "  scrapestat requests proxy --listen 127.0.0.1:9000 --upstream http://127.0.0.1:8000 -o run1",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case o.flags.options.Upstream == "":
				return usagef("missing --upstream, for example http://127.0.0.1:8000")
			case o.warmup < 0:
				return usagef("--warmup %v is negative", o.warmup)
			case o.out == "":
				o.out = defaultRunDir(time.Now())
			}
			if err := first(o.flags.validate(), o.memory.validate()); err != nil {
				return err
			}
			return requestsProxy(cmd.Context(), o, std)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:9000",
		"`address` to listen on; a port alone is on loopback, 0 chooses one")
	f.StringVar(&o.flags.options.Upstream, "upstream", "", "`URL` of the server")
	f.StringVarP(&o.out, "out", "o", "", "run `directory`, new or of a run that is or was recorded (default "+
		"runs/<UTC time>)")
	f.DurationVar(&o.warmup, "warmup", 0, "the first part of the session: recorded, not tracked, so that reports "+
		"leave it out")
	o.runFlags.register(cmd)
	o.flags.register(f, "")
	return cmd
}

func requestsProxy(ctx context.Context, o requestsProxyOptions, std stdio) error {
	defer limitGC(o.memory.bytes)()
	surviveReaders()
	ctx, stop := signal.NotifyContext(ctx, endSignals()...)
	defer stop()
	if err := os.MkdirAll(o.out, 0o700); err != nil {
		return fmt.Errorf("make run directory: %w", err)
	}
	co := collect.ClientOptions{Proxy: &o.flags.options, Memory: o.memory.bytes}
	var err error
	if co.Proxy.Listen, err = listenAddress(o.listen); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(o.out, rundb.FileName)); errors.Is(err, os.ErrNotExist) {
		co.Create = &rundb.Meta{ID: rundb.NewID(), Version: toolVersion(),
			Command:  redactedCommand(storeRedacted, nil, nil, nil),
			OriginNS: time.Now().UnixNano(), Host: rundb.ThisHost().Hostname, Limits: scrape.Limits{}.ByFlag()}
		co.Create.Limits["max-recording"] = 0
	}
	o.flags.options.Untracked = o.warmup > 0
	side, err := collect.StartClient(ctx, o.out, co)
	if err != nil {
		return err
	}
	out := &talk{to: plain(std.out)}
	fmt.Fprintf(out, "http://%s\n", side.ProxyAddr())
	out.tell(newProgress(std.err, false))
	fmt.Fprintf(std.err, "recording requests to %s into %s\n", o.flags.options.Upstream, o.out)
	var warm <-chan time.Time
	if o.warmup > 0 {
		warm = time.After(o.warmup)
	}
	select {
	case <-warm:
		side.Track(true)
		<-ctx.Done()
	case <-ctx.Done():
	}
	got, err := side.Stop(ctx, 0)
	say := func(text string) { fmt.Fprintln(std.err, text) }
	for _, text := range got.ProxyReport() {
		say(text)
	}
	for _, w := range got.Warnings() {
		say("warning: " + w.Text)
	}
	say(got.String())
	return cmp.Or(err, o.lost(got.Lost(), "%s", got.LossText()))
}

// proxyPair reads the value of collect --proxy.
func proxyPair(text string) (listen, upstream string, err error) {
	listen, upstream, ok := strings.Cut(text, "=")
	if !ok || listen == "" || upstream == "" {
		return "", "", usagef("--proxy %q: want ADDRESS=URL, for example 127.0.0.1:9000=http://127.0.0.1:8000",
			redactArgs([]string{text})[0])
	}
	if !strings.Contains(upstream, "://") {
		upstream = "http://" + upstream
	}
	listen, err = listenAddress(listen)
	return listen, upstream, err
}

// validateProxy checks --proxy and its flags.
func (o *collectOptions) validateProxy() error {
	if o.proxy == "" {
		return nil
	}
	p := &o.proxyFlags.options
	var err error
	if p.Listen, p.Upstream, err = proxyPair(o.proxy); err != nil {
		return err
	}
	return o.proxyFlags.validate()
}

// validateOTLP checks --otlp.
func (o *collectOptions) validateOTLP() (err error) {
	if o.otlp == "" {
		return nil
	}
	o.otlp, err = listenAddress(strings.TrimSuffix(strings.TrimPrefix(o.otlp, "http://"), "/v1/traces"))
	return err
}

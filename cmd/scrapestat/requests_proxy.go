package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/scrapestat/scrapestat/events/proxy"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

const requestsProxyLong = `Passes requests on to a server of OpenAI's interface and records when each was
issued, sent on, answered with a first byte and a first token, and complete. Streams
pass unchanged and unbuffered. Neither text nor credentials are recorded. Ends at a
signal, and says what it has cost itself.`

// proxyFlags are the flags that requests proxy and collect share.
type proxyFlags struct {
	options proxy.Options
	null    int // requests of the measurement at the start
}

func (p *proxyFlags) register(f *pflag.FlagSet, prefix string) {
	f.BoolVar(&p.options.Chunks, prefix+"chunks", false, "also record each chunk with content after the first")
	f.BoolVar(&p.options.ForceUsage, prefix+"force-usage", false, "ask for usage in streaming requests that do not; the client gets one more chunk")
	f.Int64Var(&p.options.MaxRequest, prefix+"max-request", 64<<20, "largest request that passes, in `bytes`")
	f.IntVar(&p.options.MaxStreams, prefix+"max-streams", 4096, "most requests at the same time; more are answered with 503")
	f.IntVar(&p.null, prefix+"null-requests", 100, "requests to a server that does nothing, with and without a proxy, by which it measures itself at the start; 0 disables")
}

func (p *proxyFlags) validate() error {
	if p.options.MaxRequest < 1 || p.options.MaxStreams < 1 || p.null < 0 || p.null > 100_000 {
		return usagef("--max-request and --max-streams want at least 1, --null-requests 0 to 100000")
	}
	return nil
}

// requestsProxyOptions is the command line of requests proxy.
type requestsProxyOptions struct {
	flags       proxyFlags
	listen, out string
	warmup      time.Duration
	strict      bool
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
			if err := o.flags.validate(); err != nil {
				return err
			}
			return requestsProxy(cmd.Context(), o, std)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:9000", "`address` to listen on; a port alone is on loopback, 0 chooses one")
	f.StringVar(&o.flags.options.Upstream, "upstream", "", "`URL` of the server")
	f.StringVarP(&o.out, "out", "o", "", "run `directory`, new or of a run that is or was recorded (default runs/<UTC time>)")
	f.DurationVar(&o.warmup, "warmup", 0, "the first part of the session: recorded, not tracked, so that reports leave it out")
	f.BoolVar(&o.strict, "strict", false, "end with exit code 4 when anything was lost")
	o.flags.register(f, "")
	return cmd
}

func requestsProxy(ctx context.Context, o requestsProxyOptions, std stdio) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return fmt.Errorf("make run directory: %w", err)
	}
	so := sideOptions{dir: o.out, proxy: &o.flags, listen: o.listen}
	if _, err := os.Stat(filepath.Join(o.out, rundb.FileName)); errors.Is(err, os.ErrNotExist) {
		co := collectOptions{out: o.out}
		meta := co.meta(time.Now(), nil)
		so.create = &meta
	}
	o.flags.options.Untracked = o.warmup > 0
	side, err := startSide(ctx, so)
	if err != nil {
		return err
	}
	fmt.Fprintf(std.out, "http://%s\n", side.proxy.addr)
	fmt.Fprintf(std.err, "recording requests to %s into %s\n", o.flags.options.Upstream, o.out)
	select {
	case <-timerIf(o.warmup):
		side.phase(metric.PhaseProfiling)
		<-ctx.Done()
	case <-ctx.Done():
	}
	got, err := side.stop(ctx, 0)
	say := func(text string) { fmt.Fprintln(std.err, text) }
	got.tellProxy(say)
	for _, w := range got.notes() {
		say("warning: " + w.Text)
	}
	say(got.summary())
	if err == nil && o.strict && got.lost() > 0 {
		err = &codeError{exitIncomplete, fmt.Errorf("data incomplete: %s (--strict)", got.lossText())}
	}
	return err
}

// runningProxy is a proxy that records into a run.
type runningProxy struct {
	addr  net.Addr
	ln    net.Listener
	p     *proxy.Proxy
	to    *lateRecorder
	end   context.CancelFunc
	ended chan error
}

// lateRecorder is a recorder that is opened when everything else is known to work,
// before the first event.
type lateRecorder struct{ recording }

// newProxy measures the proxy and lets it listen.
func newProxy(ctx context.Context, flags proxyFlags, listen string) (*runningProxy, error) {
	address, err := listenAddress(listen)
	if err != nil {
		return nil, err
	}
	r := &runningProxy{ended: make(chan error, 1), to: &lateRecorder{}}
	flags.options.Recorder = r.to
	if r.p, err = proxy.New(flags.options); err != nil {
		return nil, usagef("%w", err)
	}
	if flags.null > 0 {
		if _, err := r.p.MeasureNull(ctx, flags.null); err != nil {
			return nil, err
		}
	}
	if r.ln, err = new(net.ListenConfig).Listen(ctx, "tcp", address); err != nil {
		return nil, usagef("listen for the proxy: %w", err)
	}
	r.addr = r.ln.Addr()
	return r, nil
}

// discard closes a proxy that was not started; nil is none.
func (r *runningProxy) discard() error {
	if r == nil {
		return nil
	}
	return r.ln.Close()
}

// start lets it serve until stop is called.
func (r *runningProxy) start(ctx context.Context, to recording) {
	r.to.recording = to
	ctx, r.end = context.WithCancel(context.WithoutCancel(ctx))
	go func() { r.ended <- r.p.Serve(ctx, r.ln) }()
}

// stop ends the proxy and waits for it.
func (r *runningProxy) stop() error {
	r.end()
	return <-r.ended
}

// tellProxy says what the proxy did and cost, if there was one.
func (r *fedRequests) tellProxy(say func(string)) {
	s := r.proxy
	if s == nil {
		return
	}
	say(fmt.Sprintf("proxy: %d requests (%d failed), %d passed unrecorded", s.Requests, s.Failed, s.Passed))
	say(fmt.Sprintf("proxy: added per request p50 %v, p99 %v, most %v (a slow client counts too)", s.Added.P50, s.Added.P99, s.Added.Max))
	if n := s.Null; n != nil {
		say(fmt.Sprintf("proxy: in front of a server that does nothing, p50 rose by %v and p99 by %v in %d requests", n.AddedP50, n.AddedP99, n.N))
	}
}

// proxyPair reads the value of collect --proxy.
func proxyPair(text string) (listen, upstream string, err error) {
	listen, upstream, ok := strings.Cut(text, "=")
	if !ok || listen == "" || upstream == "" {
		return "", "", usagef("--proxy %q: want ADDRESS=URL, for example 127.0.0.1:9000=http://127.0.0.1:8000", redactArgs([]string{text})[0])
	}
	if !strings.Contains(upstream, "://") {
		upstream = "http://" + upstream
	}
	if _, err := listenAddress(listen); err != nil {
		return "", "", err
	}
	return listen, upstream, nil
}

// validateProxy checks --proxy and its flags.
func (o *collectOptions) validateProxy() error {
	if o.proxy == "" {
		return nil
	}
	if _, _, err := proxyPair(o.proxy); err != nil {
		return err
	}
	return o.proxyFlags.validate()
}

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

	"github.com/scrapestat/scrapestat/events"
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

func newRequestsProxyCmd(std stdio) *cobra.Command {
	var p proxyFlags
	var listen, out string
	cmd := &cobra.Command{
		Use:     "proxy --upstream URL",
		Short:   "Record the requests that pass through a proxy",
		Long:    requestsProxyLong,
		Example: "  scrapestat requests proxy --listen 127.0.0.1:9000 --upstream http://127.0.0.1:8000 -o run1",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.options.Upstream == "" {
				return usagef("missing --upstream, for example http://127.0.0.1:8000")
			}
			if err := p.validate(); err != nil {
				return err
			}
			if out == "" {
				out = defaultRunDir(time.Now())
			}
			return requestsProxy(cmd.Context(), p, listen, out, std)
		},
	}
	f := cmd.Flags()
	f.StringVar(&listen, "listen", "127.0.0.1:9000", "`address` to listen on; a port alone is on loopback, 0 chooses one")
	f.StringVar(&p.options.Upstream, "upstream", "", "`URL` of the server")
	f.StringVarP(&out, "out", "o", "", "run `directory`, new or of a run that is or was recorded (default runs/<UTC time>)")
	p.register(f, "")
	return cmd
}

func requestsProxy(ctx context.Context, p proxyFlags, listen, out string, std stdio) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("make run directory: %w", err)
	}
	var create *rundb.Meta
	if _, err := os.Stat(filepath.Join(out, "run.db")); errors.Is(err, os.ErrNotExist) {
		o := collectOptions{out: out}
		meta := o.meta(time.Now(), nil)
		create = &meta
	}
	r, err := startProxy(ctx, p, listen, out, create)
	if err != nil {
		return err
	}
	fmt.Fprintf(std.out, "http://%s\n", r.addr)
	fmt.Fprintf(std.err, "recording requests to %s into %s\n", p.options.Upstream, out)
	<-ctx.Done()
	return r.stop(func(text string) { fmt.Fprintln(std.err, text) })
}

// runningProxy is a proxy that records into a run.
type runningProxy struct {
	addr  net.Addr
	p     *proxy.Proxy
	rec   *events.Recorder
	end   context.CancelFunc
	ended chan error
}

// source is a recorder that is opened when everything else is known to work,
// before the first event.
type source struct{ *events.Recorder }

// startProxy measures the proxy and lets it listen.
func startProxy(ctx context.Context, flags proxyFlags, listen, dir string, create *rundb.Meta) (*runningProxy, error) {
	address, err := listenAddress(listen)
	if err != nil {
		return nil, err
	}
	r := &runningProxy{ended: make(chan error, 1)}
	to := &source{}
	flags.options.Recorder = to
	if r.p, err = proxy.New(flags.options); err != nil {
		return nil, usagef("%w", err)
	}
	if flags.null > 0 {
		if _, err := r.p.MeasureNull(ctx, flags.null); err != nil {
			return nil, err
		}
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, usagef("listen for the proxy: %w", err)
	}
	r.rec, err = events.NewRecorder(context.WithoutCancel(ctx), dir, events.RecorderOptions{Source: "proxy", Create: create})
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	to.Recorder = r.rec
	ctx, r.end = context.WithCancel(context.WithoutCancel(ctx))
	r.addr = ln.Addr()
	go func() { r.ended <- r.p.Serve(ctx, ln) }()
	return r, nil
}

// stop ends the proxy, writes what is recorded and says what it was.
func (r *runningProxy) stop(say func(string)) error {
	r.end()
	err := <-r.ended
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	pending, closeErr := r.rec.Close(ctx)
	s, stats := r.p.Stats(), r.rec.Stats()
	say(fmt.Sprintf("proxy: %d requests (%d failed), %d passed unrecorded, %d events (%d lost)", s.Requests, s.Failed, s.Passed, stats.Recorded, stats.Lost()))
	say(fmt.Sprintf("proxy: added per request p50 %v, p99 %v, most %v (a slow client counts too)", s.Added.P50, s.Added.P99, s.Added.Max))
	if n := s.Null; n != nil {
		say(fmt.Sprintf("proxy: in front of a server that does nothing, p50 rose by %v and p99 by %v in %d requests", n.AddedP50, n.AddedP99, n.N))
	}
	if pending > 0 {
		say(fmt.Sprintf("proxy: %d events could not be written", pending))
	}
	return errors.Join(err, closeErr)
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

// startProxy starts the proxy of --proxy; nil without.
func (s *session) startProxy(ctx context.Context) (*runningProxy, error) {
	if s.o.proxy == "" {
		return nil, nil
	}
	listen, upstream, err := proxyPair(s.o.proxy)
	if err != nil {
		return nil, err
	}
	flags := s.o.proxyFlags
	flags.options.Upstream = upstream
	r, err := startProxy(ctx, flags, listen, s.o.out, nil)
	if err == nil {
		s.say.say("proxy on http://%s", r.addr)
	}
	return r, err
}

// notes stops the proxy of a collection and returns what is to be said about it in
// the recording. It may be called on nil.
func (r *runningProxy) notes(s *session) []metric.Warning {
	if r == nil {
		return nil
	}
	if err := r.stop(func(text string) { s.say.say("%s", text) }); err != nil {
		return []metric.Warning{{Code: "proxy_failed", Text: "request events are incomplete: " + err.Error()}}
	}
	return nil
}

// validateProxy checks --proxy and its flags.
func (o *collectOptions) validateProxy() error {
	if o.proxy == "" {
		return nil
	}
	if o.requests != "" {
		return usagef("--proxy and --requests: one of them, as a run has one recorder of requests")
	}
	if _, _, err := proxyPair(o.proxy); err != nil {
		return err
	}
	return o.proxyFlags.validate()
}

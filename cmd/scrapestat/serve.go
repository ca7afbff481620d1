package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/scrapestat/scrapestat/internal/httpguard"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/serve"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/window"
)

// promFlags are those of serve and promql alike.
type promFlags struct {
	align     string
	labels    map[string]string
	samples   int
	timeout   time.Duration
	lookback  time.Duration
	memory    int64
	addresses []string // of runs, NAME=RUN
}

func (p *promFlags) register(f *pflag.FlagSet) {
	f.StringVar(&p.align, "align", "", "lay runs over each other at this `instant`: none, start, profiling, mark:NAME or "+
		"now, which ends the last of them now (default none of one run, profiling of several)")
	f.StringToStringVar(&p.labels, "label", nil, "`K=V` is a label of every series, such as job=vllm (repeatable)")
	f.IntVar(&p.samples, "max-samples", 50_000_000, "most samples in memory of one query")
	f.DurationVar(&p.timeout, "timeout", time.Minute, "longest time of one query")
	f.DurationVar(&p.lookback, "lookback", 0, "how `old` the last sample of a series may be (default ten intervals, 5s "+
		"to 5m)")
	f.Int64Var(&p.memory, "max-memory", 512<<20, "`bytes` of columns of the families that queries ask for")
}

// open opens the runs of the command line.
func (p *promFlags) open(ctx context.Context, concurrent int) (*serve.Server, error) {
	if err := notNegative(map[string]time.Duration{"lookback": p.lookback}); err != nil {
		return nil, err
	}
	if p.samples < 1 || p.timeout <= 0 || concurrent < 0 || p.memory < 1 {
		return nil, usagef("--max-samples, --max-memory, --timeout and --max-concurrent must be positive")
	}
	o := serve.Options{Labels: p.labels, Align: p.align, MaxSamples: p.samples, Timeout: p.timeout, Lookback: p.lookback,
		MaxMemory: p.memory, MaxConcurrent: concurrent, Window: servedWindow}
	for _, text := range p.addresses {
		r, err := servedRun(text)
		if err != nil {
			return nil, err
		}
		o.Runs = append(o.Runs, r)
	}
	s, err := serve.New(ctx, o)
	return s, servedError(err)
}

// servedError makes a usage error of one of package serve.
func servedError(err error) error {
	var wrong *serve.UsageError
	if errors.As(err, &wrong) {
		return usagef("%w", err)
	}
	return err
}

// servedRun reads NAME=RUN; the name is that of the directory where none is given.
func servedRun(text string) (serve.Run, error) {
	if _, err := os.Stat(text); err != nil {
		if name, dir, ok := strings.Cut(text, "="); ok && name != "" {
			dir = runDir(dir)
			return serve.Run{Name: name, Dir: dir}, notFile(dir)
		}
		if dir, what, ok := strings.Cut(text, "@"); ok {
			return serve.Run{}, usagef("%s: whole runs are served: leave out @%s, and write $window or $phase:NAME in the "+
				"expression", dir, what)
		}
	}
	dir := runDir(text)
	path, err := filepath.Abs(dir)
	return serve.Run{Name: filepath.Base(path), Dir: dir}, cmp.Or(err, notFile(dir))
}

// servedWindow finds a part of a run by a selector, or its warm-up.
func servedWindow(ctx context.Context, r *rundb.Run, what string) (fromNS, toNS int64, err error) {
	var so summary.Options
	warm := what == "warmup"
	if what != "" && !warm {
		if so.Window, err = window.Parse(what); err != nil {
			return 0, 0, err
		}
	}
	w, err := summary.WindowOf(ctx, r, so)
	switch {
	case err != nil:
		return 0, 0, err
	case warm && w.Warmup == nil:
		return 0, 0, errors.New("the run has no warm-up")
	case warm:
		return w.Warmup.StartNS, w.Warmup.EndNS, nil
	}
	return w.Start.AtNS, w.End.AtNS, nil
}

type serveOptions struct {
	promFlags
	listen     string
	concurrent int
	print      string
}

const serveLong = `Answers Prometheus' HTTP API over recorded runs, so that Grafana and whatever else speaks to
Prometheus opens them; nothing is converted. Several runs are shifted onto the first and have
the label run. A run that is still recorded grows. In a query $window is the range of the
statistics, as in increase(x_total[$window] anchored), which is what was counted; $warmup and
$phase:NAME[/N] likewise. It ends with ctrl-C.`

func newServeCmd(std stdio) *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use: "serve [NAME=]RUN... [flags]", Short: "Answer Prometheus' API over runs, for dashboards", Long: serveLong,
		Example: `  scrapestat serve run1
  scrapestat serve before=run1 after=run2 --align now
  scrapestat serve run1 --print grafana > /etc/grafana/provisioning/datasources/run1.yaml`,
		Args: atLeast(1, "RUN, a run directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.addresses = args
			if err := oneOf("print", "thing to print", o.print, "", "grafana", "url"); err != nil {
				return err
			}
			return o.serve(cmd.Context(), std)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:9464", "`address` to listen on: a port, or HOST:PORT; whoever reaches it "+
		"can read the runs")
	f.IntVar(&o.concurrent, "max-concurrent", 4, "queries at once; four times as many wait")
	f.StringVar(&o.print, "print", "", "print a provisioning file of `grafana`, or the url, and end")
	o.register(f)
	return cmd
}

func (o *serveOptions) serve(ctx context.Context, std stdio) error {
	address, err := listenAddress(o.listen)
	if err != nil {
		return err
	}
	s, err := o.open(ctx, o.concurrent)
	if err != nil {
		return err
	}
	defer s.Close()
	if o.print != "" {
		return printServed(std.out, o.print, address, s)
	}
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return usagef("--listen: %w", err)
	}
	host, _, _ := net.SplitHostPort(address) // it was made by JoinHostPort
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		fmt.Fprintf(std.out, "whoever reaches %s can read the runs: there is neither a password nor TLS\n", ln.Addr())
	}
	srv := &http.Server{ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		Handler: httpguard.Handler(s.Handler(), httpguard.Options{Hosts: []string{host, rundb.ThisHost().Hostname},
			Printed: "serve", BodyBytes: 1 << 20})}
	httpguard.Limit(srv, o.timeout+10*time.Second)
	runs := s.Runs()
	fmt.Fprintf(std.out, "serving %d run%s on http://%s", len(runs), map[bool]string{true: "s"}[len(runs) > 1], ln.Addr())
	if align := cmp.Or(o.align, map[bool]string{true: "profiling", false: "none"}[len(runs) > 1]); align != "none" {
		fmt.Fprintf(std.out, ", aligned at %s", strings.TrimPrefix(align, serve.AlignMark))
	}
	fmt.Fprintln(std.out)
	for _, r := range runs {
		fmt.Fprintf(std.out, "  %s\n", texttab.Escape(r.String()))
	}
	fmt.Fprintf(std.out, "Grafana: data source \"Prometheus\", URL http://%s, scrape interval %s\n", ln.Addr(),
		runs[0].Every())
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ln) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		_ = srv.Close()
		<-ended
		return nil
	}
}

// printServed prints how a server of these runs is reached.
func printServed(w io.Writer, what, address string, s *serve.Server) error {
	if what == "url" {
		_, err := fmt.Fprintf(w, "http://%s\n", address)
		return err
	}
	r := s.Runs()[0]
	_, err := fmt.Fprintf(w, `apiVersion: 1
datasources:
  - name: %s
    type: prometheus
    access: proxy
    url: http://%s
    jsonData:
      httpMethod: POST
      timeInterval: %s
`, strconv.Quote("scrapestat "+r.Name), address, r.Every())
	return err
}

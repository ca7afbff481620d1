package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/simulate"
)

// simulateOptions is the command line of simulate.
type simulateOptions struct {
	profile string
	listen  string
	rate    float64
	seed    uint64
	engines int
	extra   int
}

func newSimulateCmd(std stdio) *cobra.Command {
	o := simulateOptions{}
	cmd := &cobra.Command{
		Use:   "simulate PROFILE",
		Short: "Serve the metrics of a simulated inference server",
		Long: `Serves /metrics of a server that behaves like a real engine under load: a
queueing model behind the real family names, labels and buckets. For demos,
documentation and tests. Profiles: ` + strings.Join(simulate.Profiles(), ", ") + ".",
		Example: "  scrapestat simulate vllm --listen 127.0.0.1:8000 --rate 20 --seed 7",
		Args:    exactly(1, "one PROFILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.profile = args[0]
			return simulateServer(cmd.Context(), o, std)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:0", "`address` to listen on; port 0 picks a free one")
	f.Float64Var(&o.rate, "rate", 8, "arriving requests per second")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the model")
	f.IntVar(&o.engines, "engines", 1, "engines behind the endpoint")
	f.IntVar(&o.extra, "extra-series", 0, "additional series, to make the body larger")
	return cmd
}

func simulateServer(ctx context.Context, o simulateOptions, std stdio) error {
	server, err := simulate.New(o.profile, simulate.Options{Rate: o.rate, Seed: o.seed, Engines: o.engines, ExtraSeries: o.extra})
	if err != nil {
		return usagef("%w", err)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	ln, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("listen on %s (--listen): %w", o.listen, err)
	}
	fmt.Fprintf(std.out, "http://%s/metrics\n", ln.Addr())
	return server.ServeListener(ctx, ln)
}

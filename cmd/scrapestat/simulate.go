package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/scrapestat/scrapestat/internal/simulate"
)

// simulateOptions is the command line of simulate.
type simulateOptions struct {
	profile string
	listen  string
	logs    string
	grpc    string
	rotate  int64
	omni    omniFlags
	record  recordFlags
	sim     simulate.Options
}

func simulateLong() string {
	return `Serves /metrics of a server that behaves like a real engine under load: a
queueing model behind the real family names, labels and buckets, with the
quirks of the engine. For demos, documentation and tests. Profiles:
` + wrapped(simulate.Profiles()) + `.
docs/simulate.md says what is special about each.

With --record a run of one or more servers is recorded at once, by a clock that
does not wait; the same command gives the same samples. A server is then
[NAME=]PROFILE[,KEY=VALUE...], with the keys rate, rate@OFFSET (from then on),
down=FROM..TO, between which no process answers, seed, engines, and what plants
a cause: slots, blocks, chunk, maxlen, step, perseq, pertok, prompt, output,
prefix, abort, error, cold (docs/simulate.md).`
}

func newSimulateCmd(std stdio) *cobra.Command {
	o := simulateOptions{}
	cmd := &cobra.Command{
		Use:   "simulate PROFILE",
		Short: "Serve the metrics of a simulated inference server",
		Long:  simulateLong(),
		Example: `  scrapestat simulate vllm --listen 127.0.0.1:8000 --rate 20 --seed 7
  scrapestat simulate vllm --record run1 --warmup 30s --duration 5m --requests
  scrapestat simulate a=vllm b=vllm,step=12ms,down=40s..46s gpus=dcgm,engines=2 --record run2`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 1 && o.record.dir == "" {
				return usagef("want one PROFILE, got %d arguments; several servers are for --record", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.record.dir != "" {
				return o.recordRun(cmd, args, std)
			}
			if flag := givenOf(cmd, recordOnly()); flag != "" {
				return usagef("--%s is for --record, which records a run instead of serving", flag)
			}
			o.profile = args[0]
			return simulateServer(cmd.Context(), o, std)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:0", "`address` to listen on; port 0 picks a free one")
	f.StringVar(&o.grpc, "grpc-listen", "", "`address` of the gRPC port of triton (default none)")
	f.DurationVar(&o.sim.Tear, "inconsistent-stats", 0,
		"how long after a request triton's statistics show its count without its time")
	f.Float64Var(&o.sim.Rate, "rate", 8, "arriving requests per second")
	f.Uint64Var(&o.sim.Seed, "seed", 1, "seed of the model")
	f.DurationVar(&o.sim.Hardware.StepBase, "step", 8*time.Millisecond,
		"how long a step of an LLM engine takes before what its sequences add")
	f.IntVar(&o.sim.Engines, "engines", 1, "engines behind the endpoint; instances of a model, or GPUs")
	f.IntVar(&o.sim.Ranks, "ranks", 0, "tensor-parallel ranks that report, of sglang (default rank 0 only)")
	f.IntVar(&o.sim.Priorities, "priorities", 0, "priorities that the queues are split by, of sglang")
	f.StringVar(&o.sim.Generation, "generation", "",
		"`name` of another generation of the engine: g0 to g4 of vllm-omni, legacy of torchserve, old of llamacpp, "+
			"latencies of triton")
	o.omni.register(f)
	f.BoolVar(&o.sim.FlagsOff, "metrics-disabled", false,
		"start the engine without the flag that makes it show its metrics")
	f.BoolVar(&o.sim.Redirect, "redirect", false, "answer /metrics with a redirect to /metrics/")
	f.IntVar(&o.sim.ExtraSeries, "extra-series", 0, "additional series, to make the body larger")
	f.StringVar(&o.logs, "metric-logs", "", "existing `folder` that torchserve writes its metric logs to")
	f.Int64Var(&o.rotate, "rotate-bytes", 100<<20, "size at which a metric log gets another name and a new one begins")
	o.record.register(f)
	return cmd
}

func simulateServer(ctx context.Context, o simulateOptions, std stdio) (err error) {
	if o.logs != "" {
		if info, err := os.Stat(o.logs); o.profile != "torchserve" || err != nil || !info.IsDir() {
			return usagef("--metric-logs %s: want an existing folder, and the profile torchserve", o.logs)
		}
		logs := simulate.NewMetricLogs(o.logs, o.rotate)
		o.sim.MetricLog = logs.Write
		defer func() { err = errors.Join(err, logs.Close()) }()
	}
	if err := o.omni.apply(o.profile, &o.sim); err != nil {
		return err
	}
	server, err := simulate.New(o.profile, o.sim)
	if err != nil {
		return usagef("%w", err)
	}
	if o.grpc != "" && o.profile != "triton" {
		return usagef("--grpc-listen: only the profile triton has a gRPC port")
	}
	var rpcErr error
	ctx, stop := signal.NotifyContext(ctx, endSignals()...)
	defer stop()
	ln, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("listen on %s (--listen): %w", o.listen, err)
	}
	fmt.Fprintf(std.out, "http://%s%s\n", ln.Addr(), server.Path())
	var ticking sync.WaitGroup
	if o.grpc != "" {
		rpc, err := net.Listen("tcp", o.grpc)
		if err != nil {
			return errors.Join(fmt.Errorf("listen on %s (--grpc-listen): %w", o.grpc, err), ln.Close())
		}
		fmt.Fprintln(std.out, simulate.GRPCTarget(rpc))
		ticking.Go(func() {
			defer stop() // a port that broke ends the server
			rpcErr = server.ServeGRPC(ctx, rpc)
		})
	}
	if o.logs != "" {
		ticking.Go(func() { keepGoing(ctx, server) })
	}
	err = server.ServeListener(ctx, ln)
	stop()
	ticking.Wait()
	return errors.Join(err, rpcErr)
}

// keepGoing lets a server work that nobody scrapes, as one that writes logs does.
func keepGoing(ctx context.Context, server *simulate.Server) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			server.Advance()
		}
	}
}

// wrapped joins names into lines of a help text.
func wrapped(names []string) string {
	var b strings.Builder
	width := 0
	for i, name := range names {
		if i > 0 {
			b.WriteString(",")
			if width += 2; width+len(name) > 74 {
				b.WriteString("\n")
				width = 0
			} else {
				b.WriteString(" ")
			}
		}
		b.WriteString(name)
		width += len(name)
	}
	return b.String()
}

// omniFlags are the flags of simulate that only the profile vllm-omni has.
type omniFlags struct {
	pipeline    string
	noOverlap   bool
	maxInFlight int
	engineLabel bool
	bare        bool
}

func (o *omniFlags) register(f *pflag.FlagSet) {
	f.StringVar(&o.pipeline, "pipeline", "", "`name` of the pipeline of vllm-omni: "+strings.Join(simulate.Pipelines(),
		", ")+" (default speech)")
	f.BoolVar(&o.noOverlap, "no-overlap", false,
		"let a stage of vllm-omni start when the one before has ended, instead of chunk by chunk")
	f.IntVar(&o.maxInFlight, "max-in-flight", 0,
		"requests that the pipeline of vllm-omni admits at once (default any number)")
	f.BoolVar(&o.engineLabel, "engine-label", false,
		"label the vllm:* families of vllm-omni with engine, not with stage and replica")
	f.BoolVar(&o.bare, "bare-counters", false, "leave _total off the counters of vllm-omni")
}

// apply puts the flags into the options, and refuses them for other profiles.
func (o *omniFlags) apply(profile string, to *simulate.Options) error {
	if *o == (omniFlags{}) {
		return nil
	}
	if profile != "vllm-omni" {
		return usagef("--pipeline, --no-overlap, --max-in-flight, --engine-label and --bare-counters are of the profile "+
			"vllm-omni, not of %s", profile)
	}
	name := o.pipeline
	name = cmp.Or(name, "speech")
	plan, err := simulate.NamedPlan(name, to.Engines)
	if err != nil {
		return usagef("--pipeline: %w", err)
	}
	plan.Overlap = plan.Overlap && !o.noOverlap
	if o.maxInFlight != 0 {
		plan.MaxInFlight = o.maxInFlight
	}
	to.Plan, to.EngineLabel, to.BareCounters = &plan, o.engineLabel, o.bare
	return nil
}

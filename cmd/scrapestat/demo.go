package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/internal/simulate"
)

const demoLong = `Runs the main job on a machine without any server: simulates a vLLM and a
vLLM-Omni server, collects from both with a warm-up, writes all four exports and
the HTML report, and prints the summary. Then it tells a story: the same server
with a change, three runs a side in simulated time, and the verdict of compare.`

func newDemoCmd(std stdio) *cobra.Command {
	var out string
	var requests bool
	duration, warmup := 15*time.Second, 5*time.Second
	cmd := &cobra.Command{
		Use:     "demo",
		Short:   "Simulate two servers, collect from them, change one, compare",
		Long:    demoLong,
		Example: "  scrapestat demo",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			out = cmp.Or(out, filepath.Join("runs", "demo-"+filepath.Base(defaultRunDir(time.Now()))))
			if requests {
				return demoRequests(cmd.Context(), out, duration, std)
			}
			return demo(cmd.Context(), out, duration, warmup, std)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&out, "out", "o", "", "run `directory` (default runs/demo-<UTC time>)")
	f.DurationVar(&duration, "duration", duration, "profiling time")
	f.BoolVar(&requests, "requests", false,
		"show the clients' side instead: a load generator through a proxy to one simulated server, then clients against "+
			"server")
	f.DurationVar(&warmup, "warmup", warmup, "warm-up before it")
	return cmd
}

// demoServers are what the demo simulates.
var demoServers = []struct {
	profile string
	rate    float64
}{{"vllm", 12}, {"vllm-omni", 3}}

func demo(ctx context.Context, out string, duration, warmup time.Duration, std stdio) error {
	serverCtx, stopServers := context.WithCancel(ctx)
	var joined []chan error
	defer func() {
		stopServers()
		for _, j := range joined {
			<-j
		}
	}()
	args := []string{"collect", "--out", out, "--duration", duration.String(), "--warmup", warmup.String(),
		"--formats", "json,csv,jsonl,parquet", "--slice-duration", "5s", "--tag", "demo=true"}
	for i, d := range demoServers {
		server, err := simulate.New(d.profile, simulate.Options{Rate: d.rate, Seed: uint64(i + 1)})
		if err != nil {
			return fmt.Errorf("simulate %s: %w", d.profile, err)
		}
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("listen for simulated %s: %w", d.profile, err)
		}
		j := make(chan error, 1)
		joined = append(joined, j)
		go func() { j <- server.ServeListener(serverCtx, ln) }()
		args = append(args, fmt.Sprintf("%s=%s", d.profile, ln.Addr()))
	}
	fmt.Fprintf(std.err, "two simulated servers; this takes %v\n", duration+warmup)
	if code := run(ctx, args, std); code != exitDone {
		return &codeError{code, nil}
	}
	if code := run(ctx, []string{"report", out, "--quiet"}, std); code != exitDone {
		return &codeError{code, nil}
	}
	page := filepath.Join(out, reportName)
	if absolute, err := filepath.Abs(page); err == nil {
		page = absolute
	}
	if err := demoStory(ctx, out, std); err != nil {
		return err
	}
	fmt.Fprintf(std.out, `
Open this in a browser, it needs no network:
  file://%[2]s

Now try:
  %[3]s explain %[1]s/after-1
  %[3]s check %[1]s/after-1 --assert 'ttft p99 < 450ms'
  %[3]s show %[1]s --metric latency
`, out, page, ourName())
	return nil
}

// demoStory records a server, and the same with a change, in simulated time, and compares them.
func demoStory(ctx context.Context, out string, std stdio) error {
	fmt.Fprint(std.out, "\nThe same vLLM with a change: places for 8 requests in place of 64, three runs of a minute "+
		"a side, in simulated time:\n\n")
	compared := []string{"compare"}
	for seed, side := range []string{"before", "before", "before", "after", "after", "after"} {
		slots := map[string]string{"before": "64", "after": "8"}[side]
		dir := filepath.Join(out, fmt.Sprintf("%s-%d", side, 1+seed%3))
		args := []string{"simulate", "vllm=vllm,rate=8,slots=" + slots, "--seed", fmt.Sprint(1 + seed), "--record", dir,
			"--duration", "1m"}
		if code := run(ctx, args, stdio{in: std.in, out: io.Discard, err: io.Discard}); code != exitDone {
			return &codeError{code, fmt.Errorf("simulate a run into %s failed", dir)}
		}
		compared = append(compared, side+"="+dir)
	}
	if code := run(ctx, compared, std); code != exitDone {
		return &codeError{code, nil}
	}
	return nil
}

// ourName is what to type to call this program again: go run leaves no program
// behind, and one that was just built need not be in the PATH.
func ourName() string {
	if path, err := os.Executable(); err == nil && strings.Contains(filepath.ToSlash(path), "/go-build") {
		return "go run ./cmd/scrapestat"
	}
	if _, err := exec.LookPath("scrapestat"); err != nil {
		return os.Args[0]
	}
	return "scrapestat"
}

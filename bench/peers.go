package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// scripts are the peers that are no Go modules, as this harness calls them.
//
//go:embed peers
var scripts embed.FS

// aiperf returns the command of a script in the Python that has AIPerf.
func (b *bench) aiperf(script string, args ...string) ([]string, error) {
	if out, err := exec.Command(b.python, "-c", "import aiperf").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("set SCRAPESTAT_PYTHON to a Python that has aiperf 0.13.0: %w: %s", err, out)
	}
	text, err := scripts.ReadFile("peers/" + script)
	path := filepath.Join(b.work, script)
	return append([]string{b.python, path}, args...), errors.Join(err, os.WriteFile(path, text, 0o644))
}

// scrapestat returns the command, which it builds once as it is released.
func (b *bench) scrapestat(ctx context.Context) (string, error) {
	return b.build(ctx, &b.binary, "-C=..", "-trimpath", "-ldflags=-s -w", "./cmd/scrapestat")
}

// prometheusAgent returns the Prometheus binary, which it builds once. Discovery in
// clouds is left out: it would only take long to compile.
func (b *bench) prometheusAgent(ctx context.Context) (string, error) {
	const command = "github.com/prometheus/prometheus/cmd/prometheus"
	return b.build(ctx, &b.prometheus, "-trimpath", "-tags=remove_all_sd", command)
}

// build runs "go build" with args, the last of which is the command, unless bin is one, and sets bin.
func (b *bench) build(ctx context.Context, bin *string, args ...string) (string, error) {
	if *bin == "" {
		command := args[len(args)-1]
		out := filepath.Join(b.work, filepath.Base(command))
		args = slices.Insert(args, len(args)-1, "-o", out)
		if said, err := exec.CommandContext(ctx, "go", append([]string{"build"}, args...)...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("build %s: %w: %s", command, err, said)
		}
		*bin = out
	}
	return exec.LookPath(*bin)
}

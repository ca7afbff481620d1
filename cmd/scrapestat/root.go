package main

import (
	"github.com/spf13/cobra"
)

const rootLong = `scrapestat measures the server side of an LLM-inference benchmark.

It polls /metrics endpoints while a load generator runs, records every sample
crash-safe in one file, and turns the recording into warm-up-excluded deltas,
timeslices, percentiles and files (JSON, CSV, JSONL, Parquet).`

const rootExample = `  scrapestat demo
  scrapestat collect localhost:8000 --warmup 30s -o run1 -- vllm bench serve --num-prompts 500
  scrapestat show run1
  scrapestat export run1 --warmup 60s --slice-duration 10s --formats json,parquet`

func newRootCmd(std stdio) *cobra.Command {
	root := &cobra.Command{
		Use:           "scrapestat",
		Short:         "Measure the server side of an LLM-inference benchmark",
		Long:          rootLong,
		Example:       rootExample,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unknown command %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usagef("%w", err) })
	root.AddCommand(
		newCollectCmd(std),
		newExportCmd(std),
		newShowCmd(std),
		newReportCmd(std),
		newCompareCmd(std),
		newCheckCmd(std),
		newMarkCmd(std),
		newRequestsCmd(std),
		newImportCmd(std),
		newSimulateCmd(std),
		newDoctorCmd(std),
		newDemoCmd(std),
		newVersionCmd(std),
	)
	root.AddCommand(releaseCommands()...)
	takeOldNames(root)
	if err := addCompletions(root); err != nil {
		panic(err) // a flag of ours has two completions
	}
	return root
}

// atLeast refuses fewer than n positional arguments with a usage error.
func atLeast(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < n {
			return usagef("missing argument: %s", what)
		}
		return nil
	}
}

// exactly refuses any other number of positional arguments with a usage error.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n {
			return usagef("want %s, got %d arguments", what, len(args))
		}
		return nil
	}
}

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(
		newCollectCmd(std),
		newExportCmd(std),
		newShowCmd(std),
		newReportCmd(std),
		newCompareCmd(std),
		newRepeatCmd(std),
		newExplainCmd(std),
		newSweepCmd(std),
		newQueryCmd(std),
		newServeCmd(std),
		newPromqlCmd(std),
		newCheckCmd(std),
		newHistoryCmd(std),
		newLakeCmd(std),
		newMarkCmd(std),
		newRepairCmd(std),
		newRequestsCmd(std),
		newImportCmd(std),
		newSimulateCmd(std),
		newDoctorCmd(std),
		newCatalogCmd(std),
		newMCPCmd(std),
		newDemoCmd(std),
		newVersionCmd(std),
	)
	root.AddCommand(releaseCommands()...)
	takeOldNames(root)
	shortHelp(root)
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

// flagGroup is flags that stand under a heading of --help.
type flagGroup struct {
	heading  string
	register func(*cobra.Command)
}

// inGroup is the annotation of a flag that names its heading.
const inGroup = "scrapestat_group"

// groupFlags adds the flags of a command that has too many for one list: --help
// shows them group by group, in this order, and those without a group last.
func groupFlags(cmd *cobra.Command, groups []flagGroup) {
	for _, g := range groups {
		had := map[string]bool{}
		cmd.Flags().VisitAll(func(f *pflag.Flag) { had[f.Name] = true })
		g.register(cmd)
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !had[f.Name] {
				f.Annotations = map[string][]string{inGroup: {g.heading}}
			}
		})
	}
	cmd.SetUsageFunc(func(c *cobra.Command) error {
		var b strings.Builder
		fmt.Fprintf(&b, "Usage:\n  %s\n\nExamples:\n%s\n", c.UseLine(), c.Example)
		for _, g := range append(slices.Clone(groups), flagGroup{heading: "Other"}) {
			set := pflag.NewFlagSet(g.heading, pflag.ContinueOnError)
			c.Flags().VisitAll(func(f *pflag.Flag) {
				if own := f.Annotations[inGroup]; len(own) == 1 && own[0] == g.heading || own == nil && g.register == nil {
					set.AddFlag(f)
				}
			})
			if set.HasFlags() {
				fmt.Fprintf(&b, "\n%s flags:\n%s", g.heading, set.FlagUsages())
			}
		}
		_, err := fmt.Fprint(c.OutOrStderr(), b.String())
		return err
	})
}

// renamedFlags are the old names of flags, which are taken for one release and not shown.
var renamedFlags = map[string]string{
	"torchserve-double":      "torchserve-keep-duplicates",
	"torchserve-raw-backend": "torchserve-worker-lines",
	"provable":               "require-bounds",
	"pa-compat":              "perf-analyzer",
	"flags-off":              "metrics-disabled",
	"tear":                   "inconsistent-stats",
	"max-scrape-share":       "scrape-budget",
	"null-requests":          "calibration-requests",
	"proxy-null-requests":    "proxy-calibration-requests",
}

// takeOldNames lets all commands below root take flags by their old names.
func takeOldNames(root *cobra.Command) {
	root.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(cmp.Or(renamedFlags[name], name))
	})
}

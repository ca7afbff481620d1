package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

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

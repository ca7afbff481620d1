package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/scrapestat/scrapestat/internal/suggest"
)

// shownFlags is how many flags --help shows at most; a command with more has --help-all for the rest.
const shownFlags = 15

// collectFlags are those that people use, by purpose.
var collectFlags = [][2]string{
	{"Run", "out duration warmup wait tag force"},
	{"Scrape", "interval require-targets config bearer-token-file"},
	{"Result", "formats window requests live listen"},
}

// rareFlags matches the flags of other commands that --help leaves to --help-all.
var rareFlags = regexp.MustCompile(`^(catalog|cooldown|counter-resets|estimator|from|to|phase|max-memory|` +
	`slice-duration|slice-percentiles|csv-raw|aiperf-.*|parquet-layout|perf-analyzer|tls-.*|.*-auth-file|` +
	`insecure-skip-verify|` +
	`proxy-from-environment|torchserve-.*|triton-ensemble|discovery-interval|kube.*|trust-discovery|scrape-budget|` +
	`alpha|min-effect|allow-load-change|rows|by-phase|causes|key|target|skip|cost-per-hour|gpus|max-series|max-samples|` +
	`target-labels|via|keep|drop|step|mark|start|bare-counters|engine-label|extra-series|generation|grpc-listen|` +
	`inconsistent-stats|max-in-flight|metrics-disabled|no-overlap|priorities|ranks|redirect|rotate-bytes|metric-logs)$`)

// helpAll is the value of --help-all: setting it asks for help.
type helpAll struct {
	on  bool
	cmd *cobra.Command
}

func (h *helpAll) String() string { return fmt.Sprint(h != nil && h.on) }
func (h *helpAll) Type() string   { return "bool" }

func (h *helpAll) Set(text string) error {
	if h.on = text == "true"; h.on && h.cmd.Flags().Lookup("help") != nil {
		return h.cmd.Flags().Set("help", text)
	}
	return nil
}

// shortHelp lets --help of each command show the flags that people use, and --help-all the rest.
func shortHelp(root *cobra.Command) {
	for _, c := range root.Commands() {
		shortHelp(c)
		n := 0
		c.Flags().VisitAll(func(*pflag.Flag) { n++ })
		if n <= shownFlags || !c.Runnable() || c.HasSubCommands() {
			continue
		}
		all, full := &helpAll{cmd: c}, c.UsageFunc()
		c.Flags().VarPF(all, "help-all", "", "also the flags that are seldom needed").NoOptDefVal = "true"
		c.SetUsageFunc(func(c *cobra.Command) error {
			if all.on {
				return full(c)
			}
			return shortUsage(c)
		})
	}
}

// shortUsage writes the usage of a command with the flags that people use.
func shortUsage(c *cobra.Command) error {
	groups := map[string]*pflag.FlagSet{}
	var order []string
	left := 0
	c.Flags().VisitAll(func(f *pflag.Flag) {
		heading := headingOf(c, f.Name)
		if heading == "" {
			left++
			return
		}
		if groups[heading] == nil {
			groups[heading] = pflag.NewFlagSet(heading, pflag.ContinueOnError)
			order = append(order, heading)
		}
		groups[heading].AddFlag(f)
	})
	if c.Name() == "collect" {
		order = order[:0]
		for _, g := range collectFlags {
			order = append(order, g[0]+" flags")
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Usage:\n  %s\n\nExamples:\n%s\n", c.UseLine(), c.Example)
	for _, heading := range order {
		if set := groups[heading]; set != nil {
			fmt.Fprintf(&b, "\n%s:\n%s", heading, set.FlagUsages())
		}
	}
	fmt.Fprintf(&b, "\n%d more flags: %s --help-all\n", left-1, c.CommandPath())
	_, err := fmt.Fprint(c.OutOrStderr(), b.String())
	return err
}

// headingOf is where --help shows a flag, "" for nowhere.
func headingOf(c *cobra.Command, name string) string {
	if c.Name() != "collect" {
		if name == "help" || name == "help-all" || rareFlags.MatchString(name) {
			return ""
		}
		return "Flags"
	}
	for _, g := range collectFlags {
		if slices.Contains(strings.Fields(g[1]), name) {
			return g[0] + " flags"
		}
	}
	return ""
}

// unknownCommand names what was meant by a command that is none.
func unknownCommand(c *cobra.Command, name string) error {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	of := ""
	if c.HasParent() {
		of = " of " + c.Name()
	}
	return usagef("unknown command %q%s%s", name, of, suggest.Clause(name, names))
}

// flagError names what was meant by a flag that is none.
func flagError(c *cobra.Command, err error) error {
	name, found := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !found {
		return usagef("%w", err)
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	near := suggest.Nearest(name, names)
	for i := range near {
		near[i] = "--" + near[i]
	}
	if len(near) == 0 {
		return usagef("%w", err)
	}
	return usagef("%w; did you mean %s?", err, strings.Join(near, ", "))
}

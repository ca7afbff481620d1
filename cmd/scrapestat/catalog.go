package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/scrape"
)

const catalogLong = `What is known of servers: the packs in the program, and files in their form. See docs/derived.md.`

// newCatalogCmd is the group of the commands about what is known of servers.
func newCatalogCmd(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "catalog COMMAND ...",
		Short: "List, show, check and evaluate what is known of servers",
		Long:  catalogLong,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCatalogListCmd(std), newCatalogShowCmd(std), newCatalogCheckCmd(std), newCatalogUnknownCmd(std),
		newCatalogEvalCmd(std))
	return cmd
}

// withCatalogs adds the flag of more files, and runs with all packs.
func withCatalogs(cmd *cobra.Command, run func(c *catalog.Catalog, args []string) error) *cobra.Command {
	a := analysisFlags{stderr: cmd.ErrOrStderr}
	cmd.Flags().StringArrayVar(&a.catalogs, "catalog", nil, "YAML `file` of more packs; repeatable")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if err := a.readCatalogs(); err != nil {
			return err
		}
		c := a.catalog
		if c == nil {
			var err error
			if c, err = catalog.New(); err != nil {
				return err
			}
		}
		return run(c, args)
	}
	return cmd
}

func newCatalogListCmd(std stdio) *cobra.Command {
	return withCatalogs(&cobra.Command{
		Use:     "list [flags]",
		Short:   "List the packs with the numbers of their families and quantities",
		Example: "  scrapestat catalog list",
		Args:    cobra.NoArgs,
	}, func(c *catalog.Catalog, _ []string) error {
		families := map[string]int{}
		for _, f := range c.Families() {
			families[f.Engine]++
		}
		fmt.Fprintf(std.out, "%-16s %9s %11s  %s\n", "PACK", "FAMILIES", "QUANTITIES", "SERVER")
		for _, p := range c.Packs() {
			fmt.Fprintf(std.out, "%-16s %9d %11d  %s\n", p.Name, families[p.Name], len(p.Rules), p.Title)
			families[p.Name] = 0 // of its other sides
		}
		return nil
	})
}

func newCatalogUnknownCmd(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "unknown RUN|TARGET|FILE... [flags]",
		Short: "List the families of runs, tables or scraped bodies that no pack knows",
		Long: `Reads names of families: of a run, of a target that is asked once, of "# TYPE" lines
of a scraped body, or of tables with the name in the first column, or in the second under
a head "# columns: version, name, ...". Prints those that no pack knows.`,
		Example: "  scrapestat catalog unknown run1 body.prom vllm.tsv --fail",
		Args:    atLeast(1, "RUN, TARGET or FILE"),
	}
	return unknownCmd(cmd, std)
}

func unknownCmd(cmd *cobra.Command, std stdio) *cobra.Command {
	var fail bool
	var flags runFlags
	withCatalogs(cmd, func(c *catalog.Catalog, args []string) error {
		var all []string
		err := flags.memory.validate()
		for _, path := range args {
			var names []string
			if err == nil {
				names, err = namesIn(cmd.Context(), std, analysisFlags{catalog: c, runFlags: flags}, path)
			}
			if err != nil {
				return err
			}
			all = append(all, names...)
		}
		known, unknown := c.Census(slices.Values(all))
		for _, name := range unknown {
			fmt.Fprintln(std.out, texttab.Escape(name))
		}
		fmt.Fprintln(std.err, texttab.Escape(catalog.CensusText(known, unknown)))
		if fail && len(unknown) > 0 {
			return &codeError{exitBad, nil}
		}
		return nil
	})
	flags.register(cmd)
	cmd.Flags().BoolVar(&fail, "fail", false, "end with 3 when there is one")
	return cmd
}

// namesIn returns the names of families in a run or file.
func namesIn(ctx context.Context, std stdio, a analysisFlags, path string) (out []string, err error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		run, err := loaded(ctx, std, &a, path)
		if err != nil {
			return nil, err
		}
		for i := range run.Metrics {
			out = append(out, run.Metrics[i].Name)
		}
		return out, a.verdict(run)
	}
	f, err := os.Open(path)
	if err != nil && strings.Contains(path, ":") {
		return namesAt(ctx, std, path)
	}
	if err != nil {
		return nil, usagef("%w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	column, seen := 0, map[string]bool{}
	for lines.Scan() {
		line := lines.Text()
		name := ""
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, _, _ = strings.Cut(rest, " ")
		} else if strings.HasPrefix(line, "# columns: version") {
			column = 1
		} else if fields := strings.Split(line, "\t"); len(fields) > max(1, column) && !strings.HasPrefix(line, "#") {
			name = fields[column]
		}
		if name != "" && !seen[name] {
			seen[name], out = true, append(out, name)
		}
	}
	return out, lines.Err()
}

// namesAt asks a target once for the names of its families.
func namesAt(ctx context.Context, std stdio, address string) (out []string, err error) {
	o := collectOptions{targets: []string{address}, timeout: 5 * time.Second}
	set, err := o.openTargets(std)
	if err != nil {
		return nil, err
	}
	defer set.close()
	p, err := scrape.NewProber(set.given[0], scrape.Options{Timeout: o.timeout, Version: toolVersion()})
	if err != nil {
		return nil, usagef("%w", err)
	}
	defer p.Close()
	s := p.Ask(ctx, scrape.ProbeRequest{})
	if !s.Outcome.Stored() {
		return nil, &codeError{exitNothing, fmt.Errorf("%s: %s", redactArgs([]string{address})[0], s.Err)}
	}
	for _, f := range s.DictDelta.Families {
		out = append(out, f.Name)
	}
	return out, nil
}

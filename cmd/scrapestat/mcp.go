package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/internal/mcp"
)

const mcpLong = `Answers the questions of an agent about recorded runs, over the Model Context Protocol on
stdin and stdout. Its nine tools only read: runs, show, query, samples, compare, check,
catalog, explain and sweep answer what the commands of these names do, in pages of at most 200 rows
and 24,000 characters. Paths outside of the roots are refused. An agent's settings name it as
command "scrapestat" with the arguments "mcp", "--root" and a directory.`

func newMCPCmd(std stdio) *cobra.Command {
	var roots []string
	cmd := &cobra.Command{
		Use:     "mcp [flags]",
		Short:   "Let agents read runs: tools over the Model Context Protocol",
		Long:    mcpLong,
		Example: "  scrapestat mcp --root runs",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return mcp.Serve(cmd.Context(), mcp.Options{Roots: roots, Version: toolVersion(),
				Command: func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
					return run(ctx, args, stdio{strings.NewReader(""), stdout, stderr})
				}}, std.in, plain(std.out))
		},
	}
	cmd.Flags().StringArrayVar(&roots, "root", nil, "`directory` below which runs may be read (repeatable; default the "+
		"working directory)")
	return cmd
}

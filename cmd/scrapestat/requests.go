package main

import (
	"github.com/spf13/cobra"
)

const requestsLong = `The client's side of a run: what a load generator saw of each request, in the same
run.db and on the same time axis as the metrics of the servers.

Requests are events (issued, first chunk, complete, failed) by the names of MLPerf's
endpoints benchmark. See docs/requests.md.`

// newRequestsCmd is the group of the commands about client-side requests.
func newRequestsCmd(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "requests COMMAND ...",
		Short: "Record and report what the clients saw of their requests",
		Long:  requestsLong,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, newCmd := range []func(stdio) *cobra.Command{
		newRequestsRecordCmd, newRequestsImportCmd, newRequestsReportCmd, newRequestsValidateCmd, newRequestsProxyCmd,
		newRequestsJoinCmd, newRequestsExportCmd,
	} {
		cmd.AddCommand(newCmd(std))
	}
	return cmd
}

//go:build !man

package main

import "github.com/spf13/cobra"

// releaseCommands are none in what users get.
func releaseCommands() []*cobra.Command { return nil }

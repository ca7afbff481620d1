// Command scrapestat measures the server side of an LLM-inference benchmark: it polls metrics endpoints while a load
// generator runs, records every sample in one crash-safe file, and turns the recording into statistics and files.
//
// The command line is documented in docs/cli.md and by --help. Data goes to
// stdout, talk goes to stderr; the exit codes are those of exit.go.
package main

import (
	"context"
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	log.SetOutput(new(libraryLog))
	os.Exit(withinMemory(func() int {
		return run(context.Background(), os.Args[1:], stdio{os.Stdin, os.Stdout, os.Stderr})
	}, os.Stderr))
}

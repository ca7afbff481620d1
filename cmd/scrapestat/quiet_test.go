package main

import (
	"bytes"
	"context"
	"io"
)

// runQuiet executes a command line in this process and returns its exit code
// and what it said on stderr.
func runQuiet(args ...string) (code int, talk string) {
	var errs bytes.Buffer
	code = run(context.Background(), args, stdio{nil, io.Discard, &errs})
	return code, errs.String()
}

func discard() stdio { return stdio{nil, io.Discard, io.Discard} }

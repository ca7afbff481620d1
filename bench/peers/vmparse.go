//go:build ignore

// Vmparse times VictoriaMetrics' parser of the exposition format for the bench
// harness, which says how it is built and run (peer.go). It is not part of any
// module: it builds in GOPATH mode against Debian's package
// golang-github-victoriametrics-victoriametrics-dev.
//
// Usage: vmparse DIR. It loads the bodies in DIR and answers each line on stdin, a
// number of bodies to parse, with a line: nanoseconds of
// processor time, samples.
package main

import (
	"bufio"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/VictoriaMetrics/VictoriaMetrics/lib/protoparser/prometheus"
)

func main() {
	names, err := filepath.Glob(filepath.Join(os.Args[1], "*.prom"))
	if err != nil || len(names) == 0 {
		log.Fatalf("no bodies in %s", os.Args[1])
	}
	var bodies []string
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			log.Fatal(err)
		}
		bodies = append(bodies, string(b))
	}
	var rows prometheus.Rows
	at := 0
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		n, err := strconv.Atoi(in.Text())
		if err != nil {
			log.Fatal(err)
		}
		samples := 0
		start := processorTime()
		for range n {
			rows.Reset()
			rows.Unmarshal(bodies[at%len(bodies)])
			samples += len(rows.Rows)
			at++
		}
		fmt.Println(processorTime()-start, samples)
	}
}

func processorTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		log.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

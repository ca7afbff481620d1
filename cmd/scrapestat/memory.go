package main

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/metric"
)

// runFlags are those of all commands that read or record runs.
type runFlags struct {
	memory memoryFlag
	strict bool
}

func (r *runFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Int64Var(&r.memory.bytes, "max-memory", 0, "memory for the series and requests of all that is read or recorded, "+
		"in `bytes`, about: more is refused with exit code 6, of scrapes the series of the largest target "+
		"(default 1 GiB, or half of the cgroup's limit if that is less)")
	f.BoolVar(&r.strict, "strict", false, "end with exit code 4 when any data was lost, cannot be read, or is not certain")
}

// lost is how a command ends under --strict that n things were lost to.
func (r *runFlags) lost(n int64, format string, args ...any) error {
	if !r.strict || n == 0 {
		return nil
	}
	return &codeError{exitIncomplete, fmt.Errorf("data incomplete: "+format+" (--strict)", args...)}
}

// memoryFlag is --max-memory.
type memoryFlag struct {
	bytes int64
	of    *metric.Memory // set by validate
}

func (m *memoryFlag) validate() error {
	if m.bytes < 0 {
		return usagef("--max-memory %d: a limit must be positive", m.bytes)
	}
	m.bytes = cmp.Or(m.bytes, defaultMemory())
	m.of = metric.NewMemory(m.bytes)
	return nil
}

// renew forgets what was read: nothing of it is held any more. Without a bound it does nothing.
func (m *memoryFlag) renew() {
	if m.of != nil {
		m.of = metric.NewMemory(m.bytes)
	}
}

// defaultMemory is --max-memory where it is not given.
func defaultMemory() int64 { return min(1<<30, cgroupMemory("/proc/self/cgroup", "/sys/fs/cgroup")/2) }

// limitGC has garbage collected more often as memory nears that of the series and what
// else is held, until restore is called. GOMEMLIMIT wins.
func limitGC(bytes int64) (restore func()) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	old := debug.SetMemoryLimit(max(bytes, 256<<20))
	return func() { debug.SetMemoryLimit(old) }
}

// cgroupMemory returns the least memory that a cgroup of this process and those above it
// allow; without a limit it is the largest number.
func cgroupMemory(own, root string) int64 {
	limit := int64(math.MaxInt64)
	text, err := os.ReadFile(own)
	if err != nil {
		return limit
	}
	for line := range strings.Lines(string(text)) { // of hierarchies: number, controllers, path
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 || fields[1] != "" && fields[1] != "memory" {
			continue
		}
		file := "memory.max"
		if fields[1] != "" {
			file = "memory.limit_in_bytes"
		}
		for dir := path.Clean("/" + fields[2]); ; dir = path.Dir(dir) {
			data, err := os.ReadFile(filepath.Join(root, fields[1], dir, file))
			if n, bad := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil && bad == nil && n > 0 {
				limit = min(limit, n)
			}
			if dir == "/" {
				break
			}
		}
	}
	return limit
}

package rundb_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// tape is a number of polls made beforehand, so that a benchmark does not
// measure the making.
func tape(target, polls int, idle bool) []*metric.Snapshot {
	l := newLoad(target, uint64(target)+1)
	l.idle = idle
	out := make([]*metric.Snapshot, polls)
	for i := range out {
		out[i] = l.next().Clone()
	}
	return out
}

// cpuTime is the CPU time of this process so far: on a shared machine it means
// more than elapsed time, and the writer goroutine is in it.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRecord records two targets for ten minutes of their time per round,
// as fast as it goes; B/sample is the size of the closed file. A sample is a
// slot of a poll, changed or not.
func BenchmarkRecord(b *testing.B) {
	run := func(name string, targets, polls int, idle bool) {
		b.Run(name, func(b *testing.B) {
			var tapes [][]*metric.Snapshot
			for t := range targets {
				tapes = append(tapes, tape(t, polls, idle))
			}
			b.ReportAllocs()
			var size int64
			cpu := cpuTime(b)
			for b.Loop() {
				dir := b.TempDir()
				w := create(b, dir, targets, rundb.WriterOptions{})
				for i := range polls {
					for t := range targets {
						if err := w.Record(tapes[t][i]); err != nil {
							b.Fatal(err)
						}
					}
				}
				if err := w.Close(b.Context()); err != nil {
					b.Fatal(err)
				}
				info, err := os.Stat(filepath.Join(dir, rundb.FileName))
				if err != nil {
					b.Fatal(err)
				}
				size = info.Size()
			}
			samples := float64(targets * polls * loadSlots)
			b.ReportMetric(float64(cpuTime(b)-cpu)/float64(b.N)/samples, "cpu-ns/sample")
			b.ReportMetric(float64(size)/samples, "B/sample")
		})
	}
	run("busy", 2, 1800, false)
	run("idle", 2, 1800, true)
}

// BenchmarkSnapshots reads a target of such a recording.
func BenchmarkSnapshots(b *testing.B) {
	for _, idle := range []bool{false, true} {
		b.Run(fmt.Sprintf("idle=%v", idle), func(b *testing.B) {
			dir := b.TempDir()
			w := create(b, dir, 1, rundb.WriterOptions{})
			const polls = 1800
			for _, s := range tape(0, polls, idle) {
				if err := w.Record(s); err != nil {
					b.Fatal(err)
				}
			}
			if err := w.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
			r := open(b, dir)
			b.ReportAllocs()
			cpu := cpuTime(b)
			for b.Loop() {
				n := 0
				for _, err := range r.Snapshots(context.Background(), 0) {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
				if n != polls {
					b.Fatalf("got %d polls", n)
				}
			}
			b.ReportMetric(float64(cpuTime(b)-cpu)/float64(b.N)/(polls*loadSlots), "cpu-ns/sample")
		})
	}
}

//go:build linux && (amd64 || arm64)

package rundb_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/scrapestat/scrapestat/internal/faults"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// What of the kernel's interface for filters of system calls is needed
// (seccomp(2), seccomp_unotify(2)): a filter stops each fsync and fdatasync of this
// process until a goroutine of it has said what is to come of the call.
const (
	prSetNoNewPrivs  = 38
	setModeFilter    = 1
	filterFlags      = 1 | 8 | 16 // all threads, a listener, errors of both told apart
	notifyReceive    = 0xc0502100
	notifySend       = 0xc0182101
	notifyContinue   = 1
	returnUserNotify = 0x7fc00000
	returnAllow      = 0x7fff0000
	loadWord         = 0x20
	jumpIfEqual      = 0x15
	returnConstant   = 0x06
)

type filterOp struct {
	code   uint16
	jt, jf uint8
	k      uint32
}

type notification struct {
	id         uint64
	pid, flags uint32
	data       [64]byte
}

type verdict struct {
	id    uint64
	val   int64
	error int32
	flags uint32
}

// failSync lets the n-th sync of a file by this process, from 1, fail with EIO, and
// all others pass; 0 lets all pass. It returns their count so far. Those of
// directories pass and do not count: SQLite has no word for their failure. There
// is no way back: the process must end soon.
func failSync(n int64) (syncs *atomic.Int64, err error) {
	seccomp := map[string]uintptr{"amd64": 317, "arm64": 277}[runtime.GOARCH]
	ops := []filterOp{
		{loadWord, 0, 0, 0}, // the number of the call
		{jumpIfEqual, 2, 0, syscall.SYS_FSYNC},
		{jumpIfEqual, 1, 0, syscall.SYS_FDATASYNC},
		{returnConstant, 0, 0, returnAllow},
		{returnConstant, 0, 0, returnUserNotify},
	}
	program := struct {
		n   uint16
		ops *filterOp
	}{uint16(len(ops)), &ops[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if _, _, e := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0); e != 0 {
		return nil, e
	}
	fd, _, e := syscall.RawSyscall(seccomp, setModeFilter, filterFlags, uintptr(unsafe.Pointer(&program)))
	if e != 0 {
		return nil, e
	}
	syncs = new(atomic.Int64)
	go func() {
		for {
			var call notification
			if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, fd, notifyReceive, uintptr(unsafe.Pointer(&call))); e != 0 {
				continue // the caller was interrupted; it asks again
			}
			say := verdict{id: call.id, flags: notifyContinue}
			info, err := os.Stat("/proc/self/fd/" + strconv.FormatUint(binary.NativeEndian.Uint64(call.data[16:]), 10))
			if (err != nil || !info.IsDir()) && syncs.Add(1) == n {
				say.error, say.flags = -int32(syscall.EIO), 0
			}
			_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, fd, notifySend, uintptr(unsafe.Pointer(&say))) // as above
		}
	}()
	return syncs, nil
}

// unsupported is what a child prints that may not filter its system calls.
const unsupported = "no filter:"

// syncFaultVar tells a child of TestCatalogueSync which sync is to fail.
const syncFaultVar = "RUNDB_SYNC_FAULT"

// TestCatalogueSync runs a case of the fault catalogue (package faults) by its id.
func TestCatalogueSync(t *testing.T) { t.Run("D10 a sync fails", syncFails) }

// syncFails records a run again and again, in processes of their own, and lets
// one sync of it fail with EIO: first the first, then the next, up to the last; in
// CI every other one.
// Each time that is said, by an error or by a warning in the recording, and
// nothing that was recorded is missing.
func syncFails(t *testing.T) {
	if at := os.Getenv(syncFaultVar); at != "" {
		n, err := strconv.Atoi(at)
		if err != nil {
			t.Fatal(err)
		}
		recordWithFault(t, int64(n))
		return
	}
	child := func(n int) (said string, ok bool) {
		t.Helper()
		cmd := exec.Command(os.Args[0], "-test.run=^TestCatalogueSync$", "-test.v")
		cmd.Env = append(os.Environ(), syncFaultVar+"="+strconv.Itoa(n))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("sync %d: %v\n%s", n, err, out)
		}
		return string(out), !strings.Contains(string(out), unsupported)
	}
	said, ok := child(0)
	if !ok {
		t.Skip("this machine lets no process filter its system calls")
	}
	var syncs int
	if i := strings.Index(said, "syncs: "); i < 0 {
		t.Fatalf("no count of syncs in %s", said)
	} else if _, err := fmt.Sscanf(said[i:], "syncs: %d", &syncs); err != nil || syncs < 6 {
		t.Fatalf("%d syncs, %v: want those of the start, of a checkpoint and of the end\n%s", syncs, err, said)
	}
	step := 2
	if os.Getenv("SCRAPESTAT_POINTS") != "" {
		step = 1
	}
	for n := 1; n <= syncs; n += step {
		child(n)
	}
	faults.Figure(t, "sync", fmt.Sprintf("%d syncs of a recording and of its events, %d of them failed with EIO, one "+
		"in each run: every failure was told, no poll is missing", syncs, (syncs+step-1)/step),
		"SCRAPESTAT_POINTS=1 go test ./rundb -run TestCatalogueSync -v")
}

// recordWithFault records with a checkpoint under way, adds events, and checks what
// came of it.
func recordWithFault(t *testing.T, n int64) {
	syncs, err := failSync(n)
	if err != nil {
		t.Log(unsupported, err)
		return
	}
	dir := t.TempDir()
	polls, warned, err := recordSyncs(dir)
	failed := n > 0 && syncs.Load() >= n
	t.Logf("syncs: %d, error: %v, warned: %q", syncs.Load(), err, warned)
	told := err != nil && strings.Contains(err.Error(), "I/O error") || strings.Contains(warned, "sync_failed") &&
		strings.Contains(warned, "at risk")
	if told != failed {
		t.Errorf("sync %d of %d failed: %v; told: %v", n, syncs.Load(), failed, told)
	}
	if err != nil && !strings.Contains(err.Error(), filepath.Join(dir, rundb.FileName)) {
		t.Errorf("the error does not name the file: %v", err)
	}
	r, err := rundb.Open(dir)
	if err != nil {
		if polls > 0 {
			t.Errorf("%d polls were recorded: %v", polls, err)
		}
		return
	}
	defer r.Close()
	read := 0
	for _, err := range r.Snapshots(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		read++
	}
	if read < polls {
		t.Errorf("%d polls can be read, %d were committed", read, polls)
	}
}

// recordSyncs makes a recording with every kind of sync that there is, and returns
// how many polls were known to be in it.
func recordSyncs(dir string) (polls int, warned string, err error) {
	w, err := rundb.Create(dir, rundb.Meta{ID: "sync", OriginNS: 1}, rundb.WriterOptions{})
	if err != nil {
		return 0, "", err
	}
	if _, err := w.AddTarget(metric.Target{URL: "http://t/metrics"}); err != nil {
		return 0, "", errors.Join(err, w.Close(context.Background()))
	}
	record := func(s *metric.Snapshot) {
		s.Seq, s.SentNS, s.FirstByteNS = uint64(polls), int64(polls)*1e9+1, int64(polls)*1e9+1
		if err == nil {
			err = w.Record(s)
		}
		if err == nil {
			err = w.Flush(context.Background())
		}
		if err == nil {
			polls++
		}
	}
	noise := make([]byte, 2<<20) // that zstd does not make smaller
	rng := rand.New(rand.NewPCG(1, 2))
	for i := 0; i < len(noise); i += 8 {
		binary.NativeEndian.PutUint64(noise[i:], rng.Uint64())
	}
	record(&metric.Snapshot{Outcome: metric.OK, Body: noise})
	record(&metric.Snapshot{Outcome: metric.Partial, Body: noise, Err: "noise"}) // a checkpoint
	record(&metric.Snapshot{Outcome: metric.Timeout, Err: "late"})               // the log begins anew
	if err = errors.Join(err, w.Close(context.Background())); err == nil {
		err = recordEvents(dir)
	}
	r, openErr := rundb.Open(dir)
	if openErr != nil {
		return polls, "", errors.Join(err, openErr)
	}
	defer r.Close()
	return polls, fmt.Sprint(r.Warnings()), err
}

func recordEvents(dir string) error {
	ctx := context.Background()
	w, err := rundb.OpenEvents(ctx, dir, rundb.EventWriterOptions{Source: "test"})
	if err != nil {
		return err
	}
	batch := []metric.Event{{Sample: "a", Type: "x", AtNS: 1, Data: make([]byte, 2<<20)}}
	for range 2 {
		if err := w.Write(ctx, batch, rundb.EventStats{Recorded: 1}); err != nil {
			return errors.Join(err, w.Close(ctx))
		}
	}
	return w.Close(ctx)
}

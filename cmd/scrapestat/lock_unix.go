//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockName is a file whose lock says that a collector is at work in a run
// directory. The kernel drops the lock when the process ends, however it ends.
const lockName = "run.lock"

// lockRunDir takes the lock of a run directory; unlock drops it.
func lockRunDir(dir string) (unlock func(), err error) {
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock run directory %s: %w", dir, err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return func() { _ = os.Remove(path); _ = f.Close() }, nil
	}
	_ = f.Close() // opened for the lock alone
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, usagef("run directory %s is in use: another collect records into it; choose another with --out", dir)
	}
	return nil, fmt.Errorf("lock run directory %s: %w", dir, err)
}

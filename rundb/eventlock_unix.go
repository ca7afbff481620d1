//go:build unix

package rundb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// EventLockName is a file beside run.db whose lock is held while somebody records
// events into it. The kernel drops the lock when the process ends, however it ends.
const EventLockName = "events.lock"

// fileLocks is set where lockEvents excludes other writers of this machine.
const fileLocks = true

// lockEvents takes the lock; unlock drops it and removes the file.
func lockEvents(dir string) (unlock func() error, err error) {
	path := filepath.Join(dir, EventLockName)
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			_ = f.Close() // opened for the lock alone
			if errors.Is(err, syscall.EWOULDBLOCK) {
				return nil, ErrEventWriter
			}
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		// Its last holder may have removed the file between opening and locking.
		mine, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if there, err := os.Stat(path); err == nil && os.SameFile(mine, there) {
			return func() error { return errors.Join(os.Remove(path), f.Close()) }, nil
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
}

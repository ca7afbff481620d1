//go:build unix

package rundb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockDir takes the lock of a run directory; unlock drops it.
func lockDir(dir string) (unlock func() error, err error) {
	unlock, err = lockFile(filepath.Join(dir, dirLockName), ErrDirInUse)
	switch {
	case errors.Is(err, ErrDirInUse):
		return nil, &DirError{dir, ErrDirInUse}
	case err != nil:
		return nil, fmt.Errorf("lock run directory %s: %w", dir, err)
	}
	return unlock, nil
}

// removeSame removes a file unless it was removed, or another one has its name now.
func removeSame(path string, mine os.FileInfo) error {
	if there, err := os.Stat(path); err != nil || !os.SameFile(mine, there) {
		return nil
	}
	return os.Remove(path)
}

// lockFile makes a file and takes its lock, or returns busy where another process has
// it; unlock removes the file and drops the lock. The kernel drops the lock when the
// process ends, however it ends.
func lockFile(path string, busy error) (unlock func() error, err error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			_ = f.Close() // opened for the lock alone
			if errors.Is(err, syscall.EWOULDBLOCK) {
				return nil, busy
			}
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		// Its last holder may have removed the file between opening and locking.
		mine, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if there, err := os.Stat(path); err == nil && os.SameFile(mine, there) {
			return func() error { return errors.Join(removeSame(path, mine), f.Close()) }, nil
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
}

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

// heldDir is a directory whose recording is being opened, by several at a time, or made again, by one: who opens a
// database while another one takes its name would give it the log of that. The zero value holds nothing.
type heldDir struct{ *os.File }

// holdDir waits for nobody. On a file system without locks, or where the directory cannot be read, it holds nothing.
func holdDir(dir string, again bool) (heldDir, error) {
	f, err := os.Open(dir)
	if err != nil {
		return heldDir{}, nil
	}
	h := heldDir{f}
	mine, err1 := f.Stat()
	if err := errors.Join(h.lock(again), err1); err != nil {
		return heldDir{}, errors.Join(err, f.Close())
	}
	if there, err := os.Stat(dir); err != nil || !os.SameFile(mine, there) {
		return heldDir{}, errors.Join(fmt.Errorf("open %s: it was removed meanwhile", dir), f.Close())
	}
	return h, nil
}

// renewed is the directory that has the name now, locked: h or, where that was removed, another one.
func (h heldDir) renewed(dir string) (heldDir, error) {
	if h.File != nil {
		mine, err1 := h.Stat()
		if there, err := os.Stat(dir); err == nil && err1 == nil && os.SameFile(mine, there) {
			return h, nil
		}
	}
	return holdDir(dir, true)
}

func (h heldDir) lock(again bool) error {
	how := syscall.LOCK_SH
	if again {
		how = syscall.LOCK_EX
	}
	if h.File != nil && errors.Is(syscall.Flock(int(h.Fd()), how|syscall.LOCK_NB), syscall.EWOULDBLOCK) {
		return fmt.Errorf("open %s: its recording is being opened or made again, or another program locks it: try again",
			h.Name())
	}
	return nil
}

// unlock keeps the directory open.
func (h heldDir) unlock() {
	if h.File != nil {
		_ = syscall.Flock(int(h.Fd()), syscall.LOCK_UN) // of what is locked nothing can fail
	}
}

func (h heldDir) release() {
	if h.File != nil {
		_ = h.Close() // opened for the lock alone
	}
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

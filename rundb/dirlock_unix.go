//go:build unix

package rundb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// dirLockName is a file whose lock a collector holds while it is at work in a run
// directory. The kernel drops the lock when the process ends, however it ends.
const dirLockName = "run.lock"

// lockDir takes the lock of a run directory; unlock drops it.
func lockDir(dir string) (unlock func(), err error) {
	path := filepath.Join(dir, dirLockName)
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
		return nil, &DirError{dir, ErrDirInUse}
	}
	return nil, fmt.Errorf("lock run directory %s: %w", dir, err)
}

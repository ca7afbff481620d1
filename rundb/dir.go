package rundb

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Why a directory is refused for a new run; see [DirError].
var (
	ErrDirExists = errors.New("it exists and is not empty")
	ErrDirInUse  = errors.New("another collector records into it")
)

// DirError refuses a directory for a new run: Err is ErrDirExists, ErrDirInUse,
// or why the directory cannot be read.
type DirError struct {
	Dir string
	Err error
}

// Error names the directory and the cause.
func (e *DirError) Error() string { return fmt.Sprintf("open run directory %s: %v", e.Dir, e.Err) }

// Unwrap returns the cause.
func (e *DirError) Unwrap() error { return e.Err }

// MakeDir makes and locks the directory of a new run; unlock drops the lock. A directory that is not empty is
// refused when replace is nil; otherwise the files of its earlier run are removed, and those that replace
// names, but never the files of a run that is being recorded.
func MakeDir(dir string, replace []string) (unlock func(), err error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("create run directory %s: %w", dir, err)
		}
	case err != nil:
		return nil, &DirError{dir, err}
	case len(entries) > 0 && replace == nil:
		return nil, &DirError{dir, ErrDirExists}
	}
	if err := ProbeDir(dir); err != nil {
		return nil, err
	}
	if unlock, err = lockDir(dir); err != nil {
		return nil, err
	}
	own := []string{FileName, FileName + "-wal", FileName + "-shm", EventLockName, ManifestName}
	for _, name := range append(own, replace...) {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			unlock()
			return nil, fmt.Errorf("replace run in %s: %w", dir, err)
		}
	}
	return unlock, nil
}

// ProbeDir writes a file to a directory and removes it, to find out before a run
// that nothing could be written after it.
func ProbeDir(dir string) error {
	f, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return fmt.Errorf("write to run directory %s: %w", dir, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// ThisHost describes the machine of this process.
func ThisHost() HostFacts {
	name, err := os.Hostname()
	if err != nil {
		name = "" // no reason not to measure
	}
	return HostFacts{Hostname: name, OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version()}
}

// NewID returns a random identifier in the form of a UUID, version 4.
func NewID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

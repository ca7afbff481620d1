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

const (
	// dirLockName is a file whose lock a collector holds while it is at work in a run
	// directory.
	dirLockName = "run.lock"
	// asideName is the folder of an earlier run, in its directory, until the new run
	// has begun.
	asideName = ".replaced"
)

// Dir is the locked directory of a new run.
type Dir struct {
	path   string
	files  []string // of a run
	made   []string // directories that were not there, the innermost first
	unlock func() error
	begun  bool
}

// MakeDir makes and locks the directory of a new run. A directory that is not empty is refused when replace is
// nil; otherwise the files of its earlier run, and those that replace names, make room until Begun or Close, but
// never the files of a run that is being recorded.
func MakeDir(dir string, replace []string) (_ *Dir, err error) {
	d := &Dir{path: dir, unlock: func() error { return nil }}
	d.files = append([]string{FileName, FileName + "-wal", FileName + "-shm", EventLockName, ManifestName}, replace...)
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := d.make(); err != nil {
			return nil, fmt.Errorf("create run directory %s: %w", dir, err)
		}
	case err != nil:
		return nil, &DirError{dir, err}
	case len(entries) > 0 && replace == nil:
		return nil, &DirError{dir, ErrDirExists}
	}
	if err := ProbeDir(dir); err != nil {
		d.unmake()
		return nil, err
	}
	if d.unlock, err = lockDir(dir); err != nil {
		return nil, err
	}
	if err := d.moveAside(); err != nil {
		return nil, errors.Join(fmt.Errorf("replace run in %s: %w", dir, err), d.Close())
	}
	return d, nil
}

// make makes the directory, and notes which of its parents were not there.
func (d *Dir) make() error {
	for p := filepath.Clean(d.path); ; p = filepath.Dir(p) {
		if _, err := os.Stat(p); err == nil || p == filepath.Dir(p) {
			return os.MkdirAll(d.path, 0o700)
		}
		d.made = append(d.made, p)
	}
}

// unmake removes what make made, as long as nobody else has put anything there.
func (d *Dir) unmake() {
	for _, p := range d.made {
		if os.Remove(p) != nil {
			return
		}
	}
}

// moveAside moves the files of an earlier run into a folder beside them. One that a
// killed start has left there comes back first, unless that start had begun its run.
func (d *Dir) moveAside() error {
	aside := filepath.Join(d.path, asideName)
	if _, err := os.Stat(filepath.Join(d.path, FileName)); errors.Is(err, fs.ErrNotExist) {
		if err := d.moveBack(); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(aside); err != nil {
		return err
	}
	for _, name := range d.files {
		from := filepath.Join(d.path, name)
		if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.MkdirAll(aside, 0o700); err != nil {
			return err
		}
		if err := os.Rename(from, filepath.Join(aside, name)); err != nil {
			return err
		}
	}
	return nil
}

// moveBack puts the files of the earlier run where they were.
func (d *Dir) moveBack() error {
	aside := filepath.Join(d.path, asideName)
	entries, err := os.ReadDir(aside)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, os.Rename(filepath.Join(aside, e.Name()), filepath.Join(d.path, e.Name())))
	}
	return errors.Join(err, os.Remove(aside))
}

// Begun removes the earlier run: something of the new one is stored.
func (d *Dir) Begun() error {
	d.begun = true
	if err := os.RemoveAll(filepath.Join(d.path, asideName)); err != nil {
		return fmt.Errorf("replace run in %s: %w", d.path, err)
	}
	return nil
}

// Close drops the lock. The directory of a run that has not begun is what it was
// before, and gone where it was not there.
func (d *Dir) Close() (err error) {
	if !d.begun {
		for _, name := range d.files {
			if e := os.Remove(filepath.Join(d.path, name)); !errors.Is(e, fs.ErrNotExist) {
				err = errors.Join(err, e)
			}
		}
		err = errors.Join(err, d.moveBack())
	}
	err = errors.Join(err, d.unlock())
	if !d.begun {
		d.unmake()
	}
	return err
}

// Relock takes the lock again where it was removed with the directory. It must not be called after Close.
func (d *Dir) Relock() error {
	if _, err := os.Stat(filepath.Join(d.path, dirLockName)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	unlock, err := lockDir(d.path)
	if err != nil {
		return err
	}
	first := d.unlock
	d.unlock = func() error { return errors.Join(unlock(), first()) }
	return nil
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

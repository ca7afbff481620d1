// Package atomicfile writes files that appear complete or not at all.
//
//	w, err := atomicfile.Create(path, 0)
//	defer w.Abort() // does nothing after a Commit
//	... write to w ...
//	return w.Commit()
//
// The bytes go to a temporary file in the same directory, which Commit syncs to the disk, closes and renames over path;
// then it syncs the directory, so that the name survives a power cut too. Whoever reads path sees the old file or the
// whole new one. The temporary file is removed when anything fails; only a killed process leaves one behind, under a
// name that starts with a dot and ends in ".tmp".
package atomicfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// DefaultPerm is the mode of a file created with mode 0: what scrapestat writes may hold names of machines and models.
const DefaultPerm fs.FileMode = 0o600

// Writer is a file in the making. It has one owner and must end with Commit or Abort.
type Writer struct {
	path string
	f    *os.File // nil once it has ended
	err  error    // the first failed write
}

// Create starts the file path with the given permissions, whatever the umask; 0 is [DefaultPerm]. The directory must
// exist. A file that is there already stays as it is until Commit.
func Create(path string, perm fs.FileMode) (*Writer, error) {
	perm = cmp.Or(perm, DefaultPerm)
	dir, name := filepath.Split(path)
	dir = cmp.Or(dir, ".") // an empty one would be the system's temporary directory
	if name == "" || name == "." || name == ".." {
		return nil, fmt.Errorf("create %q: not the name of a file", path)
	}
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("create %s: is a directory", path)
	}
	// Cut so that the temporary name is legal whenever the name is.
	f, err := os.CreateTemp(dir, "."+strings.ReplaceAll(name[:min(len(name), 100)], "*", "_")+".*.tmp")
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", path, err)
	}
	w := &Writer{path: path, f: f}
	if err := f.Chmod(perm.Perm()); err != nil {
		return nil, w.fail("create", err)
	}
	return w, nil
}

// Write appends p. After an error the file cannot be committed any more.
func (w *Writer) Write(p []byte) (int, error) {
	if w.f == nil {
		return 0, fmt.Errorf("write %s: %w", w.path, fs.ErrClosed)
	}
	n, err := w.f.Write(p)
	if err != nil {
		w.err = fmt.Errorf("write %s: %w", w.path, cause(err))
		return n, w.err
	}
	return n, nil
}

// Commit makes the file appear under its name. When it returns an error, the name has what it had before; the one
// exception, an error of syncing the directory, is said in the error. Commit after Commit or Abort is an error and does
// nothing.
func (w *Writer) Commit() error { return w.commit(os.Rename) }

// CommitNew is Commit for a file that nobody may have made meanwhile: then it is an fs.ErrExist, and that one stays.
func (w *Writer) CommitNew() error {
	return w.commit(func(temp, path string) error {
		if err := os.Link(temp, path); err != nil {
			return err
		}
		return os.Remove(temp)
	})
}

func (w *Writer) commit(rename func(temp, path string) error) error {
	if w.f == nil {
		return fmt.Errorf("commit %s: %w", w.path, fs.ErrClosed)
	}
	if w.err != nil {
		err := w.err
		w.Abort()
		return err
	}
	if err := w.f.Sync(); err != nil {
		return w.fail("sync", err)
	}
	temp := w.f.Name()
	if err := w.f.Close(); err != nil {
		return w.fail("close", err)
	}
	if err := rename(temp, w.path); err != nil {
		return w.fail("rename", err)
	}
	w.f = nil
	if err := syncDir(filepath.Dir(w.path)); err != nil {
		return fmt.Errorf("%s is complete, but a power cut may undo it: sync directory: %w", w.path, err)
	}
	return nil
}

// Abort drops the file and leaves what was there. It may be called any number
// of times, and after Commit, when it does nothing.
func (w *Writer) Abort() {
	if w.f == nil {
		return
	}
	// The file is given up: errors about it no longer matter to anyone.
	_ = w.f.Close()
	_ = os.Remove(w.f.Name())
	w.f = nil
}

func (w *Writer) fail(verb string, err error) error {
	w.Abort()
	return fmt.Errorf("%s %s: %w", verb, w.path, cause(err))
}

// cause strips the name of the temporary file, which means nothing to a reader.
func cause(err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		return p.Err
	case errors.As(err, &l):
		return l.Err
	}
	return err
}

// syncDir makes a rename in dir durable where the file system knows how to.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) {
		err = nil // some file systems have no such notion
	}
	return errors.Join(err, d.Close())
}

// WriteFile writes data as the whole of path, as Create and Commit do.
func WriteFile(path string, data []byte, perm fs.FileMode) error {
	w, err := Create(path, perm)
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := w.Write(data); err != nil {
		return err
	}
	return w.Commit()
}

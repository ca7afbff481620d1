package torchserve

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// tail follows one file by its path, like tail -F: the lines that are appended,
// through renames and truncations. The file may not exist yet.
type tail struct {
	path    string
	file    *os.File // nil while it does not exist
	info    os.FileInfo
	offset  int64
	partial []byte // the last line, until its line feed has come
	skip    bool   // what the file holds when it is first seen is old
	drop    bool   // the rest of a line that is too long
}

// seen remembers how far files were read that are no longer followed under the
// path they had, so that a renamed file is not read twice.
type seen struct {
	info   os.FileInfo
	offset int64
	head   []byte // how it begins: the number of a deleted file is given to the next one
}

// maxHead is how much of a file tells it from another one.
const maxHead = 512

// is reports whether file is the one that was seen.
func (s *seen) is(file *os.File, info os.FileInfo) bool {
	head := make([]byte, len(s.head))
	_, err := file.ReadAt(head, 0)
	return os.SameFile(s.info, info) && info.Size() >= s.offset && err == nil && bytes.Equal(head, s.head)
}

// maxChunk bounds what one read of a file takes.
const maxChunk = 256 << 10

// follower follows a set of files: named ones, those of a folder, or those that match a pattern.
type follower struct {
	pattern string // "" for fixed paths
	tails   []*tail
	past    []seen
	started bool
	buf     []byte

	notes []string // what a user should know of
}

// maxFiles bounds the files of a pattern.
const maxFiles = 1000

// newFollower follows path: a folder with TorchServe's two metric logs, a pattern
// or a file. fromStart takes also what the files hold already.
func newFollower(path string, fromStart bool) (*follower, error) {
	f := &follower{buf: make([]byte, maxChunk)}
	add := func(p string) { f.tails = append(f.tails, &tail{path: p, skip: !fromStart}) }
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		add(filepath.Join(path, "ts_metrics.log"))
		add(filepath.Join(path, "model_metrics.log"))
	case err == nil && !info.Mode().IsRegular():
		return nil, fmt.Errorf("follow %s: it is neither a file nor a folder; feed a pipe to torchserve-log:-", path)
	case err == nil || !strings.ContainsAny(path, "*?["):
		add(path)
	default:
		if _, err := filepath.Match(path, ""); err != nil {
			return nil, fmt.Errorf("follow %s: %w", path, err)
		}
		f.pattern = path
		if err := f.expand(!fromStart); err != nil {
			return nil, err
		}
	}
	for _, t := range f.tails {
		if strings.HasSuffix(t.path, ".gz") {
			return nil, fmt.Errorf("follow %s: a compressed file does not grow; use scrapestat import torchserve-log", t.path)
		}
	}
	return f, nil
}

// expand finds the files of the pattern that are not followed yet.
func (f *follower) expand(skip bool) error {
	paths, err := filepath.Glob(f.pattern)
	if err != nil {
		return fmt.Errorf("follow %s: %w", f.pattern, err)
	}
	for _, p := range paths {
		if strings.HasSuffix(p, ".gz") || slices.ContainsFunc(f.tails, func(t *tail) bool { return t.path == p }) {
			continue
		}
		if len(f.tails) >= maxFiles {
			return fmt.Errorf("follow %s: it matches more than %d files", f.pattern, maxFiles)
		}
		f.tails = append(f.tails, &tail{path: p, skip: skip})
	}
	return nil
}

// read gives all complete lines that were appended to emit, at most budget
// bytes. file is the index of the file a line is from.
func (f *follower) read(budget int64, emit func(file int, path string, line []byte)) error {
	var errs []error
	if f.pattern != "" && f.started {
		if err := f.expand(false); err != nil {
			errs = append(errs, err) // those that are known are read all the same
		}
	}
	f.started = true
	for i, t := range f.tails {
		n, err := f.readFile(t, budget, func(line []byte) { emit(i, t.path, line) })
		budget -= n
		if err != nil {
			errs = append(errs, fmt.Errorf("follow %s: %w", t.path, err))
		}
	}
	return errors.Join(errs...)
}

// readFile reads one file. When another one has taken its path the old one is read to its end first.
func (f *follower) readFile(t *tail, budget int64, emit func([]byte)) (total int64, err error) {
	for {
		if t.file == nil {
			if opened, err := f.open(t); !opened || err != nil {
				return total, err
			}
		}
		n, err := f.drain(t, budget-total, emit)
		total += n
		if err != nil || total >= budget {
			return total, err
		}
		info, err := os.Stat(t.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return total, nil // between rename and creation: the old one may still grow
		case err != nil:
			return total, err
		case os.SameFile(info, t.info):
			if info.Size() >= t.offset {
				return total, nil
			}
			f.notes = append(f.notes, fmt.Sprintf("%s was cut from %d to %d bytes; what was written in between may be lost",
				t.path, t.offset, info.Size()))
			t.offset, t.partial, t.drop = 0, t.partial[:0], false
			continue
		}
		// What came between the last read and the rename.
		n, err = f.drain(t, budget-total, emit)
		total += n
		if err != nil || total >= budget {
			return total, err
		}
		f.leave(t, emit)
		f.missed(t.path, t.info, info)
	}
}

// open opens the file if it exists. It goes on where a file was left that had another path before.
func (f *follower) open(t *tail) (bool, error) {
	info, err := os.Stat(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		t.skip = false // what comes later is new
		return false, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err != nil {
		return false, err
	}
	file, err := os.Open(t.path)
	if err != nil {
		return false, err
	}
	if info, err = file.Stat(); err != nil {
		return false, errors.Join(err, file.Close())
	}
	t.file, t.info, t.offset = file, info, 0
	if t.skip {
		t.offset, t.skip = info.Size(), false
	}
	for _, s := range f.past {
		if s.is(file, info) {
			t.offset = s.offset
		}
	}
	for _, other := range f.tails {
		if other != t && other.file != nil && os.SameFile(other.info, info) {
			t.follow(other) // the same file under two names
		}
	}
	return true, nil
}

// leave ends the reading of a file that was replaced. A last line without line feed is complete now.
func (f *follower) leave(t *tail, emit func([]byte)) {
	if len(t.partial) > 0 && !t.drop {
		emit(t.partial)
	}
	head := make([]byte, min(t.offset, maxHead))
	if n, err := t.file.ReadAt(head, 0); err == nil || n == len(head) {
		f.past = append(f.past, seen{t.info, t.offset, head})
	}
	if len(f.past) > maxFiles {
		f.past = f.past[1:]
	}
	t.partial, t.drop = t.partial[:0], false
	f.share(t)
	t.file.Close() // read only
	t.file = nil
}

// missed tells of files that had the path of a log for a while in which nobody
// looked: named alike, no older than the one that was left, and never read.
func (f *follower) missed(path string, left, now os.FileInfo) {
	if f.pattern != "" {
		return // the pattern finds them
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return // reading the log itself fails as well, and says so
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || feed(e.Name()) != feed(path) || strings.HasSuffix(e.Name(), ".gz") ||
			info.Size() == 0 || info.ModTime().Before(left.ModTime()) || os.SameFile(info, left) || os.SameFile(info, now) {
			continue
		}
		if !slices.ContainsFunc(f.past, func(s seen) bool { return os.SameFile(s.info, info) }) &&
			!slices.ContainsFunc(f.tails, func(t *tail) bool { return t.file != nil && os.SameFile(t.info, info) }) {
			f.notes = append(f.notes, fmt.Sprintf("%s was replaced twice between two reads: %s was not read; scrapestat "+
				"import torchserve-log reads it", path, e.Name()))
		}
	}
}

// drain reads to the end of the open file.
func (f *follower) drain(t *tail, budget int64, emit func([]byte)) (total int64, err error) {
	defer func() {
		if total > 0 {
			f.share(t)
		}
	}()
	for total < budget {
		n, err := t.file.ReadAt(f.buf[:min(int64(len(f.buf)), budget-total)], t.offset)
		t.offset += int64(n)
		total += int64(n)
		t.cut(f.buf[:n], emit)
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// share tells the tails that follow the same file under another name, as while it
// is renamed, how far it was read: no line is read twice.
func (f *follower) share(t *tail) {
	for _, other := range f.tails {
		if other != t && other.file != nil && os.SameFile(other.info, t.info) {
			other.follow(t)
		}
	}
}

// follow goes on where another tail of the same file is.
func (t *tail) follow(other *tail) {
	t.offset, t.drop = other.offset, other.drop
	t.partial = append(t.partial[:0], other.partial...)
}

// cut gives the complete lines of a chunk to emit and holds back the rest.
func (t *tail) cut(chunk []byte, emit func([]byte)) {
	for {
		line, rest, complete := bytes.Cut(chunk, []byte{'\n'})
		switch {
		case t.drop:
		case len(t.partial)+len(line) > maxLine:
			t.drop = true // its beginning is a bad line
			emit(append(t.partial, line[:min(len(line), maxLine+1-len(t.partial))]...))
			t.partial = t.partial[:0]
		case !complete:
			t.partial = append(t.partial, line...)
		case len(t.partial) > 0:
			t.partial = append(t.partial, line...)
			emit(t.partial)
			t.partial = t.partial[:0]
		default:
			emit(line)
		}
		if !complete {
			return
		}
		t.drop, chunk = false, rest
	}
}

// close closes the files.
func (f *follower) close() error {
	var errs []error
	for _, t := range f.tails {
		if t.file != nil {
			errs = append(errs, t.file.Close())
			t.file = nil
		}
	}
	return errors.Join(errs...)
}

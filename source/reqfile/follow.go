package reqfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Follower reads what a server appends to its files, as tail -F does. It is not safe for concurrent use.
type Follower struct {
	*Reader
	pattern string
	begun   bool
	files   map[string]*followed
}

// followed is a file that is being read.
type followed struct {
	info   os.FileInfo // of the file whose lines were read
	head   []byte      // its first bytes, as the number of a file that is gone is given to another one
	offset int64       // where the next line begins
	lines  int
}

// maxFiles is how many files are followed at the same time, pollBytes how much of them one Poll reads.
const (
	maxFiles  = 10_000
	pollBytes = 32 << 20
)

// Follow returns a follower of path: a folder, a file or a pattern. What the files hold when it is polled first is left
// out: it was before the run. Files need not exist yet.
func Follow(k Kind, path string, r *Reader) (*Follower, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, k.Pattern)
	}
	if _, err := filepath.Match(path, ""); err != nil {
		return nil, fmt.Errorf("follow %s: %w", path, err)
	}
	return &Follower{Reader: r, pattern: path, files: map[string]*followed{}}, nil
}

// Poll takes the lines that were appended since the last one. A line without its end is waited for; a file that shrank,
// or is another one of the name, is read anew, and records that were there before are told once.
func (f *Follower) Poll() (read int64, err error) {
	names, err := filepath.Glob(f.pattern)
	if err != nil {
		return 0, err
	}
	slices.Sort(names)
	var errs []error
	for _, name := range names {
		n, err := f.file(name, pollBytes-read)
		read += n
		errs = append(errs, err)
	}
	f.begun = true
	return read, errors.Join(errs...)
}

// file reads up to so many bytes of one file.
func (f *Follower) file(name string, most int64) (read int64, err error) {
	in, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0, err
	}
	head := make([]byte, 256)
	n, err := in.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	x := f.files[name]
	switch {
	case x == nil && len(f.files) >= maxFiles:
		return 0, fmt.Errorf("follow %s: more than %d files", f.pattern, maxFiles)
	case x == nil:
		x = &followed{}
		f.files[name] = x
		if !f.begun {
			x.offset = info.Size()
		}
	case !os.SameFile(x.info, info) || info.Size() < x.offset || !bytes.HasPrefix(head[:n], x.head):
		x.offset, x.lines = 0, 0
	}
	x.info, x.head = info, head[:n]
	if info.Size() == x.offset {
		return 0, nil
	}
	text, err := io.ReadAll(io.NewSectionReader(in, x.offset, min(most, info.Size()-x.offset)))
	if err != nil {
		return 0, err
	}
	for {
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			break
		}
		x.lines++
		if end > maxLine {
			f.counts.Note("line %d: longer than 1 MiB", x.lines)
		} else {
			f.take(x.lines, text[:end])
		}
		x.offset += int64(end) + 1
		read += int64(end) + 1
		text = text[end+1:]
	}
	if len(text) > maxLine { // its end would come too late
		x.offset += int64(len(text))
		f.counts.Note("line %d: longer than 1 MiB", x.lines+1)
	}
	return read, nil
}

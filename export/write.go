package export

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/scrapestat/scrapestat/internal/atomicfile"
	"github.com/scrapestat/scrapestat/summary"
)

// File is an export that was written.
type File struct {
	Format string // json, csv, jsonl or parquet
	Path   string
	Size   int64
	SHA256 string // of the content, in lower-case hex; "" when not asked for
}

// Write writes the chosen formats into dir, each under the name of its [Format]: server_metrics_export.json, .csv,
// .jsonl and .parquet, or server_metrics_tidy.parquet in the tidy layout. Beside a Parquet file derived.parquet is
// written when the run has derived quantities or aggregates. Each file appears complete or not at all and replaces an
// older one. A format that fails does not keep the others from being written: Write returns the files that were, and
// the errors of all others, each naming its file. A format named twice is written once.
func Write(ctx context.Context, dir string, formats []string, r *summary.Run, recs []Recording, o Options) ([]File,
	error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("write exports: %w", err)
	}
	var files []File
	var errs []error
	for i, name := range formats {
		if slices.Contains(formats[:i], name) {
			continue
		}
		kinds := Lookup(name, r, o)
		if len(kinds) == 0 {
			errs = append(errs, fmt.Errorf("write exports: unknown format %q (known: %v)", name, Formats()))
		}
		for _, k := range kinds {
			if ctx.Err() != nil {
				return files, errors.Join(append(errs, fmt.Errorf("write exports: %w", context.Cause(ctx)))...)
			}
			write := func(w io.Writer) error { return k.Write(ctx, w, r, recs, o) }
			f, err := writeFile(ctx, filepath.Join(dir, k.File), write, !o.Unhashed)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			f.Format = name
			files = append(files, f)
		}
	}
	return files, errors.Join(errs...)
}

// writeFile makes one file, which appears when it is complete. It takes nothing any
// more when ctx has ended.
func writeFile(ctx context.Context, path string, write func(io.Writer) error, hashed bool) (File, error) {
	out, err := atomicfile.Create(path, atomicfile.DefaultPerm)
	if err != nil {
		return File{}, err
	}
	defer out.Abort()
	t := &countingWriter{w: out, ended: ctx.Err}
	if hashed {
		t.hash = startHasher()
	}
	err = write(t)
	f := File{Path: path, Size: t.size, SHA256: t.hash.sum()}
	if err != nil {
		return File{}, fmt.Errorf("write %s: %w", path, err)
	}
	if err := out.Commit(); err != nil {
		return File{}, err
	}
	return f, nil
}

// countingWriter counts and hashes what is written.
type countingWriter struct {
	w     io.Writer
	ended func() error
	size  int64
	hash  *hasher // may be nil
}

// Write implements io.Writer.
func (t *countingWriter) Write(p []byte) (int, error) {
	if err := t.ended(); err != nil {
		return 0, err
	}
	n, err := t.w.Write(p)
	t.size += int64(n)
	t.hash.write(p[:n])
	return n, err
}

// hasher computes a SHA-256 beside the writing, which takes as long as making the
// lines of a JSONL on processors without an instruction for it.
type hasher struct {
	full chan []byte // to be hashed
	free chan []byte
	done chan string
}

func startHasher() *hasher {
	h := &hasher{full: make(chan []byte, 2), free: make(chan []byte, 2), done: make(chan string, 1)}
	for range cap(h.free) {
		h.free <- nil
	}
	go func() {
		sum := sha256.New()
		for b := range h.full {
			sum.Write(b)
			h.free <- b
		}
		h.done <- hex.EncodeToString(sum.Sum(nil))
	}()
	return h
}

func (h *hasher) write(p []byte) {
	if h != nil {
		h.full <- append((<-h.free)[:0], p...)
	}
}

// sum ends the hasher, which must be called once.
func (h *hasher) sum() string {
	if h == nil {
		return ""
	}
	close(h.full)
	return <-h.done
}

package lake

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/internal/parquetwriter"
)

// Found is what [Verify] found.
type Found struct {
	Runs, Files int
	Bytes       int64
	Bad         []string // what is wrong, a sentence each
	Orphans     []string // files of no run, relative to the lake
	Pruned      int      // of the orphans, those that were deleted
}

// Verify reads all files of a lake. With prune it deletes orphans that were last written before that time: a younger
// one may be of a run that is being added.
func Verify(dir string, prune time.Time) (*Found, error) {
	names, err := Names(dir)
	if err != nil {
		return nil, err
	}
	found, known := &Found{Runs: len(names)}, map[string]bool{}
	for _, name := range names {
		run, err := ReadRun(dir, name)
		if err != nil {
			found.Bad = append(found.Bad, fmt.Sprintf("run %s: %v", name, err))
			continue
		}
		for i := range run.Files {
			f := &run.Files[i]
			known[f.Path] = true
			found.Files, found.Bytes = found.Files+1, found.Bytes+f.Bytes
			if err := f.check(dir); err != nil {
				found.Bad = append(found.Bad, fmt.Sprintf("run %s: %s: %v", name, f.Path, err))
			}
		}
	}
	for _, table := range []string{"samples", "series", "runs"} {
		if err := found.orphans(dir, table, known, prune); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// check compares a file with what the row of its run says.
func (f *File) check(dir string) error {
	path := filepath.FromSlash(f.Path)
	if !filepath.IsLocal(path) {
		return errors.New("lies outside of the lake")
	}
	path = filepath.Join(dir, path)
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	h := sha256.New()
	n, err := io.Copy(h, file)
	switch sum := hex.EncodeToString(h.Sum(nil)); {
	case err != nil:
		return err
	case n != f.Bytes:
		return fmt.Errorf("has %d bytes, not %d", n, f.Bytes)
	case sum != f.SHA256:
		return fmt.Errorf("was changed: its SHA-256 is %s, not %s", sum[:16], f.SHA256[:min(16, len(f.SHA256))])
	}
	if rows, err := parquetwriter.CountRows(path); err != nil || rows != f.Rows {
		return errors.Join(err, fmt.Errorf("has %d rows, not %d", rows, f.Rows))
	}
	return nil
}

// orphans lists the files of a table that no run has.
func (found *Found) orphans(dir, table string, known map[string]bool, prune time.Time) error {
	err := filepath.WalkDir(filepath.Join(dir, table), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || known[filepath.ToSlash(rel)] || table == "runs" && !strings.HasSuffix(rel, ".tmp") {
			return err
		}
		found.Orphans = append(found.Orphans, filepath.ToSlash(rel))
		info, err := d.Info()
		if err != nil || !info.ModTime().Before(prune) {
			return err
		}
		found.Pruned++
		return os.Remove(path)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

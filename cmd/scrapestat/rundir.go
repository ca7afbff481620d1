package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/rundb"
)

// runFiles are the files collect puts into a run directory; --force removes
// them and nothing else.
var runFiles = append(export.Files(), "run.db", "run.db-wal", "run.db-shm", rundb.EventLockName, "manifest.json", reportName)

// defaultRunDir is where a run goes without --out.
func defaultRunDir(now time.Time) string {
	return filepath.Join("runs", now.UTC().Format("20060102T150405.000Z"))
}

// makeRunDir creates the run directory and locks it. An existing one is refused
// unless it is empty or force is set, which removes the files of the earlier
// run, but never those of one that is being recorded.
func makeRunDir(dir string, force bool) (unlock func(), err error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("create run directory %s: %w", dir, err)
		}
	case err != nil:
		return nil, usagef("open run directory %s: %w", dir, err)
	case len(entries) > 0 && !force:
		return nil, usagef("run directory %s exists; choose another with --out, or replace the run in it with --force", dir)
	}
	if err := probeWritable(dir); err != nil {
		return nil, err
	}
	if unlock, err = lockRunDir(dir); err != nil {
		return nil, err
	}
	for _, name := range runFiles {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			unlock()
			return nil, fmt.Errorf("replace run in %s: %w", dir, err)
		}
	}
	return unlock, nil
}

// makeExportDir creates the directory of exports that do not go into a run.
func makeExportDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create output directory %s: %w", dir, err)
	}
	return probeWritable(dir)
}

// probeWritable finds out before the load generator starts that nothing could
// be written afterwards.
func probeWritable(dir string) error {
	f, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return fmt.Errorf("write to run directory %s: %w", dir, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

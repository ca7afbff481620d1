package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/rundb"
)

// defaultRunDir is where a run goes without --out.
func defaultRunDir(now time.Time) string {
	return filepath.Join("runs", now.UTC().Format("20060102T150405.000Z"))
}

// makeRunDir creates the run directory and locks it. An existing one is refused unless it is empty or force is set.
func makeRunDir(dir string, force bool) (unlock func(), err error) {
	d, err := rundb.MakeDir(dir, replaced(force))
	if err != nil {
		return nil, dirError(err)
	}
	return func() { _ = d.Close() }, d.Begun() // of the lock nothing is kept
}

// replaced is what a new run replaces in its directory; nil refuses to replace.
func replaced(force bool) []string {
	if !force {
		return nil
	}
	return append(export.Files(), reportName)
}

// dirError tells what to do about a directory that was refused.
func dirError(err error) error {
	var refused *rundb.DirError
	switch {
	case !errors.As(err, &refused):
		return err
	case errors.Is(err, rundb.ErrDirExists):
		return usagef("run directory %s exists; choose another with --out, or replace the run in it with --force",
			refused.Dir)
	case errors.Is(err, rundb.ErrDirInUse):
		return usagef("run directory %s is in use: another collect records into it; choose another with --out", refused.Dir)
	}
	return usagef("%w", err)
}

// makeExportDir creates the directory of exports that do not go into a run.
func makeExportDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create output directory %s: %w", dir, err)
	}
	return rundb.ProbeDir(dir)
}

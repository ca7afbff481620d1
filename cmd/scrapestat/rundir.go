package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// runFiles are the files collect puts into a run directory; --force removes
// them and nothing else.
var runFiles = []string{"run.db", "run.db-wal", "run.db-shm", "manifest.json",
	"server_metrics_export.json", "server_metrics_export.csv", "server_metrics_export.jsonl",
	"server_metrics_export.parquet", "server_metrics_tidy.parquet"}

// defaultRunDir is where a run goes without --out.
func defaultRunDir(now time.Time) string {
	return filepath.Join("runs", now.UTC().Format("20060102T150405.000Z"))
}

// makeRunDir creates the run directory. An existing one is refused unless it is
// empty or force is set, which removes the files of the earlier run.
func makeRunDir(dir string, force bool) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("create run directory %s: %w", dir, err)
		}
		return nil
	case err != nil:
		return usagef("open run directory %s: %w", dir, err)
	case len(entries) == 0:
		return probeWritable(dir)
	case !force:
		return usagef("run directory %s exists; choose another with --out, or replace the run in it with --force", dir)
	}
	for _, name := range runFiles {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("replace run in %s: %w", dir, err)
		}
	}
	return probeWritable(dir)
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

// secretFlags take a value that must not reach the manifest.
var secretFlags = []string{"--header"}

// redactedCommand is the command line as it is kept: values of secret flags and
// userinfo of URLs are replaced.
func redactedCommand(argv []string) []string {
	out := make([]string, len(argv))
	for i, a := range argv {
		out[i] = redactURL(a)
		for _, f := range secretFlags {
			if i > 0 && argv[i-1] == f {
				out[i] = "REDACTED"
			}
			if strings.HasPrefix(a, f+"=") {
				out[i] = f + "=REDACTED"
			}
		}
	}
	return out
}

// redactURL hides the userinfo of a URL inside an argument, keeping the rest.
func redactURL(arg string) string {
	scheme := strings.Index(arg, "://")
	if scheme < 0 {
		return arg
	}
	rest := arg[scheme+3:]
	authority := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority = rest[:end]
	}
	at := strings.LastIndexByte(authority, '@')
	if at < 0 {
		return arg
	}
	return arg[:scheme+3] + "REDACTED" + rest[at:]
}

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/source/promstore"
)

// defaultRunDir is where a run goes without --out.
func defaultRunDir(now time.Time) string {
	return filepath.Join("runs", now.UTC().Format("20060102T150405.000Z"))
}

// describeRun describes a run that begins at originNS, for its recording and its manifest. command is the command line
// with its secrets.
func describeRun(originNS int64, tags map[string]string, command ...[]string) (rundb.Meta, rundb.Manifest) {
	host := rundb.ThisHost()
	m := rundb.Meta{ID: rundb.NewID(), Version: toolVersion(), Command: redactArgs(slices.Concat(command...)),
		Tags: redactedTags(storeRedacted, tags), OriginNS: originNS, Host: host.Hostname}
	return m, rundb.Manifest{Version: m.Version, RunID: m.ID, Command: m.Command, Tags: m.Tags, Host: host,
		Started: time.Unix(0, originNS).UTC()}
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

// settings is what the manifest says of the command line.
func (o *collectOptions) settings() map[string]any {
	return map[string]any{
		"interval":          o.interval.String(),
		"timeout":           o.timeout.String(),
		"duration":          o.duration.String(),
		"warmup":            o.warmup.String(),
		"wait-traffic":      o.waitTraffic.String(),
		"window":            o.window,
		"cooldown":          o.cooldown.String(),
		"settle":            o.settle.String(),
		"slice-duration":    o.analysis.slice.String(),
		"slice-percentiles": o.analysis.slicePct,
		"estimator":         o.analysis.inFiles(),
		"counter-resets":    o.analysis.resets,
		"aiperf-rates":      o.analysis.rates,
		"formats":           strings.Join(o.analysis.formats, ","),
		"keep":              o.keep,
		"drop":              o.drop,
		"requests":          o.requests,
		"compress":          o.compress,
		"scrape-budget":     o.maxShare,
		"remote-write":      redactedOrNone(o.remoteWrite.url),
		"listen":            o.listen,
		"config":            o.access.config,
	}
}

// redactedOrNone is an address as outputs may show it.
func redactedOrNone(address string) string {
	if address == "" {
		return ""
	}
	return promstore.Redact(address)
}

func exportedFiles(files []export.File) []rundb.ExportedFile {
	var out []rundb.ExportedFile
	for _, f := range files {
		out = append(out, rundb.ExportedFile{Name: filepath.Base(f.Path), Format: f.Format, Bytes: f.Size, SHA256: f.SHA256})
	}
	return out
}

// refreshManifest puts the hashes of newly written exports into the manifest of
// a run directory; a run without a manifest stays without.
func refreshManifest(dir string, files []export.File) error {
	m, err := rundb.ReadManifest(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range exportedFiles(files) {
		m.Exports = slices.DeleteFunc(m.Exports, func(e rundb.ExportedFile) bool { return e.Name == f.Name })
		m.Exports = append(m.Exports, f)
	}
	return rundb.WriteManifest(dir, m)
}

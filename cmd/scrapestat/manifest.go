package main

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/source/promstore"
)

// settings is what the manifest says of the command line.
func (o *collectOptions) settings() map[string]any {
	return map[string]any{
		"interval":          o.interval.String(),
		"timeout":           o.timeout.String(),
		"duration":          o.duration.String(),
		"warmup":            o.warmup.String(),
		"cooldown":          o.cooldown.String(),
		"settle":            o.settle.String(),
		"slice-duration":    o.analysis.slice.String(),
		"slice-percentiles": o.analysis.slicePct,
		"estimator":         o.analysis.estimator,
		"counter-resets":    o.analysis.resets,
		"formats":           strings.Join(o.analysis.formats, ","),
		"keep":              o.keep,
		"drop":              o.drop,
		"requests":          o.requests,
		"compress":          o.compress,
		"max-scrape-share":  o.maxShare,
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

package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/source/promstore"
	"github.com/scrapestat/scrapestat/summary"
)

// meta is what the recording says about itself.
func (o *collectOptions) meta(origin time.Time, targets []scrape.Target) rundb.Meta {
	return rundb.Meta{
		ID:       newRunID(),
		Version:  toolVersion(),
		Command:  redactedCommand(o.flags, targets, o.command),
		Tags:     o.tags,
		OriginNS: origin.UnixNano(),
		Interval: o.interval,
		Timeout:  o.timeout,
		Warmup:   o.warmup,
		Cooldown: o.cooldown,
		Settle:   o.settle,
		Slice:    o.analysis.slice,
		Host:     hostName(),
		Limits:   o.limitsByName(),
	}
}

// hostName is the name of this machine, "" when it has none: no reason not to
// measure.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

func hostFacts(name string) rundb.HostFacts {
	return rundb.HostFacts{Hostname: name, OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version()}
}

// newRunID returns a random identifier in the form of a UUID, version 4.
func newRunID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// manifest is what manifest.json says before the first scrape; see complete.
func (o *collectOptions) manifest(m rundb.Meta, targets []scrape.Target) rundb.Manifest {
	out := rundb.Manifest{
		Version: m.Version,
		RunID:   m.ID,
		Command: m.Command,
		Tags:    m.Tags,
		Started: time.Unix(0, m.OriginNS),
		Host:    hostFacts(m.Host),
		Limits:  m.Limits,
		Options: map[string]any{
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
		},
	}
	for _, t := range targets {
		p := t.Public()
		out.Targets = append(out.Targets, manifestTarget(p))
	}
	return out
}

func manifestTarget(t metric.Target) rundb.ManifestTarget {
	out := rundb.ManifestTarget{Name: t.Name, URL: t.URL, Source: t.Source}
	if t.Labels.Len() > 0 {
		out.Labels = t.Labels.Map()
	}
	return out
}

// redactedOrNone is an address as outputs may show it.
func redactedOrNone(address string) string {
	if address == "" {
		return ""
	}
	return promstore.Redact(address)
}

// complete adds what is only known after the run: lifetimes and exports.
func complete(m rundb.Manifest, ended time.Time, r *summary.Run, files []export.File) rundb.Manifest {
	m.Ended = ended
	for i := range r.Endpoints {
		if i == len(m.Targets) {
			m.Targets = append(m.Targets, manifestTarget(r.Endpoints[i].Target))
		}
		e, t := &r.Endpoints[i], &m.Targets[i]
		for _, l := range e.Lives {
			event := "came"
			if l.Gone {
				event = "went"
			}
			t.Lives = append(t.Lives, rundb.ManifestLife{At: time.Unix(0, l.AtNS).UTC(), Event: event, Reason: l.Reason})
		}
		t.Polls = e.Ledger.Scheduled
		t.Stored = e.Ledger.StoredPolls()
		if e.Fetches.Total > 0 {
			t.First, t.Last = time.Unix(0, e.Fetches.FirstNS).UTC(), time.Unix(0, e.Fetches.LastNS).UTC()
		}
	}
	m.Warnings = r.Warnings
	m.Exports = exportedFiles(files)
	return m
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

package rundb

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/scrapestat/scrapestat/internal/atomicfile"
	"github.com/scrapestat/scrapestat/internal/sqlitefile"
	"github.com/scrapestat/scrapestat/metric"
)

// ManifestName is the name of the manifest in a run directory.
const ManifestName = "manifest.json"

// ManifestVersion is the version of the manifest's form. Fields are added, never renamed.
const ManifestVersion = 1

// maxManifest is how much of a manifest ReadManifest accepts.
const maxManifest = 64 << 20

// Manifest says where a run directory comes from: enough to trust its files and to compare them with those of
// another run. Nothing in it is secret: the command line and the URLs are the redacted ones.
type Manifest struct {
	Schema  int      `json:"schema"` // set by WriteManifest
	Tool    string   `json:"tool"`   // set by WriteManifest
	Version string   `json:"version"`
	RunID   string   `json:"run_id"`
	Command []string `json:"command"`

	Tags    map[string]string `json:"tags,omitzero"`
	Started time.Time         `json:"started"`
	Ended   time.Time         `json:"ended,omitzero"` // zero while the run goes on
	Host    HostFacts         `json:"host"`

	Targets  []ManifestTarget `json:"targets"`
	Options  map[string]any   `json:"options,omitzero"` // settings by flag name
	Limits   map[string]int64 `json:"limits,omitzero"`  // by name, 0 is "no limit"
	Exports  []ExportedFile   `json:"exports,omitzero"`
	Warnings []metric.Warning `json:"warnings,omitzero"`
}

// HostFacts describes the machine that recorded.
type HostFacts struct {
	Hostname string `json:"hostname"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	CPUs     int    `json:"cpus"`
	Go       string `json:"go"`
}

// ManifestTarget is a target and when it was polled. First and Last are zero for a target that never answered.
type ManifestTarget struct {
	Name   string    `json:"name,omitzero"`
	URL    string    `json:"url"`
	Source string    `json:"source"`
	First  time.Time `json:"first,omitzero"` // first and last stored poll
	Last   time.Time `json:"last,omitzero"`
	Polls  int       `json:"polls,omitzero"`
	Stored int       `json:"stored,omitzero"` // polls with samples

	Labels map[string]string `json:"labels,omitzero"` // job, instance and those of relabelling
	Lives  []ManifestLife    `json:"lives,omitzero"`  // of a target that came or went during the run
}

// NewManifestTarget is a target that was not polled yet.
func NewManifestTarget(t metric.Target) ManifestTarget {
	out := ManifestTarget{Name: t.Name, URL: t.URL, Source: t.Source}
	if t.Labels.Len() > 0 {
		out.Labels = t.Labels.Map()
	}
	return out
}

// ManifestLife is a target that came or went.
type ManifestLife struct {
	At     time.Time `json:"at"`
	Event  string    `json:"event"` // "came" or "went"
	Reason string    `json:"reason"`
}

// ExportedFile is a file that was made of the recording.
type ExportedFile struct {
	Name   string `json:"name"` // relative to the run directory, with slashes
	Format string `json:"format"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // lower-case hex
}

// WriteManifest writes manifest.json into dir, replacing one that is there.
// The same manifest gives the same bytes.
func WriteManifest(dir string, m Manifest) error {
	m.Schema, m.Tool = ManifestVersion, "scrapestat"
	m.Started, m.Ended = m.Started.UTC(), m.Ended.UTC()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	if err := e.Encode(m); err != nil {
		return fmt.Errorf("encode manifest: %w", err)
	}
	if err := atomicfile.WriteFile(filepath.Join(dir, ManifestName), b.Bytes(), 0); err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	return nil
}

// CopyManifest copies the manifest of a run directory to another one, if there is one.
func CopyManifest(from, to string) error {
	data, err := manifestText(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	return os.WriteFile(filepath.Join(to, ManifestName), data, 0o600)
}

func manifestText(dir string) ([]byte, error) {
	f, err := sqlitefile.OpenFile(filepath.Join(dir, ManifestName))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err == nil && len(data) > maxManifest {
		err = fmt.Errorf("%s: more than %d MiB", f.Name(), maxManifest>>20)
	}
	return data, err
}

// ReadManifest reads the manifest of a run directory. The error wraps
// fs.ErrNotExist when there is none. Fields of later versions are ignored.
func ReadManifest(dir string) (Manifest, error) {
	path := filepath.Join(dir, ManifestName)
	var m Manifest
	data, err := manifestText(dir)
	if err != nil {
		return m, fmt.Errorf("read manifest: %w", err)
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return Manifest{}, fmt.Errorf("read manifest %s: %w", path, err)
	}
	switch {
	case m.Schema < 1:
		return Manifest{}, fmt.Errorf("read manifest %s: not a manifest of scrapestat", path)
	case m.Schema > ManifestVersion:
		return Manifest{}, fmt.Errorf("read manifest %s: written by a newer scrapestat (schema %d, this program reads up "+
			"to %d): update scrapestat", path, m.Schema, ManifestVersion)
	}
	return m, nil
}

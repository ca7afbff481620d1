package rundb_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

func TestManifest(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, rundb.ManifestName)
	start := time.Date(2026, 11, 21, 10, 0, 0, 123456789, time.UTC)
	m := rundb.Manifest{
		Version: "1.0", RunID: "id", Command: []string{"scrapestat", "collect", "a<b>&c"},
		Tags: map[string]string{"z": "1", "a": "2"}, Started: start.In(time.FixedZone("X", 3600)),
		Host: rundb.HostFacts{Hostname: "h", OS: "linux", Arch: "amd64", CPUs: 2, Go: "go1.26"},
		Targets: []rundb.ManifestTarget{{URL: "http://a/metrics", Source: "prometheus", First: start,
			Last: start.Add(time.Second), Polls: 4, Stored: 3}, {URL: "http://b", Source: "triton"}},
		Options: map[string]any{"interval": "333ms", "strict": true}, Limits: map[string]int64{"max-body": 1 << 60},
		Exports:  []rundb.ExportedFile{{Name: "x.json", Format: "json", Bytes: 3, SHA256: "00ff"}},
		Warnings: []metric.Warning{{Code: "c", Text: "t"}},
	}
	write := func() []byte {
		t.Helper()
		if err := rundb.WriteManifest(dir, m); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if a, b := write(), write(); !bytes.Equal(a, b) {
		t.Errorf("the same manifest gives\n%s\nand\n%s", a, b)
	}
	got, err := rundb.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := m
	want.Schema, want.Tool, want.Started = rundb.ManifestVersion, "scrapestat", start
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if text := string(write()); strings.Contains(text, "0001-01-01") {
		t.Errorf("zero times are written:\n%s", text)
	}

	refuse := func(text, want string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := rundb.ReadManifest(dir); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	refuse(`{}`, "not a manifest")
	refuse(`{"schema": 2}`, "newer scrapestat")
	refuse(`{`, "unexpected end")
	if _, err := rundb.ReadManifest(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no manifest: got %v", err)
	}
	if err := rundb.WriteManifest(filepath.Join(dir, "none"), m); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: got %v", err)
	}
}

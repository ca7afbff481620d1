package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/internal/testkit"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/summary"
)

// TestRealBodyExports records each body of a real server twice and writes every export:
// the JSON has each series that the body has.
func TestRealBodyExports(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testkit.Path(t, "bodies"), "*.prom"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no bodies: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			rec, seen := recordTwice(t, testkit.Data(t, "bodies/"+filepath.Base(file)))
			r, err := summary.Build(t.Context(), []summary.Recording{rec}, summary.Options{})
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			written, err := export.Write(t.Context(), dir, export.Formats(), r, []export.Recording{rec}, export.Options{})
			if err != nil || len(written) < len(export.Formats()) {
				t.Errorf("wrote %v: %v", written, err)
			}
			f, err := os.Open(filepath.Join(dir, "server_metrics_export.json"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			back, _, err := export.ReadJSON(f)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for i := range back.Metrics {
				n += len(back.Metrics[i].Series)
			}
			if n != seen {
				t.Errorf("%d series in the JSON, %d in the body", n, seen)
			}
		})
	}
}

// recordTwice records a body at two instants and counts its series.
func recordTwice(t *testing.T, body []byte) (rec *rundb.Run, series int) {
	t.Helper()
	dir := t.TempDir()
	db, err := rundb.Create(dir, rundb.Meta{ID: "t", OriginNS: 1e9}, rundb.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.AddTarget(metric.Target{URL: "http://h:8000/metrics", Source: "prometheus"}); err != nil {
		t.Fatal(err)
	}
	d, err := scrape.NewDecoder(scrape.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		s := metric.Snapshot{Seq: uint64(i), SentNS: 1e9 + int64(i)*1e9}
		d.Decode(&s, scrape.Body{Bytes: body, ContentType: "text/plain; version=0.0.4"})
		series += len(s.DictDelta.Series)
		if err := db.Record(&s); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rec, err = rundb.Open(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rec.Close(); err != nil {
			t.Error(err)
		}
	})
	return rec, series
}

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// exportedRun is what the tests read back of server_metrics_export.json.
type exportedRun struct {
	Metrics    map[string]exportedMetric `json:"metrics"`
	Scrapestat struct {
		Endpoints []exportedEndpoint `json:"endpoints"`
	} `json:"scrapestat"`
}

type exportedMetric struct {
	Type   string           `json:"type"`
	Series []exportedSeries `json:"series"`
}

type exportedSeries struct {
	Endpoint string             `json:"endpoint_url"`
	Labels   map[string]string  `json:"labels"`
	Stats    map[string]float64 `json:"stats"`
	Slices   []struct {
		Start int64   `json:"start_ns"`
		End   int64   `json:"end_ns"`
		Total float64 `json:"total"`
		Count float64 `json:"count"`
	} `json:"timeslices"`
}

type exportedEndpoint struct {
	URL       string         `json:"url"`
	Scheduled int            `json:"scheduled"`
	OK        int            `json:"ok"`
	Outcomes  map[string]int `json:"outcomes"`
}

func readExport(t *testing.T, dir string) exportedRun {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "server_metrics_export.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r exportedRun
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatalf("read export of %s: %v", dir, err)
	}
	return r
}

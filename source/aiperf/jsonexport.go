package aiperf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/scrapestat/scrapestat/metric"
)

// Types is what only the JSON export of a run has, not its JSONL.
type Types struct {
	Families map[string]metric.Family
	// Marks are the phases of the run: warm-up, profiling, end. Empty when the export has none.
	Marks []metric.Mark
	// Phases are when those of our own export began and ended: the lines only tell which poll was the first.
	Phases []Phase
}

// Phase is a phase of our own export.
type Phase struct {
	Name    string `json:"name"`
	StartNS int64  `json:"start_ns"`
	EndNS   int64  `json:"end_ns"`
}

// maxExport bounds the JSON export that is read for its types.
const maxExport = 1 << 30

// ReadTypes reads AIPerf's server_metrics_export.json of schema 1.0 or 1.1, or ours.
func ReadTypes(r io.Reader) (Types, error) {
	type family struct {
		Type        string `json:"type"`
		Description string `json:"description"`
		Unit        string `json:"unit"`
	}
	type period struct {
		StartNS int64 `json:"start_ns"`
		EndNS   int64 `json:"end_ns"`
	}
	var doc struct {
		Summary *struct {
			Phases map[string]period `json:"phase_time_ranges"`
		} `json:"summary"`
		Metrics map[string]family `json:"metrics"`
		Warmup  map[string]family `json:"warmup_metrics"`
		Ours    struct {
			Phases []Phase `json:"phases"`
		} `json:"scrapestat"`
	}
	limited := &io.LimitedReader{R: r, N: maxExport}
	if err := json.NewDecoder(limited).Decode(&doc); err != nil {
		if limited.N <= 0 {
			err = fmt.Errorf("larger than %d bytes", int64(maxExport))
		}
		return Types{}, fmt.Errorf("read types of JSON export: %w", err)
	}
	if doc.Summary == nil || doc.Metrics == nil {
		return Types{}, errors.New("read types of JSON export: it has no summary or no metrics, so it is none")
	}
	t := Types{Families: map[string]metric.Family{}, Phases: doc.Ours.Phases}
	for _, m := range []map[string]family{doc.Warmup, doc.Metrics} {
		for name, f := range m {
			typ, _ := metric.ParseType(f.Type)
			t.Families[name] = metric.Family{Name: name, Type: typ, Help: f.Description}
		}
	}
	if p, ok := doc.Summary.Phases[metric.PhaseWarmup]; ok {
		t.Marks = append(t.Marks, metric.Mark{Name: metric.PhaseWarmup, AtNS: p.StartNS, Kind: metric.PhaseWarmup})
	}
	if p, ok := doc.Summary.Phases[metric.PhaseProfiling]; ok && p.StartNS < p.EndNS {
		t.Marks = append(t.Marks, metric.Mark{Name: metric.PhaseProfiling, AtNS: p.StartNS,
			Kind: metric.PhaseProfiling}, metric.Mark{Name: metric.MarkEnd, AtNS: p.EndNS})
	} else {
		t.Marks = nil
	}
	return t, nil
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/simulate"
)

// shownCaveats is what the JSON of show has of caveats and the quantities they are
// about.
type shownCaveats struct {
	Quantities, Latencies []struct{ Canonical string }
	CrossEngine           []struct {
		Canonical string
		Notes     []string
	} `json:"cross_engine"`
	Notes []struct{ Engine, Letter, Text string }
}

// showCaveats records and shows a run of simulated engines side by side.
func showCaveats(t *testing.T, profiles ...string) shownCaveats {
	t.Helper()
	t.Chdir(t.TempDir())
	var targets []simulatedTarget
	for i, p := range profiles {
		targets = append(targets, simulatedTarget{name: p, profile: p,
			options: simulate.Options{Rate: 8, Seed: uint64(i) + 1}})
	}
	recordSimulated(t, "run1", targets, 30*time.Second, time.Minute)
	var out, talk bytes.Buffer
	if code := run(context.Background(), []string{"show", "run1", "--format", "json"},
		stdio{nil, &out, &talk}); code != exitDone {
		t.Fatalf("exit code %d: %s", code, talk.String())
	}
	var doc shownCaveats
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// Caveats stand beside the rows that they are about: those across engines name rows
// of that table, and none is told of a row that is not there.
func TestCaveatsBesideRows(t *testing.T) {
	check := func(t *testing.T, doc shownCaveats) {
		t.Helper()
		var beside, told []string
		for _, row := range doc.CrossEngine {
			beside = append(beside, row.Notes...)
		}
		for _, n := range doc.Notes {
			if n.Text == "" {
				t.Errorf("caveat %q without a text", n.Letter)
			}
			if n.Engine == "" {
				told = append(told, n.Letter)
				continue
			}
			about := slices.ContainsFunc(slices.Concat(doc.Quantities, doc.Latencies),
				func(row struct{ Canonical string }) bool {
					return slices.ContainsFunc(catalog.Packs(), func(p catalog.Pack) bool {
						own := catalog.Embedded().Caveats(catalog.Quantity{ID: row.Canonical, Engine: p.Name})
						return p.Title == n.Engine && slices.ContainsFunc(own,
							func(c catalog.Caveat) bool { return c.Letter == n.Letter })
					})
				})
			if !about {
				t.Errorf("%s: caveat %s is about no row", n.Engine, n.Letter)
			}
		}
		slices.Sort(beside)
		if beside = slices.Compact(beside); !slices.Equal(beside, told) {
			t.Errorf("caveats beside rows %q, told %q", beside, told)
		}
	}
	t.Run("tgi and vllm", func(t *testing.T) {
		doc := showCaveats(t, "tgi", "vllm")
		check(t, doc)
		rows := map[string]string{}
		for _, row := range doc.CrossEngine {
			rows[row.Canonical] = strings.Join(row.Notes, " ")
		}
		for id, want := range map[string]string{"tpot_mean_s": "i", "tpot_s p50": "c i", "tpot_s p99": "c i",
			"e2e_s p50":    "c",
			"output_tok_s": "d", "input_tok_s": "d", "request_rate": "g", "queue_mean_s": ""} {
			if got, ok := rows[id]; !ok || got != want {
				t.Errorf("row %s: caveats %q (there: %v), want %q", id, got, ok, want)
			}
		}
		for _, n := range doc.Notes {
			if n.Letter == "b" || n.Letter == "n" {
				t.Errorf("caveat %s, of a row that is not there: %s", n.Letter, n.Text)
			}
		}
	})
	for _, pair := range [][]string{{"vllm", "trtllm"}, {"sglang", "vllm"}, {"dynamo", "dynamo-worker"},
		{"llamacpp", "tgi", "vllm-omni"}} {
		t.Run(strings.Join(pair, " and "), func(t *testing.T) { check(t, showCaveats(t, pair...)) })
	}
}

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/compare"
	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/summary"
)

// stageNamed wants the profile vllm-omni by stage and replica to be short, and a
// worse time of stage 1 in it.
func stageNamed(t *testing.T, a, b *summary.Run) {
	t.Helper()
	r, err := compare.Compare([]compare.Input{{Side: "old", Run: a}, {Side: "new", Run: b}},
		compare.Options{Profile: "vllm-omni", By: []string{"stage", "replica"}})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for i := range r.Rows {
		row := &r.Rows[i]
		stage, _ := row.Labels.Get("stage")
		found = found || stage == "1" && row.Family == "vllm:e2e_request_latency_seconds" && row.Stat == "mean" &&
			row.Verdict() == compare.Worse
	}
	if !found || r.Left == 0 {
		t.Errorf("profile vllm-omni by stage: stage 1 worse is %v, %d rows left out of %d", found, r.Left, r.Left+len(r.Rows))
	}
}

// omniRun is a run of a pipeline whose stage 1 takes slow times as long.
func omniRun(t *testing.T, generation string, seed uint64, slow float64) *summary.Run {
	t.Helper()
	plan := simulate.StandardPlan(1)
	plan.Stages[1].Service = time.Duration(float64(plan.Stages[1].Service) * slow)
	s := scene{profile: "vllm-omni", options: simulate.Options{Seed: seed, Rate: 0.5, Generation: generation, Plan: &plan},
		warmup: 20 * time.Second, length: 120 * time.Second, interval: 2 * time.Second, slices: 4 * time.Second}
	return s.run(t, generation)
}

// TestCompareOmni: two generations of vLLM-Omni have other names for nearly
// everything. Compared, they meet, and a slower stage 1 is named: not only the
// end-to-end time is worse.
func TestCompareOmni(t *testing.T) {
	t.Parallel()
	slower := []*summary.Run{omniRun(t, "g4", 2, 1.5)}
	for _, old := range []string{"g0", "g2"} {
		before := omniRun(t, old, 1, 1)
		stageNamed(t, before, slower[0])
		r := versus(t, []*summary.Run{before}, slower, "")
		stages, renamed := map[string][]string{}, 0
		for i := range r.Rows {
			row := &r.Rows[i]
			if strings.Contains(strings.Join(row.Notes, ";"), "renamed: ") {
				renamed++
			}
			if row.Verdict() == compare.Worse && row.Stat != "rate" {
				stage, _ := row.Labels.Get("stage")
				stages[stage] = append(stages[stage], row.Family+" "+row.Stat)
			}
		}
		t.Logf("%s: %d rows, %d of them renamed; worse by stage: %v", old, len(r.Rows), renamed, stages)
		if renamed < 10 {
			t.Errorf("%s: %d rows of renamed families", old, renamed)
		}
		if !strings.Contains(strings.Join(stages[""], ";"), "e2e") {
			t.Errorf("%s: the end-to-end time is not worse: %v", old, stages[""])
		}
		if len(stages["1"]) == 0 {
			t.Errorf("%s: nothing of stage 1 is worse", old)
		}
		if len(stages["0"]) > 0 {
			t.Errorf("%s: stage 0 is as it was, and worse are %v", old, stages["0"])
		}
	}
}

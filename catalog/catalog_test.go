package catalog_test

import (
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
)

// A family is found under all its names.
func TestFamily(t *testing.T) {
	c := known(t)
	check := func(name, want string) {
		t.Helper()
		f, ok := c.Family(name)
		if got := ""; ok {
			got = f.Name
			if got != want {
				t.Errorf("%s: found %q, want %q", name, got, want)
			}
		} else if want != "" {
			t.Errorf("%s: not found, want %q", name, want)
		}
	}
	check("vllm:num_requests_running", "vllm:num_requests_running")
	check("ray_vllm:num_requests_running", "vllm:num_requests_running")
	check("ray_vllm_num_requests_running", "vllm:num_requests_running")
	check("vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc")
	check("vllm:nothing_of_the_kind", "")
	if _, ok := (*catalog.Catalog)(nil).Family("vllm:num_requests_running"); ok {
		t.Error("a nil catalog knows a family")
	}
}

const userTable = `pack: mine
prefixes: ["my_", "old_"]
relabel: {stage_id: stage}
families:
  - name: wait_s
    aliases: [wait_ms]
    scales: {wait_ms: 0.001}
    meaning: Time in line.
    unit: seconds
    better: lower
    moves: finish
    staleness: 2s
    aggregate: merge
    canonical: queue_s
    identity: [stage]
inputs:
  peak_tflops: 989
  slo: {ttft_s: 0.5}
`

// A user's table adds families, replaces ours and tells what a server cannot.
func TestUserTable(t *testing.T) {
	c, err := catalog.New(strings.NewReader(userTable), strings.NewReader(
		"pack: vllm\nfamilies: [{name: 'vllm:num_requests_running', meaning: Mine., better: higher}]"))
	if err != nil {
		t.Fatal(err)
	}
	f, ok := c.Family("old_wait_ms")
	if !ok || f.Name != "my_wait_s" || f.Scales["old_wait_ms"] != 0.001 || f.Better != catalog.LowerBetter ||
		f.Staleness != 2e9 ||
		f.Aggregate != catalog.AggregateMerge || f.Canonical != "queue_s" || f.Identity[0] != "stage" || f.Moves != "finish" {
		t.Fatalf("got %+v", f)
	}
	if f, _ := c.Family("vllm:num_requests_running"); f.Meaning != "Mine." || f.Better != catalog.HigherBetter {
		t.Errorf("not replaced: %+v", f)
	}
	if f, _ := c.Family("ray_vllm_num_requests_running"); f == nil || f.Meaning != "Mine." {
		t.Errorf("not replaced as Ray spells it: %+v", f)
	}
	if in := c.Inputs(); in.PeakTFLOPS != 989 || in.SLO["ttft_s"] != 0.5 {
		t.Errorf("inputs: %+v", in)
	}
	l := metric.LabelsFromMap(map[string]string{"stage_id": "1", "x": "y"})
	if got := c.Labels(f, l); got != metric.LabelsFromMap(map[string]string{"stage": "1", "x": "y"}) {
		t.Errorf("labels %v", got)
	}
}

// What is wrong with a table is said, with its line.
func TestBadTables(t *testing.T) {
	check := func(table, want string) {
		t.Helper()
		_, err := catalog.New(strings.NewReader(table))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", table, err, want)
		}
	}
	one := func(entry string) string { return "pack: e\nfamilies:\n  - {" + entry + "}" }
	check("engines: e", `1:1:1: unknown key "engines" of a pack`)
	check(one("name: a, meaning: M., bettr: higher"), `1:3:28: unknown key "bettr"`)
	check(one("name: a"), "1:3:5: family \"a\": needs a name and a meaning")
	check("families:\n  - {name: a, meaning: M.}", "needs a pack")
	check(one("name: a, meaning: M., type: counte"), `unknown type "counte"`)
	check(one("name: a, meaning: M., better: more"), "must be higher, lower or neutral")
	check(one("name: a, meaning: M., aggregate: avg"), "aggregate")
	check(one("name: a, meaning: M., moves: never"), "moves")
	check(one("name: a, meaning: M., staleness: soon"), "no duration")
	check(one("name: a, meaning: M., canonical: ttft"), "unknown id")
	check(one("name: 'a b', meaning: M."), "no name of a family")
	check(one("name: a, meaning: M., aliases: ['vllm:num_requests_waiting']"),
		"belongs to vllm:num_requests_waiting of vllm")
	check(one("name: a, meaning: M., aliases: ['sglang_num_running_reqs']"),
		"name sglang_num_running_reqs belongs to sglang:num_running_reqs of sglang")
	check(one("name: /a(/, meaning: M."), `family "/a(/": error parsing regexp`)
	check(one("name: /a.*/, unit: seconds"), "of a pattern only the meaning is told")
	check(one("name: a, meaning: M., scales: {b: 2}"), "factor of an alias")
	check(one("name: a, meaning: M., implied: {b: {c: d}}"), "no alias")
	check("inputs: {slo: {ttft: 1}}", "slo ttft")
	check("inputs: {peak_tflops: -1}", "a peak of -1")
	check("pack: [", "read catalog 1")
	check(strings.Repeat("# \n", 2<<20), "larger than")
}

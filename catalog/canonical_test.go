package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
)

// The notes of section 8 of the design document apply where they say.
func TestComparability(t *testing.T) {
	check := func(id, a, b, letters string) {
		t.Helper()
		for _, pair := range [][2]string{{a, b}, {b, a}} {
			got := ""
			for _, n := range catalog.Comparability(id, pair[0], pair[1]) {
				got += n.Letter
				if !strings.HasSuffix(n.Text, ".") {
					t.Errorf("note %s: %q", n.Letter, n.Text)
				}
			}
			if got != letters {
				t.Errorf("%s of %s and %s: notes %q, want %q", id, pair[0], pair[1], got, letters)
			}
		}
	}
	check("ttft_s", "vllm", "vllm", "")
	check("ttft_s", "vllm", "trtllm", "a")
	check("ttft_mean_s", "sglang", "trtllm", "a")
	check("ttft_s", "vllm", "sglang", "cn")
	check("ttft_mean_s", "vllm", "sglang", "")
	check("e2e_s", "vllm", "trtllm", "")
	check("e2e_s", "vllm", "dynamo", "c")
	check("tpot_mean_s", "vllm", "llamacpp", "b")
	check("tpot_mean_s", "vllm", "tgi", "i")
	check("output_tok_s", "vllm", "trtllm", "d")
	check("output_tok_s", "vllm", "sglang", "")
	check("output_tokens", "vllm", "sglang", "d")
	check("output_tok_s", "trtllm", "tgi", "")
	check("input_tok_s", "vllm", "llamacpp", "de")
	check("output_tok_s", "vllm", "vllm-omni", "df")
	check("request_rate", "vllm", "tgi", "g")
	check("success", "triton", "tgi", "")
	check("running", "vllm", "dynamo-worker", "j")
	check("running", "vllm", "dynamo", "j")
	check("no_such_id", "vllm", "dynamo", "")
}

// Labels that differ between runs of the same are known, of all families and of
// some; those that say what a series is of are none of them.
func TestLabels(t *testing.T) {
	c := known(t)
	check := func(family, label string, want bool) {
		t.Helper()
		if got := c.Volatile(family, label); got != want {
			t.Errorf("%s{%s}: volatile %v, want %v", family, label, got, want)
		}
	}
	check("vllm:num_requests_running", "pid", true)
	check("vllm:num_requests_running", "model_name", false)
	check("vllm:num_requests_running", "engine", false)
	check("vllm:lora_requests_info", "running_lora_adapters", true)
	check("vllm:cache_config_info", "block_size", true)
	check("nobody_knows", "pod", true)
	check("nobody_knows", "block_size", false)
	for _, l := range catalog.KeptLabels() {
		if slices.Contains(catalog.ReplicaLabels(), l) || slices.Contains(catalog.VolatileLabels(), l) {
			t.Errorf("label %s is kept and is not", l)
		}
	}
}

// Canonical ids are those of families and rules, each known and of a unit that
// agrees.
func TestCanonicalIDs(t *testing.T) {
	c := known(t)
	used := map[string]int{}
	for _, f := range c.Families() {
		used[f.Canonical]++
	}
	for _, p := range catalog.Packs() {
		for i := range p.Rules {
			r := &p.Rules[i]
			used[r.Canonical]++
			id, ok := catalog.CanonicalOf(r.Canonical)
			if r.Canonical == "" {
				continue
			}
			if !ok {
				t.Errorf("%s of %s: unknown id %q", r.Name, p.Name, r.Canonical)
			}
			if strings.HasSuffix(r.Canonical, "_mean_s") && r.Unit != id.Unit {
				t.Errorf("%s of %s: in %s, %s is in %s", r.Name, p.Name, r.Unit, id.ID, id.Unit)
			}
		}
	}
	for _, id := range catalog.Canonicals() {
		if used[id.ID] == 0 {
			t.Errorf("nothing is %s", id.ID)
		}
		if id.Meaning == "" || id.Unit == "" {
			t.Errorf("%+v", id)
		}
	}
}

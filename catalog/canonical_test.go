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
			for _, n := range known(t).Comparability(catalog.Quantity{ID: id, Engine: pair[0]},
				catalog.Quantity{ID: id, Engine: pair[1]}) {
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
	check("input_tok_s", "vllm", "llamacpp", "d")
	check("input_tokens", "vllm", "llamacpp", "de")
	check("output_tok_s", "vllm", "vllm-omni", "df")
	check("request_rate", "vllm", "tgi", "g")
	check("success", "triton", "tgi", "")
	check("running", "vllm", "dynamo-worker", "j")
	check("running", "vllm", "dynamo", "j")
	check("no_such_id", "vllm", "dynamo", "")
}

// A caveat between ids is told where both stand side by side, of one engine or
// two, and those of an engine alone need no other.
func TestCaveats(t *testing.T) {
	letters := func(list []catalog.Caveat) string {
		out := ""
		for _, c := range list {
			out += c.Letter
		}
		return out
	}
	between := func(a, b catalog.Quantity, want string) {
		t.Helper()
		for range 2 {
			if got := letters(known(t).Comparability(a, b)); got != want {
				t.Errorf("%+v and %+v: caveats %q, want %q", a, b, got, want)
			}
			a, b = b, a
		}
	}
	q := func(id, engine string) catalog.Quantity { return catalog.Quantity{ID: id, Engine: engine} }
	between(q("itl_s", "vllm"), q("tpot_s", "vllm"), "b")
	between(q("itl_s", "vllm"), q("tpot_s", "tgi"), "b")
	between(q("itl_mean_s", "sglang"), q("tpot_mean_s", "llamacpp"), "")
	between(q("itl_s", "vllm"), q("itl_s", "trtllm"), "")
	between(q("tpot_s", "vllm"), q("tpot_mean_s", "tgi"), "")
	between(q("ttft_s", "vllm"), q("e2e_s", "sglang"), "")
	between(q("request_rate", "dynamo"), q("request_rate", "dynamo-worker"), "p")
	own := func(id, engine, want string) {
		t.Helper()
		if got := letters(known(t).Caveats(q(id, engine))); got != want {
			t.Errorf("%s of %s: caveats %q, want %q", id, engine, got, want)
		}
	}
	own("ttft_s", "sglang", "n")
	own("ttft_mean_s", "sglang", "")
	own("output_tok_s", "tgi", "d")
	own("output_tok_s", "sglang", "")
	own("output_tok_s", "vllm-omni", "df")
	own("request_rate", "triton-stats", "o")
	own("tpot_s", "tgi", "")
	if got := letters(known(t).AllCaveats()); got != "abcdefghijklmnopqr" {
		t.Errorf("caveats %q", got)
	}
	list := catalog.SortCaveats([]catalog.Caveat{{Letter: "c"}, {Letter: "a"}, {Letter: "c"}})
	if got := letters(list); got != "ac" {
		t.Errorf("sorted %q", got)
	}
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
	for _, l := range catalog.Embedded().KeptLabels() {
		if slices.Contains(catalog.Embedded().ReplicaLabels(), l) || slices.Contains(catalog.Embedded().VolatileLabels(), l) {
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

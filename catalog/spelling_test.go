package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/testkit"
)

// Ray puts a prefix before the families of an engine, and a collector may take the colons: the results are the same.
func TestWrappedNames(t *testing.T) {
	derive := func(prefix string) (out []string) {
		text := strings.ReplaceAll(string(testkit.Data(t, "bodies/sglang-driven.prom")), "sglang:", prefix)
		w := &watch{bodies: []body{{}}, at: []float64{0}}
		w.see(text, 1000)
		for _, d := range known(t).Derive(w.stretch(), catalog.Window) {
			if d.Pack != "process" {
				var one strings.Builder
				line(&one, "", d)
				out = append(out, one.String())
			}
		}
		return out
	}
	plain := derive("sglang:")
	if len(plain) < 20 {
		t.Fatalf("%d results of a plain body", len(plain))
	}
	for _, prefix := range []string{"ray_sglang:", "ray_sglang_", "sglang_"} {
		if got := derive(prefix); !slices.Equal(got, plain) {
			t.Errorf("%s: %d results differ from %d of the plain body", prefix, len(got), len(plain))
		}
	}
}

const generations = `pack: e
prefixes: ["e:", "old_e:"]
split: [model]
identity: [model]
families:
  - {name: requests, type: counter, meaning: Requests., same: ["=asked", "=old_asked"], aggregate: sum}
quantities:
  throughput: [{name: request_rate, is: rate(requests), help: Requests.}]
`

// Older names of a family are never added to newer ones, even if their series have fewer labels; alone they count.
func TestGenerations(t *testing.T) {
	const newer, older = "# TYPE e:requests counter\ne:requests{who=\"a\"} 20\ne:requests{who=\"b\"} 10\n",
		"# TYPE old_asked counter\nold_asked 30\n"
	c, err := catalog.New(strings.NewReader(generations))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{newer + older, older + newer, newer, older} {
		w := &watch{bodies: []body{{}}, at: []float64{0}}
		w.see(text, 10)
		derived{t, c.Derive(w.stretch(), catalog.Window)}.want("request_rate", "ok", 3)
	}
}

// llm-d's endpoint picker shows older names beside newer ones, with fewer labels.
func TestEndpointPicker(t *testing.T) {
	const newer = "# TYPE llm_d_epp_request_total counter\n" +
		"llm_d_epp_request_total{model_name=\"m\",target_model_name=\"m\",fairness_id=\"a\",priority=\"0\"} 20\n" +
		"llm_d_epp_request_total{model_name=\"m\",target_model_name=\"m\",fairness_id=\"b\",priority=\"0\"} 10\n"
	const older = "# TYPE inference_objective_request_total counter\n" +
		"inference_objective_request_total{model_name=\"m\",target_model_name=\"m\",priority=\"0\"} 30\n"
	for _, text := range []string{newer + older, older, newer} {
		w := &watch{bodies: []body{{}}, at: []float64{0}}
		w.see(text, 10)
		derived{t, known(t).Derive(w.stretch(), catalog.Window)}.want("request_rate", "ok", 3, "model_name", "m")
	}
}

// A pattern makes names known, and nothing of them.
func TestPatterns(t *testing.T) {
	c, err := catalog.New(strings.NewReader("pack: e\nfamilies: [{name: '/e_internal_.*/', meaning: Internals.}]"))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Family("e_internal_queue"); ok || !c.Known("e_internal_queue") || c.Known("my_e_internal_queue") ||
		!c.Known("vllm:prompt_tokens_total") {
		t.Error("a pattern is a family, or makes other names known than it says")
	}
}

package headline_test

import (
	"slices"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/headline"
)

// TestWords: each word is one quantity of the catalog, has the unit that the catalog gives it, and reads back in every
// spelling.
func TestWords(t *testing.T) {
	names := map[string]bool{}
	for _, w := range headline.Words() {
		if names[w.Name] {
			t.Errorf("%s is there twice", w.Name)
		}
		names[w.Name] = true
		if c, ok := catalog.CanonicalOf(w.ID); ok && c.Unit != w.Unit {
			t.Errorf("%s is in %s, %s in %s", w.Name, w.Unit, w.ID, c.Unit)
		}
		for _, name := range append(headline.Names(w.ID), headline.Names(w.Derived())...) {
			got, stat, ok := headline.Parse(name)
			if !ok || got.Name != w.Name {
				t.Errorf("%s is %q %q %v, want %s", name, got.Name, stat, ok, w.Name)
			}
		}
	}
	for _, c := range catalog.Canonicals() {
		if _, _, ok := headline.Parse(c.ID); !ok {
			t.Errorf("%s of the catalog has no word", c.ID)
		}
	}
	for _, r := range headline.Rows() {
		if got, ok := headline.Named(r.Name()); !ok || got.Name() != r.Name() || got.Margin != r.Margin {
			t.Errorf("%s is read as %+v", r.Name(), got)
		}
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string][2]string{"ttft p99": {"ttft", "p99"}, "TTFT_p99.9": {"ttft", "p99.9"},
		"ttft_s": {"ttft", ""}, "ttft_s p50": {"ttft", "p50"}, "ttft_mean_s": {"ttft", "mean"}, "e2e avg": {"e2e", "mean"},
		"output_tok_s": {"output_tok_s", ""}, "output_tokens total": {"output_tokens", "total"},
		"kv_usage max": {"kv_usage", "max"}, "isl mean": {"isl", ""}, "queue_share": {"queue_share", ""}} {
		if w, stat, ok := headline.Parse(text); !ok || w.Name != want[0] || stat != want[1] {
			t.Errorf("%s is %s %s %v", text, w.Name, stat, ok)
		}
	}
	for _, text := range []string{"", "tttf", "ttft_p", "ttft_max", "running_p99", "vllm:x_p99", "request_rate mean",
		"preemption p50", "_p99"} {
		if w, stat, ok := headline.Parse(text); ok {
			t.Errorf("%q is %s %s", text, w.Name, stat)
		}
	}
	for _, name := range []string{"ttft", "ttft_p99", "kv_usage_max", "preemption_total"} {
		if !slices.Contains(headline.Spellings(), name) {
			t.Errorf("nobody who misspells %s would be told", name)
		}
	}
}

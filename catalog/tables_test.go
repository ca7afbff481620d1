package catalog_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/units"
)

// Every entry of our tables is well formed: what New does not refuse, because a
// user may do as he likes.
func TestTables(t *testing.T) {
	c := known(t)
	engines := map[string]int{}
	sentence := regexp.MustCompile(`^([A-Z0-9]|gRPC )[^\n]*[.]$`)
	for _, f := range c.Families() {
		engines[f.Engine]++
		bad := func(what string, v any) { t.Errorf("%s: %s %v", f.Name, what, v) }
		if !sentence.MatchString(f.Meaning) {
			bad("the meaning is no sentence:", f.Meaning)
		}
		if !units.Known(f.Unit) {
			bad("unknown unit", f.Unit)
		}
		for _, n := range append([]string{f.Name}, f.Aliases...) {
			if g, ok := c.Family(n); !ok || g != f {
				bad("is not found as", n)
			}
		}
		if f.Type == metric.Counter && f.Engine != "triton" && strings.HasSuffix(f.Name, "_total") {
			bad("is a counter:", "recordings have no _total")
		}
		switch histogram := f.Type == metric.Histogram; {
		case f.Aggregate == catalog.AggregateMerge && !histogram && f.Type != metric.Unknown:
			bad("merges, but is a", f.Type)
		case histogram && f.Aggregate != catalog.AggregateMerge && f.Aggregate != catalog.AggregateNever &&
			f.Aggregate != catalog.AggregateRank0:
			bad("a histogram that is aggregated by", f.Aggregate)
		case f.Aggregate == catalog.AggregateByType && f.Type == metric.Gauge:
			bad("a gauge without a rule of", "aggregation")
		}
		if id, ok := catalog.CanonicalOf(f.Canonical); f.Canonical != "" && !ok {
			bad("unknown id", f.Canonical)
		} else if ok && strings.HasSuffix(id.ID, "_s") && !slices.Contains([]string{"seconds", "milliseconds",
			"microseconds", "nanoseconds", "tokens/s"}, f.Unit) {
			bad(id.ID+" in", f.Unit)
		}
		for _, l := range f.Identity {
			if slices.Contains(f.Volatile, l) {
				bad("label is identity and volatile:", l)
			}
		}
		if len(f.Above) > 0 && f.Type != metric.Gauge {
			bad("levels of a", f.Type)
		}
	}
	for _, e := range []string{"vllm", "sglang", "trtllm", "dynamo", "triton", "torchserve", "tgi", "llamacpp", "ray",
		"lmcache", "dcgm", "generic"} {
		if engines[e] < 10 {
			t.Errorf("%d families of %s", engines[e], e)
		}
	}
}

// Every rule says what it is, in a known unit; each pack has up to a dozen
// headlines.
func TestRules(t *testing.T) {
	heads := map[string]int{}
	for _, p := range catalog.Packs() {
		named := map[string]bool{}
		for i := range p.Rules {
			r := &p.Rules[i]
			if r.Name == "" && p.Name == catalog.TritonPack || p.Name == catalog.TritonPerfAnalyzerPack {
				continue // results name themselves
			}
			bad := func(what string, v any) { t.Errorf("%s of %s: %s %v", r.Name, p.Name, what, v) }
			if r.Name == "" || named[r.Name] {
				bad("the name is empty or taken", "")
			}
			named[r.Name] = true
			if !units.Known(r.Unit) {
				bad("unknown unit", r.Unit)
			}
			if p.Name != catalog.TritonPack && (r.Help == "" || !strings.HasSuffix(r.Help, ".") || r.Text == "") {
				bad("help or formula missing:", r.Help+" "+r.Text)
			}
			if r.Headline {
				if heads[p.Name]++; r.Category == catalog.Other || r.Category == catalog.Check {
					bad("a headline about", r.Category)
				}
			}
		}
	}
	for pack, n := range heads {
		if n > 17 {
			t.Errorf("%d headlines of %s, of which a dozen explain a run", n, pack)
		}
	}
	if heads[catalog.VLLMPack] < 10 {
		t.Errorf("%d headlines of vLLM", heads[catalog.VLLMPack])
	}
}

package catalog_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/fuzzbound"
)

// FuzzNew reads what a file of --catalog may hold: it ends without a panic, and
// families that come of it are found by every name they have.
func FuzzNew(f *testing.F) {
	files, err := filepath.Glob("packs/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatal("no tables to begin with", err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data[:min(len(data), 2000)]))
	}
	for _, s := range []string{
		"pack: e\nfamilies:\n- {name: a, meaning: m, aliases: [b], scales: {b: 2}, implied: {b: {x: y}}}\ninputs: " +
			"{peak_tflops: 1, slo: {ttft_s: 1}}\n",
		"pack: e\nprefixes: ['p:', 'q:']\nrelabel: {a: b}\nfamilies: [{name: a, meaning: m, type: counter, better: " +
			"higher, staleness: 2s, above: [.nan]}]",
		"a: &a [x,x,x]\nb: &b [*a,*a]\nfamilies: *b\n", "families: [null]", "families: [&a {name: *a}]",
		"pack: 1\n---\npack: 2\n", "\xff\xfe",
		"pack: e\nfamilies: [{<<: {name: a}, meaning: m}]", "inputs: {slo: {ttft_s: .inf}}", "!!binary x", "? {a: b}\n: c",
		strings.Repeat("[", 2000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		defer fuzzbound.Check(t)()
		if len(text) > 1<<16 {
			return
		}
		c, err := catalog.New(strings.NewReader(text))
		if err != nil {
			if c != nil {
				t.Error("an error and a catalog")
			}
			return
		}
		for _, x := range c.Families() {
			for _, name := range append([]string{x.Name}, x.Aliases...) {
				if got, ok := c.Family(name); !ok || got.Name != x.Name {
					t.Fatalf("%q of %q is not found: %v %v", name, x.Name, got, ok)
				}
			}
		}
	})
}

package catalog_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
)

// TestPinnedNames is the gate of releases: no pinned table of names, one for each server, has a family that no pack
// knows. A new release fails here, once its table is renewed (docs/contributing.md). Of node_exporter's 1,226 names in
// the sources four are of its own tests, testmetric1_1 to testmetric2_2.
func TestPinnedNames(t *testing.T) {
	c := known(t)
	want := map[string]int{"amd-device-metrics-exporter": 183, "cadvisor": 118, "dcgm": 56, "dynamo": 273,
		"envoy-ai-gateway": 9, "intel-xpumd": 8, "llamacpp": 16, "llm-d-router": 124, "lmcache": 85, "lmcache-mp": 94,
		"lmdeploy": 33, "mooncake-client": 26, "mooncake-master": 154, "nixl": 16, "node_exporter": 1222,
		"other-python-servers": 20, "ray-serve": 93, "sglang": 184, "sglang-gateway": 43, "tgi": 26, "torchserve": 21,
		"triton": 42, "triton-trtllm-backend": 9, "triton-vllm-backend": 8, "trtllm": 65, "vllm": 138, "vllm-omni": 42}
	files, err := filepath.Glob("packs/testdata/*.names")
	if err != nil || len(files) != len(want) {
		t.Fatalf("%d tables of %d: %v", len(files), len(want), err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		engine, n := strings.TrimSuffix(filepath.Base(path), ".names"), 0
		for line := range strings.Lines(string(text)) {
			name, _, _ := strings.Cut(line, "\t")
			if n++; !c.Known(name) {
				t.Errorf("%s: no pack knows %s", path, name)
			}
		}
		if n != want[engine] {
			t.Errorf("%s: %d names, want %d", path, n, want[engine])
		}
	}
}

// TestDerivedCounts keeps the numbers of quantities that each server is to have at least.
func TestDerivedCounts(t *testing.T) {
	names := map[string]int{}
	for _, p := range catalog.Packs() {
		names[p.Name] += len(p.Rules)
	}
	for _, w := range []struct {
		packs string
		least int
	}{{"vllm", 105}, {"sglang", 70}, {"sglang-gateway", 14}, {"dynamo dynamo-worker dynamo-path", 60}, {"vllm-omni", 80},
		{"trtllm", 48}, {"tgi", 35}, {"torchserve torchserve-host", 18}, {"lmcache", 20}, {"lmcache-server", 10},
		{"ray ray-proxy", 28}, {"llamacpp", 19}, {"lmdeploy", 25}, {"llm-d-epp", 27}, {"mooncake", 8}, {"nixl", 4},
		{"envoy-ai-gateway", 5}, {"amd", 10}, {"xpum", 4}, {"dcgm", 27}, {"host container", 12},
		{"bentoml kserve mlserver", 8}} {
		n := 0
		for pack := range strings.FieldsSeq(w.packs) {
			n += names[pack]
		}
		if n < w.least {
			t.Errorf("%s: %d quantities, want %d", w.packs, n, w.least)
		}
	}
}

// TestTritonCounts is the row of Triton, whose natives name their results: what recordings of TestResults have, less
// the labels of models and GPUs. (The document has 106, counted in a manual that listed some results twice.)
func TestTritonCounts(t *testing.T) {
	text, err := os.ReadFile("testdata/results.golden")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`^\S+ (triton|triton-stats|triton-host|perf_analyzer) ([^ {]+(?:{[^}]*})?) `)
	scope := regexp.MustCompile(`\b(model|version|model_version|gpu_uuid)="[^"]*",?`)
	seen := map[string]bool{}
	for l := range strings.Lines(string(text)) {
		if m := line.FindStringSubmatch(l); m != nil {
			seen[m[1]+" "+scope.ReplaceAllString(m[2], "")] = true
		}
	}
	if len(seen) < 100 {
		t.Errorf("%d quantities, want 100", len(seen))
	}
}

// formulaLines are what servers gained, and what a program in another language makes of it by the formulas.
func formulaLines(t tester) (gained string, results []string) {
	data, err := os.ReadFile("testdata/formulas.txt")
	if err != nil {
		t.Fatalf("%v", err)
	}
	var b strings.Builder
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "= "); ok {
			results = append(results, strings.TrimSpace(rest))
		} else if line[0] != '#' {
			b.WriteString(line)
		}
	}
	return b.String(), results
}

// tested reports whether the results have a quantity.
func tested(results []string, pack, name string) bool {
	return slices.ContainsFunc(results, func(r string) bool {
		f := strings.Fields(r)
		of, _, _ := strings.Cut(f[1], "{")
		return f[0] == pack && of == name
	})
}

// TestFormulaResults compares each with what the catalog makes of it.
func TestFormulaResults(t *testing.T) {
	gained, results := formulaLines(t)
	list := known(t).Derive(catalog.Interval{Seconds: 10, Gains: exposed(t, exposition(gained))}, catalog.Window)
	for _, text := range results {
		f := strings.Fields(text)
		name, labels, _ := strings.Cut(f[1], "{")
		want, err := strconv.ParseFloat(f[len(f)-1], 64)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(list, func(d catalog.Derived) bool {
			for pair := range strings.SplitSeq(strings.TrimSuffix(labels, "}"), ",") {
				if pair != "" && !strings.Contains(d.Labels.String(), pair) {
					return false
				}
			}
			return d.Pack == f[0] && d.Name == name
		})
		if i < 0 || !list[i].Status.Defined() || !close(list[i].Value, want) {
			t.Errorf("%s, but there is %+v", text, list[max(0, i)])
		}
	}
}

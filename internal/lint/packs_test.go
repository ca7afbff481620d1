package lint_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// familyOfEngine matches what only names of engines' families have in them. What is known of engines is in packs.
var familyOfEngine = regexp.MustCompile(`\b(vllm|sglang|llamacpp|lmcache|vllm_omni):|` +
	`\b(nv_|DCGM_|trtllm_|triton_stats_|dynamo_|llm_d_|ts_inference_|ts_queue_)|^Requests[245]XX|CPUUtilization`)

// namesFamilies are the files that may have some: natives, and simulated servers with their flags; and sources
// that make the families themselves.
var namesFamilies = []string{
	"catalog/energy.go", "catalog/natives.go", "catalog/omni*.go", "catalog/triton*.go", "internal/simulate/*.go",
	"source/triton/families.go", "source/torchserve/*.go",
	"cmd/scrapestat/simulate.go",
}

// TestFamilyNames finds names of engines' families in Go that no file of the list may have, and files of the list
// that have none any more.
func TestFamilyNames(t *testing.T) {
	const root = "../.."
	used := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{"testdata", "bench", "lab", "lint", ".git"}, d.Name()):
			return filepath.SkipDir
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(namesFamilies, func(p string) bool { ok, _ := filepath.Match(p, name); return ok })
		ast.Inspect(f, func(n ast.Node) bool {
			l, ok := n.(*ast.BasicLit)
			if ok && l.Kind == token.STRING && familyOfEngine.MatchString(strings.Trim(l.Value, "\"`")) {
				if at < 0 {
					t.Errorf("%s:%d: %s names a family of an engine: tell it in its pack", name, fset.Position(l.Pos()).Line,
						l.Value[:min(len(l.Value), 60)])
				} else {
					used[namesFamilies[at]] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range namesFamilies {
		if !used[p] {
			t.Errorf("%s names no family any more: take it off the list", p)
		}
	}
}

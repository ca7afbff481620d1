package faults_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/internal/badserver"
)

var update = flag.Bool("update", false, "rewrite docs/data/reliability.md")

// idOf finds the id at the beginning of the name of a subtest.
var idOf = regexp.MustCompile(`^([TPSDEX][0-9]{2})( |$)`)

// tested returns the tests of each id: the calls of t.Run, or of a local run,
// whose first argument begins with one, in all test files of the module.
func tested(t *testing.T, root string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git" || d.Name() == "bench") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		where, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(f.Name.Name, "TestCatalogue") {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if id := idOfCall(n); id != "" && !slices.Contains(out[id], where+" "+f.Name.Name) {
					out[id] = append(out[id], where+" "+f.Name.Name)
				}
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// idOfCall returns the id that a call of t.Run or run names.
func idOfCall(n ast.Node) string {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) < 2 {
		return ""
	}
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		if f.Sel.Name != "Run" {
			return ""
		}
	case *ast.Ident:
		if f.Name != "run" {
			return ""
		}
	default:
		return ""
	}
	name := call.Args[0]
	if sum, ok := name.(*ast.BinaryExpr); ok { // "D01 " + sig.String()
		name = sum.X
	}
	lit, ok := name.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	text, err := strconv.Unquote(lit.Value)
	if m := idOf.FindStringSubmatch(text); err == nil && m != nil {
		return m[1]
	}
	return ""
}

// besides are the ids whose tests are functions of their own.
var besides = map[string]string{
	"D03": "cmd/scrapestat TestFaultKill",
	"P22": "scrape FuzzDecode",
}

// TestComplete fails when an id of the catalogue has no test, when a test names
// an id that is none, and when a server of a case is missing.
func TestComplete(t *testing.T) {
	have := tested(t, "../..")
	all := Catalogue()
	if len(all) != 93 {
		t.Errorf("the catalogue has %d cases, want 93", len(all))
	}
	known := map[string]bool{}
	for _, c := range all {
		known[c.ID] = true
		if len(have[c.ID]) == 0 && besides[c.ID] == "" {
			t.Errorf("%s (%s) has no test", c.ID, c.Title)
		}
		if c.ID[0] == 'T' || c.ID[0] == 'P' {
			if _, err := badserver.Case(c.ID); err != nil {
				t.Error(err)
			}
		}
	}
	for id, where := range have {
		if !known[id] {
			t.Errorf("%v name %s, which is no case", where, id)
		}
	}
	for id, where := range besides {
		checkTest(t, id, where)
	}
	checkDocument(t, all, have)
}

// checkTest wants a package and a test of it to be there.
func checkTest(t *testing.T, id, where string) {
	t.Helper()
	folder, name, _ := strings.Cut(where, " ")
	paths, err := filepath.Glob("../../" + folder + "/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(paths, func(path string) bool {
		data, err := os.ReadFile(path)
		return err == nil && strings.Contains(string(data), "func "+name+"(")
	}) {
		t.Errorf("%s: %s has no %s", id, folder, name)
	}
}

// writeFuzzed writes what the fuzz targets have been through.
func writeFuzzed(t *testing.T, b *strings.Builder) {
	t.Helper()
	all, err := ReadFuzzed("../../.ci/fuzzgoals", "testdata/fuzzed.txt")
	if err != nil {
		t.Fatal(err)
	}
	b.WriteString("\n## Executions of the fuzz targets\n\nIn all runs of `make fuzz-goals` so far; those that " +
		"coverage guides find inputs. Of most targets these came after the others, which had the seeds to mutate.\n" +
		"Targets that try the same add up to one goal. What failures showed is mended, and their inputs are seeds.\n\n| " +
		"tried | target | executions | of them guided | wanted | new inputs | failures found " +
		"|\n|---|---|---|---|---|---|---|\n")
	everyFuzzTarget(t, all)
	for i, f := range all {
		checkTest(t, ".ci/fuzzgoals", f.Package+" "+f.Target)
		fmt.Fprintf(b, "| %s | `%s` %s | %d | %d | %d | %d | %d |\n", strings.ReplaceAll(f.Kind, "-", " "), f.Package,
			f.Target, f.Executions, f.Guided, f.Wanted, f.Inputs, f.Failures)
		if i+1 < len(all) && all[i+1].Kind == f.Kind {
			continue
		}
		executions, guided, wanted, targets := 0, 0, 0, 0
		for _, g := range all {
			if g.Kind == f.Kind {
				executions, guided, wanted, targets = executions+g.Executions, guided+g.Guided, wanted+g.Wanted, targets+1
			}
		}
		if targets > 1 {
			fmt.Fprintf(b, "| **%s** | all | **%d** | **%d** | **%d** | | |\n", strings.ReplaceAll(f.Kind, "-", " "),
				executions, guided, wanted)
		}
	}
}

// everyFuzzTarget wants a goal for each fuzz target of the module.
func everyFuzzTarget(t *testing.T, goals []Fuzzed) {
	t.Helper()
	const root = "../.."
	declared := regexp.MustCompile(`(?m)^func (Fuzz\w*)\(`)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root || d.Name() == ".git" {
				return fs.SkipDir // another module
			}
			return nil
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		for _, m := range declared.FindAllSubmatch(text, -1) {
			if !slices.ContainsFunc(goals, func(f Fuzzed) bool {
				return f.Package == filepath.ToSlash(folder) && f.Target == string(m[1])
			}) {
				t.Errorf(".ci/fuzzgoals has no goal for %s of %s", m[1], folder)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkDocument wants docs/data/reliability.md to be what the catalogue, the tests and
// the figures of testdata/figures make it; -update writes it.
func checkDocument(t *testing.T, all []Case, have map[string][]string) {
	t.Helper()
	const path = "../../docs/data/reliability.md"
	kept, err := Figures("testdata/figures")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("# Reliability: long runs, fuzzing and every case\n\nMade by `go test ./internal/faults -run " +
		"TestComplete -update`; " +
		"what is promised, and how it was tried: [reliability](../reliability.md).\n\n## Long runs\n\nWhat the long " +
		"runs have shown, as they said it, and the command that shows it again.\n\n| run | what it said |\n|---|---|\n")
	for _, k := range kept {
		fmt.Fprintf(&b, "| %s | %s |\n", k.Name, k.Figure)
	}
	b.WriteString("\n```sh\n")
	var commands []string
	for _, k := range kept {
		if !slices.Contains(commands, k.Command) { // one may leave several figures
			commands = append(commands, k.Command)
			b.WriteString(k.Command + "\n")
		}
	}
	b.WriteString("```\n")
	writeFuzzed(t, &b)
	area := ""
	for _, c := range all {
		if a := Area(c.ID); a != area {
			area = a
			fmt.Fprintf(&b, "\n## %s\n\n| id | tried | test |\n|---|---|---|\n", area)
		}
		where := slices.Clone(have[c.ID])
		if x := besides[c.ID]; x != "" {
			where = append(where, x)
		}
		slices.Sort(where)
		for i, w := range where {
			where[i] = "`" + strings.Replace(w, " ", "` ", 1)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.ID, c.Title, strings.Join(where, ", "))
	}
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != b.String() {
		t.Error("docs/data/reliability.md is not what the tests say: go test ./internal/faults -run TestComplete -update")
	}
}

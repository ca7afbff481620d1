package lint_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// TestRepository holds the rules against the repository itself.
func TestRepository(t *testing.T) {
	for _, f := range check(t, os.DirFS("../..")) {
		t.Error(f)
	}
}

// TestTopFolders: what one package alone explains lies inside it.
func TestTopFolders(t *testing.T) {
	entries, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for _, e := range entries {
		if e.IsDir() && e.Name()[0] != '.' && e.Name() != "runs" && e.Name() != "dist" {
			folders = append(folders, e.Name())
		}
	}
	if len(folders) > maxTopFolders || len(folders) < 10 {
		t.Errorf("%d folders at the top, the limit is %d: %s", len(folders), maxTopFolders, strings.Join(folders, " "))
	}
}

// TestFixtures checks that each fixture breaks exactly the rules its lines
// name in "// want rule" comments, and that each rule is broken by some fixture.
func TestFixtures(t *testing.T) {
	fired := map[string]bool{}
	fixtures, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(fixtures) == 0 {
		t.Fatalf("list fixtures: %v, %v", fixtures, err)
	}
	for _, name := range fixtures {
		t.Run(filepath.Base(name), func(t *testing.T) {
			tree := readTree(t, name)
			var got []string
			for _, f := range check(t, tree) {
				fired[f.Rule] = true
				got = append(got, fmt.Sprintf("%s:%d %s", f.File, f.Line, f.Rule))
			}
			if diff := cmp.Diff(wanted(tree), got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
	sizeFixtures(t, fired)
	for _, rule := range RuleNames() {
		if !fired[rule] {
			t.Errorf("rule %s: no fixture breaks it", rule)
		}
	}
}

// sizeFixtures breaks the limits on sizes by one line, which would make long
// files in testdata, and checks that the limits themselves pass.
func sizeFixtures(t *testing.T, fired map[string]bool) {
	t.Helper()
	one := func(name string, head string, lines int, tail string, want ...string) {
		t.Helper()
		src := head + strings.Repeat("\n", lines-strings.Count(head+tail, "\n")) + tail
		tree := fstest.MapFS{"go.mod": {Data: []byte("module m\n")}, name: {Data: []byte(src)}}
		var got []string
		for _, f := range check(t, tree) {
			fired[f.Rule] = true
			got = append(got, f.Rule)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s with %d lines: got findings %v, want %v", name, lines, got, want)
		}
	}
	const head = "// Package metric is a fixture.\npackage metric\n"
	one("metric/a.go", head, 500, "")
	one("metric/a.go", head, 501, "", "file-size")
	const testHead = "package metric_test\n"
	one("metric/a_test.go", testHead, 800, "")
	one("metric/a_test.go", testHead, 801, "", "file-size")
	one("metric/a.go", head+"func f() {\n", 62, "}\n")
	one("metric/a.go", head+"func f() {\n", 63, "}\n", "func-size")
	one("metric/a_test.go", testHead+"func f() {\n", 63, "}\n")
	one("metric/a_test.go", testHead, 3, "// "+strings.Repeat("é", 117)+"\n")
	one("metric/a_test.go", testHead, 3, "// "+strings.Repeat("é", 118)+"\n", "columns")
}

func check(t *testing.T, fsys fs.FS) []Finding {
	t.Helper()
	m, err := Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return m.Check()
}

func readTree(t *testing.T, name string) fstest.MapFS {
	t.Helper()
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	tree := fstest.MapFS{"go.mod": {Data: []byte("module m\n\ngo 1.26.0\n")}}
	for _, f := range archive.Files {
		tree[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	return tree
}

// wanted lists "file:line rule" of the want comments in the order of findings.
func wanted(tree fstest.MapFS) []string {
	want := regexp.MustCompile(`// want ([a-z -]+)$`)
	var files []string
	for name := range tree {
		files = append(files, name)
	}
	slices.Sort(files)
	var out []string
	for _, name := range files {
		for i, line := range strings.Split(string(tree[name].Data), "\n") {
			if m := want.FindStringSubmatch(line); m != nil {
				for _, rule := range strings.Fields(m[1]) {
					out = append(out, fmt.Sprintf("%s:%d %s", name, i+1, rule))
				}
			}
		}
	}
	return out
}

// TestLoad checks what belongs to the module and what Load refuses.
func TestLoad(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	tree := fstest.MapFS{
		"go.mod":               file("module m\n"),
		"metric/doc.go":        file("// Package metric is a fixture.\npackage metric\n"),
		"metric/a_test.go":     file("package metric_test\n"),
		"metric/testdata/x.go": file("not Go"),
		"metric/notes.txt":     file("not Go"),
		"vendor/v/v.go":        file("not Go"),
		".cache/c/c.go":        file("not Go"),
		"_old/c.go":            file("not Go"),
		"bench/go.mod":         file("module m/bench\n"),
		"bench/sub/b.go":       file("not Go"),
	}
	m, err := Load(tree)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Packages) != 1 || m.Packages[0].Dir != "metric" || m.Packages[0].Name != "metric" ||
		len(m.Packages[0].Files) != 2 {
		t.Errorf("got packages %+v, want metric with two files", m.Packages)
	}
	refuse := func(tree fstest.MapFS, want string) {
		t.Helper()
		if _, err := Load(tree); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
	refuse(fstest.MapFS{}, "go.mod")
	refuse(fstest.MapFS{"go.mod": file("go 1.26\n")}, "no module line")
	refuse(fstest.MapFS{"go.mod": file("module m\n"), "a/a.go": file("not Go")}, "a/a.go:1:1")
}

package faults_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	codeBlock = regexp.MustCompile("(?s)```.*?```")
	sentence  = regexp.MustCompile(`[.?:;] +`)
	ofTests   = regexp.MustCompile(`\S+\.(Test|Fuzz)\w+`)
)

// claims are the sentences, and rows of tables, of what SECURITY.md and docs/reliability.md promise.
func claims(text string) (out []string) {
	text = codeBlock.ReplaceAllString(text, "")
	for block := range strings.SplitSeq(text, "\n\n") {
		if strings.HasPrefix(block, "#") {
			_, block, _ = strings.Cut(block, "\n")
		}
		block = regexp.MustCompile(`\n([|]|- |\d\. )`).ReplaceAllString(block, "\x00$1")
		for item := range strings.SplitSeq(strings.ReplaceAll(block, "\n", " "), "\x00") {
			parts := []string{item}
			if !strings.HasPrefix(item, "|") {
				parts = sentence.Split(item, -1)
			}
			for _, s := range parts {
				if s = strings.Join(strings.Fields(s), " "); strings.Trim(s, "|-0123456789 ") != "" {
					out = append(out, s)
				}
			}
		}
	}
	return out
}

// TestClaims holds each sentence of SECURITY.md and docs/reliability.md to a row of testdata/claims.txt: how it begins,
// and the tests that show it, each behind its package, in which it exists, or behind a - what it is that no test can
// show.
func TestClaims(t *testing.T) {
	t.Parallel()
	listed, err := os.ReadFile("testdata/claims.txt")
	if err != nil {
		t.Fatal(err)
	}
	functions, err := exec.Command("git", "-C", "../..", "grep", "-oE", `^func (Test|Fuzz)\w+`, "--",
		"*_test.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	exists := map[string]bool{}
	for _, f := range strings.Split(strings.TrimSpace(string(functions)), "\n") {
		file, name, _ := strings.Cut(f, ":func ")
		exists[path.Dir(file)+"."+name] = true
	}
	var all []string
	for _, file := range []string{"SECURITY.md", "docs/reliability.md"} {
		text, err := os.ReadFile(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, claims(string(text))...)
	}
	shown := make([]bool, len(all))
	for line := range strings.Lines(string(listed)) {
		begins, by, ok := strings.Cut(strings.TrimSpace(line), " => ")
		if !ok {
			t.Errorf("%q is no row", line)
			continue
		}
		used := false
		for i, s := range all {
			if strings.HasPrefix(s, begins) {
				shown[i], used = true, true
			}
		}
		if !used {
			t.Errorf("%q is in neither document", begins)
		}
		names := ofTests.FindAllString(by, -1)
		if len(names) != len(strings.Fields(by)) && !strings.HasPrefix(by, "- ") {
			t.Errorf("%q is not shown by PACKAGE.TEST ...", begins)
		}
		for _, name := range names {
			if !exists[name] {
				t.Errorf("%q: there is no %s", begins, name)
			}
		}
	}
	for i, s := range all {
		if !shown[i] {
			t.Errorf("no row has: %s", s)
		}
	}
}

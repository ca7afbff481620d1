package lint_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// maxReadmeLines keeps the README an entrance; the manual is docs and --help.
const maxReadmeLines = 120

var mdLink = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)\s]*)?\)`)

// TestMarkdown checks that links between our own pages lead somewhere and that
// the README stays short and tells the two commands CI runs.
func TestMarkdown(t *testing.T) {
	const root = "../.."
	for _, page := range pages(t, root) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range mdLink.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s: link to %s leads nowhere", page, m[1])
			}
		}
	}
	readme, err := os.ReadFile(root + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(readme), "\n"); n > maxReadmeLines {
		t.Errorf("README.md has %d lines, the limit is %d: move text to docs", n, maxReadmeLines)
	}
	for _, command := range []string{"\ngo run ./cmd/scrapestat demo\n", "\ngo test ./...\n"} {
		if !strings.Contains(string(readme), command) {
			t.Errorf("README.md does not show %q on a line of its own", strings.TrimSpace(command))
		}
	}
}

// pages lists the Markdown files of the repository.
func pages(t *testing.T, root string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "runs" || len(d.Name()) > 2 && d.Name()[0] == '.'):
			return fs.SkipDir
		case !d.IsDir() && filepath.Ext(path) == ".md":
			list = append(list, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

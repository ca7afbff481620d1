package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docRoot is the root of the repository.
const docRoot = "../.."

// docPage is a page of the manual, as docs/contributing.md describes one
// written.
type docPage struct {
	path   string // from the root of the repository
	text   []byte
	blocks []docBlock
	given  map[string]string // what its comments <!-- given: NAME=KIND --> say
}

// docBlock is a fenced block.
type docBlock struct {
	line      int    // of its first fence, from 1
	lang, arg string // of its info string: the first word, and the rest
	text      string
	mark      string // the comment on the line above; "" without
}

var (
	docFence   = regexp.MustCompile("^( *)(`{3,})[ \t]*([^` \t]*)[ \t]*([^`]*)$")
	docComment = regexp.MustCompile(`^\s*<!--\s*(.*?)\s*-->\s*$`)
	docGiven   = regexp.MustCompile(`<!--\s*given:\s*(.*?)\s*-->`)
	// docProgram begins a line of text that is a command.
	docProgram = regexp.MustCompile(`^\s*(?:\$ )?(?:scrapestat|go (?:run|test|build)|make|bash|curl|duckdb|sqlite3|` +
		`python3?|docker|kubectl|git) [-\w./]`)
)

// docPages reads every page of the repository.
func docPages(t *testing.T) []docPage {
	t.Helper()
	var pages []docPage
	err := filepath.WalkDir(docRoot, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || name == "runs" || name == "dist" || len(name) > 2 && name[0] == '.'):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		page, err := parseDocPage(strings.TrimPrefix(filepath.ToSlash(path), docRoot+"/"), text)
		if err != nil {
			t.Error(err)
		}
		pages = append(pages, page)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

func parseDocPage(path string, text []byte) (docPage, error) {
	p := docPage{path: path, text: text, given: map[string]string{}}
	for _, m := range docGiven.FindAllSubmatch(text, -1) {
		for _, pair := range strings.Fields(string(m[1])) {
			name, kind, ok := strings.Cut(pair, "=")
			if !ok {
				return p, fmt.Errorf("%s: given %q: want NAME=KIND", path, pair)
			}
			p.given[name] = kind
		}
	}
	mark, fence := "", ""
	for i, line := range strings.Split(string(text), "\n") {
		open := &docBlock{}
		if len(p.blocks) > 0 {
			open = &p.blocks[len(p.blocks)-1]
		}
		m := docFence.FindStringSubmatch(line)
		switch {
		case fence != "" && m != nil && m[2] == fence && m[3] == "":
			fence = ""
		case fence != "":
			open.text += line + "\n"
		case m != nil:
			fence = m[2]
			p.blocks = append(p.blocks, docBlock{line: i + 1, lang: m[3], arg: strings.TrimSpace(m[4]), mark: mark})
		}
		mark = ""
		if c := docComment.FindStringSubmatch(line); fence == "" && c != nil {
			mark = c[1]
		}
	}
	if fence != "" {
		return p, fmt.Errorf("%s: a block is not closed", path)
	}
	return p, nil
}

// indentedCommands returns the lines outside of fences that are commands by
// indentation, which no test would run.
func (p *docPage) indentedCommands() []string {
	var out []string
	fence, before := "", ""
	for i, line := range strings.Split(string(p.text), "\n") {
		if m := docFence.FindStringSubmatch(line); m != nil && (fence == "" || m[2] == fence && m[3] == "") {
			if fence == "" {
				fence = m[2]
			} else {
				fence = ""
			}
		}
		if fence == "" && strings.HasPrefix(line, "    ") && strings.TrimSpace(before) == "" && docProgram.MatchString(line) {
			out = append(out, fmt.Sprintf("%s:%d: %s", p.path, i+1, strings.TrimSpace(line)))
		}
		before = line
	}
	return out
}

// TestDocPage: how a page is read.
func TestDocPage(t *testing.T) {
	page, err := parseDocPage("x.md", []byte(
		"<!-- given: localhost:1=vllm run1=triton -->\n<!-- exit 3 -->\n```sh\na \\\nb\n```\ntext\n\n```yaml f.yml\nx: "+
			"1\n```\n\n    scrapestat show run1\n\n    E = mc^2\n"))
	if err != nil {
		t.Fatal(err)
	}
	if page.given["localhost:1"] != "vllm" || page.given["run1"] != "triton" || len(page.blocks) != 2 {
		t.Fatalf("got %+v", page)
	}
	if b := page.blocks[0]; b != (docBlock{line: 3, lang: "sh", text: "a \\\nb\n", mark: "exit 3"}) {
		t.Errorf("got %+v", b)
	}
	if b := page.blocks[1]; b != (docBlock{line: 9, lang: "yaml", arg: "f.yml", text: "x: 1\n"}) {
		t.Errorf("got %+v", b)
	}
	if got := page.indentedCommands(); len(got) != 1 || !strings.HasSuffix(got[0], ":13: scrapestat show run1") {
		t.Errorf("got %q", got)
	}
	if _, err := parseDocPage("x.md", []byte("```sh\na\n")); err == nil ||
		!bytes.Contains([]byte(err.Error()), []byte("not closed")) {
		t.Errorf("a block without an end: %v", err)
	}
}

package lint_test

import (
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// maxReadmeLines keeps the README an entrance; the manual is docs and --help.
const maxReadmeLines = 100

var (
	mdLink     = regexp.MustCompile(`(!?)\[[^\[\]]*(?:\[[^\]]*\][^\[\]]*)?\]\(([^)\s]+)\)`)
	mdCode     = regexp.MustCompile("`[^`\n]*`")
	mdHeading  = regexp.MustCompile(`^#{1,6} +(.*?) *#*$`)
	mdLinkText = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	mdAnchor   = regexp.MustCompile(`<a (?:id|name)="([^"]+)">`)
)

// TestMarkdown checks that links of our pages lead somewhere, to the heading they
// name, that every page of the manual can be reached from the README, and that
// the README stays short and tells the two commands CI runs.
func TestMarkdown(t *testing.T) {
	const root = "../.."
	site := map[string]*mdPage{}
	for _, name := range pages(t, root) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			t.Fatal(err)
		}
		site[filepath.ToSlash(rel)] = parsePage(string(text))
	}
	for _, fault := range checkSite(site, func(name string) bool {
		_, err := os.Stat(filepath.Join(root, name))
		return err == nil
	}) {
		t.Error(fault)
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

// mdPage is what other pages can say of a page, and what it says of others.
type mdPage struct {
	anchors []string
	links   []mdTarget
}

type mdTarget struct {
	line  int
	to    string
	image bool
}

// parsePage reads a page without its blocks of code.
func parsePage(text string) *mdPage {
	p := &mdPage{}
	fence := ""
	for i, line := range strings.Split(text, "\n") {
		if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "```") {
			ticks := trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "`"))]
			if fence == "" {
				fence = ticks
			} else if trimmed == fence {
				fence = ""
			}
			continue
		}
		if fence != "" {
			continue
		}
		if m := mdHeading.FindStringSubmatch(line); m != nil {
			p.anchors = append(p.anchors, unused(p.anchors, slug(m[1])))
		}
		for _, m := range mdAnchor.FindAllStringSubmatch(line, -1) {
			p.anchors = append(p.anchors, m[1])
		}
		for _, m := range mdLink.FindAllStringSubmatch(mdCode.ReplaceAllStringFunc(line, blank), -1) {
			p.links = append(p.links, mdTarget{i + 1, m[2], m[1] == "!"})
		}
	}
	return p
}

// blank keeps the place of a piece of code and hides what is in it.
func blank(code string) string { return strings.Repeat(" ", len(code)) }

// slug is the anchor that GitHub gives to a heading.
func slug(heading string) string {
	heading = mdLinkText.ReplaceAllString(heading, "$1")
	var b strings.Builder
	for _, r := range strings.ToLower(heading) {
		switch {
		case unicode.IsLetter(r), unicode.IsNumber(r), r == '-', r == '_':
			b.WriteRune(r)
		case r == ' ':
			b.WriteByte('-')
		}
	}
	return b.String()
}

// unused numbers an anchor that is there already, as GitHub does.
func unused(have []string, anchor string) string {
	name := anchor
	for n := 1; slices.Contains(have, name); n++ {
		name = anchor + "-" + strconv.Itoa(n)
	}
	return name
}

// checkSite follows the links of pages from the README on.
func checkSite(site map[string]*mdPage, exists func(string) bool) (faults []string) {
	reached := map[string]bool{"README.md": true}
	queue := []string{"README.md"}
	for name, p := range site {
		for _, l := range p.links {
			if fault := checkLink(site, exists, name, l); fault != "" {
				faults = append(faults, name+":"+strconv.Itoa(l.line)+": "+fault)
			}
		}
	}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		for _, l := range site[name].links {
			file, _, _ := strings.Cut(l.to, "#")
			if to := path.Join(path.Dir(name), file); site[to] != nil && !reached[to] {
				reached[to] = true
				queue = append(queue, to)
			}
		}
	}
	for name := range site {
		if strings.HasPrefix(name, "docs/") && !reached[name] {
			faults = append(faults, name+": no link from the README leads there, over whatever pages")
		}
	}
	slices.Sort(faults)
	return faults
}

func checkLink(site map[string]*mdPage, exists func(string) bool, name string, l mdTarget) string {
	u, err := url.Parse(l.to)
	switch {
	case err != nil:
		return err.Error()
	case u.Scheme != "" && (u.Scheme != "https" && u.Scheme != "http" || u.Host == ""):
		return "link to " + l.to + " is no address of the web"
	case u.Scheme != "":
		return ""
	case strings.HasPrefix(l.to, "/"):
		return "link to " + l.to + " begins at a root that GitHub does not have"
	}
	to := name
	if u.Path != "" {
		to = path.Join(path.Dir(name), u.Path)
	}
	switch {
	case strings.HasPrefix(to, "../") || !exists(to):
		return "link to " + l.to + " leads nowhere"
	case l.image && !slices.Contains([]string{".png", ".svg", ".jpg", ".gif"}, path.Ext(to)):
		return "image " + l.to + " is none"
	case u.Fragment != "" && (site[to] == nil || !slices.Contains(site[to].anchors, u.Fragment)):
		return "link to " + l.to + ": there is no such heading"
	}
	return ""
}

// TestLinks: what is wrong with links is found.
func TestLinks(t *testing.T) {
	check := func(want string, texts ...string) {
		t.Helper()
		site := map[string]*mdPage{}
		for i, text := range texts {
			site[[]string{"README.md", "docs/a.md", "docs/b.md"}[i]] = parsePage(text)
		}
		exists := func(name string) bool { return site[name] != nil || name == "docs/x.png" || name == "docs" }
		faults := checkSite(site, exists)
		if got := strings.Join(faults, "\n"); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", texts, got, want)
		}
	}
	check("", "[a](docs/a.md#the-end-of-it) ![p](docs/x.png) [e](https://example.org/x#y)",
		"# The end, of `it`\n[up](../README.md)")
	check("", "[a](docs/a.md#twice-1)", "# Twice\n## Twice")
	check("", "[a](docs/a.md)\n```sh\n# x\n[b](nowhere)\n```\n`[c](nowhere)`", "text")
	check("leads nowhere", "[a](docs/c.md)")
	check("leads nowhere", "[a](../x)")
	check("no such heading", "[a](docs/a.md#the-end)", "# The End Of It")
	check("no such heading", "[a](#nothing)")
	check("no such heading", "[a](docs/a.md#x)", "```sh\n# x\n```")
	check("no link from the README", "[a](docs/a.md)", "text", "text")
	check("image docs is none", "![p](docs)")
	check("no address of the web", "[a](ftp://example.org)")
	check("no address of the web", "[a](https:///x)")
	if got := slug("What's `--x_y`, [linked](z.md)? Ünd 3.5"); got != "whats---x_y-linked-ünd-35" {
		t.Errorf("got %q", got)
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
		case d.IsDir() && (slices.Contains([]string{"testdata", "runs", "dist"}, d.Name()) ||
			len(d.Name()) > 2 && d.Name()[0] == '.'):
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

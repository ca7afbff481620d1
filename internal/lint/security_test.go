package lint_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSecurityNote holds SECURITY.md to what is there: its review of dependencies
// names the version of each direct one, and the tests that it and
// docs/reliability.md point at exist.
func TestSecurityNote(t *testing.T) {
	const root = "../.."
	text := func(name string) string {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	note := text("SECURITY.md")
	_, review, _ := strings.Cut(note, "Review of ")
	review, _, _ = strings.Cut(review, "\n|")
	direct := regexp.MustCompile(`(?m)^\t(\S+) v(\S+)$`).FindAllStringSubmatch(text("go.mod"), -1)
	if len(direct) < 20 {
		t.Fatalf("go.mod has %d direct dependencies", len(direct))
	}
	pseudo := regexp.MustCompile(`^0\.0\.0-(\d{4})(\d\d)(\d\d)\d{6}-`)
	for _, d := range direct {
		version := d[2]
		if m := pseudo.FindStringSubmatch(version); m != nil {
			version = m[1] + "-" + m[2] + "-" + m[3]
		}
		name := filepath.Base(strings.TrimSuffix(d[1], "/v2"))
		ofTests := name == "go-cmp" || name == "go-internal" || name == "goleak" || name == "rapid"
		if !strings.Contains(review, name) && name != "v3" || !ofTests && !strings.Contains(review, version) {
			t.Errorf("SECURITY.md does not know %s %s: review it, and write it down", d[1], version)
		}
	}
	known := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllStringSubmatch(string(data), -1) {
			known[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"SECURITY.md", "docs/reliability.md", "docs/data/reliability.md"} {
		for _, m := range regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(text(page), -1) {
			if !known[m[1]] {
				t.Errorf("%s points at %s, which is no test", page, m[1])
			}
		}
	}
}

package house_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"unicode/utf8"
)

// file is one Go file of the repository.
type file struct {
	path, text string
	test       bool
	lines      int
	long       int      // lines over 120 columns
	comments   string   // all of them, in one line
	code       []string // lines with a name or a value, blanks folded, without imports
}

// readTree reads the Go files that git knows, of all modules.
func readTree(ctx context.Context) ([]*file, error) {
	list, err := output(ctx, "git", "ls-files", "-co", "--exclude-standard", "*.go")
	if err != nil {
		return nil, err
	}
	var tree []*file
	for _, name := range strings.Fields(string(list)) {
		text, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue // removed, and not yet committed
		}
		if err != nil {
			return nil, fmt.Errorf("read tree: %w", err)
		}
		tree = append(tree, newFile(name, string(text)))
	}
	return tree, nil
}

var (
	comment = regexp.MustCompile(`(?:^|\s)//(.*)`)
	word    = regexp.MustCompile(`\w`)
)

func newFile(name, text string) *file {
	f := &file{path: name, text: text, test: strings.HasSuffix(name, "_test.go")}
	imports := false
	for line := range strings.Lines(text) {
		f.lines++
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 120 {
			f.long++
		}
		if m := comment.FindStringSubmatch(line); m != nil {
			f.comments += " " + strings.TrimSpace(m[1])
			line = strings.Replace(line, m[0], "", 1)
		}
		switch line = strings.Join(strings.Fields(line), " "); {
		case line == "import (":
			imports = true
		case imports:
			imports = line != ")"
		case word.MatchString(line) && !strings.HasPrefix(line, "import "):
			f.code = append(f.code, line)
		}
	}
	return f
}

// twins finds stretches of six lines of code and more, not of tests, that an
// earlier place of the tree has too.
func twins(tree []*file) (found []string) {
	const shortest = 6
	type place struct {
		f  *file
		at int
	}
	first := map[string]place{}
	for _, f := range tree {
		for i := 0; !f.test && i+shortest <= len(f.code); i++ {
			key := strings.Join(f.code[i:i+shortest], "\n")
			p, seen := first[key]
			if !seen {
				first[key] = place{f, i}
			}
			if !seen || p.f == f && p.at+shortest > i {
				continue
			}
			n := shortest
			for i+n < len(f.code) && p.at+n < len(p.f.code) && p.f.code[p.at+n] == f.code[i+n] {
				n++
			}
			found = append(found, fmt.Sprintf("%3d lines  %s  %s: %s", n, p.f.path, f.path, f.code[i]))
			i += n - 1
		}
	}
	return found
}

// output runs a program and returns what it wrote to stdout.
func output(ctx context.Context, program string, args ...string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, program, args...).Output()
	if err != nil {
		err = fmt.Errorf("run %s %s: %w", program, args[0], err)
	}
	return out, err
}

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// program stands for scrapestat: it answers what a release asks, and compiles in
// no time.
const program = `package main

import "os"

var (
	version = ""
	commit  = ""
	date    = ""
)

func main() {
	switch os.Args[1] {
	case "version":
		os.Stdout.WriteString("scrapestat " + version + " go\ncommit " + commit + " of " + date + "\n")
	case "completion":
		os.Stdout.WriteString("complete for " + os.Args[2] + "\n")
	case "man":
		os.Mkdir(os.Args[2], 0o755)
		os.WriteFile(os.Args[2]+"/scrapestat.1", []byte(".TH of "+version+"\n"), 0o644)
	}
}
`

// here is the platform of the test.
var here = platform{runtime.GOOS, runtime.GOARCH}

// repository makes one of a program, with a commit of a known time that has a tag.
func repository(t *testing.T, program string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/x\n\ngo 1.26.0\n",
		"cmd/scrapestat/main.go": program, "python/scrapestat/__init__.py": "", "python/scrapestat/py.typed": "",
		"python/scrapestat/_version.py": "__version__ = \"0+source\"\n", "python/scrapestat/notes.txt": "not published",
		"LICENSE": "terms\n", "README.md": "what\n", "CHANGELOG.md": "## 1.2.3, 2001-02-03\n\nnews\n"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git(t, dir, "init", "-q")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "all")
	git(t, dir, "tag", "v1.2.3")
	return dir
}

// git runs it without any setting of the user, in 2001.
func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	const when = "2001-02-03T04:05:06+0200"
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_AUTHOR_NAME=a",
		"GIT_AUTHOR_EMAIL=a@example.com",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_AUTHOR_DATE="+when, "GIT_COMMITTER_DATE="+when)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

// releaseOf runs the tool and returns its files by name.
func releaseOf(t *testing.T, root string, args ...string) map[string][]byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "dist")
	if err := run(t.Context(), append([]string{"-root", root, "-out", out, "-platforms", here.String()}, args...),
		io.Discard); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	entries, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(out, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(out), ".release-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	return files
}

// TestReleaseIsReproducible: two clones in two places give the same bytes, which
// are those that SHA256SUMS names; the archive holds a program that knows its
// commit, and what goes with it.
func TestReleaseIsReproducible(t *testing.T) {
	one := repository(t, program)
	two := filepath.Join(t.TempDir(), "another", "clone")
	git(t, one, "clone", "-q", one, two)
	a, b := releaseOf(t, one), releaseOf(t, two)
	if len(a) != 3 {
		t.Fatalf("files: %d, want an archive, a wheel and their sums", len(a))
	}
	for name, data := range a {
		if !bytes.Equal(data, b[name]) {
			t.Errorf("%s differs between two clones", name)
		}
	}
	sums := string(a["SHA256SUMS"])
	first := ""
	for line := range strings.Lines(sums) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if sum != fmt.Sprintf("%x", sha256.Sum256(a[name])) {
			t.Errorf("SHA256SUMS %q does not hold for %q", sums, name)
		}
		if first == "" {
			first = name
		} else {
			holdWheel(t, name, a[name])
		}
	}
	name := first
	folder := strings.TrimSuffix(strings.TrimSuffix(name, ".tar.gz"), ".zip")
	if !strings.HasPrefix(folder, "scrapestat_1.2.3_") || !strings.HasSuffix(folder, "_"+here.os+"_"+here.arch) {
		t.Errorf("archive %q", name)
	}
	if runtime.GOOS == "windows" {
		return // the rest reads a .tar.gz
	}
	files := untar(t, a[name])
	for want, text := range map[string]string{"scrapestat": "", "LICENSE": "terms", "README.md": "what",
		"CHANGELOG.md": "news", "THIRD_PARTY_LICENSES": "==== Go 1.",
		"completions/scrapestat.bash": "for bash", "completions/_scrapestat": "for zsh",
		"completions/scrapestat.fish": "for fish",
		"completions/scrapestat.ps1":  "for powershell", "man/man1/scrapestat.1": ".TH of 1.2.3"} {
		f, ok := files[folder+"/"+want]
		if !ok || !strings.Contains(string(f.data), text) {
			t.Errorf("%s: in the archive %v, with %q", want, ok, text)
		}
		delete(files, folder+"/"+want)
	}
	for name := range files {
		t.Errorf("unknown file %s in the archive", name)
	}
}

// TestReleaseOfTag: the tag is the version.
func TestReleaseOfTag(t *testing.T) {
	root := repository(t, program)
	check := func(want string) {
		t.Helper()
		files := releaseOf(t, root)
		for name, data := range files {
			if name == "SHA256SUMS" || strings.HasSuffix(name, ".whl") || runtime.GOOS == "windows" {
				continue
			}
			if !strings.HasPrefix(name, "scrapestat_"+want+"_") {
				t.Errorf("archive %s, want version %s", name, want)
			}
			dir := t.TempDir()
			path := filepath.Join(dir, "scrapestat")
			f := untar(t, data)[strings.TrimSuffix(name, ".tar.gz")+"/scrapestat"]
			if err := os.WriteFile(path, f.data, f.mode); err != nil {
				t.Fatal(err)
			}
			said, err := exec.Command(path, "version").Output()
			if err != nil || !strings.HasPrefix(string(said), "scrapestat "+want+" ") ||
				!strings.HasSuffix(string(said), " of 2001-02-03T02:05:06Z\n") {
				t.Errorf("the program of the archive says %q, %v", said, err)
			}
		}
	}
	check("1.2.3")
	git(t, root, "tag", "-d", "v1.2.3")
	git(t, root, "tag", "v1.2.3-rc.1")
	check("1.2.3-rc.1")
}

// TestReleaseRefused: nothing is released that could not be made again, or is not
// what it says, and nothing is left of it.
func TestReleaseRefused(t *testing.T) {
	good := repository(t, program)
	refuse := func(root, want string, args ...string) {
		t.Helper()
		out := filepath.Join(t.TempDir(), "dist")
		err := run(t.Context(), append([]string{"-root", root, "-out", out, "-platforms", here.String()}, args...),
			io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want one with %q", args, err, want)
		}
		if left, err := os.ReadDir(filepath.Dir(out)); err != nil || len(left) > 0 {
			t.Errorf("%v: left behind %v, %v", args, left, err)
		}
	}
	refuse(good, "is none of linux/amd64", "-platforms", "plan9/amd64")
	refuse(good, "one stands there twice", "-platforms", "linux/amd64,linux/amd64")
	refuse(good, "no flag", "dist")
	refuse(good, "it exists", "-out", good)
	refuse(t.TempDir(), "git status")
	refuse(repository(t, strings.Replace(program, "switch os", "commit = \"of another program\"\n\tswitch os", 1)),
		"stamp commit")
	refuse(repository(t, "package main\n\nfunc main() { oops }\n"), "undefined: oops")
	if err := os.WriteFile(filepath.Join(good, "LICENSE"), []byte("other terms\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	refuse(good, "commit the changes first")
}

// TestHardening has a finding by the number that package faults lists: a release
// without a tag, or of another version than the changelog's, is refused.
func TestHardening(t *testing.T) {
	t.Run("K26", func(t *testing.T) {
		root := repository(t, program)
		refused := func(want string) {
			t.Helper()
			err := run(t.Context(), []string{"-root", root, "-out", filepath.Join(t.TempDir(), "dist")}, io.Discard)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want one with %q", err, want)
			}
		}
		git(t, root, "tag", "-d", "v1.2.3")
		refused("has no tag; give it one (git tag v1.2.3)")
		for tag, want := range map[string]string{"v1.2.4": `begins with "## 1.2.3, 2001-02-03", want "## 1.2.4, `,
			"v1.2": "want v1.2.3 or", "v1.2.4-rc.1": `want "## 1.2.4, `, "v1.2.3+x": "want v1.2.3 or"} {
			git(t, root, "tag", tag)
			refused(want)
			git(t, root, "tag", "-d", tag)
		}
		if err := os.WriteFile(filepath.Join(root, "CHANGELOG.md"), []byte("## 1.2.3, unreleased\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		git(t, root, "commit", "-q", "-a", "-m", "not yet")
		git(t, root, "tag", "v1.2.3")
		refused(`begins with "## 1.2.3, unreleased"`)
	})
}

// TestVersionOfChangelog: the version of the program is that of the first heading.
func TestVersionOfChangelog(t *testing.T) {
	version, err := os.ReadFile("../../cmd/scrapestat/version.go")
	if err != nil {
		t.Fatal(err)
	}
	changes, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	_, next, _ := strings.Cut(string(version), "\nconst nextVersion = \"")
	next, _, _ = strings.Cut(next, "\"")
	_, heading, _ := strings.Cut(string(changes), "\n## ")
	if heading, _, _ = strings.Cut(heading, ", "); next == "" || heading != next {
		t.Errorf("CHANGELOG.md begins with %q, version.go has %q", heading, next)
	}
}

// TestCheckRefuses: the test itself is no binary for a release, nor is a text.
func TestCheckRefuses(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		p    platform
	}{{path, here}, {path, platform{"plan9", "arm"}}, {"main.go", here}} {
		if err := check(c.path, c.p); err == nil {
			t.Errorf("%s passes as a binary for %s", c.path, c.p)
		}
	}
}

// TestStampHasItsPlace: the linker ignores a variable that is not there.
func TestStampHasItsPlace(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "../../cmd/scrapestat/version.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if lit, ok := v.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				found[v.Names[0].Name] = true
			}
		}
	}
	if diff := cmp.Diff(map[string]bool{"version": true, "commit": true, "date": true}, found); diff != "" {
		t.Errorf("variables of version.go that can be stamped (-want +got):\n%s", diff)
	}
}

// TestLicences: the terms of everything that is linked, also of what came into a
// module from elsewhere, on each system; so each system has all of its packages.
func TestLicences(t *testing.T) {
	for _, p := range []platform{{"linux", "amd64"}, {"darwin", "arm64"}, {"windows", "arm64"}} {
		r := release{root: "../.."}
		text, err := r.licences(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"\n==== Go 1.", "\n==== github.com/prometheus/prometheus v0.", ": NOTICE\n",
			"\n==== modernc.org/sqlite v1.", ": LICENSE\n",
			"\n==== github.com/klauspost/compress v1.20.3: zstd/internal/xxhash/LICENSE.txt\n"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: no %q", p, want)
			}
		}
		if strings.Contains(string(text), "scrapestat/scrapestat") || strings.Contains(string(text), "rogpeppe") {
			t.Errorf("%s: names what is ours, or only tested with", p)
		}
	}
}

// TestArchives: order and times of the files do not matter, and both forms give
// back what was put in.
func TestArchives(t *testing.T) {
	files := []file{{"b/x", 0o755, []byte("program")}, {"a", 0o644, bytes.Repeat([]byte("text"), 1000)},
		{"empty", 0o644, nil}}
	turned := []file{files[2], files[0], files[1]}
	at := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	want := map[string]file{}
	for _, f := range sorted("top", files) {
		want[f.name] = file{f.name, f.mode, append([]byte{}, f.data...)}
	}
	for _, write := range []func(string, []file, time.Time) ([]byte, error){tarGz, zipped} {
		a, err := write("top", files, at)
		if err != nil {
			t.Fatal(err)
		}
		b, err := write("top", turned, at.In(time.FixedZone("x", 3600)))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Error("another order or time zone, other bytes")
		}
	}
	tgz, err := tarGz("top", files, at)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, untar(t, tgz), cmp.AllowUnexported(file{})); diff != "" {
		t.Errorf(".tar.gz (-want +got):\n%s", diff)
	}
	zip, err := zipped("top", files, at)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, unzip(t, zip, at), cmp.AllowUnexported(file{})); diff != "" {
		t.Errorf(".zip (-want +got):\n%s", diff)
	}
}

func untar(t *testing.T, data []byte) map[string]file {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]file{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.ModTime.Year() != 2001 || h.Uid != 0 || h.Gid != 0 || h.Uname != "" {
			t.Errorf("%s says %v %d %d %q", h.Name, h.ModTime, h.Uid, h.Gid, h.Uname)
		}
		files[h.Name] = file{h.Name, fs.FileMode(h.Mode), text}
	}
}

func unzip(t *testing.T, data []byte, at time.Time) map[string]file {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]file{}
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if !f.Modified.Equal(at) {
			t.Errorf("%s says %v", f.Name, f.Modified)
		}
		files[f.Name] = file{f.Name, f.Mode(), text}
	}
	return files
}

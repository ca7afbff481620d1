//go:build unix

package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// TestDocs executes the pages of the manual: the blocks of each in their order, in
// a folder and a shell of its own, with scrapestat in the PATH and somebody to
// answer at every address. docs/contributing.md has the conventions.
func TestDocs(t *testing.T) {
	t.Parallel()
	w := &docWorld{dir: t.TempDir(), made: map[string]bool{}}
	for _, page := range docPages(t) {
		if line := page.indentedCommands(); line != nil {
			t.Errorf("commands belong into a fenced block: %q", line)
		}
		if len(page.blocks) == 0 {
			continue
		}
		t.Run(page.path, func(t *testing.T) {
			t.Parallel()
			newDocRun(t, w, page).run()
		})
	}
}

// docRun is one page that is executed.
type docRun struct {
	t     *testing.T
	world *docWorld
	page  docPage
	dir   string // where its commands run
	env   []string

	addresses map[string]string // of this machine, by those of the page
	live      []string          // names of the runs that the page recorded
	unrun     []string          // what could not be run for want of Python
}

func newDocRun(t *testing.T, w *docWorld, page docPage) *docRun {
	r := &docRun{t: t, world: w, page: page, dir: t.TempDir(), addresses: map[string]string{}}
	root, err := filepath.Abs(docRoot)
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	for _, name := range standIns {
		script := "#!/bin/sh\nexec standin " + name + ` "$@"` + "\n"
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	r.env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "DOC_ROOT="+root, "HOME="+r.dir, "TZ=UTC",
		"GOGC="+strconv.Itoa(seldom),
		"GITHUB_SHA=abc123", "GIT_COMMIT=abc123", "GITHUB_STEP_SUMMARY=step-summary.md")
	// What the page itself listens on is a port that is free.
	for _, b := range page.blocks {
		if b.commands() {
			for _, m := range docListen.FindAllStringSubmatch(b.text, -1) {
				if a := normalAddress(m[1]); r.addresses[a] == "" {
					r.addresses[a] = freeAddr(t)
				}
			}
		}
	}
	return r
}

// commands reports whether a shell runs the block.
func (b *docBlock) commands() bool {
	return slices.Contains([]string{"sh", "bash", "console"}, b.lang) || b.lang == "text" && b.arg != ""
}

func (r *docRun) run() {
	r.t.Helper()
	for i := range r.page.blocks {
		b := &r.page.blocks[i]
		if err := r.block(b); err != nil {
			r.t.Errorf("%s:%d: %v", r.page.path, b.line, err)
		}
	}
	if r.unrun != nil && !r.t.Failed() {
		r.t.Skipf("SCRAPESTAT_PYTHON is not set, so these blocks did not run: %s", strings.Join(r.unrun, ", "))
	}
}

// docVariable is what the shell puts a value in for: a number is good for most.
var docVariable = regexp.MustCompile(`\$\w+|\$\{\w+\}|\$\(\([^)]*\)\)`)

var docNotRun = regexp.MustCompile(`^not run: (?:needs (\S+)|(takes minutes)|(a log of \d{4}-\d\d-\d\d))$`)

// docCookbook has pages whose blocks internal/interop runs, to the last byte of what
// they print.
const docCookbook = "docs/cookbook/"

func (r *docRun) block(b *docBlock) error {
	switch {
	case strings.HasPrefix(b.mark, "not run"):
		return r.notRun(b)
	case strings.HasPrefix(r.page.path, docCookbook):
		return checkCommands(shellCommands(docVariable.ReplaceAllString(b.text, "1")), b.lang == "sh")
	}
	switch b.lang {
	case "sh", "bash":
		if r.needsPython(b) {
			return nil
		}
		return r.script(b, b.text)
	case "console":
		if r.needsPython(b) {
			return nil
		}
		return r.console(b)
	case "text":
		switch {
		case b.arg != "" && !strings.HasPrefix(r.page.path, "docs/data/engines/"): // those are TestEnginePages'
			return r.printed(b.arg, b.text)
		case b.arg == "" && r.page.path != "docs/data/cli.md" && docProgram.MatchString(b.text):
			return errors.New("a command in a block of text: make it sh, or console with what it prints")
		}
		return nil
	case "sql":
		return r.sql(b)
	case "python":
		if r.needsPython(b) {
			return nil
		}
		if err := os.WriteFile(filepath.Join(r.dir, "block.py"), []byte(b.text), 0o600); err != nil {
			return err
		}
		return r.script(b, "python3 block.py\n")
	case "yaml":
		return r.yaml(b)
	case "json":
		d := json.NewDecoder(strings.NewReader(b.text))
		for {
			var v any
			if err := d.Decode(&v); errors.Is(err, io.EOF) {
				return r.keep(b)
			} else if err != nil {
				return err
			}
		}
	case "go":
		return nil
	}
	return fmt.Errorf("a block of the language %q: docs/contributing.md says which are known and what becomes of them",
		b.lang)
}

// needsPython notes a block that wants a Python which is not there.
func (r *docRun) needsPython(b *docBlock) bool {
	if os.Getenv("SCRAPESTAT_PYTHON") != "" || b.lang != "python" &&
		!regexp.MustCompile(`(?m)^(?:\$ )?(?:duckdb|python3?) `).MatchString(b.text) {
		return false
	}
	if os.Getenv("CI") == "true" {
		r.t.Errorf("%s:%d: SCRAPESTAT_PYTHON is not set; .ci/run installs it", r.page.path, b.line)
	}
	r.unrun = append(r.unrun, fmt.Sprintf("line %d", b.line))
	return true
}

// notRun accepts a block that is marked: what it wants must be in it and not be
// here, and what it says of this program must be right.
func (r *docRun) notRun(b *docBlock) error {
	m := docNotRun.FindStringSubmatch(b.mark)
	if m == nil {
		return fmt.Errorf("mark %q: want not run: needs PROGRAM, not run: takes minutes or not run: a log of YYYY-MM-DD",
			b.mark)
	}
	commands := shellCommands(docVariable.ReplaceAllString(strings.ReplaceAll("\n"+b.text, "\n$ ", "\n"), "1"))
	uses := func(programs ...string) bool {
		return slices.ContainsFunc(commands, func(words []string) bool {
			return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(programs, w) })
		})
	}
	switch {
	case m[1] != "" && (!uses(m[1]) || slices.Contains(standIns, m[1]) || m[1] == "scrapestat"):
		return fmt.Errorf("%s keeps nothing here from being run: take the mark off", m[1])
	case m[2] != "" && !uses("go", "make", "bash", "python3", "aiperf"):
		return errors.New("it does not take minutes: take the mark off")
	case m[3] != "" && b.lang != "console" && b.lang != "text":
		return errors.New("a log is a block of console or text")
	}
	return checkCommands(commands, true)
}

// checkCommands holds the commands of ours against the program, if they are some.
func checkCommands(commands [][]string, are bool) error {
	for _, words := range commands {
		if ours, ok := ourWords(words); ok && are {
			if err := checkUsage(ours); err != nil {
				return err
			}
		}
	}
	return nil
}

// script runs a block.
func (r *docRun) script(b *docBlock, text string) error {
	lines := logicalLines(text)
	if b.mark == "runs until stopped" {
		for i, line := range lines {
			if line = withoutComment(line); line != "" {
				lines[i] = line + " &"
			}
		}
	}
	out, code, err := r.shell(lines)
	if err != nil {
		return err
	}
	want := 0
	if _, err := fmt.Sscanf(b.mark, "exit %d", &want); err != nil && strings.HasPrefix(b.mark, "exit") {
		return fmt.Errorf("mark %q: want exit CODE", b.mark)
	}
	if code != want {
		return fmt.Errorf("exit code %d, want %d:\n%s", code, want, out)
	}
	return nil
}

// console runs the commands of a block, one by one, and compares what they print.
func (r *docRun) console(b *docBlock) error {
	var command, shown string
	for line := range strings.SplitSeq(b.text+"$ \n", "\n") {
		next, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case isCommand:
			if command != "" {
				if err := r.printed(command, shown); err != nil {
					return err
				}
			}
			command, shown = next, ""
		case strings.HasSuffix(command, `\`) || strings.HasPrefix(line, "> ") && shown == "":
			command += "\n" + strings.TrimPrefix(line, "> ")
		default:
			shown += line + "\n"
		}
	}
	return nil
}

// printed runs a command and holds what it prints against what the page shows.
func (r *docRun) printed(command, shown string) error {
	out, code, err := r.shell([]string{command})
	if err != nil {
		return err
	}
	if code != 0 {
		return fmt.Errorf("%s: exit code %d:\n%s", command, code, out)
	}
	if err := sameShape(shown, out); err != nil {
		return fmt.Errorf("%s: %w\nall of it:\n%s", command, err, out)
	}
	return nil
}

// shell runs lines with this machine's addresses and short times, and returns what
// they print on both streams.
func (r *docRun) shell(lines []string) (out string, code int, err error) {
	all := strings.Join(lines, "\n")
	if err := r.provide(all); err != nil {
		return "", 0, err
	}
	for i, line := range lines {
		if line, err = localise(line, r.resolve); err != nil {
			return "", 0, err
		}
		lines[i] = shorten(line, r.live)
		if docCollect.MatchString(line) {
			for _, m := range docOut.FindAllStringSubmatch(line, -1) {
				r.live = append(r.live, m[1])
			}
		}
	}
	script := waitForServers(lines)
	printed, err := os.CreateTemp(r.t.TempDir(), "printed")
	if err != nil {
		return "", 0, err
	}
	defer printed.Close()
	ctx, cancel := context.WithTimeout(r.t.Context(), 4*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-eo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = r.dir, r.env, printed, printed
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	runErr := cmd.Run()
	text, err := os.ReadFile(printed.Name())
	if err != nil {
		return "", 0, err
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", 0, fmt.Errorf("it did not end: %w:\n%s\nthis ran:\n%s", ctx.Err(), text, script)
	case runErr != nil && !errors.As(runErr, &exit):
		return "", 0, runErr
	case runErr != nil:
		return string(text) + "\nthis ran:\n" + script, cmd.ProcessState.ExitCode(), nil
	}
	return string(text), 0, nil
}

// resolve gives an address of the page one of this machine.
func (r *docRun) resolve(address string) (string, error) {
	if a := r.addresses[address]; a != "" {
		return a, nil
	}
	kind := docServers[address]
	for name, given := range r.page.given {
		if strings.Contains(name, ":") && normalAddress(name) == address {
			kind = given
		}
	}
	if kind == "" {
		return "", fmt.Errorf("nobody answers at %s here: say who on the page, <!-- given: %s=vllm -->", address, address)
	}
	a, err := r.serve(kind)
	r.addresses[address] = a
	return a, err
}

// provide puts the runs and files that a script speaks of into the folder, unless
// they are there or the script makes them.
func (r *docRun) provide(script string) error {
	makes := map[string]bool{}
	for _, m := range docOut.FindAllStringSubmatch(script, -1) {
		makes[m[1]] = true
	}
	wanted := func(name string) bool {
		_, err := os.Stat(filepath.Join(r.dir, name))
		return err != nil && !makes[name] && regexp.MustCompile(
			`(^|[\s=:,'"(/])`+regexp.QuoteMeta(name)+`($|[\s'")/;])`).MatchString(script)
	}
	for name, kind := range docRuns {
		if given := r.page.given[name]; given != "" {
			kind = given
		}
		if wanted(name) {
			if err := os.CopyFS(filepath.Join(r.dir, name), os.DirFS(r.world.recording(r.t, kind, name))); err != nil {
				return err
			}
		}
	}
	for name, put := range docFiles {
		if path := filepath.Join(r.dir, name); wanted(name) {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return err
			}
			if err := put(r, path); err != nil {
				return err
			}
		}
	}
	const stored = "testdata/docs"
	files, err := os.ReadDir(stored)
	if err != nil {
		return err
	}
	for _, f := range files {
		name := f.Name()
		switch {
		case !wanted(name):
		case f.IsDir():
			err = os.CopyFS(filepath.Join(r.dir, name), os.DirFS(filepath.Join(stored, name)))
		default:
			err = r.copyFile(filepath.Join(stored, name), name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a file of testdata, with this machine's addresses.
func (r *docRun) copyFile(from, name string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return r.put(name, string(text))
}

func (r *docRun) put(name, text string) error {
	if !filepath.IsLocal(name) {
		return fmt.Errorf("block for the file %q, which lies elsewhere", name)
	}
	text, err := localise(text, r.resolve)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o700)
}

// keep writes a block that is named as a file.
func (r *docRun) keep(b *docBlock) error {
	if b.arg == "" {
		return nil
	}
	return r.put(b.arg, b.text)
}

// sql runs statements in the database that the block is named after, or in DuckDB.
func (r *docRun) sql(b *docBlock) error {
	if b.arg == "" {
		if r.needsPython(&docBlock{line: b.line, lang: "python"}) {
			return nil
		}
		if err := os.WriteFile(filepath.Join(r.dir, "block.sql"), []byte(b.text), 0o600); err != nil {
			return err
		}
		if err := r.provide(b.text); err != nil {
			return err
		}
		return r.script(b, "duckdb < block.sql\n")
	}
	if err := r.provide(b.arg); err != nil {
		return err
	}
	path := filepath.Join(r.dir, b.arg)
	if _, err := os.Stat(path); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := db.QueryContext(r.t.Context(), b.text)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

// yaml keeps a file that is named, and runs the steps of a workflow.
func (r *docRun) yaml(b *docBlock) error {
	var doc struct {
		Jobs map[string]struct {
			Steps []struct{ Run string }
		}
	}
	var any yaml.Node
	if err := yaml.Unmarshal([]byte(b.text), &any); err != nil {
		return err
	}
	if b.arg != "" || !strings.Contains(b.text, "runs-on:") {
		return r.keep(b)
	}
	if err := any.Decode(&doc); err != nil {
		return err
	}
	steps := 0
	for _, job := range doc.Jobs {
		for _, step := range job.Steps {
			if step.Run == "" {
				continue
			}
			steps++
			if err := r.script(b, step.Run); err != nil {
				return err
			}
		}
	}
	if steps == 0 {
		return errors.New("a workflow without a step that runs something")
	}
	return nil
}

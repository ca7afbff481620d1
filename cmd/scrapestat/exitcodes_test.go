package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// exitMeanings is what the manual says of the codes.
var exitMeanings = []struct {
	code    int
	meaning string
}{
	{exitDone, "done; for `collect` also after the first SIGINT, SIGTERM or SIGHUP"},
	{exitFailed, "could not do it: I/O, unreadable run, internal"},
	{exitUsage, "wrong usage or configuration"},
	{exitBad, "done, and the answer is bad: a limit of `check` or a target of `requests validate` is not kept, " +
		"`compare --fail-on` found such a row, `explain --fail-on` such a cause, `sweep --require` that a load is too " +
		"much, `history check` a change, `lake verify` a changed file, " +
		"`doctor` found a target that cannot be collected, `catalog check` a mistake"},
	{exitIncomplete, "data incomplete under `--strict`; of `check` and `requests validate`: nothing failed, and " +
		"something had no data; of `compare --fail-on`, `explain --fail-on`, `sweep --require` and `history check`: " +
		"nothing to judge by; of `query`: a name that no run has"},
	{exitNothing, "nothing could be collected from any target, nothing was found to import or to record"},
	{exitMemory, "out of memory, where it is limited (`ulimit -v`)"},
	{exitNotExec, "`collect -- COMMAND`: it cannot be executed"},
	{exitNotFound, "`collect -- COMMAND`: it does not exist"},
	{exitAborted, "second signal: aborted at once, the recording stays readable"},
}

// exitsOf is what the manual says of the commands, beside 0.
var exitsOf = []struct {
	command string
	codes   []int
}{
	{"collect", []int{exitFailed, exitUsage, exitIncomplete, exitNothing, exitNotExec, exitNotFound, exitAborted}},
	{"export", []int{exitFailed, exitUsage, exitIncomplete}},
	{"show", []int{exitFailed, exitUsage, exitIncomplete}},
	{"report", []int{exitFailed, exitUsage, exitIncomplete}},
	{"compare", []int{exitFailed, exitUsage, exitBad, exitIncomplete}},
	{"repeat", []int{exitFailed, exitUsage, exitNothing}},
	{"explain", []int{exitFailed, exitUsage, exitBad, exitIncomplete}},
	{"sweep", []int{exitFailed, exitUsage, exitBad, exitIncomplete}},
	{"query", []int{exitFailed, exitUsage, exitIncomplete}},
	{"serve", []int{exitFailed, exitUsage}},
	{"promql", []int{exitFailed, exitUsage, exitIncomplete}},
	{"check", []int{exitFailed, exitUsage, exitBad, exitIncomplete}},
	{"history add", []int{exitFailed, exitUsage}},
	{"history list", []int{exitFailed, exitUsage}},
	{"history show", []int{exitFailed, exitUsage, exitIncomplete}},
	{"history check", []int{exitFailed, exitUsage, exitBad, exitIncomplete}},
	{"history accept", []int{exitFailed, exitUsage}},
	{"history drop", []int{exitFailed, exitUsage}},
	{"history prune", []int{exitFailed, exitUsage}},
	{"history export", []int{exitFailed, exitUsage}},
	{"lake add", []int{exitFailed, exitUsage, exitIncomplete}},
	{"lake ls", []int{exitFailed, exitUsage}},
	{"lake verify", []int{exitFailed, exitUsage, exitBad}},
	{"lake sql", []int{exitFailed, exitUsage}},
	{"mark", []int{exitFailed, exitUsage}},
	{"repair", []int{exitFailed, exitUsage, exitIncomplete}},
	{"requests record", []int{exitFailed, exitUsage, exitIncomplete, exitNothing}},
	{"requests import", []int{exitFailed, exitUsage, exitIncomplete, exitNothing}},
	{"requests report", []int{exitFailed, exitUsage}},
	{"requests validate", []int{exitFailed, exitUsage, exitBad, exitIncomplete}},
	{"requests join", []int{exitFailed, exitUsage, exitIncomplete, exitNothing}},
	{"requests export", []int{exitFailed, exitUsage, exitIncomplete, exitNothing}},
	{"requests proxy", []int{exitFailed, exitUsage, exitIncomplete}},
	{"import", []int{exitFailed, exitUsage, exitIncomplete, exitNothing}},
	{"simulate", []int{exitFailed, exitUsage}},
	{"doctor", []int{exitUsage, exitBad, exitNothing}},
	{"catalog list", []int{exitUsage}},
	{"catalog show", []int{exitUsage}},
	{"catalog check", []int{exitUsage, exitBad}},
	{"catalog unknown", []int{exitUsage, exitBad, exitNothing}},
	{"catalog eval", []int{exitUsage, exitIncomplete}},
	{"mcp", []int{exitFailed, exitUsage}},
	{"demo", []int{exitUsage}},
	{"version", []int{exitUsage}},
}

// manualExits is the section of the manual on exit codes.
func manualExits() string {
	var b strings.Builder
	b.WriteString("## Exit codes\n\n| code | meaning |\n|---|---|\n")
	for _, e := range exitMeanings {
		fmt.Fprintf(&b, "| %d | %s |\n", e.code, e.meaning)
	}
	b.WriteString("| 129, 141 | never of `collect`: a SIGHUP ends a run as the first SIGTERM does (not one of " +
		"nohup), and a stdout or stderr that nobody reads ends none |\n")
	b.WriteString("| other | `collect -- COMMAND`: the command's own code, after the exports are written |\n\n| " +
		"command | ends with |\n|---|---|\n")
	for _, e := range exitsOf {
		fmt.Fprintf(&b, "| `%s` | 0", e.command)
		for _, code := range e.codes {
			fmt.Fprintf(&b, ", %d", code)
		}
		switch e.command {
		case "collect":
			b.WriteString(", that of COMMAND")
		case "demo":
			b.WriteString(", those of `collect` and `report`")
		}
		b.WriteString(" |\n")
	}
	return b.String()
}

// TestExitCodes: each constant is in the manual and nothing else; each command
// ends in the scripts with the codes the manual has for it and no other; the pages
// of commands have the same.
func TestExitCodes(t *testing.T) {
	var told []int
	for _, e := range exitMeanings {
		told = append(told, e.code)
	}
	if constants := exitConstants(t); !slices.Equal(constants, slices.Sorted(slices.Values(told))) {
		t.Errorf("exit.go has the codes %v, the manual %v", constants, told)
	}
	shown := scriptExits(t)
	known := map[string]bool{}
	for _, c := range allCommands(newRootCmd(discard())) {
		known[strings.TrimPrefix(c.CommandPath(), "scrapestat ")] = c.Runnable() && !c.Hidden
	}
	for _, e := range exitsOf {
		if !known[e.command] {
			t.Errorf("the manual has exit codes of %q, which is no command", e.command)
		}
		delete(known, e.command)
		for code := range shown[e.command] {
			if !slices.Contains(e.codes, code) && !(e.command == "collect" && code == 7) { // the code of a COMMAND
				t.Errorf("%s ends with %d in %s, which the manual does not have", e.command, code, shown[e.command][code])
			}
		}
		for _, code := range e.codes {
			if code != exitUsage && shown[e.command][code] == "" && !shownElsewhere[fmt.Sprint(e.command, " ", code)] {
				t.Errorf("no script shows %s end with %d, as the manual has it", e.command, code)
			}
		}
	}
	for name, is := range known {
		if is && name != "scrapestat" && name != "requests" && name != "catalog" && name != "history" && name != "lake" &&
			!strings.HasPrefix(name, "completion") &&
			!strings.HasPrefix(name, "import ") {
			t.Errorf("the manual has no exit codes of %q", name)
		}
	}
	checkExitTables(t)
}

// shownElsewhere are codes that tests other than scripts show.
var shownElsewhere = map[string]bool{
	"collect 1":        true, // TestFaultDiskFull
	"collect 130":      true, // TestAbort
	"export 1":         true, // TestFaultFiles
	"requests proxy 4": true, // TestProxyStrict
}

// exitConstants reads the codes out of exit.go.
func exitConstants(t *testing.T) (codes []int) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "exit.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "exit") {
			return true
		}
		v, exact := constant.Int64Val(constant.MakeFromLiteral(spec.Values[0].(*ast.BasicLit).Value, token.INT, 0))
		if !exact {
			t.Errorf("%s is no whole number", spec.Names[0].Name)
		}
		codes = append(codes, int(v))
		return true
	})
	slices.Sort(codes)
	return codes
}

var scriptExit = regexp.MustCompile(`(?m)^exits (\d+) scrapestat ((?:(?:requests|catalog|history|lake) )?[a-z]+)`)

// scriptExits finds the codes that scripts demand: by command and code the script.
func scriptExits(t *testing.T) map[string]map[int]string {
	t.Helper()
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(scripts) < 20 {
		t.Fatalf("%d scripts: %v", len(scripts), err)
	}
	out := map[string]map[int]string{}
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range scriptExit.FindAllStringSubmatch(string(text), -1) {
			code, _ := strconv.Atoi(m[1])
			if out[m[2]] == nil {
				out[m[2]] = map[int]string{}
			}
			out[m[2]][code] = path
		}
	}
	return out
}

var (
	exitTable = regexp.MustCompile(`(?m)^\| exit code \| meaning \|\n\|---\|---\|\n((?:\|.*\n)+)`)
	exitRow   = regexp.MustCompile(`(?m)^\| (\d+) \|`)
)

// checkExitTables holds the tables of exit codes that pages of commands have
// against the manual.
func checkExitTables(t *testing.T) {
	t.Helper()
	tables := 0
	for _, e := range exitsOf {
		path := filepath.Join("../../docs", strings.ReplaceAll(e.command, " ", "-")+".md")
		page, err := os.ReadFile(path)
		if err != nil {
			continue // not every command has a page of its own
		}
		for _, table := range exitTable.FindAllStringSubmatch(string(page), -1) {
			tables++
			got := map[int]bool{}
			for _, row := range exitRow.FindAllStringSubmatch(table[1], -1) {
				code, _ := strconv.Atoi(row[1])
				got[code] = true
			}
			want := slices.Sorted(slices.Values(append([]int{exitDone}, e.codes...)))
			if codes := slices.Sorted(maps.Keys(got)); !slices.Equal(codes, want) {
				t.Errorf("%s has the exit codes %v, the manual %v", path, codes, want)
			}
		}
	}
	if tables < 2 {
		t.Errorf("%d pages have a table of exit codes, want those of check and doctor at least", tables)
	}
}

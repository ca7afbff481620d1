package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// standIns are the programs of other people that the manual uses, which a program
// of the tests stands in for. Of go and make only the form is looked at: that what
// they are told to run exists.
var standIns = []string{"vllm", "perf_analyzer", "my-load-generator", "sleep", "go", "make", "promtool", "docker",
	"duckdb", "python3", "python"}

// standIn is `standin PROGRAM ARG...`.
func standIn() {
	var err error
	switch program, args := os.Args[1], os.Args[2:]; program {
	case "vllm", "perf_analyzer", "my-load-generator", "sleep":
		err = standInLoad(args)
	case "listening":
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if !askUntil(ctx, func() bool { return listening(args[0]) }) {
			err = fmt.Errorf("nobody listens at %s", args[0])
		}
	case "go":
		err = standInGo(args)
	case "make":
		err = checkMake(os.Getenv("DOC_ROOT"), args)
	case "promtool":
		err = printFile("dump.om", args, "tsdb", "dump")
	case "docker":
		err = printFile("logs/ts_metrics.log", args, "logs")
	case "duckdb":
		err = pass(os.Getenv("SCRAPESTAT_PYTHON"),
			append([]string{filepath.Join(os.Getenv("DOC_ROOT"), "cmd/scrapestat/testdata/docs/duckdb_cli.py")}, args...)...)
	case "python3", "python": // with the package of this tree
		if err = os.Setenv("PYTHONPATH", filepath.Join(os.Getenv("DOC_ROOT"), "python")); err == nil {
			err = pass(os.Getenv("SCRAPESTAT_PYTHON"), args...)
		}
	}
	if err != nil {
		panic(fmt.Errorf("stand-in for %s: %w", os.Args[1], err)) // ends the program, not as it should
	}
}

// pass lets another program do it.
func pass(program string, args ...string) error {
	cmd := exec.Command(program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

// printFile prints a file of testdata/docs for a program that is used in one way.
func printFile(name string, args []string, want ...string) error {
	if len(args) < len(want) || !slices.Equal(args[:len(want)], want) {
		return fmt.Errorf("used as %q, want %q", args, want)
	}
	text, err := os.ReadFile(filepath.Join(os.Getenv("DOC_ROOT"), "cmd/scrapestat/testdata/docs", name))
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}

// standInLoad is a load generator of a second: it asks the server at --port, if it
// is given, and writes a line for each request to --log.
func standInLoad(args []string) error {
	end := time.NewTimer(time.Second)
	defer end.Stop()
	flag := func(name string) string {
		if i := slices.Index(args, name); i >= 0 && i+1 < len(args) {
			return args[i+1]
		}
		return ""
	}
	if port := flag("--port"); port != "" {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if !askUntil(ctx, func() bool { return listening("127.0.0.1:" + port) }) {
			return errors.New("nobody listens at port " + port)
		}
		for i := range 5 {
			if err := askOnce(ctx, "127.0.0.1:"+port, i); err != nil {
				return err
			}
		}
	}
	if path := flag("--log"); path != "" {
		log, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		defer log.Close()
		for i := range 5 {
			now := time.Now().UnixNano()
			if _, err := fmt.Fprintf(log, `{"id": "r%d", "issued_ns": %d, "first_ns": %d, "complete_ns": %d, "osl": 16}`+"\n", i,
				now-3e8, now-2e8, now); err != nil {
				return err
			}
		}
	}
	<-end.C
	return nil
}

// standInGo runs this program for `go run ./cmd/scrapestat`, and only looks at the
// form of other uses.
func standInGo(args []string) error {
	switch {
	case len(args) > 1 && args[0] == "run" && args[1] == "./cmd/scrapestat":
		return pass("scrapestat", args[2:]...)
	case len(args) > 1 && args[0] == "test":
		return checkGoTest(os.Getenv("DOC_ROOT"), args[1:])
	case len(args) > 3 && args[0] == "-C" && args[2] == "test": // in another module
		return checkGoTest(filepath.Join(os.Getenv("DOC_ROOT"), args[1]), args[3:])
	case len(args) > 2 && args[0] == "run" && args[1] == ".":
		return checkBench(os.Getenv("DOC_ROOT"), args[2:])
	case len(args) == 2 && args[0] == "doc":
		_, err := os.Stat(filepath.Join(os.Getenv("DOC_ROOT"), args[1], "doc.go"))
		return err
	}
	return fmt.Errorf("used as %q: only go run ./cmd/scrapestat, go test and go doc are known", args)
}

// checkBench finds out whether `go run . ARG...` in bench would run something: the
// last word is in a text of it, as the names of goals are.
func checkBench(root string, args []string) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	goal := args[len(args)-1]
	sources, err := filepath.Glob(filepath.Join(root, "bench", "*.go"))
	if err != nil || filepath.Base(dir) != "bench" {
		return fmt.Errorf("go run . in %s: only bench is known", dir)
	}
	for _, path := range sources {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if regexp.MustCompile(`"[^"\n]*\b` + regexp.QuoteMeta(goal) + `\b[^"\n]*"`).Match(text) {
			return nil
		}
	}
	return fmt.Errorf("bench has no goal %q", goal)
}

// goTestFlags are those of go test itself: whether they take a value.
var goTestFlags = map[string]bool{"run": true, "bench": true, "benchtime": true, "count": true, "cpu": true,
	"timeout": true, "fuzz": true, "fuzztime": true,
	"shuffle": true, "p": true, "parallel": true, "v": false, "race": false, "short": false, "benchmem": false}

// checkGoTest finds out whether `go test ARG...` would run something: the packages
// are there, -run and -bench match a function of them, and other flags are theirs.
func checkGoTest(root string, args []string) error {
	var packages []string
	var own []string
	patterns := map[string]string{}
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		takes, known := goTestFlags[name]
		switch {
		case !strings.HasPrefix(args[i], "-"):
			packages = append(packages, args[i])
			continue
		case known && takes && !joined:
			if i++; i == len(args) {
				return fmt.Errorf("-%s has no value", name)
			}
			value = args[i]
		case !known:
			own = append(own, name)
			if !joined && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") && !strings.HasPrefix(args[i+1], ".") {
				i++
			}
		}
		patterns[name] = value
	}
	source, err := testSource(root, packages)
	if err != nil {
		return err
	}
	for _, name := range own {
		if !regexp.MustCompile(`flag\.\w+\("`+regexp.QuoteMeta(name)+`"`).MatchString(source) &&
			!strings.HasPrefix(name, "rapid.") {
			return fmt.Errorf("no test of %q has a flag -%s", packages, name)
		}
	}
	for kind, prefix := range map[string]string{"run": "Test", "bench": "Benchmark", "fuzz": "Fuzz"} {
		pattern, _, _ := strings.Cut(patterns[kind], "/")
		if pattern == "" || pattern == "^$" {
			continue
		}
		re, err := regexp.Compile(pattern)
		if err != nil {
			return fmt.Errorf("-%s: %w", kind, err)
		}
		functions := regexp.MustCompile(`(?m)^func (`+prefix+`\w*)\(`).FindAllStringSubmatch(source, -1)
		if !slices.ContainsFunc(functions, func(m []string) bool { return re.MatchString(m[1]) }) {
			return fmt.Errorf("-%s %s matches no function of %q", kind, pattern, packages)
		}
	}
	return nil
}

// testSource is the source of the tests of packages, as they are written.
func testSource(root string, packages []string) (string, error) {
	var b strings.Builder
	for _, p := range packages {
		dir, below := strings.CutSuffix(p, "...")
		found := false
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d os.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == ".git" || !below && path != filepath.Join(root, dir)):
				return filepath.SkipDir
			case strings.HasSuffix(path, "_test.go"):
				text, err := os.ReadFile(path)
				found = true
				b.Write(text)
				return err
			}
			return nil
		})
		if err != nil {
			return "", err
		}
		if !found {
			return "", fmt.Errorf("%s has no tests", p)
		}
	}
	return b.String(), nil
}

// checkMake finds out whether the Makefile has the targets and variables.
func checkMake(root string, args []string) error {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		return err
	}
	for _, arg := range args {
		pattern := `(?m)^` + regexp.QuoteMeta(arg) + `:`
		if name, _, ok := strings.Cut(arg, "="); ok {
			pattern = `(?m)^` + regexp.QuoteMeta(name) + ` *[?:]?=`
		}
		if !regexp.MustCompile(pattern).Match(makefile) {
			return fmt.Errorf("the Makefile has no %s", arg)
		}
	}
	return nil
}

// TestStandIns: what go and make would not run is found out.
func TestStandIns(t *testing.T) {
	check := func(line string, good bool) {
		t.Helper()
		words := shellCommands(line)[0]
		var err error
		switch words[0] {
		case "go":
			err = checkGoTest(docRoot, words[2:])
		case "make":
			err = checkMake(docRoot, words[1:])
		}
		if (err == nil) != good {
			t.Errorf("%q: %v", line, err)
		}
	}
	check("go test ./...", true)
	check("go test ./cmd/scrapestat -run TestManual -update", true)
	check("go test ./cmd/scrapestat -run TestCompareStudy -v -timeout 1h -study 200", true)
	check("go test ./rundb -run '^$' -bench .", true)
	check("go test ./cmd/scrapestat -run TestNothingOfTheKind", false)
	check("go test ./nosuch", false)
	check("go test ./units -run TestManual", false)
	check("go test ./units -study 200", false)
	check("make check test", true)
	check("make fuzz FUZZTIME=10m", true)
	check("make tea", false)
	check("make fuzz TEATIME=10m", false)
	if err := printFile("dump.om", []string{"query"}, "tsdb", "dump"); err == nil {
		t.Error("promtool query is not refused")
	}
}

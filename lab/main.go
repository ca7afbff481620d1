//go:build unix

// Command lab judges the numbers of scrapestat against real servers: it installs a server, drives a bounded load whose
// truth the client knows, collects through the command line, and compares quantity by quantity.
//
//	go run ./lab list
//	go run ./lab llamacpp         or "all"
//	go run ./lab -update llamacpp refreshes testdata/runs
//	go run ./lab -sample all      what hardly depends on how fast the machine is, in a minute
//	go run ./lab -install all     only installs what -sample needs, with -sample
//
// It prints a table and exits with 1 when a quantity is wrong. What it installs stays in a cache; what it starts
// listens on loopback alone and has ended when the program does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// recipe is a server: what to install, how to start it, and the loads that it is judged by.
type recipe struct {
	name     string
	versions string // as the lock file pins them
	byHand   bool   // too large for "all"
	setup    func(ctx context.Context, l *lab) error
	start    func(l *lab, s *scenario) []*process
	// scenarios begin with a server of their own each.
	scenarios []scenario
	// accepted are families that no pack knows, each with the reason why none should.
	accepted map[string]string
	// besides are quantities of the bodies that are not judged, each with the reason.
	besides map[string]string
}

// scenario is a load, and what it must lead to.
type scenario struct {
	name   string
	sample bool     // short, and judged by counts alone
	args   []string // of the server
	unkept bool     // its recording has texts that a kept one may not have
	late   time.Duration
	load   func(ctx context.Context, c *client) error
	// rows are judged on the recording; the truth of each is what the client counted under its name.
	rows []row
	// fails are assertions that must not hold.
	fails []string
}

// row is a quantity: what `scrapestat check` is asked, and the client's count or sum that it must equal.
type row struct {
	Ask    string  `json:"ask"`
	Truth  string  `json:"-"`
	Value  float64 `json:"truth"`
	Within float64 `json:"within"` // relative
	many   bool    // one of all that the bodies or the server tell: shown only when it is wrong
}

// lab is what the flags set.
type lab struct {
	cache, work, root, scrapestat, self string
	update, sample, only                bool
	out                                 io.Writer
	recipe                              *recipe
}

func recipes() []recipe {
	return []recipe{llamacpp(), dynamo(), triton(), torchserve(), vllm(), classes()}
}

var errWrong = errors.New("a quantity is wrong")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	if len(args) == 5 && args[0] == "load" {
		return runLoad(ctx, args[1], args[2], args[3], args[4])
	}
	l := &lab{out: out}
	chosen, err := l.parse(args)
	if err != nil {
		return err
	}
	if l.work, err = os.MkdirTemp("", "scrapestat-lab-"); err != nil {
		return fmt.Errorf("make work directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(l.work)) }()
	if !l.only {
		if err := l.build(ctx); err != nil {
			return err
		}
	}
	wrong := false
	for i := range chosen {
		l.recipe = &chosen[i]
		since := time.Now()
		ok, err := l.judge(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", chosen[i].name, err)
		}
		wrong = wrong || !ok
		fmt.Fprintf(out, "%s took %.0f s\n\n", chosen[i].name, time.Since(since).Seconds())
	}
	if wrong {
		return errWrong
	}
	return nil
}

func (l *lab) parse(args []string) (chosen []recipe, err error) {
	f := flag.NewFlagSet("lab", flag.ContinueOnError)
	home, _ := os.UserCacheDir() // without one the folder is given, or the work directory is it
	f.StringVar(&l.cache, "cache", filepath.Join(home, "scrapestat", "lab"), "`folder` of what is installed")
	f.BoolVar(&l.update, "update", false, "write what was recorded into testdata/runs")
	f.BoolVar(&l.sample, "sample", false, "run the scenarios alone that are short and judged by counts")
	one := f.String("scenario", "", "run only the scenario of this `name`")
	f.BoolVar(&l.only, "install", false, "install, and run nothing")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	all := recipes()
	if f.NArg() == 0 || f.Arg(0) == "list" {
		for _, r := range all {
			fmt.Fprintf(l.out, "%-10s %s\n", r.name, r.versions)
		}
		return nil, nil
	}
	for _, name := range f.Args() {
		i := slices.IndexFunc(all, func(r recipe) bool { return r.name == name })
		switch {
		case name == "all":
			chosen = append(chosen, slices.DeleteFunc(slices.Clone(all), func(r recipe) bool { return r.byHand })...)
		case i < 0:
			return nil, fmt.Errorf("no server is called %q: see lab list", name)
		default:
			chosen = append(chosen, all[i])
		}
	}
	for i := range chosen {
		r := &chosen[i]
		r.scenarios = slices.DeleteFunc(r.scenarios, func(s scenario) bool {
			return l.sample && !s.sample || *one != "" && s.name != *one
		})
	}
	return slices.DeleteFunc(chosen, func(r recipe) bool { return len(r.scenarios) == 0 }), nil
}

// build makes the command that is judged, of the checkout that the lab stands in.
func (l *lab) build(ctx context.Context) (err error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("find the module: %w", err)
	}
	l.root = strings.TrimSpace(string(root))
	if l.self, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	l.scrapestat = filepath.Join(l.work, "scrapestat")
	return l.do(ctx, "build.log", "go", "build", "-C", l.root, "-o", l.scrapestat, "./cmd/scrapestat")
}

// judge runs the scenarios of the recipe and reports whether all is right.
func (l *lab) judge(ctx context.Context) (right bool, err error) {
	r := l.recipe
	fmt.Fprintf(l.out, "%s  %s  %s\n", r.name, r.versions, time.Now().UTC().Format(time.DateOnly))
	if err := l.install(ctx); err != nil || l.only {
		return err == nil, err
	}
	right = true
	table := tabwriter.NewWriter(l.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "scenario\tquantity\ttruth\tscrapestat\tdifference\twithin\tverdict")
	for i := range r.scenarios {
		rows, err := l.scenario(ctx, &r.scenarios[i])
		if err != nil {
			return false, errors.Join(fmt.Errorf("scenario %s: %w", r.scenarios[i].name, err), table.Flush())
		}
		many, exact := 0, 0
		for _, v := range rows {
			right = right && v.right()
			if v.many {
				many++
			}
			if v.many && v.right() {
				exact++
				continue
			}
			fmt.Fprintln(table, r.scenarios[i].name+"\t"+strings.Join(v.cells(), "\t"))
		}
		if many > 0 {
			v := verdict{row: row{Ask: "counters, counts and sums", Value: float64(many)}, ours: float64(exact)}
			fmt.Fprintln(table, r.scenarios[i].name+"\t"+strings.Join(v.cells(), "\t"))
		}
	}
	return right, table.Flush()
}

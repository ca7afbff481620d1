package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const repeatLong = `Records several runs of two COMMANDs or more, in turn: A B B A A B, so that what
drifts on the machine hits all sides, and compares them. Each run is a directory
DIR/A-1, with the tags side and repeat. What follows -- are targets and flags of
collect. State the number of runs before: to go on until a difference shows up
finds one in equal runs too.
`

const repeatExample = `  scrapestat repeat -n 5 -o ab A='./bench.sh old' B='./bench.sh new' -- localhost:8000
  scrapestat compare A=ab/A-1 A=ab/A-2 B=ab/B-1 B=ab/B-2`

// repeatOptions is the command line of repeat.
type repeatOptions struct {
	n      int
	out    string
	pause  time.Duration
	sides  [][2]string // name and command
	record []string    // arguments of collect
}

func newRepeatCmd(std stdio) *cobra.Command {
	var o repeatOptions
	cmd := &cobra.Command{
		Use:     "repeat -n N NAME='COMMAND' NAME='COMMAND'... -- TARGET... [flags of collect]",
		Short:   "Record sides in turn, several times, and compare them",
		Long:    repeatLong,
		Example: repeatExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.take(args, cmd.ArgsLenAtDash()); err != nil {
				return err
			}
			return o.run(cmd.Context(), std)
		},
	}
	f := cmd.Flags()
	f.IntVarP(&o.n, "runs", "n", 3, "`number` of runs of each side, 1 to 100")
	f.StringVarP(&o.out, "out", "o", "", "`directory` of the runs (default runs/<UTC time>)")
	f.DurationVar(&o.pause, "pause", 5*time.Second, "time between two runs, in which servers cool down")
	return cmd
}

// take reads the arguments.
func (o *repeatOptions) take(args []string, dash int) error {
	if dash < 0 || dash == len(args) {
		return usagef("give the targets behind --: repeat A='COMMAND' B='COMMAND' -- TARGET...")
	}
	o.sides, o.record = nil, args[dash:]
	for _, a := range args[:dash] {
		name, command, ok := strings.Cut(a, "=")
		if !ok || name == "" || command == "" || name != filepath.Base(name) || strings.HasPrefix(name, ".") {
			return usagef("%q: want NAME='COMMAND', the NAME that of a directory", a)
		}
		if slices.ContainsFunc(o.sides, func(s [2]string) bool { return s[0] == name }) {
			return usagef("side %s is given twice", name)
		}
		o.sides = append(o.sides, [2]string{name, command})
	}
	switch {
	case len(o.sides) < 2:
		return usagef("give two sides at least: repeat A='COMMAND' B='COMMAND' -- TARGET...")
	case o.n < 1 || o.n > 100:
		return usagef("--runs %d: want 1 to 100", o.n)
	case o.pause < 0:
		return usagef("--pause %v: want no negative duration", o.pause)
	}
	o.out = cmp.Or(o.out, defaultRunDir(time.Now()))
	return nil
}

// run records all runs, odd rounds backwards, and compares the sides. A signal ends it with the run that it ends.
func (o *repeatOptions) run(ctx context.Context, std stdio) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, endSignals()...)
	defer signal.Stop(signals)
	say := newProgress(std.err, false)
	for i := range o.n {
		order := slices.Clone(o.sides)
		if i%2 == 1 {
			slices.Reverse(order)
		}
		for k, side := range order {
			if i+k > 0 && o.stopped(ctx, signals) {
				say.logf("stopped: %s has what was recorded", o.out)
				return nil
			}
			dir := filepath.Join(o.out, fmt.Sprintf("%s-%d", side[0], i+1))
			say.logf("run %d of %d of side %s", i+1, o.n, side[0])
			args := slices.Concat(o.record, []string{"-o", dir, "--quiet", "--tag", "side=" + side[0], "--tag",
				"repeat=" + strconv.Itoa(i+1), "--", "sh", "-c", side[1]})
			if err := runCommand(ctx, newCollectCmd(stdio{in: std.in, out: io.Discard, err: std.err}), args); err != nil {
				return err
			}
		}
	}
	if o.pause = 0; o.stopped(ctx, signals) {
		return nil
	}
	var args []string
	for _, side := range o.sides {
		for i := range o.n {
			args = append(args, side[0]+"="+filepath.Join(o.out, fmt.Sprintf("%s-%d", side[0], i+1)))
		}
	}
	return runCommand(ctx, newCompareCmd(std), args)
}

// stopped waits between two runs, and reports whether a signal came since the last one began.
func (o *repeatOptions) stopped(ctx context.Context, signals <-chan os.Signal) bool {
	select {
	case <-signals:
		return true
	default:
	}
	pause := time.NewTimer(o.pause)
	defer pause.Stop()
	select {
	case <-signals:
		return true
	case <-ctx.Done():
		return true
	case <-pause.C:
		return false
	}
}

// runCommand runs another command of ours.
func runCommand(ctx context.Context, c *cobra.Command, args []string) error {
	c.SilenceUsage, c.SilenceErrors = true, true
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usagef("%w", err) })
	c.SetArgs(args)
	return c.ExecuteContext(ctx)
}

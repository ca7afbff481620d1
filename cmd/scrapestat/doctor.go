package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/discover"
	"github.com/scrapestat/scrapestat/internal/doctor"
	"github.com/scrapestat/scrapestat/scrape"
)

const doctorLong = `Looks at each TARGET before a run: what it is (engine, version, format, size),
whether a run would get samples of it, which flag of the server is missing and
what to do, what a scrape costs, and which interval it can bear. The other known
path is tried once, and each format once. Prints a table, then the details.

Ends with 0 when every target can be collected (warnings do not count), 3 when
some cannot, and 5 when none can.`

// doctorOptions is the command line of doctor.
type doctorOptions struct {
	catalogs []string
	collect  collectOptions // what it shares with collect
	format   string
	exam     doctor.Options
}

func newDoctorCmd(std stdio) *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor TARGET... [flags]",
		Short: "Say what targets are, what is wrong with them, and how often to scrape them",
		Long:  doctorLong,
		Example: "  scrapestat doctor localhost:8000 gpu=http://10.0.0.3:9400\n  scrapestat doctor localhost:8000 " +
			"--format json",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.collect.targets = args
			known := analysisFlags{catalogs: o.catalogs, stderr: cmd.ErrOrStderr}
			if err := first(o.collect.access.validate(), known.readCatalogs()); err != nil {
				return err
			}
			if len(args) == 0 && !o.collect.access.discovers() {
				return usagef("missing argument: TARGET, for example localhost:8000")
			}
			if o.format != "text" && o.format != "json" {
				return usagef("--format %q is unknown, want text or json", o.format)
			}
			if o.exam.MaxShare <= 0 || o.exam.MaxShare > 100 {
				return usagef("--scrape-budget %v is outside 0 to 100", o.exam.MaxShare)
			}
			if o.collect.timeout <= 0 || o.collect.timeout > time.Minute {
				return usagef("--timeout %v is outside 0 to 1m", o.collect.timeout)
			}
			o.exam.Catalog = known.catalog
			return examine(cmd.Context(), o, std)
		},
	}
	f := cmd.Flags()
	o.collect.interval = 333 * time.Millisecond // as that of collect, for relabelling and logs
	f.StringVar(&o.format, "format", "text", "`text` or json")
	f.Float64Var(&o.exam.MaxShare, "scrape-budget", 2,
		"`percent` of its time that a target may spend on answering scrapes")
	f.DurationVar(&o.collect.timeout, "timeout", 5*time.Second, "deadline of each question")
	f.StringArrayVar(&o.catalogs, "catalog", nil, "YAML `file` of more packs; repeatable")
	o.collect.access.register(f)
	o.collect.kinds.register(cmd, false)
	return cmd
}

// examine examines the targets, some at a time, and prints what was found.
func examine(ctx context.Context, o doctorOptions, std stdio) error {
	set, err := o.collect.openTargets(std)
	if err != nil {
		return err
	}
	defer set.close()
	ctx, stop := signal.NotifyContext(ctx, endSignals()...)
	defer stop()
	found := discover.Refresh(ctx, set.given, set.discoverers)
	targets := set.given
	for _, f := range found.Targets {
		targets = append(targets, f.Target)
	}
	for _, w := range append(set.warnings, found.Warnings...) {
		fmt.Fprintln(std.err, "warning:", w.Text)
	}
	if len(targets) == 0 {
		return &codeError{exitNothing, errors.New("no targets were found")}
	}
	reports, errs := make([]*doctor.Report, len(targets)), make([]error, len(targets))
	inTurns(4, len(targets), func(i int) { reports[i], errs[i] = examineTarget(ctx, targets[i], o) })
	if err := first(errs...); err != nil {
		return err
	}
	write := doctor.Text
	if o.format == "json" {
		write = doctor.JSON
	}
	if err := write(std.out, reports); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return verdict(reports)
}

func examineTarget(ctx context.Context, t scrape.Target, o doctorOptions) (*doctor.Report, error) {
	if t.Source != nil {
		ctx, cancel := context.WithTimeout(ctx, o.collect.timeout)
		defer cancel()
		return doctor.ExamineSource(ctx, t.Public(), t.Source, o.exam), nil
	}
	p, err := scrape.NewProber(t, scrape.Options{Timeout: o.collect.timeout, Version: toolVersion(),
		Sentinel: o.exam.Catalog.Sentinel})
	if err != nil {
		return nil, usagef("%w", err)
	}
	defer p.Close()
	return doctor.Examine(ctx, t.Public(), p, o.exam), nil
}

// verdict is the exit code: nil when all targets can be collected.
func verdict(reports []*doctor.Report) error {
	good := 0
	for _, r := range reports {
		if r.Collectable {
			good++
		}
	}
	switch good {
	case len(reports):
		return nil
	case 0:
		return &codeError{exitNothing, nil}
	}
	return &codeError{exitBad, nil}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/rundb"
)

const repairLong = `Makes a run of what can be read of a damaged one, which stays as it is: each row of
run.db and of its log whose checksum matches, from damaged pages and cut files
too. What is lost is named, and every command that reads the new run says so
again. Numbers are never guessed: what is there is as it was recorded.`

// repairOptions is the command line of repair.
type repairOptions struct {
	run, out string
	runFlags
}

func newRepairCmd(std stdio) *cobra.Command {
	var o repairOptions
	cmd := &cobra.Command{
		Use:     "repair RUN [flags]",
		Short:   "Make a run of what can be read of a damaged one",
		Long:    repairLong,
		Example: "  scrapestat repair run1\n  scrapestat repair run1 -o mended && scrapestat export mended",
		Args:    exactly(1, "RUN, a run directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.memory.validate(); err != nil {
				return err
			}
			o.run = runDir(args[0])
			return o.repair(cmd.Context(), std)
		},
	}
	cmd.Flags().StringVarP(&o.out, "out", "o", "", "new run `directory` (default RUN-repaired)")
	o.runFlags.register(cmd)
	return cmd
}

func (o *repairOptions) repair(ctx context.Context, std stdio) error {
	ctx, stop := signal.NotifyContext(ctx, endSignals()...)
	defer stop()
	context.AfterFunc(ctx, stop) // the next signal ends the process at once
	if o.out == "" {
		o.out = filepath.Clean(o.run) + "-repaired"
	}
	home, err := rundb.MakeDir(o.out, nil)
	if err != nil {
		return err
	}
	defer limitGC(o.memory.bytes)()
	done, err := rundb.Repair(ctx, o.run, o.out, o.memory.of)
	if err == nil {
		err = home.Begun()
	}
	if err = errors.Join(err, home.Close()); err != nil {
		return err
	}
	if err := rundb.CopyManifest(o.run, o.out); err != nil {
		return err
	}
	fmt.Fprintf(std.out, "%s has %d scrapes; %d that were recorded are lost, %d rows had a wrong bit\n", o.out, done.Polls,
		done.Lost, done.Mended)
	for _, text := range done.Damage {
		fmt.Fprintln(std.out, "  "+text)
	}
	return o.lost(int64(len(done.Damage)), "%d scrapes are lost", done.Lost)
}

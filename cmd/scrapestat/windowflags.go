package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/window"
)

// windowFlags choose the part of the run that is analysed, where the argument that names the run does not.
type windowFlags struct {
	window, phase, from, to, warmup, cooldown string
}

// selectorHelp is what long helps say of RUN.
const selectorHelp = "RUN@WHAT[,warmup=D][,cooldown=D] takes a part of a run: traffic, segments, segment/2, command, " +
	"recording,\na phase (high/2), or 30s..90s from COMMAND's start, +30s.. from the first request."

func (w *windowFlags) register(cmd *cobra.Command) {
	w.registerOn(cmd.Flags())
}

func (w *windowFlags) registerOn(f *pflag.FlagSet) {
	f.StringVar(&w.window, "window", "", "analyse this `part`: traffic, segments, segment/N, command, recording "+
		"(default the load generator's phases, else traffic)")
	f.StringVar(&w.phase, "phase", "", "analyse the phase of this `name`, NAME/N where it occurs again")
	f.StringVar(&w.from, "from", "", "analyse from this `offset` from COMMAND's start, or +30s from the first request")
	f.StringVar(&w.to, "to", "", "analyse up to this `offset`")
	f.StringVar(&w.warmup, "warmup", "", "leave out this `duration` from the first request on, instead of the "+
		"recorded one")
	f.StringVar(&w.cooldown, "cooldown", "", "leave out this `duration` before the last request, instead of the "+
		"recorded one")
}

// ref is what the flags ask for.
func (w *windowFlags) ref() (window.Ref, error) {
	var r window.Ref
	n := 0
	for _, on := range []bool{w.window != "", w.phase != "", w.from != "" || w.to != ""} {
		if on {
			n++
		}
	}
	if n > 1 {
		return r, usagef("--window, --phase and --from with --to are three ways to say it: give one of them")
	}
	text := w.window
	switch {
	case w.phase != "":
		text = "phase=" + w.phase
	case w.from != "" || w.to != "":
		text = w.from + ".." + w.to
	}
	mod := func(key, value string) {
		if value == "" {
			return
		}
		if text != "" {
			text += ","
		}
		text += key + "=" + value
	}
	mod("warmup", w.warmup)
	mod("cooldown", w.cooldown)
	if text == "" {
		return r, nil
	}
	r, err := window.Parse(text)
	if err != nil {
		return r, usagef("--window, --phase, --from, --to, --warmup, --cooldown: %w", err)
	}
	return r, nil
}

// arg reads an argument that names a run, which may say of itself which part.
func (w *windowFlags) arg(text string) (window.Arg, error) {
	a, err := window.Split(text, func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	})
	if err != nil {
		return a, usagef("%w", err)
	}
	if !a.Own {
		a.Ref, err = w.ref()
	}
	return a, err
}

// runs reads arguments without names and sets in so what they ask for.
func (w *windowFlags) runs(args []string, so *summary.Options) (dirs []string, err error) {
	for _, text := range args {
		a, err := w.arg(text)
		if err != nil {
			return nil, err
		}
		if a.Name != "" {
			a.Run = a.Name + "=" + a.Run
		}
		dirs, so.Windows = append(dirs, a.Run), append(so.Windows, a.Ref)
	}
	return dirs, nil
}

package main

import (
	"cmp"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/check"
	"github.com/scrapestat/scrapestat/compare"
	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/report"
	"github.com/scrapestat/scrapestat/source/promstore"
)

// addCompletions tells shells what may follow a command and a flag. Where nothing is said here they offer files.
func addCompletions(root *cobra.Command) error {
	root.ValidArgsFunction = cobra.NoFileCompletions
	var errs []error
	for _, c := range descendants(root) {
		path := strings.TrimPrefix(c.CommandPath(), root.Name()+" ")
		switch path {
		case "export", "show", "report", "compare", "check", "mark", "history add", "history accept",
			"history drop", "query", "requests join", "requests report", "requests validate":
			c.ValidArgsFunction = completeRuns
		case "simulate":
			c.ValidArgsFunction = cobra.FixedCompletions(simulate.Profiles(), cobra.ShellCompDirectiveNoFileComp)
		case "demo", "version", "doctor", "requests proxy", "import prometheus":
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "baseline" || f.Name == "run" {
				errs = append(errs, c.RegisterFlagCompletionFunc(f.Name, completeRuns))
			} else if values := flagValues(path, f.Name); values != nil {
				errs = append(errs, c.RegisterFlagCompletionFunc(f.Name, completeValue(f, values)))
			}
		})
	}
	return errors.Join(errs...)
}

// descendants lists all commands below one.
func descendants(c *cobra.Command) (out []*cobra.Command) {
	for _, sub := range c.Commands() {
		out = append(out, sub)
		out = append(out, descendants(sub)...)
	}
	return out
}

// flagValues returns a function that lists the values of a flag, nil where they cannot be listed.
func flagValues(command, flag string) func() []string {
	list := func(values ...string) func() []string { return func() []string { return values } }
	switch flag {
	case "format":
		return map[string]func() []string{"show": report.Formats, "compare": list(compareFormats...),
			"check": list(checkFormats...), "query": queryFormats, "history show": list(historyFormats...),
			"doctor": list("text", "json")}[command]
	case "formats":
		return export.Formats
	case "estimator":
		return list(estimatorNames...)
	case "counter-resets":
		return list(slices.Sorted(maps.Keys(resetNames))...)
	case "aiperf-rates":
		return list(rateNames...)
	case "aiperf-schema":
		return list("1.0", "1.1")
	case "parquet-layout":
		return list("aiperf", "tidy")
	case "protocols":
		return list("text", "openmetrics", "protobuf")
	case "store-command":
		return list(storeFull, storeRedacted, storeNone)
	case "live":
		return list(liveAuto, liveOn, liveOff)
	case "via":
		return list(promstore.ViaAuto, promstore.ViaRemoteRead, promstore.ViaQuery)
	case "remote-write-version":
		return list(promstore.WriteAuto, promstore.WriteV1, promstore.WriteV2)
	case "fail-on":
		return map[string]func() []string{"compare": list("worse", "moved", "unclear"),
			"history check": list("worse", "minor", "drift")}[command]
	case "order":
		return list("time", "commit")
	case "ready":
		return readyNames
	case "profile":
		return profileNames
	}
	return nil
}

// readyNames are the names of the ready checks; one that wants a value ends in =.
func readyNames() (out []string) {
	for _, line := range check.ReadyHelp() {
		name, _, _ := strings.Cut(line, " ")
		name, _, _ = strings.Cut(name, "[")
		if bare, _, ok := strings.Cut(name, "="); ok {
			name = bare + "="
		}
		out = append(out, name)
	}
	return out
}

func profileNames() []string {
	c, err := catalog.New()
	if err != nil {
		return nil // what is wrong with it, the command itself will say
	}
	return compare.Profiles(c)
}

// completeValue offers the values of a flag, and of a list those that are not in it.
func completeValue(f *pflag.Flag, values func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		before := ""
		if i := strings.LastIndexByte(typed, ','); i >= 0 && f.Value.Type() == "stringSlice" {
			before = typed[:i+1]
		}
		directive := cobra.ShellCompDirectiveNoFileComp
		var out []cobra.Completion
		for _, v := range values() {
			if before != "" && slices.Contains(strings.Split(before, ","), v) {
				continue // it stands there
			}
			if strings.HasSuffix(v, "=") {
				directive |= cobra.ShellCompDirectiveNoSpace
			}
			out = append(out, before+v)
		}
		return out, directive
	}
}

// completeRuns offers the run directories that are where the word points, and those
// in runs there, also behind NAME=. Where there is none the shell offers files.
func completeRuns(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	name := ""
	if n, rest, ok := strings.Cut(typed, "="); ok {
		name, typed = n+"=", rest
	}
	folder := typed[:strings.LastIndexAny(typed, "/"+string(filepath.Separator))+1]
	var out []cobra.Completion
	for _, in := range []string{folder, folder + "runs/"} {
		entries, err := os.ReadDir(cmp.Or(in, "."))
		if err != nil {
			continue
		}
		for _, e := range entries {
			path := in + e.Name()
			if strings.HasPrefix(path, typed) && !strings.ContainsFunc(path, unicode.IsControl) && isRun(path) {
				out = append(out, name+path)
			}
		}
	}
	return out, cobra.ShellCompDirectiveDefault
}

// isRun reports whether a folder holds a recording.
func isRun(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, "run.db"))
	return err == nil && info.Mode().IsRegular()
}

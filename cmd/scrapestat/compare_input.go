package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/compare"
	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/headline"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/window"
)

// sideArg is an argument of compare.
type sideArg struct {
	side, path string
	ref        window.Ref
}

// sidesOf splits arguments into names, paths and windows. Without a name a run is a side by
// itself, called as its path is; a path that occurs again is another side.
func sidesOf(args []string, w *windowFlags) ([]sideArg, error) {
	list := make([]window.Arg, len(args))
	for i, text := range args {
		var err error
		if list[i], err = w.arg(text); err != nil {
			return nil, err
		}
	}
	var out []sideArg
	seen, above := map[string]int{}, commonDir(list)
	for _, a := range list {
		name := a.Name
		if name == "" {
			name = strings.TrimPrefix(nameOf(a.Run), above)
			if a.Own {
				name += "@" + a.Ref.String()
			}
			if seen[name]++; seen[name] > 1 {
				name = fmt.Sprintf("%s#%d", name, seen[name])
			}
		}
		out = append(out, sideArg{name, a.Run, a.Ref})
	}
	return out, nil
}

// nameOf is the path of a run as a name.
func nameOf(run string) string {
	return strings.TrimSuffix(filepath.ToSlash(filepath.Clean(run)), "/server_metrics_export.json")
}

// commonDir is the directory that all runs without a name lie beneath, with its slash: it tells none from the others.
func commonDir(list []window.Arg) (dir string) {
	first := true
	for _, a := range list {
		if a.Name != "" {
			continue
		}
		name := nameOf(a.Run)
		if first {
			dir, first = name, false
		}
		for !strings.HasPrefix(name, dir) || dir == name || !strings.HasSuffix(dir, "/") && dir != "" {
			dir = dir[:strings.LastIndex(strings.TrimSuffix(dir, "/"), "/")+1]
		}
	}
	return dir
}

// checkProfile refuses a profile that the catalog does not know, with the names it does.
func checkProfile(o *compare.Options) error {
	if o.Catalog == nil {
		var err error
		if o.Catalog, err = catalog.New(); err != nil {
			return err
		}
	}
	if known := compare.Profiles(o.Catalog); o.Profile != "" && !slices.Contains(known, o.Profile) {
		return usagef("--profile: unknown profile %q (known: %s)", o.Profile, strings.Join(known, ", "))
	}
	return nil
}

// readInputs reads run directories, JSON exports where there is no recording, and CSVs of the values of runs. The
// estimator of the first export is that of the recordings too, unless one is asked for: those of an export cannot be
// changed.
func readInputs(ctx context.Context, sides []sideArg, o *compareOptions, so summary.Options) ([]compare.Input, error) {
	found, exported := make([][]compare.Input, len(sides)), ""
	for i, a := range sides {
		path, err := exportOf(a.path)
		if err != nil {
			return nil, err
		}
		switch {
		case path == "":
		case filepath.Ext(path) == ".csv":
			found[i], err = readValues(a, path)
		default:
			var in compare.Input
			if in, err = readJSON(a, path, o); err == nil {
				found[i], exported = []compare.Input{in}, cmp.Or(exported, in.Run.Options.Estimator)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	so.Estimator = cmp.Or(o.analysis.estimator, exported, so.Estimator)
	for i, a := range sides {
		if found[i] != nil {
			continue
		}
		in, err := readRecording(ctx, a, o, so)
		if err != nil {
			return nil, err
		}
		found[i] = []compare.Input{in}
	}
	inputs := slices.Concat(found...)
	var all []*summary.Run
	for _, in := range inputs {
		all = append(all, in.Run)
	}
	useRecorded(all...)
	return inputs, nil
}

// readValues reads the runs of a CSV of values.
func readValues(a sideArg, path string) (out []compare.Input, err error) {
	if a.ref != (window.Ref{}) {
		return nil, usagef("%s has values, whose window cannot be changed", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read values: %w", err)
	}
	defer f.Close()
	runs, err := headline.ReadCSV(f)
	if err != nil {
		return nil, usagef("%s:%w", path, err)
	}
	for i := range runs {
		name := cmp.Or(runs[i].Run, fmt.Sprint(i+1))
		out = append(out, compare.Input{Side: a.side, Path: path + ":" + name, Format: compare.FormatCSV,
			Run: &summary.Run{ID: path + ":" + name}, Values: []headline.Group{runs[i].Group}})
	}
	return out, nil
}

// exportOf is the path of the JSON export that an argument means, "" for a recording.
func exportOf(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("read run %s: %w", path, err)
	}
	if !info.IsDir() {
		if filepath.Base(path) == "run.db" {
			return "", nil
		}
		return path, nil
	}
	export := filepath.Join(path, "server_metrics_export.json")
	if _, err := os.Stat(filepath.Join(path, "run.db")); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(export); err == nil {
			return export, nil
		}
	}
	return "", nil
}

// phaseList is the name of AIPerf's list of phases, which stands for their exports.
const phaseList = "phase_manifest.json"

// openExport opens a JSON export. It is what it is: another window cannot be had, but of a list of phases one of them.
func openExport(path string, ref window.Ref) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read run: %w", err)
	}
	if filepath.Base(path) == phaseList {
		defer f.Close()
		phases, err := export.ReadPhaseManifest(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return openPhase(path, phases, ref)
	}
	if ref != (window.Ref{}) {
		f.Close() // it was only opened
		return nil, usagef("%s is an export, whose window cannot be changed: leave out --window, --phase, "+
			"--from, --to, --warmup, --cooldown and @, or give the run directory", path)
	}
	return f, nil
}

// openPhase opens the export of the phase that a selector asks for, which lies beneath the list.
func openPhase(path string, phases []export.Phase, ref window.Ref) (*os.File, error) {
	var names []string
	var found []export.Phase
	for _, p := range phases {
		names = append(names, p.Name)
		if p.Name == ref.Phase || ref == (window.Ref{}) {
			found = append(found, p)
		}
	}
	n := max(ref.Instance, 1)
	if ref.Warmup != nil || ref.Cooldown != nil || ref.What != window.Phase && ref.What != window.Default ||
		len(found) < n || len(found) > 1 && ref.Instance == 0 {
		return nil, usagef("%s has the phases %s: write one of them behind an @, without anything else", path,
			strings.Join(names, ", "))
	}
	file := filepath.FromSlash(found[n-1].File)
	if !filepath.IsLocal(file) {
		return nil, fmt.Errorf("%s: the file of phase %q is not beneath it: %q", path, found[n-1].Name, found[n-1].File)
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("read run: %w", err)
	}
	defer root.Close()
	f, err := root.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read run: %w", err)
	}
	return f, nil
}

// readJSON reads a JSON export.
func readJSON(a sideArg, path string, o *compareOptions) (compare.Input, error) {
	f, err := openExport(path, a.ref)
	if err != nil {
		return compare.Input{}, err
	}
	defer f.Close()
	run, doc, err := export.ReadJSON(f)
	if err != nil {
		return compare.Input{}, fmt.Errorf("%s: %w", path, err)
	}
	for i := range run.Derived {
		o.analysis.catalog.Describe(&run.Derived[i].Derived)
	}
	in := compare.Input{Side: a.side, Path: a.path, Format: compare.FormatAIPerf, Run: run}
	if doc.Ours {
		in.Format = compare.FormatScrapestat
	}
	in.Settings = append(in.Settings, compare.Setting{Kind: "schema", Name: "of the export", Value: doc.Schema})
	return in, nil
}

// readRecording analyses a recorded run.
func readRecording(ctx context.Context, a sideArg, o *compareOptions, so summary.Options) (compare.Input, error) {
	runs, closeAll, err := openRuns([]string{a.path}, o.analysis.memory)
	if err != nil {
		return compare.Input{}, fmt.Errorf("run %s: %w", a.path, err)
	}
	defer closeAll()
	meta := runs[0].Meta()
	so.Slice = cmp.Or(so.Slice, summary.NoiseSlices)
	if so.Quantiles == nil {
		so.Quantiles = []float64{0.5, 0.9, 0.95, 0.99}
	}
	so.Window = a.ref
	run, err := summary.Build(ctx, []summary.Recording{runs[0]}, so)
	if err != nil {
		return compare.Input{}, fmt.Errorf("run %s: %w", a.path, err)
	}
	if err := cmp.Or(notEmpty(run, a.path, 1), readRecorded(ctx, run, runs[0])); err != nil {
		return compare.Input{}, err
	}
	in := compare.Input{Side: a.side, Path: a.path, Format: compare.FormatRun, Run: run,
		Interval: meta.Interval.Seconds(),
		Settings: append(settingsOf(a.path, meta), recordedSetting(run))}
	if o.phases && a.ref == (window.Ref{}) {
		in.Phases, err = phasesOf(ctx, runs[0], run, a, so)
	}
	return in, err
}

// phasesOf analyses each phase of a run that a load generator named.
func phasesOf(ctx context.Context, rec summary.Recording, run *summary.Run, a sideArg,
	so summary.Options) (out []compare.Phase, err error) {
	for _, ph := range run.Phases {
		if slices.Contains([]string{metric.PhaseWarmup, metric.PhaseProfiling, metric.PhaseCooldown}, ph.Name) ||
			ph.Kind == metric.MarkOwn {
			continue
		}
		name := ph.Name
		so.Window = window.Ref{What: window.Phase, Phase: ph.Name}
		if ph.Of > 1 {
			name, so.Window.Instance = fmt.Sprintf("%s/%d", ph.Name, ph.Instance), ph.Instance
		}
		r, err := summary.Build(ctx, []summary.Recording{rec}, so)
		if err != nil {
			return nil, fmt.Errorf("run %s, phase %s: %w", a.path, name, err)
		}
		out = append(out, compare.Phase{Name: name, Input: compare.Input{Side: a.side, Path: a.path, Run: r}})
	}
	return out, nil
}

// settingsOf are the facts of a run that may explain a difference: its command and what its manifest says.
func settingsOf(dir string, meta rundb.Meta) []compare.Setting {
	var out []compare.Setting
	if i := slices.Index(meta.Command, "--"); i >= 0 {
		out = append(out, compare.Setting{Kind: "command", Name: "of the load", Value: strings.Join(meta.Command[i+1:], " ")})
	}
	if filepath.Base(dir) == "run.db" {
		dir = filepath.Dir(dir)
	}
	m, err := rundb.ReadManifest(dir)
	if err != nil {
		return out // a recording without a manifest is a recording
	}
	out = append(out, compare.Setting{Kind: "host", Name: "name", Value: m.Host.Hostname},
		compare.Setting{Kind: "host", Name: "system", Value: strings.TrimSpace(m.Host.OS + " " + m.Host.Arch)})
	if m.Host.CPUs > 0 {
		out = append(out, compare.Setting{Kind: "host", Name: "processors", Value: fmt.Sprint(m.Host.CPUs)})
	}
	for _, name := range slices.Sorted(maps.Keys(m.Options)) {
		// Older manifests have the names that flags had.
		if now := cmp.Or(renamedFlags[name], name); slices.Contains(recordingOptions, now) {
			out = append(out, compare.Setting{Kind: "option", Name: now, Value: fmt.Sprint(m.Options[name])})
		}
	}
	return out
}

// recordingOptions are the options of a recording that change what is measured.
var recordingOptions = []string{"interval", "timeout", "duration", "warmup", "cooldown", "settle", "keep", "drop",
	"compress", "scrape-budget"}

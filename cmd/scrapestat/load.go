package main

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
)

// analyse builds the result of one or several run directories and writes the exports. It returns the result also when
// some of the files could not be written.
func analyse(ctx context.Context, dirs []string, a analysisFlags, so summary.Options, out string,
	say *progress) (*summary.Run, []export.File, error) {
	result, runs, closeAll, err := load(ctx, dirs, a, so, say)
	if err != nil {
		return nil, nil, err
	}
	defer closeAll()
	if err := a.knowsLabels(result); err != nil {
		return nil, nil, err
	}
	eo := a.exportOptions()
	eo.Unhashed = !slices.Contains(dirs, out) // only a manifest keeps hashes
	samples := 0                              // of the formats, those that read the recording again
	for _, f := range a.formats {
		for _, kind := range export.Lookup(f, result, eo) {
			if kind.NeedsSamples {
				samples++
			}
		}
	}
	result.Warnings = append(result.Warnings, export.LabelNotes(result, a.formats, eo)...)
	watched, b := watch(say, "writing "+out, runs, samples)
	files, err := export.Write(ctx, out, a.formats, result, toExport(watched), eo)
	b.done()
	return result, files, err
}

// openRuns opens run directories; a path to the run.db inside one works too.
func openRuns(dirs []string, m memoryFlag) ([]*rundb.Run, func(), error) {
	var runs []*rundb.Run
	restore := limitGC(m.bytes)
	closeAll := func() {
		restore()
		for _, r := range runs {
			r.Close() // read only: there is nothing to lose
		}
	}
	for _, dir := range dirs {
		dir = runDir(dir)
		var r *rundb.Run
		err := notFile(dir)
		if err == nil {
			r, err = rundb.Open(dir)
		}
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		r.Bound(m.of)
		runs = append(runs, r)
	}
	return runs, closeAll, nil
}

// notFile refuses a file where a run directory is wanted, such as a report in one.
func notFile(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return nil
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), rundb.FileName)); err == nil {
		return usagef("%s is a file of a run: give the run directory, %s", path, filepath.Dir(path))
	}
	return usagef("%s is a file: give a run directory, which scrapestat collect wrote", path)
}

// noteOpen says which of the runs were never closed: their collector was killed
// or is still at work, so they end with the last committed scrape.
func noteOpen(say *progress, runs []*rundb.Run, dirs []string) {
	for i, r := range runs {
		if r.Meta().EndNS == 0 {
			say.logf("%s was not closed: its collector was killed or still records; this is what it has committed so far",
				dirs[i])
			if r.LacksLog() {
				say.logf("%s has no run.db-wal: if it was copied without, what was recorded last is missing", dirs[i])
			}
		}
	}
}

// load opens run directories and builds their result. Slices are as the recording was to be sliced, unless a says
// otherwise. The caller calls closeAll when err is nil and the recordings are no longer read.
func load(ctx context.Context, dirs []string, a analysisFlags, so summary.Options, say *progress) (
	result *summary.Run, runs []*rundb.Run, closeAll func(), err error) {
	a.memory.renew()
	runs, closeAll, err = openRuns(dirs, a.memory)
	if err != nil {
		return nil, nil, nil, err
	}
	missing, err := checkShards(runs, dirs)
	if err != nil {
		closeAll()
		return nil, nil, nil, err
	}
	noteOpen(say, runs, dirs)
	if a.sliceFlag != nil && !a.sliceFlag.Changed {
		so.Slice = runs[0].Meta().Slice
		if slices.Contains(a.formats, "llm-d") {
			so.Slice = cmp.Or(so.Slice, summary.PointSlices)
		}
	}
	watched, b := watch(say, "reading "+dirs[0], runs, 1)
	uniteMarks(watched)
	result, err = summary.Build(ctx, toAnalyse(watched), so)
	b.done()
	if err == nil {
		err = readRecorded(ctx, result, runs...)
	}
	if err != nil {
		closeAll()
		return nil, nil, nil, err
	}
	result.UseRecorded()
	result.Warnings = append(result.Warnings, missing...)
	return result, runs, closeAll, nil
}

func recordings(runs []*rundb.Run) []export.Recording {
	recs := make([]export.Recording, len(runs))
	for i, r := range runs {
		recs[i] = r
	}
	return recs
}

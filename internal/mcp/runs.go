package mcp

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/internal/suggest"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/query"
	"github.com/scrapestat/scrapestat/rundb"
)

// The limits of a search for runs.
const (
	maxEntries = 50_000
	maxDepth   = 8
)

// listRuns asks for the recordings below the roots.
func (s *server) listRuns(a runsArgs) (q question, err error) {
	in := s.roots
	if a.Root != "" {
		root, err := s.roots.find(a.Root)
		if err != nil {
			return q, err
		}
		in = roots{root}
	}
	paths, whole := in.recordings()
	q = question{tool: "runs", flags: in, cursor: a.Cursor}
	for _, path := range paths {
		q.files = append(q.files, filepath.Join(path, rundb.FileName))
	}
	q.read = func(ctx context.Context, s *server, _ *question, from int) (*result, error) {
		to := min(len(paths), from+rowsRead)
		out := &result{table: true, first: from, more: to < len(paths)}
		if !whole {
			out.warnings = []string{fmt.Sprintf("only %d directories were looked at: give a root", maxEntries)}
		}
		for _, path := range paths[min(from, to):to] {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			out.rows = append(out.rows, s.about(ctx, path))
		}
		return out, nil
	}
	return q, nil
}

// recordings lists the directories with a recording, in the order of their paths. whole is false when there are more
// directories than are looked at. Links are not followed.
func (r roots) recordings() (out []string, whole bool) {
	left := maxEntries
	for _, root := range r {
		// What cannot be read has no runs.
		_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if left--; left < 0 {
				return fs.SkipAll
			}
			rel, _ := filepath.Rel(root, path)
			switch {
			case err != nil:
				return nil
			case e.IsDir() && rel != "." && (strings.HasPrefix(e.Name(), ".") || strings.Count(rel, "/") >= maxDepth):
				return fs.SkipDir
			case e.Name() == rundb.FileName && e.Type().IsRegular():
				out = append(out, filepath.Dir(path))
			}
			return nil
		})
	}
	slices.Sort(out)
	return slices.Compact(out), left >= 0
}

// about is the row of a recording.
func (s *server) about(ctx context.Context, path string) texttab.Object {
	row := texttab.NewObject("path", path, "id", nil, "tags", nil, "start", nil, "seconds", nil, "engines", nil,
		"targets", nil, "warnings", nil)
	set := func(name string, v any) {
		i := slices.IndexFunc(row, func(f texttab.Field) bool { return f.Name == name })
		row[i].Value = v
	}
	r, err := rundb.Open(path)
	if err != nil {
		set("warnings", []any{clip(err.Error(), maxText)})
		return row
	}
	defer r.Close()
	m, tags := r.Meta(), texttab.Object{}
	for _, name := range sortedKeys(m.Tags) {
		tags = tags.With(clip(name, maxText), clip(m.Tags[name], maxText))
	}
	set("id", clip(m.ID, maxText))
	set("tags", tags)
	set("start", time.Unix(0, m.OriginNS).UTC().Format(time.RFC3339))
	warnings := []any{}
	if m.EndNS > 0 {
		set("seconds", float64(m.EndNS-m.OriginNS)/1e9)
	} else {
		warnings = append(warnings, "not closed: its collector was killed or still records")
	}
	var engines, targets []any
	for i, t := range r.Targets() {
		if i == 16 {
			targets = append(targets, fmt.Sprintf("%d more", len(r.Targets())-i))
			break
		}
		targets = append(targets, clip(t.Shown(), maxText))
		for _, e := range s.engines(ctx, r, i) {
			if !slices.Contains(engines, e) {
				engines = append(engines, e)
			}
		}
	}
	set("engines", engines)
	set("targets", targets)
	for _, w := range r.Warnings() {
		if len(warnings) < 5 {
			warnings = append(warnings, clip(w.Code+": "+w.Text, maxText))
		}
	}
	set("warnings", warnings)
	return row
}

func sortedKeys(m map[string]string) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// engines are those that the first answer of a target shows.
func (s *server) engines(ctx context.Context, r *rundb.Run, target int) (out []any) {
	var d metric.Schema
	for snapshot, err := range r.Snapshots(ctx, target) {
		if err != nil || d.Extend(snapshot) != nil {
			return nil
		}
		if len(d.Families) > 0 {
			break
		}
	}
	for _, e := range s.catalog.Engines(&d) {
		out = append(out, e.ID)
	}
	return out
}

// readSamples reads rows of the table of samples, from one on.
func (s *server) readSamples(ctx context.Context, path string, a *samplesArgs, from int) (*result, error) {
	r, err := rundb.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	w := &sampleReader{args: a, server: s, out: &result{table: true, first: from}, skip: from}
	known := false
	for i, t := range r.Targets() {
		if a.Target != "" && a.Target != t.Name && a.Target != t.URL {
			continue
		}
		known = true
		if err := w.target(ctx, r, i, t.Shown()); err != nil {
			return nil, err
		}
		if w.out.more {
			break
		}
	}
	switch {
	case !known:
		var names []string
		for _, t := range r.Targets() {
			names = append(names, t.Shown())
		}
		return nil, fmt.Errorf("target %s: the run has %s", a.Target, strings.Join(names[:min(len(names), 10)], ", "))
	case !w.found:
		names := slices.Compact(slices.Sorted(slices.Values(w.families)))
		return nil, fmt.Errorf("no target has a family called %s%s", a.Metric, suggest.Clause(a.Metric, names))
	}
	return w.out, nil
}

// sampleReader collects rows of samples.
type sampleReader struct {
	args     *samplesArgs
	server   *server
	out      *result
	skip     int
	found    bool
	families []string
}

// target reads the samples of one target, in the order of their times.
func (w *sampleReader) target(ctx context.Context, r *rundb.Run, target int, name string) error {
	var state metric.Replay
	var wanted []int
	var families []bool // by index: whether it is asked for
	slots := 0
	for snapshot, err := range r.Snapshots(ctx, target) {
		if err == nil {
			err = state.Step(snapshot)
		}
		if err != nil {
			return err
		}
		for i := len(families); i < len(state.Families); i++ {
			families = append(families, w.wants(&state.Families[i]))
		}
		for ; slots < len(state.Slots); slots++ {
			slot := &state.Slots[slots]
			if families[state.Series[slot.Series].Family] && !slot.Role.Metadata() {
				wanted = append(wanted, slots)
			}
		}
		at := snapshot.AtNS()
		if !snapshot.Outcome.Stored() || at < w.args.From {
			continue
		}
		if at >= w.args.To {
			return nil
		}
		for _, slot := range wanted {
			if !state.Present[slot] {
				continue
			}
			if w.skip--; w.skip >= 0 {
				continue
			}
			if w.out.more = len(w.out.rows) == rowsRead; w.out.more {
				return nil
			}
			w.out.rows = append(w.out.rows, w.row(&state, slot, name, at))
		}
	}
	return nil
}

// wants reports whether a family is asked for.
func (w *sampleReader) wants(f *metric.Family) bool {
	w.families = append(w.families, f.Name)
	id, isWord := query.ID(w.args.Metric)
	ok := f.Name == strings.TrimSuffix(w.args.Metric, "_total") || f.Name == w.args.Metric ||
		isWord && w.server.catalog.Canonical(f.Name) == id
	w.found = w.found || ok
	return ok
}

// row is a sample.
func (w *sampleReader) row(state *metric.Replay, slot int, target string, at int64) texttab.Object {
	id := &state.Slots[slot]
	f := state.FamilyOf(id.Series)
	unit := f.Unit
	if known, ok := w.server.catalog.Family(f.Name); ok {
		unit = cmp.Or(known.Unit, unit)
	}
	labels := texttab.Object{}
	for name, value := range state.Series[id.Series].Labels.All() {
		labels = labels.With(clip(name, maxText), clip(value, maxText))
	}
	var value any = state.Bits[slot]
	if v := id.Float(state.Bits[slot]); !id.Integer {
		if value = v; math.IsNaN(v) || math.IsInf(v, 0) {
			value = strconv.FormatFloat(v, 'g', -1, 64)
		}
	}
	return texttab.NewObject("target", clip(target, maxText), "metric", clip(f.Name, maxText), "kind", f.Type.String(),
		"unit", clip(unit, maxText), "labels", labels, "t_ns", at, "part", id.Role.String(),
		"bound", clip(id.Text, maxText), "value", value)
}

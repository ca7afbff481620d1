package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/explain"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/sweep"
	"github.com/scrapestat/scrapestat/window"
)

// The limits of a sweep.
const (
	maxPoints = 1000
	skipShare = 10 // the part of a phase that is transient: a tenth
	maxSkip   = 30 * time.Second
)

// sweepPoint is a point with what it belongs to.
type sweepPoint struct {
	sweep, engine, unit string
	point               sweep.Point
	run                 *summary.Run
	gpus                float64
}

// part is a stretch of a run that is a point.
type part struct {
	label  string
	ref    window.Ref
	within window.Stretch
}

// sweepReader reads the points of a command line.
type sweepReader struct {
	*sweepOptions
	so     summary.Options
	slos   []sweep.SLO
	points []sweepPoint
}

// read reads all points of the runs.
func (r *sweepReader) read(ctx context.Context) error {
	for _, text := range r.runs {
		a, err := r.window.arg(text)
		if err == nil {
			err = r.readRun(ctx, a)
		}
		if err != nil {
			return err
		}
	}
	if err := r.once(); err != nil {
		return err
	}
	return r.oneUnit()
}

func (r *sweepReader) readRun(ctx context.Context, a window.Arg) error {
	runs, closeAll, err := openRuns([]string{a.Run}, r.analysis.memory)
	if err != nil {
		return fmt.Errorf("run %s: %w", a.Run, err)
	}
	defer closeAll()
	parts, err := r.parts(ctx, runs[0], a)
	if err != nil {
		return err
	}
	if len(r.points)+len(parts) > maxPoints {
		return usagef("more than %d points: name the phases that matter", maxPoints)
	}
	before := map[string]int{} // the last point of each engine in this run, from 1
	var end int64
	for _, p := range parts {
		so := r.so
		so.Window = p.ref
		run, err := summary.Build(ctx, []summary.Recording{runs[0]}, so)
		if err != nil {
			return fmt.Errorf("run %s: %w", a.Run, err)
		}
		if p.label == "" {
			p.label = a.Run
		}
		if err := r.add(a, run, p, before, p.within.StartNS == end); err != nil {
			return err
		}
		end = p.within.EndNS
	}
	return nil
}

// add adds the points of the engines of a part of a run. follows is set when it comes right after the one before.
func (r *sweepReader) add(a window.Arg, run *summary.Run, p part, before map[string]int, follows bool) error {
	for _, x := range sweep.Read(run, r.slos, explain.DefaultRules()) {
		if r.engine != "" && x.Engine != r.engine {
			continue
		}
		x.Point.Label = p.label
		if follows {
			x.Point.Follows = before[x.Engine]
		}
		unit, err := r.load(run, p.label, &x.Point)
		if err != nil {
			return err
		}
		r.points = append(r.points, sweepPoint{a.Name, x.Engine, unit, x.Point, run, x.GPUs})
		before[x.Engine] = len(r.points)
	}
	return nil
}

// load finds the load of a point and its unit.
func (r *sweepReader) load(run *summary.Run, label string, p *sweep.Point) (unit string, err error) {
	measured := func(v float64, unit string) (string, error) {
		p.Load, p.Measured = v, true
		if !(v > 0) || math.IsInf(v, 0) {
			return "", usagef("%s: no load is told, and none can be measured: name phases after it (rate-8), or give "+
				"--load TAG", label)
		}
		return unit, nil
	}
	var ok bool
	tag := r.loadTag
	if tag == "" && r.plateaus {
		tag = "arrivals"
	}
	switch tag {
	case "arrivals":
		return measured(p.Arrivals, sweep.PerSecond)
	case "running":
		return measured(meanOf(p.Running), sweep.Concurrent)
	case "":
		if p.Load, unit, ok = sweep.NamedLoad(label); ok {
			break
		}
		if p.Load, unit, ok, err = sweep.TaggedLoad(run.Tags, ""); ok || err != nil {
			break
		}
		if p.Load, unit, ok = sweep.CommandLoad(run.Command); !ok {
			return measured(cmp.Or(known(p.Arrivals), p.X), sweep.PerSecond)
		}
	default:
		if p.Load, unit, ok, err = sweep.TaggedLoad(run.Tags, r.loadTag); !ok && err == nil {
			err = fmt.Errorf("the run has no tag %s", r.loadTag)
		}
	}
	if err != nil {
		return "", usagef("%s: %w", label, err)
	}
	if !(p.Load > 0) || math.IsInf(p.Load, 0) {
		return "", usagef("%s: a load of %v: want a number above 0", label, p.Load)
	}
	return unit, nil
}

func known(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

func meanOf(list []float64) float64 {
	sum, n := 0.0, 0
	for _, v := range list {
		if !math.IsNaN(v) {
			sum, n = sum+v, n+1
		}
	}
	return sum / float64(n)
}

// parts are the stretches of a run that an argument asks for: the phases of a name with wildcards, without a selector
// all phases that a load generator set, or else the window of the run.
func (r *sweepReader) parts(ctx context.Context, rec *rundb.Run, a window.Arg) ([]part, error) {
	if r.plateaus {
		return r.findPlateaus(ctx, rec, a)
	}
	if a.Ref.What != window.Default && a.Ref.What != window.Phase {
		return []part{{ref: a.Ref}}, nil
	}
	so := r.so
	so.Window = window.Ref{}
	w, err := summary.WindowOf(ctx, rec, so)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", a.Run, err)
	}
	var out []part
	var names []string
	for _, p := range w.Phases {
		if r.own(&p) {
			continue
		}
		names = append(names, p.Name)
		if a.Ref.What == window.Phase {
			matched, err := path.Match(a.Ref.Phase, p.Name)
			if err != nil {
				return nil, usagef("%s: %w", a.Ref.Phase, err)
			}
			if !matched && p.Name != a.Ref.Phase || a.Ref.Instance > 0 && p.Instance != a.Ref.Instance {
				continue
			}
		}
		out = append(out, r.part(&p, a.Ref))
	}
	switch {
	case len(out) > 0:
		return out, nil
	case a.Ref.What == window.Default:
		return []part{{ref: a.Ref}}, nil
	case strings.ContainsAny(a.Ref.Phase, "*?["):
		return nil, usagef("run %s: no phase matches %q (known: %s)", a.Run, a.Ref.Phase, strings.Join(names, ", "))
	}
	return []part{{ref: a.Ref}}, nil // which tells the phases that there are
}

// findPlateaus finds the stretches of one load in the window of a run, without their starts.
func (r *sweepReader) findPlateaus(ctx context.Context, rec *rundb.Run, a window.Arg) (out []part, err error) {
	so := r.so
	so.Window = a.Ref
	w, err := summary.WindowOf(ctx, rec, so)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", a.Run, err)
	}
	if so.Slice < 0 && rec.Meta().Interval > 0 {
		so.Slice = max(2*rec.Meta().Interval, time.Duration(w.End.AtNS-w.Start.AtNS)/maxPoints).Truncate(time.Millisecond)
	}
	run, err := summary.Build(ctx, []summary.Recording{rec}, so)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", a.Run, err)
	}
	arrivals := explain.Read(run)[0].Arrivals()
	if arrivals == nil {
		return nil, usagef("--plateaus: %s does not show what waits, runs and ends: mark phases (scrapestat mark)", a.Run)
	}
	at := func(slice int) int64 {
		return min(run.Window.StartNS+int64(slice)*run.Options.Slice.Nanoseconds(), run.Window.EndNS)
	}
	for i, p := range sweep.Plateaus(arrivals) {
		from, to := at(p.From), at(p.To)
		skipped := from + (to-from)/skipShare
		if r.skip >= 0 {
			skipped = from + r.skip.Nanoseconds()
		}
		out = append(out, part{fmt.Sprintf("plateau-%d", i+1), window.Ref{What: window.Range,
			From: window.Point{Base: window.Absolute, AtNS: skipped}, To: window.Point{Base: window.Absolute, AtNS: to}},
			window.Stretch{StartNS: from, EndNS: to}})
	}
	return out, nil
}

// own reports whether a phase is no load of its own.
func (r *sweepReader) own(p *window.PhaseSpan) bool {
	return p.Kind == metric.MarkOwn || p.Kind == metric.MarkPolled ||
		slices.Contains([]string{metric.PhaseWarmup, metric.PhaseProfiling, metric.PhaseCooldown}, p.Name)
}

// part is a phase without its start, which is transient.
func (r *sweepReader) part(p *window.PhaseSpan, ref window.Ref) part {
	out := part{label: p.Name, within: p.Stretch, ref: ref}
	out.ref.What, out.ref.Phase = window.Phase, p.Name
	if p.Of > 1 {
		out.ref.Instance = p.Instance
	}
	if ref.Warmup == nil {
		skip := r.transient(p.EndNS - p.StartNS)
		out.ref.Warmup = &skip
	}
	return out
}

// transient is how much of the start of a stretch is left out.
func (r *sweepReader) transient(lengthNS int64) time.Duration {
	if r.skip >= 0 {
		return r.skip
	}
	return min(time.Duration(lengthNS/skipShare), maxSkip)
}

// once refuses the same stretch of the same run twice in a sweep, which would be no repeat.
func (r *sweepReader) once() error {
	for i := range r.points {
		a := &r.points[i]
		for k := range r.points[:i] {
			b := &r.points[k]
			if a.sweep == b.sweep && a.engine == b.engine && a.point.Run == b.point.Run &&
				a.point.StartNS < b.point.EndNS && b.point.StartNS < a.point.EndNS {
				return usagef("%s and %s are of the same run and overlap: that is no repeat", b.point.Label, a.point.Label)
			}
		}
	}
	return nil
}

// oneUnit refuses loads of different units in one sweep.
func (r *sweepReader) oneUnit() error {
	first := map[string]*sweepPoint{}
	for i := range r.points {
		p := &r.points[i]
		f := first[p.sweep]
		if f == nil {
			first[p.sweep] = p
		} else if f.unit != p.unit {
			return usagef("loads of different units: %s is %g %s, %s is %g %s: give them different names (NAME=RUN), or "+
				"--load arrivals", f.point.Label, f.point.Load, f.unit, p.point.Label, p.point.Load, p.unit)
		}
	}
	return nil
}

// sweeps analyses the points, a sweep for each name and engine.
func (r *sweepReader) sweeps() (out []*sweep.Sweep, err error) {
	type key struct{ name, engine string }
	var order []key
	lists := map[key][]*sweepPoint{}
	at := make([]int, len(r.points)) // of a point in its list, from 1
	for i := range r.points {
		k := key{r.points[i].sweep, r.points[i].engine}
		if lists[k] == nil {
			order = append(order, k)
		}
		lists[k] = append(lists[k], &r.points[i])
		at[i] = len(lists[k])
	}
	for _, k := range order {
		var points []sweep.Point
		for _, p := range lists[k] {
			if p.point.Follows > 0 {
				p.point.Follows = at[p.point.Follows-1]
			}
			points = append(points, p.point)
		}
		s := sweep.Analyse(k.name, lists[k][0].unit, points, r.slos)
		s.Engine = k.engine
		if err := r.configure(s, lists[k]); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// configure sets what a configuration has and costs: by flag, by tag, by what an exporter shows.
func (r *sweepReader) configure(s *sweep.Sweep, points []*sweepPoint) error {
	var err error
	if s.GPUs, _, err = r.setting("gpus", r.gpus, s.Name, points); err != nil {
		return err
	}
	if s.PerHour, s.Currency, err = r.setting("cost_per_hour", r.cost, s.Name, points); err != nil {
		return err
	}
	for _, p := range points {
		if s.GPUs == 0 && p.gpus > 0 {
			s.GPUs = p.gpus
		}
	}
	if s.GPUs == 0 {
		s.Notes = append(s.Notes, "nothing per GPU: neither --gpus, a tag gpus nor an exporter of GPUs tells how many")
	}
	if len(s.Engine) == 0 {
		s.Notes = append(s.Notes, "no engine shows the time of requests")
	}
	for i := range s.Points {
		if s.Points[i].Measured {
			s.Notes = append(s.Notes, "load measured: nothing told it, so it is that of the arrivals")
			break
		}
	}
	return nil
}

// setting is a number of a configuration, 0 without one: of a flag [NAME=]N, or of a tag, which all its runs agree on.
func (r *sweepReader) setting(tag string, flags []string, name string, points []*sweepPoint) (float64, string, error) {
	text := ""
	for _, f := range flags {
		of, value, named := strings.Cut(f, "=")
		if !named {
			of, value = name, f
		}
		if of == name {
			text = value
		}
	}
	for _, p := range points {
		own := p.run.Tags[tag]
		if text == "" {
			text = own
		}
		if len(flags) == 0 && own != text {
			return 0, "", usagef("tag %s is %q in %s and %q in another point of %q", tag, own, p.point.Label, text, name)
		}
	}
	if text == "" {
		return 0, "", nil
	}
	return amount(tag, text)
}

// amount reads a number above 0 and what it is of: "2.5EUR".
func amount(name, text string) (float64, string, error) {
	number := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ$€£¥ ")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !(v > 0) || math.IsInf(v, 0) {
		return 0, "", usagef("%s %q: want a number above 0", name, text)
	}
	return v, strings.TrimSpace(text[len(number):]), nil
}

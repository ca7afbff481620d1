package summary

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/window"
	"github.com/scrapestat/scrapestat/window/traffic"
)

// notEnded stands for the end of a run that is not known yet.
const notEnded = math.MaxInt64

// plan is the part of a run that is analysed.
type plan struct {
	window   Window
	resolved window.Window
	// open is set when everything up to the last poll counts.
	open     bool
	last     int64 // the last instant whose polls count, but for open windows
	warmup   *Window
	phases   []Phase
	empty    bool               // nothing is left
	clients  [2]*rundb.Boundary // what clients told of the start and of the end; nil for nothing
	warnings []metric.Warning
}

// knownOf is what a recording tells about itself and its load; endNS is where one ends that has no mark for it.
func (b *Builder) knownOf(marks []metric.Mark, endNS int64, found *traffic.Traffic) window.Run {
	meta := &b.meta
	run := window.Run{Marks: marks, OriginNS: meta.OriginNS, EndNS: endNS, Interval: meta.Interval, Warmup: meta.Warmup,
		Cooldown: meta.Cooldown, Window: b.asked}
	c := meta.Command
	run.All = len(c) > 2 && c[1] == "import" && !strings.HasPrefix(c[2], "aiperf")
	run.Told = len(c) > 1 && (c[1] == "simulate" || c[1] == "import") && !run.All
	if found != nil {
		run.Traffic = *found
	}
	return run
}

// planRun chooses the window.
func planRun(run window.Run, o *Options) (plan, error) {
	w, warnings, err := window.Resolve(run, o.Window)
	if err != nil {
		return plan{}, fmt.Errorf("choose window: %w", err)
	}
	p := plan{resolved: w, warnings: warnings, empty: len(w.Parts) == 0, open: w.LastNS == notEnded, last: w.LastNS}
	p.window = Window{Phase: w.Phase, StartNS: w.Start.AtNS, EndNS: w.End.AtNS, PhaseEndNS: w.End.AtNS,
		Resolved: &w}
	if w.Warmup != nil && w.Warmup.StartNS < w.Warmup.EndNS {
		p.warmup = &Window{Phase: metric.PhaseWarmup, StartNS: w.Warmup.StartNS, EndNS: w.Warmup.EndNS,
			PhaseEndNS: w.Warmup.EndNS}
	}
	for _, ph := range w.Phases {
		p.phases = append(p.phases, Phase{Name: ph.Name, StartNS: ph.StartNS, EndNS: ph.EndNS, Instance: ph.Instance,
			Of: ph.Of, Kind: ph.Kind})
	}
	if p.empty {
		p.window.EndNS, p.window.PhaseEndNS = p.window.StartNS, p.window.StartNS
	}
	switch {
	case w.Empty != "":
		p.warnings = append(p.warnings, metric.Warning{Code: "empty_window", Text: w.Empty})
	case p.empty && run.EndNS > run.OriginNS:
		p.warnings = append(p.warnings, metric.Warning{Code: "ended_early",
			Text: "the run ended before the window began: there are no statistics"})
	}
	return p, nil
}

// needsTraffic reports whether the window of a run depends on when it had requests.
func needsTraffic(run window.Run, o *Options) bool {
	what := cmp.Or(o.Window.What, run.Window.What)
	switch what {
	case window.Default:
		told := run.Told || run.All || slices.ContainsFunc(run.Marks, func(m metric.Mark) bool {
			return m.Name == metric.PhaseProfiling && !m.Own()
		})
		return !told
	case window.Command, window.Phase:
		return false
	}
	return true
}

// firstMark returns the first mark of one of the names.
func firstMark(marks []metric.Mark, names ...string) (at int64, ok bool) {
	for _, m := range marks {
		if slices.Contains(names, m.Name) && (!ok || m.AtNS < at) {
			at, ok = m.AtNS, true
		}
	}
	return at, ok
}

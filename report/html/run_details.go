package html

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// runView is what ran.
type runView struct {
	Name    string
	Index   int
	Facts   []fact
	Limits  string // that were in force while recording
	Targets []targetView
}

type fact struct {
	Name, Value string
	Code        bool // shown as typed
}

// targetView is a target with how it did.
type targetView struct {
	Name, URL, Engine, Labels        string
	Scrapes, OK, Failed, Skipped     int
	Series, Families, Gaps, Resets   int
	Samples, Lost                    string
	Took, Late, Body, First, Lasting string
	Bad                              bool
}

// chip is a word on the state of all runs.
type chip struct{ Text, Kind string }

func viewRun(in *Input, index int) runView {
	r := in.Run
	v := runView{Name: clip(in.Name, 120), Index: index}
	add := func(name, value string, code bool) {
		if value != "" {
			v.Facts = append(v.Facts, fact{name, value, code})
		}
	}
	add("Run", clip(r.ID, 80), true)
	add("Started", time.Unix(0, r.OriginNS).UTC().Format("2006-01-02 15:04:05 UTC"), false)
	add("Measured", windowText(r), false)
	var phases []string
	for _, p := range r.Phases {
		if len(phases) == 12 {
			phases = append(phases, "…")
			break
		}
		phases = append(phases, clip(p.Name, 40)+" "+short(p.EndNS-p.StartNS))
	}
	add("Phases", strings.Join(phases, ", "), false)
	add("Host", clip(r.Host, 80), false)
	add("Tool", "scrapestat "+clip(r.Version, 40), false)
	var tags []string
	for k, val := range r.Tags {
		tags = append(tags, clip(k, 60)+"="+clip(val, 120))
	}
	sort.Strings(tags)
	add("Tags", strings.Join(tags[:min(len(tags), 30)], "  "), true)
	add("Command", clip(strings.Join(r.Command, " "), 600), true)
	add("Percentiles", r.Options.Estimator+" estimator, with bounds", false)
	if in.Open {
		add("State", "not closed: its collector was killed or still records; this is what it has committed", false)
	}
	v.Limits = limitsText(r.Limits)
	for i := range r.Endpoints {
		if i == maxTargets {
			break
		}
		v.Targets = append(v.Targets, viewTarget(in, i))
	}
	return v
}

// maxTargets bounds the rows of the table of targets.
const maxTargets = 500

func windowText(r *summary.Run) string {
	w := r.Window
	if w.EndNS <= w.StartNS {
		return "nothing yet"
	}
	name := cmp.Or(w.Phase, "window")
	return fmt.Sprintf("%s, %s from %s", clip(name, 60), short(w.EndNS-w.StartNS),
		time.Unix(0, w.StartNS).UTC().Format("15:04:05.000 UTC"))
}

func limitsText(limits map[string]int64) string {
	var out []string
	for k, n := range limits {
		if n > 0 {
			out = append(out, clip(k, 40)+" "+grouped(n))
		}
	}
	sort.Strings(out)
	return strings.Join(out, ", ")
}

func viewTarget(in *Input, i int) targetView {
	e := &in.Run.Endpoints[i]
	l := &e.Ledger
	stored, skipped := l.StoredPolls(), l.Outcomes[metric.SkippedOverlap]
	v := targetView{Name: endpointLabel(in.Run, i), URL: clip(e.URL, 160), Labels: clip(e.Labels.String(), 200),
		Scrapes: l.Scheduled, OK: stored, Skipped: skipped, Failed: l.Scheduled - stored - skipped,
		Series: l.SeriesN, Families: l.Families, Gaps: e.GapsN,
		Samples: grouped(l.Stored), Lost: grouped(l.Lines - l.Stored), Took: "–", Late: "–", Body: "–"}
	if stored > 0 {
		v.Took = e.Fetches.AvgLatency.Round(10 * time.Microsecond).String()
		v.Body = bytesText(l.Bytes / int64(stored))
	}
	if l.Scheduled > 0 {
		v.Late = l.Late.P99.Round(10 * time.Microsecond).String()
	}
	if in.Timeline != nil {
		v.Engine = clip(in.Timeline.engines(i), 120)
		v.Resets = in.Timeline.resetsOf(i)
	}
	v.Bad = v.Failed > 0 || v.Gaps > 0 || stored == 0
	for _, life := range e.Lives {
		word := "came"
		if life.Gone {
			word = "went"
		}
		v.Lasting += fmt.Sprintf("%s at %s (%s) ", word, short(life.AtNS-in.Run.OriginNS), clip(life.Reason, 80))
	}
	return v
}

// engines names the programs behind a target by the families it showed.
func (t *Timeline) engines(target int) string {
	k := t.peek(target)
	if k == nil {
		return ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []string
	for _, e := range t.o.Catalog.Engines(&k.dict) {
		if e.Host {
			continue
		}
		out = append(out, strings.TrimSpace(e.Name+" "+e.Version))
	}
	return strings.Join(out, ", ")
}

func (t *Timeline) peek(target int) *track {
	t.mu.Lock()
	defer t.mu.Unlock()
	if target < len(t.targets) {
		return t.targets[target]
	}
	return nil
}

// resetsOf is how many polls of a target showed a counter that fell.
func (t *Timeline) resetsOf(target int) int {
	k := t.peek(target)
	if k == nil {
		return 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.resets)
}

// resets are the instants at which counters fell, of all targets, ascending.
func (t *Timeline) resets() []int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []int64
	for _, k := range t.targets {
		if k != nil {
			k.mu.Lock()
			out = append(out, k.resets...)
			k.mu.Unlock()
		}
	}
	slices.Sort(out)
	return out[:min(len(out), maxSpans)]
}

func (p *page) chips() []chip {
	var targets, dark, scrapes, failed int
	var lost int64
	live := false
	for _, in := range p.ins {
		live = live || in.Open
		for i := range in.Run.Endpoints {
			l := &in.Run.Endpoints[i].Ledger
			targets++
			if l.StoredPolls() == 0 {
				dark++
			}
			scrapes += l.Scheduled
			failed += l.Scheduled - l.StoredPolls()
			for _, x := range l.Losses() {
				if x.Lines {
					lost += int64(x.N)
				}
			}
		}
	}
	pick := func(bad bool, worse, fine string) chip {
		if bad {
			return chip{worse, "bad"}
		}
		return chip{fine, "good"}
	}
	out := []chip{
		pick(dark > 0, fmt.Sprintf("%d of %d targets never answered", dark, targets), count(targets, "target")+" answered"),
		pick(failed > 0, fmt.Sprintf("%s of %s scrapes failed", grouped(int64(failed)), grouped(int64(scrapes))),
			grouped(int64(scrapes))+" scrapes, none failed"), pick(lost > 0, grouped(lost)+" lines lost", "no line lost"),
	}
	if n := len(p.Warnings); n > 0 {
		out = append(out, chip{count(n, "kind") + " of warning", "warn"})
	}
	if p.Live {
		out = append(out, chip{"live", "live"})
	} else if live {
		out = append(out, chip{"recording not closed", "warn"})
	}
	return out
}

// loss is what did not arrive.
type loss struct{ Run, Target, Count, What, First string }

// maxRows bounds the rows of losses and of warnings of one code.
const maxRows = 100

func (p *page) losses(run int) {
	r := p.ins[run].Run
	for i := range r.Endpoints {
		for _, x := range r.Endpoints[i].Ledger.Losses() {
			if len(p.Losses) == maxRows*len(p.ins) {
				return
			}
			what := map[bool]string{false: "scrapes: ", true: "lines: "}[x.Lines] + x.What
			p.Losses = append(p.Losses, loss{p.runName(run), endpointLabel(r, i), grouped(int64(x.N)), clip(what, 80),
				clip(x.First, 240)})
		}
	}
}

// runName names a run where there are several.
func (p *page) runName(run int) string {
	if len(p.ins) < 2 {
		return ""
	}
	return clip(p.ins[run].Name, 80)
}

// warning is all warnings of one code.
type warning struct {
	Code  string
	Count int
	Texts []string
}

// maxTexts bounds the texts of a code.
const maxTexts = 8

func (p *page) warnings(run int) {
	r := p.ins[run].Run
	say := func(where string, ws []metric.Warning) {
		for _, w := range ws {
			i := slices.IndexFunc(p.Warnings, func(x warning) bool { return x.Code == texttab.Escape(w.Code) })
			if i < 0 {
				if len(p.Warnings) == maxRows {
					continue
				}
				i = len(p.Warnings)
				p.Warnings = append(p.Warnings, warning{Code: texttab.Escape(w.Code)})
			}
			if p.Warnings[i].Count++; len(p.Warnings[i].Texts) < maxTexts {
				p.Warnings[i].Texts = append(p.Warnings[i].Texts, strings.TrimSpace(p.runName(run)+" "+where)+" "+clip(w.Text, 400))
			}
		}
	}
	say("", r.Warnings)
	for i := range r.Endpoints {
		say(endpointLabel(r, i)+":", r.Endpoints[i].Warnings)
	}
	for i := range r.Metrics {
		for j := range r.Metrics[i].Series {
			s := &r.Metrics[i].Series[j]
			if len(s.Warnings) > 0 {
				say(endpointLabel(r, s.Endpoint)+" "+clip(r.Metrics[i].Name+s.Labels.String(), 200)+":", s.Warnings)
			}
		}
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return grouped(int64(n)) + " " + what + "s"
}

// grouped writes an integer with its thousands apart.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func bytesText(n int64) string {
	if n < 10<<10 {
		return grouped(n) + " B"
	}
	return grouped((n+512)/1024) + " KiB"
}

// short writes a span of nanoseconds.
func short(ns int64) string { return time.Duration(ns).Round(10 * time.Millisecond).String() }

// Package report writes results for people, and for programs that want what people see: as text for a terminal, as
// Markdown for GitHub, as JSON and as CSV.
//
//	err := report.Write(os.Stdout, run, report.FormatText, report.Options{Title: "run1"})
//
// The first screen says per engine what the throughput, the latency and the saturation was and where the time went, in
// the quantities of package catalog; families, endpoints and everything derived are there for the asking.
//
// Everything that came from a target is escaped on the way out, so a hostile label or error text cannot move the
// cursor, nor begin a link. Missing is never printed as 0: a number that does not exist is a dash, in JSON null, in
// CSV nothing.
package report

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/explain"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// Options says what is told of a run. The zero value is the first screen.
type Options struct {
	Title  string         // name of the run, usually its directory
	Metric *regexp.Regexp // the families and derived quantities whose name matches; nil is none in particular
	// Families lists what every family did; without it those of targets that no pack of the catalog explains.
	Families bool
	// All also lists series that did not change, and targets and quantities beyond what fits on the first screen.
	All bool
	// Derived lists every derived quantity with its status.
	Derived bool
	// Width is how many columns a line of the first screen takes at most, 0 is 80.
	Width int
	// Causes is what explain tells of the engines, Rules its words: the first sentence stands on the first screen.
	Causes []*explain.Result
	Rules  *explain.Rules
	// PerHour is what an hour of the servers costs in Currency, 0 where nothing tells: then no cost is told.
	PerHour  float64
	Currency string
	// PACompat adds the whole microseconds that Triton's perf_analyzer prints.
	PACompat bool
}

// Text writes a result as aligned tables.
func Text(w io.Writer, r *summary.Run, o Options) error { return Write(w, r, FormatText, o) }

// Write writes a result in one of the formats.
func Write(w io.Writer, r *summary.Run, format string, o Options) error {
	t := &pageBuilder{run: r, o: o}
	t.build()
	var err error
	switch format {
	case FormatText, "":
		width, most := 0, 0
		if o.first() && r.Options.By == nil {
			width, most = t.width(), screenLines
		}
		err = t.text(w, t.head(), width, most, t.last+1)
	case FormatMarkdown:
		err = t.markdown(w, t.head())
	case FormatJSON:
		err = t.json(w, t.about())
	case FormatCSV:
		err = t.csv(w)
	default:
		return fmt.Errorf("write summary: unknown format %q (known: %s)", format, strings.Join(Formats(), ", "))
	}
	if err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

// pageBuilder makes the page of a run.
type pageBuilder struct {
	page
	run   *summary.Run
	o     Options
	packs []catalog.Pack
	quiet int // series left out because they did not change
	// explained are the endpoints that a pack tells something of.
	explained map[int]bool
	last      int      // lines of the colophon
	lacking   []*table // what servers gave no input for
	legend    []string // what letters mean, and what is left out
}

func (t *pageBuilder) build() {
	t.packs = t.run.Options.Catalog.Packs()
	t.engines()
	if t.o.Metric == nil {
		t.crossEngine()
	}
	t.processes()
	t.segments()
	t.remarks()
	t.targets()
	t.lives()
	t.losses()
	t.groups()
	t.perfAnalyzer()
	t.derived()
	t.families()
	t.distributions()
	t.aggregates()
	t.warnings()
	for _, tab := range t.lacking {
		t.add(tab)
	}
	t.closing()
}

// about is the run for programs.
func (t *pageBuilder) about() texttab.Object {
	r := t.run
	phases := []texttab.Object{}
	for _, p := range r.Phases {
		phases = append(phases, texttab.NewObject("name", p.Name, "start_ns", p.StartNS, "end_ns", p.EndNS))
	}
	tags := r.Tags
	if tags == nil {
		tags = map[string]string{}
	}
	return texttab.NewObject("title", t.o.Title, "id", r.ID, "version", r.Version, "host", r.Host, "tags", tags,
		"command", r.Command,
		"window", windowObject(r), "phases", phases, "estimator", r.Options.Estimator, "by", r.Options.By)
}

// firstTargets is how many targets the first screen lists.
const firstTargets = 8

func (t *pageBuilder) targets() {
	tab := newTable("targets", "targets", words("target", "TARGET"), hidden("url"), hidden("labels"),
		number("scheduled", "SCRAPES"), number("ok", "OK"), number("partial", "PARTIAL"), number("skipped", "SKIPPED"),
		number("failed", "FAILED"), number("series", "SERIES"), number("samples", "SAMPLES"), number("dropped", "DROPPED"),
		number("scrape_seconds_avg", "SCRAPE"), number("late_seconds_p99", "LATE P99"))
	tab.programs = !t.o.All // people have a line
	for i := range t.run.Endpoints {
		e := &t.run.Endpoints[i]
		l := &e.Ledger
		stored := l.StoredPolls()
		skipped := l.Outcomes[metric.SkippedOverlap]
		scrape, late := e.Fetches.AvgLatency, l.Late.P99
		tab.row(str(e.Shown()), raw(e.URL), raw(e.Labels), tally(l.Scheduled), tally(l.Outcomes[metric.OK]),
			tally(l.Outcomes[metric.Partial]), tally(skipped), tally(l.Scheduled-stored-skipped), tally(l.SeriesN),
			tally(l.Stored), tally(l.Lines-l.Stored), float(scrape.Seconds(), stored > 0,
				scrape.Round(10*time.Microsecond).String()), float(late.Seconds(), l.Scheduled > 0,
				late.Round(10*time.Microsecond).String()))
	}
	t.add(tab)
}

// limit lets people see the first rows of a table only, unless they want all.
func (t *pageBuilder) limit(tab *table, n int, flag string) {
	if !t.o.All {
		tab.most, tab.more = n, " ("+flag+" shows them)"
	}
}

// losses names what did not arrive: polls that were not ok by kind, dropped lines by reason. It tells nothing when
// nothing was lost.
func (t *pageBuilder) losses() {
	tab := newTable("lost", "lost", words("target", "TARGET"), number("count", "COUNT"), words("what", "WHAT"),
		words("first", "FIRST CASE"))
	if t.o.first() {
		tab.Width = t.width()
	}
	t.limit(tab, firstTargets, "--all")
	for i := range t.run.Endpoints {
		e := &t.run.Endpoints[i]
		for _, x := range e.Ledger.Losses() {
			if x.Lines {
				x.What = "lines: " + x.What
			}
			tab.row(str(e.Shown()), tally(x.N), str(x.What), opt(x.First))
		}
	}
	t.add(tab)
}

// maxWarnings bounds how many warnings of one code are told; the exports have them all.
const maxWarnings = 5

func (t *pageBuilder) warnings() {
	tab := newList("warnings", "warnings", words("where", "WHERE"), words("code", "CODE"), words("text", "TEXT"))
	seen := map[string]int{}
	var order []string
	say := func(where string, ws ...metric.Warning) {
		for _, w := range ws {
			if seen[w.Code]++; seen[w.Code] == 1 {
				order = append(order, w.Code)
			}
			if seen[w.Code] <= maxWarnings {
				tab.row(opt(where), str(w.Code), str(w.Text))
			}
		}
	}
	say("", t.run.Warnings...)
	aggregate := func(a *summary.Aggregate) {
		name := "aggregate " + t.run.Metrics[a.Metric].Name + a.Labels.String()
		if a.Refused != "" {
			say(name, metric.Warning{Code: "not_merged", Text: a.Refused})
		}
		say(name, a.Warnings...)
	}
	for i := range t.run.Latencies {
		aggregate(&t.run.Latencies[i].Aggregate)
	}
	for i := range t.run.Aggregates {
		aggregate(&t.run.Aggregates[i])
	}
	for i := range t.run.Endpoints {
		e := &t.run.Endpoints[i]
		say(e.Shown(), e.Warnings...)
	}
	for _, w := range seriesWarnings(t.run) {
		say(w.where, w.Warning)
	}
	for _, code := range order {
		if more := seen[code] - maxWarnings; more > 0 {
			tab.row(cell{}, str(code), str(fmt.Sprintf("%d more, listed in the exports", more)))
		}
	}
	tab.programs = !t.o.All
	t.add(tab)
	if !t.o.All {
		t.add(t.grouped(tab, seen))
	}
}

// told is a warning and where it is told.
type told struct {
	where string
	metric.Warning
}

// seriesWarnings returns those of series, once for all series of a model at a target that have the same: a model that
// is loaded again, and a process that restarts, take all of theirs along.
func seriesWarnings(r *summary.Run) (out []told) {
	type key struct {
		endpoint int
		model    metric.Labels
		metric.Warning
	}
	at, n := map[key]int{}, []int{}
	for i := range r.Metrics {
		for j := range r.Metrics[i].Series {
			s := &r.Metrics[i].Series[j]
			target := r.Endpoints[s.Endpoint].Shown() + " "
			for _, w := range s.Warnings {
				k := key{s.Endpoint, s.Labels.Only("model", "model_name", "version"), w}
				first, again := at[k]
				if !again {
					at[k] = len(out)
					out, n = append(out, told{target + r.Metrics[i].Name + s.Labels.String(), w}), append(n, 1)
					continue
				}
				n[first]++
				out[first].where = target + fmt.Sprintf("%d series", n[first])
				if k.model.Len() > 0 {
					out[first].where += " of " + k.model.String()
				}
			}
		}
	}
	return out
}

// seconds formats a span of nanoseconds for the head line.
func seconds(ns int64) string {
	return time.Duration(ns).Round(time.Millisecond).String()
}

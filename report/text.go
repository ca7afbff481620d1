// Package report writes results for people: today as text for a terminal.
//
// Everything that came from a target is escaped on the way out, so a hostile
// label or error text cannot move the cursor. Missing is never printed as 0:
// a number that does not exist is a dash.
package report

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// TextOptions says what Text prints.
type TextOptions struct {
	Title  string         // name of the run, usually its directory
	Metric *regexp.Regexp // only families whose name matches; nil is all
	All    bool           // also series that did not change
	// Derived lists every derived quantity; without it there is a compact table
	// per kind of server.
	Derived bool
	// PACompat adds the whole microseconds that Triton's perf_analyzer prints.
	PACompat bool
}

// Text prints a result as aligned tables: the run, its targets and what was
// lost, then derived quantities, counters, gauges and histograms, aggregates, then
// warnings.
func Text(w io.Writer, r *summary.Run, o TextOptions) error {
	t := &text{w: w, run: r, o: o}
	t.head()
	t.targets()
	t.lives()
	t.losses()
	t.derived()
	t.counters()
	t.gauges()
	t.histograms()
	t.summaries()
	t.states()
	t.currents()
	t.infos()
	t.distributions()
	t.aggregates()
	t.hidden()
	t.warnings()
	return t.err
}

// text is one printing. The first write error sticks and ends it.
type text struct {
	w     io.Writer
	run   *summary.Run
	o     TextOptions
	quiet int           // series left out because they did not change
	flags histest.Flags // of the estimates printed since the last legend
	err   error
}

func (t *text) printf(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, format, args...)
	}
}

func (t *text) table(title string, tab *texttab.Table, rows int) {
	if rows == 0 || t.err != nil {
		return
	}
	t.printf("\n%s\n", title)
	if t.err == nil {
		_, t.err = tab.WriteTo(t.w)
	}
}

func (t *text) head() {
	win := t.run.Window
	name := win.Phase
	if name == "" {
		name = "window"
	}
	t.printf("run %s  (scrapestat %s)\n", texttab.Escape(t.o.Title), texttab.Escape(t.run.Version))
	t.printf("%s %s from %s", texttab.Escape(name), seconds(win.EndNS-win.StartNS),
		time.Unix(0, win.StartNS).UTC().Format("2006-01-02 15:04:05.000Z"))
	if n := len(t.run.Phases); n > 1 {
		var parts []string
		for _, p := range t.run.Phases {
			parts = append(parts, texttab.Escape(p.Name)+" "+seconds(p.EndNS-p.StartNS))
		}
		t.printf("  (phases: %s)", strings.Join(parts, ", "))
	}
	t.printf("\n")
}

func (t *text) targets() {
	var tab texttab.Table
	tab.Header("TARGET", "SCRAPES", "OK", "PARTIAL", "SKIPPED", "FAILED", "SERIES", "SAMPLES", "DROPPED", "SCRAPE", "LATE P99")
	tab.Right(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	for i := range t.run.Endpoints {
		e := &t.run.Endpoints[i]
		l := &e.Ledger
		stored := l.StoredPolls()
		skipped := l.Outcomes[metric.SkippedOverlap]
		tab.Row(endpointName(e), itoa(l.Scheduled), itoa(l.Outcomes[metric.OK]), itoa(l.Outcomes[metric.Partial]),
			itoa(skipped), itoa(l.Scheduled-stored-skipped), itoa(l.SeriesN),
			strconv.FormatInt(l.Stored, 10), strconv.FormatInt(l.Lines-l.Stored, 10),
			dashIf(stored == 0, e.Fetches.AvgLatency.Round(10*time.Microsecond).String()),
			dashIf(l.Scheduled == 0, l.Late.P99.Round(10*time.Microsecond).String()))
	}
	t.table("targets", &tab, len(t.run.Endpoints))
}

// losses names what did not arrive: polls that were not ok by kind, dropped lines
// by reason. It prints nothing when nothing was lost.
func (t *text) losses() {
	var tab texttab.Table
	rows := 0
	add := func(e *summary.Endpoint, n int, what, first string) {
		tab.Row("  "+endpointName(e), itoa(n), what, first)
		rows++
	}
	for i := range t.run.Endpoints {
		e := &t.run.Endpoints[i]
		for o, n := range e.Ledger.Outcomes {
			if n > 0 && metric.Outcome(o) != metric.OK {
				add(e, n, metric.Outcome(o).String(), e.Ledger.FirstOf[o].Text)
			}
		}
		for _, d := range e.Ledger.Dropped {
			if d.Reason == metric.DropFiltered {
				continue // as asked
			}
			add(e, d.Lines, "lines: "+d.Reason, d.First)
		}
	}
	t.table("lost", &tab, rows)
}

// shown walks the series of one type that the options let through.
func (t *text) shown(typ metric.Type, moved func(*summary.Series) bool, row func(*summary.Metric, *summary.Series)) {
	for i := range t.run.Metrics {
		m := &t.run.Metrics[i]
		if (m.Type != typ && !(typ == metric.Gauge && m.Type == metric.Unknown)) || (t.o.Metric != nil && !t.o.Metric.MatchString(m.Name)) {
			continue
		}
		for j := range m.Series {
			if s := &m.Series[j]; t.o.All || moved(s) {
				row(m, s)
			} else {
				t.quiet++
			}
		}
	}
}

func (t *text) hidden() {
	if t.quiet > 0 {
		t.printf("\n%d series did not change and are not shown (--all shows them).\n", t.quiet)
	}
}

// maxWarnings bounds how many warnings of one code are printed; the exports have
// them all.
const maxWarnings = 5

func (t *text) warnings() {
	count := map[string]int{}
	var order []string
	say := func(where string, ws []metric.Warning) {
		for _, w := range ws {
			if len(order) == 0 {
				t.printf("\nwarnings\n")
			}
			if count[w.Code]++; count[w.Code] == 1 {
				order = append(order, w.Code)
			}
			if count[w.Code] <= maxWarnings {
				t.printf("  %s%s: %s\n", where, texttab.Escape(w.Code), texttab.Escape(w.Text))
			}
		}
	}
	say("", t.run.Warnings)
	for i := range t.run.Aggregates {
		a := &t.run.Aggregates[i]
		name := texttab.Escape(t.run.Metrics[a.Metric].Name) + texttab.Escape(a.Labels.String())
		if a.Refused != "" {
			say("aggregate "+name+": ", []metric.Warning{{Code: "not_merged", Text: a.Refused}})
		}
		say("aggregate "+name+": ", a.Warnings)
	}
	for i := range t.run.Endpoints {
		e := &t.run.Endpoints[i]
		say(texttab.Escape(endpointName(e))+": ", e.Warnings)
	}
	for i := range t.run.Metrics {
		m := &t.run.Metrics[i]
		for j := range m.Series {
			s := &m.Series[j]
			say(texttab.Escape(endpointName(&t.run.Endpoints[s.Endpoint])+" "+m.Name+s.Labels.String())+": ", s.Warnings)
		}
	}
	for _, code := range order {
		if more := count[code] - maxWarnings; more > 0 {
			t.printf("  %s: %d more, listed in the exports\n", texttab.Escape(code), more)
		}
	}
}

func endpointName(e *summary.Endpoint) string {
	if e.Name != "" {
		return e.Name
	}
	return e.URL
}

func itoa(n int) string { return strconv.Itoa(n) }

func dashIf(missing bool, s string) string {
	if missing {
		return "-"
	}
	return s
}

// seconds formats a span of nanoseconds for the head line.
func seconds(ns int64) string {
	return time.Duration(ns).Round(time.Millisecond).String()
}

package live

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	lipgloss "charm.land/lipgloss/v2"

	"github.com/scrapestat/scrapestat/headline"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/units"
)

// narrow is the width below which texts are shortened.
const narrow = 44

// View implements tea.Model.
func (m *model) View() tea.View {
	v := tea.NewView(strings.Join(m.screen(), "\n"))
	v.AltScreen = true
	return v
}

// screen is the lines of the screen: as many as there are, none wider.
func (m *model) screen() []string {
	head := m.head()
	room := max(0, m.height-len(head)-1)
	var body []string
	switch {
	case m.help:
		body = m.helpLines()
	case m.view == viewTargets:
		body = m.targetLines(room, true)
	case m.view == viewFamilies:
		body = m.familyLines(room)
	default:
		body = m.engineBody(room)
	}
	lines := append(head, body[:min(len(body), room)]...)
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	return append(lines, m.foot())[:max(0, min(m.height, len(lines)+1))]
}

// head returns the lines on how the run goes.
func (m *model) head() []string {
	s, w := &m.status, m.width
	phase := cmp.Or(s.Phase, "baseline")
	if s.Ending {
		phase += ", ending"
	}
	left := s.Until
	if s.Remaining >= 0 {
		left = clock(s.Remaining) + " left"
	}
	t := m.totals()
	lines := []string{
		m.styles.title.Render(fitting(w, phase, clock(s.Elapsed), left, s.Run)),
		fitting(w, fmt.Sprint(t.polls, " scrapes"), failures(t), "lost "+texttab.Count(t.lost, "line"),
			fmt.Sprint(units.Format(float64(t.lines), "")+" samples"), t.cost(s.Elapsed, len(m.health))),
	}
	if t.failed+t.lost > 0 {
		lines[1] = m.styles.warn.Render(lines[1])
	}
	if m.height >= 16 {
		lines = append(lines, m.styles.dim.Render(texttab.Truncate(texttab.Escape(m.notice()), w)))
	}
	return append(lines, m.tabs())
}

// totals is the sum of the accounts.
type totals struct {
	polls, failed, skipped, lines, lost int64
	busy, worst, late                   time.Duration
	worstName                           string
}

func (m *model) totals() totals {
	var t totals
	for i := range m.health {
		h := &m.health[i]
		t.polls, t.failed, t.skipped = t.polls+h.Polls, t.failed+h.Failed, t.skipped+h.Skipped
		t.lines, t.lost = t.lines+h.Lines-h.Lost, t.lost+h.Lost
		t.busy += h.Busy
		t.late = max(t.late, h.MaxLate)
		if h.Busy > t.worst {
			t.worst, t.worstName = h.Busy, h.Target.Shown()
		}
	}
	return t
}

// failures is what became of scrapes that brought nothing.
func failures(t totals) string {
	out := fmt.Sprint(t.failed, " failed")
	if t.skipped > 0 {
		out += fmt.Sprint(" ", t.skipped, " skipped")
	}
	return out
}

// cost is the part of their time that targets spent on answering.
func (t *totals) cost(elapsed time.Duration, targets int) string {
	if elapsed <= 0 || targets == 0 {
		return ""
	}
	mean := float64(t.busy) / float64(elapsed) / float64(targets)
	out := "scrape cost " + perCent(mean) + " of a target's time"
	if targets > 1 && t.worst > 0 {
		out += ", most " + perCent(float64(t.worst)/float64(elapsed)) + " (" + t.worstName + ")"
	}
	return out
}

func perCent(share float64) string { return fmt.Sprintf("%.2g %%", 100*share) }

// clock writes a duration in seconds.
func clock(d time.Duration) string { return d.Truncate(time.Second).String() }

// notice is the one line that is most worth reading.
func (m *model) notice() string {
	switch {
	case m.err != nil:
		return "the analysis has ended: " + m.err.Error() + " (the recording goes on)"
	case m.status.Behind:
		return "the analysis could not follow the recording, and has stopped; the recording is whole"
	case len(m.status.News) > 0:
		return m.status.News[len(m.status.News)-1]
	}
	return ""
}

// tabs names the views, and what is chosen.
func (m *model) tabs() string {
	chosen := "target " + m.targetName()
	if m.width < narrow {
		chosen = m.targetName()
	}
	out, used := "", 0
	for i, word := range [views]string{"1 engine", "2 targets", "3 families"} {
		if m.width < narrow {
			word = [views]string{"1", "2", "3"}[i]
		}
		style := m.styles.dim
		if i == m.view && !m.help {
			style = m.styles.chosen
		}
		out += style.Render(" "+word+" ") + " "
		used += len(word) + 3
	}
	return out + m.styles.title.Render(texttab.Truncate(texttab.Escape(chosen), m.width-used))
}

// foot names the keys.
func (m *model) foot() string {
	quit := "q end run"
	if m.quits > 0 || m.status.Ending {
		quit = "q abort"
	}
	if m.o.In == nil {
		quit = "no keys: stdin is no terminal"
	}
	if m.width < narrow {
		return m.styles.dim.Render(fitting(m.width, quit, "? help"))
	}
	return m.styles.dim.Render(fitting(m.width, quit, "? help", "tab view", "e engine", "t target", "f family",
		"up/down move", "enter open", "esc back"))
}

// helpLines explain the keys and the columns.
func (m *model) helpLines() []string {
	g := grid{columns: []column{{}, {least: 8}}, chosen: -1}
	for _, k := range [][2]string{
		{"q, ctrl+c", "end the run: final scrapes, exports, summary"},
		{"again", "abort at once; the recording stays readable"}, {"tab, 1 2 3", "view: engine, targets, families"},
		{"e, E", "next, previous engine"},
		{"t, T", "next, previous target; all of them first"}, {"f, F", "next, previous family"},
		{"up, down", "move; also k j, pgup pgdn, home end"},
		{"enter", "open the target or family at the cursor"}, {"esc", "back; all targets again"}, {"?, h", "this help"},
		{"", ""},
		{"SO FAR", "in the window, as the summary will have it"}, {"NOW", "since the last look, some seconds ago"},
		{"TREND", "of NOW, from 0 to its highest; a gap: unknown"}, {"LATE", "how far behind schedule the last scrape was"},
		{"BUSY", "part of its time a target spent on answering"}, {"LOST", "sample lines that were not stored"},
		{"SKIP", "scrapes left out, the one before still ran"},
	} {
		g.rows = append(g.rows, []cell{{k[0], m.styles.title}, {k[1], m.styles.plain}})
	}
	return g.lines(m.width, &m.styles)
}

// engineBody is the engine, and the targets below it where there is room.
func (m *model) engineBody(room int) []string {
	below := 0
	if m.height >= 20 {
		below = min(len(m.health), 2+max(0, m.height-24)/4) + 2
	}
	lines := m.engineLines(m.width)
	visible := max(1, room-below)
	from := min(m.at(), max(0, len(lines)-visible))
	shown := slices.Clone(lines[from:min(len(lines), from+visible)])
	if more := len(lines) - from - visible; more > 0 && visible > 3 {
		shown[visible-1] = m.styles.dim.Render(texttab.Truncate(fmt.Sprintf("%d more lines: down", more+1), m.width))
	}
	if rest := room - len(shown) - 1; below > 0 && rest > 1 {
		shown = append(append(shown, ""), m.targetLines(rest, false)...)
	}
	return shown
}

// engineLines are the quantities and latencies of the chosen engine.
func (m *model) engineLines(width int) []string {
	d := m.digest()
	if len(d.engines) == 0 {
		return []string{texttab.Truncate(texttab.Escape(m.noEngine(d)), width)}
	}
	n := min(m.engine, len(d.engines)-1)
	e := &d.engines[n]
	title := e.title
	if len(d.engines) > 1 {
		title += fmt.Sprintf(" (%d of %d)", n+1, len(d.engines))
	}
	lines := []string{m.styles.title.Render(fitting(width, title, e.scope))}
	blocks := [][]string{m.rowLines(e, width, true), m.latencyLines(e, width), m.rowLines(e, width, false)}
	for _, block := range blocks { // load, latencies, the rest
		if len(block) > 0 && len(lines) > 1 {
			lines = append(lines, "")
		}
		lines = append(lines, block...)
	}
	return lines
}

// rowLines are the quantities of an engine: those of its load, or the others.
func (m *model) rowLines(e *engine, width int, load bool) []string {
	bar := min(max(6, width/5), trendPoints)
	g := grid{chosen: -1, columns: []column{{head: "QUANTITY", least: 6}, {head: "SO FAR", right: true, drop: 2},
		{head: "NOW", right: true}, {head: "TREND", drop: 1}, {head: "OF", least: 8, drop: 3},
		{head: "NOTE", least: 6, drop: 4}}}
	scope := ""
	for i := range e.rows {
		r := &e.rows[i]
		if r.load != load {
			continue
		}
		if r.scope != scope {
			scope = r.scope
			g.titles = append(g.titles, heading{len(g.rows), scope})
		}
		now := r.now
		if width < narrow {
			if now == "-" {
				now = r.sofar
			}
			now = brief(now)
		}
		g.rows = append(g.rows, []cell{{r.name, m.styles.plain}, {r.sofar, m.styles.plain}, {now, m.styles.title},
			{spark(r.trend, bar), m.styles.trend}, {r.labels, m.styles.dim}, {r.note, m.styles.warn}})
	}
	if len(g.rows) == 0 {
		return nil
	}
	return g.lines(width, &m.styles)
}

// latencyLines are the latencies of an engine.
func (m *model) latencyLines(e *engine, width int) []string {
	if len(e.latencies) == 0 {
		return nil
	}
	bar := min(max(6, width/5), trendPoints)
	g := grid{chosen: -1, columns: []column{{head: "LATENCY", least: 6}, {head: "COUNT", right: true, drop: 5},
		{head: "MEAN", right: true, drop: 3}, {head: "P50", right: true, drop: 2}, {head: "P90", right: true, drop: 4},
		{head: "P99", right: true}, {head: "TREND OF MEAN", drop: 6}, {head: "OF", least: 8, drop: 7}}}
	for i := range e.latencies {
		l := &e.latencies[i]
		of := l.labels
		if of == e.scope {
			of = ""
		}
		name := l.name
		if w, _, ok := headline.Parse(name); ok {
			name = w.Name
		}
		g.rows = append(g.rows, []cell{{name, m.styles.plain}, {fmt.Sprint(l.count), m.styles.plain},
			{l.mean, m.styles.plain}, {l.p50, m.styles.plain}, {l.p90, m.styles.plain}, {l.p99, m.styles.title},
			{spark(l.trend, bar), m.styles.trend}, {of, m.styles.dim}})
	}
	return g.lines(width, &m.styles)
}

// brief leaves a long unit out.
func brief(value string) string {
	if number, unit, ok := strings.Cut(value, " "); ok && len(unit) > 3 {
		return number
	}
	return value
}

// noEngine returns why there is nothing to see.
func (m *model) noEngine(d *digest) string {
	switch {
	case m.o.Result == nil || m.err != nil:
		return "no analysis; press 2 for the targets"
	case m.run == nil:
		return "waiting for the first result"
	case len(m.run.Metrics) == 0 && (m.status.Phase == metric.PhaseWarmup || m.status.Phase == ""):
		return "quantities come when the warm-up has ended; press 2 for the targets"
	case len(d.warnings) > 0 && len(m.run.Metrics) == 0:
		return d.warnings[0].Text
	case len(d.families) > 0:
		return "no quantities of a known engine; press 3 for the families"
	}
	return "nothing was measured yet; press 2 for the targets"
}

// order is the targets, those in trouble first.
func (m *model) order() []int {
	out := make([]int, len(m.health))
	for i := range out {
		out[i] = i
	}
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(rank(&m.health[a]), rank(&m.health[b])) })
	return out
}

// rank orders targets by how much they need a look.
func rank(h *Health) int {
	switch {
	case h.Gone:
		return 3
	case h.Trailing > 0 && h.LastOutcome != metric.SkippedOverlap:
		return 0
	case h.Trailing > 0:
		return 1
	}
	return 2
}

// state is the state of a target in a word.
func (m *model) state(h *Health) cell {
	switch {
	case h.Gone:
		return cell{"gone", m.styles.dim}
	case h.Polls == 0:
		return cell{"waiting", m.styles.dim}
	case h.Trailing > 0 && h.LastOutcome == metric.SkippedOverlap:
		return cell{"slow", m.styles.warn}
	case h.Trailing > 0:
		return cell{"FAILED", m.styles.bad}
	}
	return cell{"ok", m.styles.good}
}

// targetLines are the accounts of the targets, in at most room lines; full shows the cursor.
func (m *model) targetLines(room int, full bool) []string {
	if room < 1 {
		return nil
	}
	order := m.order()
	visible := max(1, room-1)
	from, chosen := 0, -1
	if full {
		from = min(max(0, m.at()-visible+1), max(0, len(order)-visible))
		chosen = m.at() - from
	}
	g := grid{chosen: chosen, columns: []column{{head: "STATE"}, {head: "TARGET", least: 6},
		{head: "OK", right: true, drop: 7}, {head: "FAIL", right: true, drop: 1}, {head: "SKIP", right: true, drop: 8},
		{head: "TOOK", right: true, drop: 2}, {head: "MAX", right: true, drop: 9}, {head: "LATE", right: true, drop: 4},
		{head: "LOST", right: true, drop: 5}, {head: "BUSY", right: true, drop: 6}, {head: "TREND", drop: 10},
		{head: "LAST ERROR", least: 12, drop: 3}}}
	for _, i := range order[from:min(len(order), from+visible)] {
		h := &m.health[i]
		plain := func(v ...any) cell { return cell{fmt.Sprint(v...), m.styles.plain} }
		failed, lost := plain(h.Failed), plain(h.Lost)
		if h.Failed > 0 {
			failed.style = m.styles.bad
		}
		if h.Lost > 0 {
			lost.style = m.styles.warn
		}
		busy := "-"
		if m.status.Elapsed > 0 {
			busy = perCent(float64(h.Busy) / float64(m.status.Elapsed))
		}
		g.rows = append(g.rows, []cell{m.state(h), plain(h.Target.Shown()), plain(h.Stored), failed, plain(h.Skipped),
			plain(seconds(h.Took)), plain(seconds(h.MaxTook)), plain(seconds(h.Late)), lost, plain(busy),
			{spark(h.Trend, 12), m.styles.trend}, {h.LastError, m.styles.bad}})
	}
	lines := g.lines(m.width, &m.styles)
	if hidden := len(order) - from - visible; hidden > 0 && !full && len(lines) > 1 {
		lines[0] += m.styles.dim.Render(texttab.Truncate(fmt.Sprintf("  %d more: press 2", hidden),
			max(0, m.width-lipgloss.Width(lines[0]))))
	}
	return lines
}

func seconds(d time.Duration) string { return units.Format(d.Seconds(), "seconds") }

// familyLines are the families of the chosen target, and the chosen one at length.
func (m *model) familyLines(room int) []string {
	families := m.digest().families
	if len(families) == 0 {
		return m.engineLines(m.width)
	}
	at := m.at()
	var detail []string
	if m.detail {
		detail = m.familyDetail(&families[at], max(3, room/2))
	}
	visible := max(1, room-1-len(detail))
	from := min(max(0, at-visible+1), max(0, len(families)-visible))
	g := grid{chosen: at - from, columns: []column{{head: "FAMILY", least: 8}, {head: "TYPE", drop: 3},
		{head: "SERIES", right: true, drop: 4}, {head: "SO FAR", right: true, drop: 2},
		{head: "NOW", right: true, drop: 1}, {head: "TREND", drop: 5}}}
	for _, f := range families[from:min(len(families), from+visible)] {
		if m.width < narrow {
			f.now = brief(f.now)
		}
		g.rows = append(g.rows, []cell{{f.name, m.styles.plain}, {f.typ, m.styles.dim},
			{fmt.Sprint(f.series), m.styles.plain}, {f.sofar, m.styles.plain}, {f.now, m.styles.title},
			{spark(f.trend, max(6, m.width/6)), m.styles.trend}})
	}
	return append(g.lines(m.width, &m.styles), detail...)
}

// familyDetail is what a family is, and its series.
func (m *model) familyDetail(f *family, room int) []string {
	lines := []string{"", m.styles.title.Render(fitting(m.width, f.name, f.typ, f.unit)),
		m.styles.dim.Render(texttab.Truncate(texttab.Escape(f.help), m.width))}
	g := grid{chosen: -1, columns: []column{{head: "VALUE", right: true}, {head: "SERIES", least: 8},
		{head: "TARGET", least: 6, drop: 1}}}
	for _, s := range f.top {
		g.rows = append(g.rows, []cell{{s.value, m.styles.title}, {s.labels, m.styles.plain}, {s.target, m.styles.dim}})
	}
	lines = append(lines, g.lines(m.width, &m.styles)...)
	return lines[:min(len(lines), room)]
}

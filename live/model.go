package live

import (
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/scrapestat/scrapestat/summary"
)

// The times of the view.
const (
	tickEvery  = 500 * time.Millisecond
	askEvery   = 2 * time.Second
	askShare   = 20 // making a result takes at most one part of so many
	trendsUpTo = 16 // targets of which all have trends; of more, only those looked at
	pageLines  = 10 // that page up and page down move by
	gapColumns = 2  // between columns of a table
)

// Status is what the recording says of itself. It is a value: whoever gives it keeps none of it.
type Status struct {
	Run       string // directory
	Phase     string
	Elapsed   time.Duration
	Remaining time.Duration // until the planned end; negative when there is none
	Until     string        // what ends a run without a planned end
	Ending    bool          // the first signal has come, or the end is reached
	Behind    bool          // the analysis could not follow the recording
	News      []string      // what was said, the newest last
}

// The views.
const (
	viewEngine = iota
	viewTargets
	viewFamilies
	views
)

// Messages of the program to itself.
type (
	tickMsg   struct{}
	resultMsg struct {
		run     *summary.Run
		digests map[int]*digest
		err     error
		took    time.Duration
	}
)

// model is the state of the view. Its methods run in one goroutine, that of the
// program; only ask runs beside it, one at a time, and has the history meanwhile.
type model struct {
	o       Options
	now     func() time.Time
	history *history
	styles  styles

	width, height int
	view          int
	help          bool
	engine        int // of the digest
	target        int // all, or an index
	cursor        [views]int
	detail        bool // of the chosen family

	status  Status
	health  []Health
	run     *summary.Run
	digests map[int]*digest
	err     error
	asking  bool
	askAt   time.Time
	quits   int
}

func newModel(o Options) *model {
	m := &model{o: o, now: o.Now, history: newHistory(), styles: newStyles(), target: all, width: 80, height: 24,
		digests: map[int]*digest{}}
	if m.now == nil {
		m.now = time.Now
	}
	m.refresh()
	return m
}

// refresh reads the accounts, which takes no time of those who poll.
func (m *model) refresh() {
	m.status, m.health = m.o.Status(), m.o.Board.Health()
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return tea.Batch(m.ask(), tick()) }

func tick() tea.Cmd { return tea.Tick(tickEvery, func(time.Time) tea.Msg { return tickMsg{} }) }

// ask makes a result beside the program; nil while that is not due.
func (m *model) ask() tea.Cmd {
	if m.asking || m.now().Before(m.askAt) || m.o.Result == nil {
		return nil
	}
	m.asking = true
	ask, target, count := m.o.Result, m.target, len(m.health)
	return func() tea.Msg {
		started := time.Now()
		run, err := ask()
		if err != nil {
			return resultMsg{err: err, took: time.Since(started)}
		}
		m.history.next()
		out := resultMsg{run: run, digests: map[int]*digest{all: m.history.digest(run, all)}}
		for i := range run.Endpoints {
			if i == target || count <= trendsUpTo {
				out.digests[i] = m.history.digest(run, i)
			}
		}
		out.took = time.Since(started)
		return out
	}
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tickMsg:
		m.refresh()
		return m, tea.Batch(m.ask(), tick())
	case resultMsg:
		m.asking, m.err = false, msg.err
		m.askAt = m.now().Add(max(askEvery-tickEvery/2, askShare*msg.took))
		if msg.err == nil {
			m.run, m.digests = msg.run, msg.digests
			m.complete()
		}
	case tea.KeyPressMsg:
		m.key(msg.String())
		return m, m.ask()
	}
	return m, nil
}

// key does what a key stands for.
func (m *model) key(key string) {
	switch key {
	case "q", "ctrl+c":
		m.quits++
		m.o.Quit()
	case "?", "h":
		m.help = !m.help
	case "esc":
		switch {
		case m.help:
			m.help = false
		case m.detail && m.view == viewFamilies:
			m.detail = false
		default:
			m.choose(all)
		}
	case "tab", "right":
		m.view = (m.view + 1) % views
	case "shift+tab", "left":
		m.view = (m.view + views - 1) % views
	case "1", "2", "3":
		m.view = int(key[0] - '1')
	case "e", "E":
		m.view = viewEngine
		m.engine = turn(m.engine, len(m.digest().engines), step(key == "e"))
		m.cursor[viewEngine] = 0
	case "t", "T":
		m.choose(turn(m.target+1, len(m.health)+1, step(key == "t")) - 1)
	case "f", "F":
		m.view = viewFamilies
		m.cursor[viewFamilies] = turn(m.cursor[viewFamilies], len(m.digest().families), step(key == "f"))
	case "enter":
		m.enter()
	default:
		m.move(key)
	}
}

// enter opens what the cursor is at.
func (m *model) enter() {
	switch m.view {
	case viewTargets:
		if order := m.order(); m.at() < len(order) {
			m.choose(order[m.at()])
			m.view = viewEngine
		}
	case viewFamilies:
		m.detail = !m.detail
	}
}

// move moves the cursor of the view.
func (m *model) move(key string) {
	by, ok := map[string]int{"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -pageLines, "pgdown": pageLines,
		"home": -1 << 30, "g": -1 << 30, "end": 1 << 30, "G": 1 << 30}[key]
	if ok {
		m.cursor[m.view] = min(max(0, m.cursor[m.view]+by), max(0, m.length()-1))
	}
}

// length is how many rows the view has.
func (m *model) length() int {
	switch m.view {
	case viewTargets:
		return len(m.order())
	case viewFamilies:
		return len(m.digest().families)
	}
	return len(m.engineLines(m.width))
}

// at is the cursor of the view, within what there is now.
func (m *model) at() int { return min(m.cursor[m.view], max(0, m.length()-1)) }

// choose shows one target, or all. What of it is not counted yet is asked for.
func (m *model) choose(target int) {
	m.target, m.engine = target, 0
	m.cursor[viewEngine], m.cursor[viewFamilies] = 0, 0
	m.complete()
}

// complete makes the digest of the chosen target from the last result, where it was not made with it.
func (m *model) complete() {
	if m.digests[m.target] == nil && m.run != nil && !m.asking && m.target < len(m.run.Endpoints) {
		m.digests[m.target] = m.history.digest(m.run, m.target)
	}
}

// digest is that of the chosen target; an empty one while there is none.
func (m *model) digest() *digest {
	if d := m.digests[m.target]; d != nil {
		return d
	}
	return &digest{target: m.target}
}

func step(forward bool) int {
	if forward {
		return 1
	}
	return -1
}

// turn goes on in a circle of n.
func turn(i, n, by int) int {
	if n == 0 {
		return 0
	}
	return ((i+by)%n + n) % n
}

// targetName is the name of the chosen target.
func (m *model) targetName() string {
	if m.target == all || m.target >= len(m.health) {
		return fmt.Sprintf("all %d", len(m.health))
	}
	return m.health[m.target].Target.Shown()
}

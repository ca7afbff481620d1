package serve

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/scrapestat/scrapestat/internal/column"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// store is the runs with an index of their series, and columns of the families that were asked for.
type store struct {
	o     Options
	clock uint64 // counts uses

	mu       sync.RWMutex // held for reading while a query runs, so that it sees one state
	runs     []*run
	byName   map[string][]*series
	names    []string
	held     int // bytes of columns
	checked  time.Time
	warnings []metric.Warning
}

// run is a recording that is served.
type run struct {
	Run
	rec     *rundb.Run
	targets []*target
	shiftMS int64
	state   fileState
	guessed int
}

// fileState tells whether a recording was written.
type fileState [2]struct {
	size int64
	at   time.Time
}

func stateOf(dir string) (s fileState) {
	for i, name := range []string{rundb.FileName, rundb.FileName + "-wal"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
			s[i].size, s[i].at = info.Size(), info.ModTime()
		}
	}
	return s
}

// target is a target of a run.
type target struct {
	run      *run
	index    int
	labels   []metric.Label
	dict     *metric.Schema
	firstMS  int64 // of the recording, not shifted
	lastMS   int64
	polls    []poll
	stored   int32
	next     uint64 // the poll that is read next
	lives    int    // how many events are in polls
	logs     []*column.Log
	families map[int]*loaded
}

// loaded is a family that has columns.
type loaded struct {
	used  uint64 // by the clock of the store
	pins  int    // queries that need it
	bytes int
}

// poll is one scrape of a target.
type poll struct {
	ms      int64
	stored  int32 // its number among those with samples; -1 of a failed one, -2 at the end of the target
	lines   int32
	seconds float64
}

const (
	pollFailed = -1
	pollEnd    = -2
)

// open opens the runs and makes the index. No block is read.
func open(ctx context.Context, o Options) (*store, error) {
	s := &store{o: o}
	for _, r := range o.Runs {
		x := &run{Run: r, state: stateOf(r.Dir)}
		s.runs = append(s.runs, x)
		if err := x.open(ctx, o.Labels); err != nil {
			s.close()
			return nil, err
		}
	}
	s.reindex()
	return s, nil
}

func (s *store) close() {
	for _, r := range s.runs {
		if r.rec != nil {
			_ = r.rec.Close() // read only
		}
	}
}

// open reads what there is to know without blocks. What was read before stays.
func (r *run) open(ctx context.Context, own map[string]string) error {
	rec, err := rundb.Open(r.Dir)
	if err != nil {
		return err
	}
	if r.rec != nil {
		_ = r.rec.Close()
	}
	r.rec, r.guessed = rec, 0
	more := map[string]string{"run": r.Name}
	used := map[string]bool{}
	for i, t := range rec.Targets() {
		if i == len(r.targets) {
			r.targets = append(r.targets, &target{run: r, index: i, families: map[int]*loaded{}})
		}
		x := r.targets[i]
		d, guessed, err := rec.Dict(ctx, i)
		if err != nil {
			return err
		}
		r.guessed += guessed
		x.dict = d
		for len(x.logs) < len(d.Slots) {
			x.logs = append(x.logs, nil)
		}
		from, to, err := rec.Span(ctx, i)
		if err != nil {
			return err
		}
		x.firstMS, x.lastMS = from/1e6, to/1e6
		all := t.Labels.Map()
		for name, value := range more {
			all[name] = value
		}
		for name, value := range own {
			all[name] = value
		}
		x.labels = t.PromLabels(all, used)
	}
	return nil
}

// span is from the first to the last poll of all targets of a run, shifted.
func (r *run) span() (fromMS, toMS int64) {
	fromMS = math.MaxInt64
	for _, t := range r.targets {
		if t.lastMS > 0 {
			fromMS, toMS = min(fromMS, t.firstMS), max(toMS, t.lastMS)
		}
	}
	if toMS == 0 {
		fromMS = r.rec.Meta().OriginNS / 1e6
		toMS = fromMS
	}
	return fromMS + r.shiftMS, toMS + r.shiftMS
}

// refresh takes in what was recorded since, once a second at most.
func (s *store) refresh(ctx context.Context, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.checked) < time.Second && now.After(s.checked) {
		return nil
	}
	s.checked = now
	changed := false
	for _, r := range s.runs {
		state := stateOf(r.Dir)
		if state == r.state {
			continue
		}
		if state[0].size == 0 {
			return fmt.Errorf("%s was removed", filepath.Join(r.Dir, rundb.FileName))
		}
		changed = true
		if err := r.open(ctx, s.o.Labels); err != nil {
			return err
		}
		r.state = state
		for _, t := range r.targets {
			if len(t.polls) > 0 {
				if err := s.load(ctx, t, nil); err != nil {
					return err
				}
			}
		}
	}
	if changed {
		s.reindex()
	}
	return nil
}

// need loads the families of these series and keeps them until release is called.
func (s *store) need(ctx context.Context, want []*series) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock++
	byTarget := map[*target][]int{}
	for _, x := range want {
		for _, p := range x.parts {
			if !slices.Contains(byTarget[x.target], p.family) {
				byTarget[x.target] = append(byTarget[x.target], p.family)
			}
		}
		if x.target != nil && byTarget[x.target] == nil {
			byTarget[x.target] = []int{}
		}
	}
	var pinned []*loaded
	for t, families := range byTarget {
		var missing []int
		for _, f := range families {
			if t.families[f] == nil {
				missing = append(missing, f)
			}
		}
		if (len(missing) > 0 || len(t.polls) == 0) && err == nil {
			err = s.load(ctx, t, missing)
		}
		for _, f := range families {
			if l := t.families[f]; l != nil {
				l.used, l.pins = s.clock, l.pins+1
				pinned = append(pinned, l)
			}
		}
	}
	release = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, l := range pinned {
			l.pins--
		}
		s.evict()
	}
	return release, err
}

// evict drops families that were not used for the longest time until all fit.
func (s *store) evict() {
	for int64(s.held) > s.o.MaxMemory {
		var oldest *loaded
		var of *target
		family := 0
		for _, r := range s.runs {
			for _, t := range r.targets {
				for f, l := range t.families {
					if l.pins == 0 && (oldest == nil || l.used < oldest.used) {
						oldest, of, family = l, t, f
					}
				}
			}
		}
		if oldest == nil {
			return
		}
		s.drop(of, family)
	}
}

func (s *store) drop(t *target, family int) {
	s.held -= t.families[family].bytes
	delete(t.families, family)
	for i := range t.dict.Slots {
		if t.dict.Series[t.dict.Slots[i].Series].Family == family {
			t.logs[i] = nil
		}
	}
}

// load reads a target once: more polls of what is loaded, or all polls of families that are not.
func (s *store) load(ctx context.Context, t *target, more []int) error {
	fresh := map[int]bool{}
	for _, f := range more {
		fresh[f], t.families[f] = true, &loaded{pins: 1}
	}
	isNew := make([]bool, len(t.dict.Slots))
	for i := range t.dict.Slots {
		f := t.dict.Series[t.dict.Slots[i].Series].Family
		if t.families[f] != nil && t.logs[i] == nil {
			t.logs[i] = column.NewLog(t.dict.Slots[i].Integer)
			isNew[i] = fresh[f]
		}
	}
	from, end, known := t.next, t.next, t.stored
	if len(more) > 0 {
		from = 0
	}
	stored := int32(0)
	if from > 0 {
		stored = known
	}
	err := error(nil)
	for x, bad := range t.run.rec.SnapshotsFrom(ctx, t.index, from) {
		if err = cmp.Or(bad, ctx.Err()); err != nil {
			break
		}
		if x.Seq < from {
			continue
		}
		old := x.Seq < end
		if !old {
			t.note(x)
		}
		if x.Outcome.Stored() {
			s.append(t, x, stored, old, isNew)
			stored++
		}
		if int64(s.held) > s.o.MaxMemory {
			if s.evict(); int64(s.held) > s.o.MaxMemory {
				err = fmt.Errorf("its families take more memory than %d MiB: ask for fewer, or raise --max-memory",
					s.o.MaxMemory>>20)
				break
			}
		}
	}
	t.endEvents()
	for _, f := range more {
		if t.families[f].pins--; err != nil {
			s.drop(t, f)
		}
	}
	return err
}

// append takes over the samples of a poll: of an old one those of families that are new alone.
func (s *store) append(t *target, x *metric.Snapshot, stored int32, old bool, isNew []bool) {
	wanted := func(slot int) bool { return slot < len(t.logs) && t.logs[slot] != nil && (!old || isNew[slot]) }
	grew := func(slot, n int) {
		if n != 0 {
			s.held += n
			t.families[t.dict.Series[t.dict.Slots[slot].Series].Family].bytes += n
		}
	}
	for i, slot := range x.Delta.Slots {
		if wanted(int(slot)) {
			grew(int(slot), t.logs[slot].Set(stored, x.Delta.Bits[i]))
		}
	}
	for slot := range x.Delta.Absent(len(t.logs)) {
		if wanted(slot) {
			grew(slot, t.logs[slot].Vanish(stored))
		}
	}
}

// note adds a poll. Of two in one millisecond the later goes to the next.
func (t *target) note(x *metric.Snapshot) {
	t.next = x.Seq + 1
	p := poll{ms: x.AtNS() / 1e6, stored: pollFailed, lines: int32(x.Lines), seconds: x.Duration.Seconds()}
	switch {
	case x.Outcome.Stored():
		p.stored = t.stored
		t.stored++
	case x.Outcome == metric.SkippedOverlap || x.Outcome == metric.Cancelled || x.Outcome == metric.Unwritten:
		return // nothing was asked, or the answer is not known
	}
	lives := t.run.rec.Lives(t.index)
	for ; t.lives < len(lives) && lives[t.lives].AtNS/1e6 < p.ms; t.lives++ {
		t.gone(lives[t.lives])
	}
	if n := len(t.polls); n > 0 {
		p.ms = max(p.ms, t.polls[n-1].ms+1)
	}
	t.polls = append(t.polls, p)
}

// endEvents takes over that the target went after its last poll.
func (t *target) endEvents() {
	for lives := t.run.rec.Lives(t.index); t.lives < len(lives); t.lives++ {
		t.gone(lives[t.lives])
	}
}

func (t *target) gone(e metric.TargetEvent) {
	if n := len(t.polls); e.Gone && n > 0 {
		t.polls = append(t.polls, poll{ms: max(e.AtNS/1e6, t.polls[n-1].ms+1), stored: pollEnd})
	}
}

// reindex makes the index of all series.
func (s *store) reindex() {
	s.byName, s.names = map[string][]*series{}, nil
	s.warnings = nil
	for _, r := range s.runs {
		if r.guessed > 0 {
			s.warnings = append(s.warnings, metric.Warnf("names_guessed", "run %s: of %d families the recording does not "+
				"tell whether their names end in _total or _info: that is guessed", r.Name, r.guessed))
		}
		for _, t := range r.targets {
			s.indexTarget(t)
		}
		s.indexRun(r)
	}
	for name, list := range s.byName {
		slices.SortFunc(list, func(a, b *series) int { return labels.Compare(a.labels, b.labels) })
		s.byName[name] = slices.CompactFunc(list, func(a, b *series) bool {
			same := labels.Equal(a.labels, b.labels)
			if same {
				s.warnings = append(s.warnings, metric.Warnf("series_equal",
					"several targets have a series %s, of which one is served", a.labels))
			}
			return same
		})
		s.names = append(s.names, name)
	}
	slices.Sort(s.names)
}

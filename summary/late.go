package summary

import (
	"fmt"
	"math"
	"slices"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/window"
)

// Late is what of the observations of a family that a window counts may be of what went before it, published late.
type Late struct {
	Family          string
	AtLeast, AtMost int64 // that are of what went before
	// Moved are those of which that is proven, all that came up to CutNS: they count for what went before.
	Moved int64
	CutNS int64
	Exact bool // no others are
	Of    int64
}

// late watches what durations gain after the start of a window that follows something else, or after the end of a phase
// that something else follows. It moves what is proven to be published late (design document windows.md, section 5).
type late struct {
	catalog   *catalog.Catalog
	tracker   *continuity.Tracker
	edgeNS    int64
	snapped   bool // nobody polled at the edge
	settle    float64
	slots     []lateSlot
	now, last []float64 // by slot
	base      []float64 // by slot: at the edge, or where the family was cut
	families  []*lateFamily

	began    bool
	lastNS   int64           // the last stored poll
	clients  *rundb.Boundary // what they told of the edge; nil for nothing
	accounts map[string]*account
	level    float64 // requests in flight, by the levels
	levels   bool    // there are some
	// Those in flight at the edge, as far as anything tells; drained is set when it tells that there were none.
	inFlightEdge float64
	// By series: what may be late of the present poll, and of all whose gains did not move.
	maybe, doubts map[int32]float64
	drained       bool
	boundaryNS    int64
	polls         int
	// Requests that ended since the first poll: up to the present one, the one before, and that of the edge.
	finished, finishedLast, finishedEdge float64
}

// account is how many requests of an engine started and did not end, by its counters.
type account struct {
	started, ended bool // are counted
	open           float64
}

// lateSlot is what a slot is to the watch.
type lateSlot struct {
	family       int // into families, -1 for none
	below        int32
	lower, upper float64 // seconds
	count, sum   bool
	level, ends  bool // how many requests are in flight, and ended
	account      *account
	by           float64 // 1 where its account gains by it, -1 where it loses
}

// lateFamily is a family of durations.
type lateFamily struct {
	lateCount
	tokens           bool    // it has an observation of each token, not of each request
	whole            bool    // its durations are those of requests from their begin to their end
	counted, earlier float64 // observations since the first poll, up to the present poll and to the one before
	ahead            bool    // more observations than finished requests were seen
	owed             int64   // requests that ended by the edge and were not observed by then; below 0 for not known
	n, proven, maybe float64 // of the present poll
}

// lateCount counts what of the observations after an edge is of what went before it.
type lateCount struct {
	Late
	impure bool // something came after the edge that is not proven late
}

// witness is what others tell of requests that ended by the edge and are not observed yet: how many those are at most,
// and whether a request that began after it may have been observed by the present poll.
type witness struct {
	owed  int64
	fresh bool
}

// poll takes the n observations of a poll, of which so many took longer than the time since the edge, so that they
// began before it, and so many can have ended before it, if they were published in time. Only where nothing was in
// flight at the edge anything moves. It reports whether all of them did.
func (c *lateCount) poll(atNS int64, n, proven, maybe float64, drained bool, w *witness) bool {
	c.AtLeast, c.AtMost = c.AtLeast+int64(proven), c.AtMost+int64(maybe)
	if !drained || c.impure || n == 0 {
		return false
	}
	if w != nil && c.Moved+int64(n) <= w.owed && !w.fresh || w == nil && proven == n {
		c.CutNS, c.Moved = atNS, c.Moved+int64(n)
		return true
	}
	c.impure = true
	return false
}

// sum closes the account; owed is below 0 where nobody knows.
func (c *lateCount) sum(drained bool, owed int64) Late {
	l := c.Late
	if owed >= 0 {
		l.AtMost = min(l.AtMost, owed)
		if drained {
			l.AtLeast = max(l.AtLeast, owed)
		}
	}
	l.AtMost = max(l.AtMost, l.AtLeast)
	l.Exact = l.AtLeast == l.AtMost && l.AtMost == l.Moved
	return l
}

// shares returns how many of the observations that a bucket gained began before the edge for sure, and how many can
// have ended before it: it holds durations between lower and upper, and was polled so many seconds after the edge, the
// poll before it at before.
func shares(gained, lower, upper, at, before, settle float64) (proven, maybe float64) {
	if lower >= at {
		proven = gained
	}
	if before-settle-upper < 0 {
		maybe = gained
	}
	return proven, maybe
}

// watchLate returns the watches of the start of a plan and of its end; nil where nothing goes before it, or follows.
func (b *Builder) watchLate(p *plan, tracker *continuity.Tracker) (start, end *late) {
	w := &p.resolved
	phase := w.Rule == window.Phase
	watch := func(e window.Edge, clients *rundb.Boundary) *late {
		if e.Kind == window.Snapped { // what they told is not of the poll that stands for the edge
			clients = nil
		}
		return &late{catalog: b.o.Catalog, tracker: tracker, settle: b.meta.Settle.Seconds(), edgeNS: e.AtNS,
			snapped: e.Kind == window.Snapped, clients: clients, accounts: map[string]*account{},
			maybe: map[int32]float64{}, doubts: map[int32]float64{}}
	}
	if p.empty || len(w.Parts) != 1 {
		return nil, nil
	}
	if p.warmup != nil || phase && w.Start.AtNS > w.Command.StartNS {
		start = watch(w.Start, p.clients[0])
	}
	if phase && w.LastNS != notEnded {
		end = watch(w.End, p.clients[1])
	}
	return start, end
}

// grow learns what new slots are.
func (l *late) grow() {
	schema := l.tracker.Schema()
	for slot := len(l.slots); slot < len(schema.Slots); slot++ {
		id := &schema.Slots[slot]
		index := schema.Series[id.Series].Family
		fam := &schema.Families[index]
		f, known := l.catalog.Family(fam.Name)
		x := lateSlot{family: -1, below: -1}
		switch {
		case known && (f.Canonical == "running" || f.Canonical == "waiting"):
			x.level = f.Whole(schema.Series[id.Series].Labels)
		case known && fam.Type == metric.Counter && id.Role == metric.RoleValue:
			x.ends = f.Canonical == "success"
			if f.Traffic != "no" && f.Whole(schema.Series[id.Series].Labels) {
				l.accountOf(&x, f)
			}
		case fam.Type == metric.Histogram && (id.Role == metric.RoleBucket || id.Role == metric.RoleCount ||
			id.Role == metric.RoleSum):
			l.addFamily(&x, index, fam, f)
			x.count, x.sum = id.Role == metric.RoleCount, id.Role == metric.RoleSum
			x.upper *= id.Bound
		}
		l.slots, l.now, l.last = append(l.slots, x), append(l.now, 0), append(l.last, 0)
		if x.family >= 0 && id.Role == metric.RoleBucket {
			l.chain(schema, id.Series)
		}
	}
}

// accountOf gives a counter of requests its place in the account of its engine.
func (l *late) accountOf(x *lateSlot, f *catalog.Family) {
	started, ended := f.Canonical == "started", slices.Contains([]string{"success", "failure", "aborted"}, f.Canonical)
	if !started && !ended {
		return
	}
	a := l.accounts[f.Engine]
	if a == nil {
		a = &account{}
		l.accounts[f.Engine] = a
	}
	x.account, x.by = a, -1
	a.started, a.ended = a.started || started, a.ended || ended
	if started {
		x.by = 1
	}
}

// flying returns how many requests are in flight: as clients told of the edge, by counters of those that started and
// those that ended, or by levels; known is false where nothing tells.
func (l *late) flying() (n float64, known bool) {
	if l.clients != nil {
		return float64(l.clients.InFlight), true
	}
	for _, a := range l.accounts {
		if a.started && a.ended {
			n, known = n+math.Abs(a.open), true
		}
	}
	if known {
		return n, true
	}
	return l.level, l.levels
}

// addFamily makes a slot one of a family of durations, if it is.
func (l *late) addFamily(x *lateSlot, index int, fam *metric.Family, f *catalog.Family) {
	if !isLatency(l.catalog, fam.Name) {
		return
	}
	scale := f.Seconds(fam.Name)
	if scale == 0 {
		return
	}
	for len(l.families) <= index {
		l.families = append(l.families, nil)
	}
	if l.families[index] == nil {
		l.families[index] = &lateFamily{tokens: f.Moves == "token", whole: f.Canonical == "e2e_s",
			owed: -1}
		l.families[index].Family, l.families[index].CutNS = fam.Name, l.boundaryNS
	}
	x.family, x.upper = index, scale
}

// chain sets for the buckets of a series which one is below.
func (l *late) chain(schema *metric.Schema, series int) {
	var ids []int32
	for _, id := range schema.SlotsOf(series) {
		if int(id) < len(l.slots) && schema.Slots[id].Role == metric.RoleBucket {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b int32) int {
		return int(math.Copysign(1, l.slots[a].upper-l.slots[b].upper))
	})
	for i, id := range ids {
		if l.slots[id].below = -1; i > 0 {
			l.slots[id].below, l.slots[id].lower = ids[i-1], l.slots[ids[i-1]].upper
		}
	}
}

// add takes a poll after the fold did: opened is set when it lies beyond the edge. It returns the families whose gains
// since the edge are now proven to be late. l may be nil.
func (l *late) add(s *metric.Snapshot, step *continuity.Step, opened bool) (cut []int) {
	if l == nil || !s.Outcome.Stored() || step != nil && step.Held {
		return nil
	}
	l.grow()
	frame := &s.Delta
	if step != nil && !step.Plain(s) {
		frame = &step.Delta
	}
	schema := l.tracker.Schema()
	for k, slot := range frame.Slots {
		x := &l.slots[slot]
		if x.family < 0 && !x.level && !x.ends && x.account == nil {
			continue
		}
		v := schema.Slots[slot].Float(frame.Bits[k])
		gain := v - l.now[slot]
		if l.now[slot] = v; x.account != nil {
			x.account.open += x.by * gain
		}
		switch {
		case x.level:
			l.levels = true
			l.level += gain
		case l.polls == 0:
		case x.ends:
			l.finished += gain
		case x.count:
			l.families[x.family].counted += gain
		}
	}
	at := s.AtNS()
	if opened {
		if !l.began {
			l.begin()
		}
		cut = l.judge(at)
	} else {
		n, known := l.flying()
		l.drained, l.inFlightEdge = known && n == 0, n
	}
	for _, f := range l.families {
		if f != nil {
			f.ahead, f.earlier = f.ahead || f.counted > l.finished, f.counted
		}
	}
	copy(l.last, l.now)
	l.lastNS, l.polls, l.finishedLast = at, l.polls+1, l.finished
	return cut
}

// begin takes the last poll as that of the edge.
func (l *late) begin() {
	l.began, l.boundaryNS, l.finishedEdge = true, l.edgeNS, l.finishedLast
	if l.snapped {
		l.boundaryNS = l.lastNS
	}
	l.base = slices.Clone(l.last)
	for _, f := range l.families {
		if f != nil {
			f.CutNS, f.owed = l.boundaryNS, -1
			if l.clients != nil {
				f.owed = l.clients.Ended - int64(f.earlier)
			} else if n := int64(l.finishedEdge - f.earlier); n > 0 && !f.ahead { // else both may be published late
				f.owed = n
			}
		}
	}
}

// judge takes the gains of a poll beyond the edge.
func (l *late) judge(atNS int64) (cut []int) {
	schema := l.tracker.Schema()
	clear(l.maybe)
	at, before := float64(atNS-l.boundaryNS)/1e9, max(0, float64(l.lastNS-l.boundaryNS)/1e9)
	for _, f := range l.families {
		if f != nil {
			f.n, f.proven, f.maybe = 0, 0, 0
		}
	}
	for slot := range l.slots {
		x := &l.slots[slot]
		gained := l.now[slot] - l.last[slot]
		if x.family < 0 || x.count || x.sum || gained == 0 {
			continue
		}
		if x.below >= 0 {
			gained -= l.now[x.below] - l.last[x.below]
		}
		proven, maybe := shares(gained, x.lower, x.upper, at, before, l.settle)
		f := l.families[x.family]
		f.n, f.proven, f.maybe = f.n+gained, f.proven+proven, f.maybe+maybe
		l.maybe[int32(schema.Slots[slot].Series)] += maybe
	}
	ends := false
	for i, f := range l.families {
		if f == nil || f.tokens {
			continue
		}
		var w *witness
		switch {
		case l.clients != nil && f.owed >= 0:
			w = &witness{f.owed, l.clients.NextNS != 0 && l.clients.NextNS <= atNS}
		case f.owed > 0 && !f.ahead:
			w = &witness{f.owed, l.finished > l.finishedEdge}
		}
		if f.poll(atNS, f.n, f.proven, f.maybe, l.drained && at <= l.settle, w) {
			cut, ends = append(cut, i), ends || f.whole
		}
	}
	for i, f := range l.families { // of the tokens of the requests that ended
		if f != nil && f.tokens {
			f.AtLeast, f.AtMost = f.AtLeast+int64(f.proven), f.AtMost+int64(f.maybe)
			if ends && !f.impure && f.n > 0 {
				f.CutNS, f.Moved = atNS, f.Moved+int64(f.n)
				cut = append(cut, i)
			}
			f.impure = f.impure || !ends && f.n > 0
		}
	}
	for series, n := range l.maybe {
		if !slices.Contains(cut, schema.Series[series].Family) {
			l.doubts[series] += n
		}
	}
	return cut
}

// doubtful returns by series how many observations may be late, of those that did not move.
func (l *late) doubtful() map[int32]int64 {
	if l == nil || !l.began {
		return nil
	}
	out := map[int32]int64{}
	for series, n := range l.doubts {
		f := l.families[l.tracker.Schema().Series[series].Family]
		if l.counts(f) {
			n = min(n, float64(max(0, f.owed-f.Moved)))
		}
		if n >= 1 {
			out[series] = int64(n)
		}
	}
	return out
}

// gains returns what the slots of some families gained since the edge, or since they were cut before.
func (l *late) gains(cut []int) map[int32]float64 {
	out := map[int32]float64{}
	schema := l.tracker.Schema()
	l.base = append(l.base, make([]float64, len(l.now)-len(l.base))...)
	for slot := range schema.Slots {
		if slices.Contains(cut, schema.Series[schema.Slots[slot].Series].Family) {
			out[int32(slot)], l.base[slot] = l.now[slot]-l.base[slot], l.now[slot]
		}
	}
	return out
}

// result returns what may be late of the observations of each family; nil is none. Those that moved are in main where
// it ends at the edge.
func (l *late) result(main *normalize.Result, ends bool) (out []Late) {
	if l == nil || main == nil || !l.began {
		return nil
	}
	all := observations(main)
	for _, f := range l.families {
		if f == nil {
			continue
		}
		owed := int64(-1)
		if l.counts(f) {
			owed = f.owed
		}
		x := f.sum(l.drained, owed)
		if x.Of = all[x.Family]; !ends {
			x.Of += x.Moved
			x.AtMost = min(x.AtMost, x.Of)
		}
		if x.AtMost > 0 {
			out = append(out, x)
		}
	}
	return out
}

// counts reports whether a family observes the requests of which the end is known, and no others.
func (l *late) counts(f *lateFamily) bool {
	if l.clients != nil {
		return f.owed >= 0 && f.counted == float64(l.clients.All)
	}
	return f.owed >= 0 && !f.ahead && f.counted == l.finished
}

// lateWarning names the family of which the largest share may be of what went before, or after; nil when all is exact.
func lateWarning(all []Late, after bool) *metric.Warning {
	var most *Late
	for i := range all {
		// As shares, without dividing: a/b > c/d.
		x := &all[i]
		if !x.Exact && (most == nil || float64(x.AtMost)*float64(most.Of) > float64(most.AtMost)*float64(x.Of)) {
			most = x
		}
	}
	if most == nil {
		return nil
	}
	w := metric.Warnf("late_observations", "%d to %d of %d observations of %s may be of what went before the window",
		most.AtLeast, most.AtMost, most.Of, most.Family)
	if after {
		w.Text = fmt.Sprintf("%d to %d observations of %s that came after the window may be of it, which has %d",
			most.AtLeast, most.AtMost, most.Family, most.Of)
	}
	return &w
}

// observations adds up the counts of the histograms of each family.
func observations(r *normalize.Result) map[string]int64 {
	out := map[string]int64{}
	for i := range r.Series {
		if h := r.Series[i].Histogram; h != nil {
			out[r.Dict.Families[r.Dict.Series[r.Series[i].Index].Family].Name] += h.Count
		}
	}
	return out
}

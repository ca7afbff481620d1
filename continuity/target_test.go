package continuity_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/metric"
)

// target feeds a tracker with bodies and reads what comes out as a consumer does.
type target struct {
	t       testing.TB
	b       metric.SnapshotBuilder
	tracker *continuity.Tracker
	series  map[string]int // by name and labels, as in the vectors
	kinds   map[string]string
	slots   []slot
	polls   uint64
	first   int64
	last    int64
	process []int32
	held    int
	flight  float64 // seconds from asking for a body to its first byte
}

// slot is what a consumer keeps of one.
type slot struct {
	series   int
	role     metric.Role
	integer  bool
	seen     bool
	odd      bool // its last value is not finite
	sure     bool // with the key slot of its series, so that it is adjusted
	from, to uint64
}

func newTarget(t testing.TB) *target {
	return &target{t: t, series: map[string]int{}, kinds: map[string]string{},
		tracker: continuity.New(continuity.Options{Places: []string{"gpu"}, Parts: []string{"engine"},
			Uptime: func(name string) bool { return name == "uptime_seconds" }})}
}

// set gives one line of the next body.
func (x *target) set(name, kind string, v float64) {
	x.setText(name, kind, strconv.FormatFloat(v, 'g', -1, 64))
}

func (x *target) setText(name, kind, text string) {
	labels := metric.Labels{}
	if i := strings.IndexByte(name, '{'); i >= 0 {
		name, labels = name[:i], parseLabels(name[i:])
	}
	types := map[string]metric.Type{"counter": metric.Counter, "integer": metric.Counter, "gauge": metric.Gauge,
		"histogram": metric.Histogram, "summary": metric.Summary}
	id := metric.SampleID{Role: metric.RoleValue, Integer: kind == "integer"}
	base := name
	if kind == "histogram" || kind == "summary" {
		i := strings.LastIndexByte(name, '_')
		base = name[:i]
		id.Role = map[string]metric.Role{"_bucket": metric.RoleBucket, "_sum": metric.RoleSum, "_count": metric.RoleCount,
			"_created": metric.RoleCreated}[name[i:]]
	}
	if le, ok := labels.Get("le"); ok {
		id.Bound, _ = strconv.ParseFloat(le, 64)
		labels = labels.Without("le")
	}
	if owner, ok := strings.CutSuffix(name, "_created"); ok && kind == "gauge" {
		for _, sibling := range []struct{ name, kind string }{{owner + "_total", "counter"}, {owner, "histogram"},
			{owner, "summary"}} {
			if x.kinds[sibling.name+labels.String()] == sibling.kind {
				base, kind, id.Role = sibling.name, sibling.kind, metric.RoleCreated
			}
		}
	}
	key := base + labels.String()
	series := x.b.Series(x.b.Family(base, types[kind], "", ""), labels)
	if id.Role != metric.RoleCreated || kind != "counter" {
		x.series[key], x.kinds[key] = series, kind
	}
	at := x.b.Slot(series, id)
	for len(x.slots) <= at {
		x.slots = append(x.slots, slot{series: series, role: id.Role, integer: id.Integer})
	}
	if id.Integer {
		v, _ := strconv.ParseUint(text, 10, 64)
		x.b.SetInteger(at, v)
	} else {
		v, _ := strconv.ParseFloat(text, 64)
		x.b.Set(at, v)
	}
}

func parseLabels(s string) metric.Labels {
	var pairs []metric.Label
	for _, p := range strings.Split(strings.Trim(s, "{}"), ",") {
		name, value, _ := strings.Cut(p, "=")
		value, _ = strconv.Unquote(value)
		pairs = append(pairs, metric.Label{Name: name, Value: value})
	}
	return metric.NewLabels(pairs...)
}

// poll ends the body.
func (x *target) poll(seconds float64, o metric.Outcome) *continuity.Step {
	x.t.Helper()
	s := &metric.Snapshot{Seq: x.polls, SentNS: int64(math.Round(seconds * 1e9)), Outcome: o}
	if x.flight > 0 {
		s.FirstByteNS = s.SentNS + int64(x.flight*1e9)
	}
	x.polls++
	if o.Stored() {
		x.b.Finish(s)
	}
	return x.step(s)
}

// step reads one step and checks that no adjusted slot falls.
func (x *target) step(s *metric.Snapshot) *continuity.Step {
	x.t.Helper()
	step, err := x.tracker.Step(s)
	if err != nil {
		x.t.Fatal(err)
	}
	if step == nil {
		return nil
	}
	if x.first == 0 {
		x.first = s.AtNS()
	}
	x.last = s.AtNS()
	x.process = append(x.process, step.Process)
	if step.Held {
		x.held++
	}
	x.read(step)
	return step
}

func (x *target) read(step *continuity.Step) {
	x.t.Helper()
	born := map[int]bool{}
	for _, series := range step.Born {
		born[int(series)] = true
	}
	d := &step.Delta
	if err := d.Check(len(x.slots)); err != nil {
		x.t.Fatal(err)
	}
	for i, id := range d.Slots {
		s := &x.slots[id]
		v := s.value(d.Bits[i])
		if s.odd = v-v != 0; s.odd && s.seen {
			continue // as it was sent, and never accepted
		}
		if !s.seen {
			if s.seen, s.from = true, d.Bits[i]; born[s.series] {
				s.from = 0
			}
			s.to = d.Bits[i]
			continue
		}
		if s.sure && v < s.value(s.to) {
			x.t.Fatalf("poll %d: slot %d fell from %v to %v", x.polls, id, s.value(s.to), s.value(d.Bits[i]))
		}
		s.to = d.Bits[i]
	}
	for _, id := range d.Slots {
		x.slots[id].sure = x.adjusted(int(id))
	}
}

// adjusted reports whether a slot is adjusted: of a series whose count or value was seen before. One with a value that
// is not finite is shown as it was sent as long as it was never accepted.
func (x *target) adjusted(id int) bool {
	s := x.tracker.Schema()
	for _, other := range s.SlotsOf(s.Slots[id].Series) {
		if o := &x.slots[other]; o.odd && o.role != metric.RoleCreated {
			return false
		}
	}
	role := s.Slots[id].Role
	kind := s.FamilyOf(s.Slots[id].Series).Type
	for _, other := range s.SlotsOf(s.Slots[id].Series) {
		if o := s.Slots[other].Role; x.slots[other].seen && kind == metric.Counter && o == metric.RoleValue {
			return role == metric.RoleValue
		} else if x.slots[other].seen && (kind == metric.Histogram || kind == metric.Summary) && o == metric.RoleCount {
			return role == metric.RoleCount || role == metric.RoleBucket
		}
	}
	return false
}

func (s *slot) value(bits uint64) float64 {
	if s.integer {
		return float64(bits)
	}
	return math.Float64frombits(bits)
}

func (s *slot) gain() float64 {
	if s.integer {
		return float64(s.to - s.from)
	}
	return s.value(s.to) - s.value(s.from)
}

// increase is that of a series over the whole recording.
func (x *target) increase(key string) (i continuity.Increase, v continuity.Verdict) {
	series, ok := x.series[key]
	if !ok {
		x.t.Fatalf("no series %s", key)
	}
	v = x.tracker.Verdict(series, x.first, x.last)
	for n := range x.slots {
		s := &x.slots[n]
		if s.series == series && (s.role == metric.RoleValue || s.role == metric.RoleCount) {
			i = v.Increase(s.gain())
			if s.integer && i.Status.Defined() {
				i.Exact, i.HasExact = s.to-s.from, true
			}
		}
	}
	return i, v
}

func (x *target) target() continuity.Summary { return x.tracker.Target(x.first, x.last) }

// counters feeds rows of counters, one body per column, a second apart; a negative value is an absent one.
func counters(t testing.TB, rows ...[]float64) *target {
	x := newTarget(t)
	for i := range rows[0] {
		for r, row := range rows {
			if row[i] >= 0 {
				x.set("c"+strconv.Itoa(r)+"_total", "counter", row[i])
			}
		}
		x.poll(1.79e9+float64(i), metric.OK)
	}
	return x
}

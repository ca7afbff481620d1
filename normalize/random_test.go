package normalize_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
)

// stream is a random run: polls as lines, and what the oracle keeps of them.
type stream struct {
	polls   []poll
	failed  []bool // by poll: no samples
	times   []int64
	points  map[string][]point
	scrapes []scrape
	bads    map[string]int // dropped samples
	gaps    map[string]int // returns after an absence
	here    map[string]bool
	options normalize.Options
	end     int64
}

// walk is a random counter or gauge.
type walk struct {
	family  string
	typ     metric.Type
	integer bool
	v       float64
	created float64
}

// next returns the lines of the next poll and keeps the sample.
func (w *walk) next(t *rapid.T, s *stream, at int64) []changeLog {
	n := len(s.times)
	steps := []string{"same", "same", "up", "up", "up", "frac", "nan", "gone"}
	if s.rude() || w.typ != metric.Counter {
		steps = append(steps, "down", "created", "createdup")
	}
	step := rapid.SampledFrom(steps).Draw(t, w.family)
	switch step {
	case "up", "createdup":
		w.v += float64(rapid.IntRange(0, 50).Draw(t, "step"))
	case "frac":
		if !w.integer {
			w.v += float64(rapid.IntRange(1, 80).Draw(t, "step")) / 8
		}
	case "down":
		w.v = float64(rapid.IntRange(0, 20).Draw(t, "value"))
		if !w.integer && rapid.IntRange(0, 5).Draw(t, "negative") == 0 {
			w.v = -w.v
		}
	}
	if step == "gone" {
		return nil
	}
	if step == "created" || step == "createdup" {
		w.created++
	}
	out := []changeLog{{family: w.family, typ: w.typ, value: w.v}}
	if w.integer {
		out[0].whole, out[0].bits = true, uint64(w.v)
	}
	if w.typ == metric.Counter && w.created > 0 {
		out = append(out, changeLog{family: w.family, typ: w.typ, role: metric.RoleCreated, value: 1e9 + w.created})
	}
	if step == "nan" && !w.integer {
		out[0].value = rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1)}).Draw(t, "nan")
		s.bads[w.family] += s.inside(at)
		return out
	}
	s.points[w.family] = append(s.points[w.family], point{n: n, at: at, v: w.v})
	return out
}

// rude reports whether values may fall and creation times change: what that means is package continuity's, whose tests
// have it. Here it is for AIPerf's arithmetic.
func (s *stream) rude() bool { return s.options.Resets == normalize.ResetClamp }

// presence counts the returns of a family.
func (s *stream) presence(family string, lines int, at int64) {
	was, known := s.here[family]
	if lines > 0 && known && !was {
		s.gaps[family] += s.inside(at)
	}
	if known || lines > 0 {
		s.here[family] = lines > 0
	}
}

func (s *stream) inside(at int64) int {
	if at >= s.options.StartNS && (s.options.EndNS == 0 || at <= s.options.EndNS) {
		return 1
	}
	return 0
}

// crowd is a random histogram.
type crowd struct {
	v              hist
	noSum, noCount bool
	gone           map[string]bool
	created        float64
	everCreated    bool
}

var allBounds = []string{"0.5", "1", "2.5", "10", "+Inf"}

func newCrowd() *crowd {
	return &crowd{v: hist{buckets: map[string]float64{}}, gone: map[string]bool{}}
}

func (c *crowd) observe(t *rapid.T) {
	for range rapid.IntRange(0, 6).Draw(t, "observations") {
		x := rapid.SampledFrom([]float64{0.125, 0.25, 0.75, 1.5, 2, 5, 9, 12, 20}).Draw(t, "x")
		for _, b := range allBounds {
			if x <= boundOf(b) {
				c.v.buckets[b]++
			}
		}
		c.v.sum += x
		c.v.count++
	}
}

// change does one of the things that happen to histograms and reports whether
// the poll shows nothing of it, or a line that is no number.
func (c *crowd) change(t *rapid.T, rude bool) (gone, bad bool) {
	events := []string{"same", "more", "more", "more", "more", "more", "bad", "gone", "bound", "sum", "negative"}
	if rude {
		events = append(events, "reset", "created", "count")
	}
	switch rapid.SampledFrom(events).Draw(t, "histogram") {
	case "more":
		c.observe(t)
	case "reset":
		c.v = hist{buckets: map[string]float64{}}
		c.observe(t)
	case "bad":
		return false, true
	case "gone":
		return true, false
	case "created":
		c.everCreated = true
		c.created++
	case "bound":
		b := rapid.SampledFrom(allBounds).Draw(t, "bound")
		c.gone[b] = !c.gone[b]
	case "sum":
		c.noSum = rapid.IntRange(0, 3).Draw(t, "noSum") == 0
	case "count":
		c.noCount = rapid.IntRange(0, 3).Draw(t, "noCount") == 0
	case "negative":
		c.v.sum -= 3
	}
	return false, false
}

func (c *crowd) next(t *rapid.T, s *stream, at int64) []changeLog {
	gone, bad := c.change(t, s.rude())
	if gone {
		return nil
	}
	sample := scrape{at: at, v: map[string]float64{}}
	var out []changeLog
	add := func(role metric.Role, text, key string, v float64) {
		out = append(out, changeLog{family: "h", typ: metric.Histogram, role: role, text: text, value: v})
		sample.v[key] = v
	}
	for _, b := range allBounds {
		if !c.gone[b] {
			add(metric.RoleBucket, b, b, c.v.buckets[b])
			sample.layout += b + " "
		}
	}
	if !c.noSum {
		add(metric.RoleSum, "", "sum", c.v.sum)
	}
	if !c.noCount {
		add(metric.RoleCount, "", "count", c.v.count)
	}
	if len(out) == 0 {
		return nil
	}
	if bad {
		out[rapid.IntRange(0, len(out)-1).Draw(t, "bad")].value = math.NaN()
	}
	if c.everCreated {
		out = append(out, changeLog{family: "h", typ: metric.Histogram, role: metric.RoleCreated, value: 1e9 + c.created})
	}
	if bad {
		s.bads["h"] += s.inside(at)
		return out
	}
	s.scrapes = append(s.scrapes, sample)
	return out
}

func drawStream(t *rapid.T) *stream {
	s := &stream{points: map[string][]point{}, bads: map[string]int{},
		gaps: map[string]int{}, here: map[string]bool{}}
	s.options = normalize.Options{
		StartNS: rapid.SampledFrom([]int64{0, 1, 2, 3, 5}).Draw(t, "start") * second,
		Slice: rapid.SampledFrom([]time.Duration{0, time.Second, 700 * time.Millisecond,
			3 * time.Second}).Draw(t, "slice"),
		Resets: rapid.SampledFrom([]normalize.ResetMode{normalize.ResetAdjust, normalize.ResetClamp}).Draw(t,
			"resets"),
		Estimator:      rapid.SampledFrom([]string{histest.Polynomial, histest.Linear}).Draw(t, "estimator"),
		Quantiles:      []float64{0.5, 0, 0.9, 1},
		SliceQuantiles: rapid.Bool().Draw(t, "sliceQuantiles"),
	}
	if rapid.Bool().Draw(t, "closed") {
		s.options.EndNS = s.options.StartNS + rapid.Int64Range(1, 9).Draw(t, "end")*second
	}
	walks := []*walk{{family: "c0", typ: metric.Counter}, {family: "c1", typ: metric.Counter, created: 1},
		{family: "c2", typ: metric.Counter, integer: true}, {family: "g", typ: metric.Gauge},
		{family: "u", typ: metric.Unknown}}
	c := newCrowd()
	at := rapid.Int64Range(0, 3).Draw(t, "begin") * second
	for range rapid.IntRange(1, 25).Draw(t, "polls") {
		at += rapid.SampledFrom([]int64{second / 3, second / 2, second, second, 2 * second, 1}).Draw(t, "gap")
		if rapid.IntRange(0, 9).Draw(t, "failed") == 0 {
			s.polls, s.failed = append(s.polls, poll{at: at}), append(s.failed, true)
			continue
		}
		var lines []changeLog
		for _, w := range walks {
			more := w.next(t, s, at)
			s.presence(w.family, len(more), at)
			lines = append(lines, more...)
		}
		more := c.next(t, s, at)
		s.presence("h", len(more), at)
		lines = append(lines, more...)
		s.times = append(s.times, at)
		s.polls, s.failed = append(s.polls, poll{at, lines}), append(s.failed, false)
	}
	s.end = max(s.options.EndNS, s.options.StartNS)
	if s.options.EndNS == 0 {
		s.end = max(at, s.options.StartNS)
	}
	return s
}

// feed adds the polls to a new fold; shuffled turns the order of the lines
// around.
func (s *stream) feed(t *rapid.T, full, shuffled bool, upto int) *normalize.Accumulator {
	f, err := normalize.NewFold(s.options)
	if err != nil {
		t.Fatal(err)
	}
	b := newBuilder(full)
	for i, p := range s.polls[:upto] {
		if shuffled {
			p.lines = slices.Clone(p.lines)
			slices.Reverse(p.lines)
		}
		snap := &metric.Snapshot{SentNS: p.at, Outcome: metric.Timeout}
		if !s.failed[i] {
			snap = b.poll(p.at, p.lines)
		}
		if err := f.Add(snap); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func byFamily(r *normalize.Result) map[string]*normalize.Series {
	out := map[string]*normalize.Series{}
	for i := range r.Series {
		s := *asAIPerf(&r.Series[i])
		s.Increase = r.Series[i].Increase
		out[r.Dict.FamilyOf(r.Series[i].Index).Name] = &s
	}
	return out
}

// asAIPerf is the series by AIPerf's arithmetic, which the oracles have.
func asAIPerf(s *normalize.Series) *normalize.Series {
	if s.AIPerf != nil {
		return s.AIPerf
	}
	return s
}

// olderBodies reports whether a poll is taken for an older body, of which nothing counts.
func (s *stream) olderBodies(t *rapid.T) bool {
	tracker, b := continuity.New(continuity.Options{}), newBuilder(false)
	for i, p := range s.polls {
		if s.failed[i] {
			continue
		}
		if _, err := tracker.Step(b.poll(p.at, p.lines)); err != nil {
			t.Fatal(err)
		}
	}
	return tracker.Target(0, math.MaxInt64).HeldBodies > 0
}

func TestFoldAgainstOracle(t *testing.T) {
	for range 20 {
		rapid.Check(t, againstOracle)
	}
}

func againstOracle(t *rapid.T) {
	s := drawStream(t)
	if s.olderBodies(t) {
		return // the oracles have no word for it
	}
	o := &oracle{s.options, s.times, s.end}
	got := byFamily(s.feed(t, false, false, len(s.polls)).Result(s.end))
	for _, name := range []string{"c0", "c1", "c2"} {
		want := o.counter(s.points[name])
		var have *normalize.Counter
		if g := got[name]; g != nil {
			if !g.Increase.Status.Certain() {
				continue // too little is there at a time to tell its process
			}
			have = g.Counter
			checkCount(t, name+" non-finite", g.NonFinite, s.bads[name])
			checkCount(t, name+" gaps", g.Gaps, s.gaps[name])
		}
		sameCounter(t, name, have, want)
	}
	for _, name := range []string{"g", "u"} {
		want := o.gauge(s.points[name])
		var have *normalize.Gauge
		if g := got[name]; g != nil {
			have = g.Gauge
			checkCount(t, name+" samples", g.Samples, want.N)
			checkCount(t, name+" non-finite", have.NonFinite, s.bads[name])
		}
		sameGauge(t, name, have, want)
	}
	want := o.histogram(s.scrapes)
	var have *normalize.Histogram
	if g := got["h"]; g != nil {
		if !g.Increase.Status.Certain() {
			return
		}
		have = g.Histogram
		checkCount(t, "h non-finite", g.NonFinite, s.bads["h"])
		checkCount(t, "h gaps", g.Gaps, s.gaps["h"])
	}
	sameHistogram(t, have, want)
}

func checkCount(t *rapid.T, what string, got, want int) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %d, want %d", what, got, want)
	}
}

package normalize_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

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
	first   map[string]int // stored poll in which a bucket was first seen
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
	pending bool
}

// next returns the lines of the next poll and keeps the sample.
func (w *walk) next(t *rapid.T, s *stream, at int64) []changeLog {
	n := len(s.times)
	step := rapid.SampledFrom([]string{"same", "same", "up", "up", "up", "frac", "down", "nan", "gone", "created",
		"createdup"}).Draw(t, w.family)
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
		w.pending = n > 0
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
	restart := w.pending && w.created > 1 && len(s.points[w.family]) > 0
	w.pending = false
	p := point{n: n, at: at, v: w.v, restart: restart}
	if p.born = w.integer && n > 0 && w.created > 0 && len(s.points[w.family]) == 0; p.born {
		p.since = s.times[n-1]
	}
	s.points[w.family] = append(s.points[w.family], p)
	return out
}

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
	v                    hist
	noSum, noCount       bool
	gone                 map[string]bool
	created              float64
	pending              bool
	everCreated, hasPast bool
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
func (c *crowd) change(t *rapid.T) (gone, bad bool) {
	switch rapid.SampledFrom([]string{"same", "more", "more", "more", "more", "more", "reset", "bad", "gone",
		"created", "bound", "sum", "count", "negative"}).Draw(t, "histogram") {
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
		c.pending = c.everCreated
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
	gone, bad := c.change(t)
	if gone {
		return nil
	}
	sample := scrape{at: at, v: map[string]float64{}, restart: c.pending && c.hasPast}
	var out []changeLog
	add := func(role metric.Role, text, key string, v float64) {
		out = append(out, changeLog{family: "h", typ: metric.Histogram, role: role, text: text, value: v})
		sample.v[key] = v
	}
	for _, b := range allBounds {
		if !c.gone[b] {
			add(metric.RoleBucket, b, b, c.v.buckets[b])
			sample.layout += b + " "
			if _, ok := s.first[b]; !ok {
				s.first[b] = len(s.times)
			}
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
	c.pending, c.hasPast = false, true
	s.scrapes = append(s.scrapes, sample)
	return out
}

// isKnown tells which buckets the fold tracks: those seen before the window, or
// up to the first sample where that comes later.
func (s *stream) isKnown() known {
	begin := len(s.times)
	for i := len(s.times) - 1; i >= 0; i-- {
		if s.times[i] >= s.options.StartNS {
			begin = i
		}
	}
	if s.options.Resets == normalize.ResetClamp && len(s.scrapes) > 0 {
		return func(le string) bool { _, ok := s.scrapes[0].v[le]; return ok }
	}
	if len(s.scrapes) > 0 && s.scrapes[0].at >= s.options.StartNS {
		for i, at := range s.times {
			if at == s.scrapes[0].at {
				begin = i + 1
				break
			}
		}
	}
	return func(le string) bool { n, ok := s.first[le]; return ok && n < begin }
}

func drawStream(t *rapid.T) *stream {
	s := &stream{points: map[string][]point{}, first: map[string]int{}, bads: map[string]int{},
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
		out[r.Dict.FamilyOf(r.Series[i].Index).Name] = &r.Series[i]
	}
	return out
}

func TestFoldAgainstOracle(t *testing.T) {
	for range 20 {
		rapid.Check(t, againstOracle)
	}
}

func againstOracle(t *rapid.T) {
	s := drawStream(t)
	o := &oracle{s.options, s.times, s.end}
	got := byFamily(s.feed(t, false, false, len(s.polls)).Result(s.end))
	for _, name := range []string{"c0", "c1", "c2"} {
		want, resets := o.counter(s.points[name])
		var have *normalize.Counter
		if g := got[name]; g != nil {
			have = g.Counter
			checkCount(t, name+" resets", g.Resets, resets)
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
	want, resets := o.histogram(s.scrapes, s.isKnown())
	var have *normalize.Histogram
	if g := got["h"]; g != nil {
		have = g.Histogram
		checkCount(t, "h resets", g.Resets, resets)
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

package interop_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// exported is what is compared of a server_metrics_export.json.
type exported struct {
	Summary struct {
		Endpoints map[string]struct {
			Fetches int   `json:"total_fetches"`
			FirstNS int64 `json:"first_fetch_ns"`
			LastNS  int64 `json:"last_fetch_ns"`
		} `json:"endpoint_info"`
		Phases map[string]struct {
			StartNS int64 `json:"start_ns"`
			EndNS   int64 `json:"end_ns"`
		} `json:"phase_time_ranges"`
	} `json:"summary"`
	Metrics map[string]exportedMetric `json:"metrics"`
	Own     struct {
		Phases []struct {
			Name    string `json:"name"`
			StartNS int64  `json:"start_ns"`
		} `json:"phases"`
		Metrics []struct {
			Name string `json:"name"`
			Type string `json:"type"`
		} `json:"metrics"`
	} `json:"scrapestat"`
}

type exportedMetric struct {
	Type        string           `json:"type"`
	Description string           `json:"description"`
	Unit        string           `json:"unit"`
	Series      []exportedSeries `json:"series"`
}

type exportedSeries struct {
	Labels  map[string]string  `json:"labels"`
	Stats   map[string]float64 `json:"stats"`
	Buckets map[string]float64 `json:"buckets"`
}

func seriesKey(metric string, labels map[string]string) string {
	var b strings.Builder
	b.WriteString(metric)
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&b, ",%s=%q", name, labels[name])
	}
	return b.String()
}

// polled is a JSONL file: what each poll saw of each series.
type polled struct {
	times  []int64
	series map[string][]sample
}

// sample is a value of a series; of a histogram the count and sum.
type sample struct {
	at         int64
	value, sum float64
	buckets    map[string]float64
}

func readPolls(t *testing.T, path string) *polled {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := &polled{series: map[string][]sample{}}
	for lines := json.NewDecoder(bufio.NewReader(f)); lines.More(); {
		var line struct {
			AtNS    int64 `json:"timestamp_ns"`
			Metrics map[string][]struct {
				Labels  map[string]string  `json:"labels"`
				Value   float64            `json:"value"`
				Count   float64            `json:"count"`
				Sum     float64            `json:"sum"`
				Buckets map[string]float64 `json:"buckets"`
			} `json:"metrics"`
		}
		if err := lines.Decode(&line); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out.times = append(out.times, line.AtNS)
		for name, list := range line.Metrics {
			for _, s := range list {
				key := seriesKey(name, s.Labels)
				out.series[key] = append(out.series[key], sample{line.AtNS, s.Value + s.Count, s.Sum, s.Buckets})
			}
		}
	}
	slices.Sort(out.times)
	return out
}

// gap is the longest time between two polls from a time to another.
func (p *polled) gap(from, to int64) (longest time.Duration) {
	for i := 1; i < len(p.times); i++ {
		if p.times[i] >= from && p.times[i-1] <= to {
			longest = max(longest, time.Duration(p.times[i]-p.times[i-1]))
		}
	}
	return longest
}

// row counts the values of one kind that were compared.
type row struct {
	what, rule    string
	values, equal int
	worst         float64 // difference relative to the larger value
	where         string
}

// comparison holds the values of AIPerf's file against those of ours.
type comparison struct {
	t            *testing.T
	theirs, ours *exported
	a, b         *polled // AIPerf's polls, ours
	from, to     int64
	gap          time.Duration
	rows         []*row
}

// same is how far two computations of one number may be apart.
const same = 1e-9

// add compares one value; a difference must be at most allowed.
func (c *comparison) add(what, rule, where string, theirs, ours, allowed float64) {
	i := slices.IndexFunc(c.rows, func(r *row) bool { return r.what == what })
	if i < 0 {
		i = len(c.rows)
		c.rows = append(c.rows, &row{what: what, rule: rule})
	}
	r := c.rows[i]
	r.values++
	difference := math.Abs(theirs - ours)
	switch scale := max(math.Abs(theirs), math.Abs(ours)); {
	case difference <= same*scale:
		r.equal++
		return
	case !(difference <= allowed):
		c.t.Errorf("%s: %s: AIPerf %v, scrapestat %v, apart %g, allowed %g by: %s", what, where, theirs, ours, difference,
			allowed, rule)
	case difference/scale > r.worst:
		name, _, _ := strings.Cut(where, ",")
		r.worst, r.where = difference/scale, fmt.Sprintf("%.2g %%: %.5g and %.5g, `%s`", 100*difference/scale, theirs, ours,
			name)
	}
}

// undust takes the rounding of large values off a standard deviation: that of a
// constant is 0 or nearly so.
func undust(stat string, theirs, ours *exportedSeries) float64 {
	a, b := theirs.Stats[stat], ours.Stats[stat]
	if stat == "std" && math.Abs(a-b) <= same*math.Abs(theirs.Stats["avg"]) {
		return a
	}
	return b
}

// table logs what was compared, as docs/formats.md has it.
func (c *comparison) table() {
	var b strings.Builder
	b.WriteString("| what | values | equal | largest difference | explained by |\n|---|---|---|---|---|\n")
	slices.SortFunc(c.rows, func(x, y *row) int { return cmp.Compare(x.what, y.what) })
	for _, r := range c.rows {
		worst := "-"
		if r.equal < r.values {
			worst = r.where
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %s | %s |\n", r.what, r.values, r.equal, worst, r.rule)
	}
	c.t.Logf("window %v, longest time between two polls %v\n%s", time.Duration(c.to-c.from), c.gap, b.String())
}

// families wants the same families and series, with the same type, description
// and unit.
func (c *comparison) families() {
	t := c.t
	if !slices.Equal(slices.Sorted(maps.Keys(c.theirs.Metrics)), slices.Sorted(maps.Keys(c.ours.Metrics))) {
		t.Errorf("families: AIPerf has %v\nscrapestat %v", slices.Sorted(maps.Keys(c.theirs.Metrics)),
			slices.Sorted(maps.Keys(c.ours.Metrics)))
	}
	series := 0
	for name, theirs := range c.theirs.Metrics {
		ours := c.ours.Metrics[name]
		if theirs.Type != ours.Type || theirs.Description != ours.Description || theirs.Unit != ours.Unit {
			t.Errorf("%s: AIPerf %s %q %q, scrapestat %s %q %q", name, theirs.Type, theirs.Description, theirs.Unit, ours.Type,
				ours.Description, ours.Unit)
		}
		keys := func(m *exportedMetric) (list []string) {
			for _, s := range m.Series {
				list = append(list, seriesKey(name, s.Labels))
			}
			slices.Sort(list)
			return list
		}
		if a, b := keys(&theirs), keys(&ours); !slices.Equal(a, b) {
			t.Errorf("%s: AIPerf has the series %v, scrapestat %v", name, a, b)
		}
		series += len(theirs.Series)
	}
	t.Logf("%d families and %d series with the same names, types, descriptions, units and labels; that AIPerf does "+
		"not have: %v",
		len(c.theirs.Metrics), series, c.ours.Own.Metrics)
}

func (m *exportedMetric) find(name, key string) *exportedSeries {
	for i := range m.Series {
		if seriesKey(name, m.Series[i].Labels) == key {
			return &m.Series[i]
		}
	}
	return &exportedSeries{}
}

// family compares the series of a family.
func (c *comparison) family(name string, m *exportedMetric) {
	other := c.ours.Metrics[name]
	for i := range m.Series {
		s := &m.Series[i]
		key := seriesKey(name, s.Labels)
		switch o := other.find(name, key); m.Type {
		case "counter":
			c.counter(name, key, s, o)
		case "histogram":
			c.histogram(key, s, o)
		default:
			c.gauge(key, s, o)
		}
	}
}

// moving are the counters that move without requests: by time, and by being
// scraped.
func moving(name string) bool {
	return strings.HasPrefix(name, "process_") || strings.HasPrefix(name, "python_gc_") || name == "scrapes"
}

// birth is what a series had when a collector first saw it, if that was in the
// window: both begin to count there.
func (c *comparison) birth(p *polled, key string) (sample, bool) {
	list := p.series[key]
	if len(list) == 0 || list[0].at < c.from {
		return sample{}, false
	}
	return list[0], true
}

const bornRule = "both begin at the first value they saw; with that value added they are equal"

func (c *comparison) counter(name, key string, theirs, ours *exportedSeries) {
	a, b := theirs.Stats["total"], ours.Stats["total"]
	first, born := c.birth(c.a, key)
	second, _ := c.birth(c.b, key)
	switch {
	case moving(name):
		c.add("total of a counter that moves by itself", "what it moved between two polls", key, a, b,
			2*c.gap.Seconds()*b/(float64(c.to-c.from)/1e9)+10)
	case born:
		c.add("total of a counter born in the window", bornRule, key, a+first.value, b+second.value, 0)
		return
	default:
		c.add("total of a counter", "", key, a, b, 0)
	}
	c.rate("rate of a counter", key, a, theirs.Stats["rate"], b, ours.Stats["rate"])
}

// rate compares the seconds that two rates were divided by: from poll to poll, so
// they differ by at most a poll at each end.
func (c *comparison) rate(what, key string, theirTotal, theirRate, ourTotal, ourRate float64) {
	const rule = "rates divide by the time from the first poll to the last, and that is another one"
	if theirRate == 0 || ourRate == 0 {
		c.add(what, rule, key, theirRate, ourRate, 0)
		return
	}
	allowed := math.Inf(1) // polls that far apart tell nothing
	if rest := float64(c.to-c.from)/1e9 - 2*c.gap.Seconds(); rest > 0 {
		allowed = 2 * c.gap.Seconds() / rest
	}
	c.add(what, rule, key, theirRate, ourRate*theirTotal/ourTotal, allowed*theirRate)
}

func (c *comparison) histogram(key string, theirs, ours *exportedSeries) {
	first, born := c.birth(c.a, key)
	second, _ := c.birth(c.b, key)
	what, rule := " of a histogram", ""
	if born {
		what, rule = " of a histogram born in the window", bornRule
	}
	c.add("count"+what, rule, key, theirs.Stats["count"]+first.value, ours.Stats["count"]+second.value, 0)
	c.add("sum"+what, rule, key, theirs.Stats["sum"]+first.sum, ours.Stats["sum"]+second.sum, 0)
	if len(theirs.Buckets) != len(ours.Buckets) {
		c.t.Errorf("%s: AIPerf has %d buckets, scrapestat %d", key, len(theirs.Buckets), len(ours.Buckets))
	}
	for le, n := range theirs.Buckets {
		c.add("bucket"+what, rule, key, n+first.buckets[le], ours.Buckets[le]+second.buckets[le], 0)
	}
	if born {
		return
	}
	c.add("mean"+what, "", key, theirs.Stats["avg"], ours.Stats["avg"], 0)
	c.rate("rate"+what, key, theirs.Stats["count"], theirs.Stats["count_rate"], ours.Stats["count"],
		ours.Stats["count_rate"])
	c.percentiles(key, theirs, ours)
}

// percentiles are estimates that use what each poll saw, of bounds that both share.
func (c *comparison) percentiles(key string, theirs, ours *exportedSeries) {
	const what, rule = "estimated percentile", "estimates use the sums of single polls; both lie in the bucket of the rank"
	for stat, a := range theirs.Stats {
		text, isEstimate := strings.CutSuffix(strings.TrimPrefix(stat, "p"), "_estimate")
		if !isEstimate {
			continue
		}
		percent, err := strconv.ParseFloat(text, 64)
		if err != nil {
			c.t.Errorf("%s: statistic %s", key, stat)
		}
		low, high := rankBucket(theirs.Buckets, percent/100)
		b := ours.Stats[stat]
		if a < low || a > high || b < low || b > high {
			c.t.Errorf("%s %s: AIPerf %v, scrapestat %v, want both in [%v, %v]", key, stat, a, b, low, high)
		}
		c.add(what, rule, key+" "+stat, a, b, high-low)
	}
}

// rankBucket is the range of the buckets that hold the two observations next to
// the rank of a percentile.
func rankBucket(buckets map[string]float64, q float64) (low, high float64) {
	type bucket struct{ le, count float64 }
	var list []bucket
	for le, n := range buckets {
		bound, err := strconv.ParseFloat(le, 64)
		if err != nil {
			bound = math.Inf(1)
		}
		list = append(list, bucket{bound, n})
	}
	slices.SortFunc(list, func(x, y bucket) int { return cmp.Compare(x.le, y.le) })
	rank := q * (list[len(list)-1].count - 1)
	lower := 0.0
	found := false
	for _, b := range list {
		if !found && b.count > math.Floor(rank) {
			low, found = lower, true
		}
		if b.count > math.Ceil(rank) {
			return low, b.le
		}
		lower = b.le
	}
	return low, math.Inf(1)
}

// gauge compares statistics of values that were read at other instants. Where the
// two took turns, each value of one has a neighbour in the other, from which it
// differs by at most what the gauge moved in between: so much may a statistic
// differ, and the mean by the mean of that. Values without a neighbour, as one of
// the two polled twice in a row, shift ranks.
func (c *comparison) gauge(key string, theirs, ours *exportedSeries) {
	const meanRule = "other instants: at most what it moved between neighbouring polls, on average"
	const rule = "other instants: at most what it moved between neighbouring polls"
	m := c.movement(key)
	c.add("mean of a gauge", meanRule, key, theirs.Stats["avg"], ours.Stats["avg"], m.mean)
	for stat, v := range theirs.Stats {
		allowed := m.jump
		switch p, isRank := strings.CutPrefix(stat, "p"); {
		case stat == "avg":
			continue
		case stat == "std":
			allowed += m.deviation
		case isRank:
			percent, err := strconv.ParseFloat(p, 64)
			if err != nil {
				c.t.Errorf("%s: statistic %s", key, stat)
			}
			allowed += m.spread(percent / 100)
		default: // min, max
			allowed += max(m.spread(0), m.spread(1))
		}
		c.add("min, max, std, percentile of a gauge", rule, key+" "+stat, v, undust(stat, theirs, ours), allowed)
	}
}

// movement is how a gauge moved between the polls of both.
type movement struct {
	jump, mean, deviation float64
	sorted                []float64
	shift                 float64 // of ranks, as a share
}

// spread is how far the values are apart whose rank is nearly q.
func (m *movement) spread(q float64) float64 {
	if len(m.sorted) == 0 {
		return 0
	}
	at := func(q float64) float64 { return m.sorted[int(min(max(q, 0), 1)*float64(len(m.sorted)-1))] }
	return at(q+m.shift) - at(q-m.shift)
}

func (c *comparison) movement(key string) movement {
	var m movement
	a, b := c.within(c.a.series[key]), c.within(c.b.series[key])
	n := float64(min(len(a), len(b)))
	all := slices.Concat(a, b)
	if n == 0 {
		return m
	}
	slices.SortFunc(all, func(x, y sample) int { return cmp.Compare(x.at, y.at) })
	isOurs := map[int64]bool{}
	for _, s := range b {
		isOurs[s.at] = true
	}
	alone := 4.0 // the ends of the window, and polls at the same instant
	moved := 0.0
	for i := range all {
		m.sorted = append(m.sorted, all[i].value)
		if i == 0 {
			continue
		}
		d := math.Abs(all[i].value - all[i-1].value)
		moved += d
		m.jump = max(m.jump, d)
		if i > 1 {
			m.jump = max(m.jump, math.Abs(all[i].value-all[i-2].value))
		}
		if isOurs[all[i].at] == isOurs[all[i-1].at] {
			alone++
		}
	}
	slices.Sort(m.sorted)
	scale := m.sorted[len(m.sorted)-1] - m.sorted[0]
	m.mean, m.deviation, m.shift = (moved+alone*scale)/n, scale*math.Sqrt(alone/n), alone/n
	return m
}

// within are the samples of the window.
func (c *comparison) within(list []sample) []sample {
	var out []sample
	for _, s := range list {
		if s.at >= c.from && s.at <= c.to {
			out = append(out, s)
		}
	}
	return out
}

// newComparison reads the polls of both.
func newComparison(t *testing.T, b *beside, theirs, ours *exported, from, to int64) *comparison {
	t.Helper()
	c := &comparison{t: t, theirs: theirs, ours: ours, from: from, to: to,
		a: readPolls(t, filepath.Join(b.dir, "aiperf", "server_metrics_export.jsonl")),
		b: readPolls(t, filepath.Join(b.dir, "run", "server_metrics_export.jsonl"))}
	c.gap = max(c.a.gap(from, to), c.b.gap(from, to))
	return c
}

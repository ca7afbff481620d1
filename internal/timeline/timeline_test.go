package timeline_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/internal/sourcetest"
	"github.com/scrapestat/scrapestat/internal/timeline"
	"github.com/scrapestat/scrapestat/metric"
)

const second = int64(time.Second)

func labels(pairs ...string) []metric.Label {
	var out []metric.Label
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, metric.Label{Name: pairs[i], Value: pairs[i+1]})
	}
	return out
}

func flush(t testing.TB, tl *timeline.Timeline) {
	t.Helper()
	if err := tl.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// TestFamilies gives each name one sample and says where it must be found.
func TestFamilies(t *testing.T) {
	r := sourcetest.New(t, sourcetest.Limits{})
	tl := timeline.New(timeline.Options{Source: "test", Address: "file:x",
		TypeOf: func(name string) (metric.Type, bool) { return metric.Counter, name == "known_counter" }}, r)
	for name, typ := range map[string]metric.Type{"h": metric.Histogram, "s": metric.Summary, "c_total": metric.Counter,
		"om": metric.Counter, "both": metric.Gauge, "both_total": metric.Counter, "build": metric.Info,
		"gh": metric.GaugeHistogram, "h_created": metric.Gauge} {
		tl.Describe(name, timeline.Meta{Type: typ, Help: "help of " + name})
	}
	type place struct {
		family string
		typ    metric.Type
		role   metric.Role
		bound  float64
	}
	check := func(name string, want place, pairs ...string) {
		t.Helper()
		if err := tl.Series(name, labels(pairs...)).Add(second, 7); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if v, ok := r.Value(0, want.family, want.typ, "", want.role, want.bound); !ok || v != 7 {
				t.Errorf("%s%v: got %v, %v at %+v, want 7", name, pairs, v, ok, want)
			}
		})
	}
	check("h_bucket", place{"h", metric.Histogram, metric.RoleBucket, 0.5}, "le", "0.5")
	check("h_bucket", place{"h", metric.Histogram, metric.RoleBucket, math.Inf(1)})
	check("h_sum", place{"h", metric.Histogram, metric.RoleSum, 0})
	check("h_count", place{"h", metric.Histogram, metric.RoleCount, 0})
	check("h_created", place{"h", metric.Histogram, metric.RoleCreated, 0})
	check("h", place{"h", metric.Unknown, metric.RoleValue, 0})
	check("s", place{"s", metric.Summary, metric.RoleQuantile, 0.9}, "quantile", "0.9")
	check("s_count", place{"s", metric.Summary, metric.RoleCount, 0})
	check("c_total", place{"c", metric.Counter, metric.RoleValue, 0})
	check("c_created", place{"c", metric.Counter, metric.RoleCreated, 0})
	check("om_total", place{"om", metric.Counter, metric.RoleValue, 0})
	check("both", place{"both", metric.Gauge, metric.RoleValue, 0})
	check("both_total", place{"both_total", metric.Counter, metric.RoleValue, 0})
	check("build_info", place{"build", metric.Info, metric.RoleValue, 0})
	check("gh_gcount", place{"gh", metric.GaugeHistogram, metric.RoleCount, 0})
	check("gh_bucket", place{"gh", metric.GaugeHistogram, metric.RoleBucket, 2}, "le", "2")
	// Nothing is declared of these.
	check("x_bucket", place{"x", metric.Histogram, metric.RoleBucket, 1}, "le", "1")
	check("x_count", place{"x", metric.Histogram, metric.RoleCount, 0})
	check("x_created", place{"x", metric.Histogram, metric.RoleCreated, 0})
	check("y_count", place{"y", metric.Summary, metric.RoleCount, 0})
	check("y_sum", place{"y", metric.Summary, metric.RoleSum, 0})
	check("y", place{"y", metric.Summary, metric.RoleQuantile, 0.5}, "quantile", "0.5")
	check("z_total", place{"z", metric.Counter, metric.RoleValue, 0})
	check("z_created", place{"z", metric.Counter, metric.RoleCreated, 0})
	check("lone_sum", place{"lone_sum", metric.Unknown, metric.RoleValue, 0})
	check("s3_bucket", place{"s3_bucket", metric.Unknown, metric.RoleValue, 0})
	check("known_counter", place{"known_counter", metric.Counter, metric.RoleValue, 0})
	check("scrape_samples_scraped", place{"scrape_samples_scraped", metric.Gauge, metric.RoleValue, 0})
	flush(t, tl)
	if n := tl.Stats().Guessed; n != 9 {
		t.Errorf("%d names were guessed, want 9", n)
	}
}

// TestOddities: staleness, repeats, conflicts, late samples, targets that are
// down, bounds that are none.
func TestOddities(t *testing.T) {
	r := sourcetest.New(t, sourcetest.Limits{Secrets: []string{"hunter2"}})
	tl := timeline.New(timeline.Options{Source: "test", Drop: regexp.MustCompile("^noise"),
		Limits: timeline.Limits{ValueLength: 20, Samples: 100}}, r)
	id := func(more ...string) []metric.Label {
		return append(labels("job", "j", "instance", "u:hunter2@h:1"), labels(more...)...)
	}
	add := func(name string, at int64, v float64, more ...string) {
		t.Helper()
		if err := tl.Series(name, id(more...)).Add(at*second, v); err != nil {
			t.Fatal(err)
		}
	}
	add("a", 2, 20)
	add("a", 1, 10) // out of order within what waits: sorted in
	add("a", 1, 10) // repeated
	add("b", 1, 1)
	add("b", 2, timeline.StaleNaN())
	add("noise", 1, 1)
	add("up", 1, 1)
	add("up", 2, 1)
	add("up", 3, 0)
	add("a", 3, timeline.StaleNaN())
	add("a", 4, timeline.StaleNaN()) // nothing else at 4: no poll
	add("x_bucket", 1, 1, "le", "wide")
	add("long", 1, 1, "l", "twenty-one characters")
	add("scrape_duration_seconds", 1, 0.25)
	flush(t, tl)
	add("a", 2, 99) // older than what was flushed
	add("a", 5, 50)
	add("a", 5, 51) // conflict
	flush(t, tl)

	got := r.Instants(0)
	if len(got) != 4 {
		t.Fatalf("%d polls, want 4: %+v", len(got), got)
	}
	check := func(i int, at int64, outcome metric.Outcome, values int, drops ...metric.Drop) {
		t.Helper()
		if g := got[i]; g.AtNS != at*second || g.Outcome != outcome || len(g.Values) != values ||
			!slices.Equal(g.Drops, drops) {
			t.Errorf("poll %d: got %+v, want at %ds, %v, %d values, drops %+v", i, g, at, outcome, values, drops)
		}
	}
	check(0, 1, metric.Partial, 4, metric.Drop{Reason: "label_length", Lines: 1, First: "long"},
		metric.Drop{Reason: "filtered", Lines: 1, First: "noise"}, metric.Drop{Reason: "bad_bound", Lines: 1,
			First: "x_bucket"})
	check(1, 2, metric.OK, 2)
	check(2, 3, metric.ConnectError, 0)
	check(3, 5, metric.Partial, 1, metric.Drop{Reason: "out_of_order", Lines: 1, First: "a"},
		metric.Drop{Reason: "duplicate_sample", Lines: 1, First: "a"})
	if got[0].Took != 250*time.Millisecond {
		t.Errorf("the first poll took %v, want 250ms", got[0].Took)
	}
	want := timeline.Stats{Targets: 1, Polls: 4, Failed: 1, Stored: 7, Dropped: 4, Repeated: 1, Stale: 3, OutOfOrder: 1,
		Guessed: 4,
		FirstNS: 1 * second, LastNS: 5 * second}
	if s := tl.Stats(); s != want {
		t.Errorf("stats\n got %+v\nwant %+v", s, want)
	}
	if g := r.Targets[0]; g.Name != "j/h:1" || g.URL != "http://h:1/metrics" {
		t.Errorf("target %+v", g)
	}
	var err error
	for i := range 200 {
		err = errors.Join(err, tl.Series("a", id()).Add(int64(10+i)*second, 1))
	}
	if !errors.Is(err, timeline.ErrFull) || tl.Held() != 100 {
		t.Errorf("held %d samples, error %v; want 100 and ErrFull", tl.Held(), err)
	}
	tl.Discard()
	flush(t, tl)
	if n := len(r.Instants(0)); n != 4 {
		t.Errorf("%d polls after Discard, want 4", n)
	}
}

// TestTargets: two jobs that scrape one instance have two addresses; a limit on
// series and targets holds.
func TestTargets(t *testing.T) {
	r := sourcetest.New(t, sourcetest.Limits{Slots: 3})
	tl := timeline.New(timeline.Options{Source: "test", Address: "file:x",
		Limits: timeline.Limits{Series: 3, Targets: 3}}, r)
	for _, job := range []string{"b", "a", ""} {
		for i := range 5 {
			var id []metric.Label
			if job != "" {
				id = labels("job", job, "instance", "h:1")
			}
			s := tl.Series(fmt.Sprintf("m%d", i), id)
			if err := s.Add(second, float64(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	flush(t, tl)
	var urls []string
	for _, g := range r.Targets {
		urls = append(urls, g.URL)
	}
	if want := []string{"file:x", "http://h:1/metrics", "http://h:1/metrics?job=b"}; !slices.Equal(urls, want) {
		t.Errorf("targets %q, want %q", urls, want)
	}
	if d := r.Instants(1)[0].Drops; len(d) != 1 || d[0].Reason != "series_limit" || d[0].Lines != 2 {
		t.Errorf("drops %+v, want two of series_limit", d)
	}
}

func TestStep(t *testing.T) {
	r := sourcetest.New(t, sourcetest.Limits{})
	tl := timeline.New(timeline.Options{Source: "test", Address: "x", Step: 10 * time.Second}, r)
	for at := range int64(60) {
		if err := tl.Series("m", nil).Add((at+1)*second, 1); err != nil {
			t.Fatal(err)
		}
	}
	flush(t, tl)
	if n, thinned := len(r.Instants(0)), tl.Stats().Thinned; n != 6 || thinned != 54 {
		t.Errorf("%d polls, %d left out; want 6 and 54", n, thinned)
	}
}

// TestAgainstMap holds the timeline against a map from (series, time) to value.
func TestAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := sourcetest.New(fatal{TB: nil, t: t}, sourcetest.Limits{})
		tl := timeline.New(timeline.Options{Source: "test", Address: "x"}, r)
		type key struct {
			series int
			at     int64
		}
		want := map[int64]map[int]float64{}
		seen := map[key]bool{}
		var stored int
		from := int64(0)
		for range rapid.IntRange(1, 3).Draw(t, "flushes") {
			last := from
			for range rapid.IntRange(0, 40).Draw(t, "samples") {
				k := key{rapid.IntRange(0, 4).Draw(t, "series"), from + 1 + rapid.Int64Range(0, 6).Draw(t, "at")}
				if seen[k] {
					continue
				}
				seen[k] = true
				last = max(last, k.at)
				v := rapid.Float64Range(-5, 5).Draw(t, "v")
				if err := tl.Series(fmt.Sprintf("m%d", k.series), nil).Add(k.at*second, v); err != nil {
					t.Fatal(err)
				}
				if want[k.at] == nil {
					want[k.at] = map[int]float64{}
				}
				want[k.at][k.series] = v
				stored++
			}
			if err := tl.Flush(context.Background()); err != nil {
				t.Fatal(err)
			}
			from = last
		}
		if stored == 0 {
			return
		}
		polls := r.Instants(0)
		if len(polls) != len(want) || tl.Stats().Stored != int64(stored) {
			t.Fatalf("%d polls of %d, %d samples of %d", len(polls), len(want), tl.Stats().Stored, stored)
		}
		for _, p := range polls {
			values := want[p.AtNS/second]
			for series, v := range values {
				slot := r.Slot(0, fmt.Sprintf("m%d", series), metric.Unknown, "", metric.RoleValue, 0)
				if bits, ok := p.Values[slot]; !ok || math.Float64frombits(bits) != v {
					t.Fatalf("at %d: m%d is %v (%v), want %v", p.AtNS, series, math.Float64frombits(bits), ok, v)
				}
			}
			if len(p.Values) != len(values) {
				t.Fatalf("at %d: %d values, want %d", p.AtNS, len(p.Values), len(values))
			}
		}
	})
}

// fatal reports through rapid what the recorder finds.
type fatal struct {
	testing.TB
	t *rapid.T
}

func (f fatal) Helper()                        {}
func (f fatal) Errorf(format string, a ...any) { f.t.Fatalf(format, a...) }

// BenchmarkHour is one hour of a target with 1,000 series at 15 s.
func BenchmarkHour(b *testing.B) {
	b.ReportAllocs()
	ids := make([][]metric.Label, 1000)
	for i := range ids {
		ids[i] = labels("job", "vllm", "instance", "h:1", "engine", fmt.Sprint(i))
	}
	for b.Loop() {
		tl := timeline.New(timeline.Options{Source: "test"}, discard{})
		for i := range ids {
			s := tl.Series("vllm:tokens_total", ids[i])
			for k := range int64(240) {
				if err := s.Add((k+1)*15*second, float64(k)); err != nil {
					b.Fatal(err)
				}
			}
		}
		if err := tl.Flush(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/240_000, "ns/sample")
}

type discard struct{}

func (discard) Begin(int64) error                    { return nil }
func (discard) AddTarget(metric.Target) (int, error) { return 0, nil }
func (discard) Record(*metric.Snapshot) error        { return nil }

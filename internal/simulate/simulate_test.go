package simulate_test

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/internal/simulate"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// clock is a clock that a test moves.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{time.Unix(1790470234, 123456789)} }

func (c *clock) add(d time.Duration) { c.now = c.now.Add(d) }

// start returns a server on the clock.
func start(t testing.TB, c *clock, profile string, o simulate.Options) *simulate.Server {
	t.Helper()
	o.Now = func() time.Time { return c.now }
	s, err := simulate.New(profile, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type families map[string]*dto.MetricFamily

func scrape(t testing.TB, s *simulate.Server) families {
	t.Helper()
	return parse(t, string(s.AppendBody(nil)))
}

func parse(t testing.TB, body string) families {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	f, err := p.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		t.Fatalf("body is not an exposition: %v", err)
	}
	return f
}

// find returns the metrics of a family with these label pairs, name=value.
func (f families) find(name string, pairs ...string) (found []*dto.Metric) {
	for _, m := range f[name].GetMetric() {
		matches := 0
		for _, l := range m.GetLabel() {
			if slices.Contains(pairs, l.GetName()+"="+l.GetValue()) {
				matches++
			}
		}
		if matches == len(pairs) {
			found = append(found, m)
		}
	}
	return found
}

// value adds up the counters, gauges, or sums of histograms found.
func (f families) value(name string, pairs ...string) (v float64) {
	for _, m := range f.find(name, pairs...) {
		v += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetHistogram().GetSampleSum() +
			m.GetSummary().GetSampleSum()
	}
	return v
}

// count adds up the counts of the histograms found.
func (f families) count(name string, pairs ...string) (n uint64) {
	for _, m := range f.find(name, pairs...) {
		n += m.GetHistogram().GetSampleCount()
	}
	return n
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// checkTruth compares every series of a scrape with what was recorded in it and
// published until then.
func checkTruth(t *testing.T, f families, truth simulate.Truth) {
	t.Helper()
	for _, s := range truth.Series {
		var pairs []string
		for name, value := range s.Labels.All() {
			pairs = append(pairs, name+"="+value)
		}
		name := s.Family
		if s.Type.String() == "counter" && f[name] == nil {
			name += "_total"
		}
		sum, n := 0.0, 0
		var values []float64
		for _, o := range s.Observations {
			if o.Published <= truth.Until {
				sum += o.Value
				n++
				values = append(values, o.Value)
			}
		}
		found := f.find(name, pairs...)
		if n == 0 && len(found) == 0 {
			continue
		}
		if len(found) != 1 {
			t.Errorf("%s%v: %d series in the body, want 1", name, pairs, len(found))
			continue
		}
		digits := 0.0
		if strings.HasPrefix(name, "llamacpp:") {
			digits = 1e-5 // it writes six digits
		}
		if got := f.value(name, pairs...); math.Abs(got-sum) > digits*sum {
			t.Errorf("%s%v: value or sum %v, want %v", name, pairs, got, sum)
		}
		checkBuckets(t, name, found[0].GetHistogram(), values)
	}
}

func checkBuckets(t *testing.T, name string, h *dto.Histogram, values []float64) {
	t.Helper()
	if h == nil {
		return
	}
	if h.GetSampleCount() != uint64(len(values)) {
		t.Errorf("%s: count %d, want %d", name, h.GetSampleCount(), len(values))
	}
	sorted := slices.Sorted(slices.Values(values))
	for _, b := range h.GetBucket() {
		n, _ := slices.BinarySearchFunc(sorted, b.GetUpperBound(), func(v, bound float64) int {
			if v <= bound {
				return -1
			}
			return 1
		})
		if want := uint64(n); b.GetCumulativeCount() != want {
			t.Errorf("%s: bucket %v holds %d, want %d", name, b.GetUpperBound(), b.GetCumulativeCount(), want)
		}
	}
}

// golden compares a body with testdata/name.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			t.Fatalf("%s differs from line %d on (rewrite with -update): got %q", path, i+1, g[min(i, len(g)-1)])
		}
	}
}

func TestNewRefuses(t *testing.T) {
	check := func(profile string, o simulate.Options, want string) {
		t.Helper()
		_, err := simulate.New(profile, o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New(%q, %+v): error %v, want one with %q", profile, o, err, want)
		}
	}
	check("vlm", simulate.Options{}, "have "+strings.Join(simulate.Profiles(), ", "))
	check("vllm", simulate.Options{Rate: -1}, "Rate")
	check("vllm", simulate.Options{Engines: -1}, "Engines")
	check("vllm", simulate.Options{AbortShare: 0.7, ErrorShare: 0.7}, "shares")
	check("vllm", simulate.Options{Output: simulate.Lengths{Mean: 0.5}}, "mean")
	check("vllm", simulate.Options{PublishDelay: -1}, "PublishDelay")
	check("vllm", simulate.Options{ExtraSeries: -1}, "ExtraSeries")
	check("vllm", simulate.Options{Hardware: simulate.Hardware{StepBase: 1}}, "1µs")
	check("vllm", simulate.Options{Hardware: simulate.Hardware{BlockSize: -1}}, "sizes")
	check("vllm", simulate.Options{Hardware: simulate.Hardware{Blocks: 100}}, "raise Hardware.Blocks")
	check("vllm", simulate.Options{Load: []simulate.LoadStep{{At: 2}, {At: 1}}}, "Load[1]")
}

func TestSameSeedSameBody(t *testing.T) {
	t.Parallel()
	body := func(profile string, seed uint64, looks int) string {
		c := newClock()
		s := start(t, c, profile, simulate.Options{Seed: seed, Engines: 2, PublishJitter: 300 * time.Millisecond})
		for i := range looks {
			c.now = newClock().now.Add(time.Duration(i+1) * 20 * time.Second / time.Duration(looks))
			s.AppendBody(nil)
		}
		c.now = newClock().now.Add(20 * time.Second)
		return string(s.AppendBody(nil))
	}
	for _, p := range simulate.Profiles() {
		once := body(p, 7, 0)
		if body(p, 7, 0) != once {
			t.Errorf("%s: two servers of one seed differ", p)
		}
		// These two count or notice their scrapes, as their engines do.
		counts := p == "torchserve" || p == "llamacpp"
		if changed := body(p, 7, 173) != once; changed != counts {
			t.Errorf("%s: looking at it changes the server: %v, want %v", p, changed, counts)
		}
		if body(p, 8, 0) == once {
			t.Errorf("%s: another seed gives the same body", p)
		}
	}
}

func TestLoadFollowsTheSteps(t *testing.T) {
	arrivals := func(truth simulate.Truth, from, to time.Duration) float64 {
		n := 0
		for _, q := range truth.Requests {
			if q.Arrival >= from && q.Arrival < to {
				n++
			}
		}
		return float64(n)
	}
	check := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 5*math.Sqrt(want) {
			t.Errorf("%s: %v requests, want about %v", what, got, want)
		}
	}
	c := newClock()
	s := start(t, c, "vllm", simulate.Options{
		Rate: 10, Load: []simulate.LoadStep{{At: 100 * time.Second, Rate: 2}, {At: 200 * time.Second, Rate: 0}},
		Output: simulate.Lengths{Mean: 5}, KeepTruth: true,
	})
	c.add(300 * time.Second)
	truth := s.Truth()
	check("first step", arrivals(truth, 0, 100*time.Second), 1000)
	check("second step", arrivals(truth, 100*time.Second, 200*time.Second), 200)
	if n := arrivals(truth, 200*time.Second, time.Hour); n != 0 {
		t.Errorf("%v requests arrived without load", n)
	}
	s.SetRate(5)
	c.add(100 * time.Second)
	check("SetRate", arrivals(s.Truth(), 300*time.Second, 400*time.Second), 500)
	s.SetRate(-3)
	c.add(time.Second)
	n := len(s.Truth().Requests)
	c.add(time.Hour)
	if got := len(s.Truth().Requests); got > n+20 {
		t.Errorf("%d requests finished after the load was taken away", got-n)
	}
}

func TestRestartOfAnyProfile(t *testing.T) {
	t.Parallel()
	for _, p := range simulate.Profiles() {
		c := newClock()
		s := start(t, c, p, simulate.Options{KeepTruth: true, PublishDelay: time.Second})
		c.add(time.Minute)
		s.SetRate(7)
		c.add(10 * time.Second)
		s.Restart()
		truth := s.Truth()
		checkTruth(t, scrape(t, s), truth)
		c.add(time.Minute)
		truth = s.Truth()
		checkTruth(t, scrape(t, s), truth)
		if n := len(truth.Requests); n < 320 && p != "dcgm" {
			t.Errorf("%s: %d requests in the minute after the restart, want about 400", p, n)
		}
	}
}

// TestAnyServerTellsTheTruth holds any server against what it recorded.
func TestAnyServerTellsTheTruth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		plan := simulate.StandardPlan(rapid.IntRange(1, 2).Draw(r, "replicas"))
		plan.Overlap = rapid.Bool().Draw(r, "overlap")
		plan.MaxInFlight = rapid.IntRange(0, 20).Draw(r, "in flight")
		delay := rapid.IntRange(0, 3000)
		o := simulate.Options{
			Seed:          rapid.Uint64().Draw(r, "seed"),
			Rate:          rapid.Float64Range(0.1, 30).Draw(r, "rate"),
			Engines:       rapid.IntRange(1, 2).Draw(r, "engines"),
			PublishDelay:  time.Duration(delay.Draw(r, "delay")) * time.Millisecond,
			PublishJitter: time.Duration(delay.Draw(r, "jitter")) * time.Millisecond,
			Hardware: simulate.Hardware{
				Blocks:        rapid.IntRange(130, 300).Draw(r, "blocks"),
				MaxModelLen:   rapid.IntRange(16, 2048).Draw(r, "length"),
				MaxStepTokens: rapid.IntRange(16, 4096).Draw(r, "step tokens"),
				MaxSequences:  rapid.IntRange(1, 80).Draw(r, "sequences"),
			},
			Plan: &plan, KeepTruth: true,
		}
		c := newClock()
		s := start(t, c, rapid.SampledFrom(simulate.Profiles()).Draw(r, "profile"), o)
		for range rapid.IntRange(1, 2).Draw(r, "scrapes") {
			c.add(time.Duration(rapid.IntRange(0, 2000).Draw(r, "ms")) * time.Millisecond)
			truth := s.Truth()
			checkTruth(t, scrape(t, s), truth)
		}
	})
}

func TestRestart(t *testing.T) {
	c := newClock()
	s := start(t, c, "vllm", simulate.Options{KeepTruth: true})
	c.add(time.Minute)
	before := scrape(t, s)
	truth := s.Restart()
	if len(truth.Requests) == 0 || truth.Until != time.Minute {
		t.Errorf("truth of the ended process: %d requests until %v", len(truth.Requests), truth.Until)
	}
	after := scrape(t, s)
	if v := after.value("vllm:generation_tokens_total"); v != 0 {
		t.Errorf("generation tokens right after the restart: %v", v)
	}
	for _, name := range []string{"process_start_time_seconds", "vllm:generation_tokens_created"} {
		if b, a := before.value(name), after.value(name); math.Abs(a-b-60) > 0.02 {
			t.Errorf("%s moved by %v, want 60", name, a-b)
		}
	}
	c.add(time.Minute)
	if v := scrape(t, s).value("vllm:generation_tokens_total"); v < 1000 ||
		v > 2*before.value("vllm:generation_tokens_total") {
		t.Errorf("generation tokens a minute after the restart: %v", v)
	}
}

func TestPublicationIsLate(t *testing.T) {
	check := func(delay, jitter time.Duration) {
		t.Helper()
		c := newClock()
		s := start(t, c, "vllm", simulate.Options{
			PublishDelay: delay, PublishJitter: jitter, KeepTruth: true, Load: []simulate.LoadStep{{At: 10 * time.Second}},
		})
		c.add(10 * time.Second)
		f, truth := scrape(t, s), s.Truth()
		checkTruth(t, f, truth)
		late := 0
		for _, x := range truth.Series {
			for i, o := range x.Observations {
				if lag := o.Published - o.At; lag < delay || i > 0 && o.Published < x.Observations[i-1].Published {
					t.Fatalf("%s: observation at %v published at %v", x.Family, o.At, o.Published)
				}
				if o.Published > truth.Until {
					late++
				}
			}
		}
		if late == 0 {
			t.Errorf("delay %v, jitter %v: nothing is late", delay, jitter)
		}
		c.add(time.Minute)
		f = scrape(t, s)
		if got, want := f.value("vllm:request_success_total"), len(s.Truth().Requests); got != float64(want) {
			t.Errorf("after the load: %v requests published, want %d", got, want)
		}
	}
	check(2*time.Second, 0)
	check(0, 3*time.Second)
	check(time.Second, time.Second)
}

func TestColdStartIsSlow(t *testing.T) {
	c := newClock()
	s := start(t, c, "vllm", simulate.Options{KeepTruth: true, ColdStart: simulate.ColdStart{For: 10 * time.Second,
		Slowdown: 5}})
	c.add(30 * time.Second)
	mean := func(from, to time.Duration) float64 {
		sum, n := 0.0, 0
		for _, x := range s.Truth().Steps {
			if x.Start >= from && x.Start < to {
				sum += (x.End - x.Start).Seconds()
				n++
			}
		}
		return sum / float64(n)
	}
	if cold, warm := mean(0, 2*time.Second), mean(10*time.Second, 30*time.Second); cold < 3.5*warm {
		t.Errorf("mean step: cold %v, warm %v", cold, warm)
	}
}

func TestSizeOfBody(t *testing.T) {
	t.Parallel()
	check := func(o simulate.Options, samples, bodyBytes int) {
		t.Helper()
		c := newClock()
		s := start(t, c, "vllm", o)
		c.add(2 * time.Minute)
		body := string(s.AppendBody(nil))
		lines := 0
		for line := range strings.Lines(body) {
			if !strings.HasPrefix(line, "#") {
				lines++
			}
		}
		if lines != s.Samples() {
			t.Errorf("%d lines of samples, Samples says %d", lines, s.Samples())
		}
		if math.Abs(float64(lines-samples)) > 0.1*float64(samples) ||
			math.Abs(float64(len(body)-bodyBytes)) > 0.12*float64(bodyBytes) {
			t.Errorf("%d engines: %d samples in %d bytes, want about %d in %d", o.Engines, lines, len(body), samples, bodyBytes)
		}
	}
	check(simulate.Options{Engines: 1}, 430, 50_000)
	check(simulate.Options{Engines: 3, Rate: 12}, 1087, 110_000)
	check(simulate.Options{Engines: 1, ExtraSeries: 10_000}, 10_430, 700_000)
}

func TestPaddingChanges(t *testing.T) {
	c := newClock()
	s := start(t, c, "vllm", simulate.Options{ExtraSeries: 300})
	c.add(time.Minute)
	before := scrape(t, s)
	c.add(time.Second)
	after, changed := scrape(t, s), 0
	for i := range 300 {
		l := "series=" + strconv.Itoa(i)
		b, a := before.value("simulate_padding_total", l), after.value("simulate_padding_total", l)
		if a < b {
			t.Errorf("%s fell from %v to %v", l, b, a)
		}
		if a > b {
			changed++
		}
	}
	if changed != 200 {
		t.Errorf("%d of 300 padding series changed, want 200", changed)
	}
}

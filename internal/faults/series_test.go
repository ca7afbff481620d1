package faults_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/badserver"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/units"
)

// epoch is when the runs of timed begin.
const epoch = int64(1_700_000_000_000_000_000)

// timed records a body every step; the first is the baseline, half a step before
// the profiling phase, which ends with the last body. "!" is a poll that failed.
func timed(t *testing.T, step time.Duration, so summary.Options, bodies ...string) *scene {
	t.Helper()
	s := &scene{t: t, dir: t.TempDir(), polls: make([][]metric.Snapshot, 1)}
	w, err := rundb.Create(s.dir, rundb.Meta{ID: "fault", OriginNS: epoch, Interval: step}, rundb.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.AddTarget(metric.Target{URL: "http://timed/metrics", Source: "prometheus"}); err != nil {
		t.Fatal(err)
	}
	d, err := scrape.NewDecoder(scrape.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, body := range bodies {
		at := epoch + int64(i)*int64(step)
		p := metric.Snapshot{Seq: uint64(i), DueNS: at, SentNS: at, FirstByteNS: at, Duration: time.Millisecond, Status: 200}
		if body == "!" {
			p.Outcome, p.FirstByteNS, p.Err = metric.ConnectError, 0, "refused"
		} else {
			d.Decode(&p, scrape.Body{Bytes: []byte(body), ContentType: "text/plain; version=0.0.4"})
		}
		if err := w.Record(&p); err != nil {
			t.Fatal(err)
		}
		p.DictDelta, p.Delta, p.Body = metric.DictDelta{}, metric.Delta{}, nil
		s.polls[0] = append(s.polls[0], p)
	}
	end := epoch + int64(len(bodies)-1)*int64(step)
	for name, at := range map[string]int64{metric.PhaseProfiling: epoch + int64(step)/2, metric.MarkEnd: end} {
		if err := w.Mark(metric.Mark{Name: name, AtNS: at, Kind: metric.MarkOwn}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.analyse(so)
	return s
}

// counts are bodies of one counter.
func counts(values ...float64) (out []string) {
	for _, v := range values {
		out = append(out, fmt.Sprintf("# TYPE c_total counter\nc_total %v\n", v))
	}
	return out
}

// TestCatalogueSeries has the cases S01 to S16 but S12 and S13, which are about
// the program.
func TestCatalogueSeries(t *testing.T) {
	var so summary.Options
	t.Run("S01 reset", func(t *testing.T) {
		reset := counts(1000, 1100, 40, 90)
		timed(t, time.Second, so, reset...).total("c", 190, 1)
		s := timed(t, time.Second, summary.Options{Resets: normalize.ResetClamp}, reset...)
		s.total("c", 190, 1)
		if a := s.metric("c").Series[0].AIPerf; a == nil || a.Counter.Total != 0 {
			t.Errorf("clamp: AIPerf's arithmetic gives %+v, want a total of 0", a)
		}
		timed(t, time.Second, so, counts(10, 1, 5, 2, 8, 3, 4, 1, 1, 0)...).total("c", 1+4+2+6+3+1+1, 5)
	})
	t.Run("S02 single sample", func(t *testing.T) {
		s := timed(t, time.Second, so, "b 1\n", "# TYPE c_total counter\nc_total 9\nb 2\n", "b 3\n")
		s.total("c", 9, 0) // it was born
		s = timed(t, time.Second, so, "b 0\n!\n", "!", "# TYPE c_total counter\nc_total 9\nb 2\n", "b 3\n")
		c := s.metric("c").Series[0]
		if c.Counter.Defined || len(c.Warnings) == 0 && len(s.run.Endpoints[0].Warnings) == 0 {
			t.Errorf("got %+v, warnings %v; want no total and why", c.Counter, c.Warnings)
		}
	})
	t.Run("S03 late counter", func(t *testing.T) {
		timed(t, time.Second, so, append([]string{"b 1\n", "b 1\n"}, counts(50, 60, 75)...)...).total("c", 75, 0)
	})
	t.Run("S04 vanishes", vanishes)
	t.Run("S05 odd histograms", oddHistograms)
	t.Run("S06 falling sum", fallingSum)
	t.Run("S07 type changes", func(t *testing.T) {
		s := timed(t, time.Second, so, "# TYPE x counter\nx 1\n", "# TYPE x counter\nx 2\n", "# TYPE x gauge\nx 3\n",
			"# TYPE x gauge\nx 4\n")
		var got []metric.Type
		for _, m := range s.run.Metrics {
			got = append(got, m.Type)
		}
		if len(got) != 2 || got[0] == got[1] {
			t.Errorf("types %v, want two entries", got)
		}
		if !slices.ContainsFunc(s.allWarnings(), func(w metric.Warning) bool { return strings.Contains(w.Code, "type") }) {
			t.Errorf("no warning: %v", s.allWarnings())
		}
	})
	t.Run("S08 units", func(t *testing.T) {
		check := func(name, help, want string) {
			t.Helper()
			if got := units.InferExtended(name, help, ""); got != want && (got != "" || units.Infer(name, help) != want) {
				t.Errorf("%s (%s): AIPerf has %q, own %q; want %q", name, help, units.Infer(name, help), got, want)
			}
		}
		check("x_seconds", "", "seconds")
		check("x_bytes", "", "bytes")
		check("x_bytes_total", "", "bytes")
		check("x_tokens_total", "", "tokens")
		check("x_ms", "", "milliseconds")
		check("x_us", "", "microseconds")
		check("gpu_usage", "In percent.", "percent")
	})
	t.Run("S09 rare updates", rareUpdates)
	t.Run("S10 frozen", func(t *testing.T) {
		body := make([]string, 70)
		for i := range body {
			body[i] = counts(5)[0]
		}
		timed(t, time.Second, so, body...).warned("stale_target", "1m9s")
	})
	t.Run("S11 clocks", clocks)
	t.Run("S14 slices", slicesOfTime)
	t.Run("S15 processes", processes)
	t.Run("S16 native histograms", nativeHistograms)
}

func (s *scene) allWarnings() (out []metric.Warning) {
	out = append(out, s.run.Warnings...)
	for _, e := range s.run.Endpoints {
		out = append(out, e.Warnings...)
	}
	for _, m := range s.run.Metrics {
		for _, x := range m.Series {
			out = append(out, x.Warnings...)
		}
	}
	return out
}

// vanishes lets a gauge of 10 be gone for two polls: its time average knows only
// the time that it was there.
func vanishes(t *testing.T) {
	with := func(v int) string {
		return fmt.Sprintf("# TYPE g gauge\ng %d\n# TYPE c_total counter\nc_total %d\nb 1\n", v, v)
	}
	s := timed(t, time.Second, summary.Options{}, with(10), with(10), with(10), "b 1\n", "b 1\n", with(20), with(20))
	g := s.metric("g").Series[0]
	if g.Gauge.N != 4 || g.Gauge.TimeAvg != 14 { // 10 for 1.5 s of the window, 20 for 1 s
		t.Errorf("got %+v", g.Gauge)
	}
	s.total("c", 10, 0)
	s = timed(t, time.Second, summary.Options{}, with(10), with(10), "!", "!", with(20))
	if e := s.run.Endpoints[0]; e.GapsN != 1 || e.Gaps[0].Polls != 2 {
		t.Errorf("gaps %+v, want one of two polls", e.Gaps)
	}
	s.total("c", 10, 0)
}

// histogram is a body of one classic histogram, of pairs of bound and count.
func histogram(sum, count string, buckets ...string) string {
	var b strings.Builder
	b.WriteString("# TYPE h histogram\n")
	for i := 0; i < len(buckets); i += 2 {
		fmt.Fprintf(&b, "h_bucket{le=%q} %s\n", buckets[i], buckets[i+1])
	}
	if sum != "" {
		b.WriteString("h_sum " + sum + "\n")
	}
	if count != "" {
		b.WriteString("h_count " + count + "\n")
	}
	return b.String()
}

func oddHistograms(t *testing.T) {
	check := func(name, code string, bodies ...string) *scene {
		t.Helper()
		s := timed(t, time.Second, summary.Options{}, bodies...)
		if !slices.ContainsFunc(s.allWarnings(), func(w metric.Warning) bool { return w.Code == code }) {
			t.Errorf("%s: no warning %s; have %v", name, code, s.allWarnings())
		}
		return s
	}
	zero := histogram("0", "0", "1", "0", "2", "0", "+Inf", "0")
	check("not monotone", "buckets_not_monotone", zero, histogram("3", "4", "1", "3", "2", "2", "+Inf", "4"))
	check("no +Inf", "inf_missing", histogram("0", "0", "1", "0"), histogram("3", "4", "1", "3"))
	check("count is another", "count_mismatch", zero, histogram("3", "5", "1", "3", "2", "3", "+Inf", "4"))
	check("no sum", "sum_missing", histogram("", "0", "1", "0", "+Inf", "0"), histogram("", "4", "1", "3", "+Inf", "4"))
	s := timed(t, time.Second, summary.Options{}, zero, histogram("-7", "4", "1", "3", "2", "3", "+Inf", "4"))
	if h := s.metric("h").Series[0].Histogram; h.Sum != -7 || h.Count != 4 {
		t.Errorf("negative sum: %+v", h)
	}
	s = timed(t, time.Second, summary.Options{}, zero, histogram("3", "4", "abc", "1", "1", "3", "2", "3", "+Inf", "4"))
	s.dropped("bad_bound", 1, "abc")
}

func fallingSum(t *testing.T) {
	s := timed(t, time.Second, summary.Options{}, histogram("10", "5", "0", "0", "1", "5", "+Inf", "5"),
		histogram("4", "8", "0", "3", "1", "8", "+Inf", "8"))
	x := s.metric("h").Series[0]
	if h := x.Histogram; h.Count != 3 || h.Sum != -6 || h.Avg != -2 || x.Resets != 0 {
		t.Errorf("got %+v, %d resets; want 3 observations, mean -2, no reset", h, x.Resets)
	}
}

// rareUpdates has a counter that moves by 10 once a second and is polled three
// times: the rate over the window is 10, and slices below a second do not make
// it anything else on the whole.
func rareUpdates(t *testing.T) {
	var values []float64
	for i := range 31 {
		values = append(values, float64(10*(i/3)))
	}
	step := time.Second / 3
	s := timed(t, step, summary.Options{Slice: time.Second}, counts(values...)...)
	c := s.metric("c").Series[0].Counter
	if c.Total != 100 || math.Abs(c.Rate-10) > 0.2 {
		t.Errorf("total %v, rate %v; want 100 and 10", c.Total, c.Rate)
	}
	if e := s.run.Endpoints[0]; e.Fetches.Total != 31 || e.Fetches.Unique != 11 {
		t.Errorf("%d fetches, %d of them unique; want 31 and 11", e.Fetches.Total, e.Fetches.Unique)
	}
}

// clocks serves a Date three hours off: it is told, and changes nothing.
func clocks(t *testing.T) {
	date := func(text string) badserver.Script {
		a := badserver.Answer{Type: "text/plain", Body: []byte("# TYPE c_total counter\nc_total 1\n"),
			Header: []string{"Date: " + text}}
		b := a
		b.Body = []byte("# TYPE c_total counter\nc_total 5\n")
		return badserver.Steps(false, a, b)
	}
	s := play(t, date(time.Now().Add(-3*time.Hour).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")), 2, scrape.Options{})
	s.warned("clock_skew", "-3h0m")
	s.total("c", 4, 0)
	s = play(t, date(time.Now().UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")), 2, scrape.Options{})
	if w := s.run.Endpoints[0].Warnings; len(w) != 0 {
		t.Errorf("a clock that is right: %v", w)
	}
	s = play(t, date("yesterday"), 2, scrape.Options{})
	if w := s.run.Endpoints[0].Warnings; len(w) != 0 {
		t.Errorf("no date: %v", w)
	}
}

func slicesOfTime(t *testing.T) {
	var values []float64
	for i := range 11 {
		values = append(values, float64(i))
	}
	// Shorter than the interval: no slice claims what it cannot know.
	s := timed(t, time.Second, summary.Options{Slice: 300 * time.Millisecond}, counts(values...)...)
	c := s.metric("c").Series[0].Counter
	sum := 0.0
	for _, x := range c.Slices {
		sum += x.Total
	}
	if c.Total != 10 || sum > c.Total {
		t.Errorf("total %v, slices add up to %v", c.Total, sum)
	}
	// Not dividing the run: the last slice is marked.
	s = timed(t, time.Second, summary.Options{Slice: 4 * time.Second}, counts(values...)...)
	c = s.metric("c").Series[0].Counter
	if len(c.Slices) == 0 {
		t.Fatal("no slices")
	}
	if last := c.Slices[len(c.Slices)-1]; !last.Partial {
		t.Errorf("the last slice, %+v, is said to be complete", last)
	}
}

// processes has the same series of eight processes: all are kept.
func processes(t *testing.T) {
	body := func(n int) string {
		var b strings.Builder
		b.WriteString("# TYPE c_total counter\n")
		for pid := range 8 {
			v := 0
			if pid == 3 {
				v = n
			}
			fmt.Fprintf(&b, "c_total{pid=\"%d\"} %d\n", 100+pid, v)
		}
		return b.String()
	}
	s := timed(t, time.Second, summary.Options{By: []string{}}, body(5), body(9))
	if m := s.metric("c"); len(m.Series) != 8 {
		t.Errorf("%d series, want 8", len(m.Series))
	}
	if a := s.run.Aggregates; len(a) != 1 || a[0].Series != 8 || a[0].Counter == nil || a[0].Counter.Total != 4 {
		t.Errorf("aggregates %+v, want one of 8 series and 4", a)
	}
	if !slices.ContainsFunc(s.allWarnings(), func(w metric.Warning) bool { return w.Code == "process_series" }) {
		t.Errorf("no hint: %v", s.allWarnings())
	}
}

package faults_test

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/faults"
	"github.com/scrapestat/scrapestat/internal/fuzzbound"
	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/scrape"
)

// FuzzScrapes gives bodies to the decoder as a target would send them, one after
// the other, and what comes out to the statistics (P22): nothing panics, no line is
// lost, and no number of the result is missing.
func FuzzScrapes(f *testing.F) {
	for _, profile := range simulate.Profiles() {
		now := time.Unix(1_790_000_000, 0)
		s, err := simulate.New(profile, simulate.Options{Now: func() time.Time { return now }, Seed: 1})
		if err != nil {
			f.Fatal(err)
		}
		now = now.Add(time.Minute)
		first := shortened(s.AppendBody(nil))
		now = now.Add(time.Second)
		f.Add(first, shortened(s.AppendBody(nil)), uint8(0))
	}
	f.Add([]byte("# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 3\nh_count 2\n"),
		[]byte("# TYPE h histogram\nh_bucket{le=\"1\"} 1e300\nh_bucket{le=\"+Inf\"} 1\nh_sum -Inf\nh_count NaN\n"), uint8(9))
	f.Add([]byte("# TYPE c counter\nc_total 1e308\n# EOF\n"),
		[]byte("# TYPE c counter\nc_total -1e308\nc_created 1e300\n# EOF\n"), uint8(3))
	f.Add([]byte("{a} 1\n{} 1\n"), []byte("a{b=\"1\",b=\"2\"} 1\n"), uint8(255))
	f.Fuzz(func(t *testing.T, first, second []byte, mode uint8) {
		defer fuzzbound.Check(t)()
		if len(first)+len(second) > 1<<14 {
			return
		}
		scrapes(t, mode, first, second, first)
	})
}

// shortened cuts a body at the end of a line, so that an input has some of all
// families rather than all of some.
func shortened(body []byte) []byte {
	var out []byte
	samples := 0
	for line := range bytes.Lines(body) {
		if line[0] == '#' {
			samples = 0
		} else if samples++; samples > 6 {
			continue
		}
		if len(out)+len(line) > 4096 {
			break
		}
		out = append(out, line...)
	}
	return out
}

// scrapes decodes bodies a second apart and folds them; mode chooses the format
// and the window.
func scrapes(t *testing.T, mode uint8, bodies ...[]byte) {
	t.Helper()
	d, err := scrape.NewDecoder(scrape.Options{Limits: scrape.Limits{Series: 2000, Buckets: 100}})
	if err != nil {
		t.Fatal(err)
	}
	o := normalize.Options{StartNS: int64(mode>>4&3) * int64(time.Second), Resets: normalize.ResetMode(mode & 1)}
	if mode&2 != 0 {
		o.Slice = time.Second
	}
	fold, err := normalize.NewFold(o)
	if err != nil {
		t.Fatal(err)
	}
	contentType := "text/plain; version=0.0.4"
	if mode&4 != 0 {
		contentType = "application/openmetrics-text; version=1.0.0"
	}
	at, present := int64(0), 0
	var dict metric.Schema
	for i, body := range bodies {
		at += int64(time.Second)
		s := metric.Snapshot{Seq: uint64(i), DueNS: at, SentNS: at, FirstByteNS: at, Duration: time.Millisecond, Status: 200}
		d.Decode(&s, scrape.Body{Bytes: bytes.Clone(body), ContentType: contentType, Cut: mode&8 != 0})
		if err := faults.NoPanic(&s); err != nil {
			t.Fatalf("body %d: %v", i, err)
		}
		if err := dict.Grow(&s.DictDelta); err != nil {
			t.Fatalf("body %d: %v", i, err)
		}
		if s.Delta.Full {
			present = faults.Lines(&dict, &s.Delta)
		}
		if s.Outcome.Stored() && present+s.Dropped() != s.Lines {
			t.Fatalf("body %d: %d samples stored and %d lines dropped of %d", i, present, s.Dropped(), s.Lines)
		}
		if err := fold.Add(&s); err != nil {
			t.Fatalf("body %d: %v", i, err)
		}
	}
	for _, s := range fold.Result(at).Series {
		for _, v := range mainNumbers(&s) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("series %d has %v", s.Index, v)
			}
		}
	}
}

// mainNumbers are statistics that exports print, of each kind of series.
func mainNumbers(s *normalize.Series) (out []float64) {
	if c := s.Counter; c != nil {
		out = append(out, c.Total, c.Rate)
	}
	if g := s.Gauge; g != nil {
		out = append(append(out, g.TimeAvg, g.First, g.Last), g.Quantiles...)
	}
	if h := s.Histogram; h != nil {
		out = append(out, h.Sum, h.Avg, h.CountRate, h.SumRate)
		for _, q := range h.Quantiles {
			out = append(out, q.Value)
		}
	}
	return out
}

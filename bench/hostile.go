package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// large records three polls of a target of so many series, in a family each or all in one.
func large(dir string, series int, oneFamily bool) (err error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("make run directory: %w", err)
	}
	const origin = 1_790_000_000_000_000_000
	w, err := rundb.Create(dir, rundb.Meta{ID: "large", Version: "bench", OriginNS: origin, Interval: time.Second},
		rundb.WriterOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close(context.Background())) }()
	if _, err := w.AddTarget(metric.Target{URL: "http://large/metrics", Source: "prometheus"}); err != nil {
		return err
	}
	s := &metric.Snapshot{Status: http.StatusOK, Delta: metric.Delta{Full: true}}
	for i := range series {
		of := metric.Series{Family: i}
		if oneFamily {
			of = metric.Series{Labels: metric.NewLabels(metric.Label{Name: "id", Value: fmt.Sprint(i)})}
		}
		if i == 0 || !oneFamily {
			s.DictDelta.Families = append(s.DictDelta.Families, metric.Family{Name: fmt.Sprintf("x%d_total", i),
				Type: metric.Counter})
		}
		s.DictDelta.Series = append(s.DictDelta.Series, of)
		s.DictDelta.Slots = append(s.DictDelta.Slots, metric.SampleID{Series: i})
		s.Delta.Slots, s.Delta.Bits = append(s.Delta.Slots, uint32(i)), append(s.Delta.Bits, 0)
	}
	for n := range 3 {
		s.Seq, s.SentNS, s.FirstByteNS = uint64(n), int64(origin+n*1e9), int64(origin+n*1e9)
		if err := w.Record(s); err != nil {
			return err
		}
		s.DictDelta = metric.DictDelta{}
	}
	return nil
}

// Analysis is asked for twenty times as much, and may take 25 times as long.
const few, times, atMost = 10_000, 20, 25

// linear measures the analysis of many families, and of many series.
func (b *bench) linear(ctx context.Context) error {
	for _, what := range []string{"families", "series"} {
		var mb stat
		var turns []turn
		for _, n := range []int{few, few * times} {
			dir := filepath.Join(b.work, fmt.Sprint(what, n))
			if err := large(dir, n, what == "series"); err != nil {
				return err
			}
			turns = append(turns, b.export(ctx, &mb, dir, "json,csv", slice, "large"))
		}
		of, err := b.turns(turns...)
		if err != nil {
			return err
		}
		b.add(fmt.Sprintf("analysis of %d %s, s CPU", few*times, what), of[1], of[0], fmt.Sprint(few), atMost)
	}
	return nil
}

// maxMemory is --max-memory of the recordings, a limit of about that.
const maxMemory = 512 << 20

// runHostile measures what bodies that were written to cost much do cost.
func runHostile(ctx context.Context, b *bench) error {
	if err := b.linear(ctx); err != nil {
		return err
	}
	var families, series bytes.Buffer
	for i := range 600_003 {
		fmt.Fprintf(&families, "# TYPE x%d counter\n", i)
	}
	for i := range 300_000 {
		fmt.Fprintf(&series, "x{id=\"%d\"} 1\n", i)
	}
	none, err := b.peak(ctx, []byte("x 1\n"))
	if err != nil {
		return err
	}
	for what, body := range map[string][]byte{"600,003 families without samples": families.Bytes(),
		"300,000 series": series.Bytes()} {
		mb, err := b.peak(ctx, body)
		if err != nil {
			return err
		}
		b.add("run with "+what+", MB", mb, stat{none.median() + maxMemory/1e6}, "run with one, and --max-memory", 1.15)
	}
	return nil
}

// peak is the memory in MB of runs of a target with a body, and of their analysis.
func (b *bench) peak(ctx context.Context, body []byte) (mb stat, err error) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(body) // who does not read it all is none of its business
	}))
	defer srv.Close()
	run := filepath.Join(b.work, "hostile")
	args := append(collectArgs("", run, time.Second, min(b.length, 5*time.Second))[1:], "--formats=json",
		"--max-series=1000000", "--max-memory", fmt.Sprint(maxMemory), srv.URL)
	for range b.rounds {
		if _, err := b.command(ctx, &mb, args...)(); err != nil {
			return nil, err
		}
		if err := os.RemoveAll(run); err != nil {
			return nil, fmt.Errorf("remove run: %w", err)
		}
	}
	return mb, nil
}

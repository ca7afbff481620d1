package torchserve_test

import (
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source/torchserve"
)

// What a follower shows of the logs of a server, through many rotations, is what
// /metrics of that server shows in prometheus mode: every series, and no other.
func TestParity(t *testing.T) {
	dir := t.TempDir()
	// Followed before the server starts, so that nothing is old.
	follower, err := torchserve.Follow(dir, torchserve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer follower.Close()
	v := &view{}
	v.poll(t, follower, metric.Baseline)

	now := time.Unix(1_800_000_000, 0)
	logs := simulate.NewMetricLogs(dir, 30_000)
	server, err := simulate.New("torchserve",
		simulate.Options{Rate: 60, Seed: 4, ErrorShare: 0.02, Now: func() time.Time { return now }, MetricLog: logs.Write})
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		now = now.Add(200 * time.Millisecond)
		server.Advance()
		v.poll(t, follower, metric.Periodic)
	}
	v.poll(t, follower, metric.Final)
	if err := logs.Close(); err != nil {
		t.Fatal(err)
	}
	if archives, _ := filepath.Glob(filepath.Join(dir, "*.log.*")); len(archives) < 10 {
		t.Errorf("only %d rotations", len(archives))
	}
	shown := 0
	for line := range strings.Lines(string(server.AppendBody(nil))) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, rest, _ := strings.Cut(line, "{")
		labels, text, _ := strings.Cut(rest, "} ")
		want, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil {
			t.Fatal(err)
		}
		var pairs []metric.Label
		for pair := range strings.SplitSeq(strings.TrimSuffix(labels, ","), ",") {
			n, value, _ := strings.Cut(pair, "=")
			pairs = append(pairs, metric.Label{Name: n, Value: strings.Trim(value, `"`)})
		}
		key := strings.TrimSuffix(name, "_total") + metric.NewLabels(pairs...).String()
		got, ok := v.values[key]
		if !ok || math.Abs(got-want) > 1e-9*math.Abs(want) {
			t.Errorf("%s: /metrics shows %v, the logs %v (%v)", key, want, got, ok)
		}
		shown++
	}
	if shown != len(v.values) || shown < 20 || v.drops > 0 {
		t.Errorf("%d series at /metrics, %d in the logs, %d lines dropped", shown, len(v.values), v.drops)
	}
	batches := 0
	for key, events := range v.events {
		for _, e := range events {
			if strings.HasPrefix(key, "HandlerTime") && len(e.Requests) > 1 {
				batches++
			}
		}
	}
	if batches == 0 {
		t.Error("no line stands for several requests")
	}
}

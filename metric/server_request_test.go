package metric_test

import (
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// TestServerRequestCheck takes a record that can be true and refuses each that cannot, without words of its source.
func TestServerRequestCheck(t *testing.T) {
	const now = int64(1_795_337_043_000_000_000)
	good := func() metric.ServerRequest {
		q := metric.NewServerRequest()
		q.ID, q.ArrivalNS, q.FirstNS, q.FinishNS, q.TTFT, q.Prompt = "PRIVATE", now, now+1, now+2, 1, 7
		return q
	}
	check := func(clock, want string, change func(*metric.ServerRequest)) {
		t.Helper()
		q := good()
		change(&q)
		switch err := q.Check(clock); {
		case err == nil && want != "", err != nil && (want == "" || !strings.Contains(err.Error(), want)):
			t.Errorf("got %v, want %q", err, want)
		case err != nil && strings.Contains(err.Error(), "PRIVATE"):
			t.Errorf("%v tells what the source wrote", err)
		}
	}
	check(metric.ServerUnix, "", func(q *metric.ServerRequest) {})
	check(metric.ServerUnix, "", func(q *metric.ServerRequest) { q.FinishNS, q.Queue = 0, 0 })
	check(metric.ServerMonotonic, "", func(q *metric.ServerRequest) { q.ArrivalNS, q.FirstNS, q.FinishNS = 5, 6, 7 })
	check(metric.ServerNone, "no clock", func(q *metric.ServerRequest) {})
	check(metric.ServerUnix, "no id", func(q *metric.ServerRequest) { q.ID = "" })
	check(metric.ServerUnix, "an id is longer", func(q *metric.ServerRequest) { q.Alt = strings.Repeat("x", 257) })
	check(metric.ServerUnix, "a duration", func(q *metric.ServerRequest) { q.Queue = -2 })
	check(metric.ServerUnix, "a duration", func(q *metric.ServerRequest) { q.E2E = 25 * time.Hour })
	check(metric.ServerUnix, "a count", func(q *metric.ServerRequest) { q.Output = -7 })
	check(metric.ServerUnix, "cached", func(q *metric.ServerRequest) { q.Cached = 8 })
	check(metric.ServerUnix, "2001", func(q *metric.ServerRequest) { q.ArrivalNS = 1 })
	check(metric.ServerMonotonic, "boot", func(q *metric.ServerRequest) { q.ArrivalNS = -1 })
	check(metric.ServerUnix, "before it arrived", func(q *metric.ServerRequest) { q.FinishNS = now - 1 })
	check(metric.ServerUnix, "longer than", func(q *metric.ServerRequest) { q.LastNS = now + 1<<60 })
	check(metric.ServerUnix, "first token", func(q *metric.ServerRequest) { q.FirstNS = now + 3 })
	q := good()
	q.Finish, q.Model = strings.Repeat("f", 65), strings.Repeat("m", 129)
	if err := q.Check(metric.ServerUnix); err != nil || len(q.Finish) > 64 || len(q.Model) > 128 {
		t.Errorf("%v: texts of %d and %d bytes", err, len(q.Finish), len(q.Model))
	}
}

// TestServerCounts counts what is bad and keeps the first reason.
func TestServerCounts(t *testing.T) {
	var c metric.ServerCounts
	c.Note("line %d", 1)
	c.Note("line %d", 2)
	if c.Bad != 2 || c.FirstBad != "line 1" {
		t.Errorf("%+v", c)
	}
}

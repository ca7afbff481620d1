package scrape_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// dictSink keeps the dictionary of each target as a sink must, and fails when a
// target that came back begins a second one.
type dictSink struct {
	mu    sync.Mutex
	polls map[int]int
	slots map[int]int
	seq   map[int]uint64
	fail  []string
}

func (s *dictSink) Record(p *metric.Snapshot) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if want := s.seq[p.Target]; p.Seq != want {
		s.fail = append(s.fail, fmt.Sprintf("target %d: poll %d, want %d", p.Target, p.Seq, want))
	}
	s.seq[p.Target]++
	s.polls[p.Target]++
	s.slots[p.Target] += len(p.DictDelta.Slots)
	return nil
}

func (s *dictSink) count(target int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.polls[target]
}

// wait waits for more polls of a target than there are.
func (s *dictSink) wait(t *testing.T, target, more int) {
	t.Helper()
	want := s.count(target) + more
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for s.count(target) < want {
		select {
		case <-deadline:
			t.Fatalf("target %d has %d polls, want %d", target, s.count(target), want)
		case <-tick.C:
		}
	}
}

// TestAddRemove lets a target come, go and come back while another one is polled.
func TestAddRemove(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "# TYPE a counter\na 1\n")
	}))
	defer srv.Close()
	target := scrape.Target{URL: srv.URL + "/metrics"}
	sink := &dictSink{polls: map[int]int{}, slots: map[int]int{}, seq: map[int]uint64{}}
	c, err := scrape.New(nil, scrape.Options{Interval: 5 * time.Millisecond, Dynamic: true, MaxScrapeShare: -1}, sink)
	if err != nil {
		t.Fatal(err)
	}
	<-c.Ready() // nobody to wait for
	ctx, stop, done := t.Context(), make(chan struct{}), make(chan error, 1)
	go func() { done <- c.Run(ctx, stop) }()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(c.Add(ctx, 0, target))
	check(c.Add(ctx, 1, target))
	sink.wait(t, 0, 3)
	sink.wait(t, 1, 3)
	if err := c.Add(ctx, 1, target); err == nil {
		t.Error("a target that is polled was added again")
	}
	check(c.Remove(ctx, 1))
	check(c.Remove(ctx, 1))
	check(c.Remove(ctx, 7))
	before := sink.count(1)
	sink.wait(t, 0, 3)
	if got := sink.count(1); got != before {
		t.Errorf("a removed target was polled %d more times", got-before)
	}
	c.Boundary(ctx) // must not wait for who has gone
	check(c.Add(ctx, 1, target))
	sink.wait(t, 1, 2)
	if err := c.Add(ctx, 5, scrape.Target{URL: "ftp://h/"}); err == nil {
		t.Error("a target that cannot be polled was added")
	}
	close(stop)
	check(<-done)
	if sink.slots[1] != 1 {
		t.Errorf("the target that came back has %d slots, want the 1 it had", sink.slots[1])
	}
	for _, f := range sink.fail {
		t.Error(f)
	}
	if err := c.Add(context.Background(), 2, target); err == nil {
		t.Error("a target was added after the end of the run")
	}
}

// TestRemoveBeforeBaseline removes a target of New that never answers: the run
// must not wait for its baseline.
func TestRemoveBeforeBaseline(t *testing.T) {
	hang := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}))
	defer srv.Close()
	defer close(hang)
	sink := &dictSink{polls: map[int]int{}, slots: map[int]int{}, seq: map[int]uint64{}}
	o := scrape.Options{Dynamic: true, FinalTimeout: 50 * time.Millisecond}
	c, err := scrape.New([]scrape.Target{{URL: srv.URL + "/metrics"}}, o, sink)
	if err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- c.Run(t.Context(), stop) }()
	if err := c.Remove(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	<-c.Ready()
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestStatic refuses changes of a collector that was not made for them.
func TestStatic(t *testing.T) {
	c, err := scrape.New([]scrape.Target{{URL: "http://h/metrics"}}, scrape.Options{}, &dictSink{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Add(t.Context(), 1, scrape.Target{URL: "http://i/metrics"}) == nil || c.Remove(t.Context(), 0) == nil {
		t.Error("targets of a collector without Options.Dynamic were changed")
	}
}

// TestRelabelHook relabels, renames and drops series, in text and across polls:
// a histogram keeps all its buckets.
func TestRelabelHook(t *testing.T) {
	body := "# TYPE h histogram\nh_bucket{a=\"1\",le=\"1\"} 1\nh_bucket{a=\"1\",le=\"+Inf\"} 2\nh_sum{a=\"1\"} " +
		"3\nh_count{a=\"1\"} 2\n" +
		"# TYPE c_total counter\nc_total{a=\"1\"} 5\n# TYPE d gauge\nd 1\nd{a=\"x\"} 2\n"
	calls := 0
	hook := func(name string, l metric.Labels) (string, metric.Labels, bool) {
		calls++
		if _, ok := l.Get("le"); ok {
			t.Errorf("%s: the hook sees le", name)
		}
		if name == "d" {
			return "", l, false
		}
		return "new_" + name, l.Without("a"), true
	}
	var mu sync.Mutex
	var families []metric.Family
	var series []metric.Series
	var slots []metric.SampleID
	filtered := 0
	sink := sinkFunc(func(s *metric.Snapshot) error {
		mu.Lock()
		defer mu.Unlock()
		families = append(families, s.DictDelta.Families...)
		series = append(series, s.DictDelta.Series...)
		slots = append(slots, s.DictDelta.Slots...)
		for _, d := range s.Drops {
			if d.Reason == metric.DropFiltered {
				filtered = d.Lines
			} else {
				t.Errorf("dropped %+v", d)
			}
		}
		return nil
	})
	n := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n++
		fmt.Fprint(w, body, "# poll ", n, "\n")
	}))
	defer srv.Close()
	c, err := scrape.New([]scrape.Target{{URL: srv.URL + "/metrics", Relabel: hook}},
		scrape.Options{Interval: 5 * time.Millisecond, MaxScrapeShare: -1}, sink)
	if err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- c.Run(t.Context(), stop) }()
	<-c.Ready()
	for range 5 {
		c.Boundary(t.Context())
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range slots {
		f := families[series[s.Series].Family]
		got = append(got, fmt.Sprintf("%s %s%s %d %s", f.Type, f.Name, series[s.Series].Labels, s.Role, s.Text))
	}
	want := []string{"histogram new_h 3 1", "histogram new_h 3 +Inf", "histogram new_h 1 ", "histogram new_h 2 ",
		"counter new_c 0 "}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if filtered != 2 {
		t.Errorf("%d lines filtered, want 2", filtered)
	}
	if calls > 6 {
		t.Errorf("the hook was called %d times for 6 series", calls)
	}
}

type sinkFunc func(*metric.Snapshot) error

func (f sinkFunc) Record(s *metric.Snapshot) error { return f(s) }

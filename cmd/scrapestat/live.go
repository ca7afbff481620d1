package main

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/report/html"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/summary"
)

// liveAnalysis is the analysis of a run while it is recorded, for those who look on. It
// never holds up the recording: polls wait in a queue, and when that is full the
// fold ends, says so, and leaves the recording alone. A nil fold does nothing.
type liveAnalysis struct {
	name     string
	builder  *summary.Builder
	timeline *html.Timeline // nil without a page
	news     chan news
	done     chan struct{}
	behind   atomic.Bool // the queue was full: what was folded is not whole
	failed   atomic.Pointer[error]

	mu    sync.Mutex // of the page: one is made at a time
	page  []byte
	until time.Time // the page is new enough
}

// news is a poll, a mark, or a target that came.
type news struct {
	poll   *metric.Snapshot
	mark   *metric.Mark
	target *metric.Target
}

// foldQueue is how many polls may wait to be folded.
const foldQueue = 4096

// newFold begins the analysis of a run that is about to be recorded. The caller
// calls close. With page it keeps what the page draws: slices and a timeline.
func newFold(name string, meta rundb.Meta, targets []metric.Target, so summary.Options, duration time.Duration, page bool) (*liveAnalysis, error) {
	if so.Slice == 0 && page {
		// A run of unknown length has few slices, so that it may last a day.
		so.Slice = 30 * time.Second
		if duration > 0 {
			so.Slice = reportSlice(duration)
		}
	}
	b, err := summary.NewBuilder(meta, targets, so)
	if err != nil {
		return nil, err
	}
	f := &liveAnalysis{name: name, builder: b, news: make(chan news, foldQueue), done: make(chan struct{})}
	if page {
		f.timeline = html.NewTimeline(html.TimelineOptions{OriginNS: meta.OriginNS, Interval: meta.Interval, Targets: max(len(targets), 4)})
	}
	go f.run()
	return f, nil
}

func (f *liveAnalysis) run() {
	defer close(f.done)
	for n := range f.news {
		var err error
		switch {
		case f.failed.Load() != nil:
		case n.mark != nil:
			f.builder.Mark(*n.mark)
		case n.target != nil:
			f.builder.AddTarget(*n.target)
		default:
			if err = f.builder.Add(n.poll); err == nil && f.timeline != nil {
				err = f.timeline.Add(n.poll)
			}
		}
		if err != nil {
			f.failed.Store(&err)
		}
	}
}

// close ends the fold, once nobody calls the other methods any more.
func (f *liveAnalysis) close() {
	if f != nil {
		close(f.news)
		<-f.done
	}
}

func (f *liveAnalysis) notify(n news) {
	if f == nil || f.behind.Load() {
		return
	}
	select {
	case f.news <- n:
	default:
		f.behind.Store(true)
	}
}

// Record implements observer.
func (f *liveAnalysis) Record(s *metric.Snapshot) {
	if f != nil && !f.behind.Load() {
		f.notify(news{poll: s.Clone()})
	}
}

func (f *liveAnalysis) mark(m metric.Mark)        { f.notify(news{mark: &m}) }
func (f *liveAnalysis) addTarget(t metric.Target) { f.notify(news{target: &t}) }

// The times of the live page. One is made again after at least refreshEvery, and
// so seldom that making it takes a twentieth of the time.
const (
	refreshEvery = 2 * time.Second
	refreshShare = 20
)

// report returns the page of the run so far; nowNS is the time on its axis.
func (f *liveAnalysis) report(nowNS int64) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.page != nil && time.Now().Before(f.until) {
		return f.page, nil
	}
	if err := f.failed.Load(); err != nil {
		return nil, *err
	}
	started := time.Now()
	result, err := f.builder.Result(nowNS)
	if err != nil {
		return nil, err
	}
	if f.behind.Load() {
		result.Warnings = append(result.Warnings, metric.Warning{Code: "live_page_behind",
			Text: "this page ends where the analysis could no longer follow the recording; the recording itself is whole"})
	}
	var out bytes.Buffer
	if err := html.Write(&out, []html.Input{{Name: f.name, Run: result, Timeline: f.timeline, Open: true}},
		html.Options{Generated: time.Now(), Refresh: refreshEvery}); err != nil {
		return nil, fmt.Errorf("make live page: %w", err)
	}
	hold := max(refreshEvery/2, refreshShare*time.Since(started))
	f.page, f.until = out.Bytes(), time.Now().Add(hold)
	return f.page, nil
}

// result is the run so far, for those who draw it themselves.
func (f *liveAnalysis) result(nowNS int64) (*summary.Run, error) {
	if err := f.failed.Load(); err != nil {
		return nil, *err
	}
	return f.builder.Result(nowNS)
}

// isBehind says that the fold has stopped as it could not follow.
func (f *liveAnalysis) isBehind() bool { return f != nil && f.behind.Load() }

// startFold begins the analysis beside the recording, if anybody can look on.
func (s *session) startFold(meta rundb.Meta, targets []scrape.Target) (err error) {
	if s.o.listen == "" && s.view == nil {
		return nil
	}
	var public []metric.Target
	for _, t := range targets {
		public = append(public, t.Public())
	}
	duration := s.o.duration
	if duration > 0 {
		duration += s.o.warmup
	}
	s.fold, err = newFold(s.o.out, meta, public, s.o.analysis.options(), duration, s.o.listen != "")
	return err
}

// endFold ends the analysis beside the recording, which has ended.
func (s *session) endFold() {
	s.fold.close()
	s.fold = nil
}

// abandon ends a recording that could not begin.
func (s *session) abandon(err error) error {
	s.endFold()
	return errors.Join(err, s.db.Close())
}

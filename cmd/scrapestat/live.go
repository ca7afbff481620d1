package main

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/collect"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/report/html"
	"github.com/scrapestat/scrapestat/summary"
)

// livePage is the report of a run while it is recorded.
type livePage struct {
	name     string
	interval time.Duration
	session  *collect.Session
	timeline *html.Timeline
	catalog  *catalog.Catalog

	mu    sync.Mutex // one page is made at a time
	page  []byte
	until time.Time // the page is new enough
}

// newLivePage prepares the page of --listen; nil without.
func (o *collectOptions) newLivePage() *livePage {
	if o.listen == "" {
		return nil
	}
	return &livePage{name: o.out, interval: o.interval, catalog: o.analysis.catalog}
}

// liveSlice is the width of the slices of a live page without --slice-duration. A
// run of unknown length has few slices, so that it may last a day.
func (o *collectOptions) liveSlice() time.Duration {
	if o.duration == 0 {
		return 30 * time.Second
	}
	return summary.NoiseSlice(o.duration+o.warmup, o.interval)
}

// begin binds the page to its run, before the first poll.
func (p *livePage) begin(s *collect.Session) {
	p.session = s
	p.timeline = html.NewTimeline(html.TimelineOptions{OriginNS: s.Origin().UnixNano(), Interval: p.interval,
		Targets: max(len(s.Manifest().Targets), 4), Continuity: summary.Continuity(p.catalog), Catalog: p.catalog})
}

// add draws a poll.
func (p *livePage) add(s *metric.Snapshot) error { return p.timeline.Add(s) }

// The times of the live page. One is made again after at least refreshEvery, and
// so seldom that making it takes a twentieth of the time.
const (
	refreshEvery = 2 * time.Second
	refreshShare = 20
)

// report returns the page of the run so far.
func (p *livePage) report() ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.page != nil && time.Now().Before(p.until) {
		return p.page, nil
	}
	started := time.Now()
	result, err := p.session.Result()
	if err != nil {
		return nil, err
	}
	if p.session.Behind() {
		result.Warnings = append(result.Warnings, metric.Warning{Code: "live_page_behind",
			Text: "this page ends where the analysis could no longer follow the recording; the recording itself is whole"})
	}
	var out bytes.Buffer
	if err := html.Write(&out, []html.Input{{Name: p.name, Run: result, Timeline: p.timeline, Open: true}},
		html.Options{Generated: time.Now(), Refresh: refreshEvery}); err != nil {
		return nil, fmt.Errorf("make live page: %w", err)
	}
	hold := max(refreshEvery/2, refreshShare*time.Since(started))
	p.page, p.until = out.Bytes(), time.Now().Add(hold)
	return p.page, nil
}

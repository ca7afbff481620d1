package events

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/scrapestat/scrapestat/metric"
)

// maxServerBytes is how much memory records of servers may take that wait for the disk; then they are dropped and
// counted.
const maxServerBytes = 64 << 20

// serverSize is about the memory of a record without its texts.
const serverSize = 320

// serverQueue is what servers told and is not written yet.
type serverQueue struct {
	mu     sync.Mutex
	wait   []metric.ServerRequest
	part   []metric.ServerRequest // that is being written, or may have been
	bytes  int64                  // of both
	feeds  []*ServerFeed
	closed bool
}

// ServerFeed takes the records of one source of a server's side.
type ServerFeed struct {
	r       *Recorder
	s       metric.ServerSource
	changed bool // its counts, since they were written
}

// Feed begins a source of records of servers. Its Record may be called by any goroutine, until Close of the Recorder.
func (r *Recorder) Feed(ctx context.Context, s metric.ServerSource) (*ServerFeed, error) {
	r.wmu.Lock()
	id, err := r.w.AddSource(ctx, s)
	r.wmu.Unlock()
	if err != nil {
		return nil, err
	}
	f := &ServerFeed{r: r, s: s}
	f.s.ID = id
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	r.server.feeds = append(r.server.feeds, f)
	return f, nil
}

// Record takes a copy of a record. It never waits for the disk: a record is dropped and counted while too many wait.
func (f *ServerFeed) Record(q *metric.ServerRequest) {
	s := &f.r.server
	s.mu.Lock()
	f.changed = true
	size := sizeOf(q)
	if s.closed || s.bytes+size > maxServerBytes {
		f.s.Dropped++
		s.mu.Unlock()
		return
	}
	s.bytes += size
	s.wait = append(s.wait, *q)
	s.wait[len(s.wait)-1].Source = f.s.ID
	n := len(s.wait)
	s.mu.Unlock()
	if n == commitEvents {
		f.r.Flush()
	}
}

// Counted takes what the reader of the source has counted so far: what was bad and what was something else.
func (f *ServerFeed) Counted(c metric.ServerCounts) {
	f.r.server.mu.Lock()
	defer f.r.server.mu.Unlock()
	f.s.Bad, f.s.Other, f.s.Seen, f.s.FirstBad, f.changed = c.Bad, c.Other, c.Seen, c.FirstBad, true
}

// Source is the source as it is now. Records are those that were written.
func (f *ServerFeed) Source() metric.ServerSource {
	f.r.server.mu.Lock()
	defer f.r.server.mu.Unlock()
	return f.s
}

func sizeOf(q *metric.ServerRequest) int64 {
	return int64(serverSize + len(q.ID) + len(q.Alt) + len(q.Trace) + len(q.Finish) + len(q.Status))
}

// writeServer commits records, some at a time. wmu is held.
func (r *Recorder) writeServer(ctx context.Context) error {
	s := &r.server
	for {
		part, sources := s.next()
		if len(part) == 0 && len(sources) == 0 {
			return nil
		}
		if err := r.w.WriteServer(ctx, part, sources); err != nil {
			return fmt.Errorf("write records of servers: %w", err)
		}
		s.wrote(sources)
	}
}

// next takes the oldest records, or those of an attempt that failed, and the sources whose counts have changed.
func (s *serverQueue) next() ([]metric.ServerRequest, []metric.ServerSource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.part) == 0 {
		n := min(len(s.wait), commitEvents)
		s.part, s.wait = s.wait[:n:n], s.wait[n:]
		for i := range s.part {
			f := s.feed(s.part[i].Source)
			f.s.Records++
			f.changed = true
		}
	}
	var sources []metric.ServerSource
	for _, f := range s.feeds {
		if f.changed {
			sources = append(sources, f.s)
		}
	}
	return s.part, sources
}

func (s *serverQueue) feed(id int) *ServerFeed {
	return s.feeds[slices.IndexFunc(s.feeds, func(f *ServerFeed) bool { return f.s.ID == id })]
}

// wrote forgets what was written, and keeps in mind what has changed since.
func (s *serverQueue) wrote(sources []metric.ServerSource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.part {
		s.bytes -= sizeOf(&s.part[i])
	}
	s.part = nil
	if len(s.wait) == 0 {
		s.wait = nil
	}
	for _, x := range sources {
		f := s.feed(x.ID)
		f.changed = f.s != x
	}
}

// shut takes no more records.
func (s *serverQueue) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// waiting is how many records are not written.
func (s *serverQueue) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.part) + len(s.wait)
}

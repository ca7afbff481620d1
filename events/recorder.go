package events

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// RecorderOptions adjusts a Recorder. The zero value is sound.
type RecorderOptions struct {
	// Source names who tells the events, in the recording; "recorder" if empty.
	Source string
	// MaxBytes is how much memory may wait for the disk, also while writing fails, 256 MiB if 0.
	MaxBytes int64
	// Pending counts what waits, where others are to see it; it must be nobody else's to change.
	Pending *atomic.Int64
	// Block makes Record wait while MaxBytes are in use. Otherwise the oldest events that wait are dropped and counted.
	Block bool
	// Create is what a new run is made with where the directory holds none; nil refuses that.
	Create *rundb.Meta
}

// A transaction is begun when this many events wait, when this much time has passed, or at once for an event that must
// not be lost: an error, the end.
const (
	commitEvents = 1000
	commitEvery  = 100 * time.Millisecond
)

// Writing that fails is tried again, later and later, up to mostPause; Close does so until nothing could be written
// for endPatience.
const (
	mostPause   = 5 * time.Second
	endPatience = 5 * time.Second
)

// maxData is the largest Data that is kept of an event.
const maxData = 16 << 20

// entrySize is about the memory of an event without its texts.
const entrySize = 128

// shards is how many goroutines may call Record without waiting for each other, and segmentLen how many events are
// allocated at a time.
const (
	shards     = 16
	segmentLen = 256
)

// Recorder writes events into a run while it happens, from any number of goroutines. Record appends to memory; one
// goroutine writes.
//
//	rec, err := events.NewRecorder(ctx, dir, events.RecorderOptions{})
//	rec.Record(metric.Event{Sample: id, Type: events.SampleIssued, AtNS: rec.Now()})
//	pending, err := rec.Close(ctx)
//
// Events are in the file in an order that agrees with that of Record: one that was told before another one is before
// it. When a process is killed, those of the last 100 ms are lost. While writing fails they are held, up to MaxBytes.
type Recorder struct {
	w      *rundb.EventWriter
	wmu    sync.Mutex // of w and anchors
	o      RecorderOptions
	origin time.Time
	seed   maphash.Seed
	wake   chan struct{}
	stop   chan struct{} // closed by Close
	done   chan struct{} // the writer goroutine has ended
	cancel context.CancelFunc
	once   sync.Once

	shard [shards]shard
	seq   atomic.Int64  // events accepted
	bytes *atomic.Int64 // of events that wait or are being written

	written, shed, refused, late, encodeErrors, maxQueue atomic.Int64 // shed were accepted, refused were not

	hmu   sync.Mutex // of held and doubt; before those of the shards
	held  []entry    // out of the shards and not being written, the oldest first
	doubt []entry    // before held: may be in the file already, and must not be dropped therefore
	moved bool       // of the writer goroutine: since something was written last, the file was removed

	mu   sync.Mutex
	room *sync.Cond // bytes fell, or the recorder was closed
	free [][]entry  // segments to use again
	err  error      // the first that was not mended

	anchors []rundb.Clock // that are not written yet

	server serverQueue
}

type entry struct {
	seq  int64
	size int64
	metric.Event
}

// shard is a list of segments of which the last one is being filled. It is as large as two cache lines, so that shards
// do not disturb each other.
type shard struct {
	mu     sync.Mutex
	closed bool
	full   [][]entry
	last   []entry
	_      [64]byte
}

// NewRecorder opens the run in the existing directory dir for events, also one that another process records into. It
// fails with [rundb.ErrEventWriter] when somebody else does so already. The caller must Close the Recorder.
func NewRecorder(ctx context.Context, dir string, o RecorderOptions) (*Recorder, error) {
	o.Source = cmp.Or(o.Source, "recorder")
	o.MaxBytes = cmp.Or(max(o.MaxBytes, 0), 256<<20)
	w, err := rundb.OpenEvents(ctx, dir, rundb.EventWriterOptions{Source: o.Source, Create: o.Create})
	if err != nil {
		return nil, err
	}
	r := &Recorder{w: w, o: o, origin: time.Now(), seed: maphash.MakeSeed(), wake: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{}), bytes: cmp.Or(o.Pending, new(atomic.Int64))}
	r.room = sync.NewCond(&r.mu)
	if err := w.Anchor(ctx, rundb.Clock{Source: o.Source, UnixNS: r.origin.UnixNano()}); err != nil {
		return nil, errors.Join(err, w.Close(ctx))
	}
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(r.done)
		r.run(ctx)
	}()
	return r, nil
}

// Now returns the instant on the axis of the recorder, nanoseconds since 1970: that of its start plus the monotonic
// clock, so that a step of the wall clock does not show. The start is in the table clock, as 0 of the recorder's clock.
func (r *Recorder) Now() int64 { return r.At(time.Now()) }

// At returns an instant that time.Now gave on the axis of the recorder.
func (r *Recorder) At(t time.Time) int64 { return r.origin.UnixNano() + int64(t.Sub(r.origin)) }

// Anchor records that a clock of a source showed monoNS at unixNS. It waits for the disk, is held where writing fails,
// and must not be called after Close.
func (r *Recorder) Anchor(ctx context.Context, c rundb.Clock) {
	r.wmu.Lock()
	defer r.wmu.Unlock()
	r.anchors = append(r.anchors, c)
	_ = r.writeAnchors(ctx) // it is tried again with the next events
}

// writeAnchors writes those that wait. wmu is held.
func (r *Recorder) writeAnchors(ctx context.Context) error {
	for len(r.anchors) > 0 {
		if err := r.w.Anchor(ctx, r.anchors[0]); err != nil {
			return err
		}
		r.anchors = r.anchors[1:]
	}
	return nil
}

// Record takes an event; its Data must not be changed any more. It never waits for the disk unless Block is set. An
// event without a type is refused, Data that is no JSON or larger than 16 MiB is left out; both are counted as encode
// errors. After Close has begun, events are late: counted and not recorded.
func (r *Recorder) Record(ev metric.Event) {
	if ev.Type == "" {
		r.encodeErrors.Add(1)
		return
	}
	if len(ev.Data) > maxData {
		r.encodeErrors.Add(1)
		ev.Data = nil
	}
	size := int64(entrySize + len(ev.Sample) + len(ev.Type) + len(ev.Conversation) + len(ev.Data))
	if !r.reserve(size) {
		r.refused.Add(1)
		return
	}
	s := &r.shard[maphash.String(r.seed, ev.Sample)%shards]
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		r.late.Add(1)
		r.release(size)
		return
	}
	if len(s.last) == cap(s.last) {
		if s.last != nil {
			s.full = append(s.full, s.last)
		}
		s.last = r.segment()
	}
	n := r.seq.Add(1)
	s.last = append(s.last, entry{n, size, ev})
	s.mu.Unlock()
	if n%commitEvents == 0 || urgent(ev.Type) {
		r.Flush()
	}
}

func urgent(eventType string) bool {
	return eventType == SessionEnded || strings.HasPrefix(eventType, "error.")
}

// Flush begins a transaction now. It does not wait for it.
func (r *Recorder) Flush() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// reserve takes memory, that of the oldest events if need be; it reports whether there was some.
func (r *Recorder) reserve(size int64) bool {
	if r.bytes.Add(size) <= r.o.MaxBytes || !r.o.Block && r.dropOldest() {
		return true
	}
	r.bytes.Add(-size)
	r.Flush()
	if !r.o.Block {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		select {
		case <-r.stop:
			return r.bytes.Add(size) > 0 // it will be found to be late
		default:
		}
		if now := r.bytes.Add(size); now <= r.o.MaxBytes || now == size {
			return true
		}
		r.bytes.Add(-size)
		r.room.Wait()
	}
}

// dropOldest drops events that wait, the oldest first, until what waits is within its limit; it reports whether it is.
func (r *Recorder) dropOldest() bool {
	r.hmu.Lock()
	defer r.hmu.Unlock()
	for r.bytes.Load() > r.o.MaxBytes {
		if len(r.held) == 0 {
			if r.held = r.cut(r.held, false); len(r.held) == 0 {
				return false
			}
		}
		r.bytes.Add(-r.held[0].size)
		r.held[0] = entry{}
		r.held = r.held[1:]
		r.shed.Add(1)
	}
	return true
}

func (r *Recorder) release(size int64) {
	r.bytes.Add(-size)
	if r.o.Block {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.room.Broadcast()
	}
}

// segment returns an empty segment.
func (r *Recorder) segment() []entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.free); n > 0 {
		s := r.free[n-1]
		r.free = r.free[:n-1]
		return s
	}
	return make([]entry, 0, segmentLen)
}

// run is the writer goroutine.
func (r *Recorder) run(ctx context.Context) {
	tick := time.NewTicker(commitEvery)
	defer tick.Stop()
	var next, wrote time.Time // of the next attempt; since when nothing was written, once stopped
	var pause time.Duration
	for stop, stopped := r.stop, false; ; {
		select {
		case <-tick.C:
		case <-r.wake:
		case <-stop:
			stop, stopped, next, wrote = nil, true, time.Time{}, time.Now()
			r.server.shut()
		}
		r.hmu.Lock()
		r.held = r.cut(r.held, stopped)
		r.hmu.Unlock()
		if time.Now().Before(next) && ctx.Err() == nil {
			continue
		}
		before := r.written.Load()
		err := r.write(ctx)
		if r.written.Load() > before {
			wrote = time.Now()
		}
		if err == nil {
			pause, next = 0, time.Time{}
		} else {
			pause = min(max(2*pause, commitEvery), mostPause)
			next = time.Now().Add(pause)
		}
		if stopped && (err == nil || ctx.Err() != nil || time.Since(wrote) >= endPatience) {
			r.fail(err)
			return
		}
	}
}

// cut adds what waits to the batch, in order. All shards are held for the moment: an event that is taken has none
// before it that is not. last closes the shards. hmu is held.
func (r *Recorder) cut(batch []entry, last bool) []entry {
	var segments [][]entry
	from := len(batch)
	for i := range r.shard {
		r.shard[i].mu.Lock()
	}
	for i := range r.shard {
		s := &r.shard[i]
		segments = append(segments, s.full...)
		if len(s.last) > 0 {
			segments = append(segments, s.last)
			s.last = nil
		}
		clear(s.full)
		s.full, s.closed = s.full[:0], s.closed || last
	}
	for i := range r.shard {
		r.shard[i].mu.Unlock()
	}
	for _, s := range segments {
		batch = append(batch, s...)
		clear(s)
	}
	r.mu.Lock()
	for _, s := range segments {
		if len(r.free) < 4*shards {
			r.free = append(r.free, s[:0])
		}
	}
	r.mu.Unlock()
	slices.SortFunc(batch[from:], func(a, b entry) int { return cmp.Compare(a.seq, b.seq) })
	r.maxQueue.Store(max(r.maxQueue.Load(), int64(len(batch))))
	return batch
}

// write commits events, some at a time, so that what records scrapes into the same file gets its turn.
func (r *Recorder) write(ctx context.Context) error {
	r.wmu.Lock()
	defer r.wmu.Unlock()
	if err := r.writeAnchors(ctx); err != nil {
		return err
	}
	part := r.part()
	if len(part) == 0 {
		_ = r.w.Idle(ctx) // it is tried again in time
	}
	for events := make([]metric.Event, 0, len(part)); len(part) > 0; part = r.part() {
		events = events[:0]
		size := int64(0)
		for i := range part {
			e := &part[i]
			size += e.size
			if len(e.Data) > 0 && !json.Valid(e.Data) {
				r.encodeErrors.Add(1)
				e.Data = nil
			}
			events = append(events, e.Event)
		}
		stats := r.Stats()
		stats.Recorded += int64(len(part))
		if err := r.w.Write(ctx, events, stats); err != nil {
			r.putBack(part, errors.Is(err, rundb.ErrMoved))
			return err
		}
		r.moved = false
		r.written.Add(int64(len(part)))
		r.release(size)
		clear(part)
	}
	return r.writeServer(ctx)
}

// part takes the oldest events out of those that are held, so that what is being written leaves memory for others.
func (r *Recorder) part() (part []entry) {
	r.hmu.Lock()
	defer r.hmu.Unlock()
	if part, r.doubt = r.doubt, nil; part == nil {
		n := 0
		for size := int64(0); n < min(len(r.held), commitEvents) && (n == 0 || size <= r.o.MaxBytes/4); n++ {
			size += r.held[n].size
		}
		part, r.held = r.held[:n:n], r.held[n:]
	}
	return part
}

// putBack holds what part took and could not be written, or may have been if the file has moved.
func (r *Recorder) putBack(part []entry, moved bool) {
	r.hmu.Lock()
	defer r.hmu.Unlock()
	if r.moved = r.moved || moved; r.moved {
		r.doubt = part
	} else {
		r.held = slices.Insert(r.held, 0, part...)
	}
}

func (r *Recorder) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
}

func (r *Recorder) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Stats returns how recording goes: Recorded are the events in the file.
func (r *Recorder) Stats() rundb.EventStats {
	return rundb.EventStats{Source: r.o.Source, Recorded: r.written.Load(), Dropped: r.shed.Load() + r.refused.Load(),
		Late:         r.late.Load(),
		EncodeErrors: r.encodeErrors.Load(), MaxQueue: r.maxQueue.Load()}
}

// Close writes what waits, until ctx ends, and closes the run. It returns how many events are not in the file that
// Record took, which is not 0 only with an error. After the first call it returns the same again.
func (r *Recorder) Close(ctx context.Context) (pending int, err error) {
	r.once.Do(func() {
		close(r.stop)
		r.mu.Lock()
		r.room.Broadcast()
		r.mu.Unlock()
		select {
		case <-r.done:
		case <-ctx.Done():
			r.cancel()
			<-r.done
		}
		r.cancel()
		r.fail(r.end(ctx))
	})
	<-r.done
	pending = r.waiting()
	if err = r.failed(); err != nil {
		return pending, fmt.Errorf("close recorder with %d events not written: %w", pending, err)
	}
	return 0, nil
}

// waiting is how many events and records are to be written yet.
func (r *Recorder) waiting() int {
	return int(r.seq.Load()-r.written.Load()-r.shed.Load()) + r.server.waiting()
}

// end writes the last statistics and closes the file.
func (r *Recorder) end(ctx context.Context) error {
	if r.waiting() == 0 {
		ctx = context.WithoutCancel(ctx) // the deadline was for what waited
	}
	var err error
	if r.failed() == nil {
		err = r.w.Write(ctx, nil, r.Stats())
	}
	return errors.Join(err, r.w.Close(ctx))
}

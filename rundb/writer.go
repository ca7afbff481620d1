package rundb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/scrapestat/scrapestat/metric"
)

// WriterOptions adjusts a Writer. The zero value is what collect uses.
type WriterOptions struct {
	// OnMark is called once for each mark that another process set with [AddMark], from the writer's goroutine
	// and not after Close has returned. It must return quickly and must not call the Writer.
	OnMark func(metric.Mark)
	// OnCommit is called after each transaction with how long it took and its error, from the writer's
	// goroutine and not after Close has returned. It must return quickly and must not call the Writer.
	OnCommit func(time.Duration, error)
	// CommitEvery is the time between transactions, 100 ms if 0.
	CommitEvery time.Duration
	// OnFault is called when a write has failed that will be tried again, and with nil when that has worked. As
	// OnCommit is.
	OnFault func(error)
	// OnRemade is called when the file was made again, maybe with its directory. As OnCommit is.
	OnRemade func() error
	// Retry asks for writes that fail to be tried again until the end: no call returns their errors then, and
	// a recording that somebody removes is made again. It holds from the first commit on.
	Retry bool
	// MaxPending is how many bytes wait for the disk before Record blocks or, while writes fail, the samples of
	// the oldest polls are dropped, which have the outcome Unwritten then. It is 32 MiB if 0.
	MaxPending int
	// Beside is how many bytes of it are taken by what others hold until they can write; nil for none.
	Beside *atomic.Int64
	// MaxBytes is how large the file may become with bodies of answers; beyond it polls are recorded without
	// theirs, which the warning "recording_limit" counts. It is 2 GiB if 0.
	MaxBytes int64
	// BlockPolls is how many polls a block holds at most, 512 if 0: what damage to one block costs.
	BlockPolls int
	// CopyEvery is the time in which what blocks are read with is written once more, 10 minutes if 0.
	CopyEvery time.Duration
}

// Writer records one run. All methods may be called concurrently; the polls of
// one target must come in order of time.
type Writer struct {
	path   string
	o      WriterOptions
	packer *zstd.Encoder // of bodies
	wake   chan struct{} // something waits that should not wait for the tick
	done   chan struct{} // the writer goroutine has ended

	mu      sync.Mutex
	changed *sync.Cond // committed, err or closed changed
	targets []*targetState
	fifo    []*segment // open segments, oldest first
	free    []*segment
	unread  int     // bytes in open segments
	room    int     // what they hold when they are full
	delta   []int64 // scratch of the encoders, which take turns
	pending batch
	spare   []byte
	taken   int64 // batches the writer goroutine has taken
	written int64 // batches committed
	lost    int   // polls that were dropped
	proven  bool  // something was committed
	closed  bool
	traffic string        // for meta
	abort   chan struct{} // closed when Close has no time left
	err     error         // the write error that ended the recording
	fault   error         // of the last write, which is tried again; nil when it worked

	// The rest belongs to the writer goroutine.
	held  []*batch  // taken and not committed, the oldest first
	since time.Time // when writing began to fail
	cause error     // why
	next  time.Time // when it is tried again
	pause time.Duration
}

// batch is what one transaction writes.
type batch struct {
	number       int64
	polls, lost  int  // that it brings; whose samples were dropped of them
	whole        bool // nothing is added any more, and no open segment has polls of it
	stripped     bool // has no samples any more, but those of blocks that the file has a part of
	tail         []byte
	seal         []*segment
	growth       []targetGrowth
	targets      []targetRow
	incidents    []incidentRow
	bodies       []bodyRow
	observations []observations
	exemplars    map[int64]metric.Exemplar
	marks        []metric.Mark
	warnings     []metric.Warning
	lives        []lifeRow
	bytes        int
	keep         int64 // the first tail row that is still needed
}

type targetGrowth struct {
	target           int
	before           dictSize
	metric.DictDelta // without its slots, which are encoded already
	slots            int
	packed           []byte
}

// size is about the memory of it.
func (g *targetGrowth) size() int { return len(g.packed) + 128*len(g.Series) + 128*len(g.Families) }

type targetRow struct {
	id int
	metric.Target
}

func (b *batch) empty() bool {
	return len(b.tail)+len(b.seal)+len(b.growth)+len(b.targets)+len(b.incidents)+len(b.bodies)+len(b.observations)+
		len(b.exemplars)+len(b.marks)+len(b.warnings)+len(b.lives) == 0
}

// startBytes is what a recording without polls takes, its log included.
const startBytes = 256 << 10

// Errors that callers tell apart.
var (
	// ErrClosed is returned by methods of a Writer after Close.
	ErrClosed = errors.New("recording is closed")
	// ErrExists is wrapped by the error of Create when the directory already holds a recording.
	ErrExists = errors.New("holds a recording already")
)

// Create starts a recording in the existing directory dir, as the file run.db with mode 0600. It never
// overwrites one: the error then wraps [ErrExists]. The caller must Close the Writer.
func Create(dir string, m Meta, o WriterOptions) (*Writer, error) {
	o.CommitEvery = cmp.Or(max(o.CommitEvery, 0), 100*time.Millisecond)
	o.MaxPending = cmp.Or(max(o.MaxPending, 0), 32<<20)
	o.MaxBytes = cmp.Or(max(o.MaxBytes, 0), 2<<30)
	o.BlockPolls = cmp.Or(max(o.BlockPolls, 0), 512)
	path, err := filepath.Abs(filepath.Join(dir, FileName))
	if err != nil {
		return nil, fmt.Errorf("create recording: %w", err)
	}
	packer, err := newPacker()
	if err != nil {
		return nil, fmt.Errorf("create recording: %w", err)
	}
	c, err := createFile(path, m)
	if err == nil {
		if err = c.prepare(context.Background()); err != nil {
			err = errors.Join(err, c.release(), os.Remove(path))
		}
	}
	switch {
	case errors.Is(err, ErrExists):
		return nil, fmt.Errorf("create recording %s: %w", path, err)
	case err != nil:
		return nil, fmt.Errorf("create recording %s: %w (it takes %d bytes to begin with; %s)", path, err, startBytes,
			remedy(err))
	}
	c.remade = o.OnRemade
	c.maxBytes, c.copies.every = o.MaxBytes, cmp.Or(max(o.CopyEvery, 0), 10*time.Minute)
	w := &Writer{path: path, o: o, packer: packer, wake: make(chan struct{}, 1), done: make(chan struct{}),
		abort: make(chan struct{})}
	w.changed = sync.NewCond(&w.mu)
	go func() {
		defer close(w.done)
		w.run(c)
	}()
	return w, nil
}

// AddTarget adds a target and returns its index, counting from 0. Targets may be added while others are recorded.
func (w *Writer) AddTarget(t metric.Target) (id int, err error) {
	err = w.queue(func(b *batch) error {
		id = len(w.targets)
		w.targets = append(w.targets, &targetState{})
		b.targets = append(b.targets, targetRow{id, t})
		return nil
	})
	return id, err
}

// Mark records a mark of this process; OnMark is not called for it.
func (w *Writer) Mark(m metric.Mark) error {
	return w.queue(func(b *batch) error { b.marks = append(b.marks, m); return nil })
}

// Warn records a warning about the run as a whole.
func (w *Writer) Warn(x metric.Warning) error {
	return w.queue(func(b *batch) error { b.warnings = append(b.warnings, x); return nil })
}

// SetTraffic sets Meta.Traffic of what is recorded, which Close writes; "" where polls were lost.
func (w *Writer) SetTraffic(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.traffic = text
}

// foundTraffic is what SetTraffic set, if all polls are in the recording.
func (w *Writer) foundTraffic() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost > 0 {
		return ""
	}
	return w.traffic
}

// queue adds to the pending batch.
func (w *Writer) queue(add func(*batch) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return err
	}
	return add(&w.pending)
}

func (w *Writer) usable() error {
	if w.err != nil {
		return w.err
	}
	if w.closed {
		return fmt.Errorf("%s: %w", w.path, ErrClosed)
	}
	return nil
}

// Record encodes a poll; the snapshot is the caller's again when it returns. The poll is in the file at the
// latest CommitEvery later. While the disk cannot follow, Record blocks. After a write error every call returns
// that error, unless it is tried again. A snapshot that breaks the contract of package metric is refused and
// changes nothing.
func (w *Writer) Record(s *metric.Snapshot) error {
	body := w.packBody(s)
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.err == nil && !w.closed && w.pending.bytes >= w.o.MaxPending {
		w.changed.Wait()
	}
	if err := w.usable(); err != nil {
		return err
	}
	if s.Target < 0 || s.Target >= len(w.targets) {
		return fmt.Errorf("record poll: target %d of %d", s.Target, len(w.targets))
	}
	t := w.targets[s.Target]
	if err := t.check(s); err != nil {
		return fmt.Errorf("record poll %d of target %d: %w", s.Seq, s.Target, err)
	}
	g := w.segment(t, s.Target)
	w.note(t, s)
	w.noteExemplars(s)
	incident := w.noteIncident(t, s, body)
	w.noteObservations(t, s)
	before := g.size()
	t.enc.delta = w.delta
	from := t.append(g, s, incident)
	w.delta, t.enc.delta = t.enc.delta, nil
	grownBy := g.size() - before
	room := g.limit(len(w.targets))
	w.room += room - g.room
	g.room = room
	w.unread += grownBy
	was := len(w.pending.tail)
	w.pending.tail = g.appendTail(w.pending.tail, t.polls-1, from)
	w.pending.bytes += len(w.pending.tail) - was
	w.pending.polls++
	if g.polls >= w.o.BlockPolls || g.size() >= room {
		w.seal(g)
	}
	w.limitOpen()
	if w.pending.bytes > min(w.o.MaxPending/4, 1<<20) {
		w.nudge()
	}
	return nil
}

// check refuses a snapshot that cannot be stored.
func (t *targetState) check(s *metric.Snapshot) error {
	g, e := &s.DictDelta, &t.enc
	if err := g.Check(e.nFamily, e.nSeries, len(e.bits)); err != nil {
		return err
	}
	series := e.nSeries + len(g.Series)
	for i := range s.Observations {
		o := &s.Observations[i]
		if o.Series < 0 || o.Series >= series || o.Value-o.Value != 0 {
			return fmt.Errorf("observation of series %d of %d with the value %v", o.Series, series, o.Value)
		}
	}
	if t.polls >= maxPoll {
		return errors.New("too many polls")
	}
	if s.Outcome >= metric.Outcomes || s.Kind > metric.Final {
		return fmt.Errorf("outcome %d, kind %d", s.Outcome, s.Kind)
	}
	if err := checkExemplars(s, len(e.bits)+len(g.Slots)); err != nil {
		return err
	}
	return s.Delta.Check(len(e.bits) + len(g.Slots))
}

// segment returns the open segment of a target.
func (w *Writer) segment(t *targetState, target int) *segment {
	if t.open != nil {
		return t.open
	}
	g := &segment{}
	if n := len(w.free); n > 0 {
		g, w.free = w.free[n-1], w.free[:n-1]
	}
	*g = segment{
		sections: sections{g.head[:0], g.op[:0], g.num[:0], g.bits[:0]},
		target:   target, first: t.polls, tail: w.taken + 1,
		dict: t.enc.size(),
	}
	t.open = g
	w.fifo = append(w.fifo, g)
	return g
}

// seal hands a segment to the writer goroutine. The target's next poll starts another one.
func (w *Writer) seal(g *segment) {
	w.fifo = slices.DeleteFunc(w.fifo, func(o *segment) bool { return o == g })
	w.targets[g.target].open = nil
	w.unread -= g.size()
	w.room -= g.room
	w.pending.seal = append(w.pending.seal, g)
}

// limitOpen closes the oldest segments when the open ones hold more than half of what full ones would. So
// blocks are sealed one after the other and not those of all targets at once, and the tail stays short.
func (w *Writer) limitOpen() {
	for len(w.fifo) > 1 && w.unread > (maxSegmentBytes+w.room)/2 {
		w.seal(w.fifo[0])
	}
}

// note queues what the poll adds to the dictionary.
func (w *Writer) note(t *targetState, s *metric.Snapshot) {
	if s.DictDelta.Empty() {
		return
	}
	g := targetGrowth{target: s.Target, before: t.enc.size()}
	g.Families = slices.Clone(s.DictDelta.Families)
	g.Series = slices.Clone(s.DictDelta.Series)
	g.slots, g.packed = len(s.DictDelta.Slots), appendSlots(make([]byte, 0, 24*len(s.DictDelta.Slots)), s.DictDelta.Slots)
	w.pending.growth = append(w.pending.growth, g)
	w.pending.bytes += g.size()
	t.enc.grow(&s.DictDelta)
}

// nudge wakes the writer goroutine before its tick.
func (w *Writer) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// endPatience is how long Flush and Close wait, since something was written, for writes that fail.
const endPatience = 5 * time.Second

// Flush waits until everything recorded so far is committed, until ctx is done, or for five seconds while
// writes fail; then it returns why.
func (w *Writer) Flush(ctx context.Context) error {
	defer context.AfterFunc(ctx, w.changed.Broadcast)()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return err
	}
	want, began, written := w.taken+1, time.Now(), w.written
	w.nudge()
	for w.err == nil && w.written < want && ctx.Err() == nil && (w.fault == nil || time.Since(began) < endPatience) {
		if w.written > written {
			began, written = time.Now(), w.written
		}
		w.changed.Wait()
	}
	if w.err != nil || w.written >= want {
		return w.err
	}
	return cmp.Or(w.fault, ctx.Err())
}

// Close commits the rest, turns the file into one that needs no companions and closes it. It returns the first
// write error of the run, also when called again. Writes that fail are tried again for five seconds, or until
// ctx is done; the error tells what is lost then.
func (w *Writer) Close(ctx context.Context) error {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		defer context.AfterFunc(ctx, func() { close(w.abort) })()
	}
	w.changed.Broadcast()
	w.nudge()
	w.mu.Unlock()
	<-w.done
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Lost is how many recorded polls were dropped, as writing failed for too long.
func (w *Writer) Lost() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

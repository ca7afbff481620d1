package rundb

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/scrapestat/scrapestat/metric"
)

// maxSection bounds a section of a block when it is decompressed: more than
// the writer makes of one, with the largest targets it is meant for.
const maxSection = 256 << 20

// unwrittenText is the Err of a poll whose samples were dropped.
const unwrittenText = "writing failed for longer than the polls that wait had room (--max-pending)"

// errStop ends the walk over a target because the consumer has enough.
var errStop = errors.New("stop")

// Snapshots yields the polls of a target in the order they were recorded. A snapshot is valid until the next
// one; Body is nil. An error ends the sequence: the file could not be read, or ctx was cancelled.
//
// Damage is no error: the polls of a damaged block are missing, the next snapshot carries a warning
// "recording_damaged" and lists all its slots, and [Run.Warnings] has the warning too.
//
// Memory is that of one block and one dictionary. Several targets may be read concurrently.
func (r *Run) Snapshots(ctx context.Context, target int) iter.Seq2[*metric.Snapshot, error] {
	return r.SnapshotsFrom(ctx, target, 0)
}

// SnapshotsFrom is Snapshots without blocks of which all polls have a lower number than from. The first snapshot then
// lists all its slots, and brings what the dictionary has up to it.
func (r *Run) SnapshotsFrom(ctx context.Context, target int, from uint64) iter.Seq2[*metric.Snapshot, error] {
	return func(yield func(*metric.Snapshot, error) bool) {
		if target < 0 || target >= len(r.targets) {
			yield(nil, fmt.Errorf("read recording %s: target %d of %d", r.path, target, len(r.targets)))
			return
		}
		w := &walk{r: r, target: target, yield: yield, fresh: true, from: int(min(from, maxPoll))}
		w.s.Target = target
		err := w.all(ctx)
		if err == nil {
			w.end()
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(nil, fmt.Errorf("read recording %s: %w", r.path, mendable(err)))
		}
	}
}

// Span returns the times of the first and the last poll of a target, 0 and 0 without any. It reads no block.
func (r *Run) Span(ctx context.Context, target int) (firstNS, lastNS int64, err error) {
	var first, last sql.NullInt64
	err = r.db.QueryRowContext(ctx, "SELECT min(from_ns), max(to_ns) FROM block WHERE id BETWEEN ? AND ?",
		key(target, 0), key(target, maxPoll)).Scan(&first, &last)
	if err != nil {
		return 0, 0, fmt.Errorf("read recording %s: %w", r.path, mendable(err))
	}
	firstNS, lastNS = first.Int64, last.Int64
	if n := len(r.tail[target]); n > 0 { // they are in no block yet
		for s, err := range r.SnapshotsFrom(ctx, target, uint64(r.tail[target][0].poll)) {
			if err != nil {
				return 0, 0, err
			}
			if firstNS == 0 {
				firstNS = s.AtNS()
			}
			lastNS = max(lastNS, s.AtNS())
		}
	}
	return firstNS, lastNS, nil
}

// end tells of the polls at the end of the target that are known to have been recorded.
func (w *walk) end() {
	total, r := w.next, w.r
	if w.target < len(r.meta.Polls) {
		total = max(total, r.meta.Polls[w.target])
	}
	if r.log != nil {
		total = max(total, r.log.polls[w.target])
	}
	for _, rec := range r.tail[w.target] {
		total = max(total, rec.poll+1)
	}
	if total > w.next {
		from := max(w.s.AtNS(), r.meta.OriginNS)
		w.damage("polls %d to %d are missing, of the time from %s on for about %v", w.next, total-1,
			time.Unix(0, from).UTC().Format(time.RFC3339Nano), time.Duration(total-w.next)*r.meta.Interval)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost[w.target] = total - w.got
}

// walk is one pass over a target.
type walk struct {
	r      *Run
	target int
	yield  func(*metric.Snapshot, error) bool
	z      *zstd.Decoder

	dec   decoder
	poll  pollState
	from  int  // polls before it are not wanted
	next  int  // number of the next poll
	got   int  // polls yielded
	fresh bool // the values before the next poll are unknown
	lost  []metric.Warning

	s      metric.Snapshot
	growth metric.DictDelta // what the next snapshot brings
	buf    [4][]byte
}

// blockRow is a row of table block.
type blockRow struct {
	first, polls int
	dict         dictSize // before it
	packed       [4][]byte
}

func (w *walk) all(ctx context.Context) error {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(maxSection), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return err
	}
	defer z.Close()
	w.z = z
	at := key(w.target, 0)
	if w.from > 0 {
		var id sql.NullInt64
		if err := w.r.db.QueryRowContext(ctx, "SELECT max(id) FROM block WHERE id BETWEEN ? AND ?", at,
			min(key(w.target, w.from), w.r.last[w.target])).Scan(&id); err != nil {
			return err
		}
		if id.Valid {
			at, w.next = id.Int64, int(id.Int64&maxPoll)
		}
		w.got = w.next
	}
	for at <= w.r.last[w.target] {
		b, found := blockRow{}, false
		var id, stored, from, to int64
		err := w.r.each(ctx, nil, "block", "WHERE id >= ? AND id <= ? ORDER BY id LIMIT 1",
			[]any{at, w.r.last[w.target]}, func(scan func(...any) error) error {
				found = true
				return scan(&id, &b.polls, &stored, &from, &to, &b.dict.families, &b.dict.series, &b.dict.slots,
					&b.packed[0], &b.packed[1], &b.packed[2], &b.packed[3])
			})
		b.first = int(id & maxPoll)
		switch {
		case err == nil && !found:
			return w.tail(ctx)
		case isDamage(err):
			w.damage("block of polls from %d on: %v", b.first, err)
			at = id + 1
			continue
		case err == nil:
			err = w.block(ctx, &b)
		}
		if err != nil {
			return err
		}
		at = key(w.target, max(w.next, b.first+1))
	}
	return w.tail(ctx)
}

// block yields the polls of one block.
func (w *walk) block(ctx context.Context, b *blockRow) error {
	if b.first < w.next || b.polls < 1 || b.polls > maxPoll-b.first {
		w.damage("block of polls %d to %d lies across the one before", b.first, b.first+b.polls-1)
		return nil
	}
	if b.first > w.next {
		w.damage("polls %d to %d are missing", w.next, b.first-1)
	}
	w.next, w.poll = b.first, pollState{}
	c, err := w.unpack(b)
	if err == nil {
		err = w.catchUp(ctx, b.dict)
	}
	if err == nil {
		for range b.polls {
			if err = w.one(ctx, c); err != nil {
				break
			}
		}
		if err == nil && c.size() > 0 {
			err = damageError{fmt.Errorf("%d bytes are left over", c.size())}
		}
	}
	end := b.first + b.polls
	if err != nil && isDamage(err) {
		w.damage("block of polls %d to %d: %v; polls from %d are lost", b.first, end-1, err, w.next)
		err = nil
	}
	w.next = end
	return err
}

// damageError is what reading meets in damaged data; other errors end reading.
type damageError struct{ error }

func (e damageError) Unwrap() error { return e.error }

func isDamage(err error) bool { return errors.As(err, &damageError{}) }

func (w *walk) damage(format string, args ...any) {
	x := w.r.damaged("target %d: "+format, append([]any{w.target}, args...)...)
	w.lost = append(w.lost, x)
	w.fresh = true
}

// unpack decompresses the sections of a block.
func (w *walk) unpack(b *blockRow) (*cursor, error) {
	for i, p := range b.packed {
		w.buf[i] = w.buf[i][:0]
		if len(p) == 0 {
			continue
		}
		var err error
		if w.buf[i], err = w.decompress(w.buf[i], p); err != nil {
			return nil, err
		}
	}
	return &cursor{sections: sections{w.buf[0], w.buf[1], w.buf[2], w.buf[3]}}, nil
}

// decompress appends the content of a zstd frame to dst, which grows by what the
// frame declares, but not by more than its bytes can hold: a block takes 4 bytes
// and gives 128 KiB at most. The writer's frames that declare nothing are short.
func (w *walk) decompress(dst, packed []byte) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(packed); err != nil {
		return nil, damageError{err}
	}
	size, most := uint64(256), min(maxSection, (uint64(len(packed))/4+1)<<17)
	if h.HasFCS {
		size = h.FrameContentSize
	}
	if size > most {
		return nil, damageError{fmt.Errorf("section of %d bytes, declared by %d", size, len(packed))}
	}
	dst = slices.Grow(dst, int(size))
	dst, err := w.z.DecodeAll(packed, dst)
	if err != nil {
		return nil, damageError{err}
	}
	return dst, nil
}

// catchUp loads what of the dictionary came with polls that were lost.
func (w *walk) catchUp(ctx context.Context, want dictSize) error {
	have := w.dec.size()
	g := dictSize{want.families - have.families, want.series - have.series, want.slots - have.slots}
	if min(g.families, g.series, g.slots) < 0 {
		return damageError{errors.New("the dictionary shrinks")}
	}
	return w.grow(ctx, g)
}

// tail yields the polls that are in no block yet. They are the beginning of one
// block, so what follows a fault among them cannot be read.
func (w *walk) tail(ctx context.Context) error {
	started := false
	for _, rec := range w.r.tail[w.target] {
		if rec.poll < w.next {
			continue
		}
		if rec.poll > w.next {
			w.damage("polls %d to %d are missing", w.next, rec.poll-1)
			w.next = rec.poll
		}
		if !started && rec.before > 0 || started && len(w.lost) > 0 {
			w.damage("polls from %d on cannot be read without those before", rec.poll)
			return nil
		}
		if err := w.tailRecord(ctx, &rec); err != nil {
			if !isDamage(err) {
				return err
			}
			w.damage("polls from %d on: %v", rec.poll, err)
			return nil
		}
		started = true
	}
	return nil
}

func (w *walk) tailRecord(ctx context.Context, rec *tailRecord) error {
	if rec.before == 0 {
		w.poll = pollState{}
		if err := w.catchUp(ctx, rec.dict); err != nil {
			return err
		}
	}
	c := &cursor{sections: rec.sections}
	if err := w.one(ctx, c); err != nil {
		return err
	}
	if c.size() > 0 {
		return damageError{fmt.Errorf("%d bytes are left over", c.size())}
	}
	return nil
}

// one reads and yields one poll.
func (w *walk) one(ctx context.Context, c *cursor) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := &w.s
	flags, g, err := w.poll.readPoll(c, s)
	if err != nil {
		return damageError{err}
	}
	if flags&flagGrowth != 0 {
		if err := w.grow(ctx, g); err != nil {
			return err
		}
	}
	s.Delta.Full, s.Delta.Slots, s.Delta.Bits = false, s.Delta.Slots[:0], s.Delta.Bits[:0]
	if s.Outcome.Stored() {
		if w.fresh && flags&flagKey == 0 {
			return damageError{errors.New("needs the poll before")}
		}
		if err := w.dec.readSamples(c, flags, w.fresh, &s.Delta); err != nil {
			return damageError{err}
		}
		w.fresh = false
	}
	s.Err, s.Drops, s.Warnings = "", nil, nil
	if s.Outcome == metric.Unwritten {
		s.Err, w.fresh = unwrittenText, true
	}
	if flags&flagIncident != 0 {
		if err := w.incident(ctx, s); err != nil {
			return err
		}
	}
	if w.r.observed[w.target] {
		if err := w.observations(ctx, s); err != nil {
			return err
		}
	}
	s.Warnings = append(s.Warnings, w.lost...)
	s.DictDelta, w.growth, w.lost = w.growth, metric.DictDelta{}, nil
	w.next++
	w.got++
	if !w.yield(s, nil) {
		return errStop
	}
	return nil
}

// incident loads the texts of a poll.
func (w *walk) incident(ctx context.Context, s *metric.Snapshot) error {
	var drops, warnings sql.NullString
	found := false
	err := w.r.each(ctx, nil, "incident", "WHERE id = ?", []any{key(w.target, w.next)},
		func(scan func(...any) error) error {
			var id, at, status, lines int64
			var outcome string
			found = true
			return scan(&id, &at, &outcome, &status, &s.Err, &lines, &drops, &warnings)
		})
	if err == nil && !found {
		err = damageError{errors.New("its row in table incident is missing")}
	}
	if err != nil {
		return err
	}
	if drops.Valid {
		err = json.Unmarshal([]byte(drops.String), &s.Drops)
	}
	if warnings.Valid {
		err = errors.Join(err, json.Unmarshal([]byte(warnings.String), &s.Warnings))
	}
	if err != nil {
		return damageError{err}
	}
	return nil
}

package rundb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// run is the writer goroutine: on every tick it commits what is pending and tells
// of foreign marks. It ends after Close.
func (w *Writer) run(c *conn) {
	tick := time.NewTicker(w.o.CommitEvery)
	defer tick.Stop()
	for closing := false; !closing; {
		select {
		case <-tick.C:
		case <-w.wake:
		}
		if closing = w.take(); !closing && !time.Now().Before(w.next) {
			w.tried(w.commitHeld(c))
		}
	}
	w.end(c)
}

// take moves the pending batch to those that are held. While writing fails they
// join, up to a size; one of that size holds its polls alone, so that it can be
// written, or dropped, by itself.
func (w *Writer) take() (closing bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.changed.Broadcast()
	b := w.pending
	w.pending = batch{tail: w.spare[:0]}
	w.taken++
	b.number, w.spare = w.taken, nil
	if w.err != nil {
		return w.closed
	}
	last := &b
	if n := len(w.held); n > 0 && !w.held[n-1].whole {
		last = w.held[n-1]
		last.join(&b)
		w.spare = b.tail
	} else {
		w.held = append(w.held, last)
	}
	last.whole = w.fault != nil && last.bytes >= min(w.o.MaxPending/8, 4<<20)
	if w.closed || last.whole {
		for len(w.fifo) > 0 {
			w.seal(w.fifo[0])
		}
		last.seal = append(last.seal, w.pending.seal...)
		w.pending.seal = nil
	}
	if last.whole {
		last.tail = nil
		for _, g := range last.seal {
			g.clip()
		}
	}
	last.keep = w.taken + 1
	if len(w.fifo) > 0 {
		last.keep = w.fifo[0].tail
	}
	w.shed()
	return w.closed
}

// commitHeld commits what is held, the oldest first, until that fails.
func (w *Writer) commitHeld(c *conn) error {
	if w.err != nil {
		return nil
	}
	for len(w.held) > 0 {
		if err := w.write(c, w.held[0]); err != nil {
			return err
		}
	}
	if w.fault != nil {
		text := fmt.Sprintf("writing failed for %v (%v); what was measured meanwhile waited in memory",
			time.Since(w.since).Round(time.Second/10), w.cause)
		if w.lost > 0 {
			text += fmt.Sprintf(", and of %d polls of the run, with the outcome %s, it was more than --max-pending holds",
				w.lost, metric.Unwritten)
		}
		if err := c.late.add(c, "write_failed", text); err != nil {
			return err
		}
	}
	return w.foreignMarks(c)
}

// tried decides what comes of an attempt to write: the end of the recording, or another
// attempt, later and later.
func (w *Writer) tried(err error) {
	w.mu.Lock()
	before := w.fault
	switch {
	case err == nil:
		w.fault, w.next, w.pause = nil, time.Time{}, 0
	case !w.retries():
		w.held = nil
		w.err = cmp.Or(w.err, w.failure(err, "what was committed before is kept"))
	default:
		if before == nil {
			w.since, w.cause = time.Now(), err
		}
		w.fault = w.failure(err, "it is tried again")
		w.pause = min(max(2*w.pause, w.o.CommitEvery), endPatience)
		w.next = time.Now().Add(w.pause)
	}
	fault := w.fault
	w.changed.Broadcast()
	w.mu.Unlock()
	if (before == nil) != (fault == nil) && w.o.OnFault != nil {
		w.o.OnFault(fault)
	}
}

// retries reports whether a write that fails is tried again: not before anything was
// committed, as a run that cannot be recorded need not begin.
func (w *Writer) retries() bool { return w.o.Retry && w.proven }

func (w *Writer) failure(err error, then string) error {
	return fmt.Errorf("write recording %s: %w (%s; %s)", w.path, err, remedy(err), then)
}

// end commits the rest and closes the file, and gives up what cannot be written.
func (w *Writer) end(c *conn) {
	err := w.commitHeld(c)
	for began, held := time.Now(), len(w.held); ; {
		if err == nil && w.err == nil {
			err = c.tidy(w.foundTraffic())
		}
		if len(w.held) < held {
			began, held = time.Now(), len(w.held)
		}
		if err == nil || !w.retries() || time.Since(began) >= endPatience {
			break
		}
		select {
		case <-w.abort:
			began = time.Time{} // this is the last time
		case <-time.After(min(w.o.CommitEvery, endPatience/50)):
		}
		err = w.commitHeld(c)
	}
	polls, counted := 0, 0
	for _, b := range w.held {
		polls, counted = polls+b.polls, counted+b.lost
	}
	err = errors.Join(err, c.release())
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost += polls - counted
	if err != nil && w.err == nil {
		then := "what was committed before is kept"
		if polls > 0 {
			then = fmt.Sprintf("the last %d polls are lost; %s", polls, then)
		}
		w.err = w.failure(err, then)
	}
	w.changed.Broadcast()
}

// settle takes the memory of the batch that was committed back.
func (w *Writer) settle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.held[0]
	w.held = w.held[1:]
	w.proven = w.proven || !b.empty()
	w.written = b.number
	if w.spare == nil {
		w.spare = b.tail
	}
	for _, g := range b.seal {
		if len(w.free) < 8 && !b.whole {
			w.free = append(w.free, g)
		}
	}
	w.changed.Broadcast()
}

// remedy returns what a person can do about a write error.
func remedy(err error) string {
	switch text := err.Error(); {
	case strings.Contains(text, "(1032)"): // SQLITE_READONLY_DBMOVED
		return "the run directory was removed or moved while it was written"
	case strings.Contains(text, "full"), strings.Contains(text, "too large"):
		return "free space on that file system, or raise the limit on file sizes"
	case strings.Contains(text, "readonly"), strings.Contains(text, "permission"):
		return "make the directory writable"
	case strings.Contains(text, "locked"), strings.Contains(text, "busy"):
		return "another program holds a write lock on the file: end it"
	case strings.Contains(text, "(1034)"), strings.Contains(text, "(1290)"): // SQLITE_IOERR_FSYNC, SQLITE_IOERR_DIR_FSYNC
		return "the disk did not confirm what was written, and a power cut may cost it: look at the log of the system, " +
			"use another disk"
	}
	// SQLite says no more than this about a write that was refused, also when that was for want of space.
	return "check that there is free space, that no limit on file sizes is reached (ulimit -f), and the disk itself"
}

// write commits the oldest batch.
func (w *Writer) write(c *conn, b *batch) error {
	if b.empty() {
		w.settle()
		return nil
	}
	began := time.Now()
	err, leftOut := c.inPlace(), c.leftOut
	if err == nil {
		err = inTransaction(context.Background(), c.c, func() error { return cmp.Or(c.insert(b), c.repeatDue()) })
		if err != nil {
			c.leftOut = leftOut
		}
	}
	if err == nil {
		w.settle()
		err = c.checkpoint(b.bytes)
	}
	if w.o.OnCommit != nil {
		w.o.OnCommit(time.Since(began), err)
	}
	return err
}

// checkpoint makes a checkpoint when it is time. One that fails costs no poll: the
// log has them all, and the recording has a warning.
func (c *conn) checkpoint(bytes int) error {
	if err := c.log.after(context.Background(), c.c, bytes); err != nil {
		return c.failed.add(c, "sync_failed", atRisk(err))
	}
	return nil
}

func (c *conn) insert(b *batch) error {
	var err error
	do := func(s *sql.Stmt, table string, args ...any) {
		if err == nil {
			_, err = s.Exec(summed(table, args...)...)
		}
	}
	for _, t := range b.targets {
		do(c.target, "target", t.id, t.Name, t.URL, t.Source)
		if t.Labels.Len() > 0 {
			labels, bad := labelsValue(t.Labels)
			err = errors.Join(err, bad)
			do(c.labels, "target_labels", t.id, labels)
		}
	}
	for _, x := range b.lives {
		do(c.life, "life", x.target, x.AtNS, x.Gone, x.Reason)
	}
	for i := range b.growth {
		if err == nil {
			err = c.insertGrowth(&b.growth[i])
		}
	}
	for _, r := range b.incidents {
		do(c.incident, "incident", r.key, r.atNS, r.outcome.String(), r.status, r.err, r.lines, r.drops, r.warnings)
	}
	for _, r := range b.bodies {
		if err == nil {
			err = c.keepBody(r)
		}
	}
	for i := range b.observations {
		if err == nil {
			err = b.observations[i].insert(c.observation)
		}
	}
	for id, x := range b.exemplars {
		labels, bad := labelsValue(x.Labels)
		err = errors.Join(err, bad)
		do(c.exemplar, "exemplar", id, x.SeenNS, x.AtNS, x.Value, labels)
	}
	for _, m := range b.marks {
		do(c.mark, "mark", m.AtNS, m.Name, true, m.Kind)
	}
	for _, x := range b.warnings {
		do(c.warning, "warning", x.Code, x.Text)
	}
	if len(b.tail) > 0 && b.number >= b.keep {
		do(c.tail, "tail", b.number, sealTail(b.tail))
	}
	for _, g := range b.seal {
		z := c.compress(&g.sections)
		do(c.block, "block", key(g.target, g.first), g.polls, g.stored, g.fromNS, g.toNS, g.dict.families, g.dict.series,
			g.dict.slots, z[0], z[1], z[2], z[3])
	}
	if len(b.seal) > 0 && err == nil {
		_, err = c.untail.Exec(b.keep)
	}
	return err
}

// compress returns the sections as zstd frames, empty ones as empty. The slices are valid until the next call.
func (c *conn) compress(s *sections) [4][]byte {
	for i, b := range [4][]byte{s.head, s.op, s.num, s.bits} {
		c.buf[i] = c.buf[i][:0]
		if len(b) > 0 {
			c.buf[i] = c.z.EncodeAll(b, c.buf[i])
		} else if c.buf[i] == nil {
			c.buf[i] = []byte{}
		}
	}
	return c.buf
}

// insertGrowth writes new entries of a dictionary.
func (c *conn) insertGrowth(g *targetGrowth) error {
	c.copies.grew(g.target)
	err := c.family.insert(len(g.Families), func(i int, args []any) ([]any, error) {
		f := &g.Families[i]
		return append(args, summed("family", key(g.target, g.before.families+i), f.Name, f.Type.String(), f.Help,
			f.Unit, f.Suffix)...), nil
	})
	if err != nil {
		return err
	}
	err = c.series.insert(len(g.Series), func(i int, args []any) ([]any, error) {
		labels, err := labelsValue(g.Series[i].Labels)
		return append(args, summed("series", key(g.target, g.before.series+i), g.Series[i].Family, labels)...), err
	})
	if err != nil {
		return err
	}
	if g.slots == 0 {
		return nil
	}
	c.packed = c.z.EncodeAll(g.packed, c.packed[:0])
	_, err = c.slots.Exec(summed("slots", key(g.target, g.before.slots), g.slots, c.packed)...)
	return err
}

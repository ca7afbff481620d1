package rundb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// conn is the one connection of the writer goroutine, with its statements.
type conn struct {
	db *sql.DB
	c  *sql.Conn
	z  *zstd.Encoder

	target, slots, block, tail, untail, incident, body, observation, exemplar, mark, warning, labels, life *sql.Stmt
	family, series                                                                                         inserter

	maxBytes int64          // of the file, with bodies
	leftOut  countedWarning // bodies
	log      checkpointer
	failed   countedWarning // checkpoints
	version  int64          // of PRAGMA data_version when marks were last read
	lastMark int64
	buf      [4][]byte
	packed   []byte // scratch
}

// createFile makes the database file and its schema.
func createFile(path string, m Meta) (*conn, error) {
	// Made here and closed before SQLite opens it, for its mode: SQLite gives
	// its companion files the mode of the database.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, ErrExists
	}
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", dsn(path, "rw"))
	if err != nil {
		return nil, err
	}
	c := &conn{db: db}
	if err := c.open(context.Background(), m); err != nil {
		return nil, errors.Join(err, c.release(), os.Remove(path))
	}
	return c, nil
}

func (c *conn) open(ctx context.Context, m Meta) (err error) {
	if c.z, err = newPacker(); err != nil {
		return err
	}
	if c.c, err = c.db.Conn(ctx); err != nil {
		return err
	}
	// One by one, as their order matters: nothing of it can change once the first table exists.
	for _, p := range []string{"page_size=4096", "auto_vacuum=INCREMENTAL", "journal_mode=WAL", "synchronous=NORMAL",
		noAutoCheckpoint} {
		if err := c.query("PRAGMA " + p); err != nil {
			return err
		}
	}
	m.EndNS = 0
	rows, err := metaRows(m)
	if err != nil {
		return err
	}
	if err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := c.exec(fmt.Sprintf("%s; PRAGMA application_id = %d; PRAGMA user_version = %d", schema, applicationID,
		SchemaVersion)); err != nil {
		return err
	}
	for _, r := range rows {
		if err := c.exec(insertInto("meta"), summed("meta", r[0], r[1])...); err != nil {
			return err
		}
	}
	return c.exec("COMMIT")
}

// newPacker makes the encoder of all that is compressed.
func newPacker() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(1<<18), zstd.WithAllLitEntropyCompression(true))
}

// statement is one of conn with its text.
type statement struct {
	to  **sql.Stmt
	sql string
}

// statements are all that prepare makes and closeStatements closes: SQLite keeps
// the file open for as long as one of them is.
func (c *conn) statements() []statement {
	row := func(to **sql.Stmt, table string) statement { return statement{to, insertInto(table)} }
	return []statement{
		row(&c.target, "target"), row(&c.labels, "target_labels"), row(&c.life, "life"), row(&c.block, "block"),
		row(&c.slots, "slots"), row(&c.tail, "tail"), row(&c.incident, "incident"), row(&c.body, "body"),
		row(&c.observation, "observation"), row(&c.mark, "mark"), row(&c.warning, "warning"),
		{&c.exemplar, "REPLACE" + strings.TrimPrefix(insertInto("exemplar"), "INSERT")},
		{&c.untail, "DELETE FROM tail WHERE id < ?"},
	}
}

func (c *conn) prepare(ctx context.Context) error {
	for _, p := range c.statements() {
		var err error
		if *p.to, err = c.c.PrepareContext(ctx, p.sql); err != nil {
			return err
		}
	}
	return errors.Join(c.family.prepare(ctx, c.c, "family (id, name, type, help, unit, crc)"),
		c.series.prepare(ctx, c.c, "series (id, family, labels, crc)"))
}

func (c *conn) exec(query string, args ...any) error {
	_, err := c.c.ExecContext(context.Background(), query, args...)
	return err
}

// run is the writer goroutine: it commits what is pending on every tick, tells
// of foreign marks, and ends after Close.
func (w *Writer) run(c *conn) {
	tick := time.NewTicker(w.o.CommitEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-w.wake:
		}
		b, number, closing, failed := w.take()
		var err error
		if !failed {
			if err = w.write(c, b, number); err == nil {
				err = w.foreignMarks(c)
			}
		}
		if closing {
			err = errors.Join(err, c.finish(failed || err != nil))
		}
		w.settle(b, number, err)
		if closing {
			return
		}
	}
}

// take hands the pending batch to the writer goroutine.
func (w *Writer) take() (b batch, number int64, closing, failed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b, closing, failed = w.pending, w.closed, w.err != nil
	w.pending = batch{tail: w.spare[:0]}
	w.spare = nil
	if closing {
		for len(w.fifo) > 0 {
			g := w.fifo[0]
			w.seal(g)
		}
		b.seal = append(b.seal, w.pending.seal...)
		w.pending.seal = nil
	}
	w.taken++
	b.keep = w.taken + 1
	if len(w.fifo) > 0 {
		b.keep = w.fifo[0].tail
	}
	w.changed.Broadcast()
	return b, w.taken, closing, failed
}

// settle records how a batch ended and takes its memory back.
func (w *Writer) settle(b batch, number int64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written = number
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("write recording %s: %w (%s; what was committed before is kept)", w.path, err, remedy(err))
	}
	w.spare = b.tail
	for _, g := range b.seal {
		if len(w.free) < 8 {
			w.free = append(w.free, g)
		}
	}
	w.changed.Broadcast()
}

// remedy returns what a person can do about a write error.
func remedy(err error) string {
	switch text := err.Error(); {
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

// write commits one batch.
func (w *Writer) write(c *conn, b batch, number int64) error {
	if b.empty() {
		return nil
	}
	began := time.Now()
	err := c.commit(b, number)
	if err == nil {
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

func (c *conn) commit(b batch, number int64) error {
	if err := c.begin(); err != nil {
		return err
	}
	if err := c.insert(b, number); err != nil {
		return errors.Join(err, c.exec("ROLLBACK"))
	}
	return c.exec("COMMIT")
}

// begin waits for the write lock: another process may set a mark, or a person
// may have forgotten a transaction in a shell.
func (c *conn) begin() error {
	const tries = 12 // of busy_timeout each: a minute
	for n := 1; ; n++ {
		err := c.exec("BEGIN IMMEDIATE")
		if err == nil || n == tries || !strings.Contains(err.Error(), "SQLITE_BUSY") {
			return err
		}
	}
}

func (c *conn) insert(b batch, number int64) error {
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
	for _, x := range b.exemplars {
		labels, bad := labelsValue(x.Labels)
		err = errors.Join(err, bad)
		do(c.exemplar, "exemplar", key(x.target, x.Slot), x.SeenNS, x.AtNS, x.Value, labels)
	}
	for _, m := range b.marks {
		do(c.mark, "mark", m.AtNS, m.Name, true)
	}
	for _, x := range b.warnings {
		do(c.warning, "warning", x.Code, x.Text)
	}
	if len(b.tail) > 0 && number >= b.keep {
		do(c.tail, "tail", number, sealTail(b.tail))
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
	err := c.family.insert(len(g.Families), func(i int, args []any) ([]any, error) {
		f := &g.Families[i]
		return append(args, summed("family", key(g.target, g.before.families+i), f.Name, f.Type.String(), f.Help,
			f.Unit)...), nil
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

// finish closes the file. A sound one becomes a single file in rollback mode,
// readable from a read-only directory; that is left out while others read it.
func (c *conn) finish(broken bool) error {
	var err error
	if !broken {
		err = c.tidy()
	}
	return errors.Join(err, c.release())
}

func (c *conn) tidy() error {
	if err := c.exec(replaceMeta, summed("meta", "end_ns",
		fmt.Sprint(time.Now().UnixNano()))...); err != nil {
		return err
	}
	// From here on a reader in the way costs tidiness, not data: do not wait long.
	for _, step := range []string{"PRAGMA incremental_vacuum", "PRAGMA busy_timeout=100",
		"PRAGMA wal_checkpoint(TRUNCATE)"} {
		if err := c.query(step); err != nil {
			return err
		}
	}
	if err := c.closeStatements(); err != nil {
		return err
	}
	if err := c.query("PRAGMA journal_mode=DELETE"); err != nil && !strings.Contains(err.Error(), "locked") {
		return err
	}
	return nil
}

func (c *conn) query(pragma string) error { return runPragma(context.Background(), c.c, pragma) }

// runPragma runs a pragma to its end; some only do their work row by row.
func runPragma(ctx context.Context, c *sql.Conn, pragma string) error {
	rows, err := c.QueryContext(ctx, pragma)
	if err != nil {
		return err
	}
	for rows.Next() {
	}
	return errors.Join(rows.Err(), rows.Close())
}

func (c *conn) closeStatements() error {
	errs := []error{c.family.close(), c.series.close()}
	for _, s := range c.statements() {
		if *s.to != nil {
			errs = append(errs, (*s.to).Close())
			*s.to = nil
		}
	}
	return errors.Join(errs...)
}

// release closes statements, connection and pool, in this order.
func (c *conn) release() error {
	err := c.closeStatements()
	if c.c != nil {
		err = errors.Join(err, c.c.Close())
	}
	return errors.Join(err, c.db.Close())
}

package rundb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// ErrEventWriter is wrapped by the error of OpenEvents while another writer records events into the same run.
var ErrEventWriter = errors.New("another recorder writes its request events: end it first")

// EventWriterOptions adjusts an EventWriter. The zero value is sound.
type EventWriterOptions struct {
	// Source names who tells the events, in the tables clock and event_stats.
	Source string
	// Create is what a new recording is made with where dir holds none; nil
	// refuses that. Its end is set by Close.
	Create *Meta
}

// EventStats is how recording went. All are counts of events; MaxQueue is how many waited in memory at most.
type EventStats struct {
	Source                                          string // of the writer; Write sets it
	Recorded, Dropped, Late, EncodeErrors, MaxQueue int64
}

// Lost is how many events were told and are not in the recording as they were.
func (s EventStats) Lost() int64 { return s.Dropped + s.Late + s.EncodeErrors }

// Clock is an anchor: the instant UnixNS, in nanoseconds since 1970, is MonoNS on
// the monotonic clock of a source.
type Clock struct {
	Source         string
	MonoNS, UnixNS int64
}

// EventWriter adds client-side request events to a recording, which a [Writer] may record into at the same
// time, in this process or another one, and others may read. There is one for a run at a time. Its methods must
// not be called concurrently: package events has a Recorder that makes it so.
type EventWriter struct {
	path    string
	file    os.FileInfo // what path named when it was opened
	source  string
	db      *sql.DB
	c       *sql.Conn
	unlock  func() error
	insert  inserter
	server  serverWriter
	stats   int64 // row of event_stats
	created bool
	seen    time.Time                      // when the lock row was last brought up to date
	before  struct{ events, clocks int64 } // the last rows that others have written
	log     checkpointer
	risk    error // the last checkpoint that failed
}

// foreignLock is how long the lock row of another machine, or of one without file
// locks, counts after it was last brought up to date.
const foreignLock = time.Minute

// OpenEvents opens the recording in the existing directory dir for events: that of
// a run that is being recorded, of one that has ended, or a new one. It fails with
// [ErrEventWriter] when somebody else has done so. The caller must Close.
func OpenEvents(ctx context.Context, dir string, o EventWriterOptions) (*EventWriter, error) {
	unlock, err := lockEvents(dir)
	if err != nil {
		return nil, fmt.Errorf("record events in %s: %w", dir, err)
	}
	w := &EventWriter{path: filepath.Join(dir, FileName), source: o.Source, unlock: unlock}
	if err := w.open(ctx, dir, o); err != nil {
		return nil, errors.Join(fmt.Errorf("record events in %s: %w", w.path, err), w.release())
	}
	return w, nil
}

func (w *EventWriter) open(ctx context.Context, dir string, o EventWriterOptions) error {
	if _, err := os.Stat(w.path); errors.Is(err, fs.ErrNotExist) && o.Create != nil {
		if err := createClosed(w.path, *o.Create); err != nil {
			return err
		}
		w.created = true
	}
	var err error
	if w.db, w.c, err = openWritable(ctx, dir); err != nil {
		return err
	}
	if w.file, err = os.Stat(w.path); err != nil {
		return err
	}
	if err := w.claim(ctx); err != nil {
		return err
	}
	return w.prepare(ctx)
}

func (w *EventWriter) prepare(ctx context.Context) error {
	return w.insert.prepare(ctx, w.c, "events (sample_uuid, event_type, timestamp_ns, conversation_id, turn, data)")
}

// createClosed makes a recording and leaves it to others to open.
func createClosed(path string, m Meta) error {
	c, err := createFile(path, m)
	if err != nil {
		return err
	}
	return c.release()
}

// openWritable opens an existing recording for the tables of events, which one
// that is older than they are gets now.
func openWritable(ctx context.Context, dir string) (*sql.DB, *sql.Conn, error) {
	db, err := openExisting(ctx, dir, "rw", "synchronous(NORMAL)", "wal_autocheckpoint(0)")
	if err != nil {
		return nil, nil, err
	}
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	db.SetMaxIdleConns(-1) // another connection of ours would be in the way of tidyFile
	var mode string
	err = c.QueryRowContext(ctx, "PRAGMA journal_mode=WAL").Scan(&mode)
	if err == nil && mode != "wal" {
		err = fmt.Errorf("the journal mode stays %s: another program holds the file", mode)
	}
	if err == nil {
		err = inTransaction(ctx, c, func() error {
			if _, err := c.ExecContext(ctx, eventSchema); err != nil {
				return err
			}
			return addRequestIDs(ctx, c)
		})
	}
	if err != nil {
		return nil, nil, errors.Join(err, c.Close(), db.Close())
	}
	return db, c, nil
}

// claim takes the lock row and starts the row of statistics.
func (w *EventWriter) claim(ctx context.Context) error {
	host, _ := os.Hostname() // without a name the row is as good
	now := time.Now()
	w.seen = now
	return inTransaction(ctx, w.c, func() error {
		var other string
		var pid, seen int64
		err := w.c.QueryRowContext(ctx, "SELECT host, pid, seen_ns FROM event_writer").Scan(&other, &pid, &seen)
		switch {
		case err != nil && !errors.Is(err, sql.ErrNoRows):
			return err
		// What a process of this machine left behind is void: we have its file lock.
		case err == nil && (other != host || !fileLocks) && now.Sub(time.Unix(0, seen)) < foreignLock:
			return fmt.Errorf("%w (process %d on %s)", ErrEventWriter, pid, other)
		}
		const last = "SELECT (SELECT coalesce(max(id), 0) FROM events), (SELECT coalesce(max(id), 0) FROM clock)"
		if err := w.c.QueryRowContext(ctx, last).Scan(&w.before.events, &w.before.clocks); err != nil {
			return err
		}
		if _, err := w.c.ExecContext(ctx, "INSERT OR REPLACE INTO event_writer VALUES (1, ?, ?, ?, ?)", host,
			os.Getpid(), now.UnixNano(), now.UnixNano()); err != nil {
			return err
		}
		r, err := w.c.ExecContext(ctx, "INSERT INTO event_stats (source, recorded, dropped, late, encode_errors, "+
			"max_queue) VALUES (?, 0, 0, 0, 0, 0)", w.source)
		if err != nil {
			return err
		}
		w.stats, err = r.LastInsertId()
		return err
	})
}

// Discard takes back all events, anchors and records of servers that this writer has written, and its row of
// statistics, and closes as Close does. It is for a source that turned out to be no good: the recording is then as it
// was before.
func (w *EventWriter) Discard(ctx context.Context) error {
	err := inTransaction(ctx, w.c, func() error {
		for table, after := range map[string]int64{"events": w.before.events, "clock": w.before.clocks,
			"event_stats": w.stats - 1} {
			if _, err := w.c.ExecContext(ctx, "DELETE FROM "+table+" WHERE id > ?", after); err != nil {
				return err
			}
		}
		return w.server.discard(ctx, w.c)
	})
	if err = errors.Join(err, w.Close(ctx)); err != nil {
		return fmt.Errorf("discard events of %s: %w", w.path, err)
	}
	return nil
}

// DropEarlier drops what was in the recording before this writer began: the events and anchors of clients, or the
// records of servers, or both, in one transaction. What this writer has written stays.
func (w *EventWriter) DropEarlier(ctx context.Context, client, server bool) error {
	drop := map[string]int64{}
	if client {
		drop["events"], drop["clock"], drop["event_stats"] = w.before.events, w.before.clocks, w.stats-1
	}
	if server && w.server.ready {
		drop["server_source"], drop["server_request"] = w.server.before.sources, w.server.before.rows
	}
	err := inTransaction(ctx, w.c, func() error {
		for table, until := range drop {
			if _, err := w.c.ExecContext(ctx, "DELETE FROM "+table+" WHERE id <= ?", until); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("drop requests of %s: %w", w.path, err)
	}
	return nil
}

// ErrMoved is wrapped by the error of Write when the file was removed meanwhile: what takes its place may have the
// batch, so that the same one is to be written again.
var ErrMoved = errors.New("the recording was removed while request events were written")

// inPlace reports whether the file that is open has its name still.
func (w *EventWriter) inPlace() bool {
	now, err := os.Stat(w.path)
	return err == nil && os.SameFile(now, w.file)
}

// reopen opens the copy that a [Writer] has put in the place of a file that was removed, and returns how many events
// of this writer it has.
func (w *EventWriter) reopen(ctx context.Context) (recorded int64, err error) {
	dir := filepath.Dir(w.path)
	file, err := os.Stat(w.path)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrMoved, err)
	}
	db, c, err := openWritable(ctx, dir)
	if err != nil {
		return 0, err
	}
	err = c.QueryRowContext(ctx, "SELECT recorded FROM event_stats WHERE id = ? AND source = ?", w.stats, w.source).
		Scan(&recorded)
	if err != nil {
		return 0, errors.Join(fmt.Errorf("%w, and what took its place is no copy: %w", ErrMoved, err), c.Close(), db.Close())
	}
	if _, err := os.Stat(filepath.Join(dir, EventLockName)); errors.Is(err, fs.ErrNotExist) {
		unlock, err := lockEvents(dir)
		if err != nil {
			return 0, errors.Join(err, c.Close(), db.Close())
		}
		first := w.unlock
		w.unlock = func() error { return errors.Join(unlock(), first()) }
	}
	_ = w.closeFile() // of a file that is gone
	w.file, w.db, w.c, w.insert = file, db, c, inserter{}
	return recorded, errors.Join(w.prepare(ctx), w.server.reopened(ctx, c))
}

// inTransaction runs f in a transaction that waits for other writers.
func inTransaction(ctx context.Context, c *sql.Conn, f func() error) error {
	if err := beginImmediate(ctx, c); err != nil {
		return err
	}
	err := f()
	if err == nil {
		_, err = c.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		_, back := c.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		if back != nil && strings.Contains(back.Error(), "no transaction") {
			back = nil // SQLite has rolled back already
		}
		return errors.Join(err, back)
	}
	return nil
}

// beginImmediate waits for the write lock for about a minute.
func beginImmediate(ctx context.Context, c *sql.Conn) error {
	const tries = 12 // of busy_timeout each
	for n := 1; ; n++ {
		_, err := c.ExecContext(ctx, "BEGIN IMMEDIATE")
		if err == nil || n == tries || ctx.Err() != nil || !strings.Contains(err.Error(), "SQLITE_BUSY") {
			return err
		}
	}
}

// Write adds events and brings the statistics up to date, in one transaction: after an error, or when ctx ended
// first, nothing of it is in the file, and it may be written again; also when somebody removed the file and a [Writer]
// made it again, unless the copy has it. Texts that are no UTF-8 are made such. It keeps nothing of batch.
func (w *EventWriter) Write(ctx context.Context, batch []metric.Event, stats EventStats) error {
	if !w.inPlace() {
		recorded, err := w.reopen(ctx)
		if err != nil {
			return fmt.Errorf("write events to %s: %w", w.path, err)
		}
		// What was committed before the copy was made is in it.
		before := stats.Recorded - int64(len(batch))
		batch = batch[min(max(recorded-before, 0), int64(len(batch))):]
	}
	now := time.Now()
	err := inTransaction(ctx, w.c, func() error {
		err := w.insert.insert(len(batch), func(i int, args []any) ([]any, error) {
			e := &batch[i]
			var turn any
			if e.HasTurn {
				turn = e.Turn
			}
			data := e.Data
			if data == nil {
				data = []byte{}
			}
			return append(args, utf8Text(e.Sample), utf8Text(e.Type), e.AtNS, utf8Text(e.Conversation), turn, data), nil
		})
		if err != nil {
			return err
		}
		if now.Sub(w.seen) > foreignLock/4 {
			w.seen = now
			if _, err := w.c.ExecContext(ctx, "UPDATE event_writer SET seen_ns = ?", now.UnixNano()); err != nil {
				return err
			}
		}
		_, err = w.c.ExecContext(ctx, "UPDATE event_stats SET recorded = ?, dropped = ?, late = ?, encode_errors = ?, "+
			"max_queue = ? WHERE id = ?", stats.Recorded, stats.Dropped, stats.Late, stats.EncodeErrors, stats.MaxQueue,
			w.stats)
		return err
	})
	if err != nil {
		return fmt.Errorf("write events to %s: %w (%s)", w.path, err, remedy(err))
	}
	if !w.inPlace() {
		return fmt.Errorf("write events to %s: %w", w.path, ErrMoved)
	}
	bytes := 0
	for i := range batch {
		bytes += len(batch[i].Data) + 128
	}
	if err := w.log.after(ctx, w.c, bytes); err != nil {
		w.risk = errors.New(atRisk(err)) // the events are written: Close says this
	}
	return nil
}

func utf8Text(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// Idle keeps the lock row of a writer that has nothing to write alive. It is to be called now and then.
func (w *EventWriter) Idle(ctx context.Context) error {
	now := time.Now()
	if now.Sub(w.seen) < foreignLock/4 {
		return nil
	}
	w.seen = now
	err := inTransaction(ctx, w.c, func() error {
		_, err := w.c.ExecContext(ctx, "UPDATE event_writer SET seen_ns = ?", now.UnixNano())
		return err
	})
	if err != nil {
		return fmt.Errorf("keep lock of %s: %w", w.path, err)
	}
	return nil
}

// Anchor adds an anchor of a clock.
func (w *EventWriter) Anchor(ctx context.Context, a Clock) error {
	err := inTransaction(ctx, w.c, func() error {
		_, err := w.c.ExecContext(ctx, "INSERT INTO clock (source, mono_ns, unix_ns) VALUES (?, ?, ?)", a.Source,
			a.MonoNS, a.UnixNS)
		return err
	})
	if err != nil {
		return fmt.Errorf("write clock to %s: %w", w.path, err)
	}
	return nil
}

// Close makes the indexes, gives up the claim and closes the file. What was
// written before stays written if it fails.
func (w *EventWriter) Close(ctx context.Context) error {
	err := inTransaction(ctx, w.c, func() error {
		if _, err := w.c.ExecContext(ctx, eventIndexes); err != nil {
			return err
		}
		if w.created {
			if _, err := w.c.ExecContext(ctx, replaceMeta, summed("meta", "end_ns",
				fmt.Sprint(time.Now().UnixNano()))...); err != nil {
				return err
			}
		}
		_, err := w.c.ExecContext(ctx, "DELETE FROM event_writer")
		return err
	})
	// SQLite would make the last checkpoint when it closes the file, and not say that it failed.
	err = errors.Join(err, w.risk, runPragma(ctx, w.c, "PRAGMA wal_checkpoint(PASSIVE)"))
	err = errors.Join(err, w.closeFile(), tidyFile(ctx, filepath.Dir(w.path)), w.unlock())
	if err != nil {
		return fmt.Errorf("close events of %s: %w", w.path, err)
	}
	return nil
}

// tidyFile folds the write-ahead log into the file where nobody else needs it.
func tidyFile(ctx context.Context, dir string) error {
	db, err := openExisting(ctx, dir, "rw", "busy_timeout(100)")
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "PRAGMA journal_mode=DELETE")
	if err != nil && (strings.Contains(err.Error(), "locked") || strings.Contains(err.Error(), "SQLITE_BUSY")) {
		err = nil
	}
	return errors.Join(err, db.Close())
}

// release closes what is open and gives up the lock.
func (w *EventWriter) release() error { return errors.Join(w.closeFile(), w.unlock()) }

// closeFile closes statements, connection and pool, in this order.
func (w *EventWriter) closeFile() error {
	err := errors.Join(w.insert.close(), w.server.insert.close())
	if w.c != nil {
		err = errors.Join(err, w.c.Close())
	}
	if w.db != nil {
		err = errors.Join(err, w.db.Close())
	}
	return err
}

package rundb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/scrapestat/scrapestat/metric"
)

// Run is a recording opened for reading: everything that was committed when it was opened, unchanged by what is
// recorded later. Its methods may be called concurrently.
type Run struct {
	path     string
	db       *sql.DB
	version  int // of the schema
	meta     Meta
	targets  []metric.Target
	marks    []metric.Mark
	tail     [][]tailRecord // by target, in order of polls
	last     []int64        // by target: the key of its last block, or -1
	lives    [][]metric.TargetEvent
	observed map[int]bool // targets with observations
	events   int64        // the highest id of table events, 0 without events
	client   bool         // it has the tables of events
	// requestIDs is set when its table of requests has the columns response_id and trace_id.
	requestIDs bool
	sources    int64 // the highest id of table server_source, and of server_request, 0 without
	served     int64
	log        *walDamage // nil of a sound one

	mu       sync.Mutex
	memory   *metric.Memory
	charged  map[int]dictSize // by target: of its dictionary
	lost     map[int]int      // by target: polls that reading has not found
	warnings []metric.Warning
}

// Open opens the recording in dir, which may be closed, still being written, or left behind by a process that
// was killed. It never changes run.db, except that it undoes what a process was killed in the middle of writing
// into a closed recording. Other programs may read and write the recording meanwhile. The caller must Close the
// Run.
func Open(dir string) (*Run, error) {
	ctx, cancel := context.WithTimeout(context.Background(), maxLoad)
	defer cancel()
	log, err := checkLog(dir)
	if err != nil {
		return nil, fmt.Errorf("open recording: %w", err)
	}
	db, err := openReadable(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("open recording: %w", mendable(err))
	}
	r := &Run{path: filepath.Join(dir, FileName), db: db, log: log, lost: map[int]int{},
		charged: map[int]dictSize{}}
	if err := r.load(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open recording %s: %w", r.path, mendable(err)), db.Close())
	}
	if log != nil {
		r.damaged("%s: scrapestat repair makes a run of what can be read", log.text)
	}
	return r, nil
}

// mendable adds to an error of a damaged file what can be done.
func mendable(err error) error {
	text := err.Error()
	for _, part := range []string{"malformed", "disk I/O error (522)", "not a database", errRow.Error()} {
		if strings.Contains(text, part) {
			return fmt.Errorf("%w: the file is damaged; scrapestat repair makes a run of what can be read", err)
		}
	}
	return err
}

// openReadable opens a recording for reading. In a directory that cannot be written SQLite cannot make the
// shared memory file a WAL needs: a recording that was closed is then read as the immutable file it is. One
// that a mark or requests were being added to when their process was killed has pages of both sides, and a
// journal of the old ones, which only a writer may put back.
func openReadable(ctx context.Context, dir string) (*sql.DB, error) {
	// A recording may come from anywhere: its schema gets no say.
	readPragmas := []string{"query_only(1)", "trusted_schema(0)", "cell_size_check(1)"}
	db, err := openExisting(ctx, dir, "ro", readPragmas...)
	if err == nil || !strings.Contains(err.Error(), "unable to open database file") &&
		!strings.Contains(err.Error(), "readonly") {
		return db, err
	}
	if holds(dir, FileName+"-journal") {
		if err := undo(ctx, dir); err != nil {
			return nil, err
		}
		return openExisting(ctx, dir, "ro", readPragmas...)
	}
	if holds(dir, FileName+"-wal") {
		return nil, fmt.Errorf("%w: it was not closed, and reading it takes a directory that can be written: copy %s* to "+
			"one", err, FileName)
	}
	return openExisting(ctx, dir, "immutable", readPragmas...)
}

// undo puts back what a killed process has overwritten, which SQLite does when it opens the file.
func undo(ctx context.Context, dir string) error {
	db, err := openExisting(ctx, dir, "rw")
	if err != nil {
		return fmt.Errorf("%w: a process was killed while it added to it, and undoing that takes a directory that can be "+
			"written: copy %s* to one", err, FileName)
	}
	return db.Close()
}

// holds reports whether there is a file with something in it.
func holds(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.Size() > 0
}

// maxLoad is how long opening a recording may take; what takes longer is no recording of ours.
const maxLoad = 2 * time.Minute

// conn returns a connection that keeps the limits within which a recording of ours is read.
func (r *Run) conn(ctx context.Context) (*sql.Conn, error) {
	c, err := r.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	for id, limit := range map[int]int{sqlite3.SQLITE_LIMIT_LENGTH: maxSection, sqlite3.SQLITE_LIMIT_COLUMN: 100,
		sqlite3.SQLITE_LIMIT_VDBE_OP: 10_000, sqlite3.SQLITE_LIMIT_ATTACHED: 0} {
		if _, err := sqlite.Limit(c, id, limit); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// load reads all but the blocks, in one transaction.
func (r *Run) load(ctx context.Context) error {
	c, err := r.conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	tx, err := c.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	err = tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&r.version)
	for _, load := range []func(context.Context, *sql.Tx) error{r.loadMeta, r.loadTargets, r.loadLives, r.loadMarks,
		r.loadWarnings, r.loadTail, r.loadObserved, r.loadEvents, r.loadServer} {
		if err == nil {
			err = load(ctx, tx)
		}
	}
	return errors.Join(err, tx.Rollback())
}

func (r *Run) loadMeta(ctx context.Context, tx *sql.Tx) error {
	return r.each(ctx, tx, "meta", "", nil, func(scan func(...any) error) error {
		var k, v string
		if err := scan(&k, &v); err != nil {
			return err
		}
		return r.meta.set(k, v)
	})
}

func (r *Run) loadTargets(ctx context.Context, tx *sql.Tx) error {
	err := r.each(ctx, tx, "target", "ORDER BY id", nil, func(scan func(...any) error) error {
		var id int
		var t metric.Target
		if err := scan(&id, &t.Name, &t.URL, &t.Source); err != nil {
			return err
		}
		if id != len(r.targets) {
			return fmt.Errorf("target %d follows target %d", id, len(r.targets)-1)
		}
		r.targets = append(r.targets, t)
		return nil
	})
	if err != nil {
		return err
	}
	for t := range r.targets {
		var last sql.NullInt64
		if err := tx.QueryRowContext(ctx, "SELECT max(id) FROM block WHERE id BETWEEN ? AND ?", key(t, 0),
			key(t, maxPoll)).Scan(&last); err != nil {
			return err
		}
		if !last.Valid {
			last.Int64 = -1
		}
		r.last = append(r.last, last.Int64)
	}
	return nil
}

func (r *Run) loadMarks(ctx context.Context, tx *sql.Tx) error {
	return r.each(ctx, tx, "mark", "ORDER BY at_ns, id", nil, func(scan func(...any) error) error {
		var m metric.Mark
		var own bool
		to := []any{&m.AtNS, &m.Name, &own, &m.Kind}
		if r.version < kindVersion {
			to = to[:3]
		}
		if err := scan(to...); err != nil {
			return err
		}
		if r.version < kindVersion {
			m.Kind = oldKind(m.Name, own)
		}
		r.marks = append(r.marks, m)
		return nil
	})
}

func (r *Run) loadWarnings(ctx context.Context, tx *sql.Tx) error {
	return r.each(ctx, tx, "warning", "ORDER BY id", nil, func(scan func(...any) error) error {
		var x metric.Warning
		if err := scan(&x.Code, &x.Text); err != nil {
			return err
		}
		r.warnings = append(r.warnings, x)
		return nil
	})
}

// loadTail sorts the polls that are in no block yet by target.
func (r *Run) loadTail(ctx context.Context, tx *sql.Tx) error {
	r.tail = make([][]tailRecord, len(r.targets))
	return r.each(ctx, tx, "tail", "ORDER BY id", nil, func(scan func(...any) error) error {
		var id int64
		var data []byte
		err := scan(&id, &data)
		if err != nil && !isDamage(err) {
			return err
		}
		err = readTail(data, func(rec tailRecord) {
			if rec.target < len(r.tail) {
				r.tail[rec.target] = append(r.tail[rec.target], rec)
			}
		})
		if err != nil {
			r.damaged("row %d of table tail: %v", id, err)
		}
		return nil
	})
}

// damaged notes damage that was found while reading.
func (r *Run) damaged(format string, args ...any) metric.Warning {
	x := metric.Warning{Code: "recording_damaged", Text: r.path + ": " + fmt.Sprintf(format, args...)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.warnings, x) {
		r.warnings = append(r.warnings, x)
	}
	return x
}

// Lost returns how many polls of a target were recorded and cannot be read, as far as reading it to its end has found.
func (r *Run) Lost(target int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost[target]
}

// ErrMemory is wrapped by the error of Snapshots when series take more than [Run.Bound] allows, and by those of others
// whom a [metric.Memory] refuses more.
var ErrMemory = errors.New("its series or requests, and those of what is read with it, take more memory than they " +
	"may (--max-memory)")

// Bound has the series that are read from now on counted, those of each target once.
func (r *Run) Bound(m *metric.Memory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.memory = m
}

// charge counts what is read of the dictionary of a target for the first time: up to so many slots, or series, of which
// the last are added.
func (r *Run) charge(target int, to dictSize, added []metric.Series) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.charged[target]
	lines, text := max(0, to.slots-was.slots), 0
	for i := range min(len(added), max(0, to.series-was.series)) {
		text += added[len(added)-1-i].Labels.Size()
	}
	r.charged[target] = dictSize{series: max(was.series, to.series), slots: max(was.slots, to.slots)}
	if !r.memory.Charge(lines, text) {
		return ErrMemory
	}
	return nil
}

// LacksLog reports whether the recording was never closed and has no log: somebody has added to it after its
// collector was killed, or it was copied without.
func (r *Run) LacksLog() bool { return r.meta.EndNS == 0 && lacksLog(r.path) }

// Meta returns what the recording is. Its maps and slices must not be changed.
func (r *Run) Meta() Meta { return r.meta }

// Targets returns the targets by index. The slice must not be changed.
func (r *Run) Targets() []metric.Target { return r.targets }

// Marks returns the marks of all processes in order of time. The slice must not be changed.
func (r *Run) Marks() []metric.Mark { return r.marks }

// Warnings returns the warnings about the run as a whole, in the order they
// were recorded, and then those about damage that reading has met so far.
func (r *Run) Warnings() []metric.Warning {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.warnings)
}

// Close ends reading. Iterators must have ended.
func (r *Run) Close() error {
	if err := r.db.Close(); err != nil {
		return fmt.Errorf("close recording %s: %w", r.path, err)
	}
	return nil
}

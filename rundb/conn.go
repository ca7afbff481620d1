package rundb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/scrapestat/scrapestat/internal/sqlitefile"
)

// conn is the one connection of the writer goroutine, with its statements.
type conn struct {
	path string
	file os.FileInfo // as it was made
	dir  heldDir     // that it was made in, not locked
	db   *sql.DB
	c    *sql.Conn
	z    *zstd.Encoder

	target, slots, block, tail, untail, incident, body, observation, exemplar, mark, warning, labels, life,
	dictionary *sql.Stmt
	family, series inserter

	remade   func() error   // nil where nobody wants to know
	maxBytes int64          // of the file, with bodies
	leftOut  countedWarning // bodies
	log      checkpointer
	failed   countedWarning // checkpoints
	copies   copies
	late     countedWarning // transactions
	version  int64          // of PRAGMA data_version when marks were last read
	lastMark int64
	buf      [4][]byte
	packed   []byte // scratch
}

// createFile makes the database file and its schema.
func createFile(path string, m Meta) (*conn, error) {
	c := &conn{path: path}
	var err error
	if c.z, err = newPacker(); err != nil {
		return nil, err
	}
	if err := c.place(); err != nil {
		return nil, err
	}
	if c.dir, err = holdDir(filepath.Dir(path), false); err == nil {
		c.dir.unlock()
		err = c.connect(context.Background())
	}
	if err == nil {
		err = c.describe(m)
	}
	if err != nil {
		return nil, errors.Join(err, c.release(), os.Remove(path))
	}
	return c, nil
}

// place makes the file, empty, before SQLite opens it, for its mode: SQLite gives its
// companion files the mode of the database.
func (c *conn) place() error {
	f, err := os.OpenFile(c.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return ErrExists
	}
	if err != nil {
		return err
	}
	c.file, err = f.Stat()
	return errors.Join(err, f.Close())
}

func (c *conn) connect(ctx context.Context) (err error) {
	if c.db, err = sql.Open("sqlite", sqlitefile.DSN(c.path, "rw")); err != nil {
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
	return nil
}

// describe writes the schema and what the recording is.
func (c *conn) describe(m Meta) error {
	m.EndNS, m.Polls, m.Traffic = 0, nil, ""
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
		row(&c.dictionary, "dictionary"),
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
	return errors.Join(c.family.prepare(ctx, c.c, "family (id, name, type, help, unit, suffix, crc)"),
		c.series.prepare(ctx, c.c, "series (id, family, labels, crc)"))
}

func (c *conn) exec(query string, args ...any) error {
	_, err := c.c.ExecContext(context.Background(), query, args...)
	return err
}

// tidy turns the file into a single one in rollback mode, readable from a read-only
// directory; that is left out while others read it. traffic is for meta.
func (c *conn) tidy(traffic string) error {
	if err := c.inPlace(); err != nil {
		return err
	}
	polls, err := c.polls()
	if err != nil {
		return err
	}
	for k, v := range map[string]string{"end_ns": fmt.Sprint(time.Now().UnixNano()), "polls": polls, "traffic": traffic} {
		if err := c.exec(replaceMeta, summed("meta", k, v)...); err != nil {
			return err
		}
	}
	if err := c.repeat(context.Background(), slices.Sorted(maps.Keys(c.copies.grown))...); err != nil {
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

// polls is how many polls are in the blocks of each target, for meta.
func (c *conn) polls() (text string, err error) {
	err = c.c.QueryRowContext(context.Background(), `SELECT json_group_array(coalesce((SELECT (id & 4294967295) + polls
		FROM block WHERE id BETWEEN t.id << 32 AND t.id << 32 | 4294967295 ORDER BY id DESC LIMIT 1), 0))
		FROM target t`).Scan(&text)
	return text, err
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
	if c.db != nil {
		err = errors.Join(err, c.db.Close())
	}
	c.dir.release()
	return err
}

// inPlace makes sure that the file has its name still: where it was removed, with its
// directory or without, a copy of it takes its place.
func (c *conn) inPlace() error {
	now, err := os.Stat(c.path)
	switch {
	case err == nil && os.SameFile(now, c.file):
		return nil
	case err == nil:
		return errors.New("another file took its place")
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return c.makeAgain()
}

// makeAgain puts a copy of a file that was removed in its place, while nobody is opening either.
func (c *conn) makeAgain() error {
	if err := c.dir.lock(true); err != nil {
		return err
	}
	defer c.dir.unlock()
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return err
	}
	dir, err := c.dir.renewed(filepath.Dir(c.path))
	if err != nil {
		return err
	}
	defer func() {
		if dir.unlock(); dir != c.dir { // no copy was made
			dir.release()
		}
	}()
	for _, companion := range []string{"-wal", "-shm"} { // the copy must not take them for its own
		if err := os.Remove(c.path + companion); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	fresh := conn{path: c.path, z: c.z, remade: c.remade, maxBytes: c.maxBytes, leftOut: c.leftOut, failed: c.failed,
		late:     c.late,
		lastMark: c.lastMark, copies: c.copies}
	if err := fresh.place(); err != nil {
		return err
	}
	ctx := context.Background()
	if err = c.exec("VACUUM INTO ?", c.path); err == nil {
		err = fresh.connect(ctx)
	}
	if err == nil {
		err = fresh.prepare(ctx)
	}
	if now, bad := os.Stat(c.path); err == nil && (bad != nil || !os.SameFile(now, fresh.file)) {
		err = errors.New("it was removed while it was made again")
	}
	if err != nil {
		return errors.Join(err, fresh.release(), os.Remove(c.path))
	}
	if fresh.dir = dir; dir == c.dir {
		c.dir = heldDir{}
	}
	_ = c.release() // of a file that is gone
	*c = fresh
	if c.remade != nil {
		return c.remade()
	}
	return nil
}

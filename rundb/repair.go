package rundb

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/scrapestat/scrapestat/metric"
)

// Repaired is what Repair could do.
type Repaired struct {
	Polls, Lost int      // read of all targets; recorded and not read
	Mended      int      // rows of which a bit was wrong, by their checksum
	Damage      []string // what is lost, and where
}

// repair is one that is under way.
type repair struct {
	Repaired
	c     *conn
	auto  map[string]bool // rows whose number SQLite makes, by their content
	bad   map[string]int  // by table: rows that cannot be read
	pages int             // that are not whole
	cut   bool            // the log was
	found bool

	beyond string // what of the file was not read
}

// Repair makes a recording in the directory to, which must be there, out of what can be read of the damaged one in
// from, which it does not change: each row whose checksum matches, from every page of the file and of its log, and
// what table dictionary has of those that are missing. One of schema 3 and before has no checksums: of it the file
// is made whole pages, and blocks are read as far as they can be. Series are counted in memory, as [Run.Bound] says.
func Repair(ctx context.Context, from, to string, memory *metric.Memory) (*Repaired, error) {
	s, l, closeAll, err := openStore(from)
	if err != nil {
		return nil, fmt.Errorf("repair recording: %w", err)
	}
	defer closeAll()
	if v := s.version(); v > SchemaVersion {
		return nil, fmt.Errorf("repair recording: %w", newerError(int64(v)))
	}
	x := &repair{cut: l.cut, auto: map[string]bool{}, bad: map[string]int{}}
	if err := x.run(ctx, s, l, from, to); err != nil {
		return nil, fmt.Errorf("repair recording %s: %w", filepath.Join(from, FileName), err)
	}
	if err := x.read(ctx, to, memory); err != nil {
		return nil, fmt.Errorf("repair recording %s: nothing can be read: %w", filepath.Join(from, FileName), err)
	}
	return &x.Repaired, nil
}

func (x *repair) run(ctx context.Context, s *pageStore, l walLog, from, to string) (err error) {
	path := filepath.Join(to, FileName)
	if x.c, err = createFile(path, Meta{}); err != nil {
		return err
	}
	err = errors.Join(x.c.query("PRAGMA journal_mode=DELETE"), x.c.exec("BEGIN; DELETE FROM meta"))
	for _, step := range []func() error{func() error { return x.collect(ctx, s, l) },
		func() error { return x.complete(ctx) }, func() error { return x.takeClient(ctx, from) }, x.note,
		func() error { return x.c.exec("COMMIT") }} {
		if err == nil {
			err = step()
		}
	}
	if err = errors.Join(err, x.c.release()); err != nil || !x.found {
		err = errors.Join(err, os.Remove(path))
	}
	if err == nil && !x.found {
		err = copyPages(ctx, s, l, to)
	}
	return err
}

// version is that of the schema, by the head of the file.
func (s *pageStore) version() (n uint32) {
	if p := s.read(1); p != nil && binary.BigEndian.Uint32(p[68:]) == applicationID {
		n = binary.BigEndian.Uint32(p[60:])
	}
	return n
}

// collect inserts the rows of all pages, those of the log last, as they are newer.
func (x *repair) collect(ctx context.Context, s *pageStore, l walLog) (err error) {
	p := make([]byte, pageSize)
	one := func(n uint32, p []byte) {
		whole := s.rows(n, p, func(values []any, number int64) {
			if err == nil {
				err = x.row(values, number)
			}
		})
		if !whole {
			x.pages++
		}
	}
	zeros, none := uint32(0), make([]byte, pageSize)
	for n := uint32(1); n <= s.pages && err == nil; n++ {
		got, failed := s.db.ReadAt(p, int64(n-1)*pageSize)
		if clear(p[got:]); failed != nil {
			x.pages++
		}
		if zeros++; !bytes.Equal(p, none) {
			zeros = 0
		}
		if zeros > maxZeros { // a file of them takes no room, and hours to read
			s.pages = n - zeros
			x.beyond = fmt.Sprintf("what may be behind page %d, where %d pages hold nothing", s.pages, zeros)
			x.Damage = append(x.Damage, x.beyond)
			break
		}
		one(n, p)
		if err == nil {
			err = ctx.Err()
		}
	}
	for _, f := range l.frames {
		if n, _ := s.log.ReadAt(p, f.at); n == pageSize && err == nil {
			one(f.page, p)
		}
	}
	return err
}

// row inserts a row if it is one of ours.
func (x *repair) row(values []any, number int64) error {
	name, row, mended := identify(values, number)
	if row == nil {
		if name != "" || values == nil {
			x.bad[name]++
		}
		return nil
	}
	x.found = true
	if mended {
		x.Mended++
	}
	return x.insert("INSERT OR REPLACE", name, row)
}

func (x *repair) insert(how, name string, row []any) error {
	t, _ := tableOf(name)
	if name == "mark" && len(row) == 3 { // of version 4
		text, _ := row[1].(string)
		row = append(row[:3:3], oldKind(text, row[2] == any(int64(1))))
	}
	if name == "family" && len(row) == 5 { // of version 5 and before
		typ, _ := row[2].(string)
		row = append(row[:5:5], oldSuffix(typ))
	}
	if strings.HasPrefix(t.kinds, "+") {
		if text := string(appendRow(nil, name, row)); x.auto[text] {
			return nil
		} else if name != "dictionary" {
			x.auto[text] = true
		}
	}
	return x.c.exec(how+strings.TrimPrefix(insertInto(name), "INSERT"), summed(name, row...)...)
}

// complete takes from table dictionary what is missing, and makes up for targets of which nothing is left but polls.
func (x *repair) complete(ctx context.Context) error {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxSection))
	if err != nil {
		return err
	}
	defer z.Close()
	var packed [][]byte
	r := Run{version: SchemaVersion}
	err = r.each(ctx, x.c.c, "dictionary", "ORDER BY id DESC", nil, func(scan func(...any) error) error {
		var data []byte
		err := scan(&data)
		packed = append(packed, data)
		return err
	})
	for _, data := range packed {
		if err == nil {
			err = ctx.Err()
		}
		rows, bad := z.DecodeAll(data, nil)
		for err == nil && bad == nil && len(rows) > 0 {
			size, n := binary.Uvarint(rows)
			if n <= 0 || size > uint64(len(rows)-n) {
				break
			}
			if row := cutRow(rows[n : n+int(size)]); len(row) > 1 {
				err = x.insert("INSERT OR IGNORE", row[0].(string), row[1:])
			}
			rows = rows[n+int(size):]
		}
	}
	if err != nil {
		return err
	}
	return x.placeholders(ctx)
}

func (x *repair) placeholders(ctx context.Context) error {
	var targets, known int
	err := x.c.c.QueryRowContext(ctx, "SELECT max(coalesce((SELECT max(id >> 32) + 1 FROM block), 0), "+
		"coalesce((SELECT max(id) + 1 FROM target), 0)), (SELECT count(*) FROM target)").Scan(&targets, &known)
	for id := 0; id < targets && err == nil && known < targets; id++ {
		err = x.insert("INSERT OR IGNORE", "target", []any{id, "", fmt.Sprintf("unknown:%d", id), ""})
	}
	if known < targets {
		x.Damage = append(x.Damage, fmt.Sprintf("the names of %d of %d targets", targets-known, targets))
	}
	var start int
	if err == nil {
		err = x.c.c.QueryRowContext(ctx, "SELECT count(*) FROM meta WHERE key IN ('origin_ns', 'id')").Scan(&start)
	}
	if start < 2 {
		x.Damage = append(x.Damage, "its identity or when it began")
	}
	return err
}

// note adds warnings of what is lost to the new recording.
func (x *repair) note() (err error) {
	for _, name := range slices.Sorted(maps.Keys(x.bad)) {
		x.Damage = append(x.Damage, fmt.Sprintf("%d rows of %s", x.bad[name], cmp.Or(name, "unknown tables")))
	}
	if x.cut {
		x.Damage = append(x.Damage, FileName+"-wal, which was cut")
	}
	if x.pages > 0 {
		x.Damage = append(x.Damage, fmt.Sprintf("%d pages", x.pages))
	}
	for _, text := range x.Damage {
		row := []any{"recording_damaged", "repaired; what was damaged: " + text}
		err = errors.Join(err, x.insert("INSERT", "warning", row))
	}
	return err
}

// takeClient copies the tables of requests as far as SQLite reads them: they have no checksums.
func (x *repair) takeClient(ctx context.Context, from string) error {
	db, err := openReadable(ctx, from)
	if err != nil {
		x.Damage = append(x.Damage, "the requests, if it had any: "+err.Error())
		return nil
	}
	defer db.Close()
	tables := []string{"events", "requests", "clock", "event_stats"}
	var server int
	const has = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'server_request'"
	if err := db.QueryRowContext(ctx, has).Scan(&server); err == nil && server > 0 {
		tables = append(tables, "server_source", "server_place", "server_request")
		if err := x.c.exec(serverSchema); err != nil {
			return err
		}
	}
	for _, table := range tables {
		if err := copyTable(ctx, db, x.c, table); err != nil {
			x.Damage = append(x.Damage, fmt.Sprintf("rows of table %s: %v", table, err))
		}
	}
	return nil
}

// copyTable copies the rows of a table that both have.
func copyTable(ctx context.Context, from *sql.DB, to *conn, table string) error {
	rows, err := from.QueryContext(ctx, "SELECT * FROM "+table)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for i, c := range columns { // of a file that may be anybody's
		columns[i] = `"` + strings.ReplaceAll(c, `"`, `""`) + `"`
	}
	values, scan := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		scan[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(scan...); err != nil {
			return err
		}
		insert := "INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES (?" +
			strings.Repeat(", ?", len(columns)-1) + ")"
		if err := to.exec(insert, values...); err != nil {
			return err
		}
	}
	return rows.Err()
}

// copyPages copies a recording without checksums, as far as its pages were looked at, the last one filled up.
func copyPages(ctx context.Context, s *pageStore, l walLog, to string) (err error) {
	for name, part := range map[string]struct {
		of   io.ReaderAt
		size int64
	}{FileName: {s.db, int64(s.pages) * pageSize}, FileName + "-wal": {s.log, l.size}} {
		if part.of == nil || err != nil {
			continue
		}
		f, failed := os.OpenFile(filepath.Join(to, name), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if err = failed; err != nil {
			continue
		}
		p := make([]byte, 256*pageSize)
		for at := int64(0); at < part.size && err == nil; at += int64(len(p)) {
			p = p[:min(int64(len(p)), part.size-at)]
			n, _ := part.of.ReadAt(p, at)
			clear(p[n:])
			_, err = f.Write(p)
			err = errors.Join(err, ctx.Err())
		}
		err = errors.Join(err, f.Close())
	}
	return err
}

// read reads the new recording to its end.
func (x *repair) read(ctx context.Context, dir string, memory *metric.Memory) error {
	r, err := Open(dir)
	if err != nil {
		return err
	}
	defer r.Close()
	r.Bound(memory)
	for i := range r.Targets() {
		for _, err := range r.Snapshots(ctx, i) {
			if err != nil {
				return err
			}
			x.Polls++
		}
		x.Lost += r.Lost(i)
	}
	x.Damage = nil
	if !x.found && x.beyond != "" { // which the new recording does not have as a warning
		x.Damage = append(x.Damage, x.beyond)
	}
	for _, w := range r.Warnings() {
		if w.Code == "recording_damaged" {
			x.Damage = append(x.Damage, w.Text)
		}
	}
	return nil
}

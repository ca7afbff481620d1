package rundb

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// serverSchema is the server's side of single requests. It is added to a recording that is to have some, of any
// version. A request's instants are differences from its arrival; what is missing is NULL.
const serverSchema = `
CREATE TABLE IF NOT EXISTS server_source (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL,
  clock TEXT NOT NULL, resolution_ns INTEGER NOT NULL, boot_id TEXT NOT NULL, opened_ns INTEGER NOT NULL,
  records INTEGER NOT NULL, bad INTEGER NOT NULL, dropped INTEGER NOT NULL, unknown INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS server_place (id INTEGER PRIMARY KEY, stage TEXT NOT NULL, role TEXT NOT NULL,
  replica TEXT NOT NULL, worker TEXT NOT NULL, model TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS server_request (id INTEGER PRIMARY KEY, source INTEGER NOT NULL, request TEXT, alt TEXT,
  trace ANY, part INTEGER, arrival_ns INTEGER, queued_ns INTEGER, sched_ns INTEGER, first_ns INTEGER,
  last_ns INTEGER, finish_ns INTEGER, sent_ns INTEGER, front INTEGER, queue INTEGER, prefill INTEGER, decode INTEGER,
  ttft INTEGER, e2e INTEGER, transfer INTEGER, compute INTEGER,
  prompt INTEGER, cached INTEGER, output INTEGER, preempted INTEGER,
  finish_reason TEXT, status TEXT, place INTEGER) STRICT;
`

// serverColumns are those of a request, in the order of appendServer and scanServer.
const serverColumns = `source, request, alt, trace, part, arrival_ns, queued_ns, sched_ns, first_ns, last_ns, finish_ns,
  sent_ns, front, queue, prefill, decode, ttft, e2e, transfer, compute, prompt, cached, output, preempted,
  finish_reason, status`

// maxPlaces is how many different places a recording takes; the requests of others have none.
const maxPlaces = 10_000

// serverWriter is the part of an EventWriter that writes the server's side.
type serverWriter struct {
	ready  bool // the tables are there
	insert inserter
	places map[metric.ServerPlace]int64 // nil until they are read
	// rows of server_request that the caller knows to be there, and that are: more are those of a batch whose
	// Write failed with ErrMoved.
	rows, there int64
	before      struct{ sources, places, rows int64 }
}

// open makes the tables on first use and prepares for them.
func (s *serverWriter) open(ctx context.Context, c *sql.Conn) error {
	if s.ready {
		return nil
	}
	if _, err := c.ExecContext(ctx, serverSchema); err != nil {
		return err
	}
	if err := s.insert.prepare(ctx, c, "server_request ("+serverColumns+", place)"); err != nil {
		return err
	}
	const last = "SELECT (SELECT coalesce(max(id), 0) FROM server_source), (SELECT coalesce(max(id), 0) FROM " +
		"server_place), (SELECT coalesce(max(id), 0) FROM server_request)"
	err := c.QueryRowContext(ctx, last).Scan(&s.before.sources, &s.before.places, &s.rows)
	s.before.rows, s.there, s.ready = s.rows, s.rows, err == nil
	return err
}

// reopened turns to a copy of the file.
func (s *serverWriter) reopened(ctx context.Context, c *sql.Conn) error {
	if !s.ready {
		return nil
	}
	s.insert, s.places = inserter{}, nil
	if err := s.insert.prepare(ctx, c, "server_request ("+serverColumns+", place)"); err != nil {
		return err
	}
	err := c.QueryRowContext(ctx, "SELECT coalesce(max(id), 0) FROM server_request").Scan(&s.there)
	s.rows = min(s.rows, s.there)
	return err
}

// discard takes back what was written since open.
func (s *serverWriter) discard(ctx context.Context, c *sql.Conn) error {
	if !s.ready {
		return nil
	}
	for table, after := range map[string]int64{"server_source": s.before.sources, "server_place": s.before.places,
		"server_request": s.before.rows} {
		if _, err := c.ExecContext(ctx, "DELETE FROM "+table+" WHERE id > ?", after); err != nil {
			return err
		}
	}
	return nil
}

// AddSource begins a source of records about requests and returns its number. Its counts are brought up to date by
// WriteServer.
func (w *EventWriter) AddSource(ctx context.Context, s metric.ServerSource) (id int, err error) {
	err = inTransaction(ctx, w.c, func() error {
		if err := w.server.open(ctx, w.c); err != nil {
			return err
		}
		r, err := w.c.ExecContext(ctx, `INSERT INTO server_source (kind, name, clock, resolution_ns, boot_id, opened_ns,
			records, bad, dropped, unknown) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, s.Kind, utf8Text(s.Name), s.Clock,
			int64(s.Resolution), utf8Text(s.BootID), s.OpenedNS, s.Records, s.Bad, s.Dropped, s.Other)
		if err != nil {
			return err
		}
		n, err := r.LastInsertId()
		id = int(n)
		return err
	})
	if err != nil {
		w.server.ready = false // what was made was rolled back
		return 0, errors.Join(fmt.Errorf("add source to %s: %w", w.path, err), w.server.insert.close())
	}
	return id, nil
}

// WriteServer adds records of requests, of sources that AddSource has begun, and brings the counts of sources up to
// date, in one transaction, with the promises of Write.
func (w *EventWriter) WriteServer(ctx context.Context, batch []metric.ServerRequest,
	sources []metric.ServerSource) error {
	if !w.inPlace() {
		if _, err := w.reopen(ctx); err != nil {
			return fmt.Errorf("write requests of servers to %s: %w", w.path, err)
		}
	}
	s := &w.server
	batch = batch[min(s.there-s.rows, int64(len(batch))):]
	err := inTransaction(ctx, w.c, func() error {
		if err := s.loadPlaces(ctx, w.c); err != nil {
			return err
		}
		err := s.insert.insert(len(batch), func(i int, args []any) ([]any, error) {
			place, err := s.place(ctx, w.c, batch[i].ServerPlace)
			return append(appendServer(args, &batch[i]), place), err
		})
		for _, x := range sources {
			if err == nil {
				_, err = w.c.ExecContext(ctx, "UPDATE server_source SET records = ?, bad = ?, dropped = ?, unknown = ? "+
					"WHERE id = ?", x.Records, x.Bad, x.Dropped, x.Other, x.ID)
			}
		}
		return err
	})
	if err != nil {
		s.places = nil // some may have been rolled back
		return fmt.Errorf("write requests of servers to %s: %w (%s)", w.path, err, remedy(err))
	}
	s.there += int64(len(batch))
	if !w.inPlace() {
		return fmt.Errorf("write requests of servers to %s: %w", w.path, ErrMoved)
	}
	s.rows = s.there
	if err := w.log.after(ctx, w.c, 192*len(batch)); err != nil {
		w.risk = errors.New(atRisk(err))
	}
	return nil
}

func (s *serverWriter) loadPlaces(ctx context.Context, c *sql.Conn) error {
	if s.places != nil {
		return nil
	}
	places := map[metric.ServerPlace]int64{}
	rows, err := c.QueryContext(ctx, "SELECT id, stage, role, replica, worker, model FROM server_place")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var p metric.ServerPlace
		if err := rows.Scan(&id, &p.Stage, &p.Role, &p.Replica, &p.Worker, &p.Model); err != nil {
			return err
		}
		places[p] = id
	}
	s.places = places
	return rows.Err()
}

// place is the row of a place, NULL for none.
func (s *serverWriter) place(ctx context.Context, c *sql.Conn, p metric.ServerPlace) (any, error) {
	if p == (metric.ServerPlace{}) {
		return nil, nil
	}
	id, ok := s.places[p]
	if ok || len(s.places) >= maxPlaces {
		if !ok {
			return nil, nil
		}
		return id, nil
	}
	id = int64(len(s.places)) + 1
	_, err := c.ExecContext(ctx, "INSERT INTO server_place VALUES (?, ?, ?, ?, ?, ?)", id, utf8Text(p.Stage),
		utf8Text(p.Role), utf8Text(p.Replica), utf8Text(p.Worker), utf8Text(p.Model))
	s.places[p] = id
	return id, err
}

// appendServer appends the columns of serverColumns. TTFT and E2E are NULL where they are those of the instants.
func appendServer(args []any, q *metric.ServerRequest) []any {
	args = append(args, q.Source, textOrNull(q.ID), textOrNull(q.Alt), traceValue(q.Trace), countOrNull(q.Part))
	for i, at := range q.Instants() {
		switch {
		case *at == 0:
			args = append(args, nil)
		case i == 0:
			args = append(args, *at)
		default:
			args = append(args, *at-q.ArrivalNS)
		}
	}
	for _, d := range q.Durations() {
		if impliedBy(q, d) == *d {
			args = append(args, nil)
		} else {
			args = append(args, countOrNull(int64(*d)))
		}
	}
	return append(args, countOrNull(q.Prompt), countOrNull(q.Cached), countOrNull(q.Output), countOrNull(q.Preempted),
		textOrNull(q.Finish), textOrNull(q.Status))
}

// impliedBy is what a duration of the record is by its instants, -1 where they do not say.
func impliedBy(q *metric.ServerRequest, d *time.Duration) time.Duration {
	to := int64(0)
	switch d {
	case &q.TTFT:
		to = q.FirstNS
	case &q.E2E:
		to = q.FinishNS
	}
	if to == 0 || q.ArrivalNS == 0 {
		return -1
	}
	return time.Duration(to - q.ArrivalNS)
}

// traceValue is a trace id in half of its bytes where it is one.
func traceValue(s string) any {
	if b, err := hex.DecodeString(s); err == nil && len(b) == 16 && hex.EncodeToString(b) == s {
		return b
	}
	return textOrNull(s)
}

func textOrNull(s string) any {
	if s == "" {
		return nil
	}
	return utf8Text(s)
}

func countOrNull(n int64) any {
	if n < 0 {
		return nil
	}
	return n
}

// loadServer finds out what there is of the server's side of requests.
func (r *Run) loadServer(ctx context.Context, tx *sql.Tx) error {
	var tables int
	err := tx.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN "+
		"('server_source', 'server_place', 'server_request')").Scan(&tables)
	if err != nil || tables != 3 || !r.client {
		return err
	}
	return tx.QueryRowContext(ctx, "SELECT coalesce(max(s.id), 0), (SELECT coalesce(max(id), 0) FROM server_request) "+
		"FROM server_source s").Scan(&r.sources, &r.served)
}

// HasServerRequests reports whether the recording had records of requests by servers when it was opened.
func (r *Run) HasServerRequests() bool { return r.served > 0 }

// ServerSources returns who told of requests on the side of the servers, by their numbers. Records counts what is in
// the recording.
func (r *Run) ServerSources(ctx context.Context) ([]metric.ServerSource, error) {
	if r.sources == 0 {
		return nil, nil
	}
	const query = `SELECT id, kind, name, clock, resolution_ns, boot_id, opened_ns, records, bad, dropped, unknown
		FROM server_source WHERE id <= ? ORDER BY id`
	var all []metric.ServerSource
	var s metric.ServerSource
	var failed error
	scan := func(rows *sql.Rows) error {
		return rows.Scan(&s.ID, &s.Kind, &s.Name, &s.Clock, &s.Resolution, &s.BootID, &s.OpenedNS, &s.Records, &s.Bad,
			&s.Dropped, &s.Other)
	}
	r.rows(ctx, query, []any{r.sources}, scan, func(err error) bool {
		failed = err
		all = append(all, s)
		return true
	})
	if failed != nil {
		return nil, fmt.Errorf("read sources of %s: %w", r.path, failed)
	}
	return all, nil
}

// ServerRequests returns the records of requests by servers in the order in which they were recorded, those that had
// been committed when the recording was opened. A record is valid until the next one. An error ends the sequence.
func (r *Run) ServerRequests(ctx context.Context) iter.Seq2[*metric.ServerRequest, error] {
	const query = "SELECT " + serverColumns + `, coalesce(p.stage, ''), coalesce(p.role, ''), coalesce(p.replica, ''),
		coalesce(p.worker, ''), coalesce(p.model, '') FROM server_request q LEFT JOIN server_place p ON p.id = q.place
		WHERE q.id <= ? ORDER BY q.id`
	return func(yield func(*metric.ServerRequest, error) bool) {
		if r.served == 0 {
			return
		}
		var q metric.ServerRequest
		x := newServerRow()
		r.rows(ctx, query, []any{r.served}, func(rows *sql.Rows) error { return x.scan(rows, &q) }, func(err error) bool {
			if err != nil {
				return yield(nil, fmt.Errorf("read requests of servers of %s: %w", r.path, err))
			}
			return yield(&q, nil)
		})
	}
}

// serverRow is where the columns of a row go. Places are kept, so that equal ones share their texts.
type serverRow struct {
	id, alt, finish, status sql.NullString
	trace                   any
	at                      [7]sql.NullInt64
	d                       [8]sql.NullInt64
	part                    sql.NullInt64
	count                   [4]sql.NullInt64
	place                   metric.ServerPlace
	source                  int
	to                      []any
	texts                   map[string]string
}

func newServerRow() *serverRow {
	x := &serverRow{texts: map[string]string{}}
	x.to = []any{&x.source, &x.id, &x.alt, &x.trace, &x.part}
	for i := range x.at {
		x.to = append(x.to, &x.at[i])
	}
	for i := range x.d {
		x.to = append(x.to, &x.d[i])
	}
	for i := range x.count {
		x.to = append(x.to, &x.count[i])
	}
	x.to = append(x.to, &x.finish, &x.status, &x.place.Stage, &x.place.Role, &x.place.Replica, &x.place.Worker,
		&x.place.Model)
	return x
}

// scan reads a row into q.
func (x *serverRow) scan(rows *sql.Rows, q *metric.ServerRequest) error {
	if err := rows.Scan(x.to...); err != nil {
		return err
	}
	*q = metric.NewServerRequest()
	q.Source, q.ID, q.Alt, q.Finish, q.Status = x.source, x.id.String, x.alt.String, x.same(x.finish.String),
		x.same(x.status.String)
	switch t := x.trace.(type) {
	case []byte:
		q.Trace = hex.EncodeToString(t)
	case string:
		q.Trace = t
	}
	if x.part.Valid {
		q.Part = x.part.Int64
	}
	for i, at := range q.Instants() {
		if x.at[i].Valid {
			*at = x.at[i].Int64
			if i > 0 {
				*at += q.ArrivalNS
			}
		}
	}
	for i, d := range q.Durations() {
		if *d = impliedBy(q, d); x.d[i].Valid {
			*d = time.Duration(x.d[i].Int64)
		}
	}
	for i, n := range []*int64{&q.Prompt, &q.Cached, &q.Output, &q.Preempted} {
		if x.count[i].Valid {
			*n = x.count[i].Int64
		}
	}
	q.ServerPlace = metric.ServerPlace{Stage: x.same(x.place.Stage), Role: x.same(x.place.Role),
		Replica: x.same(x.place.Replica), Worker: x.same(x.place.Worker), Model: x.same(x.place.Model)}
	return nil
}

// same returns an equal text that was returned before, if there was one.
func (x *serverRow) same(s string) string {
	if old, ok := x.texts[s]; ok {
		return old
	}
	if len(x.texts) < maxPlaces {
		x.texts[s] = s
	}
	return s
}

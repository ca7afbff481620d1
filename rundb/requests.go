package rundb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
)

// Request is a row of table requests, which is made of the events and can be made
// again at any time. Times are nanoseconds since 1970. NULL, what did not happen
// or is unknown, is 0 in times and HTTPStatus, and -1 in counts, Block and Turn.
type Request struct {
	ID                                                        string
	IssuedNS, UpstreamNS, ByteNS, FirstNS, LastNS, CompleteNS int64
	Status, Error                                             string
	Input, Output, AfterFirst                                 int
	TokenSource, Finish                                       string
	HTTPStatus                                                int
	RequestID, Endpoint, Model                                string
	// Phase is that of the run in which the request was issued. ReplaceRequests
	// fills in one that is empty by the marks of the run.
	Phase        string
	Block        int // the tracked stretch it was issued in
	Conversation string
	Turn         int
	// ResponseID is the id that the body of the answer has, TraceID the trace that the request was sent with.
	ResponseID, TraceID string
}

// ReplaceRequests makes the table requests of the recording in dir anew, in one transaction: after an error,
// also one of all, the old one is still there. The recording may be written and read meanwhile.
func ReplaceRequests(ctx context.Context, dir string, all iter.Seq2[*Request, error]) error {
	path := filepath.Join(dir, FileName)
	db, c, err := openWritable(ctx, dir)
	if err != nil {
		return fmt.Errorf("replace requests: %w", err)
	}
	var x inserter
	err = x.prepare(ctx, c, insertRequest)
	if err == nil {
		err = inTransaction(ctx, c, func() error { return replaceRequests(ctx, c, &x, all) })
	}
	if err == nil {
		err = runPragma(ctx, c, "PRAGMA wal_checkpoint(PASSIVE)")
	}
	err = errors.Join(err, x.close(), c.Close(), db.Close())
	if err == nil {
		err = tidyFile(ctx, dir)
	}
	if err != nil {
		return fmt.Errorf("replace requests of %s: %w", path, err)
	}
	return nil
}

func replaceRequests(ctx context.Context, c *sql.Conn, x *inserter, all iter.Seq2[*Request, error]) error {
	if _, err := c.ExecContext(ctx, "DELETE FROM requests"); err != nil {
		return err
	}
	batch := make([]Request, 0, 4*insertRows)
	flush := func() error {
		err := x.insert(len(batch), func(i int, args []any) ([]any, error) { return batch[i].appendRow(args), nil })
		batch = batch[:0]
		return err
	}
	for r, err := range all {
		if err != nil {
			return err
		}
		if batch = append(batch, *r); len(batch) == cap(batch) {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	_, err := c.ExecContext(ctx, `UPDATE requests SET phase = coalesce(
		(SELECT name FROM mark WHERE at_ns <= issued_ns ORDER BY at_ns DESC, id DESC LIMIT 1), '')
		WHERE phase = '' AND issued_ns IS NOT NULL;
		CREATE INDEX IF NOT EXISTS requests_sample ON requests (sample_uuid);`+eventIndexes)
	return err
}

// appendRow appends the columns in the order of insertRequest.
func (r *Request) appendRow(args []any) []any {
	orNull := func(n, missing int64) any {
		if n == missing {
			return nil
		}
		return n
	}
	return append(args, utf8Text(r.ID), orNull(r.IssuedNS, 0), orNull(r.FirstNS, 0), orNull(r.LastNS, 0),
		orNull(r.CompleteNS, 0), utf8Text(r.Status), utf8Text(r.Error), orNull(int64(r.Input), -1),
		orNull(int64(r.Output), -1), orNull(int64(r.AfterFirst), -1), utf8Text(r.TokenSource), utf8Text(r.Finish),
		orNull(int64(r.HTTPStatus), 0), utf8Text(r.RequestID), utf8Text(r.Endpoint), utf8Text(r.Model),
		utf8Text(r.Phase), orNull(int64(r.Block), -1), orNull(r.UpstreamNS, 0), orNull(r.ByteNS, 0),
		utf8Text(r.Conversation), orNull(int64(r.Turn), -1), utf8Text(r.ResponseID), utf8Text(r.TraceID))
}

// Requests returns the rows of table requests, which is empty until somebody made it with [ReplaceRequests]. A
// row is valid until the next one. An error ends the sequence.
func (r *Run) Requests(ctx context.Context) iter.Seq2[*Request, error] {
	ids := ", '', ''"
	if r.requestIDs {
		ids = ", response_id, trace_id"
	}
	query := `SELECT sample_uuid, coalesce(issued_ns, 0), coalesce(first_ns, 0), coalesce(last_ns, 0),
		coalesce(complete_ns, 0), status, error_type, coalesce(isl, -1), coalesce(osl, -1),
		coalesce(osl_after_first, -1), token_source, finish_reason, coalesce(http_status, 0), x_request_id,
		endpoint, model, phase, coalesce(block, -1), coalesce(upstream_ns, 0), coalesce(byte_ns, 0),
		conversation_id, coalesce(turn, -1)` + ids + " FROM requests ORDER BY id"
	return func(yield func(*Request, error) bool) {
		var q Request
		scan := func(rows *sql.Rows) error {
			return rows.Scan(&q.ID, &q.IssuedNS, &q.FirstNS, &q.LastNS, &q.CompleteNS, &q.Status, &q.Error, &q.Input,
				&q.Output, &q.AfterFirst, &q.TokenSource, &q.Finish, &q.HTTPStatus, &q.RequestID, &q.Endpoint, &q.Model,
				&q.Phase, &q.Block, &q.UpstreamNS, &q.ByteNS, &q.Conversation, &q.Turn, &q.ResponseID, &q.TraceID)
		}
		r.rows(ctx, query, nil, scan, func(err error) bool {
			if err != nil {
				return yield(nil, fmt.Errorf("read requests of %s: %w", r.path, err))
			}
			return yield(&q, nil)
		})
	}
}

// RequestSpan returns when the first of the requests was issued that were issued from an instant to another one, and
// when the last of them was answered; ok is false when there are none, or one was not answered.
func (r *Run) RequestSpan(ctx context.Context, fromNS, toNS int64) (firstNS, lastNS int64, ok bool, err error) {
	const query = `SELECT coalesce(min(issued_ns), 0), coalesce(max(complete_ns), 0), count(*), count(complete_ns)
		FROM requests WHERE issued_ns BETWEEN ? AND ?`
	issued, answered := 0, 0
	scan := func(rows *sql.Rows) error { return rows.Scan(&firstNS, &lastNS, &issued, &answered) }
	r.rows(ctx, query, []any{fromNS, toNS}, scan, func(failed error) bool {
		err = failed
		return true
	})
	if err != nil {
		return 0, 0, false, fmt.Errorf("read requests of %s: %w", r.path, err)
	}
	return firstNS, lastNS, issued > 0 && issued == answered, nil
}

// Boundary is what the clients of a run told of their requests at an instant.
type Boundary struct {
	Ended, InFlight int64 // by then, and at it
	NextNS          int64 // when the first one after it was issued; 0 for none
	All             int64 // that ended in the run
}

// RequestsAt returns what the table of requests says of an instant.
func (r *Run) RequestsAt(ctx context.Context, atNS int64) (b Boundary, err error) {
	const query = `SELECT count(*) FILTER (WHERE complete_ns <= ?1),
		count(*) FILTER (WHERE issued_ns <= ?1 AND coalesce(complete_ns, ?1 + 1) > ?1),
		coalesce(min(issued_ns) FILTER (WHERE issued_ns > ?1), 0), count(complete_ns) FROM requests`
	scan := func(rows *sql.Rows) error { return rows.Scan(&b.Ended, &b.InFlight, &b.NextNS, &b.All) }
	r.rows(ctx, query, []any{atNS}, scan, func(failed error) bool {
		err = failed
		return true
	})
	if err != nil {
		return Boundary{}, fmt.Errorf("read requests of %s: %w", r.path, err)
	}
	return b, nil
}

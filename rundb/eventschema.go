package rundb

import (
	"context"
	"database/sql"
)

// eventSchema is the client's side of a run. It is also added to recordings that
// are older than it, hence IF NOT EXISTS.
//
// Table events begins with the columns that MLPerf's endpoints benchmark gives its own since 2026, so that what
// reads theirs reads ours. The view mlperf_events is the table they had until then, with its names: a request
// that failed has an event of type error in both.
const eventSchema = `
CREATE TABLE IF NOT EXISTS events (id INTEGER PRIMARY KEY, sample_uuid TEXT NOT NULL DEFAULT '',
  event_type TEXT NOT NULL, timestamp_ns INTEGER NOT NULL, conversation_id TEXT NOT NULL DEFAULT '',
  turn INTEGER, data BLOB NOT NULL DEFAULT x'') STRICT;
CREATE TABLE IF NOT EXISTS requests (id INTEGER PRIMARY KEY, sample_uuid TEXT NOT NULL, issued_ns INTEGER,
  first_ns INTEGER, last_ns INTEGER, complete_ns INTEGER, status TEXT NOT NULL, error_type TEXT NOT NULL,
  isl INTEGER, osl INTEGER, osl_after_first INTEGER, token_source TEXT NOT NULL, finish_reason TEXT NOT NULL,
  http_status INTEGER, x_request_id TEXT NOT NULL, endpoint TEXT NOT NULL, model TEXT NOT NULL,
  phase TEXT NOT NULL, block INTEGER, upstream_ns INTEGER, byte_ns INTEGER, conversation_id TEXT NOT NULL,
  turn INTEGER, response_id TEXT NOT NULL DEFAULT '', trace_id TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE IF NOT EXISTS clock (id INTEGER PRIMARY KEY, source TEXT NOT NULL, mono_ns INTEGER NOT NULL,
  unix_ns INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS event_stats (id INTEGER PRIMARY KEY, source TEXT NOT NULL, recorded INTEGER NOT NULL,
  dropped INTEGER NOT NULL, late INTEGER NOT NULL, encode_errors INTEGER NOT NULL,
  max_queue INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS event_writer (one INTEGER PRIMARY KEY CHECK (one = 1), host TEXT NOT NULL,
  pid INTEGER NOT NULL, since_ns INTEGER NOT NULL, seen_ns INTEGER NOT NULL) STRICT;
CREATE VIEW IF NOT EXISTS mlperf_events AS
  SELECT sample_uuid, CASE event_type
    WHEN 'session.started' THEN 'test_started' WHEN 'session.ended' THEN 'test_ended'
    WHEN 'session.stop_loadgen' THEN 'loadgen_stop'
    WHEN 'session.stop_performance_tracking' THEN 'stop_performance_tracking'
    WHEN 'sample.issued' THEN 'loadgen_issue_called' WHEN 'sample.recv_first' THEN 'first_chunk_received'
    WHEN 'sample.recv_non_first' THEN 'non_first_chunk_received' WHEN 'sample.complete' THEN 'complete'
    ELSE 'error' END AS event_type, timestamp_ns, data
  FROM events WHERE event_type GLOB 'error.*' OR event_type IN ('session.started', 'session.ended',
    'session.stop_loadgen', 'session.stop_performance_tracking', 'sample.issued', 'sample.recv_first',
    'sample.recv_non_first', 'sample.complete')
  ORDER BY timestamp_ns, id;
`

// eventIndexes are made when the writer of events closes: kept up to date during
// a run they would be most of its work.
const eventIndexes = `
CREATE INDEX IF NOT EXISTS events_type_time ON events (event_type, timestamp_ns);
CREATE INDEX IF NOT EXISTS events_sample ON events (sample_uuid);
`

const insertRequest = `requests (sample_uuid, issued_ns, first_ns, last_ns, complete_ns, status, error_type, isl, osl,
  osl_after_first, token_source, finish_reason, http_status, x_request_id, endpoint, model, phase, block,
  upstream_ns, byte_ns, conversation_id, turn, response_id, trace_id)`

// hasRequestIDs reports whether the table requests has the columns response_id and trace_id, which came later.
const hasRequestIDs = "SELECT count(*) = 2 FROM pragma_table_info('requests') WHERE name IN ('response_id', 'trace_id')"

// addRequestIDs adds them.
func addRequestIDs(ctx context.Context, c *sql.Conn) error {
	var has bool
	if err := c.QueryRowContext(ctx, hasRequestIDs).Scan(&has); err != nil || has {
		return err
	}
	_, err := c.ExecContext(ctx, "ALTER TABLE requests ADD COLUMN response_id TEXT NOT NULL DEFAULT ''; "+
		"ALTER TABLE requests ADD COLUMN trace_id TEXT NOT NULL DEFAULT ''")
	return err
}

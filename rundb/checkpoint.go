package rundb

import (
	"context"
	"database/sql"
	"fmt"
)

// checkpointer moves the write-ahead log of a connection into the database when it has grown by about a
// thousand pages. SQLite would do so by itself; but where a file cannot be synced it says nothing then and
// tries again later, and until that has worked a power cut may cost what was recorded. The connection must have
// been opened with noAutoCheckpoint.
type checkpointer struct{ pages int }

// noAutoCheckpoint is the pragma that leaves checkpoints to a checkpointer.
const noAutoCheckpoint = "wal_autocheckpoint=0"

const (
	checkpointPages = 1000
	commitPages     = 8 // of a transaction besides those that its bytes fill
)

// after counts a transaction of so many bytes and makes a checkpoint when it is
// time. Readers in the way are no error: the log stays longer then.
func (p *checkpointer) after(ctx context.Context, c *sql.Conn, bytes int) error {
	if p.pages += bytes/4096 + commitPages; p.pages < checkpointPages {
		return nil
	}
	p.pages = 0
	return runPragma(ctx, c, "PRAGMA wal_checkpoint(PASSIVE)")
}

// atRisk is a checkpoint that failed.
func atRisk(err error) string {
	return fmt.Sprintf("what was recorded is at risk until the next checkpoint: the log could not be moved into the "+
		"database (%v); keep a copy of the run on another disk (%s)", err, remedy(err))
}

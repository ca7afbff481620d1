package events

import (
	"context"

	"github.com/scrapestat/scrapestat/rundb"
)

// Store makes the table requests of the recording in dir anew from the session.
func (s *Session) Store(ctx context.Context, dir string) error {
	return rundb.ReplaceRequests(ctx, dir, rows(s.Requests))
}

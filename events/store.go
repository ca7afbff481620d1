package events

import (
	"context"

	"github.com/scrapestat/scrapestat/rundb"
)

// Store makes the table requests of the recording in dir anew from the session.
func (s *Session) Store(ctx context.Context, dir string) error {
	return rundb.ReplaceRequests(ctx, dir, func(yield func(*rundb.Request, error) bool) {
		for i := range s.Requests {
			q := &s.Requests[i]
			row := rundb.Request{ID: q.ID, IssuedNS: q.IssuedNS, UpstreamNS: q.UpstreamNS, ByteNS: q.ByteNS, FirstNS: q.FirstNS, LastNS: q.LastNS,
				CompleteNS: q.CompleteNS, Status: q.Status.String(), Error: q.Error, Input: q.Input, Output: q.Output, AfterFirst: q.AfterFirst,
				TokenSource: q.Source, Finish: q.Finish, HTTPStatus: q.HTTPStatus, RequestID: q.RequestID, Endpoint: q.Endpoint, Model: q.Model,
				Phase: q.Phase, Block: q.Block, Conversation: q.Conversation, Turn: q.Turn}
			if !yield(&row, nil) {
				return
			}
		}
	})
}

package events

import (
	"context"
	"errors"
	"iter"

	"github.com/scrapestat/scrapestat/rundb"
)

// Row returns a request as the table requests has it.
func (q *Request) Row() rundb.Request {
	row := rundb.Request{ID: q.ID, IssuedNS: q.IssuedNS, UpstreamNS: q.UpstreamNS, ByteNS: q.ByteNS, FirstNS: q.FirstNS,
		LastNS: q.LastNS, CompleteNS: q.CompleteNS, Status: q.Status.String(), Error: q.Error, Input: q.Input,
		Output: q.Output, AfterFirst: q.AfterFirst, TokenSource: q.Source, Finish: q.Finish, HTTPStatus: q.HTTPStatus,
		RequestID: q.RequestID, Endpoint: q.Endpoint, Model: q.Model, Phase: q.Phase, Block: -1,
		Conversation: q.Conversation, Turn: -1, ResponseID: q.ResponseID, TraceID: q.TraceID}
	if q.Tracked {
		row.Block = q.Block
	}
	if q.Conversation != "" {
		row.Turn = q.Turn
	}
	return row
}

// Rebuild makes the table requests of the run in dir anew of its events, and returns what it made it of.
func Rebuild(ctx context.Context, dir string, rules Rules) (s *Session, err error) {
	run, err := rundb.Open(dir)
	if err != nil {
		return nil, err
	}
	s, err = Assemble(run.Events(ctx), rules)
	if err = errors.Join(err, run.Close()); err != nil {
		return nil, err
	}
	return s, rundb.ReplaceRequests(ctx, dir, rows(s.Requests))
}

func rows(all []Request) iter.Seq2[*rundb.Request, error] {
	return func(yield func(*rundb.Request, error) bool) {
		for i := range all {
			row := all[i].Row()
			if !yield(&row, nil) {
				return
			}
		}
	}
}

// Store makes the table requests of the recording in dir anew from the session.
func (s *Session) Store(ctx context.Context, dir string) error {
	return rundb.ReplaceRequests(ctx, dir, rows(s.Requests))
}

package reqfile

import (
	"encoding/json"
	"fmt"

	"github.com/scrapestat/scrapestat/metric"
)

// trtllmRow is what is read of a record of TensorRT-LLM, of a server or of the front door of several.
type trtllmRow struct {
	trtllmRequest
	Context    *trtllmRequest `json:"ctx_perf_metrics"`
	Generation *trtllmRequest `json:"gen_perf_metrics"`
	CtxServer  string         `json:"ctx_server"`
	GenServer  string         `json:"gen_server"`
	Arrival    seconds        `json:"disagg_server_arrival_time"`
	First      seconds        `json:"disagg_server_first_token_time"`
}

type trtllmRequest struct {
	ID      *int64 `json:"request_id"`
	Shared  *int64 `json:"ctx_request_id"` // what the stages of one request have in common
	Status  string `json:"status"`
	Metrics *struct {
		Timing struct {
			ServerArrival seconds `json:"server_arrival_time"`
			Arrival       seconds `json:"arrival_time"`
			Scheduled     seconds `json:"first_scheduled_time"`
			First         seconds `json:"first_token_time"`
			ServerFirst   seconds `json:"server_first_token_time"`
			Last          seconds `json:"last_token_time"`
			TransferStart seconds `json:"kv_cache_transfer_start"`
			TransferEnd   seconds `json:"kv_cache_transfer_end"`
		} `json:"timing_metrics"`
	} `json:"perf_metrics"`
}

// trtllmList takes the answer of GET /perf_metrics.
func (r *Reader) trtllmList(text []byte) error {
	var all []json.RawMessage
	if json.Unmarshal(text, &all) != nil {
		return errJSON
	}
	for i, raw := range all {
		if err := r.trtllm(raw); err != nil {
			r.counts.Note("record %d: %v", i+1, err)
		}
	}
	return nil
}

// trtllm takes a record. That of a front door becomes three: its own and that of each stage, with one id.
func (r *Reader) trtllm(text []byte) error {
	var row trtllmRow
	if err := decode(text, &row); err != nil {
		return err
	}
	if row.Context == nil && row.Generation == nil {
		q, err := row.record()
		if err != nil {
			return err
		}
		return r.tell(&q)
	}
	door := metric.NewServerRequest()
	door.Stage, door.ArrivalNS, door.FirstNS = "front door", row.Arrival.instant(), row.First.instant()
	door.TTFT = between(row.Arrival, row.First)
	var stages []metric.ServerRequest
	for _, s := range []struct {
		of            *trtllmRequest
		stage, worker string
	}{{row.Context, "ctx", row.CtxServer}, {row.Generation, "gen", row.GenServer}} {
		if s.of == nil {
			continue
		}
		q, err := s.of.record()
		if err != nil {
			return err
		}
		q.Stage, q.Worker, q.Alt = s.stage, s.worker, q.ID
		if s.of.Shared != nil {
			q.ID = fmt.Sprint(*s.of.Shared)
		}
		door.ID = q.ID
		stages = append(stages, q)
	}
	for _, q := range append([]metric.ServerRequest{door}, stages...) {
		if err := r.tell(&q); err != nil {
			return err
		}
	}
	return nil
}

// record is that of one server. Without streaming the server's first token is sent at the end, which is no instant of
// a first token.
func (t *trtllmRequest) record() (metric.ServerRequest, error) {
	q := metric.NewServerRequest()
	if t.ID == nil || t.Metrics == nil {
		return q, errJSON
	}
	m := &t.Metrics.Timing
	q.ID, q.Status = fmt.Sprint(*t.ID), t.Status
	arrival := m.ServerArrival
	if !arrival.given {
		arrival = m.Arrival
	}
	q.ArrivalNS, q.QueuedNS, q.SchedNS = arrival.instant(), m.Arrival.instant(), m.Scheduled.instant()
	q.FirstNS, q.LastNS = m.First.instant(), m.Last.instant()
	if m.ServerFirst.given && m.ServerFirst.ns < q.LastNS {
		q.SentNS = m.ServerFirst.ns
	}
	q.Front, q.Queue = between(m.ServerArrival, m.Arrival), between(m.Arrival, m.Scheduled)
	q.Prefill, q.Decode = between(m.Scheduled, m.First), between(m.First, m.Last)
	q.TTFT, q.E2E = between(arrival, m.First), between(arrival, m.Last)
	q.Transfer = between(m.TransferStart, m.TransferEnd)
	return q, nil
}

package reqfile

import (
	"fmt"

	"github.com/scrapestat/scrapestat/metric"
)

// dynamoRow is what is read of a line of Dynamo's request trace.
type dynamoRow struct {
	Schema  string `json:"schema"`
	Event   string `json:"event_type"`
	Request *struct {
		ID       string `json:"request_id"`
		Alt      string `json:"x_request_id"`
		Model    string `json:"model"`
		Input    *int64 `json:"input_tokens"`
		Output   *int64 `json:"output_tokens"`
		Cached   *int64 `json:"cached_tokens"`
		Received millis `json:"request_received_ms"`
		Wait     millis `json:"prefill_wait_time_ms"`
		Prefill  millis `json:"prefill_time_ms"`
		TTFT     millis `json:"ttft_ms"`
		Total    millis `json:"total_time_ms"`
		Worker   *struct {
			Prefill *uint64 `json:"prefill_worker_id"`
			Decode  *uint64 `json:"decode_worker_id"`
		} `json:"worker"`
		Replay *struct {
			Input *int64 `json:"input_length"`
		} `json:"replay"`
		Finish *struct {
			Reason string `json:"finish_reason"`
		} `json:"finish_reason_metadata"`
	} `json:"request"`
}

// dynamo takes a line. Those of a payload hold prompts, those of tools no request.
func (r *Reader) dynamo(text []byte) error {
	var row dynamoRow
	if err := decode(text, &row); err != nil {
		return err
	}
	if row.Schema != "dynamo.request.trace.v1" {
		return fmt.Errorf("its schema is not dynamo.request.trace.v1")
	}
	if row.Event != "request_end" {
		r.private = r.private || row.Event == "request_payload"
		r.counts.Other++
		return nil
	}
	if row.Request == nil {
		return errJSON
	}
	s := row.Request
	q := metric.NewServerRequest()
	q.ID, q.Alt, q.Model = s.ID, s.Alt, s.Model
	q.ArrivalNS = s.Received.instant()
	q.Queue, q.Prefill, q.TTFT, q.E2E = s.Wait.duration(), s.Prefill.duration(), s.TTFT.duration(), s.Total.duration()
	if q.ArrivalNS != 0 && q.TTFT >= 0 {
		q.FirstNS = q.ArrivalNS + int64(q.TTFT)
	}
	if q.ArrivalNS != 0 && q.E2E >= 0 {
		q.FinishNS = q.ArrivalNS + int64(q.E2E)
	}
	q.Prompt, q.Output, q.Cached = count(s.Input), count(s.Output), count(s.Cached)
	if s.Input == nil && s.Replay != nil {
		q.Prompt = count(s.Replay.Input)
	}
	if s.Worker != nil {
		q.Worker = workers(s.Worker.Prefill, s.Worker.Decode)
	}
	if s.Finish != nil {
		q.Finish = s.Finish.Reason
	}
	return r.tell(&q)
}

// workers names that of the prefill and that of the decode, once where they are one.
func workers(prefill, decode *uint64) string {
	switch {
	case prefill == nil && decode == nil:
		return ""
	case prefill == nil:
		return fmt.Sprint(*decode)
	case decode == nil || *prefill == *decode:
		return fmt.Sprint(*prefill)
	}
	return fmt.Sprintf("%d and %d", *prefill, *decode)
}

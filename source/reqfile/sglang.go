package reqfile

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// sglangRow is what is read of a line of SGLang's request metrics.
type sglangRow struct {
	Parameters holdsPrompt `json:"request_parameters"`
	ID         string      `json:"id"`
	Finish     *struct {
		Type string `json:"type"`
	} `json:"finish_reason"`
	Prompt      *int64  `json:"prompt_tokens"`
	Output      *int64  `json:"completion_tokens"`
	Cached      *int64  `json:"cached_tokens"`
	Retractions *int64  `json:"num_retractions"`
	Rank        *int64  `json:"dp_rank"`
	Received    seconds `json:"request_received_ts"`
	Finished    seconds `json:"request_finished_ts"`
	Forward     seconds `json:"forward_entry_time"`
	Prefilled   seconds `json:"prefill_finished_time"`
	Sent        seconds `json:"response_sent_to_client_ts"`
	E2E         seconds `json:"e2e_latency"`
	Queue       seconds `json:"queue_time"`
	First       seconds `json:"first_token_latency"`
}

// holdsPrompt is whether request_parameters, a JSON text, has a prompt. It is not copied.
type holdsPrompt bool

// UnmarshalJSON never fails.
func (p *holdsPrompt) UnmarshalJSON(b []byte) error {
	for _, key := range []string{`text`, `input_ids`, `messages`, `prompt`, `input_embeds`} {
		*p = *p || holdsPrompt(bytes.Contains(b, []byte(`\"`+key+`\":`)) || bytes.Contains(b, []byte(`"`+key+`":`)))
	}
	return nil
}

// sglang takes a line. A request that the client broke off has none (sglang#19477).
func (r *Reader) sglang(text []byte) error {
	var row sglangRow
	if err := decode(text, &row); err != nil {
		return err
	}
	r.private = r.private || bool(row.Parameters)
	q := metric.NewServerRequest()
	q.ID = row.ID
	if row.Finish != nil {
		q.Finish = strings.Clone(row.Finish.Type)
	}
	q.Prompt, q.Output, q.Cached = count(row.Prompt), count(row.Output), count(row.Cached)
	q.Preempted = count(row.Retractions)
	if row.Rank != nil {
		q.Worker = fmt.Sprintf("dp %d", *row.Rank)
	}
	q.ArrivalNS, q.SchedNS, q.FinishNS = row.Received.instant(), row.Forward.instant(), row.Finished.instant()
	q.SentNS = row.Sent.instant()
	q.E2E, q.Queue, q.TTFT = row.E2E.duration(), row.Queue.duration(), row.First.duration()
	q.Prefill = between(row.Forward, row.Prefilled)
	if row.Received.given && row.First.given {
		q.FirstNS = row.Received.ns + row.First.ns
		q.Decode = between(seconds{q.FirstNS, true}, row.Finished)
	}
	return r.tell(&q)
}

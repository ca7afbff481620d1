package reqfile

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// maxTraces is how many requests may be in pieces at the same time.
const maxTraces = 100_000

// tritonRow is what is read of an element of Triton's trace. Events of one id come in any order.
type tritonRow struct {
	ID      *int64 `json:"id"`
	Model   string `json:"model_name"`
	Request string `json:"request_id"`
	Parent  *int64 `json:"parent_id"`
	Stamps  []struct {
		Name string `json:"name"`
		NS   int64  `json:"ns"`
	} `json:"timestamps"`
}

// trace is a request in pieces.
type trace struct {
	model, request string
	parent         int64 // -1 for none
	at             [9]int64
}

// stamps are the instants that are read, by their index in a trace.
var stamps = map[string]int{"REQUEST_START": 0, "QUEUE_START": 1, "COMPUTE_START": 2, "COMPUTE_INPUT_END": 3,
	"COMPUTE_OUTPUT_START": 4, "COMPUTE_END": 5, "REQUEST_END": 6, "HTTP_RECV_START": 7, "GRPC_WAITREAD_START": 7,
	"HTTP_SEND_END": 8, "GRPC_SEND_END": 8}

// triton takes a whole trace.
func (r *Reader) triton(text []byte) error {
	var all []json.RawMessage
	if json.Unmarshal(text, &all) != nil {
		return errJSON
	}
	for i, raw := range all {
		if err := r.tritonLine(raw); err != nil {
			r.counts.Note("entry %d: %v", i+1, err)
		}
	}
	return nil
}

// tritonLine takes one element: that of an array which is written line by line has a comma behind it.
func (r *Reader) tritonLine(text []byte) error {
	text = []byte(strings.Trim(string(text), ", \t\r\n"))
	if len(text) == 0 || string(text) == "[" || string(text) == "]" {
		return nil
	}
	var row tritonRow
	if err := decode(text, &row); err != nil {
		return err
	}
	if row.ID == nil {
		return errJSON
	}
	if row.Model == "" && len(row.Stamps) == 0 {
		r.counts.Other++ // an activity of tensors
		return nil
	}
	t := r.traces[*row.ID]
	if t == nil {
		if len(r.traces) >= maxTraces {
			return fmt.Errorf("more than %d requests in pieces", maxTraces)
		}
		t = &trace{parent: -1}
		r.traces[*row.ID] = t
	}
	if row.Model != "" {
		t.model, t.request = strings.Clone(row.Model), strings.Clone(row.Request)
		if row.Parent != nil {
			t.parent = *row.Parent
		}
	}
	for _, s := range row.Stamps {
		if i, ok := stamps[s.Name]; ok {
			t.at[i] = s.NS
		}
	}
	return nil
}

// endTrace takes a request of which all has come: one without instants was not traced.
func (r *Reader) endTrace(id int64) {
	t := r.traces[id]
	if t.at == [9]int64{} {
		r.counts.Other++
		return
	}
	q := metric.NewServerRequest()
	q.ID, q.Model = t.request, t.model
	if q.ID == "" {
		q.ID = fmt.Sprint("trace ", id)
	}
	if t.parent >= 0 {
		q.Stage, q.ID = t.model, fmt.Sprint("trace ", t.parent)
		if p := r.traces[t.parent]; p != nil && p.request != "" {
			q.ID = p.request
		}
	}
	at := func(i int) seconds { return seconds{t.at[i], t.at[i] != 0} }
	from, to := at(7), at(8) // of the front end, which a child has not
	if !from.given || !to.given {
		from, to = at(0), at(6)
	}
	q.ArrivalNS, q.QueuedNS, q.SchedNS, q.FinishNS = from.ns, t.at[1], t.at[2], to.ns
	q.Front, q.Queue = between(from, at(1)), between(at(1), at(2))
	q.Compute, q.E2E = between(at(2), at(5)), between(from, to)
	if err := r.tell(&q); err != nil {
		r.counts.Note("trace %d: %v", id, err)
	}
}

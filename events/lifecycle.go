package events

import (
	"github.com/scrapestat/scrapestat/metric"
)

// Events returns the events of a request that is known as a whole, in an order in which [Assemble] makes the same
// request of them. What the session decides, Tracked and Block, is not in them.
func (q *Request) Events() []metric.Event {
	var out []metric.Event
	add := func(kind string, atNS int64) {
		out = append(out, metric.Event{Sample: q.ID, Type: kind, AtNS: atNS, Conversation: q.Conversation, Turn: q.Turn,
			HasTurn: q.Conversation != "" || q.Turn != 0})
	}
	add(SampleIssued, q.IssuedNS)
	if q.UpstreamNS != 0 {
		add(SampleUpstream, q.UpstreamNS)
	}
	if q.ByteNS != 0 {
		add(SampleFirstByte, q.ByteNS)
	}
	if q.FirstNS != 0 {
		add(SampleFirst, q.FirstNS)
	}
	end := max(q.IssuedNS, q.UpstreamNS, q.ByteNS, q.FirstNS, q.LastNS)
	if q.CompleteNS != 0 {
		end = q.CompleteNS
	}
	d := q.detail()
	if ev, err := d.Event(q.ID, end); err == nil && string(ev.Data) != "{}" {
		ev.Conversation, ev.Turn, ev.HasTurn = out[0].Conversation, out[0].Turn, out[0].HasTurn
		out = append(out, ev)
	}
	if q.Status == Failed {
		add(ErrorGeneric, end)
		out[len(out)-1].Data = append(append([]byte(`["ErrorData",`), quoteJSON(q.Error)...), `,""]`...)
	}
	if q.CompleteNS != 0 {
		add(SampleComplete, q.CompleteNS)
		out[len(out)-1].Data = []byte("null")
	}
	return out
}

func (q *Request) detail() Detail {
	d := Detail{ISL: count(q.Input), OSL: count(q.Output), AfterFirst: count(q.AfterFirst), TokenSource: q.Source,
		Finish:     q.Finish,
		HTTPStatus: q.HTTPStatus, RequestID: q.RequestID, Endpoint: q.Endpoint, Model: q.Model, Phase: q.Phase}
	if q.chunks > 0 {
		d.Chunks = count(q.chunks)
	}
	if q.LastNS > q.FirstNS {
		d.LastNS = q.LastNS
	}
	return d
}

func count(n int) *int {
	if n < 0 {
		return nil
	}
	return &n
}

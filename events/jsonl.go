package events

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// eventLine reads a line of MLPerf's events.jsonl: an event record of today, or one of the old design, whose data is
// named value and whose wall clock time is a text. The first such time anchors the file.
func (f *File) eventLine(n int, line []byte) bool {
	var rec struct {
		Type         *string         `json:"event_type"`
		At           *int64          `json:"timestamp_ns"`
		Sample       *string         `json:"sample_uuid"`
		Conversation *string         `json:"conversation_id"`
		Turn         *int            `json:"turn"`
		Data         json.RawMessage `json:"data"`
		Value        json.RawMessage `json:"value"`
		Finish       *string         `json:"finish_reason"`
		Wall         string          `json:"approx_datetime_str"`
	}
	if err := json.Unmarshal(line, &rec); err != nil {
		f.bad("line %d: %v", n, err)
		return true
	}
	if rec.Type == nil || rec.At == nil {
		f.bad("line %d: no event_type or no timestamp_ns", n)
		return true
	}
	ev := metric.Event{Type: *rec.Type, AtNS: *rec.At, Data: rec.Data}
	if len(rec.Value) > 0 {
		ev.Data = unquoteJSON(rec.Value)
	}
	if rec.Sample != nil {
		ev.Sample = idOf(*rec.Sample)
	}
	if rec.Conversation != nil {
		ev.Conversation = cut(*rec.Conversation)
	}
	if rec.Turn != nil {
		ev.Turn, ev.HasTurn = *rec.Turn, true
	}
	if f.Events == 0 && f.o.Anchor.Source == "" && *rec.At < unixFrom {
		if at, ok := wallTime(rec.Wall); ok {
			f.Anchor = Anchor{Source: "approx_datetime_str", OffsetNS: at.UnixNano() - *rec.At}
		}
	}
	if name, _ := Current(ev.Type); rec.Finish != nil && *rec.Finish != "" && name == SampleComplete {
		d := Detail{Finish: *rec.Finish}
		if extra, err := d.Event(ev.Sample, ev.AtNS); err == nil && !f.send(&extra) {
			return false
		}
	}
	return f.send(&ev)
}

// unquoteJSON returns the JSON that a string holds, for writers that encode twice.
func unquoteJSON(raw json.RawMessage) []byte {
	var s string
	if json.Unmarshal(raw, &s) == nil && len(s) > 0 && (s[0] == '[' || s[0] == '{' ||
		s[0] == '"') && json.Valid([]byte(s)) {
		return []byte(s)
	}
	return raw
}

// wallTime reads the times that Python prints. Without a zone they are UTC.
func wallTime(s string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00",
		"2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// aiperfMetric is a value of AIPerf with its unit.
type aiperfMetric struct {
	Value json.RawMessage `json:"value"`
	Unit  string          `json:"unit"`
}

func (m aiperfMetric) number() (v float64, ok bool) {
	return v, len(m.Value) > 0 && json.Unmarshal(m.Value, &v) == nil && v >= 0
}

// tokens is a count, -1 when there is none.
func (m aiperfMetric) tokens() int {
	if v, ok := m.number(); ok && v <= maxTokens {
		return int(v)
	}
	return -1
}

// ns is a duration.
func (m aiperfMetric) ns() (int64, bool) {
	v, ok := m.number()
	scale, known := map[string]float64{"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "sec": 1e9, "seconds": 1e9}[m.Unit]
	v *= scale
	return int64(math.Round(v)), ok && known && v < math.MaxInt64/2
}

// aiperfLine reads a line of AIPerf's profile_export.jsonl, one request. Its times are Unix time; the first token is
// the start plus time_to_first_token, and the end the start plus request_latency, as AIPerf's own statistics have it:
// the last response, where request_end_ns is when the connection was done with.
func (f *File) aiperfLine(n int, line []byte) bool {
	var rec struct {
		Metadata *struct {
			Session      *int64 `json:"session_num"`
			RequestID    string `json:"x_request_id"`
			Conversation string `json:"conversation_id"`
			Turn         int    `json:"turn_index"`
			Start        *int64 `json:"request_start_ns"`
			Ack          *int64 `json:"request_ack_ns"`
			End          *int64 `json:"request_end_ns"`
			Phase        string `json:"benchmark_phase"`
			Cancelled    bool   `json:"was_cancelled"`
		} `json:"metadata"`
		Metrics map[string]aiperfMetric `json:"metrics"`
		Error   *struct {
			Code *int   `json:"code"`
			Type string `json:"type"`
		} `json:"error"`
	}
	if err := json.Unmarshal(line, &rec); err != nil {
		f.bad("line %d: %v", n, err)
		return true
	}
	m := rec.Metadata
	if m == nil || m.Start == nil || *m.Start <= 0 {
		f.bad("line %d: no metadata.request_start_ns", n)
		return true
	}
	q := Request{ID: idOf(m.RequestID, "aiperf-"+strconv.Itoa(n)), IssuedNS: *m.Start, RequestID: m.RequestID,
		Phase: m.Phase, Conversation: cut(m.Conversation), Turn: m.Turn, Source: TokensLoad, AfterFirst: -1,
		Input: rec.Metrics["input_sequence_length"].tokens(), Output: rec.Metrics["output_sequence_length"].tokens()}
	if q.Input < 0 {
		q.Input = rec.Metrics["error_isl"].tokens()
	}
	if q.Output < 0 {
		q.Source = ""
	}
	if latency, ok := rec.Metrics["request_latency"].ns(); ok {
		q.CompleteNS = q.IssuedNS + latency
	} else if m.End != nil && *m.End >= q.IssuedNS {
		q.CompleteNS = *m.End
	}
	if ttft, ok := rec.Metrics["time_to_first_token"].ns(); ok {
		q.FirstNS = q.IssuedNS + ttft
	}
	if m.Ack != nil && *m.Ack >= q.IssuedNS {
		q.ByteNS = *m.Ack
	}
	if rec.Error != nil {
		q.Status, q.Error = Failed, cut(rec.Error.Type)
		if c := rec.Error.Code; c != nil && *c >= 100 && *c < 600 {
			q.HTTPStatus = *c
		}
	} else if m.Cancelled {
		q.Status, q.Error = Failed, "cancelled"
	}
	return f.sendRequest(&q)
}

package events

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/scrapestat/scrapestat/metric"
)

// Detail is what is known of a request beside times and text: the data of an event of type [SampleDetail], which comes
// before the end of its request. It is a JSON object, where MLPerf's data is a tagged array or null, so that a reader
// of theirs meets no data it does not know in the events it reads. A field that is empty, or nil, says nothing.
type Detail struct {
	ISL         *int   `json:"isl,omitempty"`             // tokens of the prompt
	OSL         *int   `json:"osl,omitempty"`             // tokens of the answer
	AfterFirst  *int   `json:"osl_after_first,omitempty"` // those after the first chunk
	TokenSource string `json:"token_source,omitempty"`    // usage, token_ids, ...: who counted
	Chunks      *int   `json:"chunks,omitempty"`          // chunks with content
	Finish      string `json:"finish_reason,omitempty"`
	HTTPStatus  int    `json:"http_status,omitempty"`
	RequestID   string `json:"x_request_id,omitempty"`
	ResponseID  string `json:"response_id,omitempty"` // of the body
	TraceID     string `json:"trace_id,omitempty"`
	Endpoint    string `json:"endpoint,omitempty"`
	Model       string `json:"model,omitempty"`
	Phase       string `json:"phase,omitempty"`
	LastNS      int64  `json:"last_ns,omitempty"` // the last chunk
	Status      string `json:"status,omitempty"`  // failed, error, cancelled: it failed; anything else says nothing
	ErrorType   string `json:"error_type,omitempty"`
	// Rules, of a session.started, says by which rules the session is meant: [LegacyRules], or nothing.
	Rules string `json:"rules,omitempty"`
}

// LegacyRules in the Detail of a [SessionStarted] marks events that come from a recording of MLPerf's endpoints
// benchmark before April 2026.
const LegacyRules = "mlperf-legacy"

// Event returns an event that carries d.
func (d *Detail) Event(sample string, atNS int64) (metric.Event, error) {
	data, err := json.Marshal(d)
	if err != nil {
		return metric.Event{}, fmt.Errorf("encode detail of request %q: %w", sample, err)
	}
	return metric.Event{Sample: sample, Type: SampleDetail, AtNS: atNS, Data: data}, nil
}

// ParseDetail reads the data of an event. ok is false when it is no JSON object.
func ParseDetail(data []byte) (d Detail, ok bool) {
	if t := bytes.TrimLeft(data, " \t\r\n"); len(t) == 0 || t[0] != '{' {
		return d, false
	}
	return d, json.Unmarshal(data, &d) == nil
}

// failed reports whether the detail tells of a failure.
func (d *Detail) failed() bool {
	switch d.Status {
	case "failed", "error", "errored", "cancelled", "canceled", "timeout":
		return true
	}
	return d.ErrorType != "" || d.HTTPStatus >= 400
}

// maxText is the length to which a text of a request is cut that only names something: a model, an error.
const maxText = 256

// apply writes what d knows into r.
func (d *Detail) apply(r *Request) {
	setCount(&r.Input, d.ISL)
	setCount(&r.Output, d.OSL)
	setCount(&r.AfterFirst, d.AfterFirst)
	setCount(&r.chunks, d.Chunks)
	if d.OSL != nil {
		r.Source = d.TokenSource
		r.Source = cmp.Or(r.Source, TokensUsage)
	}
	setText(&r.Finish, d.Finish)
	setText(&r.RequestID, d.RequestID)
	setText(&r.ResponseID, d.ResponseID)
	setText(&r.TraceID, d.TraceID)
	setText(&r.Endpoint, d.Endpoint)
	setText(&r.Model, d.Model)
	setText(&r.Phase, d.Phase)
	if d.HTTPStatus != 0 {
		r.HTTPStatus = d.HTTPStatus
	}
	r.LastNS = max(r.LastNS, d.LastNS)
	if d.failed() {
		r.Status = Failed
		if r.Error == "" {
			r.Error = cut(d.ErrorType)
		}
	}
}

// setCount sets a count that is given and possible.
func setCount(to *int, from *int) {
	if from != nil && *from >= 0 && *from <= maxTokens {
		*to = *from
	}
}

func setText(to *string, from string) {
	if from != "" {
		*to = cut(from)
	}
}

// maxTokens is more than any request has.
const maxTokens = 1 << 30

func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	return string(bytes.ToValidUTF8([]byte(s[:maxText]), nil))
}

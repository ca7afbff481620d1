package proxy

import (
	"bytes"
	"encoding/json"
	"sync/atomic"
)

// scanner reads an answer as it passes: a stream of server-sent events, or one JSON document. It holds a line, an
// event or the document, within the limits.
type scanner struct {
	p      *Proxy
	stream bool

	line    []byte // what of a line has come
	long    bool   // the line is too long: dropped until its end
	data    []byte // of the event
	has     bool   // the event has data
	held    int64
	skipped bool // something was too large to scan

	chunks int  // with content
	done   bool // [DONE]
	failed bool // an error inside the stream
	model  string
	finish string
	usage  *usage

	id      string // of the body
	metrics *vllmMetrics
	timings *llamaTimings
	times   serverTimes
}

type usage struct {
	Prompt     *int `json:"prompt_tokens"`
	Completion *int `json:"completion_tokens"`
	Details    *struct {
		Cached *int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// chunk is what is read of a chunk, or of a whole answer.
type chunk struct {
	ID      string        `json:"id"`
	Metrics *vllmMetrics  `json:"metrics"`
	Timings *llamaTimings `json:"timings"`
	serverTimes
	Model   string          `json:"model"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
	Choices []struct {
		Text   string  `json:"text"`
		Finish *string `json:"finish_reason"`
		Delta  struct {
			Content          filled `json:"content"`
			Reasoning        filled `json:"reasoning"`
			ReasoningContent filled `json:"reasoning_content"`
			ToolCalls        filled `json:"tool_calls"`
			FunctionCall     filled `json:"function_call"`
		} `json:"delta"`
	} `json:"choices"`
}

// filled is whether a value is anything but null, "", [] or {}.
type filled bool

// UnmarshalJSON never fails.
func (f *filled) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case "null", `""`, "[]", "{}":
	default:
		*f = true
	}
	return nil
}

// content reports whether some choice has content, reasoning or a tool call.
func (c *chunk) content() bool {
	for i := range c.Choices {
		d := &c.Choices[i].Delta
		if c.Choices[i].Text != "" || d.Content || d.Reasoning || d.ReasoningContent || d.ToolCalls || d.FunctionCall {
			return true
		}
	}
	return false
}

// write scans the next piece; it keeps nothing of b.
func (s *scanner) write(b []byte) {
	if !s.stream {
		s.line = s.keep(s.line, b)
		return
	}
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			s.line = s.keep(s.line, b)
			return
		}
		line := b[:i]
		if len(s.line) > 0 || s.long {
			s.line = s.keep(s.line, line)
			line = s.line
		}
		s.endLine(line)
		b = b[i+1:]
	}
}

// keep appends to a held text unless it would exceed a limit: then the rest of the line is dropped.
func (s *scanner) keep(to, b []byte) []byte {
	if s.long {
		return to[:0]
	}
	n := len(to) + len(b)
	if n <= cap(to) {
		return append(to, b...)
	}
	size := max(n, min(2*cap(to), s.p.o.MaxScan), 256)
	if n > s.p.o.MaxScan || !s.p.held.take(int64(size-cap(to)), s.p.o.MaxScanTotal) {
		s.long, s.skipped = true, true
		s.p.counts.oversized.Add(1)
		return to[:0]
	}
	s.held += int64(size - cap(to))
	return append(append(make([]byte, 0, size), to...), b...)
}

// budget is the memory that all requests share, in bytes.
type budget struct{ now, most atomic.Int64 }

// take takes n bytes unless that would exceed the limit.
func (b *budget) take(n, limit int64) bool {
	now := b.now.Add(n)
	if now > limit {
		b.now.Add(-n)
		return false
	}
	for {
		most := b.most.Load()
		if now <= most || b.most.CompareAndSwap(most, now) {
			return true
		}
	}
}

// endLine takes a whole line of a stream, without its end.
func (s *scanner) endLine(line []byte) {
	long := s.long
	s.line, s.long = s.line[:0], false
	line = bytes.TrimSuffix(line, []byte("\r"))
	switch value, isData := bytes.CutPrefix(line, []byte("data:")); {
	case long:
	case len(line) == 0:
		s.endEvent()
	case isData:
		value = bytes.TrimPrefix(value, []byte(" "))
		if s.has {
			s.data = s.keep(s.data, []byte("\n"))
		}
		s.data = s.keep(s.data, value)
		s.has, s.long = true, false
	}
}

// endEvent takes the event whose lines have come.
func (s *scanner) endEvent() {
	if s.has {
		s.event(s.data)
	}
	s.data, s.has = s.data[:0], false
}

func (s *scanner) event(data []byte) {
	if string(bytes.TrimSpace(data)) == "[DONE]" {
		s.done = true
		return
	}
	var c chunk
	if json.Unmarshal(data, &c) != nil {
		if len(data) > 0 {
			s.p.counts.unreadable.Add(1)
		}
		return
	}
	s.take(&c)
	if c.content() {
		s.chunks++
	}
}

func (s *scanner) take(c *chunk) {
	if c.Model != "" && s.model == "" {
		s.model = c.Model
	}
	if c.Usage != nil {
		s.usage = c.Usage
	}
	if s.id == "" && len(c.ID) <= 256 {
		s.id = c.ID
	}
	if c.Metrics != nil {
		s.metrics = c.Metrics
	}
	if c.Timings != nil {
		s.timings = c.Timings
	}
	if c.StartEnd != "" { // TensorRT-LLM, after [DONE]
		s.times = serverTimes{short(c.Timing), short(c.StartEnd)}
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		s.failed = true
	}
	for i := range c.Choices {
		if f := c.Choices[i].Finish; f != nil && *f != "" {
			s.finish = *f
		}
	}
}

// close takes what has come of the last event, or the document when it is whole, and gives the memory back.
func (s *scanner) close(whole bool) {
	if s.p == nil {
		return // there was no answer
	}
	switch {
	case s.stream && whole:
		if len(s.line) > 0 {
			s.endLine(s.line)
		}
		s.endEvent()
	case !s.stream && whole && len(s.line) > 0:
		var c chunk
		if json.Unmarshal(s.line, &c) == nil {
			s.take(&c)
		} else {
			s.p.counts.unreadable.Add(1)
		}
	}
	s.p.held.now.Add(-s.held)
	s.line, s.data, s.held = nil, nil, 0
}

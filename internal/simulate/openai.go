package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// completer is a model that answers requests of real clients.
type completer interface {
	submit(r *completionRequest) *sequence
	leave(q *sequence)
}

// completionRequest is what is read of a request; anything else is ignored.
type completionRequest struct {
	Prompt   json.RawMessage `json:"prompt"`
	Messages []struct {
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	MaxTokens           int  `json:"max_tokens"`
	MaxCompletionTokens int  `json:"max_completion_tokens"`
	IgnoreEOS           bool `json:"ignore_eos"`
	Stream              bool `json:"stream"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`

	chat bool
}

// promptTokens takes four bytes for a token.
func (r *completionRequest) promptTokens() int {
	n := len(r.Prompt)
	for _, m := range r.Messages {
		n += len(m.Content)
	}
	return n / 4
}

func (r *completionRequest) limit() int { return max(r.MaxTokens, r.MaxCompletionTokens) }

// maxCompletionBody is the largest request for an answer.
const maxCompletionBody = 16 << 20

// openAI answers the paths of OpenAI's interface where the profile has it, and reports whether it did.
func (s *Server) openAI(w http.ResponseWriter, r *http.Request) bool {
	if _, ok := s.model().(completer); !ok {
		return false
	}
	switch {
	case r.URL.Path == "/v1/models" && r.Method == http.MethodGet:
		s.json(w, http.StatusOK, map[string]any{"object": "list", "data": []any{
			map[string]any{"id": s.opt.Model, "object": "model", "owned_by": "scrapestat",
				"max_model_len": s.opt.Hardware.MaxModelLen}}})
	case r.URL.Path != "/v1/completions" && r.URL.Path != "/v1/chat/completions":
		return false
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", "POST")
		s.json(w, http.StatusMethodNotAllowed, map[string]any{"detail": "Method Not Allowed"})
	default:
		s.complete(w, r)
	}
	return true
}

// model is the model of the process now.
func (s *Server) model() model {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m
}

func (s *Server) json(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // fails when the client has gone
}

// complete lets a request go through the engines and answers as its tokens come.
func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	req := completionRequest{chat: strings.Contains(r.URL.Path, "/chat/")}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCompletionBody))
	if err == nil {
		err = json.Unmarshal(body, &req)
	}
	if err != nil || req.promptTokens() == 0 {
		s.json(w, http.StatusBadRequest, map[string]any{"error": map[string]any{
			"message": "want a JSON object with messages or a prompt",
			"type":    "BadRequestError", "code": http.StatusBadRequest}})
		return
	}
	a := s.admit(&req)
	if id := r.Header.Get("X-Request-Id"); id != "" {
		w.Header().Set("X-Request-Id", id)
	}
	out := &completionAnswer{w: w, req: &req, model: s.opt.Model, call: a}
	if req.Stream {
		out.head()
	}
	for {
		p := s.progress(a)
		switch {
		case p.lost:
			panic(http.ErrAbortHandler) // as when the process behind the connection ends
		case req.Stream:
			out.tokens(p.tokens)
		}
		if p.done {
			out.end(p)
			return
		}
		if !s.wait(r.Context(), p.next) {
			s.hangUp(a)
			return
		}
	}
}

// call is a request of a real client in the process that took it.
type call struct {
	id    int
	w     *world
	m     completer
	q     *sequence
	epoch int64
}

// progress is how far a call has come.
type progress struct {
	tokens, prompt int
	done, lost     bool
	reason         string
	next           time.Duration // until something can happen
}

func (s *Server) admit(req *completionRequest) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	m := s.m.(completer)
	q := m.submit(req)
	return &call{id: q.ID, w: s.w, m: m, q: q, epoch: s.w.origin.Add(s.w.now).Unix()}
}

func (s *Server) progress(a *call) progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.w != a.w {
		return progress{lost: true}
	}
	s.advance()
	p := progress{tokens: a.q.generated, prompt: a.q.PromptTokens, done: a.q.OutputTokens > 0, reason: a.q.Reason}
	if len(s.w.events) > 0 {
		p.next = s.w.events[0].at - s.w.now
	}
	return p
}

func (s *Server) hangUp(a *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.w == a.w {
		a.m.leave(a.q)
	}
}

// wait waits until something can have happened; it returns false when the client has gone.
func (s *Server) wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(max(d, 200*time.Microsecond))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// completionAnswer writes an answer in the form of vLLM's.
type completionAnswer struct {
	w     http.ResponseWriter
	req   *completionRequest
	model string
	call  *call
	sent  int
}

func (o *completionAnswer) head() {
	o.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	o.w.Header().Set("Cache-Control", "no-cache")
	o.w.WriteHeader(http.StatusOK)
	o.flush()
}

// flush sends what was written. It fails when the client has gone, which the next wait tells.
func (o *completionAnswer) flush() { _ = http.NewResponseController(o.w).Flush() }

func (o *completionAnswer) text(i int) string {
	return "t" + strconv.Itoa((o.call.id*7919+i*104729)%50000) + " "
}

// tokens sends the tokens up to the nth, each as a chunk of its own.
func (o *completionAnswer) tokens(n int) {
	if n == o.sent {
		return
	}
	if o.sent == 0 && o.req.chat {
		o.chunk(map[string]any{"role": "assistant", "content": ""}, nil)
	}
	for ; o.sent < n; o.sent++ {
		o.chunk(map[string]any{"content": o.text(o.sent)}, nil)
	}
	o.flush()
}

// chunk sends a delta; of a completion that is no chat its text.
func (o *completionAnswer) chunk(delta map[string]any, finish any) {
	choice := map[string]any{"index": 0, "finish_reason": finish}
	if o.req.chat {
		choice["delta"] = delta
	} else {
		choice["text"], _ = delta["content"].(string)
	}
	o.event(map[string]any{"choices": []any{choice}})
}

func (o *completionAnswer) event(fields map[string]any) {
	o.fill(fields, ".chunk")
	b, err := json.Marshal(fields)
	if err != nil {
		return // texts and numbers always encode
	}
	_, _ = fmt.Fprintf(o.w, "data: %s\n\n", b) // fails when the client has gone
}

func (o *completionAnswer) fill(fields map[string]any, suffix string) {
	fields["id"], fields["object"] = "cmpl-"+strconv.Itoa(o.call.id), "text_completion"
	if o.req.chat {
		fields["id"], fields["object"] = "chatcmpl-"+strconv.Itoa(o.call.id), "chat.completion"+suffix
	}
	fields["created"], fields["model"] = o.call.epoch, o.model
}

// end sends what comes after the last token, or the whole answer of a request that is no stream.
func (o *completionAnswer) end(p progress) {
	usage := map[string]any{"prompt_tokens": p.prompt, "completion_tokens": p.tokens, "total_tokens": p.prompt + p.tokens}
	if o.req.Stream {
		o.chunk(map[string]any{}, p.reason)
		if o.req.StreamOptions.IncludeUsage {
			o.event(map[string]any{"choices": []any{}, "usage": usage})
		}
		_, _ = io.WriteString(o.w, "data: [DONE]\n\n")
		o.flush()
		return
	}
	var all strings.Builder
	for i := range p.tokens {
		all.WriteString(o.text(i))
	}
	choice := map[string]any{"index": 0, "finish_reason": p.reason}
	if o.req.chat {
		choice["message"] = map[string]any{"role": "assistant", "content": all.String()}
	} else {
		choice["text"] = all.String()
	}
	fields := map[string]any{"choices": []any{choice}, "usage": usage}
	o.fill(fields, "")
	o.w.Header().Set("Content-Type", "application/json")
	b, err := json.Marshal(fields)
	if err != nil {
		return // texts and numbers always encode
	}
	_, _ = o.w.Write(b) // fails when the client has gone
}

package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync"
	"time"
)

// edge is how much is looked at of the beginning and the end of a line that is too long.
const edge = 512

// requests is a stream of requests, one a line. One that is too long, or no request at all, is answered with an error
// and left out, so that it does not end the session. The stream ends when what was asked is answered.
type requests struct {
	in   *bufio.Reader
	to   *answers
	rest []byte
}

func newLineReader(r io.Reader) *bufio.Reader { return bufio.NewReaderSize(r, 64<<10) }

// Read implements io.Reader.
func (r *requests) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		var err error
		if r.rest, err = r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// next returns the next line that may be a request, nil for one that was refused.
func (r *requests) next() ([]byte, error) {
	var line, last []byte
	long := false
	for {
		part, err := r.in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxRequest; long {
			line = line[:min(len(line), edge)]
			last = append(last, part[max(0, len(part)-edge):]...)
			last = last[max(0, len(last)-edge):]
		} else {
			line = append(line, part...)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			r.to.settle() // half a line is no request
			return nil, err
		}
	}
	var m message
	switch {
	case long:
		return nil, r.answer(idOf(line, last), -32600, fmt.Sprintf("a request of more than %d bytes is refused", maxRequest))
	case len(bytes.TrimSpace(line)) == 0:
		return nil, nil
	case !json.Valid(line):
		return nil, r.answer(nil, -32700, "a line that is no JSON")
	case json.Unmarshal(line, &m) != nil || m.JSONRPC != "2.0":
		return nil, r.answer(nil, -32600, "a line that is no request of JSON-RPC 2.0")
	}
	if m.asks() {
		r.to.owe(1)
	}
	return line, nil
}

// message is what is looked at of one.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
}

func (m *message) asks() bool { return m.ID != nil && m.Method != "" }

// answer writes an error.
func (r *requests) answer(id json.RawMessage, code int, text string) error {
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id,
		"error": map[string]any{"code": code, "message": text}})
	if err == nil {
		r.to.owe(1)
		_, err = r.to.Write(append(line, '\n'))
	}
	return err
}

var (
	firstID = regexp.MustCompile(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18}|"[^"\\]{1,100}")\s*,`)
	lastID  = regexp.MustCompile(`,\s*"id"\s*:\s*(\d{1,18}|"[^"\\]{1,100}")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)
)

// idOf is the id of a request of which only the ends are known, null where it is at neither.
func idOf(first, last []byte) json.RawMessage {
	for _, m := range [][][]byte{firstID.FindSubmatch(first), lastID.FindSubmatch(last)} {
		if m != nil {
			return m[1]
		}
	}
	return nil
}

// answers writes each line in one piece, of two writers, and knows how many are owed.
type answers struct {
	mu   sync.Mutex
	to   io.Writer
	err  error         // the first
	owed int           // answers to requests
	paid chan struct{} // has room for one: there was an answer
}

func newAnswers(to io.Writer) *answers { return &answers{to: to, paid: make(chan struct{}, 1)} }

func (w *answers) owe(n int) (owed int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.owed += n
	return w.owed
}

// settle waits until nothing is owed, no longer than a call may take.
func (w *answers) settle() {
	late := time.NewTimer(maxCall)
	defer late.Stop()
	for w.owe(0) > 0 {
		select {
		case <-w.paid:
		case <-late.C:
			return
		}
	}
}

// Write implements io.Writer.
func (w *answers) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.to.Write(p)
	if w.err == nil {
		w.err = err
	}
	var m message
	if json.Unmarshal(p, &m) == nil && m.Method == "" {
		w.owed--
		select {
		case w.paid <- struct{}{}:
		default:
		}
	}
	return n, err
}

// Close implements io.Closer. The stream is its owner's.
func (w *answers) Close() error { return nil }

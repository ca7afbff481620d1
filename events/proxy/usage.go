package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
)

// forceUsage makes a streaming request ask for usage. A body that is no JSON object passes as it is: the server will
// tell what is wrong; so does one beyond the budget. The caller calls release when the request has ended.
func (p *Proxy) forceUsage(r *http.Request) (release func(), err error) {
	held := &heldBody{rest: r.Body, limit: p.o.MaxRequest, budget: &p.asked}
	body, whole, err := held.fill(r.ContentLength)
	if err != nil {
		return held.release, err
	}
	r.Body = held
	if !whole {
		p.counts.oversized.Add(1)
		held.pieces = [][]byte{body}
		return held.release, nil
	}
	from, to, text := askForUsage(body)
	held.pieces = [][]byte{body[:from], []byte(text), body[to:]}
	r.ContentLength = int64(from + len(text) + len(body) - to)
	r.Header.Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
	r.TransferEncoding = nil
	return held.release, nil
}

// heldBody is the body of a request that is or was in memory as far as the budget went.
type heldBody struct {
	rest   io.ReadCloser // what is not in memory; nil when all is
	limit  int64
	budget *budget

	mu     sync.Mutex // the transport may close it while it reads
	taken  int64
	pieces [][]byte
	closed bool
}

// fill reads the body, of which size bytes were declared (-1: unknown). Memory grows with what comes. whole is false
// when the budget ended before the body.
func (h *heldBody) fill(size int64) (body []byte, whole bool, err error) {
	for {
		if len(body) == cap(body) {
			most := h.limit
			if size >= 0 {
				most = size
			}
			grown := int(min(max(2*int64(cap(body)), 4<<10), most+1)) // one more, to see the end
			if !h.budget.take(int64(grown-cap(body)), h.limit+1) {
				return body, false, nil
			}
			h.taken += int64(grown - cap(body))
			body = append(make([]byte, 0, grown), body...)
		}
		n, err := h.rest.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case errors.Is(err, io.EOF):
			err = h.rest.Close()
			h.rest = nil
			return body, true, err
		case err != nil:
			return body, false, err
		}
	}
}

func (h *heldBody) Read(b []byte) (int, error) {
	n, closed := h.readHeld(b)
	switch {
	case n > 0 || len(b) == 0:
		return n, nil
	case h.rest != nil:
		return h.rest.Read(b)
	case closed:
		return 0, http.ErrBodyReadAfterClose
	}
	return 0, io.EOF
}

// readHeld reads of what is in memory.
func (h *heldBody) readHeld(b []byte) (n int, closed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.pieces) > 0 && n < len(b) {
		k := copy(b[n:], h.pieces[0])
		if n += k; k == len(h.pieces[0]) {
			h.pieces = h.pieces[1:]
		} else {
			h.pieces[0] = h.pieces[0][k:]
		}
	}
	return n, h.closed
}

// Close forgets what was held: the request was sent.
func (h *heldBody) Close() error {
	h.release()
	if h.rest == nil {
		return nil
	}
	return h.rest.Close()
}

func (h *heldBody) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.budget.now.Add(-h.taken)
	h.taken, h.pieces, h.closed = 0, nil, true
}

// maxStreamOptions is the longest value of stream_options that is changed.
const maxStreamOptions = 64 << 10

// askForUsage returns the text that, in place of body[from:to], makes a streaming request ask for usage; nothing where
// that is not needed or not possible.
func askForUsage(body []byte) (from, to int, text string) {
	start := bytes.IndexByte(body, '{') + 1
	if !json.Valid(body) || len(bytes.TrimSpace(body[:max(start-1, 0)])) > 0 {
		return 0, 0, ""
	}
	stream := false
	eachMember(body, func(name, value []byte, at int) {
		switch string(name) {
		case `"stream"`:
			stream = string(value) == "true"
		case `"stream_options"`:
			from, to = at, at+len(value)
		}
	})
	if !stream || to-from > maxStreamOptions {
		return 0, 0, ""
	}
	if to == 0 {
		return start, start, `"stream_options":{"include_usage":true},`
	}
	options := map[string]json.RawMessage{}
	if json.Unmarshal(body[from:to], &options) != nil || string(options["include_usage"]) == "true" {
		return 0, 0, ""
	}
	if options == nil { // it was null
		options = map[string]json.RawMessage{}
	}
	options["include_usage"] = json.RawMessage("true")
	changed, err := json.Marshal(options)
	if err != nil {
		return 0, 0, ""
	}
	return from, to, string(changed)
}

// eachMember calls visit for each member of a valid JSON object: its quoted name, its value and the place of that.
func eachMember(body []byte, visit func(name, value []byte, at int)) {
	var name []byte
	depth, value := 0, -1
	for i := 0; i < len(body); i++ {
		switch c := body[i]; c {
		case '"':
			end := i + 1
			for ; body[end] != '"'; end++ {
				if body[end] == '\\' {
					end++
				}
			}
			if depth == 1 && value < 0 {
				name = body[i : end+1]
			}
			i = end
		case ':':
			if depth == 1 {
				value = i + 1
			}
		case '{', '[':
			depth++
		case ',', '}', ']':
			if depth == 1 && value >= 0 {
				text := bytes.TrimLeft(body[value:i], " \t\r\n")
				visit(name, bytes.TrimRight(text, " \t\r\n"), i-len(text))
				value = -1
			}
			if c != ',' {
				depth--
			}
		}
	}
}

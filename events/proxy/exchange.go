package proxy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/metric"
)

// What may go wrong with a request, as type of its error.
const (
	clientGone     = "client_disconnected"
	requestBroken  = "request_broken" // its body could not be read
	upstreamBroken = "upstream_broken"
	streamCut      = "stream_cut"   // ended without finish_reason and [DONE]
	streamError    = "stream_error" // the server said so inside the stream
)

// exchange is one recorded request. The transport's callbacks may come from goroutines of its own, also after the end;
// everything else is of the one that serves the request.
type exchange struct {
	p         *Proxy
	id        string
	endpoint  string
	requestID string
	traceID   string
	inHeaders [3]string   // durations in ms
	gone      func() bool // the client has gone
	status    int
	scan      scanner
	scanned   bool // the body is one that can be scanned
	stream    bool
	ended     bool // the body came to its end
	lastNS    int64
	own       time.Duration // that the proxy itself took for handing on

	mu       sync.Mutex
	issuedNS int64
	sentNS   int64
	done     bool
	kind     string // of the first error
	bodyErr  error  // of reading the request
}

// question is the body of a request on its way to the upstream.
type question struct {
	io.ReadCloser
	x *exchange
}

// Read notes why the body cannot be read, which the transport does not tell from a fault of the upstream.
func (q *question) Read(b []byte) (int, error) {
	n, err := q.ReadCloser.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		q.x.mu.Lock()
		defer q.x.mu.Unlock()
		q.x.bodyErr = err
	}
	return n, err
}

// unread reports whether the request could not be read to its end.
func (x *exchange) unread() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.bodyErr != nil
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// in returns a context by which the transport tells x of its progress.
func (x *exchange) in(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(context.WithValue(ctx, exchangeKey{}, x), &httptrace.ClientTrace{
		WroteRequest: func(i httptrace.WroteRequestInfo) {
			if i.Err == nil {
				x.wrote(x.p.now())
			}
		},
	})
}

func (x *exchange) record(name string, atNS int64, data []byte) {
	x.p.rec.Record(metric.Event{Sample: x.id, Type: name, AtNS: atNS, Data: data})
}

func (x *exchange) issued(atNS int64) {
	x.issuedNS = atNS
	x.p.counts.requests.Add(1)
	x.record(events.SampleIssued, atNS, nil)
}

// wrote notes when the request was sent; of a second attempt on another connection, the last one.
func (x *exchange) wrote(atNS int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.done {
		return
	}
	x.sentNS = atNS
	x.record(events.SampleUpstream, atNS, nil)
}

func (x *exchange) fail(kind string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.kind = cmp.Or(x.kind, kind)
}

// headers notes what the head of the answer says.
func (x *exchange) headers(resp *http.Response) {
	x.status = resp.StatusCode
	if id := headerID(resp.Header); id != "" {
		x.requestID = id
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	x.stream = kind == "text/event-stream"
	x.scanned = x.stream || kind == "application/json"
	if c := resp.Header.Get("Content-Encoding"); c != "" && c != "identity" {
		x.scanned = false
	}
	if !x.scanned && resp.StatusCode < 400 {
		x.p.counts.unscanned.Add(1)
	}
	x.scan = scanner{p: x.p, stream: x.stream}
	x.timesOf(resp.Header)
}

// tap is the body of an answer on its way to the client.
type tap struct {
	x      *exchange
	body   io.ReadCloser
	readAt time.Time // of the bytes that are being handed on
	any    bool
}

// Read hands on what has come. The time from one read to the next is what it took to write and flush, for a client
// that is quick.
func (t *tap) Read(b []byte) (int, error) {
	if !t.readAt.IsZero() {
		t.x.own += time.Since(t.readAt)
	}
	n, err := t.body.Read(b)
	t.readAt = time.Now()
	if n > 0 {
		t.x.saw(b[:n], t.x.p.now(), !t.any)
		t.any = true
	}
	switch {
	case errors.Is(err, io.EOF):
		t.x.ended = true
	case err != nil:
		t.x.broke()
	}
	return n, err
}

// Close closes the body of the upstream.
func (t *tap) Close() error { return t.body.Close() }

// broke notes that the answer could not be read any further.
func (x *exchange) broke() {
	if x.gone() {
		x.fail(clientGone)
		return
	}
	x.fail(upstreamBroken)
}

// saw scans a piece of the body.
func (x *exchange) saw(b []byte, atNS int64, first bool) {
	if first {
		x.record(events.SampleFirstByte, atNS, nil)
	}
	if !x.scanned {
		return
	}
	before := x.scan.chunks
	x.scan.write(b)
	if x.scan.chunks == before || !x.stream {
		return
	}
	x.lastNS = atNS
	if before == 0 {
		x.record(events.SampleFirst, atNS, nil)
		before++
	}
	for ; x.p.o.Chunks && before < x.scan.chunks; before++ {
		x.record(events.SampleNext, atNS, nil)
	}
}

// finish records the end of the request, however it came.
func (x *exchange) finish() {
	now := x.p.now()
	x.mu.Lock()
	x.done = true
	kind, sentNS := x.kind, x.sentNS
	x.mu.Unlock()
	x.scan.close(x.ended)
	kind = x.verdict(kind)
	x.p.counts.end(kind)
	if kind != "" {
		name := events.ErrorGeneric
		if kind == clientGone || kind == requestBroken {
			name = events.ErrorClient
		}
		data, err := json.Marshal([]string{"ErrorData", kind, errorTexts[kind]})
		if err != nil {
			data = nil // strings always encode
		}
		x.record(name, now, data)
	}
	d := x.detail(kind)
	if ev, err := d.Event(x.id, now); err == nil { // a struct of texts and numbers always encodes
		x.p.rec.Record(ev)
	}
	x.record(events.SampleComplete, now, []byte("null"))
	if told, q := x.served(); told != "" && x.p.o.Served != nil {
		x.p.o.Served(told, &q)
	}
	if sentNS != 0 && kind == "" {
		x.p.sent.add(time.Duration(sentNS - x.issuedNS))
		x.p.added.add(time.Duration(sentNS-x.issuedNS) + x.own)
	}
}

// verdict is the type of error of a request whose first error so far is kind.
func (x *exchange) verdict(kind string) string {
	switch {
	case kind != "":
		return kind
	case x.status >= 400:
		return "http_error"
	case x.scan.failed:
		return streamError
	case !x.ended && x.status != 0:
		return clientGone // nothing was wrong with the answer, yet it was not read to its end
	case x.stream && x.scanned && !x.scan.skipped && !x.scan.done && x.scan.finish == "":
		return streamCut
	}
	return ""
}

// errorTexts are the messages of errors, by type.
var errorTexts = map[string]string{
	clientGone:             "the client went away",
	requestBroken:          "the request did not come whole",
	upstreamBroken:         "the connection of the server broke",
	streamCut:              "the stream ended without finish_reason and [DONE]",
	streamError:            "the server reported an error inside the stream",
	"http_error":           "the server answered with an error status",
	"upstream_unreachable": "the server could not be reached",
	"request_too_large":    "the request is larger than the proxy lets pass",
}

// detail is what is known of the request at its end.
func (x *exchange) detail(kind string) events.Detail {
	d := events.Detail{Finish: x.scan.finish, HTTPStatus: x.status, RequestID: x.requestID, Endpoint: x.endpoint,
		Model: x.scan.model, LastNS: x.lastNS, ErrorType: kind, ResponseID: x.scan.id, TraceID: x.traceID}
	if len(d.Endpoint) > 256 {
		d.Endpoint = "" // no path of a server that we know
	}
	if x.stream {
		d.Chunks = &x.scan.chunks
	}
	if u := x.scan.usage; u != nil {
		d.ISL, d.OSL, d.TokenSource = u.Prompt, u.Completion, "usage"
	}
	return d
}

package proxy

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/metric"
)

// Recorder takes events. It must not block and is used concurrently; an
// *events.Recorder is one.
type Recorder interface {
	Record(ev metric.Event)
}

// Options configure a proxy. Only Upstream and Recorder have no default.
type Options struct {
	// Upstream is the address of the server, http or https, with a path that is put before that of each request, if any.
	Upstream string
	Recorder Recorder
	// Transport carries the requests; nil is one of the proxy's own, without a proxy of the environment and without
	// compression.
	Transport http.RoundTripper
	// Chunks records an event for each chunk with content after the first.
	Chunks bool
	// ForceUsage adds stream_options.include_usage to streaming requests that do not have it. The answer then has a chunk
	// that the client did not ask for.
	ForceUsage bool
	// Traceparent gives requests that have none a trace of their own, by which the server's record is found.
	Traceparent bool
	// Served takes what servers tell of a request in its answer, by one of the kinds of Served; nil takes nothing. It must
	// not block and is used concurrently. The record is valid until it returns, and is not checked.
	Served func(kind string, q *metric.ServerRequest)
	// Untracked leaves it to Track to say when performance is tracked. Otherwise it is from the start of Serve to its end.
	Untracked bool

	MaxRequest   int64 // bytes of the body of a request; 0 is 64 MiB
	MaxScan      int   // bytes of a line, or of an answer that is no stream; 0 is 1 MiB
	MaxScanTotal int64 // the same of all requests together; 0 is 64 MiB
	MaxStreams   int   // requests at the same time; 0 is 4096
}

// Proxy is a recording reverse proxy and its http.Handler. It is safe for concurrent use.
type Proxy struct {
	o       Options
	rec     Recorder
	base    *url.URL
	reverse *httputil.ReverseProxy
	own     *http.Transport // nil when Options.Transport was given
	origin  time.Time
	run     string // makes the names of requests unlike those of other runs
	next    atomic.Uint64
	open    atomic.Int64
	held    budget // for scanning answers
	asked   budget // for bodies that Options.ForceUsage changes, up to MaxRequest together
	counts  counts
	added   delays
	sent    delays

	mu                sync.Mutex
	tracking, tracked bool // now, and ever
}

// New returns a proxy. It fails when the upstream is no http or https address.
func New(o Options) (*Proxy, error) {
	base, err := url.Parse(o.Upstream)
	if err != nil {
		return nil, errors.New("read upstream: it is no URL, want http://HOST:PORT") // err may quote a password
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil || base.RawQuery != "" ||
		base.Fragment != "" {
		return nil, fmt.Errorf("read upstream %q: want http://HOST:PORT or https://HOST, without user, query and fragment",
			base.Redacted())
	}
	if o.Recorder == nil {
		return nil, errors.New("make proxy: Options.Recorder is nil")
	}
	for _, d := range []struct {
		to   *int64
		zero int64
	}{{&o.MaxRequest, 64 << 20}, {&o.MaxScanTotal, 64 << 20}} {
		if *d.to == 0 {
			*d.to = d.zero
		}
	}
	o.MaxScan = cmp.Or(o.MaxScan, 1<<20)
	o.MaxStreams = cmp.Or(o.MaxStreams, 4096)
	if o.MaxRequest < 0 || o.MaxScan < 0 || o.MaxScanTotal < 0 || o.MaxStreams < 0 {
		return nil, errors.New("make proxy: a limit is negative")
	}
	name := make([]byte, 8)
	rand.Read(name) // never fails
	p := &Proxy{o: o, rec: o.Recorder, base: base, origin: time.Now(), run: hex.EncodeToString(name)}
	transport := o.Transport
	if transport == nil {
		p.own = newTransport(o.MaxStreams)
		transport = p.own
	}
	p.reverse = &httputil.ReverseProxy{
		Rewrite:        p.rewrite,
		Transport:      transport,
		FlushInterval:  -1,
		BufferPool:     &buffers{},
		ModifyResponse: p.answered,
		ErrorHandler:   p.failed,
		ErrorLog:       slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // what happens is recorded and counted
	}
	return p, nil
}

// newTransport keeps a connection for each stream, so that the end of one does not make the next one dial.
func newTransport(streams int) *http.Transport {
	return &http.Transport{
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxIdleConns:           streams,
		MaxIdleConnsPerHost:    streams,
		IdleConnTimeout:        4 * time.Second, // before uvicorn ends an idle connection, after 5 s
		DisableCompression:     true,
		MaxResponseHeaderBytes: 256 << 10,
		WriteBufferSize:        16 << 10,
		ReadBufferSize:         16 << 10,
	}
}

// now is the present in nanoseconds since 1970, safe against steps of the clock.
func (p *Proxy) now() int64 { return p.origin.UnixNano() + int64(time.Since(p.origin)) }

// Record tells the recorder of an event of the session at the present.
func (p *Proxy) Record(name string, data []byte) {
	p.rec.Record(metric.Event{Type: name, AtNS: p.now(), Data: data})
}

// Track tells the recorder that from now on performance is tracked, or is not any more. Requests that are issued while
// it is not are warm-up: reports leave them out. To say again what is so already tells nothing.
func (p *Proxy) Track(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case on == p.tracking:
		return
	case on:
		p.Record(events.StartTracking, nil)
	default:
		p.Record(events.StopTracking, nil)
	}
	p.tracking, p.tracked = on, true
}

// recorded reports whether a request is one for an answer of a model.
func recorded(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(strings.TrimSuffix(r.URL.Path, "/"), "/completions")
}

// ServeHTTP passes a request on.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.open.Add(1) > int64(p.o.MaxStreams) {
		p.open.Add(-1)
		p.counts.refused.Add(1)
		http.Error(w, fmt.Sprintf("scrapestat proxy: more than %d requests at the same time (--max-streams)", p.o.MaxStreams),
			http.StatusServiceUnavailable)
		return
	}
	defer p.open.Add(-1)
	tooLarge := r.ContentLength > p.o.MaxRequest // as it says before anything was read
	if !recorded(r) {
		p.counts.passed.Add(1)
		if tooLarge {
			p.failed(w, r, &http.MaxBytesError{Limit: p.o.MaxRequest})
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, p.o.MaxRequest)
		p.reverse.ServeHTTP(w, r)
		return
	}
	x := &exchange{p: p, id: p.run + "-" + strconv.FormatUint(p.next.Add(1), 10), endpoint: r.URL.Path,
		requestID: headerID(r.Header), traceID: p.traceOf(r.Header)}
	x.gone = func() bool { return r.Context().Err() != nil }
	x.issued(p.now())
	defer x.finish() // also when the copy panics with http.ErrAbortHandler
	if tooLarge {
		p.failed(w, r.WithContext(x.in(r.Context())), &http.MaxBytesError{Limit: p.o.MaxRequest})
		return
	}
	r.Body = &question{ReadCloser: http.MaxBytesReader(w, r.Body, p.o.MaxRequest), x: x}
	if p.o.ForceUsage {
		release, err := p.forceUsage(r)
		defer release()
		if err != nil {
			p.failed(w, r.WithContext(x.in(r.Context())), err)
			return
		}
	}
	p.reverse.ServeHTTP(w, r.WithContext(x.in(r.Context())))
}

// rewrite makes the request for the upstream.
func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	r.SetURL(p.base)
	for _, h := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if v, ok := r.In.Header[h]; ok {
			r.Out.Header[h] = v // as if there were no proxy
		}
	}
	if exchangeOf(r.In.Context()) != nil {
		r.Out.Header.Set("Accept-Encoding", "identity")
	}
}

// answered sees the headers of an answer and takes its place at the body.
func (p *Proxy) answered(resp *http.Response) error {
	x := exchangeOf(resp.Request.Context())
	if x == nil || resp.StatusCode == http.StatusSwitchingProtocols {
		return nil
	}
	x.headers(resp)
	resp.Body = &tap{x: x, body: resp.Body}
	return nil
}

// failed answers a request that the upstream did not.
func (p *Proxy) failed(w http.ResponseWriter, r *http.Request, err error) {
	status, kind := http.StatusBadGateway, "upstream_unreachable"
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		status, kind = http.StatusRequestEntityTooLarge, "request_too_large"
	case r.Context().Err() != nil:
		kind = clientGone
	}
	text := "scrapestat proxy: the upstream cannot be reached"
	x := exchangeOf(r.Context())
	if x != nil && x.unread() && large == nil {
		status, kind, text = http.StatusBadRequest, requestBroken, "scrapestat proxy: the request did not come whole"
	}
	if x != nil {
		x.fail(kind)
		if kind != clientGone { // who saw no status
			x.status = status
		}
	}
	if large != nil {
		w.Header().Set("Connection", "close") // its body is not read
		text = fmt.Sprintf("scrapestat proxy: the request is larger than %d bytes (--max-request)", large.Limit)
	}
	http.Error(w, text, status)
}

// headerID is the x-request-id of a request or an answer; one that is too long or odd is none.
func headerID(h http.Header) string {
	id := h.Get("X-Request-Id")
	if len(id) > 256 || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return ""
	}
	return id
}

// end tells the recorder that the session has ended, with what the proxy itself cost.
func (p *Proxy) end() {
	if !p.tracked { // an empty stretch: all was warm-up
		p.Track(true)
	}
	p.Track(false)
	p.Record(events.SessionEnded, p.Stats().json())
}

// discard is a recorder that keeps nothing.
type discard struct{}

// Record does nothing.
func (discard) Record(metric.Event) {}

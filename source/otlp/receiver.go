package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// The limits of what is accepted. Messages are counted after decompression.
const (
	maxMessage     = 16 << 20
	maxRatio       = 100 // decompressed to compressed
	maxConnections = 64
	atOnce         = 4 // messages in memory
	bodyTimeout    = 30 * time.Second
)

// The paths of OTLP.
const (
	grpcPath = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
	httpPath = "/v1/traces"
)

// Receiver listens for traces, of gRPC and of HTTP on the same port.
type Receiver struct {
	ln    net.Listener
	srv   *http.Server
	slots chan struct{}
	done  chan struct{} // Serve has ended

	mu sync.Mutex // of d
	d  *Decoder
}

// Listen returns a receiver on host:port, with http:// before it or not, for the caller to Serve. record is called by
// one goroutine at a time; a record is valid until it returns. The caller must Close the receiver.
func Listen(ctx context.Context, address string, record func(*metric.ServerRequest)) (*Receiver, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		return nil, fmt.Errorf("listen for traces: %w", err)
	}
	r := &Receiver{ln: ln, slots: make(chan struct{}, atOnce), done: make(chan struct{}), d: NewDecoder(record)}
	r.srv = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 5 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0), Protocols: new(http.Protocols),
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 16, MaxReceiveBufferPerConnection: 1 << 20,
			MaxReceiveBufferPerStream: 1 << 20}}
	r.srv.Protocols.SetHTTP1(true)
	r.srv.Protocols.SetUnencryptedHTTP2(true)
	return r, nil
}

// Serve answers until Close is called.
func (r *Receiver) Serve() error {
	defer close(r.done)
	err := r.srv.Serve(&limited{Listener: r.ln, free: make(chan struct{}, maxConnections)})
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("receive traces: %w", err)
}

// Addr is where it listens.
func (r *Receiver) Addr() net.Addr { return r.ln.Addr() }

// Counts says what came so far.
func (r *Receiver) Counts() metric.ServerCounts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.d.Counts()
}

// Close waits up to two seconds for messages that are under way, and ends Serve, which must have been called. record is
// not called after it.
func (r *Receiver) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	err := r.srv.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = r.srv.Close()
	}
	<-r.done
	for range atOnce { // no handler is within take
		r.slots <- struct{}{}
	}
	if err != nil {
		return fmt.Errorf("end receiver of traces: %w", err)
	}
	return nil
}

// Discard closes a receiver whose Serve was not called.
func (r *Receiver) Discard() error { return r.ln.Close() }

// limited accepts so many connections at the same time and closes others at once.
type limited struct {
	net.Listener
	free chan struct{}
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	select {
	case l.free <- struct{}{}:
		return &counted{Conn: c, free: l.free}, nil
	default:
		_ = c.Close() // its client tries again, later and later
		return c, nil
	}
}

// counted gives its place back when it is closed.
type counted struct {
	net.Conn
	once sync.Once
	free chan struct{}
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.once.Do(func() { <-c.free })
	return c.Conn.Close()
}

// failure is an answer that is no success: HTTP's status and gRPC's code.
type failure struct {
	status, code int
	text         string
}

// Error implements error.
func (f *failure) Error() string { return f.text }

var (
	errInvalid  = &failure{http.StatusBadRequest, 3, "no ExportTraceServiceRequest"}
	errLarge    = &failure{http.StatusRequestEntityTooLarge, 3, "larger than 16 MiB, or compressed beyond 1:100"}
	errEncoding = &failure{http.StatusUnsupportedMediaType, 12, "compression is none or gzip"}
	errType     = &failure{http.StatusUnsupportedMediaType, 3, "content type is none of OTLP"}
	errBody     = &failure{http.StatusBadRequest, 3, "the request ended early"}
)

// ServeHTTP implements http.Handler.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	kind, _, _ := strings.Cut(q.Header.Get("Content-Type"), ";")
	isRPC := q.ProtoMajor == 2 && (kind == "application/grpc" || kind == "application/grpc+proto")
	path := httpPath
	if isRPC {
		path = grpcPath
	}
	switch {
	case q.URL.Path != path && isRPC:
		answerRPC(w, &failure{code: 12, text: "this takes traces alone"})
		return
	case q.URL.Path != path:
		http.Error(w, "this takes traces alone, at "+httpPath, http.StatusNotFound)
		return
	case q.Method != http.MethodPost:
		http.Error(w, "want POST", http.StatusMethodNotAllowed)
		return
	}
	r.slots <- struct{}{}
	defer func() { <-r.slots }()
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)) // both protocols can
	if isRPC {
		answerRPC(w, r.takeRPC(q))
		return
	}
	if f := r.takeHTTP(kind, q); f != nil {
		http.Error(w, f.text, f.status)
		return
	}
	w.Header().Set("Content-Type", kind)
	if kind == "application/json" {
		_, _ = io.WriteString(w, "{}") // who is gone needs no answer
	}
}

// answerRPC ends a call: the empty response of a success, or the code of a failure.
func answerRPC(w http.ResponseWriter, f *failure) {
	h := w.Header()
	h.Set("Content-Type", "application/grpc")
	h.Set("Trailer", "Grpc-Status, Grpc-Message")
	if f == nil {
		_, _ = w.Write(make([]byte, 5)) // not compressed, no bytes
		h.Set("Grpc-Status", "0")
		return
	}
	w.WriteHeader(http.StatusOK)
	h.Set("Grpc-Status", fmt.Sprint(f.code))
	h.Set("Grpc-Message", f.text)
}

// takeRPC reads the one message of a call.
func (r *Receiver) takeRPC(q *http.Request) *failure {
	head := make([]byte, 5)
	if _, err := io.ReadFull(q.Body, head); err != nil {
		return errBody
	}
	size := int64(binary.BigEndian.Uint32(head[1:]))
	if size > maxMessage {
		return errLarge
	}
	encoding := ""
	if head[0] == 1 {
		encoding = q.Header.Get("Grpc-Encoding")
	}
	message, f := read(io.LimitReader(q.Body, size), encoding)
	switch {
	case f != nil:
		return f
	case encoding == "" && int64(len(message)) != size:
		return errBody
	}
	return r.take(message, (*Decoder).Protobuf)
}

// takeHTTP reads a body.
func (r *Receiver) takeHTTP(kind string, q *http.Request) *failure {
	decode := (*Decoder).Protobuf
	switch kind {
	case "application/x-protobuf":
	case "application/json":
		decode = (*Decoder).JSON
	default:
		return errType
	}
	message, f := read(q.Body, q.Header.Get("Content-Encoding"))
	if f != nil {
		return f
	}
	return r.take(message, decode)
}

func (r *Receiver) take(message []byte, decode func(*Decoder, []byte) error) *failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := decode(r.d, message); err != nil {
		r.d.counts.Note("a message: %v", err)
		return errInvalid
	}
	return nil
}

// read reads a message of a compression. Memory grows with what comes.
func read(body io.Reader, encoding string) ([]byte, *failure) {
	sent := &counter{r: io.LimitReader(body, maxMessage+1)}
	var in io.Reader = sent
	switch encoding {
	case "", "identity":
	case "gzip":
		z, err := gzip.NewReader(sent)
		if err != nil {
			return nil, errBody
		}
		in = z
	default:
		return nil, errEncoding
	}
	var b bytes.Buffer
	for {
		n, err := io.CopyN(&b, in, 256<<10)
		switch {
		case b.Len() > maxMessage, encoding == "gzip" && int64(b.Len()) > maxRatio*(sent.n+1024):
			return nil, errLarge
		case errors.Is(err, io.EOF):
			return b.Bytes(), nil
		case err != nil, n == 0:
			return nil, errBody
		}
	}
}

// counter counts what is read.
type counter struct {
	r io.Reader
	n int64
}

// Read implements io.Reader.
func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

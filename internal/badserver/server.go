package badserver

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options says how a server is to be started.
type Options struct {
	Script Script
	// Network and Address are those of net.Listen; "" is TCP on a free port of loopback.
	Network, Address string
	// TLS makes it an https server.
	TLS *tls.Config
}

// Server serves a script. Its methods may be called concurrently.
type Server struct {
	Addr string // HOST:PORT, or the path of a socket

	o     Options
	done  chan struct{} // closed by Close: ends every wait
	close sync.Once
	wg    sync.WaitGroup

	mu     sync.Mutex
	ln     net.Listener // nil while it is down
	conns  map[net.Conn]bool
	n      int
	served []Served
}

// Start starts a server. The caller must Close it.
func Start(o Options) (*Server, error) {
	o.Network = cmp.Or(o.Network, "tcp")
	o.Address = cmp.Or(o.Address, "127.0.0.1:0")
	s := &Server{o: o, done: make(chan struct{}), conns: map[net.Conn]bool{}}
	if err := s.Up(); err != nil {
		return nil, err
	}
	return s, nil
}

// Up begins to listen, at the same address as before [Server.Down].
func (s *Server) Up() error {
	address := s.o.Address
	if s.Addr != "" {
		address = s.Addr
	}
	ln, err := net.Listen(s.o.Network, address)
	if err != nil {
		return fmt.Errorf("start server: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Addr = cmp.Or(s.Addr, ln.Addr().String())
	s.ln = ln
	if s.o.TLS != nil {
		ln = tls.NewListener(ln, s.o.TLS)
	}
	s.wg.Go(func() { s.accept(ln) })
	return nil
}

// Down stops listening and resets all connections, as a server that is killed. A server that is down stays so.
func (s *Server) Down() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ln == nil {
		return
	}
	_ = s.ln.Close() // the address is free again; there is nothing to lose
	s.ln = nil
	for c := range s.conns {
		reset(c)
	}
}

// Close ends the server and waits for its goroutines.
func (s *Server) Close() {
	s.close.Do(func() { close(s.done) })
	s.Down()
	s.wg.Wait()
}

func (s *Server) accept(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return // closed
		}
		s.mu.Lock()
		s.conns[c] = true
		s.mu.Unlock()
		s.wg.Go(func() {
			s.serve(c)
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.conns, c)
			_ = c.Close() // the answer is judged by who reads it
		})
	}
}

// serve answers the requests of a connection until one of them ends it.
func (s *Server) serve(c net.Conn) {
	r := bufio.NewReader(c)
	for reused := false; ; reused = true {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		s.mu.Lock()
		n := s.n
		a := s.o.Script(n)
		if a.Path == "" || a.Path == req.URL.Path {
			s.n++
			a.lines = max(a.lines, sampleLines(a.Body))
		} else {
			a = Answer{Status: http.StatusNotFound, Type: "text/plain"}
		}
		s.mu.Unlock()
		complete := s.answer(c, a)
		s.mu.Lock()
		s.served = append(s.served, Served{Path: req.URL.Path, Answer: n, Kind: a.Kind, Status: a.status(), Lines: a.lines,
			Reused: reused, Complete: complete})
		s.mu.Unlock()
		if !complete || a.Unbounded || a.Kind != HTTP || a.Tail != "" {
			return
		}
	}
}

// answer gives one answer and reports whether all of it was sent.
func (s *Server) answer(c net.Conn, a Answer) bool {
	if !s.wait(a.Delay) {
		return false
	}
	switch a.Kind {
	case Hang:
		untilGone(c)
		return false
	case Reset:
		reset(c)
		return false
	case Close:
		return false
	case Raw:
		return s.drip(c, a.Body, a.Drip)
	}
	if _, err := c.Write(a.head()); err != nil {
		return false
	}
	switch {
	case a.Bomb > 0:
		return bomb(c, a.Bomb) == nil
	case a.Cut > 0:
		_, _ = c.Write(a.framed()[:min(a.Cut, len(a.framed()))])
		return false
	}
	return s.drip(c, append(a.framed(), a.Tail...), a.Drip)
}

func (a *Answer) status() int {
	if a.Kind != HTTP {
		return 0
	}
	if a.Status == 0 {
		return http.StatusOK
	}
	return a.Status
}

func (a *Answer) head() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", a.status(), http.StatusText(a.status()))
	if !a.Untyped && a.Type != "" {
		fmt.Fprintf(&b, "Content-Type: %s\r\n", a.Type)
	}
	for _, h := range a.Header {
		fmt.Fprintf(&b, "%s\r\n", h)
	}
	switch {
	case a.Chunked:
		b.WriteString("Transfer-Encoding: chunked\r\n")
	case a.Unbounded:
		b.WriteString("Connection: close\r\n")
	default:
		length := int64(len(a.Body))
		if a.Length > 0 {
			length = a.Length
		}
		fmt.Fprintf(&b, "Content-Length: %d\r\n", length)
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

// framed is the body as it goes over the wire.
func (a *Answer) framed() []byte {
	if !a.Chunked {
		return bytes.Clone(a.Body)
	}
	var b bytes.Buffer
	for rest := a.Body; len(rest) > 0; {
		n := min(64, len(rest))
		b.WriteString(strconv.FormatInt(int64(n), 16) + "\r\n")
		b.Write(rest[:n])
		b.WriteString("\r\n")
		rest = rest[n:]
	}
	b.WriteString("0\r\n\r\n")
	return b.Bytes()
}

// drip writes body, one byte at a time when pause is set.
func (s *Server) drip(c net.Conn, body []byte, pause time.Duration) bool {
	if pause <= 0 {
		_, err := c.Write(body)
		return err == nil
	}
	for i := range body {
		if !s.wait(pause) {
			return false
		}
		if _, err := c.Write(body[i : i+1]); err != nil {
			return false
		}
	}
	return true
}

// wait waits for d, and reports false when the server ends first.
func (s *Server) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.done:
		return false
	}
}

// untilGone reads until the client has gone or the server ends: Down closes the connection then.
func untilGone(c net.Conn) {
	_, _ = io.Copy(io.Discard, c)
}

// reset ends a connection so that the peer gets a reset, not an end of file.
func reset(c net.Conn) {
	var tcp *net.TCPConn
	switch c := c.(type) {
	case *net.TCPConn:
		tcp = c
	case *tls.Conn:
		tcp, _ = c.NetConn().(*net.TCPConn)
	}
	if tcp != nil {
		_ = tcp.SetLinger(0) // a plain close is as good
	}
	_ = c.Close()
}

// bomb writes n zero bytes, gzipped, without holding them.
func bomb(w io.Writer, n int64) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	_, err = io.Copy(z, io.LimitReader(zeros{}, n))
	return errors.Join(err, z.Close())
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Served is one answer as it was given.
type Served struct {
	Path   string
	Answer int // of the script, counting from 0; for another path the one that was next
	Kind   Kind
	Status int // 0 when no head was sent
	Lines  int // sample lines of the body
	// Reused reports whether the connection had brought a request before. When it breaks
	// then, before a byte of an answer, Go's client asks again on another one.
	Reused bool
	// Complete reports whether all of the answer was handed to the connection.
	Complete bool
}

// Good reports whether it was a whole answer with status 200.
func (s Served) Good() bool { return s.Complete && s.Kind == HTTP && s.Status == http.StatusOK }

// Ledger is what a server served, in order.
type Ledger []Served

// Ledger returns what was served so far, in the order of the script. An answer that is being given is not in it.
func (s *Server) Ledger() Ledger {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := append(Ledger(nil), s.served...)
	slices.SortStableFunc(l, func(a, b Served) int { return a.Answer - b.Answer })
	return l
}

// Answers is how many answers of the script were begun.
func (s *Server) Answers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// Good counts the whole answers with status 200, and their sample lines.
func (l Ledger) Good() (answers, lines int) {
	for _, s := range l {
		if s.Good() {
			answers++
			lines += s.Lines
		}
	}
	return answers, lines
}

// String says how often each answer was given.
func (l Ledger) String() string {
	var words []string
	count := map[string]int{}
	for _, s := range l {
		word := [...]string{"http", "raw", "hang", "reset", "close"}[s.Kind]
		if s.Kind == HTTP {
			word = strconv.Itoa(s.Status)
			if !s.Complete {
				word += " broken off"
			}
		}
		if count[word]++; count[word] == 1 {
			words = append(words, word)
		}
	}
	var b strings.Builder
	for _, w := range words {
		fmt.Fprintf(&b, "%s: %d\n", w, count[w])
	}
	answers, lines := l.Good()
	fmt.Fprintf(&b, "requests: %d, whole answers: %d, with %d lines\n", len(l), answers, lines)
	return b.String()
}

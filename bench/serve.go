package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/scrapestat/scrapestat/internal/simulate"
)

// serveTargets is the child process that answers as many targets: target i is
// /ti/metrics. It answers recorded bodies, the next one at each request, as cheaply
// as can be, and notes when each request came. /sink swallows remote writes,
// /report gives the times as JSON and /reset forgets them.
func serveTargets(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("serve-targets", flag.ContinueOnError)
	targets := f.Int("n", 1, "targets")
	bodies := f.Int("bodies", 256, "recorded bodies")
	extra := f.Int("extra", 0, "extra series")
	step := f.Duration("step", interval, "simulated time between bodies")
	if err := f.Parse(args); err != nil {
		return err
	}
	src, err := newSource(1, simulate.Options{ExtraSeries: *extra})
	if err != nil {
		return err
	}
	s := &targetServer{came: make([][]int64, *targets), origin: time.Now()}
	for range *bodies {
		b := src.step(nil, *step)
		head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", contentType, len(b))
		s.answers = append(s.answers, append([]byte(head), b...))
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fmt.Fprintln(out, ln.Addr().String(), src.server.Samples(), len(s.answers[0]))
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	return accept(ln, &s.conns, func(c net.Conn) {
		for r := bufio.NewReader(c); s.answer(c, r) == nil; {
		}
	})
}

// targetServer answers the targets.
type targetServer struct {
	answers [][]byte
	origin  time.Time
	conns   sync.WaitGroup

	mu   sync.Mutex
	came [][]int64 // by target: when requests came, nanoseconds since 1970
	sunk int64     // bytes of remote writes
}

// accept serves each connection of ln in a goroutine of conns until ln is closed.
func accept(ln net.Listener, conns *sync.WaitGroup, serve func(net.Conn)) error {
	for {
		c, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accept: %w", err)
		}
		conns.Go(func() {
			defer c.Close()
			serve(c)
		})
	}
}

// answer serves one request. Any error ends the connection.
func (s *targetServer) answer(c net.Conn, r *bufio.Reader) error {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return err
	}
	at := s.origin.Add(time.Since(s.origin)).UnixNano()
	fields := strings.Fields(string(line))
	if len(fields) < 2 {
		return errors.New("bad request line")
	}
	length := int64(0)
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		text := strings.TrimSpace(string(line))
		if text == "" {
			break
		}
		if name, value, _ := strings.Cut(text, ":"); strings.EqualFold(name, "Content-Length") {
			length, err = strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			if err != nil {
				return err
			}
		}
	}
	if _, err := io.CopyN(io.Discard, r, length); err != nil {
		return err
	}
	_, err = c.Write(s.route(fields[1], at, length))
	return err
}

func (s *targetServer) route(path string, at, length int64) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case strings.HasPrefix(path, "/t"):
		number, _, _ := strings.Cut(path[2:], "/")
		i, err := strconv.Atoi(number)
		if err != nil || i < 0 || i >= len(s.came) {
			return []byte("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
		}
		s.came[i] = append(s.came[i], at)
		return s.answers[(len(s.came[i])+7*i)%len(s.answers)]
	case path == "/report":
		b, err := json.Marshal(s.came)
		if err != nil {
			panic(err) // numbers always marshal
		}
		return append([]byte(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", len(b))), b...)
	case path == "/reset":
		clear(s.came)
	default:
		s.sunk += length
	}
	return []byte("HTTP/1.1 204 No Content\r\n\r\n")
}

// fleet is the process of the targets as the harness sees it.
type fleet struct {
	addr           string
	targets        int
	samples, bytes int
	process        *process
}

func startFleet(ctx context.Context, c config, targets int, more ...string) (*fleet, error) {
	args := append([]string{"serve-targets", "-n", strconv.Itoa(targets)}, more...)
	p, err := startSelf(ctx, c, c.other, args...)
	if err != nil {
		return nil, err
	}
	f := &fleet{targets: targets, process: p}
	line, err := p.line()
	if err == nil {
		_, err = fmt.Sscan(line, &f.addr, &f.samples, &f.bytes)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start targets: %w", err), p.kill())
	}
	return f, nil
}

func (f *fleet) urls() []string {
	var out []string
	for i := range f.targets {
		out = append(out, fmt.Sprintf("http://%s/t%d/metrics", f.addr, i))
	}
	return out
}

func (f *fleet) get(path string) ([]byte, error) {
	resp, err := http.Get("http://" + f.addr + path)
	if err != nil {
		return nil, fmt.Errorf("ask targets: %w", err)
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

func (f *fleet) reset() error {
	_, err := f.get("/reset")
	return err
}

// arrivals returns when requests came, by target.
func (f *fleet) arrivals() ([][]int64, error) {
	b, err := f.get("/report")
	if err != nil {
		return nil, err
	}
	var came [][]int64
	if err := json.Unmarshal(b, &came); err != nil {
		return nil, fmt.Errorf("read report of targets: %w", err)
	}
	return came, nil
}

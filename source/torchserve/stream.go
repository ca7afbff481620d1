package torchserve

import (
	"errors"
	"io"
	"time"
)

// stream reads lines of a pipe while nobody polls, into memory that is bounded: when it is full the writer has to wait.
type stream struct {
	r     io.Reader
	lines chan []byte
	quit  chan struct{}
	done  chan struct{} // closed when the goroutine ends
	err   error         // set before lines is closed
	ended bool
}

// maxWaiting is how many lines wait for a poll.
const maxWaiting = 100_000

// closeWait is how long close waits for a Read to end. That of a terminal or of
// a pipe inherited as stdin may last until its writer ends.
const closeWait = 200 * time.Millisecond

func newStream(r io.Reader) *stream {
	s := &stream{r: r, lines: make(chan []byte, maxWaiting), quit: make(chan struct{}), done: make(chan struct{})}
	go s.run()
	return s
}

func (s *stream) run() {
	defer close(s.done)
	defer close(s.lines)
	cutter := &tail{}
	left := false
	emit := func(line []byte) {
		select {
		case s.lines <- append([]byte(nil), line...):
		case <-s.quit:
			left = true
		}
	}
	buf := make([]byte, 32<<10)
	for !left {
		n, err := s.r.Read(buf)
		cutter.cut(buf[:n], emit)
		if err == nil {
			continue
		}
		if len(cutter.partial) > 0 {
			emit(cutter.partial) // the end is the end of its line
		}
		if !errors.Is(err, io.EOF) {
			s.err = err
		}
		return
	}
}

// read gives the lines that wait, at most budget bytes.
func (s *stream) read(budget int64, emit func([]byte)) error {
	for !s.ended && budget > 0 {
		select {
		case line, ok := <-s.lines:
			if !ok {
				s.ended = true
				return s.err
			}
			budget -= int64(len(line)) + 1
			emit(line)
		default:
			return nil
		}
	}
	return nil
}

// close ends the reading. A Read that does not end is left behind: it holds the buffer and gives its lines to nobody.
func (s *stream) close() error {
	close(s.quit)
	var err error
	if c, ok := s.r.(io.Closer); ok {
		err = c.Close()
	}
	select {
	case <-s.done:
	case <-time.After(closeWait):
	}
	if errors.Is(err, io.ErrClosedPipe) {
		err = nil
	}
	return err
}

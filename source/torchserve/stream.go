package torchserve

import (
	"bufio"
	"errors"
	"io"
	"sync"
)

// stream reads lines of a pipe while nobody polls, into memory that is bounded:
// when it is full the writer has to wait.
type stream struct {
	r      io.Reader
	lines  chan []byte
	quit   chan struct{}
	joined sync.WaitGroup
	err    error // set before lines is closed
	ended  bool
}

// maxWaiting is how many lines wait for a poll.
const maxWaiting = 100_000

func newStream(r io.Reader) *stream {
	s := &stream{r: r, lines: make(chan []byte, maxWaiting), quit: make(chan struct{})}
	s.joined.Go(s.run)
	return s
}

func (s *stream) run() {
	defer close(s.lines)
	in := bufio.NewScanner(s.r)
	in.Buffer(make([]byte, 0, 4096), maxLine+2)
	for in.Scan() {
		line := append([]byte(nil), in.Bytes()...)
		select {
		case s.lines <- line:
		case <-s.quit:
			return
		}
	}
	s.err = in.Err()
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

func (s *stream) close() error {
	close(s.quit)
	var err error
	if c, ok := s.r.(io.Closer); ok {
		err = c.Close()
	}
	s.joined.Wait()
	if errors.Is(err, io.ErrClosedPipe) {
		err = nil
	}
	return err
}

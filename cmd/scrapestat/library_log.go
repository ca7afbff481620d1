package main

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/scrapestat/scrapestat/metric"
)

// libraryLog takes what libraries write to Go's standard logger, as the client of
// net/http does of servers that send more than an answer: it is counted, and the first
// of it kept. Nothing goes to stderr past --quiet.
type libraryLog struct {
	mu    sync.Mutex
	lines int
	first string
}

// Write takes a line of the log.
func (l *libraryLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lines++; l.lines == 1 {
		l.first = metric.Clean(string(line), 200)
	}
	return len(line), nil
}

// libraryWarnings is what the standard logger was told, when main has it kept.
func libraryWarnings(context.Context) []metric.Warning {
	l, ok := log.Writer().(*libraryLog)
	if !ok {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lines == 0 {
		return nil
	}
	return []metric.Warning{{Code: "library_log", Text: fmt.Sprintf("Go's HTTP library had something to say %d times, "+
		"usually of a server that sends more than it announces; the first: %s", l.lines, l.first)}}
}

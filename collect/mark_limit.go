package collect

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// The most marks that are taken from outside: each makes every target be polled once
// more, and a phase that the analysis has to go through.
const (
	maxMarks          = 10_000
	maxMarksPerSecond = 10
)

// ErrTooManyMarks is wrapped by the error of a mark beyond 10 in a second or 10,000 in a run.
var ErrTooManyMarks = errors.New("more than 10 marks in a second, or 10,000 in the run")

// markLimit counts the marks of others. It is safe for concurrent use.
type markLimit struct {
	mu             sync.Mutex
	last           [maxMarksPerSecond]int64 // when the last ones were taken
	taken, refused int
	ended          bool
}

// take reports whether a mark is taken at an instant. The first one that ends the run always is.
func (l *markLimit) take(name string, nowNS int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := l.taken % len(l.last)
	early := l.taken >= len(l.last) && nowNS-l.last[i] < int64(time.Second)
	if ends := name == metric.MarkEnd && !l.ended; !ends && (early || l.taken >= maxMarks) {
		l.refused++
		return false
	}
	l.ended = l.ended || name == metric.MarkEnd
	l.last[i] = nowNS
	l.taken++
	return true
}

// warnings tell how many marks were refused, if any were.
func (l *markLimit) warnings() []metric.Warning {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused == 0 {
		return nil
	}
	return []metric.Warning{{Code: "marks_refused",
		Text: fmt.Sprintf("%d marks were refused: %v", l.refused, ErrTooManyMarks)}}
}

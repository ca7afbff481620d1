package collect

import (
	"fmt"
	"sync"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// markLimit counts the marks of others. It is safe for concurrent use.
type markLimit struct {
	mu             sync.Mutex
	last           [rundb.MaxMarksPerSecond]int64 // when the last ones were taken
	taken, refused int
	ended          bool
}

// take reports whether a mark is taken at an instant. The first one that ends the run always is.
func (l *markLimit) take(name string, nowNS int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := l.taken % len(l.last)
	early := l.taken >= len(l.last) && nowNS-l.last[i] < int64(time.Second)
	if ends := name == metric.MarkEnd && !l.ended; !ends && (early || l.taken >= rundb.MaxMarks) {
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
		Text: fmt.Sprintf("%d marks were refused: %v", l.refused, rundb.ErrTooManyMarks)}}
}

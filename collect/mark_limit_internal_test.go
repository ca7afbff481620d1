package collect

import (
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// TestMarkLimit: ten in any second, so many in a run, and one that ends it.
func TestMarkLimit(t *testing.T) {
	var l markLimit
	at := func(name string, after time.Duration) bool { return l.take(name, int64(after)) }
	for i := range rundb.MaxMarksPerSecond {
		if !at("a", time.Duration(i)*50*time.Millisecond) {
			t.Fatalf("mark %d of a second is refused", i)
		}
	}
	if at("a", 999*time.Millisecond) || !at("a", time.Second) || at("a", 1049*time.Millisecond) ||
		!at("a", 1050*time.Millisecond) {
		t.Error("a window of one second does not move")
	}
	now := 2 * time.Second
	for ; l.taken < rundb.MaxMarks; now += time.Second {
		at("b", now)
	}
	if at("b", now+time.Hour) || !at(metric.MarkEnd, now) || at(metric.MarkEnd, now) || at("c", now+time.Hour) {
		t.Error("after 10,000 marks another is taken, or the first end is not")
	}
	if w := l.warnings(); len(w) != 1 || l.refused != 5 || l.taken != rundb.MaxMarks+1 {
		t.Errorf("%d taken, %d refused, %v", l.taken, l.refused, w)
	}
}

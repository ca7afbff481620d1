package reqfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source"
	"github.com/scrapestat/scrapestat/source/reqfile"
)

type feed struct {
	all    []metric.ServerRequest
	counts metric.ServerCounts
}

func (f *feed) Record(q *metric.ServerRequest) { f.all = append(f.all, *q) }
func (f *feed) Counted(c metric.ServerCounts)  { f.counts = c }

// TestFollow follows a folder through lines in pieces, a new file, one that is cut off and one that takes the place of
// another: each record is told once, and what was there before is left out.
func TestFollow(t *testing.T) {
	dir := t.TempDir()
	name := func(hour int) string {
		return filepath.Join(dir, fmt.Sprintf("sglang-request-metrics-20261122_%02d.log", hour))
	}
	line := func(n int) string {
		return fmt.Sprintf(`{"id":"r%d","e2e_latency":1,"request_received_ts":1795337978.5,`+
			`"request_parameters":"{\"text\":\"PRIVATE\"}"}`, n) + "\n"
	}
	write := func(hour, flags int, text string) {
		t.Helper()
		f, err := os.OpenFile(name(hour), flags|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var got feed
	kind := reqfile.Target()
	s, err := kind.New().Open("sglang-requests:"+dir, source.Options{Requests: func(metric.ServerSource) source.Feed {
		return &got
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	warnings := 0
	poll := func(want string) {
		t.Helper()
		var snap metric.Snapshot
		s.Poll(t.Context(), func() int64 { return 1 }, &snap)
		var ids []string
		for _, q := range got.all {
			ids = append(ids, q.ID)
		}
		if ids := strings.Join(ids, " "); ids != want || snap.Outcome != metric.OK {
			t.Errorf("got %q, want %q: %v %s", ids, want, snap.Outcome, snap.Err)
		}
		warnings += len(snap.Warnings)
		if text := fmt.Sprintf("%+v %+v", got, snap); strings.Contains(text, "PRIVATE") {
			t.Error(text)
		}
	}
	write(8, os.O_APPEND, line(1))
	poll("") // from before the run
	poll("")
	write(8, os.O_APPEND, line(2)+line(3)[:20])
	poll("r2")
	write(8, os.O_APPEND, line(3)[20:])
	poll("r2 r3")
	write(9, os.O_APPEND, line(4))
	poll("r2 r3 r4")
	write(8, os.O_TRUNC, line(3)) // read anew: r3 is known
	poll("r2 r3 r4")
	write(8, os.O_APPEND, line(5)+"{broken\n")
	poll("r2 r3 r4 r5")
	if err := os.Remove(name(9)); err != nil {
		t.Fatal(err)
	}
	write(9, os.O_APPEND, line(6)+line(4)+strings.Repeat("x", 1<<20+1))
	poll("r2 r3 r4 r5 r6")
	if c := got.counts; c.Seen != 2 || c.Bad != 2 || !strings.HasPrefix(c.FirstBad, "line 3: ") || warnings != 1 {
		t.Errorf("%+v, %d warnings", c, warnings)
	}
	if kind.Check("sglang-requests:") == nil {
		t.Error("an address without a path is taken")
	}
}

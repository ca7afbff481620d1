package torchserve_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/internal/sourcetest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source/torchserve"
)

const countLine = "A.Count:1|#L:H|#hostname:h,timestamp:1\n"

// counted is the series of countLine.
const counted = `A{Hostname="h",L="H"}`

func follow(t *testing.T, path string, o torchserve.Options) *torchserve.Source {
	t.Helper()
	s, err := torchserve.Follow(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// What the source hands on is what package metric promises, bad lines and a
// series limit included, and nothing is lost to a poll that was called off.
func TestConforms(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "ts_metrics.log"),
		countLine+"B.ms:7|#L:H|#hostname:h,timestamp:1\nA.Count:\x1b[31m|#L:H|#hostname:h,timestamp:1\n"+
			"H.ms:7|#L:H|#type:HISTOGRAM|#hostname:h,timestamp:1\nC.Count:1|#L:H|#hostname:h,timestamp:1\n")
	s := follow(t, dir, torchserve.Options{FromStart: true, MaxSeries: 3})
	r := sourcetest.New(t, sourcetest.Limits{Slots: 30})
	target := r.Poll(s, 3)
	if v, ok := r.Value(target, "A", metric.Counter, `{Hostname="h",L="H"}`, metric.RoleValue, 0); !ok || v != 1 {
		t.Errorf("A is %v (%v)", v, ok)
	}
	if first := r.Instants(target)[0]; first.Outcome != metric.Partial || len(first.Drops) != 2 {
		t.Errorf("the first poll is %+v", first)
	}
	if last := r.Instants(target)[3]; last.Outcome != metric.Cancelled {
		t.Errorf("a poll that was called off is %+v", last)
	}
	appendTo(t, path, countLine)
	v := &view{}
	s2 := follow(t, path, torchserve.Options{FromStart: true})
	v.poll(t, s2, metric.Final)
	if v.values[counted] != 2 {
		t.Errorf("values %v", v.values)
	}
}

// A file that has two names, as one that was renamed before its successor
// exists, is read once, and a line that comes in parts stays whole.
func TestOneFileTwoNames(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "a.log"), "")
	s := follow(t, filepath.Join(dir, "*.log*"), torchserve.Options{FromStart: true})
	v := &view{}
	step := func(path, text string) {
		t.Helper()
		appendTo(t, path, text)
		v.poll(t, s, metric.Periodic)
	}
	step(path, countLine+countLine[:9])
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	step(path+".1", countLine[9:12])
	step(path+".1", countLine[12:]+countLine)
	if err := os.Link(path+".1", path+".2"); err != nil {
		t.Fatal(err)
	}
	step(path+".1", countLine+countLine)
	step(path, countLine+countLine[:5])
	step(path+".1", countLine)
	step(path, countLine[5:])
	if len(v.values) != 1 || v.values[counted] != 8 || v.drops != 0 {
		t.Errorf("got %v and %d drops, want 8 of one series", v.values, v.drops)
	}
}

// What nobody could read is told, and a cut file begins with a whole line.
func TestTellsOfMissedFiles(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "a.log"), countLine+strings.Repeat("x", 70_000))
	s := follow(t, path, torchserve.Options{FromStart: true})
	v := &view{}
	v.poll(t, s, metric.Periodic)
	write(t, path, countLine) // cut within a line that is too long
	v.poll(t, s, metric.Periodic)
	if v.values[counted] != 2 {
		t.Errorf("after the cut: %v", v.values)
	}
	codes := len(v.codes)
	rename := func(to string) {
		t.Helper()
		if err := os.Rename(path, filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	rename("a.log.1")
	write(t, path, countLine)
	rename("a.log.2")
	write(t, path, countLine)
	v.poll(t, s, metric.Periodic)
	if v.values[counted] != 3 || !slices.Equal(v.codes[codes:], []string{"log_gap"}) {
		t.Errorf("after two rollovers: %v, warnings %v", v.values, v.codes[codes:])
	}
	rename("a.log.3")
	write(t, path, countLine)
	v.poll(t, s, metric.Periodic)
	if v.values[counted] != 4 || len(v.codes) != codes+1 {
		t.Errorf("after one rollover: %v, warnings %v", v.values, v.codes)
	}
}

// neverEnds gives one line and then nothing, like a terminal.
type neverEnds struct {
	given bool
	until chan struct{}
}

func (n *neverEnds) Read(p []byte) (int, error) {
	if !n.given {
		n.given = true
		return copy(p, countLine), nil
	}
	<-n.until
	return 0, io.EOF
}

// A line that is too long does not end a stream, and a Read that goes on for ever
// does not keep Close.
func TestStreamGoesOn(t *testing.T) {
	s, err := torchserve.FollowStream(strings.NewReader(countLine+strings.Repeat("y",
		200_000)+"\n"+countLine+strings.TrimSuffix(countLine, "\n")), torchserve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v := &view{}
	for v.values[counted] != 3 {
		v.poll(t, s, metric.Periodic)
	}
	if v.drops != 1 || !slices.Contains(v.codes, "bad_line") {
		t.Errorf("%d drops, warnings %v", v.drops, v.codes)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	r := &neverEnds{until: make(chan struct{})}
	defer close(r.until)
	s, err = torchserve.FollowStream(r, torchserve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for v = (&view{}); v.values[counted] != 1; {
		v.poll(t, s, metric.Periodic)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// The memory that names take is bounded like that of series, however many a
// hostile log has.
func TestManyNames(t *testing.T) {
	var lines strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&lines, "N%d.ms:1|#L:H|#hostname:h,timestamp:1\n"+
			"M%[1]d.Count:NaN|#L:H|#type:COUNTER|#hostname:h,timestamp:1\n", i)
	}
	s := follow(t, write(t, filepath.Join(t.TempDir(), "a.log"), lines.String()),
		torchserve.Options{FromStart: true, MaxSeries: 10})
	snap := metric.Snapshot{}
	s.Poll(t.Context(), func() int64 { return 1 }, &snap)
	if n := len(snap.DictDelta.Families); n > 10 || len(snap.DictDelta.Series) > 10 || snap.Lost() < 9990 {
		t.Errorf("%d families, %d series, %d lines lost", n, len(snap.DictDelta.Series), snap.Lost())
	}
}

// Logs that are longer than what the guard remembers count once all the same.
func TestLongDoubleFeed(t *testing.T) {
	dir := t.TempDir()
	const n = 60_000
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, "A.Count:1|#L:H|#hostname:h,timestamp:%d\n", 1000+i/10)
	}
	write(t, filepath.Join(dir, "stdout.log"), lines.String())
	write(t, filepath.Join(dir, "ts_metrics.log"), lines.String())
	v, read := importAll(t, torchserve.Options{Step: 1e12}, filepath.Join(dir, "*.log"))
	if v.values[counted] != n || read.OK != n || read.Double != n {
		t.Errorf("counted %v, read %+v", v.values[counted], read)
	}
}

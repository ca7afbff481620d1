package events_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

func newRecorder(t testing.TB, dir string, o events.RecorderOptions) *events.Recorder {
	t.Helper()
	o.Create = &rundb.Meta{ID: "test"}
	r, err := events.NewRecorder(context.Background(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func closeRecorder(t testing.TB, r *events.Recorder) {
	t.Helper()
	if pending, err := r.Close(context.Background()); pending != 0 || err != nil {
		t.Errorf("close: %d pending, %v", pending, err)
	}
}

// stored reads the samples of a run and how many events each has, in order.
func stored(t testing.TB, dir string) (samples []string, n int) {
	t.Helper()
	run, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	for e, err := range run.Events(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		samples = append(samples, e.Sample)
		n++
	}
	return samples, n
}

// polled reads as a reader does beside the recording: how many events the recorder
// says are in the file, and then the first of them. It does not read them all, as
// that would take longer than the recording.
func polled(t testing.TB, dir string) (recorded int64) {
	t.Helper()
	told, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	all, err := told.EventStats(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		recorded += s.Recorded
	}
	run, err := rundb.Open(dir) // a run has the events that were there when it was opened
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	n := int64(0)
	for e, err := range run.Events(context.Background()) {
		if err != nil || e.Type != events.SampleIssued || !strings.Contains(e.Sample, "-") {
			t.Fatalf("event %+v beside the recording: %v", e, err)
		}
		if n++; n == 2000 {
			break
		}
	}
	if n < min(recorded, 2000) {
		t.Errorf("%d events are readable, %d are said to be in the file", n, recorded)
	}
	return recorded
}

func stats(t testing.TB, dir string) rundb.EventStats {
	t.Helper()
	run, err := rundb.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	all, err := run.EventStats(context.Background())
	if err != nil || len(all) == 0 {
		t.Fatalf("statistics: %v, %v", all, err)
	}
	return all[len(all)-1]
}

// TestRecorder is acceptance case T9: 8 goroutines record 50,000 events each while
// a reader polls and a second recorder is refused. None is lost, none is twice,
// and those of each goroutine are in order.
func TestRecorder(t *testing.T) {
	defer goleak.VerifyNone(t)
	const writers = 8
	each := 50_000
	if underRace {
		each = 5_000
	}
	dir := t.TempDir()
	r := newRecorder(t, dir, events.RecorderOptions{})
	var wg sync.WaitGroup
	for g := range writers {
		wg.Go(func() {
			for i := range each {
				r.Record(metric.Event{Sample: strconv.Itoa(g) + "-" + strconv.Itoa(i), Type: events.SampleIssued, AtNS: r.Now(),
					Data: []byte("null")})
			}
		})
	}
	if _, err := events.NewRecorder(t.Context(), dir, events.RecorderOptions{}); !errors.Is(err, rundb.ErrEventWriter) {
		t.Errorf("a second recorder: %v", err)
	}
	if wal, err := os.Stat(filepath.Join(dir, rundb.FileName+"-wal")); err != nil || !wal.Mode().IsRegular() {
		t.Errorf("no write-ahead log while recording: %v", err)
	}
	for last, n := int64(0), 0; n < 3; n++ {
		now := polled(t, dir)
		if now < last {
			t.Errorf("the reader saw %d events after %d", now, last)
		}
		last = now
	}
	wg.Wait()
	closeRecorder(t, r)
	samples, n := stored(t, dir)
	if n != writers*each {
		t.Errorf("%d events, want %d", n, writers*each)
	}
	next := make([]int, writers)
	for _, s := range samples {
		of, number, _ := strings.Cut(s, "-")
		g, err := strconv.Atoi(of)
		if err != nil || g >= writers || number != strconv.Itoa(next[g]) {
			t.Fatalf("event %q is out of order: the next of each writer is %v", s, next)
		}
		next[g]++
	}
	if s, all := stats(t, dir), int64(writers*each); s.Recorded != all || s.Lost() != 0 || s.MaxQueue < 1 ||
		s.MaxQueue > all {
		t.Errorf("statistics %+v", s)
	}
}

// TestRecorderMemory says what happens to events for which there is no memory.
func TestRecorderMemory(t *testing.T) {
	defer goleak.VerifyNone(t)
	const n = 20_000
	flood := func(o events.RecorderOptions) rundb.EventStats {
		dir := t.TempDir()
		o.MaxBytes = 10_000
		r := newRecorder(t, dir, o)
		for range n {
			r.Record(metric.Event{Sample: "x", Type: events.SampleNext})
		}
		closeRecorder(t, r)
		s := stats(t, dir)
		if _, rows := stored(t, dir); int64(rows) != s.Recorded || s.Recorded+s.Dropped != n || s.MaxQueue > 100 {
			t.Errorf("%d rows, statistics %+v", rows, s)
		}
		return s
	}
	if s := flood(events.RecorderOptions{}); s.Dropped == 0 {
		t.Errorf("nothing was dropped: %+v", s)
	}
	if s := flood(events.RecorderOptions{Block: true}); s.Dropped != 0 {
		t.Errorf("dropped where it should wait: %+v", s)
	}
}

// TestRecorderBadEvents counts what cannot be recorded as it is.
func TestRecorderBadEvents(t *testing.T) {
	dir := t.TempDir()
	r := newRecorder(t, dir, events.RecorderOptions{})
	for _, e := range []metric.Event{
		{Sample: "no type"},
		{Sample: "no json", Type: events.SampleComplete, Data: []byte("{")},
		{Sample: "large", Type: events.SampleComplete, Data: slices.Repeat([]byte("1"), 17<<20)},
		{Sample: "no\xffutf8", Type: events.SampleComplete},
		{Sample: "good", Type: events.SampleComplete, Data: []byte("{}")},
	} {
		r.Record(e)
	}
	closeRecorder(t, r)
	r.Record(metric.Event{Sample: "late", Type: events.SampleIssued})
	if s := r.Stats(); s.EncodeErrors != 3 || s.Late != 1 || s.Recorded != 4 || s.Dropped != 0 {
		t.Errorf("statistics %+v", s)
	}
	if samples, _ := stored(t, dir); !slices.Equal(samples, []string{"no json", "large", "no\ufffdutf8", "good"}) {
		t.Errorf("recorded %q", samples)
	}
	closeRecorder(t, r) // again
}

// TestRecorderDeadline closes while another program holds the file: what could not
// be written is counted.
func TestRecorderDeadline(t *testing.T) {
	defer goleak.VerifyNone(t)
	dir := t.TempDir()
	r := newRecorder(t, dir, events.RecorderOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 5000 {
		r.Record(metric.Event{Sample: "x", Type: events.SampleNext})
	}
	pending, err := r.Close(ctx)
	_, rows := stored(t, dir)
	if pending+rows != 5000 || (pending > 0) != (err != nil) {
		t.Errorf("%d pending, %d rows, %v", pending, rows, err)
	}
	if again, _ := r.Close(t.Context()); again != pending {
		t.Errorf("closed again: %d pending, before %d", again, pending)
	}
	closeRecorder(t, newRecorder(t, dir, events.RecorderOptions{})) // the lock is free
}

// TestRecorderAllocations holds Record to the memory it needs. Another connection has the write lock of the file
// meanwhile, so that the writer goroutine waits: testing.AllocsPerRun counts the allocations of all goroutines.
func TestRecorderAllocations(t *testing.T) {
	dir := t.TempDir()
	r := newRecorder(t, dir, events.RecorderOptions{})
	other, err := sql.Open("sqlite", filepath.Join(dir, rundb.FileName)+"?_pragma=busy_timeout(20000)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	lock, err := other.Begin()
	if err != nil {
		t.Fatal(err)
	}
	e := metric.Event{Sample: "sample", Type: events.SampleIssued, AtNS: 1}
	if got := testing.AllocsPerRun(5_000, func() { r.Record(e) }); got > 0 {
		t.Errorf("%v allocations per event", got)
	}
	if n := r.Stats().Recorded; n != 0 {
		t.Errorf("%d events were written meanwhile", n)
	}
	if err := errors.Join(lock.Rollback(), other.Close()); err != nil {
		t.Fatal(err)
	}
	closeRecorder(t, r)
}

// lostAtMost is how young an event may be to be missing after a kill: twice the
// time between commits.
const lostAtMost = 200 * time.Millisecond

const recorderChild = "EVENTS_RECORDER_CHILD"

// TestRecorderChild is the process that TestRecorderKill kills. It prints when it
// records each event.
func TestRecorderChild(t *testing.T) {
	dir := os.Getenv(recorderChild)
	if dir == "" {
		return // only as a child
	}
	r := newRecorder(t, dir, events.RecorderOptions{})
	tick := time.NewTicker(time.Millisecond)
	for i := 0; ; i++ {
		r.Record(metric.Event{Sample: strconv.Itoa(i), Type: events.SampleIssued, AtNS: r.Now()})
		fmt.Printf("event %d %d\n", i, r.Now())
		<-tick.C
	}
}

// TestRecorderKill kills a recording process. Every event that was older than
// lostAtMost must be there, in order from the first.
func TestRecorderKill(t *testing.T) {
	for range 3 {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0], "-test.run=^TestRecorderChild$", "-test.v")
		cmd.Env = append(os.Environ(), recorderChild+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var at []int64
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var i int
			var ns int64
			if _, err := fmt.Sscanf(strings.TrimSpace(lines.Text()), "event %d %d", &i, &ns); err != nil {
				continue
			}
			at = append(at, ns)
			if len(at) == 700 {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // killed: there is always an error
		want := 0
		for _, ns := range at {
			if ns < at[len(at)-1]-int64(lostAtMost) {
				want++
			}
		}
		samples, n := stored(t, dir)
		t.Logf("%d of %d events are there, %d were older than %v", n, len(at), want, lostAtMost)
		if n < want || want == 0 {
			t.Errorf("%d events are there, %d were older than %v", n, want, lostAtMost)
		}
		for i, s := range samples {
			if s != strconv.Itoa(i) {
				t.Fatalf("event %d is %q", i, s)
			}
		}
		closeRecorder(t, newRecorder(t, dir, events.RecorderOptions{})) // the lock died with its owner
	}
}

// BenchmarkRecord records 400,000 events from 8 goroutines, with the recorder
// writing: the p99 that acceptance case T9 asks for. An operation is all of them.
func BenchmarkRecord(b *testing.B) {
	const writers, each = 8, 50_000
	took := make([]time.Duration, writers*each)
	var lost int64
	for b.Loop() {
		dir := b.TempDir()
		r := newRecorder(b, dir, events.RecorderOptions{})
		var wg sync.WaitGroup
		for g := range writers {
			wg.Go(func() {
				mine := took[g*each : (g+1)*each]
				for i := range mine {
					began := time.Now()
					r.Record(metric.Event{Sample: "sample-of-the-usual-length-of-a-uuid", Type: events.SampleNext, AtNS: r.At(began)})
					mine[i] = time.Since(began)
				}
			})
		}
		wg.Wait()
		closeRecorder(b, r)
		s := r.Stats()
		if s.Recorded != writers*each {
			b.Errorf("%d events are in the file", s.Recorded)
		}
		lost += s.Lost()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns/event")
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns/event")
	b.ReportMetric(float64(lost), "lost")
}

package export_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/internal/faults"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// wide is a recording of gauges with many labels, one row of a table per gauge and
// poll. It is made while it is read, so that what memory an export takes is its own.
type wide struct{ targets, series, polls int }

const (
	wideLabels = 40
	wideNS     = int64(1_700_000_000_000_000_000)
	wideMemory = 512 << 20
)

// wideOf has so many rows, but for a remainder. More rows are more polls: what grows
// with series, whose labels every reader holds, is no streaming.
func wideOf(rows int) wide { return wide{targets: 4, series: 2500, polls: max(1, rows/10_000)} }

func (w wide) rows() int { return w.targets * w.series * w.polls }

func (w wide) Targets() []metric.Target {
	targets := make([]metric.Target, w.targets)
	for i := range targets {
		targets[i] = metric.Target{URL: "http://10.0.0." + strconv.Itoa(i) + ":8000/metrics"}
	}
	return targets
}

func wideName(label int) string { return fmt.Sprintf("label_%02d", label) }

// wideText is the value of a label: the first has a single one, each further one
// more of them, and the last two differ in every series.
func wideText(label, series int) string {
	if label >= wideLabels-2 {
		return fmt.Sprintf("pod-%d-%08x", label, series*2654435761)
	}
	return fmt.Sprintf("value %d of label %d", series%(1+label*label), label)
}

func (w wide) growth() metric.DictDelta {
	var g metric.DictDelta
	g.Families = []metric.Family{{Name: "wide", Type: metric.Gauge, Help: "What the engine holds."}}
	for i := range w.series {
		labels := make([]metric.Label, wideLabels)
		for j := range labels {
			labels[j] = metric.Label{Name: wideName(j), Value: wideText(j, i)}
		}
		g.Series = append(g.Series, metric.Series{Labels: metric.NewLabels(labels...)})
		g.Slots = append(g.Slots, metric.SampleID{Series: i, Role: metric.RoleValue})
	}
	return g
}

// value is that of a row: noise, which no encoding makes small.
func (w wide) value(series, poll int) float64 {
	x := uint64(poll*w.series+series) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	return float64(x>>11) / (1 << 53)
}

func (w wide) Snapshots(_ context.Context, _ int) iter.Seq2[*metric.Snapshot, error] {
	return func(yield func(*metric.Snapshot, error) bool) {
		s := metric.Snapshot{DictDelta: w.growth(), Outcome: metric.OK}
		s.Delta.Slots, s.Delta.Bits = make([]uint32, w.series), make([]uint64, w.series)
		for n := range w.polls {
			at := wideNS + int64(n)*1e9
			s.Seq, s.SentNS, s.FirstByteNS, s.Delta.Full = uint64(n), at-1e6, at, n == 0
			for i := range w.series {
				s.Delta.Slots[i], s.Delta.Bits[i] = uint32(i), math.Float64bits(w.value(i, n))
			}
			if !yield(&s, nil) {
				return
			}
			s.DictDelta = metric.DictDelta{}
		}
	}
}

func (w wide) run() *summary.Run {
	r := &summary.Run{ID: "0a1b", Version: "1.2.3", Window: summary.Window{EndNS: math.MaxInt64 - 1}}
	g := w.growth()
	for endpoint, t := range w.Targets() {
		r.Endpoints = append(r.Endpoints, summary.Endpoint{Target: t, EndNS: r.Window.EndNS})
		for i, s := range g.Series {
			addSeries(r, endpoint, i, &g.Families[0], s.Labels)
		}
	}
	return r
}

// wideRows is how many rows TestParquetMemory writes: all two million of them when
// it is asked to.
func wideRows(t *testing.T) int {
	t.Helper()
	text := os.Getenv("SCRAPESTAT_ROWS")
	if text == "" {
		return 40_000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestParquetMemory exports rows with 40 labels in a process of its own, which says
// at its end what memory it took at most, and reads the file back.
func TestParquetMemory(t *testing.T) {
	const child = "SCRAPESTAT_EXPORT_DIR"
	w := wideOf(wideRows(t))
	if dir := os.Getenv(child); dir != "" {
		if _, err := export.Write(t.Context(), dir, []string{"parquet"}, w.run(), []export.Recording{w},
			export.Options{}); err != nil {
			t.Fatal(err)
		}
		fmt.Println("peak", peakMemory(t))
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("the peak of memory is read from /proc")
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestParquetMemory$", "-test.count=1")
	cmd.Env = append(os.Environ(), child+"="+dir)
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, said)
	}
	peak := 0
	for line := range strings.Lines(string(said)) {
		_, _ = fmt.Sscanf(line, "peak %d", &peak) // other lines are the test's own
	}
	size := w.check(t, filepath.Join(dir, "server_metrics_export.parquet"))
	if peak == 0 || peak > wideMemory {
		t.Errorf("peak %d bytes for %d rows, want at most %d:\n%s", peak, w.rows(), wideMemory, said)
	}
	faults.Figure(t, "rows", fmt.Sprintf("%d rows of %d labels in %d series written as Parquet, %.1f MB, and all "+
		"read back: the process took %d MiB at most, %d are allowed",
		w.rows(), wideLabels, w.targets*w.series, float64(size)/1e6, peak>>20, wideMemory>>20),
		"SCRAPESTAT_ROWS=2000000 go test ./export -run TestCatalogue/E02 -v")
}

// peakMemory is the largest resident set of this process so far, in bytes.
func peakMemory(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(status), "VmHWM:")
	var kib int
	if _, err := fmt.Sscan(text, &kib); err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// check reads the file back: each row of each target is there once, with its time,
// value and labels. It returns the size of the file.
func (w wide) check(t *testing.T, path string) int64 {
	t.Helper()
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(in, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	if got := columnsOf(f); len(got) != wideLabels+11 || got[6] != wideName(0) || got[6+wideLabels] != "value" {
		t.Fatalf("columns %v", got)
	}
	texts, series := make([][]string, w.series), map[string]int{}
	for i := range texts {
		series[wideText(wideLabels-1, i)] = i
		for j := range wideLabels {
			texts[i] = append(texts[i], wideText(j, i))
		}
	}
	seen := map[string][]bool{}
	for _, x := range w.Targets() {
		seen[x.URL] = make([]bool, w.series*w.polls)
	}
	n := 0
	for _, g := range f.RowGroups() {
		rows := g.Rows()
		buf := make([]parquet.Row, 256)
		for err == nil {
			var got int
			got, err = rows.ReadRows(buf)
			for _, row := range buf[:got] {
				w.checkRow(t, row, texts, series, seen)
			}
			n += got
		}
		if err != io.EOF {
			t.Fatal(err)
		}
		err = rows.Close()
	}
	if n != w.rows() || f.NumRows() != int64(n) || err != nil {
		t.Errorf("read %d rows (%v), the footer says %d, want %d", n, err, f.NumRows(), w.rows())
	}
	return info.Size()
}

// checkRow wants a row to be one that was not seen before. The last label tells of
// which series it is.
func (w wide) checkRow(t *testing.T, row parquet.Row, texts [][]string, series map[string]int, seen map[string][]bool) {
	t.Helper()
	last := row[5+wideLabels].ByteArray()
	rows, i, n := seen[string(row[0].ByteArray())], series[string(last)], int((row[5].Int64()-wideNS)/1e9)
	at := n*w.series + i
	if at < 0 || at >= len(rows) || rows[at] || row[5].Int64() != wideNS+int64(n)*1e9 ||
		row[6+wideLabels].Double() != w.value(i, n) {
		t.Fatalf("row of %s at %v of %s is none of them, has another value, or comes twice", last, row[5], row[0])
	}
	rows[at] = true
	for j, want := range texts[i] {
		if got := row[6+j].ByteArray(); string(got) != want {
			t.Fatalf("series %d, poll %d: %s is %q, want %q", i, n, wideName(j), got, want)
		}
	}
}

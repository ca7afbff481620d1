package torchserve_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source/torchserve"
)

// view is what the snapshots of a source show, by name{labels}role bound.
type view struct {
	dict   metric.Schema
	values map[string]float64
	first  map[string]float64
	events map[string][]metric.Observation // by name{labels}
	codes  []string
	drops  int
	polls  int
}

func (v *view) add(s *metric.Snapshot) error {
	if v.values == nil {
		v.values, v.first, v.events = map[string]float64{}, map[string]float64{}, map[string][]metric.Observation{}
	}
	v.polls++
	if err := v.dict.Grow(&s.DictDelta); err != nil {
		return err
	}
	for i, slot := range s.Delta.Slots {
		sl := v.dict.Slots[slot]
		key := v.name(sl.Series)
		if sl.Role != metric.RoleValue {
			key += " " + sl.Role.String() + sl.Text
		}
		v.values[key] = s.Delta.Float(i)
		if _, ok := v.first[key]; !ok {
			v.first[key] = s.Delta.Float(i)
		}
	}
	for _, o := range s.Observations {
		v.events[v.name(o.Series)] = append(v.events[v.name(o.Series)], o)
	}
	for _, w := range s.Warnings {
		v.codes = append(v.codes, w.Code)
	}
	v.drops += s.Dropped()
	return nil
}

func (v *view) name(series int) string {
	return v.dict.FamilyOf(series).Name + v.dict.Series[series].Labels.String()
}

// poll makes one poll of a source.
func (v *view) poll(t *testing.T, s *torchserve.Source, kind metric.Kind) {
	t.Helper()
	snap := metric.Snapshot{Kind: kind}
	s.Poll(context.Background(), func() int64 { return 42e9 }, &snap)
	if err := v.add(&snap); err != nil {
		t.Fatal(err)
	}
}

func importAll(t *testing.T, o torchserve.Options, paths ...string) (*view, *torchserve.Read) {
	t.Helper()
	v := &view{}
	read, err := torchserve.Import(t.Context(), paths, nil, o, v.add)
	if err != nil {
		t.Fatal(err)
	}
	return v, read
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCounterLine(t *testing.T) { // T2
	path := write(t, filepath.Join(t.TempDir(), "a.log"),
		"2023-10-17T10:14:11,000 - ts_inference_latency_microseconds.Microseconds:4.9299189976E7"+
			"|#model_name:sdxl,model_version:default|#hostname:h1,timestamp:1697537651\n")
	v, _ := importAll(t, torchserve.Options{}, path)
	const key = `ts_inference_latency_microseconds{hostname="h1",model_name="sdxl",model_version="default"}`
	if v.first[key] != 0 || v.values[key] != 49299189.976 || v.dict.Families[0].Unit != "microseconds" {
		t.Errorf("got %v after %v, unit %q", v.values, v.first, v.dict.Families[0].Unit)
	}
}

func TestGaugeLine(t *testing.T) { // T1
	path := write(t, filepath.Join(t.TempDir(), "a.log"),
		"2022-03-30T10:58:39,358 - QueueTime.ms:1|#Level:Host|#hostname:h1,timestamp:1648663119")
	v, read := importAll(t, torchserve.Options{}, path)
	if diff := cmp.Diff(map[string]float64{`QueueTime{Hostname="h1",Level="Host"}`: 1}, v.values); diff != "" {
		t.Error(diff)
	}
	if name, factor := torchserve.Unit("ms"); name != "milliseconds" || factor != 1e-3 || v.dict.Families[0].Unit != name {
		t.Errorf("unit ms is %s x %v", name, factor)
	}
	if name, factor := torchserve.Unit("Megabytes"); name != "mebibytes" || factor != 1048576 {
		t.Errorf("unit Megabytes is %s x %v", name, factor)
	}
	if read.OK != 1 || read.StartNS != 1648663119358e6 {
		t.Errorf("read %+v", read)
	}
}

func TestOddLines(t *testing.T) { // T7
	path := write(t, filepath.Join(t.TempDir(), "a.log"), strings.Join([]string{
		"A.ms:1,5|#L:H|#hostname:h,timestamp:1",
		"garbage",
		"A.ms:2|#L:H|#hostname:h,requestID:null,timestamp:5",
		"1970-01-01T00:00:06,500 - A.ms:3|#L:H|#hostname:h,timestamp:null",
		"Requests2XX.Count:-1|#Level:Host|#hostname:h,timestamp:7",
		"A.ms:4|#Level:echo|#hostname:h,timestamp:7",
		"W-9000-m_1.0.ms:2500|#Level:Host|#hostname:h,timestamp:8",
	}, "\n"))
	v, read := importAll(t, torchserve.Options{}, path)
	if read.OK != 4 || read.Ignored != 1 || read.Bad != 2 || !strings.Contains(read.FirstBad[0], "a.log line 1: ") {
		t.Errorf("read %+v", read)
	}
	want := []metric.Observation{{AtNS: 5e9, Value: 2}, {AtNS: 6.5e9, Value: 3}}
	if diff := cmp.Diff(want, v.events[`A{Hostname="h",L="H"}`],
		cmpopts.IgnoreFields(metric.Observation{}, "Series")); diff != "" {
		t.Error(diff)
	}
	if v.values[`WorkerLoadTime{Hostname="h",Level="Host",WorkerName="W-9000-m_1.0"}`] != 2500 {
		t.Errorf("values %v", v.values)
	}
	for _, code := range []string{"type_guessed", "shifted_dimensions"} {
		if !slices.Contains(v.codes, code) {
			t.Errorf("no warning %s in %v", code, v.codes)
		}
	}
	// No time at all: that of the poll.
	s, err := torchserve.Follow(write(t, path, "A.ms:2|#L:H|#hostname:h\n"), torchserve.Options{FromStart: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	live := &view{}
	live.poll(t, s, metric.Periodic)
	if got := live.events[`A{Hostname="h",L="H"}`][0].AtNS; got != 42e9 {
		t.Errorf("line without a time is at %d", got)
	}
}

func TestSpecs(t *testing.T) { // T8
	if n := len(torchserve.Defaults()); n != 21 {
		t.Errorf("%d defaults, want 21", n)
	}
	const file = `
dimensions:
  - &model_name "ModelName"
  - &level "Level"
ts_metrics:
  counter:
    - {name: Requests2XX, unit: Count, dimensions: [*level, "Node"]}
model_metrics:
  histogram:
    - name: EchoHist
      unit: ratio
      dimensions: [*model_name, *level]
`
	specs, err := torchserve.ReadSpecs(strings.NewReader(file))
	want := []torchserve.Spec{{"Requests2XX", "Count", metric.Counter, []string{"Level", "Node"}},
		{"EchoHist", "ratio", metric.Histogram, []string{"ModelName", "Level", "Hostname"}}}
	if diff := cmp.Diff(want, specs); diff != "" || err != nil {
		t.Error(err, diff)
	}
	path := filepath.Join(t.TempDir(), "a.log")
	write(t, path, strings.Repeat("EchoHist.ratio:0.25|#ModelName:echo,Level:Model|#hostname:vm,timestamp:5\n", 5)+
		"EchoHist.ratio:1.0|#ModelName:echo,Level:Model|#hostname:vm,timestamp:6\n"+
		"Requests2XX.Count:1.0|#Level:Host|#hostname:vm,timestamp:6\n")
	v, _ := importAll(t, torchserve.Options{Specs: specs}, path)
	const h = `EchoHist{Hostname="vm",Level="Model",ModelName="echo"} `
	for key, want := range map[string]float64{h + "bucket0.1": 0, h + "bucket0.25": 5, h + "bucket0.5": 5, h +
		"bucket1": 6, h + "bucket+Inf": 6,
		h + "sum": 2.25, h + "count": 6, `Requests2XX{Level="Host",Node="vm"}`: 1} {
		if got, ok := v.values[key]; !ok || got != want || v.first[key] != 0 {
			t.Errorf("%s is %v (%v) after %v, want %v after 0", key, got, ok, v.first[key], want)
		}
	}
	refuse := func(file, want string) {
		t.Helper()
		if _, err := torchserve.ReadSpecs(strings.NewReader(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
	refuse("ts_metrics:\n  gauge:\n  - {name: A, unit: '', dimensions: []}", "neither may be empty")
	refuse("a: b", "no ts_metrics")
	refuse("ts_metrics: [", "yaml")
	refuse(strings.Repeat("# x\n", 1<<19), "larger")
}

// Whatever a writer does with the file, every line arrives once. Lines come in
// parts, files are renamed and made anew, and polls fall in between.
func TestFollow(t *testing.T) { // T9
	const line = "2026-11-20T23:13:36,473 - Requests2XX.Count:1.0|#Level:Host|#hostname:vm,timestamp:1795216416\n"
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		path := filepath.Join(dir, "ts_metrics.log")
		old := rapid.IntRange(0, 3).Draw(rt, "old lines")
		write(t, path, strings.Repeat(line, old))
		s, err := torchserve.Follow(path, torchserve.Options{})
		if err != nil {
			rt.Fatal(err)
		}
		defer s.Close()
		v := &view{}
		v.poll(t, s, metric.Baseline)
		written, rotations := 0, 0
		for written < 1000 || rotations < 7 {
			n := rapid.IntRange(0, 120).Draw(rt, "lines")
			half := rapid.IntRange(0, len(line)-1).Draw(rt, "half")
			appendTo(t, path, strings.Repeat(line, n)+line[:half])
			if rapid.Bool().Draw(rt, "poll between") {
				v.poll(t, s, metric.Periodic)
			}
			appendTo(t, path, line[half:])
			written += n + 1
			if rapid.Bool().Draw(rt, "poll before") {
				v.poll(t, s, metric.Periodic)
			}
			if rapid.Bool().Draw(rt, "rotate") {
				rotations++
				gone := filepath.Join(dir, fmt.Sprintf("ts_metrics.log.%d", rotations))
				if err := os.Rename(path, gone); err != nil {
					rt.Fatal(err)
				}
				if rapid.Bool().Draw(rt, "poll without file") {
					v.poll(t, s, metric.Periodic)
				}
				write(t, path, "")
				v.poll(t, s, metric.Periodic) // two rollovers between two polls would lose a file
				if rapid.Bool().Draw(rt, "archive") {
					if err := os.Remove(gone); err != nil { // its number may be used again
						rt.Fatal(err)
					}
				}
			}
		}
		v.poll(t, s, metric.Final)
		const key = `Requests2XX{Hostname="vm",Level="Host"}`
		if v.values[key] != float64(written) || v.first[key] != 0 && v.polls > 2 && v.drops != 0 {
			rt.Errorf("got %v after %v, want %d; %d dropped", v.values[key], v.first[key], written, v.drops)
		}
	})
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestFollowTellsOfLoss(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "a.log"), "old\n")
	s, err := torchserve.Follow(path, torchserve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	v := &view{}
	v.poll(t, s, metric.Baseline)
	write(t, path, "") // copytruncate
	v.poll(t, s, metric.Periodic)
	appendTo(t, path, "A.Count:1|#L:H|#hostname:h,timestamp:1\nA.Count:x|#L:H|#hostname:h,timestamp:1\n"+
		strings.Repeat("x", 70_000)+"\nA.Count:1|#L:H|#hostname:h,timestamp:1\n")
	v.poll(t, s, metric.Periodic)
	v.poll(t, s, metric.Periodic)
	if v.values[`A{Hostname="h",L="H"}`] != 2 || v.first[`A{Hostname="h",L="H"}`] != 0 || v.drops != 2 ||
		!slices.Contains(v.codes, "log_gap") || !slices.Contains(v.codes, "bad_line") {
		t.Errorf("got %v, %d drops, warnings %v", v.values, v.drops, v.codes)
	}
}

// The two metric logs of a folder, a pattern, and a stream with the same events
// again: each event counts once, unless doubles are wanted.
func TestDoubleFeed(t *testing.T) {
	dir := t.TempDir()
	lines := ""
	for i := range 20 {
		lines += fmt.Sprintf("Requests2XX.Count:1.0|#Level:Host|#hostname:vm,timestamp:%d\n", i/3)
	}
	write(t, filepath.Join(dir, "ts_metrics.log"), lines)
	write(t, filepath.Join(dir, "model_metrics.log"),
		"HandlerTime.ms:3|#ModelName:m,Level:Model|#hostname:vm,requestID:a,timestamp:3\n")
	write(t, filepath.Join(dir, "stdout.log"),
		strings.ReplaceAll(lines, "Requests2XX", "2026-11-20T23:13:36,473 [INFO ] t TS_METRICS - Requests2XX"))
	check := func(o torchserve.Options, want float64, double int, paths ...string) {
		t.Helper()
		v, read := importAll(t, o, paths...)
		if got := v.values[`Requests2XX{Hostname="vm",Level="Host"}`]; got != want || read.Double != double {
			t.Errorf("%v: got %v and %d doubles, want %v and %d", paths, got, read.Double, want, double)
		}
		o.FromStart = true
		s, err := torchserve.Follow(paths[0], o)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		live := &view{}
		live.poll(t, s, metric.Final)
		if got := live.values[`Requests2XX{Hostname="vm",Level="Host"}`]; got != want ||
			slices.Contains(live.codes, "double_feed") != (double > 0) {
			t.Errorf("%v followed: got %v, warnings %v", paths, got, live.codes)
		}
	}
	check(torchserve.Options{}, 20, 0, dir)
	check(torchserve.Options{}, 20, 20, filepath.Join(dir, "*.log"))
	check(torchserve.Options{Double: true}, 40, 0, filepath.Join(dir, "*.log"))
}

func TestStreamAndArchive(t *testing.T) {
	const line = "A.Count:1|#L:H|#hostname:h,timestamp:1\n"
	r, w := io.Pipe()
	s, err := torchserve.FollowStream(r, torchserve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, line+line+line); err != nil {
		t.Fatal(err)
	}
	w.Close()
	v := &view{}
	for v.values[`A{Hostname="h",L="H"}`] != 3 {
		v.poll(t, s, metric.Periodic)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, line+line)
	z.Close()
	path := write(t, filepath.Join(t.TempDir(), "a.log.gz"), packed.String())
	v, _ = importAll(t, torchserve.Options{}, path)
	if v.values[`A{Hostname="h",L="H"}`] != 2 {
		t.Errorf("archive gives %v", v.values)
	}
	if _, err := torchserve.Follow(path, torchserve.Options{}); err == nil ||
		!strings.Contains(err.Error(), "import torchserve-log") {
		t.Errorf("following an archive gives %v", err)
	}
	v = &view{}
	read, err := torchserve.Import(t.Context(), []string{"-"}, strings.NewReader(line), torchserve.Options{}, v.add)
	if err != nil || read.OK != 1 {
		t.Error(read, err)
	}
}

func TestLimits(t *testing.T) {
	var lines strings.Builder
	for i := range 30 {
		fmt.Fprintf(&lines, "A.Count:1|#L:%d|#hostname:h,timestamp:1\n", i)
	}
	path := write(t, filepath.Join(t.TempDir(), "a.log"), lines.String())
	s, err := torchserve.Follow(path, torchserve.Options{FromStart: true, MaxSeries: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	snap := metric.Snapshot{}
	s.Poll(t.Context(), func() int64 { return 1 }, &snap)
	if snap.Outcome != metric.Partial || snap.Lines != 30 || snap.Dropped() != 20 || len(snap.DictDelta.Series) != 10 {
		t.Errorf("got %v, %d lines, %d dropped, %d series", snap.Outcome, snap.Lines, snap.Dropped(),
			len(snap.DictDelta.Series))
	}
	for _, bad := range [][]float64{{1, 1}, {2, 1}, {math.NaN()}, {math.Inf(1)}} {
		if _, err := torchserve.Follow(path, torchserve.Options{Buckets: map[string][]float64{"A": bad}}); err == nil {
			t.Errorf("bounds %v were accepted", bad)
		}
	}
}

package history_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/history"
)

// open opens a new history.
func open(t testing.TB) *history.File {
	t.Helper()
	f, err := history.Open(t.Context(), filepath.Join(t.TempDir(), "history.db"), true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// lines are runs of one quantity as a CSV, one a day.
func lines(quantity string, values ...float64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "time,run,commit,%s\n", quantity)
	for i, v := range values {
		fmt.Fprintf(&b, "%d,r%d,c%d,%v\n", 1_750_000_000+i*86400, i+1, i+1, v)
	}
	return b.String()
}

// entries reads a CSV.
func entries(t testing.TB, text string) (out []*history.Entry) {
	t.Helper()
	err := history.ReadCSV(strings.NewReader(text), history.CSVOptions{}, func(e *history.Entry) error {
		out = append(out, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// add adds entries in their order.
func add(t testing.TB, f *history.File, list []*history.Entry) {
	t.Helper()
	for _, e := range list {
		if ok, err := f.Add(t.Context(), e, false); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
}

// view reads what was asked for.
func view(t testing.TB, f *history.File, q history.Query) *history.View {
	t.Helper()
	v, err := f.View(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// document is the JSON of a view.
func document(t testing.TB, v *history.View) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := v.JSON(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type change struct {
	Index             int
	Change, Low, High float64
	P                 float64
	NBefore           int `json:"n_before"`
	NAfter            int `json:"n_after"`
	Minor             bool
}

type found struct {
	Log, Unstable  bool
	Sigma          float64
	Outliers       []int
	Changes, Minor []change
	Drifts         []struct {
		Start, End int
		Change     float64
	}
}

// TestVectors is row 1 of the acceptance table: the series of the reference, added as CSV and shown as JSON.
func TestVectors(t *testing.T) {
	b, err := os.ReadFile("../testdata/vectors/history/series.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name   string
		Values []float64
		Expect found
	}
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	near := func(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance*max(math.Abs(a), math.Abs(b)) }
	changes, drifts := 0, 0
	for _, c := range cases {
		f := open(t)
		add(t, f, entries(t, lines("score", c.Values...)))
		var doc struct{ Series []found }
		if err := json.Unmarshal(document(t, view(t, f, history.Query{})), &doc); err != nil || len(doc.Series) != 1 {
			t.Fatal(c.Name, err, len(doc.Series))
		}
		got, want := doc.Series[0], c.Expect
		all := append(want.Changes, want.Minor...)
		slices.SortFunc(all, func(a, b change) int { return a.Index - b.Index })
		ok := got.Log == want.Log && got.Unstable == want.Unstable && near(got.Sigma, want.Sigma, 1e-8) &&
			slices.Equal(got.Outliers, want.Outliers) && len(got.Changes) == len(all) && len(got.Drifts) == len(want.Drifts)
		for i := 0; ok && i < len(all); i++ {
			g, w := got.Changes[i], all[i]
			ok = g.Index == w.Index && g.Minor == w.Minor && g.NBefore == w.NBefore && g.NAfter == w.NAfter &&
				near(g.Change, w.Change, 1e-8) && near(g.Low, w.Low, 1e-8) && near(g.High, w.High, 1e-8) && near(g.P, w.P, 1e-6)
		}
		for i := 0; ok && i < len(want.Drifts); i++ {
			g, w := got.Drifts[i], want.Drifts[i]
			ok = g.Start == w.Start && g.End == w.End && near(g.Change, w.Change, 1e-8)
		}
		if !ok {
			t.Errorf("%s: got %+v, want %+v", c.Name, got, want)
		}
		changes, drifts = changes+len(all), drifts+len(want.Drifts)
	}
	if changes < 15 || drifts < 2 {
		t.Errorf("only %d changes and %d drifts", changes, drifts)
	}
}

// noisy are values around a level, the same for the same seed.
func noisy(seed uint64, n int, level, sd float64) []float64 {
	r := rand.New(rand.NewPCG(seed, 24))
	out := make([]float64, n)
	for i := range out {
		out[i] = level * (1 + sd*r.NormFloat64())
	}
	return out
}

// TestOrder is row 7: added all at once, one by one with a look after each, and backwards, runs show the same.
func TestOrder(t *testing.T) {
	list := entries(t, lines("itl_mean", slices.Concat(noisy(1, 20, 0.01, 0.02), noisy(2, 20, 0.011, 0.02))...))
	forth, single, back := open(t), open(t), open(t)
	add(t, forth, list)
	want := document(t, view(t, forth, history.Query{}))
	var got []byte
	for i := range list {
		add(t, single, list[i:i+1])
		got = document(t, view(t, single, history.Query{}))
	}
	if !bytes.Equal(got, want) {
		t.Errorf("added one by one: %s, want %s", got, want)
	}
	slices.Reverse(list)
	add(t, back, list)
	if got := document(t, view(t, back, history.Query{})); !bytes.Equal(got, want) {
		t.Errorf("added backwards: %s, want %s", got, want)
	}
	if !strings.Contains(string(want), `"verdict": "worse"`) {
		t.Errorf("no change in %s", want)
	}
	if ok, err := back.Add(t.Context(), list[0], false); ok || err != nil {
		t.Errorf("a run that is there was added: %v %v", ok, err)
	}
}

// TestCommitOrder: runs in the order of their commits, whenever they were measured; those of other commits are beside.
func TestCommitOrder(t *testing.T) {
	values := slices.Concat(noisy(1, 10, 0.01, 0.01), noisy(2, 10, 0.011, 0.01))
	list := entries(t, lines("itl_mean", append(values, 1)...))
	q := history.Query{Commits: []string{}}
	for i, e := range list { // measured in turn: an old one, a new one
		if e.AtNS = 1_750_000_000e9 + int64(i%10*2+i/10)*86400e9; i < len(values) {
			q.Commits = append(q.Commits, e.Commit)
		}
	}
	f := open(t)
	add(t, f, list)
	if c := view(t, f, history.Query{}).Series[0].Changes(); len(c) > 0 {
		t.Errorf("by time: %+v", c)
	}
	s := view(t, f, q).Series[0]
	if c := s.Changes(); len(c) != 1 || c[0].Index != 10 || c[0].Before.Commit != "c10" || c[0].At.Commit != "c11" {
		t.Errorf("by commit: %+v", c)
	}
	if n := len(s.Line); n != len(values) {
		t.Errorf("%d points on the line, want %d", n, len(values))
	}
}

// TestAccept is row 13: an accepted run begins the level, and its change is no alarm any more; a dropped run is beside.
func TestAccept(t *testing.T) {
	f := open(t)
	add(t, f, entries(t, lines("itl_mean", slices.Concat(noisy(1, 20, 0.01, 0.01), noisy(2, 10, 0.011, 0.01))...)))
	alarms := func() (n int) {
		v := view(t, f, history.Query{})
		for i := range v.Events {
			if v.Events[i].Is("worse") {
				n++
			}
		}
		return n
	}
	if n := alarms(); n != 1 {
		t.Fatalf("%d alarms", n)
	}
	for run, state := range map[string]history.State{"r21": history.Accepted, "r25": history.Dropped} {
		if ok, err := f.Mark(t.Context(), run, state, "meant"); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if n := alarms(); n != 0 {
		t.Errorf("%d alarms after it was accepted", n)
	}
	base := view(t, f, history.Query{}).Series[0].Base(nil)
	if len(base) != 9 || base[0].Path != "r21" {
		t.Errorf("the base has %d runs and begins with %s", len(base), base[0].Path)
	}
	if ok, err := f.Mark(t.Context(), "r99", history.Dropped, "x"); ok || err != nil {
		t.Errorf("a run that is not there was dropped: %v", err)
	}
}

// TestBeside: runs of another branch, window or load are beside the line.
func TestBeside(t *testing.T) {
	f := open(t)
	list := entries(t, lines("itl_mean", noisy(1, 20, 0.01, 0.01)...))
	for i, e := range list {
		e.Branch, e.Window = "main", 60
		isl := history.Value{Engine: "csv", Quantity: "isl_mean", Kind: history.Cause, Better: "neutral",
			Value: noisy(uint64(i)+9, 1, 1000, 0.001)[0], Low: math.NaN(), High: math.NaN()}
		switch i {
		case 5:
			e.Branch = "topic"
		case 6:
			e.Window = 40
		case 7:
			isl.Value = 1100
		}
		e.Values = append(e.Values, isl)
	}
	add(t, f, list)
	s := view(t, f, history.Query{}).Series[0]
	if got := []string{s.Points[5].Beside, s.Points[6].Beside, s.Points[7].Beside}; len(s.Line) != 17 ||
		!slices.Equal(got, []string{"branch", "window", "load"}) {
		t.Errorf("%d points, beside for %q", len(s.Line), got)
	}
}

// TestCrept: minor steps that add up are told.
func TestCrept(t *testing.T) {
	var values []float64
	for step := range 3 {
		values = append(values, noisy(uint64(step), 12, 0.1*math.Pow(1.018, float64(step)), 0.001)...)
	}
	f := open(t)
	add(t, f, entries(t, lines("e2e_mean", values...)))
	v := view(t, f, history.Query{})
	c, ok := v.Series[0].Crept()
	minor := len(v.Series[0].Found.Changes) + len(v.Series[0].Found.Drifts)
	if len(v.Series[0].Found.Drifts) == 0 && (!ok || math.Abs(c.Change-0.036) > 0.003 || c.Since.Number != 13) {
		t.Errorf("crept %v since %+v, %d changes", c.Change, c.Since, minor)
	}
	if !slices.ContainsFunc(v.Events, func(e history.Event) bool { return e.Is("drift") }) {
		t.Errorf("no event tells it: %+v", v.Events)
	}
}

// TestRefused: what is no history is not read, nor a newer one, and a line of a CSV is named.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "history.db")
	if _, err := history.Open(t.Context(), path, false); err == nil || !strings.Contains(err.Error(), "history add") {
		t.Errorf("none: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("reading left %v: %v", left, err)
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("no database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, write := range []bool{false, true} {
		if _, err := history.Open(t.Context(), path, write); err == nil {
			t.Error("a file of something else was opened")
		}
	}
	for text, want := range map[string]string{"": "1:1: no header", "a,b\n": "no column time", "time\n": "of a quantity",
		"time,x,x\n": `1:8: column "x"`, "time,x\n1750000000,1\nyesterday,2\n": `3:1: time "yesterday"`,
		"time,x\n1750000000,1,3\n": "2:", "time,x\n\"1": "2:"} {
		err := history.ReadCSV(strings.NewReader(text), history.CSVOptions{}, func(*history.Entry) error { return nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	e := entries(t, "time,itl_mean,score\n2026.01.01 3:00:00 +0100,-1,-1\n")[0]
	if e.AtNS != 1767232800e9 || e.Values[0].Note == "" || e.Values[1].Note != "" {
		t.Errorf("%+v", e)
	}
}

// FuzzCSV: any file is read or refused with its line.
func FuzzCSV(f *testing.F) {
	f.Add("time,run,commit,branch,tag:a,x\n2026-01-01T00:00:00Z,r,c,b,v,1\n")
	f.Add(lines("itl_mean", 1, 2))
	f.Fuzz(func(t *testing.T, text string) {
		n := 0
		o := history.CSVOptions{Keys: []string{"a"}}
		err := history.ReadCSV(strings.NewReader(text), o, func(e *history.Entry) error {
			if n++; len(e.Fingerprint) != 12 || e.ID == "" {
				t.Errorf("%+v", e)
			}
			return nil
		})
		if err != nil && !strings.Contains(err.Error(), ":") {
			t.Error(err)
		}
	})
}

// TestLoadCommand: what differs between runs of one load is left out.
func TestLoadCommand(t *testing.T) {
	a := history.LoadCommand(strings.Fields("bench serve --seed 1 --port=8000 --output-len 48 -o out1 --result-dir x " +
		"--save-result --dataset-path d --base-url http://h:8000/v1"))
	b := history.LoadCommand(strings.Fields("bench serve --seed 2 --port=8001 --output-len 48 -o out2 --result-dir y " +
		"--save-result --dataset-path d --base-url http://h:8001/v1"))
	if want := "bench serve --output-len 48 --dataset-path d --base-url http://h/v1"; a != want || b != want {
		t.Errorf("got %q and %q, want %q", a, b, want)
	}
}

// recorded adds runs as large as those of a recording.
func recorded(t testing.TB, f *history.File, runs int) {
	t.Helper()
	for i := range runs {
		commit := fmt.Sprintf("%040d", i)
		e := &history.Entry{Run: history.Run{ID: commit[8:], AtNS: int64(i) * 86400e9, Path: "/runs/" + commit[30:],
			Commit: commit, Branch: "main", Fingerprint: "0123456789ab", Window: 60, State: history.Normal,
			Tags: map[string]string{"git.commit": commit}}, Config: "{}", Settings: map[string]string{}}
		for k := range 25 {
			e.Values = append(e.Values, history.Value{Engine: "vllm", Quantity: fmt.Sprintf("q%d", k),
				Kind: history.Headline, Unit: "seconds", Better: "lower", Value: 1 + float64(i*k%97), ErrLog: 0.01, DF: 9,
				Low: 1, High: 2, Beyond: 99})
		}
		for k := range 40 {
			e.Settings[fmt.Sprintf("cache_config setting_%d", k)] = fmt.Sprintf("value %d", k)
		}
		add(t, f, []*history.Entry{e})
	}
}

// TestSize is the limit on sizes: a run takes less than 3 KB in the file, and what is read costs in proportion to what
// is asked for, not to what is there.
func TestSize(t *testing.T) {
	f := open(t)
	recorded(t, f, 60)
	one, all := history.Query{Quantities: []string{"q3"}}, history.Query{}
	few, many := allocsOf(t, f, one), allocsOf(t, f, all)
	twice := open(t)
	recorded(t, twice, 120)
	if r := allocsOf(t, twice, all) / many; r > 2.2 {
		t.Errorf("twice the runs cost %.2f times as much", r)
	}
	if r := many / few; r < 2 {
		t.Errorf("25 quantities cost %.2f times as much as one", r)
	}
	// The limit is 64 MB for a process that shows 10,000 runs of 11 quantities, half of which it is before it reads.
	if n := (bytesOf(t, twice, all) - bytesOf(t, f, all)) / (60 * 25); n > 900 {
		t.Errorf("%d bytes are allocated for one more point", n)
	}
	if size := (sizeOf(t, twice) - sizeOf(t, f)) / 60; size > 3000 {
		t.Errorf("%d bytes a run", size)
	}
}

func allocsOf(t *testing.T, f *history.File, q history.Query) float64 {
	return testing.AllocsPerRun(1, func() { view(t, f, q) })
}

func bytesOf(t *testing.T, f *history.File, q history.Query) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	view(t, f, q)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// sizeOf is the size of a file with its log written back.
func sizeOf(t *testing.T, f *history.File) int64 {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// endless is a file that never ends, and counts what was read of it.
type endless struct {
	head string
	n    int
}

func (e *endless) Read(b []byte) (int, error) {
	n := copy(b, e.head)
	e.head = e.head[n:]
	for i := range b[n:] {
		b[n+i] = 'a'
	}
	e.n += len(b)
	return len(b), nil
}

// TestEndlessCSV: a line that does not end is refused while it is read, in quotes too.
func TestEndlessCSV(t *testing.T) {
	for _, head := range []string{"", "time,x\n2026-01-01T00:00:00Z,", "time,x\n2026-01-01T00:00:00Z,\""} {
		in := &endless{head: head}
		err := history.ReadCSV(in, history.CSVOptions{}, func(*history.Entry) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "MiB") || in.n > 4<<20 {
			t.Errorf("%q: %d bytes were read, %v", head, in.n, err)
		}
	}
}

// TestStrangeHistory: a history may come from anybody. A journal that has SQLite remove another file is refused, and so
// are settings of more than 4 MiB.
func TestStrangeHistory(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "h.db")
	f, err := history.Open(ctx, path, true)
	if err != nil {
		t.Fatal(err)
	}
	e := entries(t, lines("x", 1))[0]
	e.Settings = map[string]string{}
	for i := range 100 {
		e.Settings[fmt.Sprint("s", i)] = strings.Repeat("x", 1<<16)
	}
	if _, err := f.Add(ctx, e, false); err == nil || !strings.Contains(err.Error(), "too big") {
		t.Errorf("6 MiB of settings: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	journal := append(make([]byte, 512), 0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7)
	if err := os.WriteFile(path+"-journal", journal, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, write := range []bool{false, true} {
		if f, err := history.Open(ctx, path, write); err == nil || !strings.Contains(err.Error(), "names another") {
			t.Errorf("write %v: %v, %v", write, f, err)
		}
	}
}

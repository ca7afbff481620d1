package rundb_test

import (
	"database/sql"
	"encoding/hex"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// alter runs a statement in the file of a closed recording.
func alter(t *testing.T, dir, statement string, args ...any) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, rundb.FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statement, args...); err != nil {
		t.Fatal(err)
	}
}

// recorded makes a closed recording of 100 polls of one target in blocks of 10.
// Poll 35 grows the dictionary.
func recorded(t *testing.T) (dir string, polls []*metric.Snapshot) {
	t.Helper()
	dir = t.TempDir()
	w := create(t, dir, 1, rundb.WriterOptions{BlockPolls: 10})
	polls = tape(0, 100, false)
	polls[35].DictDelta = metric.DictDelta{Families: []metric.Family{{Name: "late"}},
		Series: []metric.Series{{Family: len(polls[0].DictDelta.Families)}},
		Slots:  []metric.SampleID{{Series: len(polls[0].DictDelta.Series)}}}
	polls[35].Delta.Full = true
	polls[35].Delta.Slots, polls[35].Delta.Bits = nil, nil
	for i := range loadSlots + 1 {
		polls[35].Delta.Slots, polls[35].Delta.Bits = append(polls[35].Delta.Slots, uint32(i)),
			append(polls[35].Delta.Bits, uint64(i))
	}
	for _, s := range polls {
		if err := w.Record(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return dir, polls
}

// TestDamage destroys one block and expects the others, a full frame and a
// warning after the gap, and a complete dictionary.
func TestDamage(t *testing.T) {
	check := func(name, statement string, args ...any) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			dir, polls := recorded(t)
			alter(t, dir, statement, args...)
			r := open(t, dir)
			got := read(t, r, 0)
			if len(got) < 90 || len(got) >= 100 {
				t.Fatalf("got %d polls, want 90 or a few more", len(got))
			}
			same(t, polls[:30], got[:30])
			after := got[len(got)-60]
			if !after.Delta.Full || len(after.Delta.Slots) != loadSlots+1 || after.Seq != 40 {
				t.Errorf("after the gap: poll %d, full %v, %d slots", after.Seq, after.Delta.Full, len(after.Delta.Slots))
			}
			var dict metric.Schema
			for _, s := range got {
				if err := dict.Grow(&s.DictDelta); err != nil {
					t.Fatal(err)
				}
			}
			if len(dict.Slots) != loadSlots+1 || dict.Families[len(dict.Families)-1].Name != "late" {
				t.Errorf("the dictionary has %d slots", len(dict.Slots))
			}
			if len(after.Warnings) == 0 || after.Warnings[0].Code != "recording_damaged" ||
				!cmp.Equal(after.Warnings, r.Warnings()) {
				t.Errorf("warnings: of the poll %v, of the run %v", after.Warnings, r.Warnings())
			}
			same(t, polls[41:], got[len(got)-59:])
		})
	}
	check("missing block", "DELETE FROM block WHERE poll = 30")
	check("garbage", "UPDATE block SET op = randomblob(200) WHERE poll = 30")
	check("changed byte", "UPDATE block SET num = CAST(substr(num, 1, 20) || x'00' || substr(num, 22) AS BLOB) WHERE "+
		"poll = 30")
	check("no entries", "UPDATE block SET op = x'' WHERE poll = 30")
	check("wrong count", "UPDATE block SET polls = 9 WHERE poll = 30")
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	bomb := z.EncodeAll(make([]byte, 300<<20), nil)
	check("bomb", "UPDATE block SET bits = ? WHERE poll = 30", bomb)
}

// TestNotARecording wants errors that say what to do.
func TestNotARecording(t *testing.T) {
	refuse := func(dir, want string) {
		t.Helper()
		r, err := rundb.Open(dir)
		if err == nil {
			r.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), rundb.FileName) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	file := func(data string) string {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, rundb.FileName), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	refuse(t.TempDir(), "no recording there")
	refuse(file(""), "not a recording of scrapestat")
	refuse(file(strings.Repeat("not a database ", 100)), "file is not a database")
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, rundb.FileName), 0o700); err != nil {
		t.Fatal(err)
	}
	refuse(dir, "not a file")
	dir, _ = recorded(t)
	alter(t, dir, "PRAGMA user_version = 7")
	refuse(dir, "newer scrapestat (schema 7, this program reads up to 6): update scrapestat")
	if err := rundb.AddMark(dir, metric.Mark{Name: "x"}); err == nil ||
		!strings.Contains(err.Error(), "newer scrapestat") {
		t.Errorf("mark in a newer recording: got %v", err)
	}
}

// TestCreate checks modes, the refusal to overwrite, and what Open gives back.
func TestCreate(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	dir := t.TempDir()
	meta := rundb.Meta{ID: "id", Version: "1.2", Command: []string{"scrapestat", "collect", "<&>"},
		Tags: map[string]string{"gpu": "H100"}, OriginNS: 1_790_000_000_123_456_789,
		Interval: 333 * time.Millisecond, Timeout: 5 * time.Second, Warmup: 1, Cooldown: 2, Settle: 3, Slice: 4,
		Host: "h", Limits: map[string]int64{"body": 1 << 40}, Window: "command"}
	w, err := rundb.Create(dir, meta, rundb.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	target := metric.Target{Name: "a", URL: "http://a/metrics", Source: "prometheus"}
	if _, err := w.AddTarget(target); err != nil {
		t.Fatal(err)
	}
	warning := metric.Warning{Code: "clock", Text: "jumped"}
	if err := errors.Join(w.Warn(warning), w.Mark(metric.Mark{Name: "b", AtNS: 2}),
		w.Mark(metric.Mark{Name: "a", AtNS: 1}), w.Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < 2 {
		t.Fatalf("files while recording: %v, %v", files, err)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: mode %v, %v", f, info.Mode(), err)
		}
	}
	if _, err := rundb.Create(dir, meta, rundb.WriterOptions{}); !errors.Is(err, rundb.ErrExists) {
		t.Errorf("second Create: got %v", err)
	}
	if _, err := rundb.Create(filepath.Join(dir, "none"), meta, rundb.WriterOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Create in no directory: got %v", err)
	}
	if got := open(t, dir).Meta(); !cmp.Equal(got, meta) {
		t.Errorf("meta while recording: %s", cmp.Diff(meta, got))
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := open(t, dir)
	got := r.Meta()
	if got.EndNS == 0 {
		t.Error("a closed recording has no end")
	}
	got.EndNS, got.Polls = 0, nil
	if d := cmp.Diff(meta, got); d != "" {
		t.Errorf("meta (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]metric.Mark{{Name: "a", AtNS: 1}, {Name: "b", AtNS: 2}}, r.Marks()); d != "" {
		t.Errorf("marks (-want +got):\n%s", d)
	}
	if !slices.Equal(r.Targets(), []metric.Target{target}) || !cmp.Equal(r.Warnings(), []metric.Warning{warning}) {
		t.Errorf("targets %v, warnings %v", r.Targets(), r.Warnings())
	}
	if err := w.Record(&metric.Snapshot{}); !errors.Is(err, rundb.ErrClosed) {
		t.Errorf("Record after Close: got %v", err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

// TestRefused wants a broken snapshot refused and the recording unharmed.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, 1, rundb.WriterOptions{})
	polls := tape(0, 3, false)
	if err := w.Record(polls[0]); err != nil {
		t.Fatal(err)
	}
	refuse := func(want string, change func(*metric.Snapshot)) {
		t.Helper()
		s := polls[1].Clone()
		change(s)
		if err := w.Record(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	refuse("target 1 of 1", func(s *metric.Snapshot) { s.Target = 1 })
	refuse("slot 1087 of", func(s *metric.Snapshot) { s.Delta.Slots[len(s.Delta.Slots)-1] = loadSlots })
	refuse("slot 0 after 0", func(s *metric.Snapshot) { s.Delta.Slots[0], s.Delta.Slots[1] = 0, 0 })
	refuse("values", func(s *metric.Snapshot) { s.Delta.Bits = s.Delta.Bits[1:] })
	refuse("outcome 99", func(s *metric.Snapshot) { s.Outcome = 99 })
	refuse("has family 9999", func(s *metric.Snapshot) { s.DictDelta.Series = []metric.Series{{Family: 9999}} })
	refuse("has series -1", func(s *metric.Snapshot) { s.DictDelta.Slots = []metric.SampleID{{Series: -1}} })
	for _, s := range polls[1:] {
		if err := w.Record(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, polls, read(t, open(t, dir), 0))
}

// TestVectors holds the encoding of docs/data/rundb.md to the byte: the sections of
// the second of two polls, less its head.
func TestVectors(t *testing.T) {
	check := func(role metric.Role, integer bool, prev, cur []uint64, op, num, bits string) {
		t.Helper()
		dir := t.TempDir()
		w := create(t, dir, 1, rundb.WriterOptions{})
		a := metric.Snapshot{DictDelta: metric.DictDelta{Families: make([]metric.Family, 1),
			Series: make([]metric.Series, 1)}, Delta: metric.Delta{Full: true}}
		b := metric.Snapshot{Seq: 1}
		for i := range prev {
			a.DictDelta.Slots = append(a.DictDelta.Slots, metric.SampleID{Role: role, Integer: integer})
			a.Delta.Slots, a.Delta.Bits = append(a.Delta.Slots, uint32(i)), append(a.Delta.Bits, prev[i])
			if prev[i] != cur[i] {
				b.Delta.Slots, b.Delta.Bits = append(b.Delta.Slots, uint32(i)), append(b.Delta.Bits, cur[i])
			}
		}
		one := sectionsOf(t, func(w *rundb.Writer) error { return w.Record(&a) })
		if err := errors.Join(w.Record(&a), w.Record(&b), w.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		two := sectionsIn(t, dir)
		for i, want := range []string{op, num, bits} {
			if got := hex.EncodeToString(two[i][len(one[i]):]); got != strings.ReplaceAll(want, " ", "") {
				t.Errorf("%x to %x: section %d is %s, want %s", prev, cur, i+1, got, want)
			}
		}
		same(t, []*metric.Snapshot{a.Clone(), b.Clone()}, read(t, open(t, dir), 0))
	}
	f := func(v ...float64) (out []uint64) {
		for _, x := range v {
			out = append(out, math.Float64bits(x))
		}
		return out
	}
	minus0 := math.Copysign(0, -1)
	value, bucket := metric.RoleValue, metric.RoleBucket
	check(value, false, f(10, 0, 3.5, 7, math.NaN()), f(12, 0, 3.75, 7, math.NaN()), "0a 17", "", "00000000000004")
	check(value, false, f(0), f(minus0), "08", "", "ffffffffffffffff")
	check(value, false, f(5), f(minus0), "08", "", "000000000000d87f")
	check(value, false, f(minus0), f(0), "08", "", "ffffffffffffffff")
	check(value, false, f(5), f(5), "", "", "")
	check(value, false, f(0, 0, 1), f(0, 0, 0), "2e", "", "")
	check(value, false, f(0), f(6), "00", "0c", "")
	check(value, false, f(0), f(-3), "00", "05", "")
	check(bucket, false, f(1, 2, 3, 4), f(1, 7, 8, 9), "1d", "", "")
	check(bucket, false, f(1, 2, 3, 4), f(2, 3, 3, 4), "09 1e", "", "")
	check(value, true, []uint64{0, 1<<64 - 1, 1 << 63}, []uint64{1<<64 - 1, 0, 0}, "0e 09 00", "ffffffffffffffffff01", "")
}

// sectionsOf records into a new recording and returns its op, num and bits.
func sectionsOf(t *testing.T, record func(*rundb.Writer) error) [3][]byte {
	t.Helper()
	dir := t.TempDir()
	w := create(t, dir, 1, rundb.WriterOptions{})
	if err := errors.Join(record(w), w.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	return sectionsIn(t, dir)
}

func sectionsIn(t *testing.T, dir string) (out [3][]byte) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, rundb.FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow("SELECT op, num, bits FROM block").Scan(&out[0], &out[1], &out[2]); err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for i := range out {
		if out[i], err = z.DecodeAll(out[i], nil); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

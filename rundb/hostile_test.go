package rundb_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/scrapestat/scrapestat/internal/fuzzbound"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// readAll reads whatever a run directory gives, to the end or to the first error.
func readAll(t *testing.T, dir string) error {
	r, err := rundb.Open(dir)
	if err != nil {
		return err
	}
	defer r.Close()
	for i := range r.Targets() {
		for _, err := range r.Snapshots(t.Context(), i) {
			if err != nil {
				return err
			}
		}
	}
	r.Warnings()
	return nil
}

// FuzzOpen damages a recording of a stranger: three places of the file at once.
// Reading it ends, with or without an error.
func FuzzOpen(f *testing.F) {
	dir := f.TempDir()
	w := create(f, dir, 1, rundb.WriterOptions{BlockPolls: 2})
	for i := range 5 {
		s := &metric.Snapshot{Seq: uint64(i), DueNS: int64(i) * 1e9, SentNS: int64(i) * 1e9, Duration: 5, Lines: 1}
		if i == 0 {
			s.DictDelta = metric.DictDelta{Families: []metric.Family{{Name: "a"}}, Series: []metric.Series{{}},
				Slots: []metric.SampleID{{}}}
		}
		s.Delta = metric.Delta{Full: i == 0, Slots: []uint32{0}, Bits: []uint64{uint64(i)}}
		if err := w.Record(s); err != nil {
			f.Fatal(err)
		}
	}
	if err := w.Close(context.Background()); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(filepath.Join(dir, rundb.FileName))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(0), []byte{}, uint32(0), []byte{}, uint32(0))
	f.Add(uint32(16), []byte{0xff, 0xff}, uint32(28), []byte{0xff, 0xff, 0xff, 0xff}, uint32(0)) // size of a page, pages
	f.Add(uint32(bytes.Index(good, []byte("CREATE TABLE"))), []byte("CREATE VIEW "), uint32(0), []byte{}, uint32(0))
	f.Add(uint32(4096), []byte{13, 0, 0, 0xff, 0xff}, uint32(8192), []byte{13, 0, 0, 0xff}, uint32(0))
	f.Add(uint32(0), []byte{}, uint32(0), []byte{}, uint32(5000))         // cut
	if at := bytes.Index(good, []byte{0x28, 0xb5, 0x2f, 0xfd}); at >= 0 { // a frame that declares 2^64-1 bytes
		f.Add(uint32(at+4), []byte{0xe0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, uint32(0), []byte{}, uint32(0))
	}
	f.Fuzz(func(t *testing.T, at uint32, with []byte, also uint32, this []byte, cut uint32) {
		defer fuzzbound.Check(t)()
		data := bytes.Clone(good)
		copy(data[int(at)%len(data):], with)
		copy(data[int(also)%len(data):], this)
		if cut > 0 {
			data = data[:int(cut)%len(data)]
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, rundb.FileName), data, 0o600); err != nil {
			t.Fatal(err)
		}
		err := readAll(t, dir)
		if bytes.Equal(data, good) && err != nil {
			t.Error(err)
		}
	})
}

// TestDeclaredSize puts frames into a block that declare far more than they hold,
// alone and behind a small one: the memory goes by what is there.
func TestDeclaredSize(t *testing.T) {
	empty := func(size uint64) []byte { // a frame with its size and no block that fills it
		return binary.LittleEndian.AppendUint64([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0}, size)
	}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	small := z.EncodeAll([]byte("small"), nil)
	last := []byte{1, 0, 0} // a last block without content
	check := func(frame []byte) {
		t.Helper()
		dir, _ := recorded(t)
		alter(t, dir, "UPDATE block SET op = ?, head = ? WHERE poll = 30", frame, frame)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := open(t, dir)
		got := 0
		for range r.Snapshots(t.Context(), 0) { // the damage is in the warnings
			got++
		}
		runtime.ReadMemStats(&after)
		if got >= 100 {
			t.Errorf("%x: all %d polls were read", frame, got)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
			t.Errorf("%x: reading allocated %d bytes", frame, n)
		}
	}
	for _, size := range []uint64{200 << 20, 255 << 20, 4 << 30, 1<<64 - 1} {
		check(append(empty(size), last...))
		check(append(append(bytes.Clone(small), empty(size)...), last...))
	}
}

package rundb_test

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scrapestat/scrapestat/internal/faults"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// readout is what a recording gives: of each poll, by target and number, a hash of all it shows.
type readout struct {
	polls   map[[2]uint64]uint64
	lost    int
	meta    rundb.Meta
	marks   []metric.Mark
	targets []metric.Target
	damage  []string
}

// readOut reads a recording to its end, as far as that goes without an error.
func readOut(t *testing.T, dir string, seed maphash.Seed) (*readout, error) {
	t.Helper()
	r, err := rundb.Open(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	out := &readout{polls: map[[2]uint64]uint64{}, meta: r.Meta(), marks: r.Marks(), targets: r.Targets()}
	for target := range r.Targets() {
		var dict metric.Schema
		var names, now []uint64
		for s, err := range r.Snapshots(t.Context(), target) {
			if err != nil {
				return out, err
			}
			if err := dict.Extend(s); err != nil {
				return out, err
			}
			for _, slot := range dict.Slots[len(names):] {
				series := dict.Series[slot.Series]
				names = append(names, maphash.Comparable(seed, fmt.Sprint(dict.Families[series.Family], series.Labels, slot)))
				now = append(now, 0)
			}
			if s.Delta.Full {
				clear(now)
			}
			for i, slot := range s.Delta.Slots {
				now[slot] = maphash.Comparable(seed, [2]uint64{names[slot], s.Delta.Bits[i]})
			}
			sum := maphash.String(seed, fmt.Sprint(s.Kind, s.Outcome, s.DueNS, s.SentNS, s.FirstByteNS, s.Duration, s.BodyBytes,
				s.Lines, s.Status, s.Err, s.Drops))
			for _, v := range now {
				sum += v
			}
			out.polls[[2]uint64{uint64(target), s.Seq}] = sum
		}
		out.lost += r.Lost(target)
	}
	for _, w := range r.Warnings() {
		if w.Code == "recording_damaged" {
			out.damage = append(out.damage, w.Text)
		}
	}
	return out, nil
}

// damageCase is a recording and its files.
type damageCase struct {
	name  string
	files map[string][]byte
	want  *readout
}

// damageCases records two targets, and keeps the files of the closed run, of one that was killed before SQLite moved
// its log into the database, and of one after it had done so twice.
func damageCases(t *testing.T, seed maphash.Seed) (out []damageCase) {
	keep := func(name, dir string) {
		c := damageCase{name: name, files: map[string][]byte{}}
		to := t.TempDir()
		for _, file := range []string{rundb.FileName, rundb.FileName + "-wal"} {
			b, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				continue
			}
			c.files[file] = b
			if err := os.WriteFile(filepath.Join(to, file), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var err error
		if c.want, err = readOut(t, to, seed); err != nil || len(c.want.damage) > 0 {
			t.Fatalf("%s: %v, %v", name, err, c.want)
		}
		out = append(out, c)
	}
	record := func(polls, flush int, copyEvery time.Duration, kill bool) string {
		dir := t.TempDir()
		meta := rundb.Meta{ID: "id", OriginNS: 1_790_000_000e9, Interval: 333 * time.Millisecond, Warmup: time.Second}
		w, err := rundb.Create(dir, meta, rundb.WriterOptions{CopyEvery: copyEvery, CommitEvery: time.Hour,
			BlockPolls: 40})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close(context.Background()) })
		tapes := [][]*metric.Snapshot{tape(0, polls, false), tape(1, polls, true)}
		for i := range tapes {
			target := metric.Target{URL: "http://a" + strconv.Itoa(i), Source: "prometheus"}
			if _, err := w.AddTarget(target); err != nil {
				t.Fatal(err)
			}
		}
		for i := range polls {
			for _, s := range tapes {
				if i == 70 {
					s[i].Outcome, s[i].Err = metric.Partial, "a line was dropped"
				}
				if err := w.Record(s[i]); err != nil {
					t.Fatal(err)
				}
			}
			if i%100 == 5 {
				if err := w.Mark(metric.Mark{Name: "m" + strconv.Itoa(i), AtNS: meta.OriginNS + int64(i)*333e6}); err != nil {
					t.Fatal(err)
				}
			}
			if i%flush == 0 {
				if err := w.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !kill {
			if err := w.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	keep("closed", record(300, 10, time.Hour, false))
	keep("killed", record(100, 10, time.Hour, true))
	keep("killed later", record(200, 1, time.Hour, true))
	keep("killed with copies", record(200, 40, time.Nanosecond, true))
	return out
}

// damaged writes the files of a recording, one of them changed.
func (c *damageCase) damaged(t *testing.T, file string, b []byte) string {
	dir := t.TempDir()
	for name, was := range c.files {
		if name == file {
			was = b
		}
		if err := os.WriteFile(filepath.Join(dir, name), was, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// holds checks what was read of a damaged recording: every poll is one that was recorded, bit by bit, and when
// anything is missing somebody has said so.
func (c *damageCase) holds(t *testing.T, what string, got *readout, said bool) (lost int) {
	t.Helper()
	for k, sum := range got.polls {
		if c.want.polls[k] != sum {
			t.Errorf("%s: poll %d of target %d is another", what, k[1], k[0])
		}
	}
	lost = len(c.want.polls) - len(got.polls)
	same := lost == 0 && cmp.Equal(got.marks, c.want.marks) && cmp.Equal(got.meta, c.want.meta) &&
		cmp.Equal(got.targets, c.want.targets, cmp.AllowUnexported(metric.Labels{}))
	if !same && !said {
		t.Errorf("%s: %d of %d polls, marks %v, meta %v, targets %v, and not a word", what, len(got.polls),
			len(c.want.polls), got.marks, got.meta, got.targets)
	}
	return lost
}

// try reads and repairs a damaged recording, and returns the shares of its polls that are lost before and after that.
func (c *damageCase) try(t *testing.T, what, file string, b []byte, seed maphash.Seed) (before, after float64) {
	t.Helper()
	dir, to := c.damaged(t, file, b), t.TempDir()
	before = 1
	if got, err := readOut(t, dir, seed); got != nil {
		before = float64(c.holds(t, what, got, err != nil || len(got.damage) > 0)) / float64(len(c.want.polls))
	}
	done, err := rundb.Repair(t.Context(), dir, to, nil)
	if err != nil {
		t.Logf("%s: %v", what, err)
		return before, 1
	}
	got, err := readOut(t, to, seed)
	if err != nil {
		t.Errorf("%s: repaired: %v", what, err)
		return before, 1
	}
	lost := c.holds(t, what+", repaired", got, len(got.damage) > 0)
	if got.lost != done.Lost || done.Polls != len(got.polls) {
		t.Errorf("%s: repair tells of %d polls and %d lost, the run of %d and %d", what, done.Polls, done.Lost,
			len(got.polls), got.lost)
	}
	return before, float64(lost) / float64(len(c.want.polls))
}

// anyDamage turns bits over and cuts files at random places: what is read is what was recorded, what is lost is
// told, and repair loses hardly anything.
func anyDamage(t *testing.T) {
	points := 12
	if racing {
		points = 4
	}
	if n, err := strconv.Atoi(os.Getenv("SCRAPESTAT_POINTS")); err == nil {
		points = n
	}
	seed := maphash.MakeSeed()
	rnd := rand.New(rand.NewPCG(7, 8))
	cases := damageCases(t, seed)
	var flips, cuts []float64
	for i := range points {
		c := cases[i%len(cases)]
		names := slices.Sorted(maps.Keys(c.files))
		at, file := rnd.IntN(len(c.files[names[0]])+len(c.files[names[len(names)-1]])*(len(names)-1)), names[0]
		if n := len(c.files[file]); at >= n {
			at, file = at-n, names[1]
		}
		b := bytes.Clone(c.files[file])
		b[at] ^= 1 << rnd.IntN(8)
		if file != rundb.FileName && at%512 == 0 {
			at++ // a full disk cuts a log between sectors, of what was never committed: nothing tells that from this
		}
		_, lost := c.try(t, fmt.Sprintf("%s, a bit of byte %d of %s", c.name, at, file), file, b, seed)
		if lost > 0.1 {
			t.Logf("%s, a bit of byte %d of %s: %.0f %% lost", c.name, at, file, 100*lost)
		}
		flips = append(flips, lost)
		b = c.files[file]
		before, lost := c.try(t, fmt.Sprintf("%s, %s cut at %d of %d", c.name, file, at, len(b)), file, b[:at], seed)
		// A log that is cut is one of an earlier moment; of a database a share of all bytes is gone.
		gone := before
		if file == rundb.FileName {
			gone = float64(len(b)-at) / float64(len(b)+len(c.files[names[len(names)-1]])*(len(names)-1))
		}
		cuts = append(cuts, lost-gone)
	}
	slices.Sort(flips)
	slices.Sort(cuts)
	mean := 0.0
	for _, v := range flips {
		mean += v / float64(len(flips))
	}
	faults.Figure(t, "damage", fmt.Sprintf("%d bits turned over and %d cuts at random places of closed and killed "+
		"recordings: no poll read that was not recorded bit by bit, no loss without a word; repair lost %.2f %% of the "+
		"polls "+
		"(median; mean %.2f %%, worst %.0f %%) to a bit, and %.2f %% (median) to a cut beyond what was cut off", len(flips),
		len(cuts), 100*flips[len(flips)/2], 100*mean, 100*flips[len(flips)-1], 100*max(0, cuts[len(cuts)/2])),
		"SCRAPESTAT_POINTS=200 go test ./rundb -run TestHardening/K8 -v")
	if flips[len(flips)/2] > 0.01 || cuts[len(cuts)/2] > 0.01 {
		t.Errorf("median loss %v of flips, %v of cuts beyond what is cut off", flips[len(flips)/2], cuts[len(cuts)/2])
	}
}

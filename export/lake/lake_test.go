package lake_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/export/lake"
	"github.com/scrapestat/scrapestat/internal/parquetwriter"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
)

// add adds a recording of testdata/runs.
func add(t testing.TB, dir, name string, o lake.Options) (*lake.Run, bool, error) {
	t.Helper()
	run, rec := built(t, name)
	o.Name = name
	return lake.Add(t.Context(), dir, run, []lake.Recording{rec}, o)
}

func built(t testing.TB, name string) (*summary.Run, *rundb.Run) {
	t.Helper()
	rec, err := rundb.Open(filepath.Join("..", "..", "testdata", "runs", name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	run, err := summary.Build(context.Background(), []summary.Recording{rec}, summary.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return run, rec
}

type sample struct {
	ID       int64     `parquet:"series_id"`
	T        int64     `parquet:"t"`
	Value    *float64  `parquet:"value"`
	Gain     *float64  `parquet:"gain"`
	Count    *int64    `parquet:"count"`
	Sum      *float64  `parquet:"sum"`
	Buckets  []int64   `parquet:"buckets,list"`
	BucketsF []float64 `parquet:"buckets_f,list"`
	Reset    *bool     `parquet:"raw_reset"`
}

type series struct {
	ID      int64             `parquet:"series_id"`
	Target  int64             `parquet:"target"`
	Metric  string            `parquet:"metric_name"`
	Type    string            `parquet:"metric_type"`
	Labels  map[string]string `parquet:"labels"`
	Bounds  []float64         `parquet:"bounds,list"`
	FirstNS int64             `parquet:"first_ns"`
	LastNS  int64             `parquet:"last_ns"`
	Born    bool              `parquet:"born"`
	Status  string            `parquet:"status"`
}

func read[T any](t testing.TB, dir string, run *lake.Run, table string) (rows []T) {
	t.Helper()
	for _, f := range run.Files {
		if !strings.HasPrefix(f.Path, table+"/") {
			continue
		}
		more, err := parquetwriter.ReadRows[T](filepath.Join(dir, filepath.FromSlash(f.Path)), 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, more...)
	}
	return rows
}

// follow is the reference: what the adjusted frames of continuity make each slot gain since the first sample, by the
// time of the poll.
func follow(t *testing.T, run *summary.Run, rec *rundb.Run, target int) (*metric.Schema, map[int64]map[int]float64) {
	tracker := continuity.New(summary.Continuity(run.Options.Catalog))
	now, first, zero := map[int]uint64{}, map[int]uint64{}, map[int]bool{}
	all, stored := map[int64]map[int]float64{}, 0
	for s, err := range rec.Snapshots(t.Context(), target) {
		if err != nil {
			t.Fatal(err)
		}
		step, err := tracker.Step(s)
		if err != nil {
			t.Fatal(err)
		}
		if step == nil {
			continue
		}
		stored++
		if step.Held {
			continue
		}
		for _, id := range step.Born {
			zero[int(id)] = stored > 1
		}
		if step.Delta.Full {
			clear(now)
		}
		gains := map[int]float64{}
		for i, id := range step.Delta.Slots {
			now[int(id)] = step.Delta.Bits[i]
		}
		for id, bits := range now {
			slot := &tracker.Schema().Slots[id]
			if _, ok := first[id]; !ok {
				if first[id] = bits; zero[slot.Series] {
					first[id] = 0
				}
			}
			if slot.Integer {
				gains[id] = float64(bits - first[id])
				continue
			}
			gains[id] = math.Float64frombits(bits) - math.Float64frombits(first[id])
		}
		all[s.AtNS()] = gains
	}
	return tracker.Schema(), all
}

// TestGains compares the gains in the files with what continuity makes of the recordings: of servers that were killed,
// that came late, and that nothing happened to.
func TestGains(t *testing.T) {
	for _, name := range []string{"triton-killed", "llamacpp-killed", "dynamo-late", "vllm-bench-rate4"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			run, rec := built(t, name)
			row, _, err := lake.Add(t.Context(), dir, run, []lake.Recording{rec}, lake.Options{Name: name, Budget: 1})
			if err != nil {
				t.Fatal(err)
			}
			rows, all := read[series](t, dir, row, "series"), read[sample](t, dir, row, "samples")
			compared, resets := 0, 0
			byID := map[int64][]sample{}
			for i, s := range all {
				byID[s.ID] = append(byID[s.ID], s)
				if i > 0 && (s.ID < all[i-1].ID || s.ID == all[i-1].ID && s.T <= all[i-1].T) {
					t.Fatalf("row %d: series %d at %d follows series %d at %d", i, s.ID, s.T, all[i-1].ID, all[i-1].T)
				}
				if s.Reset != nil && *s.Reset {
					resets++
				}
			}
			for target := range rec.Targets() {
				schema, want := follow(t, run, rec, target)
				for _, r := range rows {
					if int(r.Target) != target {
						continue
					}
					index := slices.IndexFunc(schema.Series, func(s metric.Series) bool {
						f := &schema.Families[s.Family]
						return f.Name == r.Metric && f.Type.String() == r.Type && maps.Equal(s.Labels.Map(), r.Labels)
					})
					if index < 0 {
						t.Fatalf("%s %v is nowhere", r.Metric, r.Labels)
					}
					for _, s := range byID[r.ID] {
						compared += compare(t, &r, &s, schema, index, want[s.T])
					}
				}
			}
			if strings.HasSuffix(name, "killed") && resets == 0 {
				t.Error("no row shows the restart")
			}
			t.Logf("%d rows, %d numbers compared, %d show a restart", len(all), compared, resets)
			if compared < 300 {
				t.Errorf("only %d numbers compared", compared)
			}
		})
	}
}

// compare compares a row with the reference, and returns how many numbers it had.
func compare(t *testing.T, r *series, s *sample, schema *metric.Schema, index int, want map[int]float64) (n int) {
	if r.Type != "counter" && r.Type != "histogram" && r.Type != "summary" || r.Status == "refused" {
		return 0
	}
	for _, id := range schema.SlotsOf(index) {
		slot, got := &schema.Slots[id], (*float64)(nil)
		switch slot.Role {
		case metric.RoleValue:
			got = s.Gain
		case metric.RoleSum:
			got = s.Sum
		case metric.RoleCount:
			if s.Count != nil {
				v := float64(*s.Count)
				got = &v
			}
		case metric.RoleBucket:
			if at := slices.Index(r.Bounds, slot.Bound); at >= 0 && at < len(s.Buckets) {
				v := float64(s.Buckets[at])
				got = &v
			}
		default:
			continue
		}
		w, ok := want[int(id)]
		if got == nil != !ok {
			t.Errorf("%s%v %v at %d: %v, want %v %v", r.Metric, r.Labels, slot.Role, s.T, got, w, ok)
		} else if ok && *got != w {
			t.Errorf("%s%v %v at %d: %v, want %v", r.Metric, r.Labels, slot.Role, s.T, *got, w)
		}
		n++
	}
	return n
}

// tree reads all files of a lake.
func tree(t *testing.T, dir string) map[string]string {
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		files[rel] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestTwice has two add one run at the same time, and one again: one run, the same files.
func TestTwice(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	var there [2]bool
	var errs [2]error
	for i := range 2 {
		run, rec := built(t, "llamacpp-killed")
		wg.Go(func() {
			_, there[i], errs[i] = lake.Add(t.Context(), dir, run, []lake.Recording{rec}, lake.Options{Name: "x"})
		})
	}
	wg.Wait()
	if errs[0] != nil || errs[1] != nil || there[0] && there[1] || !there[0] && !there[1] {
		t.Errorf("there %v, errors %v: want one who was first", there, errs)
	}
	before := tree(t, dir)
	run, rec := built(t, "llamacpp-killed")
	again := []lake.Recording{rec}
	if _, there, err := lake.Add(t.Context(), dir, run, again, lake.Options{Name: "x"}); !there || err != nil {
		t.Errorf("again: %v %v", there, err)
	}
	if !maps.Equal(before, tree(t, dir)) {
		t.Error("adding it again changed files")
	}
	other, rec2 := built(t, "triton-killed")
	if _, _, err := lake.Add(t.Context(), dir, other, []lake.Recording{rec2}, lake.Options{Name: "x"}); !errors.Is(err,
		lake.ErrOther) {
		t.Errorf("another content: %v", err)
	}
	row, _, err := lake.Add(t.Context(), dir, other, []lake.Recording{rec2}, lake.Options{Name: "x", Replace: true})
	if err != nil {
		t.Fatal(err)
	}
	if have, err := lake.ReadRun(dir, "x"); err != nil || have.Content != row.Content {
		t.Errorf("replaced: %v %v", have, err)
	}
	found, err := lake.Verify(dir, time.Time{})
	if err != nil || len(found.Bad) > 0 || len(found.Orphans) != 2 || found.Pruned != 0 {
		t.Errorf("after --replace: %+v, %v", found, err)
	}
	if found, err = lake.Verify(dir, time.Now().Add(time.Hour)); err != nil || found.Pruned != 2 {
		t.Errorf("prune: %+v, %v", found, err)
	}
	if found, err = lake.Verify(dir, time.Time{}); err != nil || len(found.Orphans)+len(found.Bad) != 0 {
		t.Errorf("after prune: %+v, %v", found, err)
	}
}

// TestBudget checks that the files do not depend on the memory there is.
func TestBudget(t *testing.T) {
	little, much := t.TempDir(), t.TempDir()
	for dir, budget := range map[string]int{little: 1, much: 1 << 30} {
		if _, _, err := add(t, dir, "vllm-bench-rate4", lake.Options{Budget: budget}); err != nil {
			t.Fatal(err)
		}
	}
	if !maps.Equal(tree(t, little), tree(t, much)) {
		t.Error("the files differ")
	}
}

// TestVerify flips bits of files, takes files away, and has manifests lie.
func TestVerify(t *testing.T) {
	dir := t.TempDir()
	row, _, err := add(t, dir, "llamacpp-killed", lake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range row.Files {
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		flipped := slices.Clone(b)
		flipped[len(b)/2] ^= 1
		for _, bad := range [][]byte{flipped, b[:len(b)-1], nil} {
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			if found, err := lake.Verify(dir, time.Time{}); err != nil || len(found.Bad) != 1 ||
				!strings.Contains(found.Bad[0], f.Path) {
				t.Errorf("%s with %d bytes: %+v, %v", f.Path, len(bad), found, err)
			}
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := lake.Verify(dir, time.Time{}); err != nil || len(found.Bad) != 0 {
		t.Errorf("mended: %+v, %v", found, err)
	}
	path := filepath.Join(dir, "runs", "run=llamacpp-killed", "run.parquet")
	for _, text := range []string{"", "PAR1PAR1", strings.Repeat("PAR1", 100)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if found, err := lake.Verify(dir, time.Time{}); err != nil || len(found.Bad) != 1 {
			t.Errorf("run.parquet %q: %+v, %v", text, found, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "_scrapestat.json"), []byte(`{"format":2,"kind":"scrapestat lake"}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err = add(t, dir, "triton-killed", lake.Options{})
	if err == nil || !strings.Contains(err.Error(), "format 2") {
		t.Errorf("a newer lake: %v", err)
	}
}

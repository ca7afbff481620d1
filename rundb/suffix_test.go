package rundb_test

import (
	"context"
	"database/sql"
	"encoding/binary"
	"hash/crc32"
	"path/filepath"
	"slices"
	"testing"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// toVersion5 rewrites a closed recording as programs of schema 5 wrote it: families have no suffix.
func toVersion5(t *testing.T, dir string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, rundb.FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query("SELECT id, name, type, help, unit FROM family")
	if err != nil {
		t.Fatal(err)
	}
	sums := map[int64]int64{}
	for rows.Next() {
		var id int64
		texts := make([]string, 4)
		if err := rows.Scan(&id, &texts[0], &texts[1], &texts[2], &texts[3]); err != nil {
			t.Fatal(err)
		}
		text := func(b []byte, s string) []byte {
			return append(binary.AppendUvarint(append(b, 't'), uint64(len(s))), s...)
		}
		row := binary.BigEndian.AppendUint64(append(text(nil, "family"), 'i'), uint64(id))
		for _, s := range texts {
			row = text(row, s)
		}
		sums[id] = int64(int32(crc32.Checksum(row, crc32.MakeTable(crc32.Castagnoli))))
	}
	rows.Close()
	for id, sum := range sums {
		if _, err := db.Exec("UPDATE family SET crc = ? WHERE id = ?", sum, id); err != nil {
			t.Fatal(err)
		}
	}
	alter(t, dir, "ALTER TABLE family DROP COLUMN suffix; DROP TABLE clock_offset; DELETE FROM dictionary; "+
		"PRAGMA user_version = 5")
}

// namesOf are what the families of target 0 are called by their server, and how many of them are guessed.
func namesOf(t *testing.T, dir string) (names []string, guessed int) {
	t.Helper()
	r := open(t, dir)
	d, guessed, err := r.Dict(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range d.Families {
		names = append(names, d.Families[i].ServerName())
	}
	return names, guessed
}

// TestSuffix checks that the suffix of a family is recorded, and what an older recording gets in its place, also when
// it was repaired.
func TestSuffix(t *testing.T) {
	for _, x := range []struct {
		body    string
		old     []string
		guessed int
	}{
		{body: "a_total{x=\"1\"} 1\nb 1\nnv_d2 1\n",
			old: []string{"a_total", "b", "c_total", "nv_d", "nv_d2", "e_info", "h"}, guessed: 3},
		{body: "a 1\nb 1\nh 1\n", old: []string{"a", "b", "c", "nv_d", "nv_d2", "e_info", "h"}, guessed: 4},
		{body: "# TYPE a counter\n# TYPE b counter\nb_total 1\n# EOF\n",
			old: []string{"a_total", "b_total", "c_total", "nv_d_total", "nv_d2_total", "e_info", "h"}, guessed: 5},
		{old: []string{"a_total", "b_total", "c_total", "nv_d_total", "nv_d2_total", "e_info", "h"}, guessed: 6},
	} {
		dir := t.TempDir()
		w := create(t, dir, 1, rundb.WriterOptions{})
		var b metric.SnapshotBuilder
		for _, f := range []metric.Family{{Name: "a", Type: metric.Counter, Suffix: "_total"},
			{Name: "b", Type: metric.Counter}, {Name: "c", Type: metric.Counter, Suffix: metric.SuffixUnknown},
			{Name: "nv_d", Type: metric.Counter},
			{Name: "nv_d2", Type: metric.Counter}, {Name: "e", Type: metric.Info, Suffix: "_info"},
			{Name: "h", Type: metric.Histogram}} {
			b.Set(b.Slot(b.Series(b.AddFamily(f), metric.Labels{}), metric.SampleID{Role: metric.RoleSum}), 1)
		}
		s := metric.Snapshot{SentNS: 1e9, FirstByteNS: 1e9, Body: []byte(x.body)}
		b.Finish(&s)
		if err := w.Record(&s); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := slices.Replace(slices.Clone(x.old), 0, 7, "a_total", "b", "c_total", "nv_d", "nv_d2", "e_info", "h")
		if got, n := namesOf(t, dir); !slices.Equal(got, want) || n != 1 {
			t.Errorf("body %q: %q, %d guessed; want %q", x.body, got, n, want)
		}
		toVersion5(t, dir)
		to := t.TempDir()
		if got, n := namesOf(t, dir); !slices.Equal(got, x.old) || n != x.guessed {
			t.Errorf("body %q, version 5: %q, %d guessed; want %q, %d", x.body, got, n, x.old, x.guessed)
		}
		if _, err := rundb.Repair(t.Context(), dir, to, nil); err != nil {
			t.Fatal(err)
		}
		if got, n := namesOf(t, to); !slices.Equal(got, x.old) || n != x.guessed {
			t.Errorf("body %q, repaired: %q, %d guessed; want %q, %d", x.body, got, n, x.old, x.guessed)
		}
	}
}

// TestSuffixOfRealRuns reads names out of recordings of real servers that were made before families had a suffix.
func TestSuffixOfRealRuns(t *testing.T) {
	for run, want := range map[string][]string{
		"vllm-saturated": {"vllm:generation_tokens_total", "vllm:num_requests_running"},
		"triton-steady":  {"nv_inference_count"},
		"classes-sglang": {"sglang:prompt_tokens_total"},
	} {
		names, _ := namesOf(t, filepath.Join("..", "testdata", "runs", run))
		for _, name := range want {
			if !slices.Contains(names, name) {
				t.Errorf("%s: no %s among %q", run, name, names)
			}
		}
	}
}

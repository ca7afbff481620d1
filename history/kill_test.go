package history_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"modernc.org/sqlite"

	"github.com/scrapestat/scrapestat/history"
)

// killPoint is the nth time that a row of a table is inserted or deleted, or, without a table, a transaction committed.
type killPoint struct {
	table  string
	delete bool
	nth    int
	runs   int // that are in the file then; -1 is all
}

// killPoints are where a process dies that adds runs of three quantities, adds the first anew and keeps three.
func killPoints() (runs int, points map[string]killPoint) {
	runs, points = 6, map[string]killPoint{
		"journal": {nth: 1},
		"schema":  {nth: 2},
		"run":     {table: "run", nth: 3, runs: 2},
		"config":  {table: "config", nth: 1},
		"text":    {table: "text", nth: 4, runs: 2}, // the name and the value of a tag, then a value each
		"setting": {table: "setting", nth: 5, runs: 4},
		"series":  {table: "series", nth: 2},
		"value":   {table: "value", nth: 3*2 + 2, runs: 2},
		"commit":  {nth: 2 + 4, runs: 3},
		"refresh": {table: "value", delete: true, nth: 2, runs: -1},
		"prune":   {table: "run", delete: true, nth: 2, runs: -1},
	}
	// With SCRAPESTAT_POINTS=100 a hundred more, of the values and the commits of 50 runs.
	n, err := strconv.Atoi(os.Getenv("SCRAPESTAT_POINTS"))
	if err != nil || n <= 0 {
		return runs, points
	}
	runs = 50
	draw := rand.New(rand.NewPCG(24, 12))
	for i := range n {
		value, commit := draw.IntN(3*runs), draw.IntN(runs)
		points[fmt.Sprintf("value %d, %d", i, value)] = killPoint{table: "value", nth: 1 + value, runs: value / 3}
		points[fmt.Sprintf("commit %d, %d", i, commit)] = killPoint{nth: 2 + 1 + commit, runs: commit}
	}
	return runs, points
}

// The operations of SQLite's hooks.
const (
	opDelete = 9
	opInsert = 18
)

// dieAt has the process killed at a point, from within SQLite.
func dieAt(p killPoint) {
	die := func() {
		if p.nth--; p.nth == 0 {
			if self, err := os.FindProcess(os.Getpid()); err == nil && self.Kill() == nil {
				select {}
			}
		}
	}
	sqlite.RegisterConnectionHook(func(c sqlite.ExecQuerierContext, _ string) error {
		hooks := c.(sqlite.HookRegisterer)
		hooks.RegisterCommitHook(func() int32 {
			if p.table == "" {
				die()
			}
			return 0
		})
		hooks.RegisterPreUpdateHook(func(d sqlite.SQLitePreUpdateData) {
			if op := map[bool]int32{false: opInsert, true: opDelete}[p.delete]; d.TableName == p.table && d.Op == op {
				die()
			}
		})
		return nil
	})
}

// TestKillPoints is row 12 at named points: whatever is being written when a process is killed, runs are there entirely
// or not at all, those before stay, and adding again gives the file of an undisturbed one.
func TestKillPoints(t *testing.T) {
	var b strings.Builder
	b.WriteString("time,run,commit,tag:night,x,y,z\n")
	runs, points := killPoints()
	for i := range runs {
		fmt.Fprintf(&b, "%d,r%d,c%d,n%d,1%d,2,3\n", 1_750_000_000+i*86400, i, i, i, i%10)
	}
	list := entries(t, b.String())
	if name, path, ok := strings.Cut(os.Getenv("HISTORY_KILL"), "="); ok {
		dieAt(points[name])
		f, err := history.Open(t.Context(), path, true)
		if err != nil {
			t.Fatal(err)
		}
		add(t, f, list)
		if _, err := f.Add(t.Context(), list[0], true); err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.Prune(t.Context(), 0, 3); err != nil {
			t.Fatal(err)
		}
		return // alive
	}
	whole := open(t)
	add(t, whole, list)
	want := allRows(t, whole)
	for name, point := range points {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "history.db")
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKillPoints$")
			cmd.Env = append(os.Environ(), "HISTORY_KILL="+name+"="+path)
			out, err := cmd.CombinedOutput()
			if err == nil || cmd.ProcessState.ExitCode() == 1 {
				t.Fatalf("it was not killed: %v\n%s", err, out)
			}
			f, err := history.Open(t.Context(), path, true)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			left, there := []history.Row(nil), map[string]bool{}
			if point.runs < 0 {
				point.runs = len(list)
			}
			for _, e := range list[:point.runs] {
				there[e.ID] = true
			}
			for _, x := range want {
				if there[x.RunID] {
					left = append(left, x)
				}
			}
			got := allRows(t, f)
			if !reflect.DeepEqual(got, left) {
				t.Errorf("%d values are left, want %d: %+v", len(got), len(left), got)
			}
			for _, e := range list {
				if _, err := f.Add(t.Context(), e, false); err != nil {
					t.Fatal(err)
				}
			}
			if got := allRows(t, f); !reflect.DeepEqual(got, want) {
				t.Errorf("added again: %d values, want %d", len(got), len(want))
			}
		})
	}
}

// allRows are the values of a file with all that is known of their runs.
func allRows(t *testing.T, f *history.File) (out []history.Row) {
	t.Helper()
	for x, err := range f.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, x)
	}
	return out
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/scrapestat/scrapestat/internal/testkit"
)

// TestLabRuns holds what is concluded from the recordings that the lab made of real servers to what its client counted:
// the sum over all series that a gate asks.
func TestLabRuns(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(testkit.Path(t, "runs") + "/*/truth.json")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d recordings: %v", len(files), err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var want struct {
			Fails []string
			Rows  []labRow
		}
		if err := json.Unmarshal(text, &want); err != nil || len(want.Rows) == 0 {
			t.Fatalf("%s: %d rows, %v", path, len(want.Rows), err)
		}
		name := filepath.Base(filepath.Dir(path))
		for i, got := range gateSums(t, filepath.Dir(path), want.Rows) {
			r := want.Rows[i]
			if got.why != "" || !(math.Abs(got.sum-r.Truth) <= r.Within*math.Abs(r.Truth)) {
				t.Errorf("%s: %s is %v %s, want %v within %g", name, r.Ask, got.sum, got.why, r.Truth, r.Within)
			}
		}
		for _, expr := range want.Fails {
			var out bytes.Buffer
			args := []string{"check", filepath.Dir(path), "--assert", expr}
			if code := run(context.Background(), args, stdio{nil, &out, &out}); code != 3 {
				t.Errorf("%s: check %s exits with %d, want 3\n%s", name, expr, code, out.String())
			}
		}
	}
}

type labRow struct {
	Ask           string
	Truth, Within float64
}

// labSum is what `check` measures, of all series together; why is not empty when one has no number.
type labSum struct {
	sum float64
	why string
}

func gateSums(t *testing.T, recording string, rows []labRow) []labSum {
	t.Helper()
	args := []string{"check", recording, "--format", "json"}
	for _, r := range rows {
		args = append(args, "--assert", fmt.Sprintf("%s == %s", r.Ask, strconv.FormatFloat(r.Truth, 'f', -1, 64)))
	}
	var out, talk bytes.Buffer
	run(context.Background(), args, stdio{nil, &out, &talk})
	var got struct {
		Schema  string
		Version int `json:"schema_version"`
		Checks  []struct {
			Outcomes []struct {
				Verdict, Reason string
				Value           *float64
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.Schema != "scrapestat.check" || got.Version != 2 ||
		len(got.Checks) != len(rows) {
		t.Fatalf("%s: %d answers, %v\n%s", recording, len(got.Checks), err, talk.String())
	}
	sums := make([]labSum, len(rows))
	for i, c := range got.Checks {
		if len(c.Outcomes) == 0 {
			sums[i].why = "no number"
		}
		for _, o := range c.Outcomes {
			if o.Value == nil {
				sums[i].why = o.Verdict + " " + o.Reason
				continue
			}
			sums[i].sum += *o.Value
		}
	}
	return sums
}

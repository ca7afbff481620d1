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
			Rows []struct {
				Ask    string
				Truth  float64
				Within float64
			}
		}
		if err := json.Unmarshal(text, &want); err != nil || len(want.Rows) == 0 {
			t.Fatalf("%s: %d rows, %v", path, len(want.Rows), err)
		}
		name := filepath.Base(filepath.Dir(path))
		for _, r := range want.Rows {
			got, why := gateSum(t, filepath.Dir(path), r.Ask, r.Truth)
			if why != "" || !(math.Abs(got-r.Truth) <= r.Within*math.Abs(r.Truth)) {
				t.Errorf("%s: %s is %v %s, want %v within %g", name, r.Ask, got, why, r.Truth, r.Within)
			}
		}
	}
}

// gateSum adds up what `check` measures of each series; why is not empty when one has no number.
func gateSum(t *testing.T, recording, ask string, limit float64) (sum float64, why string) {
	t.Helper()
	expr := fmt.Sprintf("%s == %s", ask, strconv.FormatFloat(limit, 'f', -1, 64))
	var out, talk bytes.Buffer
	run(context.Background(), []string{"check", recording, "--format", "json", "--assert", expr}, stdio{nil, &out, &talk})
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
	err := json.Unmarshal(out.Bytes(), &got)
	if err != nil || got.Schema != "scrapestat.check" || got.Version != 2 || len(got.Checks) != 1 ||
		len(got.Checks[0].Outcomes) == 0 {
		t.Fatalf("%s: %+v, %v\n%s", ask, got, err, talk.String())
	}
	for _, o := range got.Checks[0].Outcomes {
		if o.Value == nil {
			return 0, o.Verdict + " " + o.Reason
		}
		sum += *o.Value
	}
	return sum, ""
}

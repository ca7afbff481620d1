package export_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// derivedRun has a quantity with a slice, one that is shown as 0, and one without
// a value.
func derivedRun() *summary.Run {
	r := oneCounter(1)
	labels := metric.LabelsFromMap(map[string]string{"version": "1", "model": "a\xffb"})
	d := func(name string, status catalog.Status, value, shown float64) summary.Derived {
		return summary.Derived{Derived: catalog.Derived{Pack: "p", Name: name, Unit: "seconds", Labels: labels, Status: status, Value: value, Shown: shown, Families: []string{"f", "g"}}}
	}
	r.Derived = []summary.Derived{d("mean", catalog.ResetCorrected, 0.5, 0.5), d("overhead", catalog.OK, -1, 0), d("nothing", catalog.ZeroDenominator, 0, 0)}
	r.Derived[0].HasParts, r.Derived[0].Numerator, r.Derived[0].Denominator = true, 1, 2
	r.Derived[0].Slices = []summary.DerivedSlice{{Slice: normalize.Slice{StartNS: 5, EndNS: 7, Partial: true}, Status: catalog.Missing}}
	r.Derived[1].Flags = []string{"negative"}
	return r
}

func TestDerivedJSON(t *testing.T) {
	var doc struct {
		Scrapestat struct {
			Derived []struct {
				Name, Status string
				Labels       map[string]string
				Value, Shown *float64
				Numerator    *float64
				Flags        []string
				Timeslices   []map[string]any
			}
		}
	}
	if err := json.Unmarshal(jsonOf(t, derivedRun(), inUTC), &doc); err != nil {
		t.Fatal(err)
	}
	got := doc.Scrapestat.Derived
	if len(got) != 3 || got[0].Status != "reset_corrected" || *got[0].Value != 0.5 || got[0].Shown != nil || *got[0].Numerator != 1 || got[0].Labels["version"] != "1" {
		t.Fatalf("got %+v", got)
	}
	if s := got[0].Timeslices; len(s) != 1 || s[0]["status"] != "missing" || s[0]["value"] != nil || s[0]["is_complete"] != false {
		t.Errorf("slices %v", s)
	}
	if *got[1].Value != -1 || *got[1].Shown != 0 || len(got[1].Flags) != 1 {
		t.Errorf("clamped: %+v", got[1])
	}
	if got[2].Status != "zero_denominator" || got[2].Value != nil || got[2].Numerator != nil {
		t.Errorf("without a value: %+v", got[2])
	}
}

// The Parquet file has a row per window and slice, nulls where there is no value,
// and the same bytes each time.
func TestDerivedParquet(t *testing.T) {
	var a, b bytes.Buffer
	for _, w := range []*bytes.Buffer{&a, &b} {
		if err := export.DerivedParquet(w, derivedRun(), export.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("two writes differ")
	}
	type row struct {
		Name      string            `parquet:"name,optional"`
		Labels    map[string]string `parquet:"labels"`
		Span      string            `parquet:"span,optional"`
		Start     *int64            `parquet:"start_ns,optional"`
		Complete  *bool             `parquet:"complete,optional"`
		Status    string            `parquet:"status,optional"`
		Value     *float64          `parquet:"value,optional"`
		Shown     *float64          `parquet:"shown,optional"`
		Numerator *float64          `parquet:"numerator,optional"`
		Families  string            `parquet:"families,optional"`
		Flags     string            `parquet:"flags,optional"`
	}
	rows, err := parquet.Read[row](bytes.NewReader(a.Bytes()), int64(a.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 4 {
		t.Fatalf("%d rows", len(rows))
	}
	if r := rows[0]; r.Name != "mean" || r.Span != "window" || *r.Value != 0.5 || *r.Numerator != 1 || r.Labels["model"] != "a\ufffdb" || r.Labels["version"] != "1" || r.Families != "f g" {
		t.Errorf("row 0: %+v", r)
	}
	if r := rows[1]; r.Span != "slice" || *r.Start != 5 || *r.Complete || r.Status != "missing" || r.Value != nil || r.Numerator != nil {
		t.Errorf("row 1: %+v", r)
	}
	if r := rows[2]; *r.Value != -1 || *r.Shown != 0 || r.Flags != "negative" || r.Numerator != nil {
		t.Errorf("row 2: %+v", r)
	}
	if r := rows[3]; r.Status != "zero_denominator" || r.Value != nil {
		t.Errorf("row 3: %+v", r)
	}
}

// A run with derived quantities has their file beside the Parquet file.
func TestWriteDerived(t *testing.T) {
	check := func(derived []summary.Derived, want int, formats ...string) {
		t.Helper()
		p := newTape("http://a/metrics")
		p.poll(1, counterPoint("c", 1))
		r := runOf(0, 10, p)
		r.Derived = derived
		files, err := export.Write(t.Context(), t.TempDir(), formats, r, []export.Recording{p}, export.Options{})
		n := 0
		for _, f := range files {
			if filepath.Base(f.Path) == export.DerivedName && f.Format == "parquet" && f.Size > 0 {
				n++
			}
		}
		if err != nil || n != want {
			t.Errorf("%v: %d files of derived quantities, want %d (%v)", formats, n, want, err)
		}
	}
	check(derivedRun().Derived, 1, "json", "parquet")
	check(derivedRun().Derived, 0, "json", "csv")
	check(nil, 0, "parquet")
}

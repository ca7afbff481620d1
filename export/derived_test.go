package export_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/histest"
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
		return summary.Derived{Derived: catalog.Derived{Pack: "p", Name: name, Unit: "seconds", Labels: labels,
			Status: status, Value: value, Shown: shown, Families: []string{"f", "g"}}}
	}
	r.Derived = []summary.Derived{d("mean", catalog.ResetCorrected, 0.5, 0.5), d("overhead", catalog.OK, -1, 0),
		d("nothing", catalog.ZeroDenominator, 0, 0)}
	r.Derived[0].HasParts, r.Derived[0].Numerator, r.Derived[0].Denominator = true, 1, 2
	r.Derived[0].Slices = []summary.DerivedSlice{{Slice: normalize.Slice{StartNS: 5, EndNS: 7, Partial: true},
		Status: catalog.Missing}}
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
	if len(got) != 3 || got[0].Status != "reset_corrected" || *got[0].Value != 0.5 || got[0].Shown != nil ||
		*got[0].Numerator != 1 || got[0].Labels["version"] != "1" {
		t.Fatalf("got %+v", got)
	}
	if s := got[0].Timeslices; len(s) != 1 || s[0]["status"] != "missing" || s[0]["value"] != nil ||
		s[0]["is_complete"] != false {
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
	if r := rows[0]; r.Name != "mean" || r.Span != "window" || *r.Value != 0.5 || *r.Numerator != 1 ||
		r.Labels["model"] != "a\ufffdb" || r.Labels["version"] != "1" || r.Families != "f g" {
		t.Errorf("row 0: %+v", r)
	}
	if r := rows[1]; r.Span != "slice" || *r.Start != 5 || *r.Complete || r.Status != "missing" || r.Value != nil ||
		r.Numerator != nil {
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
			if filepath.Base(f.Path) == "derived.parquet" && f.Format == "parquet" && f.Size > 0 {
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

// togetherRun has a fleet of two endpoints with a group, a latency and aggregates.
func togetherRun(t *testing.T) *summary.Run {
	t.Helper()
	r := derivedRun()
	q := r.Derived[0]
	q.Endpoint, q.Canonical, q.Category, q.Headline = -1, "output_tok_s", catalog.Throughput, true
	role := metric.LabelsFromMap(map[string]string{"role": "decode"})
	r.Combined = []summary.FleetResult{{Endpoints: []int{0, 1}, Derived: []summary.Derived{q}},
		{Labels: role, Endpoints: []int{1}, Derived: []summary.Derived{q}}}
	r.Options.By, r.Options.Quantiles = []string{"role"}, []float64{0.5}
	h := &normalize.Histogram{Count: 4, Sum: 2, Avg: 0.5, CountRate: 1, HasRates: true,
		Quantiles: []histest.Estimate{{Value: 0.4, Low: 0.25, High: math.NaN(), Flags: histest.Few}}}
	r.Latencies = []summary.Latency{{ID: "ttft_s", Engine: "vllm", Aggregate: summary.Aggregate{Series: 2, Histogram: h,
		LeftOut: 3}}}
	r.Aggregates = []summary.Aggregate{{Labels: role, Series: 2, Gauge: &summary.GaugeAggregate{Rule: "sum", TimeAvg: 3,
		Min: 1, Max: 5}, Skew: &summary.Skew{Replicas: 2, Ratio: 1.5}},
		{Series: 2, Refused: "no"}}
	return r
}

// Rows of fleets, groups, latencies and aggregates have no endpoint and say what
// they are.
func TestTogetherParquet(t *testing.T) {
	var b bytes.Buffer
	if err := export.DerivedParquet(&b, togetherRun(t), export.Options{}); err != nil {
		t.Fatal(err)
	}
	type row struct {
		URL       *string           `parquet:"endpoint_url,optional"`
		Labels    map[string]string `parquet:"labels"`
		Span      string            `parquet:"span,optional"`
		Status    string            `parquet:"status,optional"`
		Value     *float64          `parquet:"value,optional"`
		Level     string            `parquet:"level,optional"`
		Stat      *string           `parquet:"stat,optional"`
		Low       *float64          `parquet:"low,optional"`
		High      *float64          `parquet:"high,optional"`
		Series    *int64            `parquet:"series,optional"`
		Canonical *string           `parquet:"canonical,optional"`
	}
	rows, err := parquet.Read[row](bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows {
		if r.Level == "endpoint" {
			continue
		}
		text := r.Level + " " + r.Labels["role"] + " " + r.Span + " " + r.Status
		if r.Stat != nil {
			text += " " + *r.Stat
		}
		if r.Value != nil {
			text += fmt.Sprintf(" %g", *r.Value)
		}
		if r.Low != nil {
			text += fmt.Sprintf(" from %g", *r.Low)
		}
		if r.Series != nil {
			text += fmt.Sprintf(" of %d", *r.Series)
		}
		if r.Canonical != nil {
			text += " " + *r.Canonical
		}
		if r.URL != nil || r.High != nil {
			t.Errorf("%s: endpoint %v, high %v", text, r.URL, r.High)
		}
		got = append(got, text)
	}
	want := []string{"fleet  window reset_corrected 0.5 output_tok_s", "fleet  slice missing output_tok_s",
		"group decode window reset_corrected 0.5 output_tok_s", "group decode slice missing output_tok_s",
		"latency  window ok count 4 of 2 ttft_s", "latency  window ok rate 1 of 2 ttft_s",
		"latency  window ok sum 2 of 2 ttft_s", "latency  window ok avg 0.5 of 2 ttft_s",
		"latency  window ok p50 0.4 from 0.25 of 2 ttft_s",
		"aggregate decode window ok time_avg 3 of 2", "aggregate decode window ok min 1 of 2",
		"aggregate decode window ok max 5 of 2", "aggregate decode window ok skew 1.5 of 2",
		"aggregate  window missing of 2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTogetherJSON(t *testing.T) {
	var doc struct {
		Scrapestat struct {
			Fleet []struct {
				Labels    map[string]string
				Endpoints []int
				Derived   []map[string]any
			}
			Latencies  []map[string]any
			Aggregates struct{ Groups []map[string]any }
		}
	}
	if err := json.Unmarshal(jsonOf(t, togetherRun(t), inUTC), &doc); err != nil {
		t.Fatal(err)
	}
	s := doc.Scrapestat
	if len(s.Fleet) != 2 || len(s.Fleet[0].Endpoints) != 2 || s.Fleet[1].Labels["role"] != "decode" {
		t.Fatalf("fleet %+v", s.Fleet)
	}
	if d := s.Fleet[0].Derived[0]; d["endpoint"] != nil || d["canonical"] != "output_tok_s" ||
		d["question"] != "throughput" || d["headline"] != true || d["value"] != 0.5 {
		t.Errorf("derived of the fleet: %v", d)
	}
	if l := s.Latencies; len(l) != 1 || l[0]["canonical"] != "ttft_s" || l[0]["engine"] != "vllm" ||
		l[0]["count"] != 4.0 || l[0]["left_out"] != 3.0 {
		t.Errorf("latencies %v", l)
	}
	if g := s.Aggregates.Groups; len(g) != 2 || g[0]["rule"] != "sum" || g[0]["time_avg"] != 3.0 ||
		g[0]["skew"].(map[string]any)["max_over_mean"] != 1.5 || g[1]["refused"] != "no" {
		t.Errorf("aggregates %v", g)
	}
}

// TestDerivedBounds: low and high of what is not certain are in derived.parquet, an open end and what is certain null.
func TestDerivedBounds(t *testing.T) {
	r := &summary.Run{Endpoints: []summary.Endpoint{{}}}
	for _, d := range []catalog.Derived{{Status: catalog.Ambiguous, Value: 5, Low: 4, High: 7},
		{Status: catalog.LowerBound, Value: 5, Low: 5, High: math.Inf(1)},
		{Status: catalog.ResetCorrected, Value: 5, Low: 5, High: 5},
		{Status: catalog.Refused, Value: 5, Low: 4, High: 7}} {
		r.Derived = append(r.Derived, summary.Derived{Derived: d})
	}
	var b bytes.Buffer
	if err := export.DerivedParquet(&b, r, export.Options{}); err != nil {
		t.Fatal(err)
	}
	type row struct {
		Status string   `parquet:"status,optional"`
		Value  *float64 `parquet:"value,optional"`
		Low    *float64 `parquet:"low,optional"`
		High   *float64 `parquet:"high,optional"`
	}
	rows, err := parquet.Read[row](bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	five, four, seven := 5.0, 4.0, 7.0
	want := []row{{"ambiguous", &five, &four, &seven}, {"lower_bound", &five, &five, nil},
		{"reset_corrected", &five, nil, nil}, {"refused", nil, nil, nil}}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Error(diff)
	}
}

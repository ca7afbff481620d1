package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/internal/testkit"
)

// continuityCase is a case of continuity.json.
type continuityCase struct {
	ID      string
	T       []float64
	Outcome []string
	Series  map[string]struct {
		Type   string
		Values []*json.Number
	}
	Second struct{ Series map[string]any }
	Expect map[string]struct {
		Status     []string
		Value, Sum *float64
		Buckets    []float64
		Truth      *float64
		TruthLow   *float64 `json:"truth_low"`
		Low, High  *float64
	}
	Restarts  *int
	Processes any
}

// importable reports whether a file of OpenMetrics can hold the case: no poll failed or lost lines, no 64-bit
// integers, one target. The others hold through the library.
func (c *continuityCase) importable() bool {
	for _, row := range c.Series {
		if row.Type == "integer" {
			return false
		}
	}
	return len(c.T) > 0 && len(c.Series) > 0 && c.Second.Series == nil &&
		!slices.ContainsFunc(c.Outcome, func(o string) bool { return o != "ok" })
}

// exported is what the JSON export says of the case after an import.
func (c *continuityCase) exported(t *testing.T) *exportedCase {
	t.Helper()
	dir := t.TempDir()
	file, out := filepath.Join(dir, "case.om"), filepath.Join(dir, "run")
	if err := os.WriteFile(file, []byte(c.text()), 0o644); err != nil {
		t.Fatal(err)
	}
	runOK(t, "import", "openmetrics", file, "-o", out)
	runOK(t, "export", out, "--formats", "json")
	var r exportedCase
	text, err := os.ReadFile(out + "/server_metrics_export.json")
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &r
}

// text is the case in the OpenMetrics format: family by family, each series over time.
func (c *continuityCase) text() string {
	families := map[string][]string{}
	for name := range c.Series {
		base, _, _ := strings.Cut(name, "{")
		kind := c.Series[name].Type
		if kind != "gauge" {
			base = base[:strings.LastIndexByte(base, '_')] // _total, _bucket, _sum, _count
		}
		key := base + " " + kind
		families[key] = append(families[key], name)
	}
	var out strings.Builder
	for _, family := range slices.Sorted(maps.Keys(families)) {
		fmt.Fprintf(&out, "# TYPE %s\n", family)
		for i, at := range c.T {
			for _, name := range slices.Sorted(slices.Values(families[family])) {
				if v := c.Series[name].Values[i]; v != nil {
					fmt.Fprintf(&out, "%s %s %s\n", name, v, strconv.FormatFloat(at, 'f', -1, 64))
				}
			}
		}
	}
	return out.String() + "# EOF\n"
}

// exportedCase is what the JSON export says of increases.
type exportedCase struct {
	Metrics map[string]struct {
		Series []caseSeries
	}
	Scrapestat struct {
		Metrics []struct { // summaries, which AIPerf does not know
			Name   string
			Series []caseSeries
		}
		Series    []caseNote
		Endpoints []struct {
			Continuity *struct {
				Status                    string
				Processes, Restarts, Dips int
				OlderBodies               int `json:"older_bodies"`
				Left                      int `json:"events_left_out"`
				Events                    []any
			}
		}
	}
}

type caseSeries struct {
	URL     string `json:"endpoint_url"`
	Labels  map[string]string
	Stats   struct{ Total, Count, Sum float64 }
	Buckets map[string]float64
}

type caseNote struct {
	Metric   string
	Labels   map[string]string
	Increase *caseIncrease
}

type caseIncrease struct {
	Status    string
	Value     float64
	Low, High *float64
	Sum       *float64
	Buckets   map[string]float64
}

// increaseOf adds up the series of a name over the values of the label pod, as the export has them.
func (r *exportedCase) increaseOf(key string) (i continuity.Increase, sum float64, buckets map[string]float64, n int) {
	name, labels, _ := strings.Cut(key, "{")
	want := map[string]string{}
	for _, pair := range strings.Split(strings.TrimSuffix(labels, "}"), ",") {
		if k, v, ok := strings.Cut(pair, "="); ok {
			want[k] = strings.Trim(v, `"`)
		}
	}
	is := func(l map[string]string) bool {
		l = maps.Clone(l)
		delete(l, "pod")
		return maps.Equal(l, want) || len(l)+len(want) == 0
	}
	name = strings.TrimSuffix(name, "_total")
	buckets = map[string]float64{}
	notes := map[string]*caseIncrease{}
	for _, x := range r.Scrapestat.Series {
		if x.Metric == name && is(x.Labels) && x.Increase != nil {
			notes[fmt.Sprint(x.Labels)] = x.Increase
		}
	}
	add := func(one continuity.Increase, s float64, b map[string]float64) {
		if n++; n == 1 {
			i = one
		} else {
			i = i.Add(one)
		}
		sum += s
		for le, v := range b {
			buckets[le] += v
		}
	}
	all := r.Metrics[name].Series
	for _, m := range r.Scrapestat.Metrics {
		if m.Name == name {
			all = append(all, m.Series...)
		}
	}
	for _, s := range all {
		if !is(s.Labels) {
			continue
		}
		at := fmt.Sprint(s.Labels)
		if note := notes[at]; note != nil {
			delete(notes, at)
			note.add(add)
			continue
		}
		add(continuity.Certain(cmp.Or(s.Stats.Total, s.Stats.Count)), s.Stats.Sum, s.Buckets)
	}
	for _, note := range notes { // refused ones are nowhere else
		note.add(add)
	}
	return i, sum, buckets, n
}

func (x *caseIncrease) add(to func(continuity.Increase, float64, map[string]float64)) {
	status, _ := continuity.ParseStatus(x.Status)
	i := continuity.Increase{Value: x.Value, Low: x.Value, High: math.Inf(1), Status: status}
	if x.Low != nil {
		i.Low = *x.Low
	}
	if x.High != nil {
		i.High = *x.High
	} else if status.Certain() {
		i.High = x.Value
	}
	sum := 0.0
	if x.Sum != nil {
		sum = *x.Sum
	}
	to(i, sum, x.Buckets)
}

// TestContinuityVectors takes the cases of continuity.json that a file can hold through import and export: status,
// value, sum, buckets and interval of each are in what the command writes.
func TestContinuityVectors(t *testing.T) {
	t.Parallel()
	var all struct{ Cases []continuityCase }
	if err := json.Unmarshal(testkit.Data(t, "vectors/continuity.json"), &all); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range all.Cases {
		if !c.importable() {
			continue
		}
		n++
		t.Run(c.ID, func(t *testing.T) {
			c.check(t, c.exported(t))
		})
	}
	if n != 65 {
		t.Errorf("%d cases, want 65", n)
	}
}

// TestEventLimit: two processes that answer by turns 1,500 times are 1,000 events in the export, and a count of the
// others.
func TestEventLimit(t *testing.T) {
	t.Parallel()
	c := continuityCase{Series: map[string]struct {
		Type   string
		Values []*json.Number
	}{}}
	for _, name := range []string{"a_total", "b_total", "c_total", "process_start_time_seconds"} {
		row := c.Series[name]
		row.Type = map[bool]string{true: "gauge", false: "counter"}[strings.HasPrefix(name, "process")]
		for i := range 1500 {
			v := json.Number(fmt.Sprint([]int{9000, 40}[i%2] + i))
			if row.Type == "gauge" {
				v = json.Number(fmt.Sprint(1699990000 + 5000*(i%2)))
			}
			row.Values = append(row.Values, &v)
		}
		c.Series[name] = row
	}
	for i := range 1500 {
		c.T = append(c.T, float64(1700000000+i))
	}
	r := c.exported(t)
	n := r.Scrapestat.Endpoints[0].Continuity
	if n == nil || len(n.Events) != 1000 || n.Left != 499 || n.Processes != 2 {
		t.Errorf("%d events, %d left out, %d processes", len(n.Events), n.Left, n.Processes)
	}
}

func (c *continuityCase) check(t *testing.T, r *exportedCase) {
	near := func(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance*max(1, math.Abs(b)) }
	for key, want := range c.Expect {
		if strings.HasPrefix(key, "sum(") {
			continue // of gauges: package summary
		}
		i, sum, buckets, n := r.increaseOf(key)
		if n == 0 {
			t.Errorf("%s: no series", key)
			continue
		}
		if !slices.Contains(want.Status, i.Status.String()) {
			t.Errorf("%s: %+v, want %v", key, i, want.Status)
		}
		if want.Value != nil && !near(i.Value, *want.Value, 1e-9) || want.Sum != nil && !near(sum, *want.Sum, 1e-6) {
			t.Errorf("%s: value %v and sum %v, want %+v", key, i.Value, sum, want)
		}
		defined := i.Status.Defined()
		if want.Truth != nil && defined && !(i.Low <= *want.Truth*1.0000001+1e-9 && *want.Truth <= i.High*1.0000001+1e-9) ||
			want.TruthLow != nil && defined && i.Low > *want.TruthLow ||
			want.Low != nil && i.Status == continuity.Ambiguous && (i.Low > *want.Low || i.High < *want.High) {
			t.Errorf("%s: %+v, want %+v", key, i, want)
		}
		bounds := slices.SortedFunc(maps.Keys(buckets), func(a, b string) int { return cmp.Compare(bound(a), bound(b)) })
		for at, le := range bounds {
			if want.Buckets != nil && !near(buckets[le], want.Buckets[at], 1e-9) {
				t.Errorf("%s: bucket %s has %v, want %v", key, le, buckets[le], want.Buckets[at])
			}
		}
	}
	processes, restarts := 1, 0
	if h := r.Scrapestat.Endpoints[0].Continuity; h != nil {
		processes, restarts = h.Processes, h.Restarts
	}
	if c.Restarts != nil && restarts != *c.Restarts {
		t.Errorf("%d restarts, want %d", restarts, *c.Restarts)
	}
	if want, ok := c.Processes.(float64); ok && processes != int(want) || c.Processes == "several" && processes != 0 {
		t.Errorf("%d processes, want %v", processes, c.Processes)
	}
}

func bound(le string) float64 {
	v, err := strconv.ParseFloat(le, 64)
	if err != nil {
		return math.Inf(1)
	}
	return v
}
